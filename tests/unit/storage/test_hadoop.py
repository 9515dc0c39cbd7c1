"""What only HDFS does: sends on to DataNodes, has NameNodes that stand by, loses answers, refuses; and never tells a
secret. The contracts of its files and its log are tested beside those of the other stores."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator

import pytest

from processor.errors import DamagedFile, ExternalRefusal, ProcessorError, SettingsError, Unavailable
from processor.ids import JobName
from processor.settings.loading import load_settings
from processor.settings.location import parse_location
from processor.settings.stores import StoreSettings
from processor.storage.buckets import open_bucket
from processor.storage.decision_log import DecisionLog, Lost, Taken
from processor.storage.hadoop_objects import HadoopObjects
from processor.storage.job_store import open_job_store
from processor.storage.negotiate import Negotiator
from processor.storage.object_files import ObjectFiles
from processor.storage.object_log import ObjectLog
from processor.storage.objects import PART_BYTES, Objects
from processor.storage.places import Places
from processor.storage.webhdfs import Access, Answer, WebHdfs
from tests.hdfs_stand_in import HdfsStandIn
from tests.unit.storage.disks import Tokens
from tests.unit.storage.entries_made import seal
from tests.unit.storage.written_files import NAME, WHOLE, read, write

MINE, OTHERS = seal(1, 2, "mine"), seal(1, 3, "others")
LARGE = [b"x" * PART_BYTES, b"y"]
SECRET = "a-token-that-nobody-may-see"


@pytest.fixture
def hadoop() -> Iterator[HdfsStandIn]:
    server = HdfsStandIn()
    yield server
    server.close()


@pytest.fixture
def objects(hadoop: HdfsStandIn) -> Objects:
    return open_bucket(hadoop.location(), hadoop.settings())


@pytest.mark.parametrize("operation", ["CREATE", "RENAME"])
@pytest.mark.parametrize("served", [True, False])
def test_r06_an_entry_whose_answer_was_lost_is_found_to_be_ours(hadoop, objects, operation, served):
    hadoop.lose(operation, served=served)
    assert DecisionLog(ObjectLog(objects)).take(MINE) == Taken()
    assert DecisionLog(ObjectLog(objects)).take(OTHERS) == Lost(by=MINE)
    assert ObjectLog(objects).listed() == [1]
    assert [path for path in hadoop.files if path.endswith(".tmp")] == []


@pytest.mark.parametrize("content", [[WHOLE], LARGE])
@pytest.mark.parametrize("operation", ["CREATE", "RENAME"])
def test_r22_a_file_whose_answer_was_lost_is_found_to_be_ours_or_given_up(
    hadoop, objects, content, operation
):
    hadoop.lose(operation)
    files = ObjectFiles(objects)
    if content is LARGE and operation == "CREATE":  # what is sent as it comes can be sent once only
        with pytest.raises(Unavailable, match="cannot write"):
            write(files, NAME, content)
        assert hadoop.files == {}
    else:
        ref = write(files, NAME, content)
        assert read(files, ref) == b"".join(content)
        assert files.names("") == [NAME]


def test_r08_a_gateway_that_does_not_tell_lengths_hides_no_bytes_too_many(hadoop, objects):
    hadoop.tells_lengths = False
    files = ObjectFiles(objects)
    ref = write(files)
    assert read(files, ref) == WHOLE
    objects.replace(NAME, WHOLE + b"!")
    with pytest.raises(DamagedFile, match=f"it has {len(WHOLE) + 1} bytes"):
        files.verify(ref)


@pytest.mark.parametrize("act", ["create", "replace"])
def test_r06_what_was_not_renamed_is_not_left_lying_about(hadoop, act):
    objects = open_bucket(hadoop.location(), hadoop.settings(retries_max=0))
    hadoop.lose("RENAME", served=False)
    with pytest.raises(Unavailable):
        getattr(objects, act)("log/x", b"content")
    assert hadoop.files == {}


def test_a_large_file_of_a_name_that_is_taken_is_refused(hadoop, objects):
    write(ObjectFiles(objects), NAME, [b"first"])
    with pytest.raises(DamagedFile, match="exists already"):
        write(ObjectFiles(objects), NAME, LARGE)
    assert ObjectFiles(objects).names("") == [NAME]


@pytest.mark.parametrize("operation", ["CREATE", "RENAME"])
def test_r17_a_note_whose_answer_was_lost_is_there(hadoop, objects, operation):
    log = ObjectLog(objects)
    for content in (b"1", b"22"):
        hadoop.lose(operation)
        log.put_note("published", content)
        assert log.get_note("published") == content


def test_what_dead_writers_left_in_the_log_is_swept_once_its_place_is_taken(hadoop, objects):
    assert isinstance(objects, HadoopObjects)
    folder = f"/{objects.where.split('/', 3)[3]}/log"
    left = [
        f"{folder}/0000000000000001.entry.{'a' * 32}.tmp",
        f"{folder}/0000000000000002.entry.{'b' * 32}.tmp",
    ]
    hadoop.files.update(dict.fromkeys(left, b"half"))
    log = ObjectLog(objects)
    assert log.take(1, b"entry")
    assert sorted(hadoop.files) == [f"{folder}/0000000000000001.entry", left[1]]
    assert log.listed() == [1]


def test_deleting_takes_empty_folders_along_and_asks_once_for_one_that_is_not(hadoop, objects):
    for name in ("a1/b-0/1", "a1/c-0/1"):
        assert objects.create(name, b"")
    hadoop.asked.clear()
    objects.delete("a1/b-0/1")
    assert [asked.partition(" ")[0] for asked in hadoop.asked] == ["DELETE"] * 3
    assert objects.names("") == ["a1/c-0/1"]


def test_a_namenode_that_stands_by_or_is_away_is_passed_over(hadoop):
    standby = HdfsStandIn()
    standby.refusal = (403, {"RemoteException": {"exception": "StandbyException", "message": "not active"}})
    try:
        endpoints = f"http://127.0.0.1:1,{standby.endpoint},{hadoop.endpoint}"
        objects = open_bucket(hadoop.location(), hadoop.settings(hdfs={"endpoints": endpoints}))
        objects.replace("note", b"1")
        objects.replace("note", b"2")
        assert objects.whole("note", 10) == (b"2", 1)
        assert len(standby.asked) == 1, "who answers is asked first from then on"
    finally:
        standby.close()


@pytest.mark.parametrize(
    ("exception", "status", "error", "remedy"),
    [
        ("AccessControlException", 403, ExternalRefusal, "rights below the location"),
        ("SafeModeException", 403, Unavailable, "Look after HDFS"),
        ("IOException", 403, Unavailable, "Look after HDFS"),
        ("InvalidPathException", 400, ExternalRefusal, "endpoints"),
        ("NullPointerException", 500, Unavailable, "Look after HDFS"),
    ],
)
def test_what_hdfs_refuses_is_told_in_a_line_with_what_to_do(hadoop, exception, status, error, remedy):
    objects = open_bucket(hadoop.location(), hadoop.settings(retries_max=1))
    message = "Permission denied\n\tat org.apache.hadoop.Somewhere(Somewhere.java:1)"
    hadoop.refusal = (status, {"RemoteException": {"exception": exception, "message": message}})
    for act in every_act(objects):
        with pytest.raises(error) as refused:
            act()
        assert f"{exception}: Permission denied." in refused.value.message
        assert "Somewhere" not in refused.value.message
        assert remedy in refused.value.remedy


def test_a_server_that_is_no_webhdfs_is_an_error_of_the_setting(hadoop):
    hadoop.refusal = (404, b"<html>not here</html>")
    where = Places(files=hadoop.location(), log=hadoop.location(), stores=hadoop.settings())
    with pytest.raises(SettingsError, match=r"status 404") as refused:
        open_job_store(where, JobName("counts"), token=Tokens())
    assert "stores.hdfs.endpoints" in refused.value.remedy
    hadoop.refusal = (200, {})
    with pytest.raises(ExternalRefusal, match="no WebHDFS"):
        open_bucket(hadoop.location(), hadoop.settings()).names("")


def test_the_token_says_who_asks_and_is_in_no_error(hadoop):
    settings = hadoop.settings(hdfs={"user": None, "delegation_token": SECRET}, retries_max=0)
    objects = open_bucket(hadoop.location(), settings)
    objects.replace("note", b"1")
    assert hadoop.identities == {("delegation", SECRET)}
    assert SECRET not in str(settings)
    hadoop.close()
    for act in every_act(objects):
        with pytest.raises(ProcessorError) as failed:
            act()
        assert SECRET not in "".join(traceback.format_exception(failed.value))


@pytest.mark.parametrize("known_as", ["localhost", "127.0.0.1"])
def test_kerberos_says_who_asks_to_those_that_settings_name_and_to_nobody_they_send_to(hadoop, known_as):
    hadoop.negotiates = True
    endpoint = hadoop.endpoint.replace("127.0.0.1", known_as)
    tickets = iter(range(100))
    objects = negotiating(hadoop, endpoint, lambda host: f"Negotiate ticket {next(tickets)} for {host}")
    objects.replace("note", b"1")
    assert objects.whole("note", 10) == (b"1", 1)
    sent = dict(hadoop.negotiated)
    # A gateway, known by the same name as who sends to it, asks again.
    assert (sent["data CREATE"] is None) == (known_as == "localhost")
    told = [header for _, header in hadoop.negotiated if header is not None]
    assert len(set(told)) == len(told), "none is used twice"
    assert all(header.endswith(f" for {known_as}") for header in told)


def test_without_a_ticket_it_is_refused_with_what_to_set(hadoop):
    hadoop.negotiates = True
    with pytest.raises(ExternalRefusal, match="status 401") as refused:
        open_bucket(hadoop.location(), hadoop.settings()).replace("note", b"1")
    assert "kerberos" in refused.value.remedy


def test_a_kdc_that_is_away_for_a_moment_is_asked_again(hadoop):
    hadoop.negotiates = True
    asked: list[str] = []

    def authorization(host: str) -> str:
        asked.append(host)
        if len(asked) == 1:
            raise Unavailable("no KDC.")
        return "Negotiate now"

    objects = negotiating(hadoop, hadoop.endpoint, authorization)
    assert objects.names("") == []
    assert len(asked) == 2
    never = negotiating(hadoop, hadoop.endpoint, raising(Unavailable("no KDC.")))
    with pytest.raises(Unavailable, match=r"cannot list '.*' in HDFS: no KDC\."):
        never.names("")


def negotiating(hadoop: HdfsStandIn, endpoint: str, authorization: Callable[[str], str]) -> HadoopObjects:
    access = Access(
        endpoints=(endpoint,),
        identity={},
        connect_timeout_s=5,
        request_timeout_s=5,
        retries_max=1,
        retry_timeout_s=5,
        authorization=authorization,
    )
    return HadoopObjects(WebHdfs(access, pause=lambda seconds: None), "hdfs://x", "/user/x")


def raising(error: Exception) -> Callable[[str], str]:
    def raises(host: str) -> str:
        raise error

    return raises


def test_with_kerberos_a_ticket_is_of_the_keytab_and_who_has_none_is_refused(kerberised_hdfs, tmp_path):
    objects = open_bucket(kerberised_hdfs.location(), kerberised_hdfs.settings())
    objects.replace("note", b"1")
    assert objects.whole("note", 10) == (b"1", 1)
    by_name = {"endpoints": kerberised_hdfs.endpoint, "user": "tester"}
    with pytest.raises(ExternalRefusal, match="401"):
        open_bucket(kerberised_hdfs.location(), kerberised_hdfs.settings(hdfs=by_name)).names("")
    for wrong in ({"principal": "nobody"}, {"keytab": tmp_path / "none"}):
        section = {
            "endpoints": kerberised_hdfs.endpoint,
            "kerberos": True,
            "keytab": kerberised_hdfs.keytab,
            "principal": "tester",
            **wrong,
        }
        with pytest.raises(
            ExternalRefusal, match="Kerberos gives no ticket for HTTP on 'localhost'"
        ) as refused:
            open_bucket(kerberised_hdfs.location(), kerberised_hdfs.settings(hdfs=section)).names("")
        assert "stores.hdfs.keytab" in refused.value.remedy


def test_with_kerberos_a_host_that_it_does_not_know_and_a_kdc_that_is_away_are_told_apart(
    kerberised_hdfs, tmp_path, monkeypatch
):
    keytab = kerberised_hdfs.keytab
    with pytest.raises(ExternalRefusal, match="HTTP on 'elsewhere'"):
        Negotiator(principal="tester", keytab=keytab).authorization("elsewhere")
    away = tmp_path / "krb5.conf"
    away.write_text(
        "[libdefaults]\n default_realm = EXAMPLE.COM\n udp_preference_limit = 1\n"
        "[realms]\n EXAMPLE.COM = {\n  kdc = 127.0.0.1:1\n }\n"
    )
    monkeypatch.setenv("KRB5_CONFIG", str(away))
    # By another name, or the ticket at hand would do.
    copy = tmp_path / "copy.keytab"
    copy.write_bytes(keytab.read_bytes())
    with pytest.raises(Unavailable, match="HTTP on 'localhost'"):
        Negotiator(principal="tester", keytab=copy).authorization("localhost")


def test_without_the_package_kerberos_is_refused_with_what_to_do(hadoop, monkeypatch):
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(SettingsError, match="gssapi is not installed") as refused:
        open_bucket(hadoop.location(), hadoop.settings(hdfs={"user": None, "kerberos": True}))
    assert "pip install gssapi" in refused.value.remedy


def test_nothing_is_sent_from_https_to_where_everybody_listens(monkeypatch):
    access = Access(
        endpoints=("https://127.0.0.1:1",),
        identity={},
        connect_timeout_s=1,
        request_timeout_s=1,
        retries_max=0,
        retry_timeout_s=1,
    )
    asked = []

    def exchange(self, endpoint, method, target, body, answer_bytes_max):
        asked.append((endpoint, body))
        where = "http://127.0.0.1:2/webhdfs/v1/x?op=CREATE"
        return Answer(status=307, body=b"", bytes=0, location=where, exception="", message="")

    monkeypatch.setattr(WebHdfs, "_exchange", exchange)
    with pytest.raises(Unavailable):
        WebHdfs(access).ask("write", "PUT", "CREATE", "/x", body=b"content")
    assert asked == [("https://127.0.0.1:1", None)]


@pytest.mark.parametrize("tries", [1, 4])
def test_it_waits_longer_from_try_to_try_and_not_for_ever(tries):
    waits: list[float] = []
    access = Access(
        endpoints=("http://127.0.0.1:1",),
        identity={},
        connect_timeout_s=1,
        request_timeout_s=1,
        retries_max=tries - 1,
        retry_timeout_s=60,
    )
    with pytest.raises(Unavailable, match="cannot list '/x' in HDFS: it cannot be reached"):
        WebHdfs(access, pause=waits.append).ask("list", "GET", "LISTSTATUS", "/x")
    assert waits == [0.1, 0.2, 0.4][: tries - 1]


def test_a_location_names_a_namenode_and_settings_say_where_it_answers():
    location = parse_location("hdfs://namenode.example/user/team/jobs/")
    assert str(location) == "hdfs://namenode.example/user/team/jobs"
    assert open_bucket(location, StoreSettings()).where == "hdfs://namenode.example/user/team/jobs"
    for written in ("hdfs://namenode:8020/x", "hdfs:/x", "hdfs://user@host/x"):
        with pytest.raises(ValueError, match=r"stores\.hdfs\.endpoints"):
            parse_location(written)
    with pytest.raises(SettingsError, match=r"user and delegation_token are both set"):
        load_settings(
            plugins={},
            assignments=["stores.hdfs.user=me", "stores.hdfs.delegation_token=env:TOKEN"],
            environ={"TOKEN": SECRET},
        )
    for given, says in (
        (["kerberos=true", "user=me"], "kerberos says who asks"),
        (["principal=me"], "keytab and principal are for kerberos"),
    ):
        with pytest.raises(SettingsError, match=says):
            load_settings(plugins={}, assignments=[f"stores.hdfs.{each}" for each in given])


def every_act(objects: Objects):
    return (
        lambda: objects.create("x", b"1"),
        lambda: objects.replace("x", b"1"),
        lambda: objects.whole("x", 10),
        lambda: objects.part("x", 0, 1),
        lambda: objects.size("x"),
        lambda: objects.delete("x"),
        lambda: objects.names(""),
        lambda: objects.folders(),
    )
