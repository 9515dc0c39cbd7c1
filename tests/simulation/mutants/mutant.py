"""One named fault of the production code, put in at run time.

A mutant changes functions where they stand: its edits are made in the text of a module, that is compiled, and the
functions get the new code. So whoever imported a function before runs the mutated one too. An edit whose text is
not found exactly once in its function is an error: a mutant that no longer fits is mended, it does not rot.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from processor.simulation.faults import Faults


class MutantDoesNotFit(Exception):
    """The production code is no longer as an edit takes it to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A replacement within one function."""

    function: str
    """``module:qualified.name``"""
    find: str
    """Occurs once in the function, in lines as they stand there."""
    put: str

    @property
    def module(self) -> str:
        return self.function.partition(":")[0]

    @property
    def name(self) -> str:
        return self.function.partition(":")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    name: str
    """Begins with the number of the rule that is broken, where there is one."""
    breaks: str
    """What it does wrong, in one sentence."""
    edits: tuple[Edit, ...]
    job: str = ""
    """The job to try it with, where others have nothing to show; else each seed's own."""
    over_rocksdb: bool = False
    """Its runs are over RocksDB; all others are over memory."""
    workers: int = 1
    """Processes that share the job in its runs."""
    faults: Faults | None = None
    """What goes wrong in its runs, where it takes several rare things at once; else each seed's own choice."""
    tests: str = ""
    """The tests that show it, as words of pytest's command line, where the simulation can't."""


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Within it this process runs the mutated code. Raises MutantDoesNotFit."""
    changed = [(function, function.__code__, code) for function, code in mutated(mutant)]
    for function, _, code in changed:
        function.__code__ = code
    try:
        yield
    finally:
        for function, before, _ in changed:
            function.__code__ = before


def mutated(mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
    """The functions of a mutant with their new code. Raises MutantDoesNotFit."""
    by_module: dict[str, list[Edit]] = {}
    for edit in mutant.edits:
        by_module.setdefault(edit.module, []).append(edit)
    found = []
    for module, edits in by_module.items():
        names = dict.fromkeys(edit.name for edit in edits)
        code = _compiled(module, edits)
        found += [(_function(module, name), _code_of(code, module, name)) for name in names]
    return found


def _compiled(module: str, edits: Sequence[Edit]) -> CodeType:
    file = import_module(module).__file__
    assert file is not None
    text = Path(file).read_text()
    for edit in edits:
        text = _edited(text, edit)
    try:
        return compile(text, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise MutantDoesNotFit(f"{module} can't be compiled any more: {error}") from error


def _edited(text: str, edit: Edit) -> str:
    lines = text.splitlines(keepends=True)
    first, last = _lines_of(text, edit)
    body = "".join(lines[first - 1 : last])
    if body.count(edit.find) != 1:
        raise MutantDoesNotFit(f"{edit.function} holds {body.count(edit.find)} times: {edit.find}")
    return "".join((*lines[: first - 1], body.replace(edit.find, edit.put), *lines[last:]))


def _lines_of(text: str, edit: Edit) -> tuple[int, int]:
    scope: ast.AST = ast.parse(text)
    for part in edit.name.split("."):
        inner = [
            node
            for node in ast.iter_child_nodes(scope)
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == part
        ]
        if len(inner) != 1:
            raise MutantDoesNotFit(f"{edit.function}: there are {len(inner)} of the name {part}")
        scope = inner[0]
    assert isinstance(scope, ast.FunctionDef)
    assert scope.end_lineno is not None
    return scope.lineno, scope.end_lineno


def _function(module: str, name: str) -> FunctionType:
    found: Any = import_module(module)
    for part in name.split("."):
        found = vars(found)[part]
    if isinstance(found, property):
        found = found.fget
    function = unwrap(getattr(found, "__func__", found))
    assert isinstance(function, FunctionType), function
    return function


def _code_of(code: CodeType, module: str, name: str) -> CodeType:
    [found] = [inner for inner in _inner(code) if inner.co_qualname == name]
    return found


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)
