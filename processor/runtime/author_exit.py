"""A function of the job that means to end the process: it ends the attempt, as any error of it does."""

from __future__ import annotations

from processor.errors import UserCodeError, Where
from processor.ids import SubtaskId


def author_exit(subtask: SubtaskId, error: SystemExit) -> UserCodeError:
    """What to raise instead. Passed on, it would end the process past the supervisor, with the author's exit code: 0
    would look like a job that has finished."""
    code = "" if error.code is None else repr(error.code)
    return UserCodeError(
        f"a function of the chain '{subtask.chain}' called sys.exit({code}).",
        remedy="Raise an error to let the job fail there; a job is ended by 'processor stop'.",
        where=Where(step=subtask.chain),
    )
