"""``processor doctor``: tries, on the real systems, what exactly-once relies on (R31)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from processor.cli.options import ConfigOption, SetOption
from processor.cli.reporting import FELL_SHORT_EXIT_CODE, reporting
from processor.cli.table import aligned

if TYPE_CHECKING:
    from processor.settings.model import Settings
    from processor.storage.places import Places

_Row = tuple[str, str, str, str]


def doctor(config: ConfigOption = None, set_: SetOption = None) -> None:
    """Check every connector's system as configured. Exits with 1 when a check fails."""
    with reporting() as told:
        from processor.cli.configured import load_configured
        from processor.plugins import installed_plugins

        settings = load_configured(config, set_, told).settings
        plugins = installed_plugins()
        rows = list(_checkpoint_rows(settings))
        rows += [
            ("ok" if finding.passed else "FAILED", name, finding.what, finding.detail or "-")
            for name in plugins.names
            for finding in plugins.get(name).doctor(settings.plugins[name])
        ]
        for line in aligned(rows):
            typer.echo(line)
        failed = sum(1 for row in rows if row[0] == "FAILED")
        typer.echo(f"{len(rows) - failed} checks passed, {failed} failed")
        if failed:
            raise typer.Exit(FELL_SHORT_EXIT_CODE)


def _checkpoint_rows(settings: Settings) -> Iterator[_Row]:
    """Whether the place of the decision log gives each of its places to one writer only (R5)."""
    from processor.errors import ProcessorError
    from processor.storage.places import places_of

    what = "a decision log takes each place once"
    try:
        where = places_of(settings)
        directory = where.log.directory
        if directory is None:
            _try_bucket(where)
        else:
            _try_directory(directory)
    except (ProcessorError, OSError) as failed:
        yield "FAILED", "checkpoint", what, str(failed)
    else:
        yield "ok", "checkpoint", what, str(where.log)


def _try_bucket(where: Places) -> None:
    """Below a new prefix; leaves nothing behind."""
    import secrets

    from processor.storage.buckets import open_bucket
    from processor.storage.decision_log import two_writer_test
    from processor.storage.object_log import ObjectLog

    scratch = f"doctor-{secrets.token_hex(8)}"
    first, second = (ObjectLog(open_bucket(where.log, where.stores).below(scratch)) for _ in range(2))
    two_writer_test(first, second, secrets.token_hex)


def _try_directory(directory: Path) -> None:
    """On the file system of ``directory``, which need not be there yet; leaves nothing behind."""
    import secrets
    import tempfile

    from processor.storage.decision_log import two_writer_test
    from processor.storage.directory_log import DirectoryLog

    there = directory.absolute()
    while not there.is_dir() and there != there.parent:
        there = there.parent
    with tempfile.TemporaryDirectory(prefix=".doctor-", dir=there) as scratch:
        first, second = (DirectoryLog(Path(scratch), token=secrets.token_hex) for _ in range(2))
        two_writer_test(first, second, secrets.token_hex)
