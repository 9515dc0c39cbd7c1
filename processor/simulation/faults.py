"""What may go wrong in a simulated run, and how often: one record, from which the seed chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any


class Act(StrEnum):
    """What is done to a victim."""

    KILL = "kill"
    """SIGKILL of the process; it is started again."""
    SLEEP = "sleep"
    """SIGSTOP, past time-outs, then SIGCONT."""
    REPLACE = "replace"
    """SIGSTOP, and a second process is started meanwhile; then SIGCONT: a zombie."""
    CUT = "cut"
    """The process does not reach the brokers for a while; the brokers live."""
    AWAY = "away"
    """The brokers answer nobody for a while."""
    CRASH = "crash"
    """The machine loses its power: all processes, and what was not synced."""


VICTIM: Mapping[Act, str] = {
    Act.KILL: "process",
    Act.SLEEP: "process",
    Act.REPLACE: "process",
    Act.CUT: "link",
    Act.AWAY: "broker",
    Act.CRASH: "machine",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Probabilities, and rates per simulated minute. Everything is off unless it is set."""

    points: float = 0.0
    """How many named points of a checkpoint or a recovery are struck in a run, on average."""

    kills: float = 0.0
    """Per minute, at any moment; likewise the next five."""
    sleeps: float = 0.0
    replacements: float = 0.0
    cuts: float = 0.0
    absences: float = 0.0
    crashes: float = 0.0
    second_daemons: float = 0.0
    """Per minute: a second process is started beside one that runs."""
    clock_jumps: float = 0.0
    """Per minute: the wall clock moves by up to an hour either way."""
    disk_full: float = 0.0
    """Per minute: the disk is full for a while."""
    streams_break: float = 0.0
    """Per minute: a connection between two workers breaks."""
    writes_doubled: float = 0.0
    """Of a write to such a connection: it comes twice. No network does that to a stream, so it is in no choice of
    faults; it shows that whoever reads would notice. Likewise the next."""
    writes_lost: float = 0.0

    sync_fails: float = 0.0
    """Of a sync: EIO."""
    damages: float = 0.0
    """Of a recovery that has sealed the log: a file of the newest decided checkpoint is damaged. The operator
    restores it when a process has stopped and named it."""
    disk_slow: float = 0.0
    """Of an act on the disk: it takes up to seconds."""

    message_lost: float = 0.0
    """Of an order or report between coordinator and worker; likewise the next two."""
    message_late: float = 0.0
    message_doubled: float = 0.0

    request_lost: float = 0.0
    """Of a request to a broker; likewise the next four."""
    answer_lost: float = 0.0
    request_doubled: float = 0.0
    request_slow: float = 0.0
    lost_comes_late: float = 0.0
    """Of a request that was lost or doubled: it takes effect up to a minute later."""
    stale_reads: float = 0.0
    """Of a read of a group's offsets: a coordinator that slept through its succession answers from memory."""
    late_markers: float = 0.0
    """Of the end of a transaction at a partition: it is seen there up to seconds later."""
    leaders_lost: float = 0.0
    """Of rows that reach a partition: it has no leader for some seconds, and transactions end without it."""

    until_ms: int = 0
    """When faults stop; from then on the run must come to its end."""

    @classmethod
    def none(cls) -> Faults:
        """Nothing goes wrong."""
        return cls()

    @classmethod
    def light(cls) -> Faults:
        """What a bad day brings."""
        return cls(
            points=0.5,
            kills=2,
            sleeps=1,
            absences=1,
            message_late=0.05,
            request_lost=0.002,
            answer_lost=0.002,
            request_slow=0.01,
            late_markers=0.05,
            disk_slow=0.002,
            until_ms=15_000,
        )

    @classmethod
    def heavy(cls) -> Faults:
        """Everything at once."""
        return cls(
            points=2,
            kills=4,
            sleeps=2,
            replacements=3,
            cuts=2,
            absences=2,
            crashes=2,
            second_daemons=1,
            clock_jumps=2,
            disk_full=1,
            streams_break=3,
            sync_fails=0.002,
            damages=0.06,
            disk_slow=0.005,
            message_lost=0.004,
            message_late=0.1,
            message_doubled=0.03,
            request_lost=0.008,
            answer_lost=0.01,
            request_doubled=0.005,
            request_slow=0.02,
            lost_comes_late=0.5,
            stale_reads=0.05,
            late_markers=0.1,
            leaders_lost=0.05,
            until_ms=20_000,
        )

    def without(self, *names: str) -> Faults:
        """The same without these, by their names here."""
        off: dict[str, Any] = dict.fromkeys(names, 0.0)
        return replace(self, **off)

    def kinds(self) -> tuple[str, ...]:
        """Names of what is on."""
        return tuple(f.name for f in fields(self) if f.name != "until_ms" and getattr(self, f.name))

    def times(self, factor: float) -> Faults:
        """Everything so many times as often."""
        more: dict[str, Any] = {name: getattr(self, name) * factor for name in self.kinds()}
        return replace(self, **more)
