"""``breaks_off``: the error of an official package that reads a stream which the provider breaks off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sigwire.testing import FakeProvider

__all__ = ["breaks_off"]


@contextmanager
def breaks_off(provider: FakeProvider) -> Iterator[None]:
    """Expect the block to fail because the body of the first reply ended before its last chunk.

    Some packages raise the error of the HTTP client, others an error of their own with the client's error as its cause; both
    differ by version. So the error and its causes are searched for the client's message.
    """
    with pytest.raises(Exception) as caught:
        yield
    causes: list[BaseException] = []
    error: BaseException | None = caught.value
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__
    assert any("incomplete chunked read" in str(each) for each in causes), causes
    stream = provider.requests[0].stream
    assert stream is not None
    assert stream.wait() == "broken off"
