"""Laws that every job keeps, for tests of jobs: nobody can tell from the output how its input was cut into
batches, nor that it was stopped, restored and rescaled on the way.

A test gives a job and a *history*: what its sources find, in order, and how time passes. It is played twice, as
written and with the change that must not matter, and what the sinks were given is compared: for each key the
same records in the same order, records without a key in any order.

The laws hold for the engine's operators by themselves. A job breaks them by functions that know more than their
record, state and timers: that count calls, keep values in variables of their own, look at a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, assert_never

from processor.records.batch import Key
from processor.stream.job import Job
from processor.testing.fed import FedRecord
from processor.testing.running_job import RunningJob, Written

SHOWN_MAX: Final = 20
"""Records of one key that are shown when a law is broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A source step finds a value, as its decoder makes it."""

    step: str
    value: Any
    key: Key | None = None
    """The record's own key."""
    time_ms: int | None = None
    """The record's timestamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTime:
    """Event time of a source step reaches this, and no earlier record comes behind it in the history. By records
    it does not advance: how far it is when a record comes would depend on the cut."""

    step: str
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimePasses:
    """Processing time passes. Timers that are due within two seconds fire by themselves."""

    by_ms: int


Happening = Given | EventTime | TimePasses

Output = Mapping[str, Mapping[Key | None, Sequence[Written]]]
"""What each sink step was given, by key."""


class LawBroken(AssertionError):
    """What came out depends on what must not matter; the text says on what, and shows both outputs."""


def same_however_cut(
    job: Job, history: Sequence[Happening], *, cuts: Collection[int], parallelism: int = 1
) -> None:
    """Law: batches may end behind any records. ``cuts`` are numbers of the history's happenings, from 0, behind which
    one ends; without them everything between two passings of time is read at once.

        @given(history=histories, cuts=sets(integers(0, 30)))
        def test_how_clicks_are_cut_does_not_matter(history, cuts):
            same_however_cut(build(), history, cuts=cuts)

    Raises LawBroken; what the job's functions raise.
    """
    whole = played(job, history, parallelism=parallelism)
    cut = played(job, history, parallelism=parallelism, cuts=cuts)
    _compare(whole, cut, f"batches end behind {sorted(cuts)}")


def same_when_restored(
    job: Job, history: Sequence[Happening], *, at: int, parallelism: int = 1, then: int | None = None
) -> None:
    """Law: a job may be stopped with a savepoint and restored from it, with another parallelism. It is before the
    happening of number ``at`` (after the last one, if there are no more); ``then`` is the parallelism from there on.

        @pytest.mark.parametrize("at", range(10))
        def test_a_restart_does_not_matter(at):
            same_when_restored(build(), HISTORY, at=at, parallelism=2, then=3)

    Raises LawBroken; what the job's functions raise.
    """
    then = parallelism if then is None else then
    through = played(job, history, parallelism=parallelism)
    restored = played(job, history, parallelism=parallelism, restart=(at, then))
    _compare(through, restored, f"restored before happening {at}, from parallelism {parallelism} to {then}")


def same_at_any_parallelism(job: Job, history: Sequence[Happening], *, parallelism: int) -> None:
    """Law: how many subtasks there are does not matter. Raises LawBroken; what the job's functions raise."""
    alone = played(job, history, parallelism=1)
    together = played(job, history, parallelism=parallelism)
    _compare(alone, together, f"parallelism {parallelism} instead of 1")


def played(
    job: Job,
    history: Sequence[Happening],
    *,
    parallelism: int = 1,
    cuts: Collection[int] = (),
    restart: tuple[int, int] | None = None,
) -> Output:
    """Run a job on a history; ``restart``: before which happening, and the parallelism from then on."""
    with _started(job, parallelism, len(history)) as running:
        for number, happening in enumerate(history):
            if restart is not None and number == restart[0]:
                running.settle()
                running.restart(parallelism=restart[1])
            _happen(running, happening, ends_batch=number in cuts)
        running.settle()
        if restart is not None and restart[0] >= len(history):
            running.restart(parallelism=restart[1])
        sinks = [name for name, step in job.graph().steps.items() if step.sink is not None]
        return {str(sink): _by_key(running.written(sink)) for sink in sinks}


@contextmanager
def _started(job: Job, parallelism: int, records: int) -> Iterator[RunningJob]:
    # Records advance event time behind their batch: between which records depends on the cut. Here it is told.
    running = RunningJob(
        job, seed=1, parallelism=parallelism, batch_records_max=max(1, records), time_is_told=True
    )
    try:
        running.start()
        yield running
    finally:
        running.close()


def _happen(running: RunningJob, happening: Happening, *, ends_batch: bool) -> None:
    match happening:
        case Given(step=step, value=value, key=key, time_ms=time_ms):
            running.put(step, FedRecord(value=value, key=key, time_ms=time_ms, ends_batch=ends_batch))
        case EventTime(step=step, time_ms=time_ms):
            running.settle()  # or sources would meet their times in any order
            running.advance_watermark(step, time_ms)
        case TimePasses(by_ms=by_ms):
            running.settle()
            running.advance_time(by_ms)
        case _:
            assert_never(happening)


def _by_key(written: Sequence[Written]) -> Mapping[Key | None, Sequence[Written]]:
    found: dict[Key | None, list[Written]] = {}
    for record in written:
        found.setdefault(record.key, []).append(record)
    if None in found:
        found[None].sort(key=_text)
    return found


_text: Final[Callable[[Written], str]] = repr


def _compare(one: Output, other: Output, changed: str) -> None:
    for step, expected in one.items():
        found = other[step]
        for key in {**expected, **found}:
            should, is_ = list(expected.get(key, ())), list(found.get(key, ()))
            if should != is_:
                raise LawBroken(
                    f"with {changed}, step '{step}' is given other records for key {key!r}:\n"
                    f"  {len(is_)} records: {_shown(is_)}\n"
                    f"  {len(should)} without: {_shown(should)}"
                )


def _shown(records: Sequence[Written]) -> str:
    shown = ", ".join(f"{record.value!r} at {record.time_ms}" for record in records[:SHOWN_MAX])
    return f"{shown}, ..." if len(records) > SHOWN_MAX else shown
