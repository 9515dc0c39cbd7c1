"""How a command ends: an error as one block on standard error, and the exit code that belongs to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import typer

from processor.errors import EngineBug, ProcessorError, Response

INTERRUPTED_EXIT_CODE: Final = 130
"""128 + SIGINT, as shells have it."""

FELL_SHORT_EXIT_CODE: Final = 1
"""The command did its work, and the result is no good: a check failed, a request was refused."""


@dataclass(slots=True)
class Reporting:
    """Whether errors are told with a traceback: known once the settings are."""

    debug: bool = False


@contextmanager
def reporting() -> Iterator[Reporting]:
    """Around the body of every command."""
    told = Reporting()
    try:
        yield told
    except ProcessorError as error:
        if error.response is Response.STOP_QUIETLY:
            typer.echo(str(error), err=True)
        else:
            _tell(error, debug=told.debug)
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    except (BrokenPipeError, typer.Exit):
        # The reader (`| head`) has what it wanted; typer ends the process without a word.
        raise
    except Exception as error:
        _tell(error, debug=told.debug)
        raise typer.Exit(EngineBug.exit_code) from None


def _tell(error: BaseException, *, debug: bool) -> None:
    from processor.telemetry.error_text import error_block

    typer.echo(error_block(error, debug=debug), err=True)
