"""What a savepoint holds, as text for people and as lines of JSON for programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from processor.cli.checkpoint_text import show_text
from processor.cli.table import aligned
from processor.contracts.snapshot_format import TIMER_TABLES
from processor.errors import JobError, ProcessorError, SettingsError
from processor.savepoint import Changed, Savepoint, Verified, open_savepoint
from processor.savepoint.counted import count_keys
from processor.savepoint.value_text import json_text
from processor.settings.stores import StoreSettings
from processor.settings.units import size_text
from processor.storage.savepoint_places import beside_each_other


def list_text(directory: str, stores: StoreSettings) -> str:
    """One line for each savepoint right below a directory or URI, and one for what cannot be opened.

    Raises JobError when that is no directory; SettingsError, Unavailable.
    """
    found, closed = [], []
    for name, where in beside_each_other(directory, stores=stores):
        try:
            savepoint = open_savepoint(where, stores=stores)
        except JobError:
            continue  # something else, or one that was never finished
        except ProcessorError as error:
            closed.append(f"'{name}' cannot be opened: {error.message}")
            continue
        entry = savepoint.entry
        found.append((entry.taken_ms, name, entry))
    if not found:
        return "\n".join([f"there are no savepoints in '{directory}'", *closed])
    rows = [
        (name, entry.job, f"checkpoint {entry.checkpoint}", size_text(sum(f.bytes for f in entry.files())))
        for _, name, entry in sorted(found, key=lambda each: each[:2])
    ]
    return "\n".join([*aligned([("NAME", "JOB", "OF", "SIZE"), *rows]), *closed])


def contents_text(savepoint: Savepoint) -> str:
    """Everything but the values themselves. Reads all state, once, to count it."""
    entry = savepoint.entry
    counts = count_keys(savepoint)
    rows = [("STEP", "STATE", "TYPE", "KEYS")]
    rows += [
        (each.step, each.name, each.kind, f"{counts[each.step, each.name]:,}") for each in savepoint.states
    ]
    for step in sorted(entry.shape.stateful):
        timers = sum(counts[step, name] for name in TIMER_TABLES)
        if timers:
            rows.append((step, "timers", "-", f"{timers:,}"))
    head = "\n".join(aligned([("job", entry.job), ("size", size_text(sum(f.bytes for f in entry.files())))]))
    states = "\n".join(aligned(rows)) if len(rows) > 1 else "no state"
    return f"{head}\n\n{states}\n\n{show_text(entry, savepoint.log.published())}"


def value_line(key: Any, value: Any) -> str:
    """One key with its value; bytes are in base64."""
    return json_text({"key": key, "value": value})


def changed_line(changed: Changed) -> str:
    """What one key was and is; what it lacks in one of the two is left out."""
    line = {"key": changed.key}
    if changed.was_there:
        line["before"] = changed.before
    if changed.is_there:
        line["after"] = changed.after
    return json_text(line)


def verified_text(path: str, verified: Verified) -> str:
    """Which files are damaged, or that none is."""
    read = f"{verified.files} files, {size_text(verified.bytes)}"
    if not verified.damage:
        return f"'{path}' is whole: {read}"
    return "\n".join([f"'{path}' is damaged ({read}):", *(f"  {what}" for what in verified.damage)])


@contextmanager
def new_file(path: str) -> Iterator[IO[bytes]]:
    """A file that is only there once it is whole. Raises SettingsError when there is one already, or cannot be."""
    if os.path.exists(path):
        raise SettingsError(f"'{path}' is there already.", remedy="Name a file that does not exist yet.")
    part = f"{path}.part"
    try:
        with open(part, "xb") as file:
            yield file
        os.rename(part, path)
    except OSError as error:
        raise SettingsError(
            f"'{path}' cannot be written: {error.strerror}.", remedy="Choose another place for the file."
        ) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)
