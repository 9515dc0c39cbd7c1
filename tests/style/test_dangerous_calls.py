"""Nothing that was read is ever run: no pickle, no eval, no YAML that builds objects."""

from __future__ import annotations

from tests.style.sources import PRODUCT, calls, imports, python_files

MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
YAML = {"yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.unsafe_load_all", "yaml.full_load"}
SHELL = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}


def test_no_module_that_runs_what_it_reads() -> None:
    found = [
        f"{source.name}:{statement.lineno} imports {name}"
        for source in python_files(*PRODUCT)
        for name, statement in imports(source.tree)
        if name.split(".")[0] in MODULES
    ]
    assert not found, found


def test_no_call_that_runs_text() -> None:
    found = [
        f"{source.name}:{call.lineno} calls {name}"
        for source in python_files(*PRODUCT)
        for name, call in calls(source.tree)
        if name in BUILTINS | YAML | SHELL
        or (any(word.arg == "shell" for word in call.keywords) and name.startswith("subprocess."))
    ]
    assert not found, found


def test_rocksdb_is_opened_raw() -> None:
    """rocksdict pickles values unless it is in raw mode, and unpickles them on reading."""
    found = [
        f"{source.name}:{call.lineno} opens without raw_mode=True"
        for source in python_files(*PRODUCT)
        if any(name.split(".")[0] == "rocksdict" for name, _ in imports(source.tree))
        for name, call in calls(source.tree)
        if name in {"Options", "rocksdict.Options"}
        and not any(
            word.arg == "raw_mode" and getattr(word.value, "value", None) is True for word in call.keywords
        )
    ]
    assert not found, found
