"""Records that barriers overtook: from the channels of one subtask into files of the checkpoint (A10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from processor.contracts.file_store import FileStore
from processor.ids import EdgeName, KeyGroupRange
from processor.invariant import invariant
from processor.protocol.entries import ChannelFile
from processor.records.batch import Batch
from processor.records.elements import Idle, Watermark
from processor.records.value_codec import ValueCodec
from processor.storage.channel_file import (
    ChannelFileHeader,
    ChannelFileWriter,
    ChannelHead,
    FrozenBatch,
    InFlight,
    freeze,
)
from processor.storage.layout import FileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Overtaken:
    """One channel at the moment at which the barrier overtook what was in flight on it."""

    edge: EdgeName
    head: ChannelHead
    elements: tuple[InFlight, ...]

    @property
    def records(self) -> int:
        return sum(len(element) for element in self.elements if isinstance(element, Batch))


class ChannelSnapshot(Protocol):
    """What was in flight at a cut, to be written. Giving it up frees nothing: the records are on their way."""

    def run(self) -> tuple[ChannelFile, ...]:
        """All I/O, in the background. Raises UserCodeError, Unavailable."""
        ...


class FreezeInFlight(Protocol):
    """The synchronous phase for what is in flight: bounded by the bounds of channels, without I/O."""

    def __call__(self, channels: Sequence[Overtaken]) -> ChannelSnapshot: ...


class _NothingInFlight:
    def run(self) -> tuple[ChannelFile, ...]:
        return ()


def nothing_in_flight() -> ChannelSnapshot:
    return _NothingInFlight()


def nothing_is_overtaken(channels: Sequence[Overtaken]) -> ChannelSnapshot:
    """For a gate whose barriers never overtake."""
    invariant(not channels, "barriers overtake only where what they overtake is kept")
    return nothing_in_flight()


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlightFiles:
    """Makes the files of one subtask, one for each edge on which records were in flight."""

    files: FileStore
    file_prefix: str
    token: Callable[[], str]
    key_groups: KeyGroupRange
    codecs: Mapping[EdgeName, ValueCodec]
    """Of every edge that may be overtaken."""

    def freeze(self, channels: Sequence[Overtaken]) -> ChannelSnapshot:
        """Encode the values now: their functions may change them as soon as the cut is over."""
        edges = sorted({channel.edge for channel in channels if channel.records})
        if not edges:
            return nothing_in_flight()
        try:
            frozen = tuple(
                self._freeze_edge(edge, [channel for channel in channels if channel.edge == edge])
                for edge in edges
            )
        except Exception as error:  # it fails the checkpoint, not the subtask
            return _Refused(error)
        return _InFlight(self, frozen)

    def _freeze_edge(self, edge: EdgeName, channels: Sequence[Overtaken]) -> _FrozenEdge:
        elements: list[tuple[int, FrozenBatch | Watermark | Idle]] = []
        for index, channel in enumerate(channels):
            for element in channel.elements:
                if isinstance(element, Batch):
                    elements += ((index, piece) for piece in freeze(element, self.codecs[edge]))
                else:
                    elements.append((index, element))
        header = ChannelFileHeader(edge=edge, channels=tuple(channel.head for channel in channels))
        return _FrozenEdge(
            header=header,
            elements=tuple(elements),
            records=sum(channel.records for channel in channels),
        )

    def write(self, frozen: _FrozenEdge) -> ChannelFile:
        """One file, durable. Raises UserCodeError for values that could not be read back; Unavailable."""
        edge = frozen.header.edge
        writer = ChannelFileWriter(
            self.files, f"{self.file_prefix}{self.token()}.{FileKind.CHANNEL}", frozen.header
        )
        try:
            for channel, element in frozen.elements:
                if isinstance(element, FrozenBatch):
                    self.codecs[edge].verify(element.values)
                writer.write(channel, element)
            ref = writer.finish()
        except BaseException:
            writer.discard()
            raise
        return ChannelFile(edge=edge, file=ref, key_groups=self.key_groups, records=frozen.records)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FrozenEdge:
    header: ChannelFileHeader
    elements: tuple[tuple[int, FrozenBatch | Watermark | Idle], ...]
    records: int


class _InFlight:
    def __init__(self, files: InFlightFiles, frozen: tuple[_FrozenEdge, ...]) -> None:
        self._files = files
        self._frozen = frozen

    def run(self) -> tuple[ChannelFile, ...]:
        return tuple(self._files.write(edge) for edge in self._frozen)


class _Refused:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def run(self) -> tuple[ChannelFile, ...]:
        raise self._error


def in_front(elements: Sequence[Any]) -> tuple[InFlight, ...]:
    """What of the elements in front of a barrier belongs to its checkpoint."""
    return tuple(
        element
        for element in elements
        if isinstance(element, Batch | Idle) or (isinstance(element, Watermark) and not element.last)
    )
