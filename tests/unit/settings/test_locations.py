"""A URI picks the store; a plain path stays a path; nothing secret is quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor.errors import SettingsError
from processor.settings.loading import load_settings
from processor.settings.location import LOCATION_CHARS_MAX, Location, Scheme, local, parse_location
from processor.settings.shown import shown_settings


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("checkpoints", "checkpoints"),
        ("/var/lib/x y", "/var/lib/x y"),
        ("a:b", "a:b"),
        ("C:stuff/x", "C:stuff/x"),
        ("file:/var/x", "/var/x"),
        ("file:///var/x/", "/var/x"),
        (Path("some/where"), "some/where"),
    ],
)
def test_a_path_is_a_local_directory(written, path):
    location = parse_location(written)
    assert location == local(Path(path))
    assert location.directory == Path(path)
    assert str(location) == path


@pytest.mark.parametrize(
    ("written", "scheme", "bucket", "path"),
    [
        ("s3://bucket", Scheme.S3, "bucket", ""),
        ("s3://bucket/", Scheme.S3, "bucket", ""),
        ("hdfs://namenode/user/x/", Scheme.HDFS, "namenode", "user/x"),
        ("gs://my_bucket.eu/team/jobs", Scheme.GS, "my_bucket.eu", "team/jobs"),
        ("az://container/a=b/c-d_e.f/", Scheme.AZ, "container", "a=b/c-d_e.f"),
    ],
)
def test_a_uri_names_a_prefix_of_a_bucket_and_is_written_as_it_is_read(written, scheme, bucket, path):
    location = parse_location(written)
    assert location == Location(scheme=scheme, bucket=bucket, path=path)
    assert location.directory is None
    assert parse_location(str(location)) == location
    assert parse_location(location) is location


@pytest.mark.parametrize(
    "written",
    [
        "",
        "x" * (LOCATION_CHARS_MAX + 1),
        7,
        "hdfs3://name/x",
        "https://bucket.s3.amazonaws.com/x",
        "S3://bucket/x",
        "s3:bucket/x",
        "s3:/bucket/x",
        "s3://",
        "s3://a/b",
        "s3://bucket//x",
        "s3://bucket/../x",
        "s3://bucket/.x",
        "s3://bucket/x?versionId=1",
        "s3://bucket/x#1",
        "s3://bucket/ä",
        "s3://key:secret@bucket/x",
        "file:x",
        "file://host/x",
    ],
)
def test_what_is_neither_is_refused_and_not_quoted(written):
    with pytest.raises(ValueError, match=r".") as refused:
        parse_location(written)
    assert "secret" not in str(refused.value)


def test_a_location_with_a_password_is_refused_without_it():
    with pytest.raises(
        SettingsError, match=r"checkpoint\.directory = s3://\*{8}@bucket/x.*plain name"
    ) as refused:
        load_settings(plugins={}, assignments=["checkpoint.directory=s3://key:hush/hush@bucket/x"])
    assert "hush" not in str(refused.value)


def test_settings_say_where_and_as_whom_and_are_shown_without_secrets():
    loaded = load_settings(
        plugins={},
        assignments=[
            "checkpoint.directory=s3://bucket/jobs",
            "checkpoint.log_directory=/var/lib/log",
            "stores.s3.endpoint=http://127.0.0.1:9000",
            "stores.s3.access_key_id=me",
            "stores.s3.secret_access_key=env:KEY",
            "stores.request_timeout=2s",
        ],
        environ={"KEY": "hush"},
    )
    checkpoint, stores = loaded.settings.checkpoint, loaded.settings.stores
    assert checkpoint.directory == Location(scheme=Scheme.S3, bucket="bucket", path="jobs")
    assert checkpoint.log_directory == local(Path("/var/lib/log"))
    assert stores.s3.secret_access_key is not None
    assert stores.s3.secret_access_key.get_secret_value() == "hush"
    assert stores.request_timeout == 2_000
    shown = {row.path: row.value for row in shown_settings(loaded)}
    assert shown["stores.s3.secret_access_key"] == "********"
    assert shown["checkpoint.directory"] == '"s3://bucket/jobs"'
    assert "hush" not in str(shown) + repr(loaded.settings)


@pytest.mark.parametrize(
    ("assignments", "said"),
    [
        (["stores.s3.access_key_id=me"], "go together"),
        (["stores.s3.session_token=env:KEY"], "session_token needs"),
        (["stores.s3.endpoint=localhost:9000"], r"stores\.s3\.endpoint"),
        (["stores.s3.endpoint=http://me:hush@127.0.0.1"], r"stores\.s3\.endpoint"),
        (
            ["stores.az.account=me", "stores.az.account_key=env:KEY", "stores.az.sas_token=env:KEY"],
            "keep one",
        ),
        (["stores.az.sas_token=env:KEY"], "need account"),
        (["stores.s3.secret_access_key=hush"], "holds a secret in clear"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name(assignments, said):
    with pytest.raises(SettingsError, match=said) as refused:
        load_settings(plugins={}, assignments=assignments, environ={"KEY": "hush"})
    assert "hush" not in str(refused.value)
