"""A file is one noun, a room one idea: names, sizes and docstrings."""

from __future__ import annotations

import ast

from tests.style.sources import PRODUCT, ROOT, python_files, tracked

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60

NAMELESS = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"}
"""Names that say nothing about what is inside."""

LONG_FILES: dict[str, str] = {}
"""File -> why it is one noun all the same."""

LONG_FUNCTIONS: dict[str, str] = {}
"""`file:function` -> why it reads better in one piece."""


def test_no_file_has_a_name_that_says_nothing() -> None:
    found = [
        path.as_posix()
        for path in tracked()
        if path.suffix == ".py" and NAMELESS & {part.removesuffix(".py") for part in path.parts}
    ]
    assert not found, found


def test_files_are_short() -> None:
    long = {
        source.name: length
        for source in python_files(*PRODUCT)
        if (length := len(source.text.splitlines())) > FILE_LINES_MAX
    }
    unexplained = {name: length for name, length in long.items() if name not in LONG_FILES}
    assert not unexplained, f"over {FILE_LINES_MAX} lines, and LONG_FILES gives no reason: {unexplained}"
    assert set(LONG_FILES) <= set(long), "LONG_FILES names a file that is short"


def test_functions_are_short() -> None:
    long = {
        f"{source.name}:{node.name}": length
        for source in python_files(*PRODUCT)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    }
    unexplained = {name: length for name, length in long.items() if name not in LONG_FUNCTIONS}
    assert not unexplained, (
        f"over {FUNCTION_LINES_MAX} lines, and LONG_FUNCTIONS gives no reason: {unexplained}"
    )
    assert set(LONG_FUNCTIONS) <= set(long), "LONG_FUNCTIONS names a function that is short"


def test_every_file_says_what_it_is() -> None:
    found = [source.name for source in python_files(*PRODUCT) if not ast.get_docstring(source.tree)]
    assert not found, f"no docstring at the top of {found}"


def test_every_package_has_an_init() -> None:
    """Without one a folder is a package all the same, but the wheel and import-linter pass it by."""
    folders = {
        parent
        for source in python_files(*PRODUCT)
        for parent in source.path.parents
        if parent.parts and parent.parts[0] in PRODUCT
    }
    found = sorted(folder.as_posix() for folder in folders if not (ROOT / folder / "__init__.py").exists())
    assert not found, f"no __init__.py in {found}"
