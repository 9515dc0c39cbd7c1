"""The sections of the settings that belong to the engine, and the whole that connectors' sections join.

What changes results (maximum parallelism, lateness, names) belongs to the job, not here. Durations are ints
of milliseconds and sizes ints of bytes, whatever unit they were written in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, Field, model_validator

from processor.ids import MAX_PARALLELISM_LIMIT
from processor.settings.cluster import ClusterSettings
from processor.settings.location import StoreLocation
from processor.settings.restart import RestartSettings
from processor.settings.section import Section
from processor.settings.stores import StoreSettings
from processor.settings.units import Duration, Size, at_least_bytes, at_least_ms, duration_text

CONCURRENT_CHECKPOINTS_LIMIT = 16
"""Each holds what changed since the newest decided one, and its outboxes."""

WORKERS_LIMIT = 1_024
"""Each has a connection to every other."""


class StateBackendName(StrEnum):
    MEMORY = "memory"
    ROCKSDB = "rocksdb"


class Compression(StrEnum):
    NONE = "none"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class CheckpointSettings(Section):
    """When checkpoints are taken, where they are kept, how long they may take."""

    directory: StoreLocation | None = Field(
        default=None,
        description="Where checkpoints and decision logs are, one subdirectory a job: a directory, or "
        "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, hdfs://NAME/PATH. Required to run a job; "
        "durable, and not shared by two jobs of one name.",
    )
    log_directory: StoreLocation | None = Field(
        default=None,
        description="Where the decision log is, if it is elsewhere than the files: for a store that cannot create "
        "an object for one writer only. As durable as the files; neither is worth anything without the other.",
    )
    interval: Annotated[Duration, at_least_ms(10)] = Field(
        default=1_000,
        description="From the start of one checkpoint to the start of the next. Output appears once a "
        "checkpoint is published, so this is most of the latency.",
    )
    timeout: Annotated[Duration, at_least_ms(100)] = Field(
        default=60_000,
        description="From the barrier to the last acknowledgement; later the checkpoint is given up. Waiting "
        "for the checkpoint before to be published does not count.",
    )
    unaligned: bool = Field(
        default=False,
        description="Let the barriers of periodic checkpoints overtake records that wait in front of a slow step. "
        "What was overtaken becomes part of the checkpoint, so that its time no longer depends on back-pressure. "
        "Savepoints and stops are aligned all the same.",
    )
    alignment_timeout: Duration = Field(
        default=1_000,
        description="How long a subtask waits until a checkpoint's barriers come by themselves before they overtake; "
        "0: at once. Only with checkpoint.unaligned.",
    )
    min_pause: Duration = Field(
        default=0,
        description="Least time between the end of one checkpoint and the start of the next.",
    )
    max_concurrent: int = Field(
        default=1,
        ge=1,
        le=CONCURRENT_CHECKPOINTS_LIMIT,
        description="Checkpoints that may be under way at once, from their barriers to their decision. More than "
        "one keeps the interval where a checkpoint takes longer than that; they are decided one after another.",
    )
    interval_during_backlog: Duration = Field(
        default=0,
        description="Instead of interval while a source reads a backlog, if it is longer: fewer, larger "
        "checkpoints until the job has caught up.",
    )
    backlog_after: Annotated[Duration, at_least_ms(10)] = Field(
        default=10_000,
        description="A source that has found records at every look for this long is reading a backlog.",
    )
    initial_delay_max: Duration = Field(
        default=1_000,
        description="The first periodic checkpoint starts after a random time up to this, so that jobs "
        "started together do not write together.",
    )
    tolerated_failures: int = Field(
        default=2,
        ge=0,
        description="Checkpoints that may fail in a row before the job restarts from the newest decided one.",
    )
    retained: int = Field(
        default=2,
        ge=2,
        description="Decided checkpoints that are kept; never fewer than the newest and its parent.",
    )
    publish_timeout: Annotated[Duration, at_least_ms(1_000)] = Field(
        default=120_000,
        description="How long publishing a decided checkpoint may go unanswered before the job restarts and "
        "publishes it again.",
    )
    marker_refresh: Annotated[Duration, at_least_ms(1_000)] = Field(
        default=12 * 3_600_000,
        description="How often the marker of a sink subtask that publishes nothing is written again; at most a "
        "quarter of the brokers' offsets.retention.minutes, after which they forget it.",
    )
    decision_timeout: Annotated[Duration, at_least_ms(100)] = Field(
        default=30_000,
        description="How long the outcome of taking a place in the decision log may stay unknown before the "
        "job restarts and finds out.",
    )


class RocksDbSettings(Section):
    """The embedded store's own knobs, for each step with state in each subtask."""

    write_buffer: Annotated[Size, at_least_bytes(2**20)] = Field(
        default=32 * 2**20, description="Memory that collects writes before they go to a file."
    )
    block_cache: Annotated[Size, at_least_bytes(2**20)] = Field(
        default=64 * 2**20, description="Memory for blocks read from files."
    )
    compression: Compression = Field(
        default=Compression.LZ4, description="Of the store's files on the local disk."
    )
    background_jobs: int = Field(default=2, ge=1, le=64, description="Threads that flush and compact.")


