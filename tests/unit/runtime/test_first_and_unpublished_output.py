"""Two cases of other stream processors: a crash before the first checkpoint, and output that leaves too early."""

from __future__ import annotations

from processor.errors import Unavailable
from processor.fault_points import FaultPoint
from processor.operators.context import Context
from processor.operators.process_function import KeyedProcess, SideOutput
from processor.stream.job import Job
from tests.unit.runtime.kit import JobRun, Once
from tests.unit.task.kit import ListSource, MemorySink


def test_case_31_a_crash_before_the_first_checkpoint_starts_from_the_configured_place_all_the_same(tmp_path):
    """Start positions are resolved once, before anything is read, and decided (R4)."""
    run = JobRun(tmp_path, source=ListSource({"lines/0": ["a", "b"]}, bounded=True), parallelism=2)
    starts: list[int] = []
    real = run.source.enumerator

    def counted(context):
        enumerator = real(context)
        start = enumerator.start

        def once():
            starts.append(1)
            return start()

        enumerator.start = once  # type: ignore[method-assign]
        return enumerator

    run.source.enumerator = counted  # type: ignore[method-assign]

    def crash() -> None:
        run.source.records["lines/0"].append("too late")  # what comes meanwhile does not move the end
        raise Unavailable("killed before its first own checkpoint")

    run.faults = Once(FaultPoint.POLL_BEFORE_PROCESS, crash)
    assert run.run() == 0
    assert run.control.restarts == 1
    assert starts == [1]
    assert sorted(row or b"" for row in run.outside.rows()) == [b"A", b"B"]


class Loud(KeyedProcess[str, str, str]):
    """Emits by each way there is: the main output, a side output, and a timer."""

    side = SideOutput(str)

    def on_record(self, value: str, ctx: Context[str, str]) -> None:
        ctx.emit(f"main {value}")
        self.side.emit(f"side {value}")
        ctx.timers.at_event_time(0)

    def on_timer(self, time_ms: int, ctx: Context[str, str]) -> None:
        ctx.emit(f"timer {ctx.key}")


def itself(value: str) -> str:
    return value


def loud(run: JobRun) -> Job:
    job = Job("loud")
    processed = job.read("read", run.source).key_by("itself", itself).process("loud", Loud)
    processed.write("out", MemorySink(run.outside))
    processed.side(Loud.side).write("side", MemorySink(run.outside))
    return job


def test_case_04_output_by_every_way_waits_for_its_checkpoint_and_comes_once(tmp_path):
    run = JobRun(tmp_path, source=ListSource({"lines/0": ["a"]}, bounded=True), build=loud)
    seen: list[list] = []

    def look(point: FaultPoint) -> None:
        emitted = any(name.endswith("outbox") for name in run.directory.files.names(""))
        if point is FaultPoint.ALL_ACKNOWLEDGED and emitted and not seen:
            seen.append(run.outside.rows())
            raise Unavailable("killed with everything emitted and written")

    run.faults = look
    assert run.run() == 0
    assert seen == [[]], "nothing was visible before"
    assert sorted(row or b"" for row in run.outside.rows()) == [b"main a", b"side a", b"timer a"]
