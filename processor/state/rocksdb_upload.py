"""A checkpoint of a database in its own files: linked on the local disk, and what is new of them uploaded.

The local checkpoint is made of hard links, so it costs little and does not change while the database goes on. Of its
sorted files those are listed again that a decided checkpoint of *this* database holds under the same local name; all
others go up under names that nobody had before (R22). A file that was uploaded and is listed nowhere, because the
completion came to nothing, is removed by who made it: nobody else can know of it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from rocksdict import Checkpoint, Rdict

from processor.contracts.file_store import LinkingFiles
from processor.contracts.snapshot_format import DatabaseDescription, DatabaseTable
from processor.errors import DamagedFile, Unavailable
from processor.ids import FileRef, KeyGroupRange
from processor.invariant import invariant
from processor.protocol.entries import DatabaseFile, StateFile
from processor.state.rocksdb_keys import scan
from processor.state.snapshot import SnapshotTarget

COPY_BYTES: Final = 2**20
"""Read, hashed and written at once."""

SORTED_FILE: Final = re.compile(r"[0-9]{6,19}\.sst\Z", re.ASCII)
SMALL_FILE: Final = re.compile(r"(?:CURRENT|MANIFEST-[0-9]{6,19})\Z", re.ASCII)
"""What a database calls its files; nothing else is taken from it or laid before it. Its options are not of them: they
are given each time it is opened."""


class DatabaseUpload:
    """One checkpoint. ``steps`` to the end gives ``outcome``; or ``discard``."""

    def __init__(
        self,
        database: Rdict,
        local: Path,
        target: SnapshotTarget,
        tables: tuple[DatabaseTable, ...],
        flush: Callable[[Rdict], None],
    ) -> None:
        """``local``: a path on the database's disk where there is nothing yet."""
        self._database = database
        self._local = local
        self._target = target
        self._tables = tables
        self._flush = flush
        self._made: list[str] = []
        self.outcome: StateFile | None = None

    def steps(self) -> Iterator[None]:
        """Raises Unavailable."""
        target = self._target
        for table in self._tables:
            self._check_groups(table.number)
        # Apart, for it takes long and lets others run; the checkpoint flushes too, and does not.
        self._flush(self._database)
        yield
        Checkpoint(self._database).create_checkpoint(str(self._local))
        yield
        found = sorted(path.name for path in self._local.iterdir())
        held: list[DatabaseFile] = []
        for name in filter(SORTED_FILE.match, found):
            ref = target.known.get(name)
            if ref is None:
                ref = yield from self._put(name)
            else:
                size = (self._local / name).stat().st_size
                invariant(size == ref.bytes, "a database never gives a name of its own to another file")
            held.append(DatabaseFile(local_name=name, file=ref))
        small = {name: (self._local / name).read_bytes() for name in filter(SMALL_FILE.match, found)}
        description = DatabaseDescription(
            step=target.step,
            max_parallelism=target.max_parallelism,
            key_groups=target.key_groups,
            tables=self._tables,
            small_files=small,
        )
        file = target.format.write_database(target.files.create(target.name), description)
        # Nothing after this line may fail: what was uploaded is either listed or removed.
        self.outcome = StateFile(
            step=target.step,
            file=file,
            key_groups=target.key_groups,
            states=dict(target.states),
            database=tuple(held),
        )

    def _check_groups(self, number: int) -> None:
        """A keyed edge that sends records to the wrong subtask is to be found before their state is lost in the next
        rescaling."""
        groups, limit = self._target.key_groups, self._target.max_parallelism
        for others in (KeyGroupRange(0, groups.start), KeyGroupRange(groups.stop, limit)):
            stray = next(scan(self._database, number, others), None)
            invariant(stray is None, "a key belongs to the key groups of its subtask")

    def close(self) -> None:
        """Remove the local checkpoint and, without an outcome, what was uploaded. Idempotent."""
        shutil.rmtree(self._local, ignore_errors=True)
        if self.outcome is None:
            made, self._made = self._made, []
            for name in made:
                with suppress(Unavailable, DamagedFile):  # then a later attempt sweeps it
                    self._target.files.delete(name)

    def _put(self, local_name: str) -> Generator[None, None, FileRef]:
        path = self._local / local_name
        files = self._target.files
        name = f"{self._target.name.rpartition('.')[0]}-{local_name}"
        if isinstance(files, LinkingFiles):
            digest, size = sha256(), 0
            with path.open("rb") as content:
                while chunk := content.read(COPY_BYTES):
                    digest.update(chunk)
                    size += len(chunk)
                    yield
            ref = FileRef(name=name, bytes=size, sha256=digest.hexdigest())
            if files.link_in(path, ref):
                self._made.append(name)
                return ref
        writer = files.create(name)
        try:
            with path.open("rb") as content:
                while chunk := content.read(COPY_BYTES):
                    writer.write(chunk)
                    yield
            ref = writer.finish()
        except BaseException:
            writer.discard()
            raise
        self._made.append(name)
        return ref
