"""An error as a person should see it: what, where, what to do; a traceback only for those who can use it."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from processor.errors import EngineBug, ProcessorError, UserCodeError, place_text

TEXT_CHARS_MAX: Final = 4_000
"""Of one message: a record's content may be in it, and a record is as long as its sender likes."""


def error_block(error: BaseException, *, debug: bool = False) -> str:
    """One block of lines, the first of which says what happened.

    A traceback follows where it helps: of the job's own frames when a function of the job raised, whole when
    the engine is to blame, when the error is none of ours, or when ``debug`` asks for it.
    """
    lines = [f"error: {printable(_what(error))}"]
    if isinstance(error, ProcessorError):
        elsewhere = error.elsewhere
        if place := place_text(error.where, None if elsewhere is None else elsewhere.worker):
            lines.append(f"  where: {printable(place)}")
        if error.remedy:
            lines.append(f"  remedy: {printable(error.remedy)}")
    detail = traceback_text(error, debug=debug)
    return "\n".join([*lines, *(printable(line) for line in detail.splitlines())])


def traceback_text(error: BaseException, *, debug: bool = False) -> str:
    """The traceback as far as it helps (see ``error_block``), of another process where it happened there; "" where
    it does not."""
    if isinstance(error, ProcessorError) and error.elsewhere is not None:
        return error.elsewhere.trace
    if debug or isinstance(error, EngineBug) or not isinstance(error, ProcessorError):
        return "".join(traceback.format_exception(error)).rstrip()
    if isinstance(error, UserCodeError) and error.__cause__ is not None:
        return user_traceback(error.__cause__)
    return ""


def printable(text: str) -> str:
    """The text with control characters escaped, so that it cannot forge lines or move a cursor, and cut."""
    shown = text if len(text) <= TEXT_CHARS_MAX else f"{text[:TEXT_CHARS_MAX]}… ({len(text)} characters)"
    if shown.isprintable():
        return shown
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)


def user_traceback(error: BaseException) -> str:
    """The traceback without the engine's and connectors' frames; "" when nothing else is left."""
    told = traceback.TracebackException.from_exception(error)
    link: traceback.TracebackException | None = told
    while link is not None:
        link.stack = traceback.StackSummary.from_list(
            [frame for frame in link.stack if not _is_ours(frame.filename)]
        )
        link = link.__cause__ or link.__context__
    if not told.stack:
        return ""
    return "".join(told.format()).rstrip()


def _what(error: BaseException) -> str:
    if isinstance(error, ProcessorError):
        return error.message
    return f"{type(error).__name__}: {error}"


_ENGINE_ROOT = Path(__file__).parents[1]
_OUR_ROOTS = (str(_ENGINE_ROOT) + "/", str(_ENGINE_ROOT.parent / "connectors") + "/")


def _is_ours(filename: str) -> bool:
    return filename.startswith(_OUR_ROOTS)
