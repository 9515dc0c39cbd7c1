"""Commands for the developer's broker: `processor dev kafka up|down|status`."""

from __future__ import annotations

from typing import Annotated

import typer

from connectors.kafka.dev_broker import DEFAULT_VERSION, BrokerStartError, MissingToolError, describe
from connectors.kafka.dev_broker import down as take_down
from connectors.kafka.dev_broker import status as look
from connectors.kafka.dev_broker import up as bring_up
from connectors.kafka.dev_docker import DockerFailedError

kafka = typer.Typer(name="kafka", help="A Kafka to develop against.", no_args_is_help=True)


@kafka.command()
def up(
    version: Annotated[
        str, typer.Option(help="Kafka version, where it is run from its own jars.")
    ] = DEFAULT_VERSION,
) -> None:
    """Find or start a Kafka, and print its bootstrap servers."""
    try:
        typer.echo(bring_up(version=version))
    except (MissingToolError, BrokerStartError, ValueError) as failed:
        raise _ended(failed) from failed


@kafka.command()
def down() -> None:
    """Stop the Kafka that `up` started, and drop its data."""
    try:
        take_down()
    except (MissingToolError, DockerFailedError) as failed:
        raise _ended(failed) from failed


@kafka.command()
def status() -> None:
    """Say where Kafka is and whether it answers; exits with 1 when it does not."""
    try:
        now = look()
    except MissingToolError as failed:
        raise _ended(failed) from failed
    typer.echo(describe(now))
    if not now.answers:
        raise typer.Exit(1)


def _ended(failed: Exception) -> typer.Exit:
    typer.echo(str(failed), err=True)
    return typer.Exit(1)
