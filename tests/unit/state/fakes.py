"""What a keyed state needs around it, in memory: files, a snapshot format, and a request."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import msgspec

from processor.contracts.clock import TimeDomain
from processor.contracts.snapshot_format import DatabaseDescription
from processor.contracts.state_store import KeyedState, KeyedStateRequest, StateBackend, TableSpec
from processor.errors import DamagedFile
from processor.fault_points import FaultHook, no_faults
from processor.ids import CheckpointId, FileRef, KeyGroupRange, StepName, key_groups_of
from processor.invariant import invariant
from processor.protocol.entries import StateFile
from processor.records.key_groups import decode_key, encode_key, key_group
from processor.state.backends import MemoryBackend, RocksDbBackend
from processor.state.declarations import bind, described_states, table_specs
from processor.state.expiry import Expiries, Times
from processor.state.held_entries import StateReader
from processor.state.keyed_view import CurrentKey
from processor.state.rocksdb_directory import LocalDirectories
from processor.state.rocksdb_store import RocksDbOptions
from processor.state.stored_keys import normalise_key
from processor.state.value_types import describe_type

MAX_PARALLELISM = 16


def keys_of(index: int, parallelism: int) -> list[int]:
    """Some keys that belong to a subtask."""
    groups = key_groups_of(index, parallelism, MAX_PARALLELISM)
    return [key for key in range(200) if key_group(key, MAX_PARALLELISM) in groups]


class MemoryFiles:
    """A file store in a dict."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def create(self, name: str) -> MemoryFile:
        if name in self.content:
            raise DamagedFile(f"the name '{name}' is taken")
        return MemoryFile(self, name)

    def read(self, ref: FileRef) -> Iterator[bytes]:
        if ref.name not in self.content:
            raise DamagedFile(f"'{ref.name}' is missing")
        data = self.content[ref.name]
        if hashlib.sha256(data).hexdigest() != ref.sha256:
            raise DamagedFile(f"'{ref.name}' fails its checksum")
        yield data

    def verify(self, ref: FileRef) -> None:
        list(self.read(ref))

    def delete(self, name: str) -> None:
        self.content.pop(name, None)

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self.content if name.startswith(prefix))


