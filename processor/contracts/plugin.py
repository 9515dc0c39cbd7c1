"""What a connector's package offers to the engine, found by entry point ``processor.plugins``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import typer
    from pydantic import BaseModel

    from processor.contracts.replays import Replays
    from processor.contracts.simulated import OutsideWorld, SimulatedSystem
    from processor.contracts.topic_reader import TopicReader


class Plugin(Protocol):
    """One connector family. Importing the plugin's module must be cheap; its clients load when used."""

    @property
    def name(self) -> str:
        """The name of its settings section: ``kafka``."""
        ...

    def settings_model(self) -> type[BaseModel]:
        """The pydantic model of its section; every field has a default."""
        ...

    def dev_commands(self) -> typer.Typer | None:
        """Commands mounted as ``processor dev NAME …``."""
        ...

    def doctor(self, settings: object) -> list[DoctorFinding]:
        """Try, on the real outside system, what exactly-once relies on (R31)."""
        ...

    def topic_reader(self, settings: object, endpoint: object) -> TopicReader | None:
        """For audits: a reader of what a source reads or a sink writes; None for one of another plugin."""
        ...

    def replays(self) -> Replays | None:
        """What it takes to run history again into other targets; None where that cannot be done."""
        ...

    def simulated(self, world: OutsideWorld, settings: object) -> SimulatedSystem:
        """The outside system in memory, for simulations, with a section of the settings."""
        ...


class DoctorFinding(Protocol):
    @property
    def what(self) -> str: ...

    @property
    def passed(self) -> bool: ...

    @property
    def detail(self) -> str: ...
