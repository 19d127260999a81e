"""Headers that state an allowance: the forms of the providers; what is no such header is ignored."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigwire.lm.policy.limits.headers import Allowance, allowances, duration

DATE = "Sun, 22 Nov 2026 10:00:00 GMT"


def openai(resource: str, limit: object, remaining: object, reset: str) -> dict[str, str]:
    return {
        f"x-ratelimit-limit-{resource}": str(limit),
        f"x-ratelimit-remaining-{resource}": str(remaining),
        f"x-ratelimit-reset-{resource}": reset,
    }


def anthropic(resource: str, limit: object, remaining: object, reset: str) -> dict[str, str]:
    name = f"anthropic-ratelimit-{resource}"
    return {f"{name}-limit": str(limit), f"{name}-remaining": str(remaining), f"{name}-reset": reset, "date": DATE}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (openai("requests", 500, 499, "120ms"), Allowance("requests", 500, 499, 0.12)),
        (openai("tokens", 30000, 29980, "40ms"), Allowance("tokens", 30000, 29980, 0.04)),
        (openai("requests", 14400, 14370, "2m59.56s"), Allowance("requests", 14400, 14370, 179.56)),  # Groq, of a day
        (openai("tokens", 18000, 17997, "7.66s"), Allowance("tokens", 18000, 17997, 7.66)),
        (openai("requests", 60, 0, "6m0s"), Allowance("requests", 60, 0, 360.0)),
        (openai("requests", 60, 10, "12"), Allowance("requests", 60, 10, 12.0)),  # Azure: seconds
        (anthropic("requests", 50, 49, "2026-11-22T10:00:30Z"), Allowance("requests", 50, 49, 30.0)),
        (anthropic("input-tokens", 40000, 100, "2026-11-22T10:00:59+00:00"), Allowance("input-tokens", 40000, 100, 59.0)),
        (anthropic("output-tokens", 8000, 8000, "2026-11-22T10:00:00Z"), Allowance("output-tokens", 8000, 8000, 0.0)),
        (anthropic("tokens", 48000, 0, "2026-11-22T09:59:00Z"), Allowance("tokens", 48000, 0, 0.0)),
    ],
)  # fmt: skip
def test_allowance_is_read(headers: dict[str, str], expected: Allowance) -> None:
    [found] = allowances(headers)
    assert found.resource == expected.resource
    assert found[1:] == pytest.approx(expected[1:])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"retry-after": "3"},
        {"x-ratelimit-limit-requests": "500"},
        openai("requests", 500, 600, "1s"),  # more than the limit
        openai("requests", 0, 0, "1s"),
        openai("requests", "nan", 1, "1s"),
        openai("requests", "1e999", 1, "1s"),
        openai("requests", "-5", "-6", "1s"),
        openai("requests", 9 * 10**14, 1, "1s"),
        openai("requests", "٥٠", "٤", "1s"),  # digits, but not those of HTTP
        openai("requests", 10, 1, "soon"),
        openai("requests", 10, 1, "99999999d"),
        openai("requests", 10, 1, "1" * 5000 + "s"),
        openai("requests", 10, 1, "-1s"),
        anthropic("requests", 10, 1, "2026-11-22T10:00:30"),  # no zone
        anthropic("requests", 10, 1, "0000-99-99T00:00:00Z"),
        anthropic("requests", 10, 1, "9999-01-01T00:00:00Z"),
        {**anthropic("requests", 10, 1, "2026-11-22T10:00:30Z"), "date": "today"},
    ],
)
def test_headers_without_an_allowance_are_ignored(headers: dict[str, str]) -> None:
    assert allowances(headers) == []


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
@example("0\x1f", "0\x1f", "1s\x1f", "")  # str.strip removes what float refuses
def test_any_header_gives_finite_numbers_or_none(limit: str, remaining: str, reset: str, date: str) -> None:
    for headers in (openai("tokens", limit, remaining, reset), {**anthropic("tokens", 10, 5, reset), "date": date}):
        for found in allowances(headers):
            assert 0 < found.limit < math.inf
            assert 0 <= found.remaining <= found.limit
            assert 0 <= found.reset < math.inf


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_duration_reads_each_unit(hours: int, minutes: int, seconds: int, milliseconds: int) -> None:
    text = f"{hours}h{minutes}m{seconds}s{milliseconds}ms"
    assert duration(text) == pytest.approx(hours * 3600 + minutes * 60 + seconds + milliseconds / 1000)