class MemoryFile:
    def __init__(self, files: MemoryFiles, name: str) -> None:
        self._files, self._name, self._data = files, name, bytearray()
        self._ended = False

    def write(self, data: bytes) -> None:
        self._data += data

    def finish(self) -> FileRef:
        self._ended = True
        data = bytes(self._data)
        self._files.content[self._name] = data
        return FileRef(name=self._name, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    def discard(self) -> None:
        self._ended = True


class _Line(msgspec.Struct, array_like=True):
    table: int
    start: int
    stop: int
    keys: list[bytes]
    values: list[msgspec.Raw]


@dataclass
class _Entries:
    table: str
    keys: list[Any]
    values: list[Any]


class PlainSnapshots:
    """The smallest snapshot format: a name list, then length-prefixed msgpack lines."""

    def create(self, writer: Any, *, step: str, max_parallelism: int, key_groups: KeyGroupRange, tables: Any):
        return _PlainWriter(writer, max_parallelism, key_groups, [name for name, _ in tables])

    def read(
        self,
        files: Any,
        ref: FileRef,
        wanted: KeyGroupRange,
        codecs: Mapping[str, Any],
        *,
        others: bool = False,
    ) -> Iterator[_Entries]:
        data = b"".join(files.read(ref))
        parts = []
        while data:
            size = int.from_bytes(data[:4], "big")
            parts.append(data[4 : 4 + size])
            data = data[4 + size :]
        limit, names = msgspec.msgpack.decode(parts[0], type=tuple[int, list[str]])
        for part in parts[1:]:
            line = msgspec.msgpack.decode(part, type=_Line)
            if others and names[line.table] not in codecs:
                continue
            decode = msgspec.msgpack.Decoder(codecs[names[line.table]]).decode
            found = [
                (key, decode(value))
                for key, value in zip(map(decode_key, line.keys), line.values, strict=True)
                if key_group(key, limit) in wanted
            ]
            if found:
                yield _Entries(names[line.table], [key for key, _ in found], [value for _, value in found])

    def write_database(self, writer: Any, description: DatabaseDescription) -> FileRef:
        writer.write(msgspec.msgpack.encode(description))
        return writer.finish()

    def read_database(self, files: Any, ref: FileRef) -> DatabaseDescription:
        return msgspec.msgpack.decode(b"".join(files.read(ref)), type=DatabaseDescription)


class _PlainWriter:
    def __init__(self, writer: Any, limit: int, key_groups: KeyGroupRange, names: list[str]) -> None:
        self._writer, self._limit, self._key_groups = writer, limit, key_groups
        self.finished = False
        self._part(msgspec.msgpack.encode((limit, names)))

    def block(self, table: int, groups: KeyGroupRange, keys: Sequence[Any], values: Sequence[Any]) -> None:
        invariant(self._key_groups.covers(groups), "a block lies within the key groups of its file")
        assert all(key_group(key, self._limit) in groups for key in keys), "the block's range covers its keys"
        encoded = [msgspec.Raw(msgspec.msgpack.encode(value)) for value in values]
        assert keys, "no block is empty"
        self._part(
            msgspec.msgpack.encode(
                _Line(table, groups.start, groups.stop, [encode_key(key) for key in keys], encoded)
            )
        )

    def finish(self) -> FileRef:
        self.finished = True
        return self._writer.finish()

    def discard(self) -> None:
        self._writer.discard()

    def _part(self, data: bytes) -> None:
        self._writer.write(len(data).to_bytes(4, "big") + data)


OWN_FILES = "rocksdb files"
"""RocksDB whose snapshots are its own files, however small it is."""

BACKENDS = ("memory", "rocksdb", OWN_FILES)


def make_backend(name: str, directory: Path, *, cache_entries_max: int = 1_000) -> StateBackend:
    if name == "memory":
        return MemoryBackend(snapshots=PlainSnapshots(), scratch=directory / "scratch")
    return RocksDbBackend(
        snapshots=PlainSnapshots(),
        directory=directory,
        cache_entries_max=cache_entries_max,
        options=RocksDbOptions(own_files_min_bytes=0) if name == OWN_FILES else None,
    )


@dataclass
class SetTimes:
    """Times that stand where they are put."""

    now: dict[TimeDomain, int] = field(default_factory=lambda: dict.fromkeys(TimeDomain, 1_000))

    def now_ms(self, by: TimeDomain) -> int:
        return self.now[by]

    touched_ms = reached_ms = now_ms


class Bound:
    """An instance of a keyed function whose states are bound, and their keyed state."""

    def __init__(self, function: Any, state: KeyedState, times: Times | None = None) -> None:
        self.function = function
        self.state = state
        self.cell = CurrentKey()
        self.expiries = Expiries(times or SetTimes())
        bind(function, state, self.cell, StepName("step"), self.expiries)

    def at(self, key: Any) -> Any:
        """The function, called for a key."""
        self.cell.key = normalise_key(key)
        return self.function

    def cut(self, checkpoint: int = 1) -> Any:
        return self.state.cut(CheckpointId(checkpoint), self.expiries.over_ms()).run()


class CompletionThread:
    """Runs completions one after another on a thread of its own; ``results`` have each outcome with what it was
    ``put`` with."""

    def __init__(self) -> None:
        self.results: list[tuple[Any, Any]] = []
        self.failures: list[BaseException] = []
        self._work: SimpleQueue[Any] = SimpleQueue()
        self._thread = Thread(target=self._complete)
        self._thread.start()

    def put(self, completion: Any, expected: Any) -> None:
        self._work.put((completion, expected))

    def join(self) -> None:
        """Wait until all is done."""
        self._work.put(None)
        self._thread.join()

    def _complete(self) -> None:
        while (job := self._work.get()) is not None:
            completion, expected = job
            try:
                self.results.append((completion.run(), expected))
            except BaseException as error:
                self.failures.append(error)
                return


@dataclass
class Place:
    """Where states are opened and re-opened: one file store, names that never come twice."""

    files: MemoryFiles = field(default_factory=MemoryFiles)
    tokens: Iterator[int] = field(default_factory=count)

    def request(
        self,
        tables: Mapping[str, Any],
        restored: Sequence[StateFile] = (),
        *,
        index: int = 0,
        parallelism: int = 1,
        faults: FaultHook = no_faults,
    ) -> KeyedStateRequest:
        return KeyedStateRequest(
            step=StepName("count"),
            subtask_index=index,
            max_parallelism=MAX_PARALLELISM,
            key_groups=key_groups_of(index, parallelism, MAX_PARALLELISM),
            tables=[TableSpec(name=name, kind=kind) for name, kind in tables.items()],
            described={name: describe_type(kind) for name, kind in tables.items()},
            files=self.files,
            file_prefix="a1/count-0/",
            token=self._token(),
            restored=restored,
            faults=faults,
        )

    def request_of(
        self, function: type, restored: Sequence[StateFile] = (), *, index: int = 0, parallelism: int = 1
    ) -> KeyedStateRequest:
        """With the tables of the states a class declares."""
        return replace(
            self.request({}, restored, index=index, parallelism=parallelism),
            tables=table_specs(function),
            described=described_states(function),
        )

    def reader(self) -> StateReader:
        """Reads what is in the files."""
        scratch = LocalDirectories(Path(tempfile.gettempdir()) / "processor-tests")
        return StateReader(files=self.files, format=PlainSnapshots(), scratch=scratch)

    def _token(self) -> Callable[[], str]:
        return lambda: f"{next(self.tokens):08d}"
