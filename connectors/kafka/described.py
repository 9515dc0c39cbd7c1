"""Sources and sinks in the words of a job's author: what ``processor explain`` and errors show."""

from __future__ import annotations


def described(name: str, topics: object, codec: object, **more: object) -> str:
    """A call as the author could have written it; of ``more`` what is None is left out."""
    own = type(codec).__repr__ is not object.__repr__
    words = [repr(topics), repr(codec) if own else type(codec).__name__]
    words += [f"{option}={value!r}" for option, value in more.items() if value is not None]
    return f"{name}({', '.join(words)})"
