"""Where a replay ends, as it is written on a command line, and what that is in positions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from processor.errors import JobError, SettingsError
from processor.ids import SplitId, StepName
from processor.protocol.entries import CheckpointEntry
from processor.runtime.renaming import Renaming, renamed
from processor.runtime.stretch import Ends, positions_in
from processor.savepoint import open_savepoint
from processor.settings.stores import StoreSettings

NOW: Final = "now"
_OFFSET: Final = re.compile(r"([^=,\s]+)=([0-9]{1,18})\Z", re.ASCII)
_MILLISECONDS: Final = re.compile(r"[0-9]{10,16}\Z", re.ASCII)

Asked = Callable[[StepName, Sequence[SplitId], int | None], Mapping[SplitId, int]]
"""Where splits of a step stand now, or stood at a time in ms since 1970 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """Where it ends: one of these, or where the input ends now."""

    offsets: Mapping[SplitId, int] | None = None
    time_ms: int | None = None
    checkpoint: CheckpointEntry | None = None


def read_until(
    written: str, stores: StoreSettings | None = None, renamings: Sequence[Renaming] = ()
) -> Until:
    """``now``, a time, ``TOPIC/PARTITION=OFFSET,…``, or a savepoint or what is kept for a job.

    ``renamings`` of its steps are those of the origin. Raises SettingsError, JobError.
    """
    if written == NOW:
        return Until()
    if "=" in written:
        found = [_OFFSET.match(part) for part in written.split(",")]
        if not all(found):
            raise SettingsError(
                f"--until {written}: offsets are written TOPIC/PARTITION=OFFSET, with commas between them."
            )
        return Until(offsets={SplitId(each[1]): int(each[2]) for each in found if each is not None})
    if _MILLISECONDS.match(written):
        return Until(time_ms=int(written))
    try:
        time = datetime.fromisoformat(written)
    except ValueError:
        return Until(checkpoint=renamed(open_savepoint(written, stores=stores).entry, renamings))
    if time.tzinfo is None:
        raise SettingsError(
            f"--until {written} names no zone, and is another moment in every one.",
            remedy="Write it with one, such as 2030-01-02T03:04:05+00:00.",
        )
    return Until(time_ms=int(time.timestamp() * 1_000))


def ends_of(sources: Sequence[StepName], origin: CheckpointEntry, until: Until, asked: Asked) -> Ends:
    """Where every split that the origin reads ends. Raises JobError for an end before the origin, for offsets of a
    split that it does not read, and for a source that it does not know."""
    starts = {step: splits for step, splits in positions_in(origin).items() if step in sources}
    new = sorted(set(sources) - starts.keys())
    if new:
        raise JobError(
            f"step '{new[0]}' reads, and the savepoint does not say where it stood.",
            remedy="Leave the step out of a replay, or name the one it was by --rename OLD=NEW.",
        )
    ends: dict[StepName, dict[SplitId, int]] = {}
    for step, splits in starts.items():
        if until.checkpoint is not None:
            found: Mapping[SplitId, int] = positions_in(until.checkpoint).get(step, {})
        elif until.offsets is not None:
            found = until.offsets
        else:
            found = asked(step, sorted(splits), until.time_ms)
        # A split that is not named stays where it is.
        ends[step] = {split: found.get(split, start) for split, start in splits.items()}
        before = [split for split, start in splits.items() if ends[step][split] < start]
        if before and until.time_ms is None:
            split = min(before)
            raise JobError(
                f"the replay would end at {split} offset {ends[step][split]}, and it begins at {splits[split]}.",
                remedy="Begin with an older savepoint, or end later.",
            )
        ends[step] = {split: max(end, splits[split]) for split, end in ends[step].items()}
    known = {split for splits in starts.values() for split in splits}
    unknown = sorted((until.offsets or {}).keys() - known)
    if unknown:
        raise JobError(
            f"--until names '{unknown[0]}', which the checkpoint does not read.",
            remedy=f"It reads {', '.join(sorted(known)) or 'nothing'}.",
        )
    return ends
