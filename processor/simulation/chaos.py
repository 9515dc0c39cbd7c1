"""Does to processes, machine and brokers what the seed wants, while a run is under way."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from random import Random

from processor.fault_points import FaultHook, FaultPoint
from processor.simulation.clock import WallClock
from processor.simulation.faults import Act
from processor.simulation.injection import Injection
from processor.simulation.machine import FileNode, MachineDisk
from processor.simulation.network import SimulatedNetwork
from processor.simulation.process import SimulatedProcess
from processor.simulation.streams import Streams
from processor.simulation.unit import Unit
from processor.simulation.world import US_PER_MS, World

SLEEP_MS = (50, 12_000)
AWAY_MS = (20, 6_000)
FULL_MS = (50, 3_000)
CLOCK_OFF_MS = 3_000_000
"""Brokers take no timestamps that are more than an hour ahead of their own clock."""
DISK_US_MAX = 400
DISK_SLOW_MS_MAX = 3_000
UNITS_MAX = 4
"""Daemons of one job at the same time; more would only be more of the same."""


class Chaos:
    """Owns the units of a run."""

    def __init__(
        self,
        world: World,
        injection: Injection,
        *,
        network: SimulatedNetwork,
        disk: MachineDisk,
        wall: WallClock,
        streams: Streams,
        another: Callable[[], Unit],
        newest_files: Callable[[], list[FileNode]],
    ) -> None:
        """``another`` makes a further unit of the same job, not yet started. ``newest_files``: of the newest
        decided checkpoint, those that are there."""
        self._world = world
        self._injection = injection
        self._network = network
        self._disk = disk
        self._wall = wall
        self._streams = streams
        self._another = another
        self._newest_files = newest_files
        self._disk_pace = world.chance("disk")
        self._crash_chance = world.chance("crash")
        self.units: list[Unit] = []
        self.sealed_last: SimulatedProcess | None = None
        self._latest_ms = 0
        """How far ahead the wall clock has ever been."""
        self.more_units = True
        """Whether second daemons are started."""
        self.forgotten = 0
        """Things that were written, not synced, and lost by crashes."""

    def begin(self) -> None:
        """Start the rates."""
        faults = self._injection.faults
        for kind, per_minute, act in (
            ("kill", faults.kills, self._kill_one),
            ("sleep", faults.sleeps, self._sleep_one),
            ("replace", faults.replacements, self._replace_one),
            ("cut", faults.cuts, self._cut_one),
            ("away", faults.absences, self._away),
            ("crash", faults.crashes, self._crash_now),
            ("second daemon", faults.second_daemons, self._second_daemon),
            ("clock jump", faults.clock_jumps, self._clock_jump),
            ("disk full", faults.disk_full, self._disk_full),
            ("stream breaks", faults.streams_break, self._streams.break_one),
        ):
            self._repeat(kind, per_minute, act)
        self._world.later(faults.until_ms * US_PER_MS, self._clock_right)

    def _repeat(self, kind: str, per_minute: float, act: Callable[[str], None]) -> None:
        delay_us = self._injection.next_us(kind, per_minute)
        if delay_us is None:
            return

        def due() -> None:
            if self._injection.active:
                act(kind)
                self._repeat(kind, per_minute, act)

        self._world.later(delay_us, due)

    # --- what a process asks

    def hook(self, process: SimulatedProcess) -> FaultHook:
        """The fault hook of a process."""

        def passing(point: FaultPoint) -> None:
            process.check()
            if point is FaultPoint.RECOVERY_SEALED:
                self.sealed_last = process
                self._damage_one(process)
            act = self._injection.passing(point, process.name)
            if act is not None:
                self._strike(process, act)

        return passing

    def trouble(self, process: SimulatedProcess) -> Callable[[str], int]:
        """The disk's behaviour towards a process."""
        injection, pace = self._injection, self._disk_pace

        def act(what: str) -> int:
            faults = injection.faults
            if what.startswith("sync") and injection.draw(
                "sync fails", faults.sync_fails, process.name, "EIO at a sync"
            ):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            if injection.draw("disk slow", faults.disk_slow, process.name, f"the disk is slow: {what}"):
                return injection.chance("disk slow for").randint(1, DISK_SLOW_MS_MAX) * US_PER_MS
            return pace.randint(10, DISK_US_MAX)

        return act

    # --- acts

    def _strike(self, process: SimulatedProcess, act: Act) -> None:
        match act:
            case Act.KILL:
                self._kill(process)
            case Act.SLEEP:
                process.sleep(self._duration_us(act, SLEEP_MS))
            case Act.REPLACE:
                process.sleep(self._duration_us(act, SLEEP_MS))
                self._start_another()
            case Act.CUT:
                self._network.cut(process, self._duration_us(act, AWAY_MS))
            case Act.AWAY:
                self._network.away(self._duration_us(act, AWAY_MS))
            case Act.CRASH:
                self._crash()
        if self._world.running is not None:
            self._world.wait_us(0)  # what was done takes hold here

    def _kill(self, process: SimulatedProcess) -> None:
        if not process.alive:
            return
        process.kill()
        for unit in self.units:
            if unit.daemon is not None and unit.daemon.process is process:
                unit.killed()

    def _kill_one(self, kind: str) -> None:
        process = self._any(kind)
        if process is not None and self._injection.happens(kind, process.name, "SIGKILL"):
            self._kill(process)

    def _sleep_one(self, kind: str) -> None:
        process = self._any(kind)
        if process is not None and self._injection.happens(kind, process.name, "SIGSTOP"):
            process.sleep(self._duration_us(Act.SLEEP, SLEEP_MS))

    def _replace_one(self, kind: str) -> None:
        process = self._any(kind)
        if process is not None and self._injection.happens(kind, process.name, "SIGSTOP, and replaced"):
            process.sleep(self._duration_us(Act.SLEEP, SLEEP_MS))
            self._start_another()

    def _cut_one(self, kind: str) -> None:
        process = self._any(kind)
        if process is not None and self._injection.happens(kind, process.name, "cut off from the brokers"):
            self._network.cut(process, self._duration_us(Act.CUT, AWAY_MS))

    def _away(self, kind: str) -> None:
        if self._injection.happens(kind, "brokers", "away"):
            self._network.away(self._duration_us(Act.AWAY, AWAY_MS))

    def _crash_now(self, kind: str) -> None:
        if self._injection.happens(kind, "machine", "crash"):
            self._crash()

    def _second_daemon(self, kind: str) -> None:
        if self._injection.happens(kind, "manager", "a second daemon"):
            self._start_another()

    def _clock_jump(self, kind: str) -> None:
        offset_ms = self._injection.chance("clock jump to").randint(-CLOCK_OFF_MS, CLOCK_OFF_MS)
        if self._injection.happens(
            kind, "machine", f"the wall clock jumps to {offset_ms} ms beside the truth"
        ):
            self._wall.offset_ms = offset_ms
            self._latest_ms = max(self._latest_ms, self._wall.offset_ms)

    def _clock_right(self) -> None:
        # Processing time never goes back (R28): behind it, timers would wait for an hour.
        self._wall.offset_ms = self._latest_ms

    def _disk_full(self, kind: str) -> None:
        if not self._injection.happens(kind, "machine", "the disk is full"):
            return
        self._disk.full = True
        self._world.later(self._duration(kind, FULL_MS), self._disk_room)

    def _disk_room(self) -> None:
        self._disk.full = False

    def _damage_one(self, process: SimulatedProcess) -> None:
        injection = self._injection
        if injection.draw(
            "damage", injection.faults.damages, process.name, "a file of the newest checkpoint is damaged"
        ):
            chance, files = injection.chance("damage of what"), self._newest_files()
            if files:
                self._disk.damage(chance.choice(files), chance)

    def _crash(self) -> None:
        for unit in list(self.units):
            for process in unit.daemon.processes if unit.daemon is not None else ():
                self._kill(process)
        self.forgotten += self._disk.crash(self._crash_chance)

    def _start_another(self) -> None:
        if not self.more_units or sum(not unit.over for unit in self.units) >= UNITS_MAX:
            return
        unit = self._another()
        self.units.append(unit)
        unit.start()

    def set_aside(self) -> None:
        """All units are given up: killed, or asleep for a while and then on their way out."""
        chance = self._world.chance(f"set aside {len(self.units)}")
        for unit in self.units:
            unit.retire()
            for process in unit.daemon.processes if unit.daemon is not None else ():
                if chance.random() < 0.5:
                    self._kill(process)
                else:
                    process.sleep(chance.randint(*SLEEP_MS) * US_PER_MS)

    # --- whom, how long

    def _any(self, kind: str) -> SimulatedProcess | None:
        alive = [p for unit in self.units if unit.daemon is not None for p in unit.daemon.processes]
        return self._chance(kind).choice(alive) if alive else None

    def _chance(self, kind: str) -> Random:
        return self._injection.chance(f"{kind} of whom")

    def _duration_us(self, act: Act, between_ms: Sequence[int]) -> int:
        return self._duration(act.value, between_ms)

    def _duration(self, kind: str, between_ms: Sequence[int]) -> int:
        """Mostly short, sometimes past every time-out."""
        shortest, longest = between_ms
        chance = self._injection.chance(f"{kind} for how long")
        return int(shortest * (longest / shortest) ** chance.random()) * US_PER_MS
