"""From ``module:build`` to the graph of a job."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from processor.errors import JobError, ProcessorError, UserCodeError

if TYPE_CHECKING:
    from processor.plan.graph import JobGraph


def load_graph(reference: str) -> JobGraph:
    """Import the module, with the current directory importable, call the function, take its job's graph.

    Raises: JobError when there is no such module or function or it gives no Job; UserCodeError, with the
    original exception as its cause, when the job's own code raises; what the job's construction refuses.
    """
    from processor.stream import Job

    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise JobError(
            f"'{reference}' does not name a job.",
            remedy="Write MODULE:FUNCTION, such as word_count:build for build() in word_count.py.",
        )
    build = _attribute(_module(module_name), attribute, reference)
    job = build if isinstance(build, Job) else _built(build, reference)
    if not isinstance(job, Job):
        raise JobError(
            f"'{reference}' gave {_a(job)}, not a Job.", remedy="Have the function return the Job it builds."
        )
    return job.graph()


def _module(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and (name == missing.name or name.startswith(f"{missing.name}.")):
            raise JobError(
                f"there is no module '{name}' in {here} or among the installed ones.",
                remedy="Run the command in the directory that holds it, or install the package.",
            ) from None
        raise UserCodeError(
            f"module '{name}' imports '{missing.name}', which is not installed.",
            remedy=f"Install what provides '{missing.name}' in the environment that runs this command.",
        ) from missing
    except ProcessorError:
        raise
    except Exception as raised:
        raise UserCodeError(
            f"module '{name}' raised while it was imported: {type(raised).__name__}: {raised}.",
            remedy="The lines below show where.",
        ) from raised


def _attribute(module: ModuleType, name: str, reference: str) -> object:
    try:
        found: object = getattr(module, name)
    except AttributeError:
        import difflib

        near = difflib.get_close_matches(name, [known for known in vars(module) if known[0] != "_"], n=1)
        meant = f" Did you mean '{near[0]}'?" if near else ""
        raise JobError(
            f"module '{module.__name__}' has no '{name}'.{meant}", remedy=f"Correct '{reference}'."
        ) from None
    return found


def _built(build: object, reference: str) -> object:
    if not callable(build):
        raise JobError(
            f"'{reference}' is {_a(build)}, not a function.", remedy="Name the function that builds the job."
        )
    try:
        return build()
    except ProcessorError:
        raise
    except Exception as raised:
        raise UserCodeError(
            f"'{reference}' raised while it built the job: {type(raised).__name__}: {raised}.",
            remedy="The lines below show where.",
        ) from raised


def _a(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
