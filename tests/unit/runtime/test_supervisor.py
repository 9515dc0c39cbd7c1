"""A job from start to end in one process: attempts, restarts, stops, savepoints (D1, D2, D5, C1, C4, G1)."""

from __future__ import annotations

import signal
import sys
import threading
from datetime import timedelta
from typing import cast

import pytest

from processor.contracts.chance import Chance
from processor.contracts.job_control import Outcome
from processor.errors import JobError, LogConflict, SettingsError, Unavailable, UserCodeError, Where
from processor.fault_points import FaultHook, FaultPoint, no_faults
from processor.ids import Incarnation
from processor.operators.aggregates import Count
from processor.operators.context import Context
from processor.operators.process_function import KeyedProcess
from processor.operators.transform_function import Transform
from processor.protocol.entries import CheckpointEntry, Rewind, Seal
from processor.protocol.job_status import JobStatus
from processor.runtime.attempt import checkpoint_policy
from processor.runtime.origin import write_savepoint
from processor.runtime.signals import StopSignals
from processor.runtime.supervisor import EXIT_GRACE_PASSED
from processor.savepoint import open_savepoint
from processor.state.declarations import ValueState
from processor.stream.job import Job
from tests.unit.runtime.kit import JobRun, Once, raising
from tests.unit.task.kit import ListSource, MemorySink
from tests.waiting import wait_until

EXPECTED = [b"A", b"B", b"C"]


def bounded() -> ListSource:
    return ListSource({"lines/0": ["a", "b", "c"]}, bounded=True)


def checkpoints(run: JobRun) -> list[CheckpointEntry]:
    return list(run.log.read_all().checkpoints())


def test_a_bounded_job_reads_all_publishes_all_and_ends(tmp_path):
    run = JobRun(tmp_path, source=bounded())
    assert run.run() == 0
    assert run.out() == EXPECTED
    assert run.state.status is JobStatus.FINISHED
    newest = checkpoints(run)[-1]
    assert newest.stop
    assert all(subtask.finished for subtask in newest.subtasks)


def test_a18_a_job_remembers_its_checkpoints_over_its_attempts(tmp_path):
    run = JobRun(tmp_path, source=bounded())
    run.faults = Once(FaultPoint.ALL_ACKNOWLEDGED, raising(Unavailable("the disk is away")))
    assert run.run() == 0
    seen = run.control.checkpoints(None)
    counts = seen.counts
    assert (counts.restored, counts.published) == (2, counts.decided)
    assert counts.left >= 1, "what was under way when the first attempt failed"
    assert counts.triggered == counts.published + counts.left + sum(counts.given_up.values())
    assert seen.under_way == ()
    assert seen.restored is not None
    assert seen.restored.restored.attempt == 2
    assert seen.published is not None
    newest = checkpoints(run)[-1].checkpoint
    assert seen.published.record.checkpoint == newest
    whole = run.control.checkpoints(newest).asked
    assert whole is not None
    assert all(part.finished for part in whole.record.parts)
    assert len(whole.record.parts) == whole.record.subtasks == whole.record.ended_subtasks


def test_started_again_it_adds_nothing(tmp_path):
    run = JobRun(tmp_path, source=bounded())
    for _ in range(3):
        assert run.run() == 0
    assert run.out() == EXPECTED


def test_case_60_a_signal_takes_a_last_checkpoint_and_exits_0(tmp_path):
    run = JobRun(tmp_path, checkpoint={"interval": "10m"})
    polls = 0

    def on_poll() -> None:
        nonlocal polls
        polls += 1
        if polls == 5:
            run.signals.asked = True

    run.source.on_poll = on_poll
    assert run.run() == 0
    assert run.out() == EXPECTED
    assert run.state.status is JobStatus.STOPPED
    run.signals.asked = False
    polls = 0
    run.source.records["lines/0"].append("d")
    assert run.run() == 0
    assert run.out() == [*EXPECTED, b"D"], "nothing twice"


def test_r01_d5_every_restart_is_a_new_attempt_that_seals_first(tmp_path):
    run = JobRun(tmp_path, source=bounded())
    run.faults = Once(FaultPoint.CUT_TAKEN, raising(Unavailable("the disk is gone")))
    assert run.run() == 0
    assert [e.attempt for e in run.log.read_all().entries if isinstance(e, Seal)] == [1, 2]
    assert run.control.restarts == 1
    assert run.out() == EXPECTED


