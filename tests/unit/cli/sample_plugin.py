"""A plugin as one is installed: a settings section, commands for developers, checks."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from tests.unit.settings.sample_sections import Broker

commands = typer.Typer(name="broker", help="A broker to work against.")
single = typer.Typer(name="single")


@commands.command()
def up(size: int = 1) -> None:
    """Start it."""
    typer.echo(f"up with {size}")


@commands.command()
def down() -> None:
    """Stop it."""
    raise typer.Exit(3)


@single.command()
def only() -> None:
    """The one command there is."""
    typer.echo("only")


@dataclass(frozen=True)
class Finding:
    what: str
    passed: bool
    detail: str


class SamplePlugin:
    """See ``processor.contracts.plugin.Plugin``."""

    def __init__(self, name: str, dev: typer.Typer | None = None) -> None:
        self.name = name
        self._dev = dev

    def settings_model(self) -> type[Broker]:
        return Broker

    def dev_commands(self) -> typer.Typer | None:
        return self._dev

    def topic_reader(self, settings: object, endpoint: object) -> None:
        return None

    def replays(self) -> None:
        return None

    def doctor(self, settings: object) -> list[Finding]:
        assert isinstance(settings, Broker)
        return [Finding("the address is set", settings.main.address is not None, settings.main.address or "")]


broker = SamplePlugin("broker", commands)
single_command = SamplePlugin("one", single)
quiet = SamplePlugin("quiet")
misnamed = SamplePlugin("somebody else")
