"""Ways in which the bytes of a file go wrong."""

from __future__ import annotations

from hypothesis import strategies as st


def damages(whole: bytes) -> st.SearchStrategy[bytes]:
    places = st.integers(0, len(whole) - 1)
    spans = st.tuples(places, places).map(sorted)
    flipped = st.tuples(places, st.integers(1, 255)).map(
        lambda at: whole[: at[0]] + bytes([whole[at[0]] ^ at[1]]) + whole[at[0] + 1 :]
    )
    cut = places.map(lambda at: whole[:at])
    zeroed = spans.map(lambda at: whole[: at[0]] + bytes(at[1] - at[0]) + whole[at[1] :])
    removed = spans.map(lambda at: whole[: at[0]] + whole[at[1] :])
    doubled = spans.map(lambda at: whole[: at[1]] + whole[at[0] :])
    longer = st.binary(min_size=1, max_size=30).map(lambda more: whole + more)
    return st.one_of(flipped, cut, zeroed, removed, doubled, longer)