@pytest.mark.parametrize(
    "point",
    [
        FaultPoint.POLL_BEFORE_PROCESS,
        FaultPoint.POSITIONS_TAKEN,
        FaultPoint.CUT_TAKEN,
        FaultPoint.ALL_ACKNOWLEDGED,
        FaultPoint.ENTRY_TAKEN_NOT_TOLD,
        FaultPoint.PUBLISHED_NOT_RECORDED,
        FaultPoint.RECOVERY_SEALED,
        FaultPoint.RECOVERY_OPENING,
    ],
)
def test_case_01_d1_a_failure_at_any_point_loses_and_doubles_nothing(tmp_path, point):
    run = JobRun(tmp_path, source=bounded())
    run.faults = Once(point, raising(Unavailable(f"at {point}")))
    assert run.run() == 0
    assert run.out() == EXPECTED
    assert run.control.restarts == 1, "the point was passed"


def test_the_last_of_too_many_failures_is_raised(tmp_path):
    run = JobRun(tmp_path)
    run.source.on_poll = raising(Unavailable("the broker is away"))
    with pytest.raises(Unavailable, match="the broker is away"):
        run.run()
    assert run.state.status is JobStatus.FAILED
    assert run.control.restarts == 2


def refuses_b(line: str) -> str:
    if line == "b":
        raise ValueError("no b, please")
    return line


def refusing(run: JobRun) -> Job:
    job = Job("refusing")
    job.read("read", run.source).map("check", refuses_b).write("out", MemorySink(run.outside))
    return job


def test_d2_d3_a_record_that_always_fails_is_named_as_such_in_log_and_status(tmp_path, caplog):
    run = JobRun(tmp_path, build=refusing)
    with pytest.raises(UserCodeError, match="no b, please"):
        run.run()
    failures = run.control.status().failures
    assert [failure.attempt for failure in failures] == [3, 2, 1]
    assert [failure.again for failure in failures] == [True, True, False]
    newest = failures[0]
    assert newest.where == Where(step="check", split="lines/0", offset=1)
    assert (newest.error, newest.cause, newest.progressed) == ("UserCodeError", "ValueError", False)
    restored = run.statistics.picture().restored
    assert restored is not None
    assert newest.checkpoint == restored.checkpoint
    said = [record.getMessage() for record in caplog.records if "no restart will mend" in record.getMessage()]
    assert len(said) == 1, "of the second attempt; the third ends the job with the error itself"
    assert "step 'check', at lines/0 offset 1" in said[0]


def ends_the_process(line: str) -> str:
    if line == "b":
        sys.exit()
    return line


class EndsTheProcess(Transform[str, str]):
    def on_start(self, subtask: int, subtasks: int, /) -> None:
        sys.exit(0)


@pytest.mark.parametrize("at", ["record", "start"])
def test_d1_d2_a_function_that_ends_the_process_fails_the_job_and_does_not_look_like_its_end(tmp_path, at):
    def build(run: JobRun) -> Job:
        job = Job("ending")
        read = job.read("read", run.source)
        checked = (
            read.map("check", ends_the_process) if at == "record" else read.transform("check", EndsTheProcess)
        )
        checked.write("out", MemorySink(run.outside))
        return job

    run = JobRun(tmp_path, build=build)
    with pytest.raises(UserCodeError, match=r"'read' called sys.exit\("):
        run.run()
    assert run.state.status is JobStatus.FAILED
    assert run.control.restarts == 2, "it was tried again, as after any error of a function"


def test_d2_without_restarts_the_first_failure_ends_the_job(tmp_path):
    run = JobRun(tmp_path, runtime={"restart": {"strategy": "none"}})
    run.source.on_poll = raising(Unavailable("the broker is away"))
    with pytest.raises(Unavailable):
        run.run()
    assert run.control.restarts == 0
    assert len(run.control.status().failures) == 1


def test_d2_who_asks_for_a_stop_does_not_sit_out_the_pause_before_a_restart(tmp_path):
    """The test's own time-out is shorter than the pause."""
    run = JobRun(tmp_path, runtime={"restart": {"strategy": "fixed-delay", "delay": "1h", "attempts": 1}})
    run.source.on_poll = raising(Unavailable("the broker is away"))

    def asked() -> None:
        run.source.on_poll = lambda: None
        run.control.stop(None, run.answers.append)

    run.signals.on_wait = asked
    assert run.run() == 0
    assert run.state.status is JobStatus.STOPPED
    assert [answer.checkpoint for answer in run.answers] == [checkpoints(run)[-1].checkpoint]


