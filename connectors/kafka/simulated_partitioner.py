"""Which partition a key belongs to, as Kafka's own clients decide it."""

from __future__ import annotations

from typing import Final

SEED: Final = 0x9747B28C
MIXER: Final = 0x5BD1E995
BITS_32: Final = 0xFFFFFFFF
POSITIVE: Final = 0x7FFFFFFF

KEYS_KEPT_MAX: Final = 65_536


class KeyPartitioner:
    """MurmurHash2 of the key, by Kafka's seed; the hashes of recent keys are kept, for Python is slow at it."""

    def __init__(self) -> None:
        self._hashes: dict[bytes, int] = {}

    def partition(self, key: bytes, partitions: int) -> int:
        found = self._hashes.get(key)
        if found is None:
            if len(self._hashes) >= KEYS_KEPT_MAX:
                self._hashes.clear()
            found = self._hashes[key] = murmur2(key) & POSITIVE
        return found % partitions


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bits, little endian, with Kafka's seed; unsigned."""
    whole = len(data) & ~3
    mixed = (SEED ^ len(data)) & BITS_32
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * MIXER & BITS_32
        word = (word ^ (word >> 24)) * MIXER & BITS_32
        mixed = (mixed * MIXER & BITS_32) ^ word
    if whole < len(data):
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * MIXER & BITS_32
    mixed = (mixed ^ (mixed >> 13)) * MIXER & BITS_32
    return mixed ^ (mixed >> 15)
