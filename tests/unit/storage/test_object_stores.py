"""What only object stores do: lose answers, repeat requests, ignore conditions, refuse; and never tell a secret."""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

from processor.errors import DamagedFile, ExternalRefusal, ProcessorError, SettingsError, Unavailable
from processor.ids import JobName
from processor.settings.location import Location, Scheme
from processor.settings.model import CheckpointSettings, Settings
from processor.settings.stores import StoreSettings
from processor.storage.buckets import open_bucket
from processor.storage.decision_log import DecisionLog, Lost, Taken, two_writer_test
from processor.storage.identity import encode_identity
from processor.storage.job_store import open_job_store
from processor.storage.object_files import ObjectFiles
from processor.storage.object_log import ObjectLog
from processor.storage.objects import PART_BYTES, Objects
from processor.storage.places import Places, places_of
from tests.s3_server import (
    SECRET_KEY,
    Environ,
    S3Server,
    Serve,
    StartResponse,
    ignore_conditions,
    lose_the_answer,
    lose_the_request,
    serve_twice,
    settings_text,
)
from tests.unit.storage.disks import Tokens
from tests.unit.storage.entries_made import seal

NAME = "a1/count-0/x.state"
FIRST_ENTRY = "0000000000000001.entry"
MINE, OTHERS = seal(1, 2, "mine"), seal(1, 3, "others")
JOB = JobName("counts")


@pytest.fixture
def objects(s3: S3Server) -> Objects:
    return open_bucket(s3.location(s3.bucket()), s3.settings())


def places(s3: S3Server, bucket: str) -> Places:
    return Places(files=s3.location(bucket), log=s3.location(bucket), stores=s3.settings())


def take_until_known(log: DecisionLog) -> Taken | Lost:
    """As an attempt does: an unknown outcome is asked for again."""
    try:
        return log.take(MINE)
    except Unavailable:
        return log.resolve(MINE)


@pytest.mark.parametrize("fault", [lose_the_answer, serve_twice])
def test_r06_an_entry_whose_answer_was_lost_is_found_to_be_ours(s3, objects, fault):
    s3.once("PUT", FIRST_ENTRY, fault)
    assert take_until_known(DecisionLog(ObjectLog(objects))) == Taken()
    assert DecisionLog(ObjectLog(objects)).take(OTHERS) == Lost(by=MINE)
    assert len(s3.puts(FIRST_ENTRY)) == (3 if fault is lose_the_answer else 2)


def test_r06_an_entry_that_somebody_else_took_while_our_request_was_lost_is_theirs(s3, objects):
    others = DecisionLog(ObjectLog(objects))

    s3.once("PUT", FIRST_ENTRY, lose_the_request)
    log = ObjectLog(open_bucket(s3.location(s3.bucket_of(objects)), s3.settings(retries_max=0)))
    with pytest.raises(Unavailable, match=FIRST_ENTRY):
        DecisionLog(log).take(MINE)
    assert others.take(OTHERS) == Taken()
    assert DecisionLog(log).resolve(MINE) == Lost(by=OTHERS)


@pytest.mark.parametrize("fault", [lose_the_answer, serve_twice])
def test_r22_a_file_whose_answer_was_lost_is_found_to_be_ours(s3, objects, fault):
    files = ObjectFiles(objects)
    s3.once("PUT", NAME, fault)
    writer = files.create(NAME)
    writer.write(b"content")
    files.verify(writer.finish())
    assert len(s3.puts(NAME)) == (2 if fault is lose_the_answer else 1)


def test_r05_a_store_that_ignores_the_condition_must_not_hold_the_log(s3, tmp_path):
    s3.always(lambda _: ignore_conditions)
    where = places(s3, s3.bucket())
    first, second = (open_job_store(where, JOB, token=Tokens(n)) for n in (0, 1000))
    with pytest.raises(ExternalRefusal, match=r"2 were told.*Set checkpoint\.log_directory"):
        two_writer_test(first.log, second.log, Tokens(5000))
    checkpoint = CheckpointSettings(directory=where.files, log_directory=tmp_path / "log")
    elsewhere = places_of(Settings(checkpoint=checkpoint, stores=where.stores))
    first, second = (open_job_store(elsewhere, JOB, token=Tokens(n)) for n in (0, 1000))
    two_writer_test(first.log, second.log, Tokens(5000))
    writer = first.files.create(NAME)
    writer.write(b"content")
    second.files.verify(writer.finish())
    assert first.log.take(1, b"entry")
    assert (tmp_path / "log" / JOB / "log" / FIRST_ENTRY).read_bytes() == b"entry"