def test_d2_a_wait_ends_for_whoever_looks_up_and_the_next_one_is_whole_again():
    with StopSignals(lambda: None) as signals:
        signals.look_up()
        signals.wait(3_600_000)
        signals.wait(0)
        asked = [signals.asked]
        later = threading.Thread(target=signals.look_up)
        later.start()
        signals.wait(3_600_000)
        later.join()
        signal.raise_signal(signal.SIGTERM)
        signals.wait(3_600_000)
        asked.append(signals.asked)
        signals.wait(3_600_000)
    assert asked == [False, True]


def test_what_no_restart_can_mend_ends_the_job_at_once(tmp_path):
    run = JobRun(tmp_path)
    run.source.on_poll = raising(LogConflict("somebody else wrote"))
    with pytest.raises(LogConflict):
        run.run()
    assert run.control.restarts == 0


def test_r01_a_job_that_was_overtaken_stops_quietly(tmp_path):
    run = JobRun(tmp_path)
    newer = JobRun(tmp_path, outside=run.outside)
    newer.ask(stop())
    run.faults = Once(FaultPoint.ALL_ACKNOWLEDGED, lambda: newer.run(), number=2)
    assert run.run() == 0
    assert run.state.status is JobStatus.FENCED
    assert run.out() == EXPECTED


# --- another parallelism (D5)


class Rescaling:
    """Asks a job for each parallelism once the one before is answered, then to stop."""

    def __init__(self, run: JobRun, *parallelism: int) -> None:
        self.answers: list[Outcome] = []
        self.waits = False
        self._run = run
        self._left = list(parallelism)
        self._polls = 0
        run.source.on_poll = self._on_poll

    def _on_poll(self) -> None:
        self._polls += 1
        if self._polls < 3 or self.waits:
            return
        if self._left:
            self.waits = True
            self._run.control.rescale(self._left.pop(0), self._answered)
        else:
            self._run.signals.asked = True

    def _answered(self, outcome: Outcome) -> None:
        self.waits = False
        self._polls = 0  # whoever runs then is asked next
        self.answers.append(outcome)


def test_d5_a_running_job_goes_on_at_another_parallelism_and_nothing_comes_twice(tmp_path):
    run = JobRun(tmp_path)
    rescaling = Rescaling(run, 3, 1, 2)
    assert run.run() == 0
    answers = rescaling.answers
    assert run.out() == EXPECTED
    assert [answer.refused for answer in answers] == ["", "", ""]
    found = {entry.checkpoint: entry for entry in checkpoints(run)}
    assert not any(e.stop for n, e in found.items() if n in {a.checkpoint for a in answers}), (
        "it has not ended"
    )
    assert [len(set(entry.shape.parallelism.values())) for entry in found.values()] == [1] * len(found)
    used = [max(entry.shape.parallelism.values()) for entry in found.values()]
    assert [one for one, before in zip(used, [0, *used], strict=False) if one != before] == [1, 3, 1, 2]
    assert run.state.status is JobStatus.STOPPED


def test_d5_a_parallelism_that_cannot_be_is_refused_and_the_job_goes_on(tmp_path):
    run = JobRun(tmp_path)
    rescaling = Rescaling(run, 1, 4_000)
    assert run.run() == 0
    answers = rescaling.answers
    assert run.out() == EXPECTED
    assert "no step has another number of subtasks" in answers[0].refused
    assert "4000" in answers[1].refused


@pytest.mark.parametrize(
    "point",
    [FaultPoint.STATE_WRITTEN_OUTBOX_NOT, FaultPoint.ENTRY_TAKEN_NOT_TOLD, FaultPoint.RECOVERY_SEALED],
)
def test_d5_a_failure_on_the_way_to_another_parallelism_loses_nothing(tmp_path, point):
    run = JobRun(tmp_path, checkpoint={"tolerated_failures": 0})
    rescaling, struck = Rescaling(run, 3), False

    def fault(passed: FaultPoint) -> None:
        nonlocal struck
        if passed is point and rescaling.waits and not struck:
            struck = True
            raise Unavailable("the disk is away")

    run.faults = fault
    assert run.run() == 0
    assert struck
    assert run.out() == EXPECTED
    (answer,) = rescaling.answers
    reached = max(checkpoints(run)[-1].shape.parallelism.values())
    assert (reached == 3) is (not answer.refused), "who asked is told what became of it"


