"""What a connector offers so that a stretch of history can be run again, into other targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from processor.ids import SplitId

if TYPE_CHECKING:
    from pydantic import BaseModel


class Replays(Protocol):
    """Of one plugin."""

    def redirected(self, settings: object, targets: Mapping[str, str]) -> BaseModel:
        """Its section of the settings, so that sinks write to other targets: from the name that the job writes to the
        one that is meant. Raises SettingsError for what cannot be a target."""
        ...

    def ends(
        self, settings: object, source: object, splits: Sequence[SplitId], time_ms: int | None
    ) -> Mapping[SplitId, int] | None:
        """Where a source's splits stand now; with ``time_ms`` the first record that is not older, or where the split
        stands if there is none. None for a source of another plugin. Raises Unavailable, ExternalRefusal."""
        ...
