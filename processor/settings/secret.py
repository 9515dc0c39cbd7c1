"""Secrets are never written where others read: settings name the variable or file that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from processor.errors import SettingsError
from processor.settings.origin import Assignment, OriginKind, dotted

MASK: Final = "********"
SECRET_CHARS_MAX: Final = 65_536
_ENV = "env:"
_FILE = "file:"


def resolve_secret(assignment: Assignment, environ: Mapping[str, str]) -> str:
    """The secret that ``env:NAME`` or ``file:PATH`` stands for; from the environment also the secret itself.

    Raises: SettingsError, which names setting and origin and never the value.
    """
    named = f"{dotted(assignment.path)} ({assignment.origin})"
    value = assignment.value
    if not isinstance(value, str):
        raise SettingsError(f"{named} is not a text.", remedy="Write env:NAME or file:PATH.")
    if value.startswith(_ENV):
        return _from_variable(value.removeprefix(_ENV), named, environ)
    if value.startswith(_FILE):
        return read_secret_file(Path(value.removeprefix(_FILE)), named)
    if assignment.origin.kind is OriginKind.ENVIRONMENT:
        return value
    raise SettingsError(
        f"{named} holds a secret in clear, where others can read it.",
        remedy="Write env:NAME or file:PATH there, and put the secret into that variable or file.",
    )


def read_secret_file(path: Path, named: str) -> str:
    """Content of a file that holds one secret, without the newline at its end. For ``*_file`` settings too.

    ``named`` says which setting asked, for the error. Raises: SettingsError.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(SECRET_CHARS_MAX + 1)
    except UnicodeDecodeError:
        # Not chained: its text quotes the bytes.
        raise SettingsError(f"{named}: file {path} is not UTF-8 text.", remedy="Save it as UTF-8.") from None
    except OSError as failed:
        raise SettingsError(
            f"{named}: file {path} cannot be read: {failed.strerror}.",
            remedy="Check the path and the rights of the file.",
        ) from failed
    if len(text) > SECRET_CHARS_MAX:
        raise SettingsError(
            f"{named}: file {path} is longer than a secret may be ({SECRET_CHARS_MAX} characters).",
            remedy="Name a file that holds the secret and nothing else.",
        )
    secret = text.removesuffix("\n").removesuffix("\r")
    if not secret:
        raise SettingsError(f"{named}: file {path} is empty.", remedy="Put the secret into it.")
    return secret


def _from_variable(name: str, named: str, environ: Mapping[str, str]) -> str:
    secret = environ.get(name, "")
    if not secret:
        raise SettingsError(f"{named}: environment variable {name} is not set.", remedy=f"Set {name}.")
    return secret
