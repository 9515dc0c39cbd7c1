"""The project's own files, as the style tests read them: listed by git, parsed once."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("processor", "connectors")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A Python file: where it is (from the checkout's root), its text and its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """The path as the messages and the allow-lists spell it."""
        return self.path.as_posix()


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that is, or is about to be, in the repository: what git ignores is not the project."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    files = {Path(name) for name in listed.split("\0") if name}
    return tuple(sorted(path for path in files if (ROOT / path).is_file()))


@cache
def python_files(*folders: str) -> tuple[Source, ...]:
    """The parsed Python files below these folders of the checkout."""
    found = []
    for path in tracked():
        if path.suffix == ".py" and any(path.is_relative_to(folder) for folder in folders):
            text = (ROOT / path).read_text()
            found.append(Source(path=path, text=text, tree=ast.parse(text, filename=path.as_posix())))
    return tuple(found)


def imports(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Every name that is imported, dotted: `from a.b import c` gives `a.b.c`; with its statement."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield alias.name, node
            case ast.ImportFrom(module=module, names=names):
                for alias in names:
                    yield f"{module or ''}.{alias.name}", node


def dotted(node: ast.expr) -> str:
    """`yaml.load` for that attribute, `eval` for that name, and the empty text for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            before = dotted(value)
            return f"{before}.{attr}" if before else ""
        case _:
            return ""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call whose callee is a plain or dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            if name:
                yield name, node
