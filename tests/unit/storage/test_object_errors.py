"""What a server's answer means for the job: wait and try again, or end and say what to mend."""

from __future__ import annotations

import pytest

from processor.errors import ExternalRefusal, ProcessorError, Unavailable
from processor.storage.object_errors import REASON_CHARS_MAX, is_missing, object_error


def answer(status: str, body: str = "") -> str:
    """As the library words it."""
    return (
        "Generic S3 error: Error performing PUT http://host/bucket/x?X-Amz-Signature=hush in 2ms - "
        f"Server returned non-2xx status code: {status}: {body}\n\nDebug source:\nhush retry_timeout: 60s"
    )


def body(code: str, message: str = "What it says.") -> str:
    return f"<Error><Code>{code}</Code><Message>{message}</Message><Key>hush</Key></Error>"


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (answer("503 Slow Down", body("SlowDown")), Unavailable, "SlowDown: What it says."),
        (answer("500 Internal Server Error"), Unavailable, "status 500"),
        (answer("429 Too Many Requests"), Unavailable, "status 429"),
        (answer("400 Bad Request", body("RequestTimeout")), Unavailable, "RequestTimeout"),
        (answer("400 Bad Request", body("InvalidBucketName")), ExternalRefusal, "region, endpoint and name"),
        (
            answer("301 Moved Permanently", body("PermanentRedirect")),
            ExternalRefusal,
            "region, endpoint and name",
        ),
        (answer("403 Forbidden", body("InvalidAccessKeyId")), ExternalRefusal, "credentials.*rights"),
        (answer("404 Not Found", body("NoSuchBucket")), ExternalRefusal, "bucket does not exist"),
        (answer("404 Not Found", body("ContainerNotFound")), ExternalRefusal, "bucket does not exist"),
        (answer("501 Not Implemented", body("NotImplemented")), ExternalRefusal, "log_directory"),
        (
            "Error performing PUT http://169.254.169.254/latest/api/token in 1s - hush",
            Unavailable,
            "no credentials",
        ),
        (
            "HTTP error: error sending request ... kind: Timeout, source: TimedOut",
            Unavailable,
            "no answer in time",
        ),
        ("HTTP error: error sending request ... retry_timeout: 60s hush", Unavailable, "cannot be reached"),
        (answer("503 Slow Down", body("x" * 80, "y" * 400)), Unavailable, r"x{80}: y+\."),
    ],
)
def test_an_answer_is_told_by_code_and_message_alone(text, kind, said):
    error: ProcessorError = object_error("create", "s3://bucket/x", RuntimeError(text))
    assert type(error) is kind
    assert error.message.startswith("cannot create 's3://bucket/x': ")
    assert len(error.message) < REASON_CHARS_MAX + 50
    with pytest.raises(kind, match=said):
        raise error
    assert "hush" not in str(error)
    assert error.remedy


def test_a_missing_object_is_told_apart_from_a_missing_bucket():
    assert is_missing(FileNotFoundError(answer("404 Not Found", body("NoSuchKey"))))
    assert is_missing(FileNotFoundError(answer("404 Not Found")))
    assert not is_missing(FileNotFoundError(answer("404 Not Found", body("NoSuchBucket"))))
    assert not is_missing(RuntimeError(answer("404 Not Found", body("NoSuchKey"))))
