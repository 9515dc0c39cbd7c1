"""What each channel gets of the records in flight of the checkpoint an attempt starts from (A10, R27).

With every chain as parallel as it was, each channel gets back what was on it, marks included, and the order of
everything is what it would have been. Else records go by their key group, in order per key, and the marks
between them are left out: event time is told again by the sources, and lateness goes by the time that is kept
per key group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from processor.contracts.file_store import FileStore
from processor.errors import JobError
from processor.ids import EdgeName, KeyGroupRange, SubtaskId, key_groups_of, owner_of
from processor.invariant import invariant
from processor.plan.execution import ChannelPlan, ExecutionPlan
from processor.plan.subtasks import Link
from processor.protocol.entries import ChannelFile, CheckpointEntry
from processor.records.batch import Batch
from processor.records.elements import MIN_TIME_MS
from processor.records.key_groups import key_group
from processor.records.value_codec import ValueCodec
from processor.storage.channel_file import ChannelContent, InFlight, read_channels


@dataclass(slots=True)
class RestoredChannel:
    """What a channel begins with."""

    watermark_ms: int = MIN_TIME_MS
    """Event time that it had told."""
    silent: bool = False
    """It held nobody back."""
    elements: list[InFlight] = field(default_factory=list)
    adopted: bool = False
    """The elements were in flight under another layout."""


def codecs_of(plan: ExecutionPlan) -> Mapping[EdgeName, ValueCodec]:
    """Of every edge that barriers may overtake."""
    return {
        channel.name: ValueCodec(channel.value_type, str(channel.name))
        for channel in plan.channels
        if channel.overtakable
    }


def restored_channels(
    entry: CheckpointEntry, plan: ExecutionPlan, files: FileStore, here: Callable[[SubtaskId], bool]
) -> Mapping[Link, RestoredChannel]:
    """By link; links that are not named begin empty. Of subtasks that are not ``here`` none need be named.

    Raises JobError when records were in flight on an edge that the job no longer has; DamagedFile by name.
    """
    if not entry.records_in_flight:
        return {}
    edges = {channel.name: index for index, channel in enumerate(plan.channels) if channel.overtakable}
    codecs = codecs_of(plan)
    same_layout = plan.shape.parallelism == entry.shape.parallelism
    restored: dict[Link, RestoredChannel] = {}
    for subtask in entry.subtasks:
        for held in subtask.channels:
            if held.edge not in edges:
                raise _no_such_edge(entry, held)
            edge = edges[held.edge]
            if same_layout:
                consumer = _in_the_same_layout(plan, edge, held.key_groups)
                if here(consumer):
                    channels = read_channels(files, held.file, codecs[held.edge])
                    _give_back(restored, plan.channels[edge], edge, consumer, channels)
            else:
                channels = read_channels(files, held.file, codecs[held.edge])
                _spread(restored, plan, edge, channels)
    return restored


def _in_the_same_layout(plan: ExecutionPlan, edge: int, key_groups: KeyGroupRange) -> SubtaskId:
    """Who has the key groups."""
    channel = plan.channels[edge]
    consumers = plan.chains[channel.consumer].parallelism
    consumer = owner_of(key_groups.start, consumers, plan.max_parallelism)
    invariant(
        key_groups_of(consumer, consumers, plan.max_parallelism) == key_groups,
        "in the same layout every subtask has the key groups it had",
    )
    return SubtaskId(channel.consumer, consumer)


def _give_back(
    restored: dict[Link, RestoredChannel],
    channel: ChannelPlan,
    edge: int,
    consumer: SubtaskId,
    channels: tuple[ChannelContent, ...],
) -> None:
    for content in channels:
        link = _link(channel, edge, content.head.producer, consumer.index)
        told_ms = content.head.watermark_ms
        restored[link] = RestoredChannel(
            watermark_ms=MIN_TIME_MS if told_ms is None else told_ms,
            silent=content.head.silent,
            elements=list(content.elements),
        )


def _spread(
    restored: dict[Link, RestoredChannel],
    plan: ExecutionPlan,
    edge: int,
    channels: tuple[ChannelContent, ...],
) -> None:
    channel = plan.channels[edge]
    producers = plan.chains[channel.producer].parallelism
    consumers = plan.chains[channel.consumer].parallelism
    for content in channels:
        # Any producer will do: what it sends comes behind all of this, on every channel.
        producer = content.head.producer % producers
        for element in content.elements:
            if isinstance(element, Batch):
                for consumer, part in _by_owner(element, consumers, plan.max_parallelism):
                    link = _link(channel, edge, producer, consumer)
                    restored.setdefault(link, RestoredChannel(adopted=True)).elements.append(part)


def _by_owner(
    batch: Batch[object], consumers: int, max_parallelism: int
) -> Iterator[tuple[int, Batch[object]]]:
    keys = batch.keys
    invariant(keys is not None, "records that were overtaken have keys")
    assert keys is not None
    indexes: dict[int, list[int]] = {}
    for index, key in enumerate(keys):
        owner = owner_of(key_group(key, max_parallelism), consumers, max_parallelism)
        indexes.setdefault(owner, []).append(index)
    for owner, chosen in indexes.items():
        yield owner, batch.take(chosen)


def _link(channel: ChannelPlan, edge: int, producer: int, consumer: int) -> Link:
    return Link(
        edge=edge,
        producer=SubtaskId(channel.producer, producer),
        consumer=SubtaskId(channel.consumer, consumer),
    )


def _no_such_edge(entry: CheckpointEntry, held: ChannelFile) -> JobError:
    return JobError(
        f"checkpoint {entry.checkpoint} holds {held.records} records in flight {held.edge}, and the job has no "
        "keyed edge there.",
        remedy="Start the job as it was, stop it with a savepoint, which holds nothing in flight, and start the "
        "changed job from that.",
    )
