"""Ways in which the bytes of a file go wrong."""

from __future__ import annotations

from hypothesis import strategies as st


def flipped(whole: bytes, at: int, bits: int = 1) -> bytes:
    """One byte has other bits."""
    return whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :]


def zeroed(whole: bytes, start: int, stop: int) -> bytes:
    """A page that was never written."""
    return whole[:start] + bytes(stop - start) + whole[stop:]


def damages(whole: bytes) -> st.SearchStrategy[bytes]:
    """Any of them, and some more."""
    places = st.integers(0, len(whole) - 1)
    spans = st.tuples(places, places).map(sorted)
    return st.one_of(
        st.tuples(places, st.integers(1, 255)).map(lambda at: flipped(whole, *at)),
        places.map(lambda at: whole[:at]),
        spans.map(lambda at: zeroed(whole, *at)),
        spans.map(lambda at: whole[: at[0]] + whole[at[1] :]),
        spans.map(lambda at: whole[: at[1]] + whole[at[0] :]),
        st.binary(min_size=1, max_size=30).map(lambda more: whole + more),
    )
