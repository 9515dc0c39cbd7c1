"""One process of the job on some node, as its driver follows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from processor.runtime.cluster.ray.nodes import Actor, HolderLost, Room


class Stage(Enum):
    PLACING = auto()
    """There is no room for it yet, or its node is laying out the job's files."""
    STARTING = auto()
    RUNNING = auto()
    OVER = auto()
    """``end`` says how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a process of the job came to its end."""

    why: str
    exit_code: int | None = None
    """None: it was lost with its actor."""

    @property
    def chosen(self) -> bool:
        """Whether the process ended by itself, and its exit code is its last word."""
        return self.exit_code is not None and self.exit_code >= 0


class Places(Protocol):
    """See ``nodes.Nodes``."""

    def place(self, room: Room) -> Actor: ...


class Member:
    """Every ``look`` does what is to be done next; none waits."""

    def __init__(
        self,
        places: Places,
        room: Room,
        words: Callable[[str], Sequence[str]],
        environment: Mapping[str, str],
        secret: str,
    ) -> None:
        """``words``: of its command line, from an address at which it can listen."""
        self.room = room
        self.stage = Stage.PLACING
        self.address = ""
        """Where it can listen; known from STARTING on."""
        self.end: End | None = None
        self._words = words
        self._environment = dict(environment)
        self._secret = secret
        self._actor = places.place(room)
        self._call = self._actor.call("free_address")

    def look(self) -> Stage:
        if self.stage is not Stage.OVER and self._call.answered():
            try:
                self._answered(self._call.answer())
            except HolderLost as lost:
                self._over(End(why=f"its node or actor is lost: {lost}"))
        return self.stage

    def ask_to_stop(self) -> None:
        """SIGTERM to the process; how it ends is seen as always."""
        if self.stage is Stage.RUNNING:
            self._actor.call("stop")

    def give_up(self) -> None:
        """End it now, whatever it does."""
        self._over(End(why="given up"))

    def _answered(self, answer: Any) -> None:
        match self.stage:
            case Stage.PLACING:
                self.address = answer
                self.stage = Stage.STARTING
                words = list(self._words(answer))
                self._call = self._actor.call("start", words, self._environment, self._secret)
            case Stage.STARTING:
                self.stage = Stage.RUNNING
                self._call = self._actor.call("poll")
            case _ if answer is None:
                self._call = self._actor.call("poll")
            case _:
                how = f"exit code {answer}" if answer >= 0 else f"signal {-answer}"
                self._over(End(why=f"its process ended with {how}", exit_code=answer))

    def _over(self, end: End) -> None:
        if self.stage is not Stage.OVER:
            self.stage, self.end = Stage.OVER, end
            self._actor.end()
