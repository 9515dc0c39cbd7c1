"""Whether all machines of a job see its checkpoints."""

from __future__ import annotations

from processor.errors import SettingsError
from processor.settings.model import Settings
from processor.storage.places import places_of


def require_shared_places(settings: Settings, machines: str) -> None:
    """``machines``: what the others are called. Raises SettingsError for a directory of which nobody has said that it
    is shared."""
    if settings.runtime.cluster.shared_directory:
        return
    places = places_of(settings)
    for name, place in (("checkpoint.directory", places.files), ("checkpoint.log_directory", places.log)):
        if place.directory is not None:
            raise SettingsError(
                f"{name} is {place}, a directory, and {machines} do not see it.",
                remedy="Use an object store (s3://…), or set runtime.cluster.shared_directory where it is one "
                "directory on all of them.",
            )
