"""The house a newcomer walks through: one attempt of a word count, run by hand, one small step at a time.

All parts are the product's own, put together by its own runtime: plan, subtasks, memory channels, state,
decision log, and a real storage directory. Only the ends are in memory (a source over lists, an outside system
with transactions), background work waits until it is told to run, and the clock stands still.

    read[0] ──┐  key groups  ┌── count[0] ── outbox of out[0]
              ├──────────────┤
    read[1] ──┘              └── count[1] ── outbox of out[1]
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from processor.channels.memory import MemoryChannel
from processor.contracts.policy import Fail
from processor.ids import JobName, PublisherId, StepName
from processor.operators.aggregates import Count
from processor.plan.layout import Layout
from processor.protocol.checkpoint_statistics import CheckpointStatistics
from processor.protocol.coordinator import Coordinator
from processor.protocol.coordinator_messages import Tick
from processor.protocol.decisions import LogView
from processor.runtime.attempt import AttemptParts, RunningAttempt
from processor.runtime.driver import Driver
from processor.runtime.start_options import StartOptions
from processor.settings.model import CheckpointSettings, RuntimeSettings, Settings
from processor.state.backends import MemoryBackend
from processor.storage.decision_log import DecisionLog
from processor.storage.directory import open_job_directory
from processor.storage.snapshot_file import SnapshotFiles
from processor.stream.job import Job
from processor.task.subtask import Subtask
from processor.telemetry.log import get_log
from processor.telemetry.metrics import Metrics
from tests.unit.operators.kit import SetClock
from tests.unit.runtime.kit import CountedChance
from tests.unit.task.kit import ListSource, MemorySink, OnDemand, Outside, short

INTERVAL_MS = 1_000


class Word(msgspec.Struct, frozen=True):
    text: str
    time_ms: int


def text_of(word: Word) -> str:
    return word.text


def time_of(word: Word) -> int:
    return word.time_ms


class LastChance(CountedChance):
    """The random delay before the first checkpoint is as long as it can be."""

    def below(self, limit: int) -> int:
        return limit - 1


class House:
    """``House(path, words, outside)`` starts an attempt: over an empty directory the first, else the next."""

    def __init__(self, path: Path, words: dict[str, list[Word]], outside: Outside) -> None:
        self.source = ListSource(words, kind=Word)
        self.outside = outside
        self.executor = OnDemand()
        self.clock = SetClock()
        chance = LastChance()
        layout = Layout.at(self._job().graph(), 2)
        self.directory = open_job_directory(path, layout.plan.job, token=chance.token)
        self._log = DecisionLog(self.directory.log)
        self._attempt = RunningAttempt(
            AttemptParts(
                layout=layout,
                settings=Settings(
                    checkpoint=CheckpointSettings(
                        directory=path, interval=f"{INTERVAL_MS}ms", initial_delay_max=f"{INTERVAL_MS}ms"
                    ),
                    runtime=RuntimeSettings(parallelism=2, batch_records_max=2),
                ),
                store=self.directory,
                backend=MemoryBackend(snapshots=SnapshotFiles()),
                clock=self.clock,
                chance=chance,
                metrics=Metrics(),
                statistics=CheckpointStatistics(),
                executor=lambda: self.executor,
                faults=lambda point: None,
                say=get_log("journey"),
            )
        )
        self._attempt.open(StartOptions(), lambda: False)
        workers: Any = self._attempt._workers  # the runtime turns it as a whole; here it goes step by step
        by_name: dict[str, Subtask] = {str(subtask.id): subtask for subtask in workers._worker._subtasks}
        self.read = (by_name["read[0]"], by_name["read[1]"])
        self.count = (by_name["count[0]"], by_name["count[1]"])

    def _job(self) -> Job:
        job = Job("words", on_error=Fail())
        stream = job.read("read", self.source).event_time(time_of, disorder=timedelta(milliseconds=5))
        stream.key_by("word", text_of).aggregate("count", Count()).write("out", MemorySink(self.outside))
        return job

    # --- to look at

    def channel(self, producer: int, consumer: int) -> MemoryChannel:
        (output,) = self.read[producer].parts.outputs.outputs
        channel = output.senders[consumer]
        assert isinstance(channel, MemoryChannel)
        return channel

    def waiting(self, producer: int, consumer: int) -> list[Any]:
        """What waits in a channel, in short form: texts of words, times of watermarks, barriers."""
        found = []
        for element in list(self.channel(producer, consumer)._queue._elements):
            told = short(element)
            found.append([word.text for word in told] if isinstance(told, list) else told)
        return found

    @property
    def coordinator(self) -> Coordinator:
        coordinator = self._attempt.coordinator
        assert coordinator is not None
        return coordinator

    @property
    def driver(self) -> Driver:
        driver = self._attempt.driver
        assert driver is not None
        return driver

    @property
    def log(self) -> LogView:
        return self._log.read_all()

    def recorded(self) -> int | None:
        """The checkpoint that the note beside the log says is published."""
        note = self._log.published()
        return None if note is None else note.checkpoint

    def files(self, kind: str) -> list[str]:
        """Files of checkpoints on the disk: "state" or "outbox"."""
        return [name for name in self.directory.files.names("") if name.endswith(kind)]

    def out(self) -> list[str]:
        """What a reader of the outside system sees, of both identities."""
        return [(row or b"").decode() for row in self.outside.rows()]

    def identity(self, subtask: int) -> PublisherId:
        return PublisherId(JobName("words"), StepName("out"), subtask)

    # --- to do

    def step(self, subtask: Subtask) -> bool:
        """One step: at most one element."""
        return subtask.step(pressed=False)

    def run(self, *subtasks: Subtask) -> None:
        """Steps of these until they rest."""
        while any([self.step(subtask) for subtask in subtasks]):  # noqa: C419 - all of them, every time
            pass

    def time_passes(self, passed_ms: int) -> None:
        self.clock.now_ms += passed_ms
        self.driver.handle(Tick())

    def background(self, most: int | None = None) -> int:
        """Let background work run (``most`` pieces of it) and deliver its results."""
        did = self.executor.run(most)
        self.executor.deliver()
        return did

    def die(self) -> None:
        """As by SIGKILL: nothing is finished and nothing is said. Only what is on the disk stays."""
        self.executor.close()
