"""Records in flight find their channels again, or the restore is refused by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from processor.errors import DamagedFile, JobError
from processor.ids import EdgeName, StepName, SubtaskId, key_groups_of, owner_of
from processor.operators.context import Context
from processor.operators.process_function import KeyedProcess
from processor.plan.chaining import plan as lay_out
from processor.plan.execution import ExecutionPlan
from processor.plan.graph import EdgeKind
from processor.protocol.entries import ChannelFile, CheckpointEntry, JobShape, SubtaskSnapshot
from processor.records.batch import Batch
from processor.records.elements import Watermark
from processor.records.key_groups import key_group
from processor.records.value_codec import ValueCodec
from processor.runtime.restored_channels import restored_channels
from processor.storage.channel_file import ChannelFileHeader, ChannelFileWriter, ChannelHead, freeze
from processor.stream.job import Job
from tests.unit.storage.entries_made import checkpoint
from tests.unit.storage.memory_files import MemoryFiles
from tests.unit.task.kit import ListSource, MemorySink, Outside

LIMIT = 16
EDGE = EdgeName(origin=StepName("by-key"), output="", target=StepName("send"), input=0)


class Send(KeyedProcess[str, str, str]):
    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        context.emit(value)


def everywhere(subtask: SubtaskId) -> bool:
    return True


def own_key(value: str) -> str:
    return value


def layout(parallelism: int, *, send: str = "send", consumers: int | None = None) -> ExecutionPlan:
    job = Job("job", max_parallelism=LIMIT)
    keyed = job.read("read", ListSource({"lines/0": []})).key_by("by-key", own_key)
    keyed.process(send, Send, parallelism=consumers).write("write", MemorySink(Outside()), parallelism=1)
    return lay_out(job.graph(), parallelism)


def taken(plan: ExecutionPlan, files: MemoryFiles, keys: list[list[str]]) -> CheckpointEntry:
    """A checkpoint with a batch of these keys on its way from each producer, and a watermark behind it."""
    consumers = plan.chains[StepName("send")].parallelism
    parts = []
    for consumer in range(consumers):
        heads = tuple(ChannelHead(producer=p, watermark_ms=10 + p) for p in range(len(keys)))
        name = f"a1/send-{consumer}/c.channel"
        writer = ChannelFileWriter(files, name, ChannelFileHeader(edge=EDGE, channels=heads))
        records = 0
        for producer, sent in enumerate(keys):
            mine = [key for key in sent if owner_of(key_group(key, LIMIT), consumers, LIMIT) == consumer]
            if mine:
                batch = Batch(values=mine, timestamps=[0] * len(mine), keys=mine)
                for piece in freeze(batch, ValueCodec(str, "")):
                    writer.write(producer, piece)
                writer.write(producer, Watermark(20))
                records += len(mine)
        held = ChannelFile(
            edge=EDGE,
            file=writer.finish(),
            key_groups=key_groups_of(consumer, consumers, LIMIT),
            records=records,
        )
        parts.append(SubtaskSnapshot(subtask=SubtaskId(StepName("send"), consumer), channels=(held,)))
    shape = JobShape(max_parallelism=LIMIT, parallelism=plan.shape.parallelism, stateful={})
    return replace(checkpoint(2, 1, 1), shape=shape, subtasks=tuple(parts))


KEYS = [["a", "b", "c", "a"], ["d", "e"]]


def test_in_the_same_layout_each_channel_gets_back_what_was_on_it():
    plan, files = layout(2), MemoryFiles()
    restored = restored_channels(taken(plan, files, KEYS), plan, files, everywhere)
    assert not any(channel.adopted for channel in restored.values())
    for link, channel in restored.items():
        producer, consumer = link.producer.index, link.consumer.index
        assert channel.watermark_ms == 10 + producer
        wanted = [key for key in KEYS[producer] if owner_of(key_group(key, LIMIT), 2, LIMIT) == consumer]
        batches = [element for element in channel.elements if isinstance(element, Batch)]
        assert [value for batch in batches for value in batch.values] == wanted
        assert (Watermark(20) in channel.elements) == bool(wanted)


@pytest.mark.parametrize("after", [1, 3, 5])
def test_in_another_layout_records_go_by_key_group_and_marks_are_left_out(after):
    files = MemoryFiles()
    entry = taken(layout(2), files, KEYS)
    plan = layout(after)
    restored = restored_channels(entry, plan, files, everywhere)
    found: list[str] = []
    for link, channel in restored.items():
        assert channel.adopted
        for element in channel.elements:
            assert isinstance(element, Batch)
            for value in element.values:
                assert owner_of(key_group(value, LIMIT), after, LIMIT) == link.consumer.index
                found.append(value)
    assert sorted(found) == sorted(key for sent in KEYS for key in sent)


def test_a_layout_that_differs_anywhere_counts_as_another():
    """A split that moved in front of an edge sends on another channel of it, though the edge is as it was."""
    files = MemoryFiles()
    entry = taken(layout(2, consumers=2), files, KEYS)
    shape = replace(entry.shape, parallelism={**entry.shape.parallelism, StepName("elsewhere"): 4})
    plan = layout(2, consumers=2)
    restored = restored_channels(replace(entry, shape=shape), plan, files, everywhere)
    assert all(channel.adopted for channel in restored.values())


def test_records_on_an_edge_that_is_no_more_are_refused_with_what_to_do():
    files = MemoryFiles()
    entry = taken(layout(1), files, KEYS)
    with pytest.raises(JobError, match=r"6 records in flight from step 'by-key' to input 0 of step 'send'"):
        restored_channels(entry, layout(1, send="renamed"), files, everywhere)
    with pytest.raises(JobError, match="stop it with a savepoint"):
        restored_channels(entry, layout(1, send="renamed"), files, everywhere)


def test_a_checkpoint_without_anything_in_flight_asks_nothing_of_the_job():
    assert restored_channels(checkpoint(2, 1, 1), layout(2), MemoryFiles(), everywhere) == {}


def test_r08_a_damaged_file_of_records_in_flight_is_refused_by_name():
    files = MemoryFiles()
    entry = taken(layout(1), files, KEYS)
    files.content["a1/send-0/c.channel"] = files.content["a1/send-0/c.channel"][:-1]
    with pytest.raises(DamagedFile, match=r"a1/send-0/c.channel"):
        restored_channels(entry, layout(1), files, everywhere)


def test_r27_only_edges_that_are_keyed_at_any_parallelism_may_be_overtaken():
    plan = layout(2, consumers=3)
    kinds = {(channel.consumer, channel.kind, channel.overtakable) for channel in plan.channels}
    assert kinds == {
        ("send", EdgeKind.KEYED, True),
        ("write", EdgeKind.KEYED, False),  # with the same parallelism there would be no channel
    }
