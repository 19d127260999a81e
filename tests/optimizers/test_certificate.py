"""Certificates: p-values, paths of policies, and how often a certified policy breaks its bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest

from sigwire.optimizers.certificate import (
    NEVER,
    Policy,
    StageRow,
    answering_stage,
    certify,
    fewest_rows,
    loss_p_value,
    policies,
    start_of,
)

RISK, CONFIDENCE = 0.1, 0.9
Row = tuple[StageRow, ...]


def _coin(source: Random, chance: float) -> float:
    return float(source.random() < chance)


def _honest(source: Random) -> Row:
    sure = [source.uniform(0.5, 1.0), source.uniform(0.7, 1.0)]
    return tuple(StageRow(each, _coin(source, 1 - each)) for each in sure)


def _overconfident(source: Random) -> Row:
    sure = [source.uniform(0.5, 1.0), source.uniform(0.7, 1.0)]
    return tuple(StageRow(each**0.2, _coin(source, 1 - each)) for each in sure)


def _useless(source: Random) -> Row:
    return tuple(StageRow(source.random(), _coin(source, 0.5)) for _ in range(2))


def _without_content(source: Random) -> Row:
    return tuple(StageRow(source.random(), _coin(source, chance)) for chance in (0.12, 0.06))


def _at_the_risk(source: Random) -> Row:
    return tuple(StageRow(source.random(), _coin(source, RISK)) for _ in range(2))


def _graded(source: Random) -> Row:
    sure = [source.uniform(0.5, 1.0), source.uniform(0.7, 1.0)]
    return tuple(StageRow(each, 2 * (1 - each) * source.random()) for each in sure)


WORLDS: dict[str, Callable[[Random], Row]] = {
    "honest": _honest,
    "overconfident": _overconfident,
    "useless": _useless,
    "without content": _without_content,
    "at the risk": _at_the_risk,
}


def _loss(world: Callable[[Random], Row], policy: Policy, source: Random, rows: int) -> float:
    """Return the mean loss of the rows that a policy answers, of many fresh rows."""
    drawn = (world(source) for _ in range(rows))
    losses = [row[at].loss for row in drawn if (at := answering_stage(row, policy)) is not None]
    return sum(losses) / len(losses) if losses else 0.0


def _violations(world: Callable[[Random], Row], seeds: int, n: int = 200, fresh: int = 5_000) -> tuple[int, int, int]:
    """Return in how many seeds the certified and the fitted policy break the bound, and how many have a certificate."""
    broken = fitted_broken = found = 0
    for seed in range(seeds):
        source = Random(f"{seed}/rows")
        train, test = ([world(source) for _ in range(n // 2)] for _ in range(2))
        path = policies(train, RISK)
        certificate = certify(test, path[start_of(train, path, RISK) :], RISK, CONFIDENCE) if path else None
        if certificate is not None:
            found += 1
            broken += _loss(world, certificate.least, source, fresh) > RISK + 0.002
        fitted = next((p for p in reversed(path) if _mean(train, p) <= RISK), None)
        if fitted is not None:
            fitted_broken += _loss(world, fitted, source, fresh) > RISK + 0.002
    return broken, fitted_broken, found


def _mean(rows: list[Row], policy: Policy) -> float:
    losses = [row[at].loss for row in rows if (at := answering_stage(row, policy)) is not None]
    return sum(losses) / len(losses) if losses else 1.0


@pytest.mark.parametrize(("n", "wrong", "risk"), [(45, 0, 0.05), (100, 3, 0.1), (400, 40, 0.08), (10, 10, 0.5)])
def test_p_value_of_zeros_and_ones_equals_the_binomial_distribution_of_scipy(n: int, wrong: int, risk: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    losses = [1.0] * wrong + [0.0] * (n - wrong)
    assert loss_p_value(losses, risk) == pytest.approx(float(stats.binom.cdf(wrong, n, risk)), rel=1e-9)


def test_p_value_of_graded_losses_is_the_smaller_of_hoeffding_and_bentkus() -> None:
    stats = pytest.importorskip("scipy.stats")
    losses, risk = [0.25] * 10 + [0.0] * 90, 0.1
    mean = sum(losses) / 100
    entropy = mean * math.log(mean / risk) + (1 - mean) * math.log((1 - mean) / (1 - risk))
    bentkus = math.e * float(stats.binom.cdf(3, 100, risk))
    assert loss_p_value(losses, risk) == pytest.approx(min(math.exp(-100 * entropy), bentkus), rel=1e-9)


def test_fewest_rows_are_those_of_a_certificate_without_a_loss() -> None:
    for risk, confidence in ((0.05, 0.9), (0.1, 0.95), (0.01, 0.8)):
        fewest = fewest_rows(risk, confidence)
        p_values = [loss_p_value([0.0] * n, risk) for n in (fewest, fewest - 1)]
        assert p_values[0] <= 1 - confidence < p_values[1]


def test_path_gives_a_stage_without_good_rows_no_least_confidence() -> None:
    rows = [(StageRow(n / 40, 1.0), StageRow(0.9, 0.0)) for n in range(40)]
    assert policies(rows, RISK) == [(NEVER, 0.9)]


def test_path_answers_at_least_eight_rows_a_stage() -> None:
    rows = [(StageRow(1 - n / 40, float(n >= 7)),) for n in range(40)]
    assert policies(rows, 0.05) == []
    assert policies([*rows[:7], (StageRow(0.9, 0.0),), *rows[8:]], 0.05) != []


def test_rows_of_equal_confidence_go_together() -> None:
    rows = [(StageRow(0.9, 0.0),)] * 20 + [(StageRow(0.6, float(n < 10)),) for n in range(20)]
    assert set(policies(rows, RISK)) == {(0.9,)}


def test_certificate_counts_rows_by_stage() -> None:
    rows = [(StageRow(0.9, 0.0), StageRow(0.9, 0.0))] * 40 + [(StageRow(0.5, 1.0), StageRow(0.9, 0.0))] * 40
    rows += [(StageRow(0.5, 1.0), StageRow(0.5, 1.0))] * 20
    found = certify(rows, [(0.8, 0.8)], RISK, CONFIDENCE)
    assert found is not None
    assert (found.rows, found.answered, found.by_stage, found.loss, found.coverage) == (100, 80, (40, 40), 0.0, 0.8)


def test_test_ends_at_the_first_policy_that_fails() -> None:
    rows = [(StageRow(0.9, 0.0),)] * 60 + [(StageRow(0.5, 1.0),)] * 60 + [(StageRow(0.2, 0.0),)] * 2_000
    found = certify(rows, [(0.8,), (0.4,), (0.1,)], RISK, CONFIDENCE)
    assert found is not None
    assert found.least == (0.8,)  # (0.1,) would pass, and is not looked at
    assert certify(rows, [(0.4,), (0.8,)], RISK, CONFIDENCE) is None


def test_certified_policies_seldom_break_the_bound_that_fitted_ones_break() -> None:
    broken, fitted, found = _violations(_without_content, 30, fresh=4_000)
    assert broken <= 5 < fitted
    assert found > 0


@pytest.mark.long
@pytest.mark.parametrize("world", WORLDS)
def test_certified_policies_break_the_bound_in_at_most_the_promised_share_of_seeds(world: str) -> None:
    seeds = 300
    broken, fitted, _ = _violations(WORLDS[world], seeds)
    allowed = (1 - CONFIDENCE) * seeds + 3 * math.sqrt(seeds * CONFIDENCE * (1 - CONFIDENCE))
    assert broken <= allowed
    assert fitted > broken or fitted == broken == 0


@pytest.mark.long
def test_graded_losses_break_the_bound_in_at_most_the_promised_share_of_seeds() -> None:
    broken, fitted, found = _violations(_graded, 100, n=800, fresh=4_000)
    assert found > 50
    assert broken <= 10 + 3 * math.sqrt(9) < fitted
