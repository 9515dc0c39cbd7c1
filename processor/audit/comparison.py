"""Records as bytes on one side, the fold on the other: how each kind of audit reads them for it."""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from typing import Protocol, assert_never

from processor.audit.expectation import Audit, AuditKind, Bytes
from processor.audit.fold import CountFold, Deviation, FoldFigures, SequenceFold
from processor.contracts.topic_reader import RawHeaders
from processor.errors import JobError
from processor.ids import SplitId

DIGEST_BYTES = 16


class Comparison(Protocol):
    """Fed with the input, all that must be out before what may be, then with the output."""

    def before(self, split: SplitId, key: Bytes, value: Bytes, headers: RawHeaders | None) -> None:
        """Input read before this output began."""
        ...

    def expect(self, split: SplitId, key: Bytes, value: Bytes, headers: RawHeaders | None) -> None: ...

    def allow(self, split: SplitId, key: Bytes, value: Bytes, headers: RawHeaders | None) -> None: ...

    def meet(self, key: Bytes, value: Bytes, headers: RawHeaders | None) -> Deviation | None: ...

    def figures(self) -> FoldFigures: ...


def comparison(audit: Audit) -> Comparison:
    """The comparison of an audit's kind. Raises JobError for an audit without its functions."""
    match audit.kind:
        case AuditKind.KEYED_COUNT:
            return CountComparison(audit)
        case AuditKind.PASS_THROUGH:
            return PassThroughComparison(audit)
        case _:
            assert_never(audit.kind)


class CountComparison:
    """Running counts by key."""

    def __init__(self, audit: Audit) -> None:
        if audit.keys is None or audit.counted is None:
            raise JobError(
                "an audit of a keyed count needs both of its functions, 'keys' and 'counted'.",
                remedy="Make it by keyed_count().",
            )
        self._keys, self._counted = audit.keys, audit.counted
        self._fold = CountFold()

    def before(self, split: SplitId, key: Bytes, value: Bytes, headers: RawHeaders | None) -> None:
        self._fold.before(self._keys(key, value))

    def expect(self, split: SplitId, key: Bytes, value: Bytes, headers: RawHeaders | None) -> None:
        self._fold.expect(self._keys(key, value))

    def allow(self, split: SplitId, key: Bytes, value: Bytes, headers: RawHeaders | None) -> None:
        self._fold.allow(self._keys(key, value))

    def meet(self, key: Bytes, value: Bytes, headers: RawHeaders | None) -> Deviation | None:
        return self._fold.meet(*self._counted(key, value))

    def figures(self) -> FoldFigures:
        return self._fold.figures()


class PassThroughComparison:
    """Records that come out as they went in."""

    def __init__(self, audit: Audit) -> None:
        self._group, self._item = audit.group, audit.item
        self._fold = SequenceFold()
        self._split_of_group: dict[Hashable, SplitId] = {}

    def before(self, split: SplitId, key: Bytes, value: Bytes, headers: RawHeaders | None) -> None:
        return None

    def expect(self, split: SplitId, key: Bytes, value: Bytes, headers: RawHeaders | None) -> None:
        group, item = self._of(key, value, headers)
        if group is None or self._split_of_group.setdefault(group, split) != split:
            self._fold.disorder(group)
        self._fold.expect(group, item)

    def allow(self, split: SplitId, key: Bytes, value: Bytes, headers: RawHeaders | None) -> None:
        self._fold.allow(*self._of(key, value, headers))

    def meet(self, key: Bytes, value: Bytes, headers: RawHeaders | None) -> Deviation | None:
        return self._fold.meet(*self._of(key, value, headers))

    def figures(self) -> FoldFigures:
        return self._fold.figures()

    def _of(self, key: Bytes, value: Bytes, headers: RawHeaders | None) -> tuple[Hashable, Hashable]:
        group = self._group(key, value) if self._group is not None else key
        if self._item is not None:
            return group, self._item(key, value)
        return group, digest(key, value, headers)


def digest(key: Bytes, value: Bytes, headers: RawHeaders | None) -> bytes:
    """All of a record in a few bytes; parts of different kind or length never meet."""
    parts: list[Bytes] = [key, value]
    for name, content in headers or ():
        parts += [name.encode(), content]
    hashed = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        hashed.update(b"-" if part is None else b"+" + len(part).to_bytes(4, "big") + part)
    return hashed.digest()
