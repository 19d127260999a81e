"""The hues of cards are readable on a light and on a dark page: contrast by the style of a card (WCAG 2.2, 1.4.3)."""

from __future__ import annotations

import re

import pytest

from sigwire.show.card import Card
from sigwire.show.html import html_card

MIXED = re.compile(r"color:color-mix\(in srgb,(#[0-9a-f]{6}) (\d+)%,currentColor\)")
BLACK, NEAR_BLACK, WHITE = (0.0, 0.0, 0.0), (17 / 255,) * 3, (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("text", "page"), [(BLACK, WHITE), (WHITE, NEAR_BLACK)], ids=["light", "dark"])
def test_four_hues_have_contrast_with_the_page(text: tuple[float, ...], page: tuple[float, ...]) -> None:
    hues = set(MIXED.findall(html_card(Card("title"))))
    assert len(hues) == 4
    ratios = {hue: contrast(mixed(hue, int(share) / 100, text), page) for hue, share in hues}
    assert {hue: ratio for hue, ratio in ratios.items() if ratio < 4.5} == {}


def mixed(hue: str, share: float, text: tuple[float, ...]) -> tuple[float, ...]:
    channels = [value / 255 for value in bytes.fromhex(hue.removeprefix("#"))]
    return tuple(share * channel + (1 - share) * other for channel, other in zip(channels, text, strict=True))


def contrast(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """Return the contrast of two colours, each as red, green and blue from 0 to 1.

    >>> round(contrast(BLACK, WHITE), 6)
    21.0
    """
    dark, light = sorted(luminance(colour) for colour in (first, second))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: tuple[float, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
