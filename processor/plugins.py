"""Finds connectors by entry point, and imports one only when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from processor.contracts.plugin import Plugin
from processor.errors import ProcessorError, SettingsError

if TYPE_CHECKING:
    from pydantic import BaseModel

GROUP: Final = "processor.plugins"


class Plugins:
    """The connectors installed. Making one imports none of them."""

    def __init__(self, points: Mapping[str, EntryPoint]) -> None:
        self._points = points
        self._loaded: dict[str, Plugin] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Sorted, so that help texts and errors are the same on every machine."""
        return tuple(sorted(self._points))

    def get(self, name: str) -> Plugin:
        """Import a plugin, once. Raises SettingsError when it is not installed or cannot be imported."""
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def settings_models(self) -> Mapping[str, type[BaseModel]]:
        """The settings section of every plugin, by name."""
        return MappingProxyType({name: self.get(name).settings_model() for name in self.names})

    def _load(self, name: str) -> Plugin:
        point = self._points.get(name)
        if point is None:
            installed = ", ".join(self.names) or "none"
            raise SettingsError(
                f"there is no plugin '{name}'; installed are: {installed}.",
                remedy="Install the package that has it, in the environment that runs this command.",
            )
        try:
            plugin: Plugin = point.load()
        except ProcessorError:
            raise
        except Exception as broken:
            raise SettingsError(
                f"plugin '{name}' ({point.value}) cannot be imported: {type(broken).__name__}: {broken}.",
                remedy="Install it again, with all it needs.",
            ) from broken
        if plugin.name != name:
            raise SettingsError(
                f"the plugin installed as '{name}' ({point.value}) calls itself '{plugin.name}'.",
                remedy="Its entry point and its name have to agree; tell its author.",
            )
        return plugin


def installed_plugins() -> Plugins:
    """Every connector of this environment. Raises SettingsError when two have one name."""
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        other = points.setdefault(point.name, point)
        if other.value != point.value:
            raise SettingsError(
                f"two plugins are named '{point.name}': {other.value} and {point.value}.",
                remedy="Uninstall one of them.",
            )
    return Plugins(points)
