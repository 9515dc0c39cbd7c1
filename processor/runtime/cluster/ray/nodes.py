"""What is asked of Ray: an actor on some node, calls of it, and whether it is still there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from processor.errors import SettingsError, Unavailable
from processor.runtime.cluster.ray.holder import Holder
from processor.settings.cluster import RaySettings

RESTARTS_BY_RAY: Final = 0
"""Restarts and retries that Ray makes by itself (R29)."""


ERROR_CHARS_MAX: Final = 300


class HolderLost(Exception):
    """An actor is gone, with the process that it held, or its node cannot be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a process asks of the node that it runs on."""

    cpus: float
    resources: Mapping[str, float]

    def __str__(self) -> str:
        parts = {"CPU": self.cpus, **self.resources}
        return ", ".join(f"{amount:g} {name}" for name, amount in parts.items())


class Call:
    """A call of an actor that is under way."""

    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray = ray
        self._reference = reference

    def answered(self) -> bool:
        """Whether ``answer`` would not wait."""
        with _connected():
            ready, _ = self._ray.wait([self._reference], timeout=0)
        return bool(ready)

    def answer(self) -> Any:
        """What it returned. Raises HolderLost, for what it raised, too; SettingsError for an environment that no node
        can lay out."""
        try:
            with _connected():
                return self._ray.get(self._reference)
        except self._ray.exceptions.RuntimeEnvSetupError as error:
            raise SettingsError(
                f"Ray cannot lay out runtime.cluster.ray.working_directory on a node: {_in_one_line(error)}",
                remedy="What Ray says of it names the reason.",
            ) from error
        except self._ray.exceptions.RayError as error:
            raise HolderLost(_in_one_line(error)) from error


class Actor:
    """One actor; it may not be placed yet."""

    def __init__(self, ray: Any, handle: Any) -> None:
        self._ray = ray
        self._handle = handle

    def call(self, method: str, *arguments: Any) -> Call:
        with _connected():
            return Call(self._ray, getattr(self._handle, method).remote(*arguments))

    def end(self) -> None:
        """At once, with the process that it holds. Without a connection Ray ends it by itself."""
        with suppress(Unavailable), _connected():
            self._ray.kill(self._handle, no_restart=True)


class Nodes:
    """The nodes of a Ray cluster, to which this process is connected between entering and leaving."""

    def __init__(self, settings: RaySettings) -> None:
        """Raises SettingsError where Ray is not installed."""
        try:
            import ray
        except ImportError as error:
            raise SettingsError(
                f"runtime.cluster.workers is ray, and Ray is not installed here ({error}).",
                remedy="pip install 'exactly-once-processor[ray]'",
            ) from error
        self._ray: Any = ray
        self._settings = settings

    def __enter__(self) -> Nodes:
        """Raises Unavailable for a cluster that does not answer, or that refuses this process."""
        settings = self._settings
        try:
            self._ray.init(
                address=settings.address,
                runtime_env={
                    "working_dir": str(settings.working_directory.resolve()),
                    "excludes": list(settings.exclude),
                },
                configure_logging=False,
                log_to_driver=True,
            )
        except (OSError, RuntimeError, ValueError, self._ray.exceptions.RayError) as error:
            raise Unavailable(
                f"the Ray cluster {settings.address} cannot be used: {_in_one_line(error)}",
                remedy="Set runtime.cluster.ray.address, or --cluster, to a running one: 'ray status' tells whether "
                "it is. It must have this version of Ray and of Python.",
            ) from error
        return self

    def __exit__(self, *raised: object) -> None:
        self._ray.shutdown()

    def place(self, room: Room) -> Actor:
        """A holder on a node that has the room, now or when one has; several are spread over nodes."""
        made = self._ray.remote(Holder).options(
            num_cpus=room.cpus,
            resources=dict(room.resources) or None,
            max_restarts=RESTARTS_BY_RAY,
            max_task_retries=RESTARTS_BY_RAY,
            scheduling_strategy="SPREAD",
        )
        with _connected():
            return Actor(self._ray, made.remote())


@contextmanager
def _connected() -> Iterator[None]:
    """Raises Unavailable when the cluster cannot be reached any more: nobody is asked for anything then."""
    try:
        yield
    except ConnectionError as error:
        raise Unavailable(
            f"the connection to the Ray cluster is lost: {_in_one_line(error)}",
            remedy="Start the command again: the job goes on from its newest checkpoint.",
        ) from error


def _in_one_line(error: Exception) -> str:
    """Ray's errors are several paragraphs; the first words say what has happened."""
    text = " ".join(str(error).split())
    return text if len(text) <= ERROR_CHARS_MAX else f"{text[:ERROR_CHARS_MAX]} …"