# --- stops (R24) and savepoints (R23)


def stop(directory: str | None = None):
    return lambda control, answer: control.stop(directory, answer)


def test_a_stop_by_hand_is_answered_with_its_checkpoint(tmp_path):
    run = JobRun(tmp_path)
    run.ask(stop())
    assert run.run() == 0
    assert run.state.status is JobStatus.STOPPED
    (answer,) = run.answers
    assert answer.checkpoint == checkpoints(run)[-1].checkpoint
    assert checkpoints(run)[-1].stop


def test_status_says_how_long_ago_the_jobs_thread_turned_while_it_turns(tmp_path):
    run = JobRun(tmp_path)
    ages: list[int | None] = []

    def look(control, answer):
        def taken(outcome):
            ages.append(control.status().turn_age_ms)
            control.stop(None, answer)

        control.checkpoint(taken)

    run.ask(look)
    assert run.run() == 0
    (age_ms,) = ages
    assert age_ms is not None
    assert age_ms >= 0
    assert run.control.status().turn_age_ms is None, "a job that has ended does not hang"


def test_r23_c4_stop_with_savepoint_and_start_from_it(tmp_path):
    run = JobRun(tmp_path / "jobs")
    saved = str(tmp_path / "saved")
    read = 0

    def on_poll() -> None:
        nonlocal read
        read += 1
        if read == 3:
            run.control.stop(saved, run.answers.append)

    run.source.on_poll = on_poll
    assert run.run() == 0
    (answer,) = run.answers
    assert (answer.path, answer.refused) == (saved, "")
    read = 0
    again = str(tmp_path / "again")
    saved_before, saved = saved, again
    run.source.records["lines/0"].append("d")
    assert run.run(origin=saved_before) == 0
    assert run.out() == [*EXPECTED, b"D"]


def test_r03_the_directory_of_a_job_that_runs_on_is_rewound_to_once(tmp_path):
    """Its newest checkpoint moves; the same command line run again goes on all the same."""
    first = JobRun(tmp_path / "first")
    first.ask(stop())
    assert first.run() == 0
    copy = JobRun(tmp_path / "copy", source=first.source, chance=first.chance)
    for _ in range(3):
        first.ask(stop())
        assert first.run() == 0
        copy.ask(stop())
        assert copy.run(origin=str(first.directory.path)) == 0
    rewinds = [entry for entry in copy.log.read_all().entries if isinstance(entry, Rewind)]
    assert [rewind.token for rewind in rewinds] == [first.log.read_all().incarnation]
    copy.ask(stop())
    assert copy.run(origin=str(first.directory.path), request="again", accept_duplicates=True) == 0
    rewinds = [entry for entry in copy.log.read_all().entries if isinstance(entry, Rewind)]
    assert [rewind.token for rewind in rewinds[1:]] == ["again"]


def test_r24_c4_a_stop_whose_savepoint_cannot_be_written_has_stopped_and_says_so(tmp_path):
    occupied = tmp_path / "occupied"
    occupied.mkdir()
    (occupied / "something").write_text("else")
    run = JobRun(tmp_path / "jobs")
    run.ask(stop(str(occupied)))
    assert run.run() == 0
    assert run.state.status is JobStatus.STOPPED
    (answer,) = run.answers
    assert answer.refused
    assert answer.checkpoint == checkpoints(run)[-1].checkpoint


def test_r24_a_stop_that_failed_before_its_decision_leaves_the_job_running(tmp_path):
    run = JobRun(tmp_path, checkpoint={"tolerated_failures": 5, "interval": "10m"})
    # The first checkpoint of the attempt is the stop; its completion cannot write.
    run.faults = Once(FaultPoint.STATE_WRITTEN_OUTBOX_NOT, raising(Unavailable("no space left on device")))
    first: list[Outcome] = []

    def again(outcome: Outcome) -> None:
        first.append(outcome)
        run.control.stop(None, run.answers.append)

    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        if polls == 3:
            run.control.stop(None, again)

    run.source.on_poll = poll
    assert run.run() == 0
    assert "no space left" in first[0].refused
    assert run.answers[0].refused == ""
    assert run.out() == EXPECTED


