"""Mutants of channels between workers, of their frames, their credit and of who may connect. Tests show them: runs
of the simulation are in one worker.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.mutants.mutant import Edit, Mutant

SENDING: Final = "processor.channels.sending:SendingChannel"
RECEIVING: Final = "processor.channels.receiving:ReceivingChannel"
PEERS: Final = "processor.channels.socket_peers:SocketPeers"

_LAWS: Final = "tests/laws/test_channels_between_workers.py"
_EXCHANGE: Final = "tests/unit/channels/test_exchange.py"
_FRAMES: Final = "tests/unit/channels/test_frames.py"
_CODEC: Final = "tests/unit/records/test_batch_codec.py"
_HANDSHAKE: Final = "tests/unit/channels/test_handshake.py"
_PEERS: Final = "tests/unit/channels/test_socket_peers.py"
_TLS: Final = "tests/unit/channels/test_tls.py"

CHANNELS: Final = (
    Mutant(
        name="A10_a_barrier_is_seen_at_its_turn",
        breaks="Between workers no barrier overtakes anything.",
        tests=f"{_LAWS} {_EXCHANGE}",
        edits=(
            Edit(
                function=f"{RECEIVING}.barriers",
                find="return self._queue.barriers()",
                put="return [b for b in self._queue.barriers() if b is self._queue.front()]",
            ),
        ),
    ),
    Mutant(
        name="A10_a_barrier_is_told_from_another_by_what_it_says",
        breaks="Of two equal barriers the wrong one overtakes.",
        tests="tests/unit/channels/test_queue.py",
        edits=(
            Edit(
                function="processor.channels.queue:_place",
                find="element is wanted",
                put="element == wanted",
            ),
        ),
    ),
    Mutant(
        name="G4_a_mark_needs_credit",
        breaks="A barrier waits behind a full window, which waits for the barrier.",
        tests=_LAWS,
        edits=(
            Edit(
                function=f"{SENDING}.send",
                find="self._frame(*encode_mark(element))",
                put="self._window.open() and self._frame(*encode_mark(element))",
            ),
        ),
    ),
    Mutant(
        name="G4_grants_come_late",
        breaks="A producer waits for a grant that never is due.",
        tests="tests/unit/channels/test_credits.py",
        edits=(
            Edit(
                function="processor.channels.credits:ReceiveWindow.__init__",
                find="window_bytes // 2",
                put="window_bytes * 2",
            ),
        ),
    ),
    Mutant(
        name="G4_reading_waits_for_processing",
        breaks="A channel whose consumer takes nothing keeps all the others back.",
        tests=f"{_EXCHANGE} {_LAWS}",
        edits=(
            Edit(
                function="processor.channels.exchange:_Peer.read",
                find="while piece := self._connection.receive():",
                put="while sum(one.waiting_bytes for one in self.receivers.values()) < 600 and ("
                "piece := self._connection.receive()):",
            ),
        ),
    ),
    Mutant(
        name="G4_a_batch_costs_its_bytes_alone",
        breaks="A window holds any number of batches of one small record.",
        tests=_EXCHANGE,
        edits=(
            Edit(
                function="processor.channels.credits:cost",
                find="batch_bytes + BATCH_OVERHEAD_BYTES",
                put="batch_bytes",
            ),
        ),
    ),
    Mutant(
        name="G4_frames_are_not_counted",
        breaks="A frame that was lost or doubled is not noticed.",
        tests=_EXCHANGE,
        edits=(Edit(function=f"{RECEIVING}.arrived", find="frame.sequence != self._sequence", put="False"),),
    ),
    Mutant(
        name="G4_credit_is_not_counted",
        breaks="Credit that comes twice opens the window for ever.",
        tests=_EXCHANGE,
        edits=(Edit(function=f"{SENDING}.credited", find="frame.sequence != self._credits", put="False"),),
    ),
    Mutant(
        name="G4_a_length_is_believed",
        breaks="A header takes as much memory as it says.",
        tests=_FRAMES,
        edits=(
            Edit(
                function="processor.channels.frames:FrameReader._checked",
                find="length > BATCH_BYTES_MAX",
                put="False",
            ),
        ),
    ),
    Mutant(
        name="G4_columns_of_any_lengths_are_a_batch",
        breaks="Records get the keys of others.",
        tests=_CODEC,
        edits=(
            Edit(
                function="processor.records.batch_codec:decode_batch",
                find="len(column) != len(batch)",
                put="False",
            ),
        ),
    ),
    Mutant(
        name="D5_R21_an_older_attempt_is_connected",
        breaks="Records of an attempt that is over come into the next.",
        tests=_PEERS,
        edits=(
            Edit(
                function=f"{PEERS}._reason_against",
                find="if hello.attempt < now.attempt:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="D5_R21_a_newer_attempt_is_connected_before_it_is_here",
        breaks="Records of the next attempt come into one that is about to end.",
        tests=_PEERS,
        edits=(
            Edit(
                function=f"{PEERS}._verdict",
                find="if now is None or opening.attempt > now.attempt",
                put="if now is None",
            ),
            Edit(
                function=f"{PEERS}._reason_against",
                find="if now is None or hello.attempt > now.attempt:",
                put="if now is None:",
            ),
        ),
    ),
    Mutant(
        name="R2_another_incarnation_is_connected",
        breaks="Two copies of a job send each other records.",
        tests=_PEERS,
        edits=(
            Edit(
                function=f"{PEERS}._reason_against",
                find="if hello.incarnation != now.incarnation:",
                put="if False:",
            ),
        ),
    ),
    Mutant(
        name="G4_anybody_may_dial",
        breaks="Who does not know the secret is taken for a worker.",
        tests=_HANDSHAKE,
        edits=(
            Edit(
                function="processor.channels.handshake:Dialled.receive",
                find="if not hmac.compare_digest",
                put="if False and hmac.compare_digest",
            ),
        ),
    ),
    Mutant(
        name="G4_anybody_may_be_dialled",
        breaks="A worker sends its records to who does not know the secret.",
        tests=_HANDSHAKE,
        edits=(
            Edit(
                function="processor.channels.handshake:Dialler._prove",
                find="if not hmac.compare_digest",
                put="if False and hmac.compare_digest",
            ),
        ),
    ),
    Mutant(
        name="G4_a_proof_is_as_good_as_its_reflection",
        breaks="Who sends back what it was sent has proved itself.",
        tests=_HANDSHAKE,
        edits=(
            Edit(
                function="processor.channels.handshake:_proof",
                find='who + b"\\0" + said',
                put="said",
            ),
        ),
    ),
    Mutant(
        name="G4_a_proof_is_good_for_ever",
        breaks="Who has listened once connects whenever it likes.",
        tests=_HANDSHAKE,
        edits=(
            Edit(
                function="processor.channels.handshake:Dialler._prove",
                find="said = self._said + nonce.encode()",
                put="said = self._said",
            ),
            Edit(
                function="processor.channels.handshake:Dialled._challenge",
                find="self._said = encoded + self._nonce.encode()",
                put="self._said = encoded",
            ),
        ),
    ),
    Mutant(
        name="G4_any_certificate_will_do",
        breaks="Who has a certificate of its own making is taken for a worker.",
        tests=_TLS,
        edits=(
            Edit(
                function="processor.channels.tls:_context",
                find="context.verify_mode = ssl.CERT_REQUIRED",
                put="context.verify_mode = ssl.CERT_NONE",
            ),
        ),
    ),
    Mutant(
        name="G4_a_socket_lies_where_anybody_can_enter",
        breaks="Another user of the machine speaks as a worker.",
        tests=_PEERS,
        edits=(
            Edit(
                function="processor.channels.listening:_require_private",
                find="found.st_mode & 0o077",
                put="False",
            ),
        ),
    ),
)
