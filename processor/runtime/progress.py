"""Tells from time to time how far a job has come, and what holds it up."""

from __future__ import annotations

from typing import Final

from processor.runtime.attempt import AttemptParts, RunningAttempt
from processor.task.back_pressure import BACK_PRESSURED_MS
from processor.telemetry.progress import ProgressPicture, back_pressure, progress_line, worth_saying

BACK_PRESSURE_PERCENT: Final = "back_pressure_percent"
"""Gauge of a chain, by the name of its first step: of the time since the line of progress before."""


class ProgressTeller:
    """One attempt's progress lines, at the interval of ``log.progress_interval``."""

    def __init__(self, parts: AttemptParts, attempt: RunningAttempt) -> None:
        self._parts = parts
        self._attempt = attempt
        self._interval_ms = parts.settings.log.progress_interval
        counted = parts.metrics.snapshot()
        self._in_before, self._out_before = counted.total("records_in"), counted.total("records_out")
        self._before = self._picture(parts.clock.monotonic_ms())

    def turn(self, now_ms: int) -> None:
        if now_ms - self._before.taken_ms < self._interval_ms:
            return
        now = self._picture(now_ms)
        for step, percent in back_pressure(self._before, now).items():
            self._parts.metrics.set(step, BACK_PRESSURE_PERCENT, percent)
        if worth_saying(self._before, now):
            self._parts.say.info(progress_line(self._before, now))
        self._before = now

    def _picture(self, now_ms: int) -> ProgressPicture:
        counted = self._parts.metrics.snapshot()
        driver, coordinator = self._attempt.driver, self._attempt.coordinator
        lags = [value for series, value in counted.gauges.items() if series.name == "lag_records"]
        return ProgressPicture(
            taken_ms=now_ms,
            records_in=counted.total("records_in") - self._in_before,
            records_out=counted.total("records_out") - self._out_before,
            lag_records=int(sum(lags)) if lags else None,
            checkpoint=coordinator.decided if coordinator is not None else None,
            published=driver.published.checkpoint if driver is not None else None,
            waiting_for=", ".join(str(p) for p in coordinator.waiting_for())
            if coordinator is not None
            else "",
            back_pressured_ms={
                chain.name: counted.count(chain.name, BACK_PRESSURED_MS) / chain.parallelism
                for chain in self._parts.plan.chains.values()
            },
        )