@pytest.mark.parametrize("point", [FaultPoint.PUBLISHED_NOT_RECORDED, FaultPoint.ENTRY_TAKEN_NOT_TOLD])
def test_r24_a_decided_stop_leaves_its_savepoint_though_its_attempt_failed(tmp_path, point):
    run = JobRun(tmp_path / "jobs")
    saved = tmp_path / "saved"
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        if polls == 3:
            run.control.stop(str(saved), run.answers.append)

    failed: list[FaultPoint] = []

    def fails(passed: FaultPoint) -> None:
        newest = run.log.read_all().newest() if passed is point and not failed else None
        if newest is not None and newest.stop:
            failed.append(passed)
            raise Unavailable("the disk is away for a moment")

    run.source.on_poll, run.faults = poll, fails
    assert run.run() == 0
    assert run.control.restarts == 1
    assert run.state.status is JobStatus.STOPPED
    stopped = checkpoints(run)[-1]
    found = open_savepoint(str(saved)).entry
    assert (found.incarnation, found.checkpoint) == (stopped.incarnation, stopped.checkpoint)
    # Moved away, it is not made again by a later start.
    saved.rename(tmp_path / "elsewhere")
    run.source.on_poll = lambda: None
    run.ask(stop())
    assert run.run() == 0
    assert not saved.exists()


def test_r24_a_savepoint_that_was_begun_is_finished_beside_what_is_there(tmp_path):
    run = JobRun(tmp_path / "jobs", build=counting)
    run.ask(stop())
    assert run.run() == 0
    stopped = checkpoints(run)[-1]
    saved = tmp_path / "saved"

    def write(*, begun: bool, faults: FaultHook = no_faults) -> None:
        run.savepoint(stopped, saved, begun=begun, faults=faults)

    with pytest.raises(Unavailable):
        write(begun=False, faults=Once(FaultPoint.SAVEPOINT_WRITTEN, raising(Unavailable("killed here"))))
    with pytest.raises(SettingsError, match="is not empty"):
        write(begun=False)
    write(begun=True)
    assert open_savepoint(str(saved)).entry.checkpoint == stopped.checkpoint
    before = sorted(path.name for path in saved.rglob("*"))
    write(begun=True)
    assert sorted(path.name for path in saved.rglob("*")) == before, "it is whole: nothing is written"


def test_r24_a_signal_asks_again_when_the_last_checkpoint_failed(tmp_path):
    run = JobRun(tmp_path, checkpoint={"tolerated_failures": 5, "interval": "10m"})
    run.faults = Once(FaultPoint.STATE_WRITTEN_OUTBOX_NOT, raising(Unavailable("disk full")))
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        if polls == 3:
            run.signals.asked = True

    run.source.on_poll = poll
    assert run.run() == 0
    assert run.state.status is JobStatus.STOPPED
    assert run.out() == EXPECTED


def test_r24_a_decided_stop_is_finished_by_the_next_attempt(tmp_path):
    """Decided, then the attempt fails: the next one publishes it and ends, instead of running on."""
    run = JobRun(tmp_path)
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        if polls == 3:
            run.control.stop(None, run.answers.append)

    run.source.on_poll = poll
    taken = 0

    def fails(point: FaultPoint) -> None:
        nonlocal taken
        newest = run.log.read_all().newest() if point is FaultPoint.PUBLISHED_NOT_RECORDED else None
        if newest is not None and newest.stop and not taken:
            taken += 1
            raise Unavailable("the note cannot be written")

    run.faults = fails
    assert run.run() == 0
    assert taken == 1
    assert run.state.status is JobStatus.STOPPED
    assert run.control.restarts == 1
    assert run.out() == EXPECTED
    assert checkpoints(run)[-1].stop, "nothing was decided after it"
    polls = -1_000_000  # a start of its own runs on
    run.ask(stop())
    assert run.run() == 0


class SaysLate(KeyedProcess[str, str, str]):
    """Says a line when event time has passed its number by a hundred: long after the last record."""

    waiting = ValueState(list[str])

    def on_record(self, value: str, /, context: Context[str, str]) -> None:
        self.waiting.set([*(self.waiting.get() or []), value])
        context.timers.at_event_time(int(value) + 100)

    def on_timer(self, time_ms: int, /, context: Context[str, str]) -> None:
        for value in self.waiting.get() or ():
            context.emit(value)
        self.waiting.clear()


