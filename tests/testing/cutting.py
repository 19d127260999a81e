"""Streams of the fake provider that are cut anywhere, for the packages that have to put them together again."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from sigwire.testing import Answer, Streamed


def cut_anywhere(answer: Answer) -> st.SearchStrategy[Streamed]:
    """An answer streamed as server-sent events: any cuts, any packets, both line ends, with or without pings."""
    return st.builds(
        partial(Streamed, answer),
        seed=st.integers(),
        packets=st.integers(1, 300),
        newline=st.sampled_from(["\n", "\r\n"]),
        ping_every=st.integers(0, 2),
    )
