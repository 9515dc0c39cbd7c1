"""A connector's twin for simulations: an outside system in memory, in a world of simulated time and chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Protocol

from processor.contracts.topic_reader import RawHeaders, TopicReader
from processor.ids import SplitId


class Fate(Enum):
    """What becomes of one request."""

    DELIVERED = auto()
    """It takes effect, and its answer arrives."""
    REQUEST_LOST = auto()
    """It takes no effect, unless it is late (``OutsideWorld.late``); the sender hears nothing."""
    ANSWER_LOST = auto()
    """It takes effect; the sender hears nothing."""
    DOUBLED = auto()
    """It takes effect, its answer arrives, and it takes effect again, late or at once."""


class OutsideWorld(Protocol):
    """The world as a simulated system and its clients see it.

    Everything runs in one thread: a call may hand over to other processes of the world only inside ``wait`` and
    ``exchange``. ``request`` is a word for what is asked, then what it is about: ``EndTxn commit job.out.0``,
    ``Fetch clicks/0``. The first word is all that a world need look at.
    """

    def now_ms(self) -> int:
        """Simulated time; it serves as both clocks of the outside system."""
        ...

    def wait(self, wait_ms: int) -> None:
        """The calling process sleeps while others run; raises a BaseException if it is killed meanwhile."""
        ...

    def exchange(self, request: str, client: int) -> Fate:
        """Called once for each request, before it takes effect: its way there. It may wait, hand over to
        others, or raise if the caller is killed. While the system is down, requests are lost."""
        ...

    def late(self, request: str) -> int | None:
        """After how many milliseconds a request arrives all the same: one that was lost, the second of a
        doubled one, or one whose sender was killed on the way. None: never, or of a doubled one at once."""
        ...

    def nonce(self) -> str:
        """A text that no other call returns."""
        ...

    def stale_read(self, group: str) -> bool:
        """Whether this read of a group's offsets is answered from memory, by a coordinator that slept through
        its succession (R15)."""
        ...

    def visible_after_ms(self, partition: str) -> int:
        """How long after the end of a transaction its marker reaches this partition (``clicks/2``), or a
        group's offsets (``__consumer_offsets job.out.0``) (R17)."""
        ...

    def leader_away_ms(self, partition: str) -> int:
        """Asked whenever rows have reached a partition: for how long nobody leads it from now on; 0: no change
        (R32)."""
        ...

    def later(self, delay_ms: int, act: Callable[[], None]) -> None:
        """Runs ``act`` once, outside of every process. It neither waits nor raises."""
        ...


class SimulatedSystem(Protocol):
    """All clusters (servers, databases) of one plugin in one world."""

    @property
    def settings(self) -> object:
        """What the engine hands to sources and sinks as the plugin's section, to reach this system."""
        ...

    def serves(self, endpoint: object) -> bool:
        """Whether a source or sink is of this plugin. All other calls are for those that are."""
        ...

    def prepare(self, endpoint: object, parts: int) -> None:
        """Make what a source reads or a sink writes, in so many parts; without effect when it is there."""
        ...

    def append(
        self,
        source: object,
        part: int,
        *,
        key: bytes | None,
        value: bytes | None,
        time_ms: int | None = None,
        headers: RawHeaders = (),
    ) -> None:
        """Add a record to a part of what the source reads. ``time_ms``: without it, now. A system whose topics
        can grow makes parts that are not there yet: the job is to find them."""
        ...

    def ends(self, source: object) -> Mapping[SplitId, int]:
        """The place after everything that is there for the source to read, by part."""
        ...

    def reader(self, endpoint: object) -> TopicReader:
        """Reads what is there, without faults."""
        ...