class StateSettings(Section):
    """Where keyed state lives while the job runs."""

    backend: StateBackendName = Field(
        default=StateBackendName.MEMORY,
        description="memory: in this process, the fastest. rocksdb: on the local disk, for state larger than "
        "memory. A checkpoint of either restores into either.",
    )
    directory: Path | None = Field(
        default=None,
        description="Local scratch space for the rocksdb backend, emptied at every start; by default a fresh "
        "directory of the system's temporary space. Never the only copy of anything.",
    )
    cache_entries_max: int = Field(
        default=500_000,
        ge=1_000,
        description="Values of one step in one subtask held decoded in memory. When all of them are changed "
        "and unwritten, sources wait for the checkpoint.",
    )
    local_recovery: bool = Field(
        default=True,
        description="Keep copies of RocksDB's files on the local disk when checkpoints are not on this machine: a "
        "restart here uses them, if their hashes fit, and fetches only what is missing.",
    )
    rocksdb: RocksDbSettings = Field(default_factory=RocksDbSettings, description="The embedded store.")


class RuntimeSettings(Section):
    """How the job is run on this machine."""

    workers: int = Field(
        default=1,
        ge=1,
        le=WORKERS_LIMIT,
        description="Processes that share the job's subtasks. With 1 everything is in the process that was started; "
        "with more each is a process of its own, beside one that coordinates them.",
    )
    parallelism: int | None = Field(
        default=None,
        ge=1,
        le=MAX_PARALLELISM_LIMIT,
        description="Parallel copies of each step of a job that does not say itself; by default as many as workers.",
    )
    worker_start_timeout: Annotated[Duration, at_least_ms(1_000)] = Field(
        default=60_000,
        description="How long worker processes may take to start, with all that the job imports, before the attempt "
        "fails.",
    )
    batch_records_max: int = Field(
        default=2_000, ge=1, le=100_000, description="Most records a source hands on at once."
    )
    channel_batches_max: int = Field(
        default=16,
        ge=1,
        le=10_000,
        description="Batches waiting between two subtasks of one worker before the producer waits.",
    )
    channel_bytes_max: Annotated[Size, at_least_bytes(2**14)] = Field(
        default=2**20,
        description="Bytes on their way between two subtasks of different workers before the producer waits. Soft by "
        "what one step of the producer emits.",
    )
    elements_per_turn: int = Field(
        default=8,
        ge=1,
        le=10_000,
        description="How many batches or marks a step behind a channel takes before other steps have their turn: "
        "enough to drain what one turn of the sources brings, few enough that sources and barriers wait for no "
        "slow step.",
    )
    outbox_bytes_max: Annotated[Size, at_least_bytes(2**16)] = Field(
        default=128 * 2**20,
        description="Undecided output of one sink subtask at which a checkpoint is asked for at once and "
        "sources stop until it is taken. Soft: what is on its way still goes in.",
    )
    control_directory: Path | None = Field(
        default=None,
        description="Local directory of the control sockets, by which status, savepoint and stop find a job; by "
        "default checkpoint.directory, or, with an object store, a private one in the system's temporary space.",
    )
    grace_period: Annotated[Duration, at_least_ms(100)] = Field(
        default=30_000,
        description="After SIGTERM or Ctrl-C: time for a last checkpoint and its publishing before the job "
        "ends all the same. Nothing is lost then; the next start goes on from the checkpoint before.",
    )
    restart: RestartSettings = Field(default_factory=RestartSettings, description="What follows a failure.")
    heartbeat_interval: Annotated[Duration, at_least_ms(10)] = Field(
        default=1_000,
        description="How often a worker in a process of its own says that it is there.",
    )
    heartbeat_timeout: Annotated[Duration, at_least_ms(100)] = Field(
        default=30_000,
        description="A worker that is silent for this long is lost: it is ended, and the job restarts. One whose "
        "process dies is missed at once. At least two intervals.",
    )
    hang_timeout: Annotated[Duration, at_least_ms(100)] = Field(
        default=300_000,
        description="A worker that is heard, but is in one call for this long, hangs: it is ended, and the job "
        "restarts. After half of it the log says where it stands. Longer than heartbeat_timeout, and than any call "
        "of the job's own functions may take.",
    )
    discovery_interval: Annotated[Duration, at_least_ms(100)] = Field(
        default=10_000, description="How often sources look for new partitions."
    )
    idle_wait: Annotated[Duration, at_least_ms(1)] = Field(
        default=50, description="Longest wait for a first record while there is nothing else to do."
    )
    cluster: ClusterSettings = Field(
        default_factory=ClusterSettings,
        description="Workers on several machines.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> RuntimeSettings:
        if self.heartbeat_timeout < 2 * self.heartbeat_interval:
            raise ValueError(
                f"heartbeat_timeout {duration_text(self.heartbeat_timeout)} is less than two of heartbeat_interval "
                f"{duration_text(self.heartbeat_interval)}: one that is late would count as lost"
            )
        if self.hang_timeout <= self.heartbeat_timeout:
            raise ValueError(
                f"hang_timeout {duration_text(self.hang_timeout)} is not longer than heartbeat_timeout "
                f"{duration_text(self.heartbeat_timeout)}: one that was stopped for a moment would count as hanging"
            )
        if self.cluster.workers_min is not None and self.cluster.workers_min > self.workers:
            raise ValueError(
                f"cluster.workers_min {self.cluster.workers_min} is more than workers {self.workers}: so many never "
                "come"
            )
        return self

    @property
    def default_parallelism(self) -> int:
        """Of steps of a job that does not say itself."""
        return self.workers if self.parallelism is None else self.parallelism


class LogSettings(Section):
    """What the process writes to standard error."""

    format: LogFormat = Field(
        default=LogFormat.TEXT, description="text: for people. json: one object a line."
    )
    level: LogLevel = Field(
        default=LogLevel.INFO,
        description="debug also prints the tracebacks of errors that are otherwise told in a sentence.",
    )
    progress_interval: Annotated[Duration, at_least_ms(100)] = Field(
        default=5_000,
        description="How often the log says how far the job has come; back-pressure is measured over the same time.",
    )


CORE_SECTIONS: Mapping[str, type[Section]] = MappingProxyType(
    {
        "checkpoint": CheckpointSettings,
        "stores": StoreSettings,
        "state": StateSettings,
        "runtime": RuntimeSettings,
        "log": LogSettings,
    }
)
"""The engine's sections by name, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set: the engine's sections as attributes, connectors' by plugin name."""

    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)
    stores: StoreSettings = field(default_factory=StoreSettings)
    state: StateSettings = field(default_factory=StateSettings)
    runtime: RuntimeSettings = field(default_factory=RuntimeSettings)
    log: LogSettings = field(default_factory=LogSettings)
    plugins: Mapping[str, BaseModel] = field(default_factory=dict)
    """As ``SourceContext.settings`` and ``SinkContext.settings`` take it."""
