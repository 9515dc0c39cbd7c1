"""Keys in the form in which state keeps them.

In Python ``1 == True == 1.0``, and a dict takes them for one key; here they are two keys and a mistake. So
state never sees a key as it came: ``normalise`` looks at the types of a whole batch at once and hands back
the batch itself when all are str, bytes or int, which costs about 20 ns a key.

The stored form has a second use. Its hash and equality run in C without calling Python code, so that a
lookup in a dict is one step under the interpreter's lock; ``front`` relies on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

from processor.records.batch import Key
from processor.records.key_groups import decode_key, encode_key

StoredKey: TypeAlias = str | bytes | int | tuple[Any, ...]
"""A str, bytes or int as it is; a flat tuple of those as it is; any other key as (a private mark, its
bytes)."""

_AS_THEY_ARE: Final = frozenset((str, bytes, int))


class _Encoded:
    """The mark of a key that is kept as its bytes. No author can have it in a tuple of theirs."""

    def __repr__(self) -> str:
        return "<encoded>"


_ENCODED: Final = _Encoded()


def normalise(keys: Sequence[Key]) -> Sequence[StoredKey]:
    """The stored form of a batch's keys, one for one; the same object when nothing is to be done.

    Raises JobError for what cannot be a key (None, a float, a naive datetime).
    """
    if _AS_THEY_ARE.issuperset(map(type, keys)):
        return cast(Sequence[StoredKey], keys)
    return [normalise_key(key) for key in keys]


def normalise_key(key: Key) -> StoredKey:
    """The stored form of one key; a stored key gives itself. Raises JobError for what cannot be a key."""
    kind = type(key)
    if kind in _AS_THEY_ARE:
        return cast(StoredKey, key)
    if kind is tuple:
        parts = cast(tuple[Any, ...], key)
        if parts and parts[0] is _ENCODED:
            return parts
        if _AS_THEY_ARE.issuperset(map(type, parts)):
            return parts
    return _ENCODED, encode_key(key)


def author_key(key: StoredKey) -> Key:
    """The key as its author gave it (a datetime: the same moment, in UTC)."""
    if type(key) is tuple and key and key[0] is _ENCODED:
        return decode_key(key[1])
    return cast(Key, key)


def author_keys(keys: list[StoredKey]) -> list[Key]:
    """``author_key`` of many; the same list when nothing is to be done."""
    if tuple in set(map(type, keys)):
        return [author_key(key) for key in keys]
    return cast(list[Key], keys)


def key_bytes(key: StoredKey) -> bytes:
    """What ``records.key_groups.encode_key`` makes of the author's key."""
    if type(key) is tuple and key and key[0] is _ENCODED:
        return cast(bytes, key[1])
    return encode_key(cast(Key, key))