def waiting_for_event_time(run: JobRun) -> Job:
    job = Job("late")
    lines = job.read("read", run.source).event_time(int, disorder=timedelta(0))
    said = lines.key_by("by-line", lambda line: line).process("wait", SaysLate)
    said.write("out", MemorySink(run.outside))
    return job


def draining(run: JobRun, *, poll: int = 3, directory: str | None = None) -> None:
    """Ask for a drain at that poll."""
    polls = 0

    def on_poll() -> None:
        nonlocal polls
        polls += 1
        if polls == poll:
            run.control.stop(directory, run.answers.append, drain=True)

    run.source.on_poll = on_poll


NUMBERS = [b"1", b"2", b"3"]


def late_job(root, **checkpoint) -> JobRun:
    source = ListSource({"lines/0": ["1", "2", "3"]})
    return JobRun(root, source=source, build=waiting_for_event_time, checkpoint=checkpoint)


def test_r24_a_drain_puts_out_what_waits_for_event_time_and_the_job_has_finished(tmp_path):
    run = late_job(tmp_path)
    draining(run)
    assert run.run() == 0
    assert run.state.status is JobStatus.FINISHED
    assert sorted(row or b"" for row in run.out()) == NUMBERS
    newest = checkpoints(run)[-1]
    assert (newest.stop, newest.drained) == (True, True)
    assert [answer.checkpoint for answer in run.answers] == [newest.checkpoint]
    # Started again, as by a service manager: it has finished, whatever there is to read.
    run.source.records["lines/0"].append("4")
    run.source.on_poll = raising(LogConflict("a finished job reads nothing"))
    assert run.run() == 0
    assert run.state.status is JobStatus.FINISHED
    assert checkpoints(run)[-1] == newest, "nothing was decided after it"
    assert len(run.out()) == 3


def test_r24_without_a_drain_what_waits_for_event_time_goes_on_waiting(tmp_path):
    run = late_job(tmp_path)
    run.ask(stop())
    assert run.run() == 0
    assert run.state.status is JobStatus.STOPPED
    assert not checkpoints(run)[-1].drained
    assert run.out() == []


@pytest.mark.parametrize("point", [FaultPoint.CUT_TAKEN, FaultPoint.STATE_WRITTEN_OUTBOX_NOT])
def test_r24_a_drain_that_fails_goes_on_from_the_checkpoint_before_as_if_it_had_not_been(tmp_path, point):
    run = late_job(tmp_path, interval="10m")
    refused: list[Outcome] = []

    def again(outcome: Outcome) -> None:
        refused.append(outcome)
        run.source.records["lines/0"].append("4")
        draining(run, poll=5)

    polls = 0

    def on_poll() -> None:
        nonlocal polls
        polls += 1
        if polls == 3 and newest(run) == 2:  # the first checkpoint of the attempt is decided
            run.faults = Once(point, raising(Unavailable("no space left on device")))
            run.control.stop(None, again, drain=True)
        elif polls == 3:
            polls = 0

    run.source.on_poll = on_poll
    assert run.run() == 0
    assert refused[0].refused
    assert run.control.restarts == 1
    assert run.state.status is JobStatus.FINISHED
    assert sorted(row or b"" for row in run.out()) == [*NUMBERS, b"4"], "once, the late one too"


def test_r24_a_drained_savepoint_is_not_started_from(tmp_path):
    run = late_job(tmp_path / "jobs")
    saved = str(tmp_path / "saved")
    draining(run, directory=saved)
    assert run.run() == 0
    assert [answer.path for answer in run.answers] == [saved]
    for origin in (saved, str(run.directory.path)):
        with pytest.raises(JobError, match="was drained"):
            run.run(origin=origin, accept_duplicates=True)
    run.ask(stop())
    assert run.run(fresh=True, accept_duplicates=True) == 0, "what leads on"
    assert run.state.status is JobStatus.STOPPED


def test_a_grace_period_that_passes_ends_the_job_and_loses_nothing(tmp_path):
    run = JobRun(tmp_path, runtime={"grace_period": "100ms"})
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        if polls == 3:
            run.outside.down = True
            run.signals.asked = True

    run.source.on_poll = poll
    assert run.run() == EXIT_GRACE_PASSED
    run.outside.down = False
    run.signals.asked = False
    polls = 0
    run.source.on_poll = lambda: None
    run.ask(stop())
    assert run.run() == 0
    run.ask(stop())
    assert run.run() == 0
    assert sorted(row or b"" for row in run.out()) == EXPECTED


