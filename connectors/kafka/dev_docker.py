"""Kafka in Docker, by the project's compose file."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

DAEMON_TIMEOUT_S = 10.0
"""How long a Docker daemon may take to say that it is there."""

COMPOSE_TIMEOUT_S = 600.0
"""Pulling the image included."""

PROJECT = "processor-development"


class DockerFailedError(RuntimeError):
    """Docker is there, but did not do what it was asked; the message holds what it said."""


def daemon_answers() -> bool:
    """Whether there is a Docker client, a daemon that answers it, and a compose command."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    try:
        asked = subprocess.run(
            [docker, "info", "--format", "{{.ServerVersion}}"],
            capture_output=True,
            check=False,
            timeout=DAEMON_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0 and _compose_command() is not None


def compose_up(compose_file: Path, *, port: int, project: str = PROJECT) -> None:
    """Start the compose file's Kafka, published on 127.0.0.1:`port`."""
    _compose(compose_file, project, ["up", "--detach", "kafka"], {"KAFKA_PORT": str(port)})


def compose_down(compose_file: Path, *, project: str = PROJECT) -> None:
    """Stop it, and drop its data."""
    _compose(compose_file, project, ["down", "--volumes", "--timeout", "10"], {})


def _compose(compose_file: Path, project: str, arguments: list[str], variables: dict[str, str]) -> None:
    command = _compose_command()
    if command is None:
        raise DockerFailedError("there is no `docker compose` and no `docker-compose`")
    try:
        done = subprocess.run(
            [*command, "--file", os.fspath(compose_file), "--project-name", project, *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **variables},
            timeout=COMPOSE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as late:
        raise DockerFailedError(f"docker compose took over {COMPOSE_TIMEOUT_S:.0f} s") from late
    if done.returncode != 0:
        raise DockerFailedError((done.stdout + done.stderr).strip()[-2000:])


def _compose_command() -> list[str] | None:
    docker = shutil.which("docker")
    if docker is not None:
        asked = subprocess.run(
            [docker, "compose", "version"], capture_output=True, check=False, timeout=DAEMON_TIMEOUT_S
        )
        if asked.returncode == 0:
            return [docker, "compose"]
    standalone = shutil.which("docker-compose")
    return None if standalone is None else [standalone]
