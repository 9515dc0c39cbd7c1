"""A job: what an author builds and hands to the runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from processor.contracts.checkpoint_hook import CheckpointHook
from processor.contracts.policy import Fail, Policy
from processor.contracts.source import Source
from processor.errors import JobError, Where
from processor.ids import MAX_PARALLELISM_DEFAULT, StepName
from processor.plan.graph import JobGraph, Step
from processor.stream.builder import JobBuilder, Port
from processor.stream.source_stream import SourceStream

V = TypeVar("V")


class Job:
    """A graph of named steps from sources to sinks. Building it runs nothing and connects to nothing.

    State, outboxes and identities at brokers hang on the names of job and steps: renaming begins anew.

    ``parallelism`` is the number of subtasks of each step (None: the setting ``runtime.parallelism``);
    ``max_parallelism`` is the number of key groups, fixed for the life of the job's state; ``on_error`` holds
    for every step that gives none of its own.

    Raises, like every step: JobError that names job or step, the value, and what to do.
    """

    def __init__(
        self,
        name: str,
        *,
        parallelism: int | None = None,
        max_parallelism: int = MAX_PARALLELISM_DEFAULT,
        on_error: Policy | None = None,
    ) -> None:
        self._builder = JobBuilder(
            name,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            on_error=Fail() if on_error is None else on_error,
        )

    @property
    def name(self) -> str:
        return self._builder.name

    def read(
        self,
        step: str,
        source: Source[V],
        *,
        on_error: Policy | None = None,
        parallelism: int | None = None,
    ) -> SourceStream[V]:
        """The records of a source. ``on_error`` says what becomes of one that cannot be decoded."""
        name = self._builder.name_step(step)
        _check_source(source, name)
        self._builder.add(
            Step(
                name=name,
                kind="read",
                source=source,
                policy=self._builder.policy(on_error, name),
                parallelism=parallelism,
            )
        )
        return SourceStream(self._builder, Port(step=name, value_type=source.value_type()))

    def hook(self, name: str, make: Callable[[], CheckpointHook]) -> None:
        """Let something beside the records take part in every checkpoint, before its barriers go out: a class
        derived from CheckpointHook, or a function that makes one. What it keeps hangs on the name."""
        self._builder.add_hook(name, make)

    def audit(self, audit: object) -> None:
        """Name what recomputes the expected output for ``processor verify``."""
        if self._builder.audit is not None:
            raise JobError(f"job '{self.name}' names two audits.", remedy="Name one.")
        if audit is None:
            raise JobError(
                f"the audit of job '{self.name}' is None.", remedy="Name one, or do not call audit."
            )
        self._builder.audit = audit

    def graph(self) -> JobGraph:
        """The job as data. Raises JobError for a job that reads or writes nothing."""
        return self._builder.graph()

    def __repr__(self) -> str:
        return f"Job({self.name!r})"


def _check_source(source: Any, step: StepName) -> None:
    missing = [n for n in ("value_type", "enumerator", "reader") if not callable(getattr(source, n, None))]
    if isinstance(source, type) or missing or not hasattr(source, "bounded"):
        raise JobError(
            f"read is given {source!r:.80}, which is no source.",
            remedy="Give an instance, such as KafkaSource('topic', Json(T)).",
            where=Where(step=step),
        )
