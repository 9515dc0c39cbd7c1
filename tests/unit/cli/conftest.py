"""Commands run as a person runs them, with the plugins that a test says are installed."""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint

import pytest
from typer.testing import CliRunner

import processor.plugins
from processor.cli.main import app
from processor.plugins import GROUP
from processor.telemetry.log import ROOT_LOGGER


def points(**plugins: str) -> list[EntryPoint]:
    return [EntryPoint(name=name, value=value, group=GROUP) for name, value in plugins.items()]


@pytest.fixture
def installed(monkeypatch):
    """Say which plugins are installed: ``installed(points(broker="module:attribute"))``."""

    def install(found: list[EntryPoint]) -> None:
        monkeypatch.setattr(processor.plugins, "entry_points", lambda *, group: found)

    return install


@pytest.fixture
def processor_command(installed, monkeypatch, tmp_path):
    """Run ``processor`` with arguments, in an empty directory; one plugin is installed, ``broker``."""
    installed(points(broker="tests.unit.cli.sample_plugin:broker"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **environment: str):
        return CliRunner().invoke(app, list(arguments), env=environment)

    yield run
    logging.getLogger(ROOT_LOGGER).handlers.clear()
