"""The files of a database's checkpoint, laid out for it to be opened: linked or copied."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from processor.contracts.file_store import FileStore, LinkingFiles
from processor.contracts.snapshot_format import DatabaseDescription
from processor.errors import DamagedFile, Unavailable
from processor.ids import FileRef
from processor.protocol.entries import StateFile
from processor.state.rocksdb_upload import SMALL_FILE, SORTED_FILE


def fetch_database(
    files: FileStore,
    state: StateFile,
    description: DatabaseDescription,
    path: Path,
    fetched: Callable[[FileRef], None] = lambda _: None,
) -> None:
    """Make a directory at ``path`` that a database can be opened in. Every file is verified on the way; ``fetched``
    is called after each.

    Raises DamagedFile by name, Unavailable when a file cannot be read or the local disk not be written.
    """
    assert state.database is not None
    for name in description.small_files:
        if not SMALL_FILE.match(name):
            raise _misnamed(name, state.file.name)
    for each in state.database:
        if not SORTED_FILE.match(each.local_name):
            raise _misnamed(each.local_name, each.file.name)
    try:
        path.mkdir(mode=0o700)
        for name, content in description.small_files.items():
            _write(path / name, [content])
        for each in state.database:
            _fetch(files, each.file, path / each.local_name)
            fetched(each.file)
    except OSError as error:
        raise Unavailable(
            f"the files of a checkpoint cannot be laid out in '{path}': {os.strerror(error.errno or 0)}.",
            remedy="Make room there, or set state.directory to a local disk with space left.",
        ) from error


def _fetch(files: FileStore, ref: FileRef, path: Path) -> None:
    if isinstance(files, LinkingFiles):
        files.verify(ref)
        if files.link_out(ref, path):
            return
    _write(path, files.read(ref))


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        for chunk in chunks:
            file.write(chunk)


def _misnamed(local_name: str, file: str) -> DamagedFile:
    return DamagedFile(
        f"the file '{file}' is to be called '{local_name!s:.100}' in a database, and no database calls a file so.",
        remedy="This entry was not written by the processor: start from another checkpoint or a savepoint.",
    )
