"""Quantiles of the normal and of Student's t distribution, for intervals of the standard library only."""

from __future__ import annotations

import math
from statistics import NormalDist

from sigwire.errors import ConfigurationError

__all__ = ["NORMAL", "t_of", "t_quantile", "z_of"]

NORMAL = NormalDist()


def z_of(confidence: float) -> float:
    """Return the normal quantile of a two-sided interval. Raises ``ConfigurationError`` unless 0 < confidence < 1.

    >>> round(z_of(0.95), 4)
    1.96
    """
    return NORMAL.inv_cdf(_quantile_of(confidence))


def t_of(confidence: float, freedom: int) -> float:
    """Return Student's quantile of a two-sided interval. Raises ``ConfigurationError`` unless 0 < confidence < 1.

    >>> round(t_of(0.95, 4), 4)
    2.7764
    """
    return t_quantile(_quantile_of(confidence), freedom)


def _quantile_of(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ConfigurationError(
            f"A confidence is between 0 and 1, such as 0.95, not {confidence!r} (making an interval). Pass such a share."
        )
    return (1 + confidence) / 2


def t_quantile(p: float, freedom: int) -> float:
    """Return the quantile of Student's t for whole degrees of freedom, to some 12 digits.

    Abramowitz and Stegun, 26.7.5 as a start, then Newton's steps on the exact distribution, 26.7.3 and 26.7.4.

    >>> round(t_quantile(0.975, 4), 6), round(t_quantile(0.025, 30), 6)
    (2.776445, -2.042272)
    """
    if freedom < 1 or not 0 < p < 1:
        raise ValueError(f"t_quantile() takes 0 < p < 1 and one degree of freedom or more, not {p} and {freedom}.")
    if p < 0.5:
        return -t_quantile(1 - p, freedom)
    z, v = NORMAL.inv_cdf(p), freedom
    t = z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    t += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    if v > 2_000:
        return t  # the terms that follow are below 1e-12
    scale = math.exp(math.lgamma((v + 1) / 2) - math.lgamma(v / 2)) / math.sqrt(v * math.pi)
    for _ in range(100):
        step = (p - (1 + _t_central(t, v)) / 2) / (scale * (1 + t * t / v) ** (-(v + 1) / 2))
        t += step
        if abs(step) <= 1e-13 * max(t, 1):
            break
    return t


def _t_central(t: float, v: int) -> float:
    """Return the probability that Student's t is between -t and t."""
    angle = math.atan(t / math.sqrt(v))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    is_odd = v % 2
    term = math.cos(angle) if is_odd else 1.0
    total = term if v > 1 else 0.0
    for k in range(3 if is_odd else 2, v - 1, 2):
        term *= square * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if is_odd else sine * total
