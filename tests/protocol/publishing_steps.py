"""The steps of the publishing model: what attempts, the log and the outside system can do next.

What is left out, and why nothing is missed by it:

* dying is sleeping for ever, so there is no step for it: whatever a death leaves behind is also reached by
  never choosing that process again;
* no epochs: the producer that initialised last owns an identity, all others are fenced for good;
* rows in an open transaction are seen by nobody, and initialising drops them; so sending and committing are
  one step, apart from a request that is late (where bounds are ``torn`` they are taken one by one);
* an attempt is at one identity at a time, in any order: its steps at two identities touch nothing in common;
* the log is read in the step that seals it: what is appended later is by newer attempts, and is met as a
  refusal.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.publishing_world import (
    ROOT,
    Bounds,
    Change,
    Entry,
    Identity,
    MarkerSeen,
    Process,
    Rules,
    State,
    Transaction,
    WrongStep,
)


class Model:
    """All steps within some bounds, under some rules."""

    def __init__(self, bounds: Bounds, rules: Rules) -> None:
        self.bounds = bounds
        self.rules = rules
        self.width = max(*bounds.parallelism, bounds.parallelism_before)

    def start(self) -> State:
        before = bits(self.bounds.parallelism_before)
        root = (0, ROOT, self.bounds.rows)
        identities = tuple(
            Identity(0, None, False, (root if before >> i & 1 else None,), ()) for i in range(self.width)
        )
        return (Entry("checkpoint", 0, ROOT, -1, before),), identities, ()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Everything that can happen next, with a name for people. Raises WrongStep."""
        log, identities, processes = state
        if len(processes) < len(self.bounds.parallelism):
            for what, begun, grown in self._begin(len(processes) + 1, log):
                yield what, (grown, identities, (*processes, begun))
        for index, process in enumerate(processes):
            if process is None:
                continue
            for what, after, grown, identity in self._act(index + 1, process, log, identities):
                changed = identities
                if identity is not None:
                    at = after.at if process.at < 0 and after is not None else process.at
                    changed = (*identities[:at], identity, *identities[at + 1 :])
                yield (
                    f"attempt {index + 1} {what}",
                    (grown, changed, (*processes[:index], after, *processes[index + 1 :])),
                )
        for i, identity in enumerate(identities):
            if identity.late and identity.open is not None:
                arrived = self._committed(identity)
                yield (
                    f"the late commit of identity {i} arrives",
                    (log, (*identities[:i], arrived, *identities[i + 1 :]), processes),
                )

    # Beginning, deciding, rewinding: what touches the log.

    def _begin(
        self, attempt: int, log: tuple[Entry, ...]
    ) -> Iterator[tuple[str, Process, tuple[Entry, ...]]]:
        seal = Entry("seal", attempt, -1, -1, bits(self.bounds.parallelism[attempt - 1]))
        sealed = log
        if self.rules.seal and self.rules.seal_before_reading:
            sealed = (*log, seal)
        newest = newest_checkpoint(sealed)
        todo = newest.identities if newest.checkpoint != ROOT and newest.kind == "checkpoint" else 0
        if not self.rules.identities_of_entry:
            todo &= seal.identities
        fresh = Process("publish", newest.checkpoint, todo, -1, "", 0, 0, None, len(sealed), 0)
        if not self.rules.publish_before_rewind and self._asks_to_rewind(attempt, sealed):
            fresh = fresh._replace(todo=0)
        yield f"attempt {attempt} begins", self._settled(attempt, fresh, sealed), sealed
        if self.bounds.unreadable and newest.kind == "checkpoint" and newest.checkpoint != ROOT:
            back = fresh._replace(
                phase="back", target=newest.parent, todo=self._to_open(attempt, sealed, newest.parent)
            )
            yield (
                f"attempt {attempt} begins and cannot read checkpoint {newest.checkpoint}",
                self._settled(attempt, back, sealed),
                sealed,
            )

    def _asks_to_rewind(self, attempt: int, log: tuple[Entry, ...]) -> bool:
        token = self.bounds.requests[attempt - 1] if self.bounds.requests else ""
        if not token:
            return False
        newest = next((e.token for e in reversed(log) if e.kind == "rewind"), "")
        return newest != token or not self.rules.token

    def _to_open(self, attempt: int, log: tuple[Entry, ...], restored: int) -> int:
        """Identities to open (R18)."""
        todo = bits(self.bounds.parallelism[attempt - 1])
        since = next(i for i, e in enumerate(log) if e.kind != "seal" and e.checkpoint == restored)
        for entry in log[since:] if self.rules.open_all_since_restored else log[since : since + 1]:
            todo |= entry.identities
        return todo

    def _settled(self, attempt: int, process: Process, log: tuple[Entry, ...]) -> Process:
        """When nothing is left to do in a phase, the next one: it takes no step of its own."""
        if process.todo:
            return process
        if process.phase == "publish":
            if self._asks_to_rewind(attempt, log[: process.knows]):
                return process._replace(phase="rewind")
            todo = self._to_open(attempt, log[: process.knows], process.target)
            return process._replace(phase="open", todo=todo)
        return process._replace(phase="run")

    def _act(
        self, attempt: int, process: Process, log: tuple[Entry, ...], identities: tuple[Identity, ...]
    ) -> Iterator[Change]:
        refused = self.rules.seal and any(
            e.kind == "seal" and e.attempt > attempt for e in log[process.knows :]
        )
        own = Entry("seal", attempt, -1, -1, bits(self.bounds.parallelism[attempt - 1]))
        if not self.rules.seal_before_reading and not any(
            e.kind == "seal" and e.attempt == attempt for e in log
        ):
            if not refused:
                yield "seals, having read before", process, (*log, own), None
            return
        if process.phase == "rewind":
            entry = Entry(
                "rewind",
                attempt,
                10 * attempt,
                process.target,
                own.identities,
                self.bounds.requests[attempt - 1],
            )
            if refused:
                yield "finds its place taken and stops", None, log, None
            else:
                grown = (*log, entry)
                opening = process._replace(
                    phase="open",
                    target=entry.checkpoint,
                    todo=self._to_open(attempt, grown, entry.checkpoint),
                    knows=len(grown),
                )
                yield "rewinds", opening, grown, None
            return
        may_decide = process.phase == "run" or (
            process.phase == "own" and process.at < 0 and not self.rules.one_after_another
        )
        if may_decide and process.decided < self.bounds.checkpoints:
            number = 10 * attempt + process.decided + 1
            entry = Entry("checkpoint", attempt, number, process.target, own.identities)
            if refused:
                yield "finds its place taken and stops", None, log, None
            else:
                grown = (*log, entry)
                publishing = process._replace(
                    phase="own",
                    target=number,
                    todo=own.identities,
                    knows=len(grown),
                    decided=process.decided + 1,
                )
                yield f"decides checkpoint {number}", publishing, grown, None
        if process.phase != "run":
            yield from self._publish(attempt, process, log, identities)

    # Publishing and opening: what touches an identity.

    def _publish(
        self, attempt: int, process: Process, log: tuple[Entry, ...], identities: tuple[Identity, ...]
    ) -> Iterator[Change]:
        if process.at < 0:
            for i in range(self.width):
                if process.todo >> i & 1:
                    begun = process._replace(at=i, step=self._first_step())
                    yield from self._at_identity(attempt, begun, log, identities[i])
        else:
            yield from self._at_identity(attempt, process, log, identities[process.at])

    def _first_step(self) -> str:
        if not self.rules.read_after_taking_over:
            return "early"
        return "nonce" if self.bounds.stale_reads and not self.rules.nonce_after_taking_over else "init"

    def _at_identity(
        self, attempt: int, process: Process, log: tuple[Entry, ...], identity: Identity
    ) -> Iterator[Change]:
        name = f"at identity {process.at}"
        if process.step == "early":
            seen = identity.markers[-1]
            yield f"reads the marker {seen} {name}", process._replace(step="init", seen=seen), log, identity
        elif process.step == "nonce":
            after = "read" if self.rules.nonce_after_taking_over else "init"
            noted = process._replace(step=after, since=len(identity.markers) - 1)
            yield f"writes a nonce {name}", noted, log, identity
        elif process.step == "init":
            after = "read"
            if self.bounds.stale_reads and self.rules.nonce and self.rules.nonce_after_taking_over:
                after = "nonce"
            taken = identity
            if self.rules.one_identity:
                taken = Identity(attempt, None, False, identity.markers, identity.out)
            yield f"takes over {name}", process._replace(step=after), log, taken
        elif process.step == "read":
            choices: tuple[MarkerSeen, ...] = (process.seen,)
            if self.rules.read_after_taking_over:
                since = process.since if self.rules.nonce else 0
                choices = identity.markers[since:] if self.bounds.stale_reads else identity.markers[-1:]
            for seen in choices:
                compared = self._compared(attempt, process, log, seen)
                yield f"reads the marker {seen} {name}", compared, log, identity
        elif identity.owner != attempt and self.rules.one_identity:
            yield (
                f"is fenced {name}",
                process._replace(step=self._first_step(), first=0, since=0),
                log,
                identity,
            )
        else:
            yield from self._send(attempt, process, log, identity, name)

    def _compared(
        self, attempt: int, process: Process, log: tuple[Entry, ...], seen: MarkerSeen
    ) -> Process | None:
        """What R11's table says: send from some row, nothing to do, or stop."""
        opening = process.phase in ("open", "back")
        cleared = process._replace(step="send", first=self.bounds.rows if opening else 0, since=0, seen=None)
        if not self.rules.compare:
            return cleared
        if seen is not None and seen[0] > attempt:
            return None  # quietly: a newer attempt is at work
        if process.phase == "back":
            unreadable = newest_checkpoint(log[: process.knows]).checkpoint
            if seen is not None and seen[1] == unreadable and self.rules.stop_if_unreadable_is_out:
                return None  # loudly, and rightly so (R8)
        if opening:
            return cleared if self.rules.opening else self._done(attempt, process, log)
        entry = next(e for e in log if e.kind == "checkpoint" and e.checkpoint == process.target)
        if seen is None:
            raise WrongStep(f"attempt {attempt} stops loudly: no marker at identity {process.at}")
        _, checkpoint, rows = seen
        if checkpoint == process.target:
            if rows == self.bounds.rows or not self.rules.all_rows_before_done:
                return self._done(attempt, process, log)
            return cleared._replace(first=rows if self.rules.rows_in_marker else 0)
        if checkpoint == entry.parent and rows == self.bounds.rows:
            return cleared
        raise WrongStep(f"attempt {attempt} stops loudly: unexpected marker {seen} at identity {process.at}")

    def _done(self, attempt: int, process: Process, log: tuple[Entry, ...]) -> Process:
        """The identity under work is as this phase wants it."""
        rest = process._replace(
            todo=process.todo & ~(1 << process.at), at=-1, step="", first=0, since=0, seen=None
        )
        return self._settled(attempt, rest, log)

    def _send(
        self, attempt: int, process: Process, log: tuple[Entry, ...], identity: Identity, name: str
    ) -> Iterator[Change]:
        rows = self.bounds.rows
        again = process._replace(step=self._first_step(), first=0, since=0, seen=None)
        if process.step == "mark":
            assert identity.open is not None or not self.rules.new_producer
            renewed = identity.open or Transaction(attempt, process.target, rows, rows, marked=True)
            marked = identity._replace(open=renewed._replace(marked=True))
            yield f"adds the marker {name}", process._replace(step="commit"), log, marked
            return
        if process.step == "commit":
            yield from self._commit(attempt, process, log, identity, name)
            return
        ends = range(process.first + 1, rows + 1) if process.first < rows else (rows,)
        for end in ends:
            transaction = Transaction(
                attempt, process.target, process.first, end, marked=not self.bounds.torn
            )
            opened = identity._replace(open=transaction)
            if self.bounds.torn:
                yield f"sends rows to {end} {name}", process._replace(step="mark"), log, opened
                continue
            answered = self._done(attempt, process, log) if end == rows else again
            committed = self._committed(opened)
            what = f"commits rows {process.first}-{end} of checkpoint {process.target} {name}"
            yield what, answered, log, committed
            yield f"{what}, answer lost", again, log, committed
            yield f"{what}, request late", again, log, opened._replace(late=True)

    def _commit(
        self, attempt: int, process: Process, log: tuple[Entry, ...], identity: Identity, name: str
    ) -> Iterator[Change]:
        """The commit of a transaction that was sent step by step; its request may arrive a second time."""
        next_step = "init" if self.rules.new_producer else "read"
        again = process._replace(step=next_step, first=0, since=0, seen=None)
        if identity.open is None:  # a late request has ended it
            yield f"finds nothing to commit {name}", again, log, identity
            return
        all_rows = identity.open.rows == self.bounds.rows
        committed = self._committed(identity._replace(late=True))
        what = f"commits to row {identity.open.rows} of checkpoint {process.target} {name}"
        yield what, self._done(attempt, process, log) if all_rows else again, log, committed
        yield f"{what}, answer lost", again, log, committed
        yield f"{what}, request late", again, log, identity._replace(late=True)

    def _committed(self, identity: Identity) -> Identity:
        transaction = identity.open
        assert transaction is not None
        rows = tuple((transaction.checkpoint, row) for row in range(transaction.first, transaction.rows))
        markers = identity.markers
        if transaction.marked:
            marker = (transaction.attempt, transaction.checkpoint, transaction.rows)
            if not self.bounds.stale_reads:
                markers = (marker,)
            elif markers[-1] != marker:  # the same once more: an answer from then and one from now are alike
                markers = (*markers, marker)
        late = identity.late and not self.rules.new_producer
        return Identity(identity.owner, None, late, markers, identity.out + rows)


def bits(parallelism: int) -> int:
    """The identities of that many subtasks."""
    return (1 << parallelism) - 1


def newest_checkpoint(log: tuple[Entry, ...]) -> Entry:
    """The newest entry that a recovery restores from; a rewind is the beginning of its branch."""
    return next(entry for entry in reversed(log) if entry.kind != "seal")
