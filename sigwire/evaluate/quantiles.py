"""Quantiles of the normal and of Student's t distribution, for intervals of the standard library only."""

from __future__ import annotations

import math
from statistics import NormalDist

from sigwire.errors import ConfigurationError

__all__ = ["NORMAL", "t_of", "t_p", "t_quantile", "z_of"]

NORMAL = NormalDist()


def z_of(confidence: float) -> float:
    """Return the normal quantile of a two-sided interval. Raises ``ConfigurationError`` unless 0 < confidence < 1.

    >>> round(z_of(0.95), 4)
    1.96
    """
    return NORMAL.inv_cdf(_quantile_of(confidence))


def t_of(confidence: float, freedom: float) -> float:
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


def t_quantile(p: float, freedom: float) -> float:
    """Return the quantile of Student's t to some 12 digits. Degrees of freedom may be no whole number (Satterthwaite's).

    Abramowitz and Stegun, 26.7.5 as a start, then Newton's steps on the exact distribution.

    >>> round(t_quantile(0.975, 4), 6), round(t_quantile(0.025, 30), 6), round(t_quantile(0.975, 2.5), 6)
    (2.776445, -2.042272, 3.574655)
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
        step = (t_p(t, v) / 2 - (1 - p)) / (scale * (1 + t * t / v) ** (-(v + 1) / 2))
        t += step
        if abs(step) <= 1e-13 * max(t, 1):
            break
    return t


def t_p(t: float, freedom: float) -> float:
    """Return the two-sided p of a value of Student's t: the share of I(ν/2, 1/2) below ν/(ν+t²).

    >>> round(t_p(2.776445, 4), 6), t_p(0, 9), t_p(float("inf"), 3)
    (0.05, 1.0, 0.0)
    """
    if math.isinf(t):
        return 0.0
    square = t * t
    return _beta_share(freedom / (freedom + square), square / (freedom + square), freedom / 2, 0.5)


def _beta_share(x: float, rest: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b); ``rest`` is 1 - x, which may be too small to subtract."""
    if x <= 0 or rest <= 0:
        return float(rest <= 0)
    if x > (a + 1) / (a + b + 2):  # there the fraction converges slowly
        return 1 - _beta_share(rest, x, b, a)
    size = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    # Lentz's steps on the continued fraction DLMF 8.17.22.
    numerator, denominator, found = 1.0, 1 / (1 - (a + b) * x / (a + 1)), 1 / (1 - (a + b) * x / (a + 1))
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            denominator = 1 / (1 + term * denominator)
            numerator = 1 + term / numerator
            found *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-15:
            break
    return math.exp(size) * found / a
