"""Between bytes and values."""

from __future__ import annotations

from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Decoder(Protocol[T_co]):
    def decode(self, data: bytes, /) -> T_co:
        """The value. Raises any exception for data it cannot read; the source adds the place."""
        ...


class Encoder(Protocol[T_contra]):
    def encode(self, value: T_contra, /) -> bytes: ...
