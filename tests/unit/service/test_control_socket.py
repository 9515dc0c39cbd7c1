"""A running job answers on its socket, to its user only, within bounds; without a job the error says so."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from processor.channels.addresses import SOCKET_PATH_BYTES_MAX
from processor.contracts.job_control import Outcome
from processor.errors import ExternalRefusal, Unavailable
from processor.ids import CheckpointId, JobName
from processor.service.control_client import ControlClient
from processor.service.control_messages import REQUEST_BYTES_MAX, decode_reply
from processor.service.control_place import control_place
from processor.service.control_socket import CONNECTIONS_MAX, ControlSocket
from processor.telemetry.log import get_log
from tests.protocol.coordinator_rig import Rig
from tests.unit.service.fake_job import STATUS, FakeJob
from tests.waiting import wait_until

JOB = JobName("counts")
WAIT_MS = 20_000


@pytest.fixture
def root(tmp_path_factory):
    # A short path: the ones of pytest are near the limit of a socket's.
    import tempfile

    with tempfile.TemporaryDirectory(prefix="s-") as directory:
        yield type(tmp_path_factory.getbasetemp())(directory)


@pytest.fixture
def serve(root):
    """Start the socket of a fake job under a root; all are closed at the end."""
    sockets: list[ControlSocket] = []

    def start(job: FakeJob, at=root) -> ControlSocket:
        server = ControlSocket(job, control_place(at, JOB), get_log("test"))
        server.start()
        sockets.append(server)
        return server

    yield start
    for server in sockets:
        server.close()


def client(at) -> ControlClient:
    return ControlClient(control_place(at, JOB), JOB)


def raw(at, content: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(20)
        connection.connect(str(control_place(at, JOB).find()))
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        return connection.makefile("rb").read()


def test_status_is_the_jobs(root, serve):
    serve(FakeJob())
    assert client(root).status() == STATUS


def test_a18_what_became_of_checkpoints_comes_over_the_socket(root, serve):
    job = FakeJob()
    serve(job)
    rig = Rig()
    job.statistics = rig.statistics
    checkpoint = rig.start()
    rig.complete(checkpoint)
    seen = client(root).checkpoints(checkpoint)
    assert seen == job.checkpoints(checkpoint)
    assert seen.asked is not None
    assert len(seen.asked.record.parts) == 2
    assert client(root).checkpoints(None).asked is None


def test_requests_reach_the_job_and_its_answers_come_back(root, serve):
    outcome = Outcome(checkpoint=CheckpointId(9), path="/s/p")
    job = FakeJob(outcome)
    serve(job)
    assert client(root).checkpoint(WAIT_MS) == outcome
    assert client(root).checkpoint(WAIT_MS, full=True) == outcome
    assert client(root).savepoint("/s", WAIT_MS) == outcome
    assert client(root).stop(None, WAIT_MS) == outcome
    assert client(root).stop("/s", WAIT_MS) == outcome
    assert client(root).stop("/s", WAIT_MS, drain=True) == outcome
    assert [job.asked.get()[:2] for _ in range(6)] == [
        ("checkpoint", None),
        ("full checkpoint", None),
        ("savepoint", "/s"),
        ("stop", None),
        ("stop", "/s"),
        ("drain", "/s"),
    ]


def test_a_refusal_comes_back_as_one(root, serve):
    serve(FakeJob(Outcome(refused="one is under way")))
    assert client(root).checkpoint(WAIT_MS).refused == "one is under way"


def test_an_answer_may_take_its_time_while_others_ask(root, serve):
    job = FakeJob()
    serve(job)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client(root).savepoint, "/s", WAIT_MS)
        _, _, answer = job.asked.get(timeout=20)
        assert client(root).status() == STATUS
        assert not waiting.done()
        answer(Outcome(checkpoint=CheckpointId(4)))
        assert waiting.result(20).checkpoint == 4


def test_whoever_waits_when_the_job_ends_is_told(root, serve):
    job = FakeJob()
    server = serve(job)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client(root).checkpoint, WAIT_MS)
        job.asked.get(timeout=20)
        server.close()
        assert "the job ended" in waiting.result(20).refused


def test_a_stop_is_answered_although_the_job_ends_right_after(root, serve):
    job = FakeJob()
    server = serve(job)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client(root).stop, None, WAIT_MS)
        _, _, answer = job.asked.get(timeout=20)
        answer(Outcome(checkpoint=CheckpointId(4)))
        server.close()
        assert waiting.result(20) == Outcome(checkpoint=CheckpointId(4))


def test_without_a_job_the_error_names_job_path_and_remedy(root):
    with pytest.raises(Unavailable, match=r"job 'counts' is not running .*control\.sock") as absent:
        client(root).status()
    assert "processor run" in absent.value.remedy


def test_after_the_end_nothing_is_left(root, serve):
    server = serve(FakeJob())
    server.close()
    server.close()
    assert os.listdir(control_place(root, JOB).directory) == []
    with pytest.raises(Unavailable):
        client(root).status()


def test_the_socket_is_for_its_user_only(root, serve):
    serve(FakeJob())
    place = control_place(root, JOB)
    assert stat.S_IMODE(place.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(place.socket_path.lstat().st_mode) == 0o600


def test_a_socket_left_by_a_killed_process_is_replaced(root, serve):
    place = control_place(root, JOB)
    killed = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from processor.ids import JobName\n"
        "from processor.service.control_place import bind, control_place\n"
        "bind(control_place(Path(sys.argv[1]), JobName('counts')), backlog=1)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", killed, str(root)], check=False, timeout=60)
    assert ended.returncode == -9
    assert place.socket_path.is_socket()
    with pytest.raises(Unavailable, match="is not running"):
        client(root).status()
    serve(FakeJob())
    assert client(root).status() == STATUS


def test_the_newest_attempt_owns_the_socket_and_an_older_one_leaves_it_alone(root, serve):
    older = serve(FakeJob(Outcome(refused="older")))
    serve(FakeJob(Outcome(refused="newer")))
    assert client(root).checkpoint(WAIT_MS).refused == "newer"
    older.close()
    assert client(root).checkpoint(WAIT_MS).refused == "newer"


def test_a_path_too_long_for_a_socket_is_got_around_by_a_note(root, serve):
    deep = root / ("d" * SOCKET_PATH_BYTES_MAX) / "e"
    server = serve(FakeJob(), deep)
    place = control_place(deep, JOB)
    found = place.find()
    assert found != place.socket_path
    assert stat.S_IMODE(found.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(place.note_path.stat().st_mode) == 0o600
    assert client(deep).status() == STATUS
    server.close()
    assert not found.parent.exists()
    assert os.listdir(place.directory) == []


def test_the_next_start_removes_the_temporary_directory_of_a_killed_one(root, serve):
    deep = root / ("d" * SOCKET_PATH_BYTES_MAX)
    serve(FakeJob(), deep)
    left = control_place(deep, JOB).find()
    serve(FakeJob(), deep)
    assert not left.parent.exists()
    assert client(deep).status() == STATUS


def test_a_note_that_names_something_else_makes_nothing_disappear(root, serve):
    precious = root / "precious"
    precious.mkdir()
    (precious / "control.sock").write_text("data")
    place = control_place(root, JOB)
    place.directory.mkdir(mode=0o700)
    place.note_path.write_text(str(precious / "control.sock"))
    serve(FakeJob())
    assert (precious / "control.sock").read_text() == "data"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no end of line"),
        (b'{"ask": "status"}', "no end of line"),
        (b"hello\n", "no request"),
        (b'{"ask": "destroy"}\n', "no request"),
        (b'{"ask": "status", "more": 1}\n', "no request"),
        (b'{"ask": "savepoint"}\n', "directory"),
        (b'{"ask": "savepoint", "directory": 5}\n', "no request"),
        (b'{"ask": "savepoint", "directory": ""}\n', "no request"),
        (b'{"ask": "savepoint", "directory": "' + b"x" * 4_097 + b'"}\n', "no request"),
        (b'{"ask": "status", "x": ' + b"[" * 10_000 + b"\n", "no request"),
        (b'{"ask": "\xff"}\n', "no request"),
        (b"x" * (REQUEST_BYTES_MAX + 1), "longer than"),
    ],
)
def test_what_is_no_request_gets_an_error_and_reaches_no_job(root, serve, content, said):
    job = FakeJob(Outcome())
    serve(job)
    reply = decode_reply(raw(root, content))
    assert said in (reply.error or "")
    assert job.asked.empty()
    assert client(root).status() == STATUS


def test_a_job_that_fails_to_answer_says_why_and_goes_on(root, serve):
    job = FakeJob()
    serve(job)
    job.failure = RuntimeError("no status today")
    with pytest.raises(ExternalRefusal, match="RuntimeError: no status today"):
        client(root).status()
    job.failure = None
    assert client(root).status() == STATUS


def test_a_client_that_goes_away_harms_nobody(root, serve):
    job = FakeJob()
    serve(job)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(control_place(root, JOB).find()))
        connection.sendall(b'{"ask": "checkpoint"}\n')
        _, _, answer = job.asked.get(timeout=20)
    answer(Outcome(checkpoint=CheckpointId(1)))
    assert client(root).status() == STATUS


def test_askers_beyond_the_limit_are_turned_away_until_there_is_room(root, serve):
    job = FakeJob()
    serve(job)
    with ThreadPoolExecutor(CONNECTIONS_MAX) as pool:
        waiting = [pool.submit(client(root).checkpoint, WAIT_MS) for _ in range(CONNECTIONS_MAX)]
        answers = [job.asked.get(timeout=20)[2] for _ in range(CONNECTIONS_MAX)]
        with pytest.raises(ExternalRefusal, match="others are asking"):
            client(root).status()
        for answer in answers:
            answer(Outcome(checkpoint=CheckpointId(1)))
        assert {future.result(20).checkpoint for future in waiting} == {1}

    def answered() -> bool:
        try:
            return client(root).status() == STATUS
        except ExternalRefusal:
            return False

    wait_until(answered, 20, "there is room again")


def test_a_job_that_does_not_answer_in_time_is_named_with_the_time(root, serve):
    serve(FakeJob())
    with pytest.raises(Unavailable, match="did not answer within 50ms"):
        client(root).checkpoint(50)


def test_a_process_that_dies_while_answering_is_told_apart(root):
    place = control_place(root, JOB)
    place.directory.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(place.socket_path))
        listener.listen()

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.recv(4_096)
            connection.close()

        dying = threading.Thread(target=hang_up)
        dying.start()
        with pytest.raises(Unavailable, match="ended before it answered"):
            client(root).status()
        dying.join(20)


def test_an_answer_of_another_version_is_refused(root):
    place = control_place(root, JOB)
    place.directory.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(place.socket_path))
        listener.listen()

        def babble() -> None:
            connection, _ = listener.accept()
            connection.recv(4_096)
            connection.sendall(b'{"status": {"mood": "fine"}}\n')
            connection.close()

        stranger = threading.Thread(target=babble)
        stranger.start()
        with pytest.raises(ExternalRefusal, match="Use the same version"):
            client(root).status()
        stranger.join(20)
