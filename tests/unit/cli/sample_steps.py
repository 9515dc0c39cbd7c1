"""A source and a sink to build a job with; commands that only look never open them."""

from __future__ import annotations

from typing import NoReturn

from processor.contracts.sink import Guarantee


class Lines:
    """A source of text that nobody reads."""

    bounded = False

    def value_type(self) -> type[str]:
        return str

    def check(self, context: object) -> NoReturn:
        raise AssertionError("nothing may be checked")

    def enumerator(self, context: object) -> NoReturn:
        raise AssertionError("nothing may be read")

    def reader(self, context: object) -> NoReturn:
        raise AssertionError("nothing may be read")


class Nowhere:
    """A sink of text that nothing reaches."""

    guarantee = Guarantee.EXACTLY_ONCE

    def accepts(self, value: str, /) -> None:
        return None

    def check(self, context: object) -> NoReturn:
        raise AssertionError("nothing may be checked")

    def encoder(self, context: object) -> NoReturn:
        raise AssertionError("nothing may be written")

    def publisher(self, context: object, identity: object) -> NoReturn:
        raise AssertionError("nothing may be published")