def test_c1_a_savepoint_is_copied_whole_though_newer_checkpoints_condemn_its_files(tmp_path, monkeypatch):
    """While it copies, many checkpoints fall out of retention: their files stay until the copy is whole."""
    run = JobRun(tmp_path / "counts", build=counting)
    real = write_savepoint

    def slow(entry, source, path, **more):
        target = entry.checkpoint + 6
        wait_until(lambda: newest(run) >= target, 20, f"checkpoint {target} is decided")
        real(entry, source, path, **more)

    monkeypatch.setattr("processor.runtime.driver.write_savepoint", slow)
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        run.source.records["lines/0"].append(f"line {polls}")
        if polls == 3:
            run.control.savepoint(str(tmp_path / "saved"), answered)

    def answered(outcome: Outcome) -> None:
        run.answers.append(outcome)
        run.signals.asked = True

    run.source.on_poll = poll
    assert run.run() == 0
    assert [answer.refused for answer in run.answers] == [""]
    kept = {ref.name for entry in checkpoints(run) for ref in entry.files()}
    assert set(run.directory.files.names("")) <= kept, "afterwards what is condemned goes"


def test_c6_a_full_checkpoint_lists_no_file_of_an_earlier_one(tmp_path):
    run = JobRun(tmp_path / "counts", build=counting)
    before: dict[int, set[str]] = {}
    asked: list[int] = []
    polls = 0

    def poll() -> None:
        nonlocal polls
        polls += 1
        run.source.records["lines/0"].append(f"line {polls}")
        before.update(states(run))
        if len(before) >= 3 and not asked:
            asked.append(polls)
            run.control.checkpoint(answered, full=True)

    def answered(outcome: Outcome) -> None:
        run.answers.append(outcome)
        run.signals.asked = True

    run.source.on_poll = poll
    assert run.run() == 0
    (answer,) = run.answers
    assert answer.checkpoint is not None
    full = states(run)[answer.checkpoint]
    earlier = {name for number, names in before.items() if number < answer.checkpoint for name in names}
    assert full
    assert not full & earlier


def states(run: JobRun) -> dict[int, set[str]]:
    """The files of keyed state of every checkpoint that the log has."""
    return {
        entry.checkpoint: {ref.name for subtask in entry.subtasks for ref in subtask.state_files()}
        for entry in checkpoints(run)
    }


def newest(run: JobRun) -> int:
    entry = run.log.read_all().newest()
    return entry.checkpoint if entry is not None else 0


def first_word(line: str) -> str:
    return line.split()[0]


def counting(run: JobRun):
    job = Job("counts")
    job.read("read", run.source).key_by("word", first_word).aggregate("count", Count()).write(
        "out", MemorySink(run.outside)
    )
    return job


def test_r02_an_emptied_directory_is_not_taken_for_a_fresh_start(tmp_path):
    run = JobRun(tmp_path / "one", source=bounded())
    run.run()
    other = JobRun(tmp_path / "two", source=bounded(), outside=run.outside)
    with pytest.raises(LogConflict, match="decision log of job 'echo' is empty"):
        other.run()
    incarnation = run.log.read_all().incarnation
    assert isinstance(incarnation, str)
    assert other.run(take_over=str(Incarnation(incarnation))) == 0


@pytest.mark.parametrize(
    ("interval", "initial_delay_max", "bound_ms"),
    [("1s", "300ms", 300), ("200ms", "1s", 200), ("1s", "0ms", 0)],
)
def test_a03_the_first_checkpoint_waits_for_a_moment_that_is_drawn(
    tmp_path, interval, initial_delay_max, bound_ms
):
    """So that jobs started together do not write together; never longer than the interval."""
    run = JobRun(tmp_path, checkpoint={"interval": interval, "initial_delay_max": initial_delay_max})
    limits: list[int] = []

    class Drawn:
        def below(self, limit: int) -> int:
            limits.append(limit)
            return limit - 1

    policy = checkpoint_policy(run.settings, cast(Chance, Drawn()))
    assert (limits, policy.pacing.initial_delay_ms) == ([bound_ms + 1], bound_ms)