def test_r05_the_two_writer_test_bears_a_lost_answer(s3, objects):
    """The library repeats the request, and the winner is told "exists"."""
    s3.once("PUT", "", lose_the_answer)
    two_writer_test(ObjectLog(objects), ObjectLog(objects), Tokens())


def test_r05_of_two_processes_one_has_each_place(s3, objects):
    """Both are told to take the same places at the same time; what each says it has, nobody else has."""
    count = 20
    where = s3.location(s3.bucket_of(objects))
    command = [sys.executable, "-m", "tests.unit.storage.conditional_writer", str(where), str(count)]
    writers = [
        subprocess.Popen(
            [*command, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        for name in ("first", "second")
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(settings_text(s3.settings()) + "\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    told = [{int(place) for place in writer.communicate(timeout=60)[0].split()} for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert told[0] | told[1] == set(range(1, count + 1))
    assert not told[0] & told[1]
    log = ObjectLog(objects)
    for place in range(1, count + 1):
        assert log.read(place) == (b"first" if place in told[0] else b"second")


def test_a_job_is_claimed_once_and_refused_to_another(s3):
    bucket = s3.bucket()
    where = places(s3, bucket)
    with pytest.raises(SettingsError, match=r"no checkpoints of job 'counts'.*checkpoint\.directory"):
        open_job_store(where, JOB, token=Tokens(), make=False)
    s3.once("PUT", "job.json", lose_the_answer)
    open_job_store(where, JOB, token=Tokens()).log.take(1, b"x")
    assert open_job_store(where, JOB, token=Tokens(), make=False).log.read(1) == b"x"
    s3.request("PUT", f"{bucket}/some/prefix/counts/job.json", encode_identity(JobName("other")))
    with pytest.raises(SettingsError, match="belongs to job 'other', and this is job 'counts'"):
        open_job_store(where, JOB, token=Tokens())
    inner = Location(scheme=Scheme.S3, bucket=bucket, path="some/prefix/counts")
    with pytest.raises(SettingsError, match="itself the location of job 'other'"):
        open_job_store(Places(files=inner, log=inner, stores=where.stores), JOB, token=Tokens())


def test_a_bucket_that_is_not_there_is_an_error_of_the_setting_and_never_an_empty_log(s3):
    where = s3.location("not-there")
    with pytest.raises(SettingsError, match=r"s3://not-there.*does not exist.*checkpoint\.directory"):
        open_job_store(Places(files=where, log=where, stores=s3.settings()), JOB, token=Tokens())
    log = ObjectLog(open_bucket(where, s3.settings()))
    for act in (
        lambda: log.read(1),
        log.listed,
        lambda: log.take(1, b"x"),
        lambda: log.get_note("published"),
    ):
        with pytest.raises(ExternalRefusal, match="bucket does not exist"):
            act()


def test_an_upload_that_is_given_up_leaves_nothing(s3, objects):
    bucket = s3.bucket_of(objects)
    files = ObjectFiles(objects)
    writer = files.create(NAME)
    writer.write(bytes(2 * PART_BYTES))
    writer.discard()

    def parts():
        yield bytes(PART_BYTES)
        raise Unavailable("the disk of the temporary file is gone")

    with pytest.raises(Unavailable, match="temporary file"):
        objects.upload(NAME, parts())
    assert files.names("") == []
    assert s3.uploads(bucket) == 0


@pytest.mark.parametrize("status", [400, 403, 500, 501, 503])
def test_every_act_on_a_store_that_refuses_is_an_error_of_ours_without_secrets(s3, status):
    """The server even repeats the credentials it was sent."""

    class Refusing(http.server.BaseHTTPRequestHandler):
        def refuse(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = f"<Error>{SECRET_KEY} {self.headers['Authorization']}</Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_DELETE = do_POST = do_HEAD = refuse  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        asked = s3.settings(s3={**s3.section(), "endpoint": endpoint}, retries_max=0)
        for act in every_act(open_bucket(s3.location("bucket"), asked)):
            with pytest.raises((Unavailable, ExternalRefusal), match=r"s3://bucket/some/prefix") as refused:
                act()
            if status in (500, 503):
                assert isinstance(refused.value, Unavailable)
            assert_no_secret(refused.value)
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_a_store_that_is_silent_is_given_up_after_the_time_that_is_set(s3):
    """The connection is accepted by the system, and nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        asked = s3.settings(s3={**s3.section(), "endpoint": endpoint}, retries_max=0, request_timeout="1s")
        log = ObjectLog(open_bucket(s3.location("bucket"), asked))
        with pytest.raises(Unavailable, match="no answer in time"):
            log.take(1, b"x")
    with pytest.raises(Unavailable, match=r"cannot be reached.*stores"):
        log.read(1)


def test_settings_that_the_library_refuses_are_named_and_not_quoted():
    location = Location(scheme=Scheme.AZ, bucket="container", path="")
    settings = StoreSettings.model_validate({"az": {"account": "me", "account_key": SECRET_KEY}})
    with pytest.raises(SettingsError, match=r"az://container.*stores\.az") as refused:
        open_bucket(location, settings)
    assert_no_secret(refused.value)


def test_every_scheme_opens_with_its_settings(tmp_path):
    """No server of these two is here: what is set reaches the library, and there it ends."""
    azure = StoreSettings.model_validate({"az": {"account": "me", "account_key": "a2V5"}})
    assert (
        open_bucket(Location(scheme=Scheme.AZ, bucket="container", path="p"), azure).where
        == "az://container/p"
    )
    key = tmp_path / "key.json"
    key.write_text('{"private_key": "", "private_key_id": "", "client_email": "", "disable_oauth": true}')
    google = StoreSettings.model_validate({"gs": {"service_account_file": str(key)}})
    assert open_bucket(Location(scheme=Scheme.GS, bucket="bucket", path=""), google).where == "gs://bucket"
    missing = StoreSettings.model_validate({"gs": {"service_account_file": str(tmp_path / "none.json")}})
    with pytest.raises(SettingsError, match=r"gs://bucket.*stores\.gs"):
        open_bucket(Location(scheme=Scheme.GS, bucket="bucket", path=""), missing)


def every_act(objects: Objects):
    return (
        lambda: objects.create("x", b"x"),
        lambda: objects.replace("x", b"x"),
        lambda: objects.upload("x", iter([bytes(PART_BYTES)] * 2)),
        lambda: objects.whole("x", 10),
        lambda: objects.part("x", 0, 10),
        lambda: objects.size("x"),
        lambda: objects.delete("x"),
        lambda: objects.names("x"),
    )


def assert_no_secret(error: ProcessorError) -> None:
    told = "".join(traceback.format_exception(error)) + repr(error)
    assert SECRET_KEY not in told
    assert "Signature" not in told


def test_r22_a_conflict_with_a_request_that_came_to_nothing_is_no_damage(s3, objects):
    """S3 answers 409 while another request for the name is under way."""

    def conflict(environ: Environ, serve: Serve, start: StartResponse) -> list[bytes]:
        start("409 Conflict", [])
        return [b"<Error><Code>ConditionalRequestConflict</Code></Error>"]

    s3.once("PUT", NAME, conflict)
    writer = ObjectFiles(objects).create(NAME)
    with pytest.raises(Unavailable, match="exists and is not found"):
        writer.finish()
    again = ObjectFiles(objects).create(NAME)
    again.finish()


def test_r22_somebody_elses_file_of_the_same_size_is_not_taken_for_ours(s3, objects):
    objects.create(NAME, b"theirs!")
    writer = ObjectFiles(objects).create(NAME)
    writer.write(b"ours!!!")
    with pytest.raises(DamagedFile, match="exists already"):
        writer.finish()
    assert objects.whole(NAME, 10) == (b"theirs!", 7)
