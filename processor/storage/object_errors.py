"""What an error of the object stores' library means, in the project's own errors.

The library's texts hold addresses with signatures and whole answers of servers, so none of it is passed on but the
server's code and message; and the library's error is not chained, for a traceback would print it.
"""

from __future__ import annotations

import re
from typing import Final

from processor.errors import ExternalRefusal, ProcessorError, Unavailable

REASON_CHARS_MAX: Final = 200

LIBRARY_ERRORS: Final = (OSError, ValueError)
"""What the library raises beside its own ``BaseError``: it has Python's FileNotFoundError for a missing object."""

_CODE = re.compile(r"<Code>([^<]{1,80})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,400})</Message>")
_STATUS = re.compile(r"status code: ([0-9]{3})")
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})
_BUCKET_GONE = re.compile(r"specified (bucket|container) does not exist", re.IGNORECASE)
_MACHINE = ("169.254.", "metadata.google", "/latest/api/token")
_LATE = ("TimedOut", "kind: Timeout", "timed out")
_REFUSED_FOR_NOW = frozenset({408, 409, 425, 429})
_CODES_REFUSED_FOR_NOW = frozenset({"RequestTimeout", "OperationAborted"})
"""S3 answers a connection that was too slow with 400."""
_NO_CONDITION = frozenset({"NotImplemented", "NotSupported"})


def is_missing(error: Exception) -> bool:
    """The object is not there; a missing bucket is something else."""
    return isinstance(error, FileNotFoundError) and not _without_bucket(str(error))


def object_error(act: str, what: str, error: Exception) -> ProcessorError:
    """``act`` is the verb that failed, ``what`` the location it was about."""
    text = str(error)
    kind = type(error).__name__
    status = int(found[1]) if (found := _STATUS.search(text)) else 0
    failed = f"cannot {act} '{what}': {_reason(text, status)}."
    if _without_bucket(text):
        return ExternalRefusal(
            f"cannot {act} '{what}': the bucket does not exist.",
            remedy="Make it, or correct checkpoint.directory or checkpoint.log_directory.",
        )
    if kind in ("PermissionDeniedError", "UnauthenticatedError") or status in (401, 403):
        return ExternalRefusal(
            failed,
            remedy="Check the credentials (section stores, or the provider's environment variables) and the rights: "
            "reading, writing, listing and deleting below the location.",
        )
    if kind == "NotSupportedError" or status == 501 or _code(text) in _NO_CONDITION:
        return ExternalRefusal(
            failed, remedy="Set checkpoint.log_directory to another store: this one lacks that."
        )
    if any(sign in text for sign in _MACHINE):
        return Unavailable(
            f"cannot {act} '{what}': no credentials are set, and this machine gives none.",
            remedy="Set them in the section stores, or by the provider's environment variables.",
        )
    for_now = status in _REFUSED_FOR_NOW or _code(text) in _CODES_REFUSED_FOR_NOW
    if 300 <= status < 500 and not for_now:
        return ExternalRefusal(
            failed, remedy="Check region, endpoint and name of the bucket in the settings."
        )
    return Unavailable(
        failed, remedy="Look after the store and the way to it; retries are set in section stores."
    )


def _without_bucket(text: str) -> bool:
    return _code(text) in _NO_BUCKET or _BUCKET_GONE.search(text) is not None


def _code(text: str) -> str:
    found = _CODE.search(text)
    return found[1] if found else ""


def _reason(text: str, status: int) -> str:
    code, message = _code(text), _MESSAGE.search(text)
    if code and message:
        return f"{code}: {message[1].rstrip('.')}"[:REASON_CHARS_MAX]
    if code or status:
        return code or f"the server answered with status {status}"
    return "no answer in time" if any(sign in text for sign in _LATE) else "the server cannot be reached"
