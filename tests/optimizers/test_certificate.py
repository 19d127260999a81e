"""Certificates: p-values, paths of policies, and how often a certified policy breaks its bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import pytest

from sigwire.optimizers.certificate import (
    NEVER,
    Policy,
    StageRow,
    answering_stage,
    certify,
    fewest_rows,
    has_graded_losses,
    loss_p_value,
    policies,
    start_of,
)

RISK, CONFIDENCE = 0.1, 0.9


@dataclass(frozen=True)
class Stage:
    """A stage whose rows have a strength from ``low`` to 1, drawn evenly.

    The confidence is the strength to the ``power``; the chance of a loss is ``chance``, by default 1 less the strength. Graded
    losses are between 0 and twice that chance.
    """

    low: float = 0.0
    power: float = 1.0
    chance: float | None = None
    is_graded: bool = False

    def draw(self, source: numpy.random.Generator, count: int) -> list[StageRow]:
        strength = source.uniform(self.low, 1.0, count)
        chance = 1 - strength if self.chance is None else numpy.full(count, self.chance)
        even = source.random(count)
        losses = 2 * chance * even if self.is_graded else (even < chance).astype(float)
        return [*map(StageRow, (strength**self.power).tolist(), losses.tolist())]

    def answered(self, least: float) -> tuple[float, float]:
        """Return the share of rows that reach a least confidence, and the mean over all rows of the losses of these."""
        if least > 1:
            return 0.0, 0.0
        share = 1 - max(self.low, least ** (1 / self.power))
        loss = share * self.chance if self.chance is not None else share**2 / 2
        return share / (1 - self.low), loss / (1 - self.low)


World = tuple[Stage, Stage]
WORLDS: dict[str, World] = {
    "honest": (Stage(0.5), Stage(0.7)),
    "overconfident": (Stage(0.5, 0.2), Stage(0.7, 0.2)),
    "useless": (Stage(chance=0.5), Stage(chance=0.5)),
    "without content": (Stage(chance=0.12), Stage(chance=0.06)),
    "just above the risk": (Stage(chance=RISK + 1e-6), Stage(chance=RISK + 1e-6)),
}
GRADED: World = (Stage(0.5, is_graded=True), Stage(0.7, is_graded=True))


def draw(world: World, source: numpy.random.Generator, count: int) -> list[tuple[StageRow, ...]]:
    return list(zip(*(stage.draw(source, count) for stage in world), strict=True))


def loss_of(world: World, policy: Policy) -> float:
    """Return the mean loss of the rows that a policy answers, over all rows of a world. Stages are independent."""
    answered, lost, reaching = 0.0, 0.0, 1.0
    for stage, least in zip(world, policy, strict=True):
        share, loss = stage.answered(least)
        answered, lost, reaching = answered + reaching * share, lost + reaching * loss, reaching * (1 - share)
    return lost / answered if answered else 0.0


@dataclass
class Violations:
    """In how many seeds the certified and the fitted policy break the bound, and how many seeds have a certificate."""

    certified: int = 0
    fitted: int = 0
    found: int = 0

    @classmethod
    def of(cls, world: World, seeds: int, rows: int = 200) -> Violations:
        counts = cls()
        for seed in range(seeds):
            source = numpy.random.default_rng(seed)
            train, test = (draw(world, source, rows // 2) for _ in range(2))
            path = policies(train, RISK)
            if not path:
                continue
            is_graded = has_graded_losses(train)
            found = certify(test, path[start_of(train, path, RISK) :], RISK, CONFIDENCE, is_graded=is_graded)
            if found is not None:
                counts.found += 1
                counts.certified += loss_of(world, found.least) > RISK
            fitted = next((policy for policy in reversed(path) if _mean(train, policy) <= RISK), None)
            counts.fitted += fitted is not None and loss_of(world, fitted) > RISK
        return counts


def _mean(rows: Sequence[Sequence[StageRow]], policy: Policy) -> float:
    losses = [row[at].loss for row in rows if (at := answering_stage(row, policy)) is not None]
    return sum(losses) / len(losses) if losses else 1.0


@pytest.mark.parametrize("world", [*WORLDS.values(), GRADED], ids=[*WORLDS, "graded"])
def test_loss_of_a_policy_in_a_world_is_that_of_many_drawn_rows(world: World) -> None:
    rows = draw(world, numpy.random.default_rng(3), 4_000)
    for policy in ((0.85, 0.8), (0.6, NEVER), (0.95, 0.0)):
        assert _mean(rows, policy) == pytest.approx(loss_of(world, policy), abs=0.04)


@pytest.mark.parametrize(("n", "wrong", "risk"), [(45, 0, 0.05), (100, 3, 0.1), (400, 40, 0.08), (10, 10, 0.5)])
def test_p_value_of_zeros_and_ones_equals_the_binomial_distribution_of_scipy(n: int, wrong: int, risk: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    losses = [1.0] * wrong + [0.0] * (n - wrong)
    assert loss_p_value(losses, risk, is_graded=False) == pytest.approx(
        float(stats.binom.cdf(wrong, n, risk)), rel=1e-9
    )


def test_p_value_of_graded_losses_is_the_smaller_of_hoeffding_and_bentkus() -> None:
    stats = pytest.importorskip("scipy.stats")
    losses, risk = [0.25] * 10 + [0.0] * 90, 0.1
    mean = sum(losses) / 100
    entropy = mean * math.log(mean / risk) + (1 - mean) * math.log((1 - mean) / (1 - risk))
    bentkus = math.e * float(stats.binom.cdf(3, 100, risk))
    assert loss_p_value(losses, risk, is_graded=True) == pytest.approx(min(math.exp(-100 * entropy), bentkus), rel=1e-9)


def test_fewest_rows_are_those_of_a_certificate_without_a_loss() -> None:
    for risk, confidence in ((0.05, 0.9), (0.1, 0.95), (0.01, 0.8)):
        fewest = fewest_rows(risk, confidence)
        p_values = [loss_p_value([0.0] * n, risk, is_graded=False) for n in (fewest, fewest - 1)]
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
    found = certify(rows, [(0.8, 0.8)], RISK, CONFIDENCE, is_graded=False)
    assert found is not None
    assert (found.rows, found.answered, found.by_stage, found.loss, found.coverage) == (100, 80, (40, 40), 0.0, 0.8)


def test_test_ends_at_the_first_policy_that_fails() -> None:
    rows = [(StageRow(0.9, 0.0),)] * 60 + [(StageRow(0.5, 1.0),)] * 60 + [(StageRow(0.2, 0.0),)] * 2_000
    found = certify(rows, [(0.8,), (0.4,), (0.1,)], RISK, CONFIDENCE, is_graded=False)
    assert found is not None
    assert found.least == (0.8,)  # (0.1,) would pass, and is not looked at
    assert certify(rows, [(0.4,), (0.8,)], RISK, CONFIDENCE, is_graded=False) is None


def test_graded_losses_of_the_test_count_as_whole_ones_if_the_training_half_has_none() -> None:
    losses = [0.5] * 4 + [0.0] * 41
    whole = [float(loss > 0) for loss in losses]
    p_values = [loss_p_value(each, RISK, is_graded=False) for each in (losses, whole)]
    assert p_values[0] == p_values[1] > loss_p_value([0.0] * 45, RISK, is_graded=False)
    assert [has_graded_losses([(StageRow(0.5, loss),)]) for loss in (0, 1.0, 0.5)] == [False, False, True]


def test_unsure_row_of_a_stage_gives_it_no_least_confidence() -> None:
    rows = [(StageRow(0.9, 0.0), StageRow(0.9, 0.0))] * 60 + [(StageRow(-1.0, 1.0), StageRow(0.9, 0.0))]
    assert policies(rows, RISK)[-1] == (0.9, NEVER)
    assert answering_stage(rows[-1], (0.9, 0.9)) == 1


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("seeds", [40, pytest.param(300, marks=pytest.mark.long)])
def test_certified_policies_break_the_bound_in_at_most_the_promised_share_of_seeds(world: str, seeds: int) -> None:
    counts = Violations.of(WORLDS[world], seeds)
    allowed = (1 - CONFIDENCE) * seeds + 3 * math.sqrt(seeds * CONFIDENCE * (1 - CONFIDENCE))
    assert counts.certified <= allowed
    assert counts.fitted > max(counts.certified, allowed) or world == "useless"
    assert counts.found > seeds / 5 or world not in ("honest", "overconfident")


@pytest.mark.long
def test_graded_losses_break_the_bound_in_at_most_the_promised_share_of_seeds() -> None:
    counts = Violations.of(GRADED, 100, rows=800)
    assert counts.found > 50
    assert counts.certified <= 10 + 3 * math.sqrt(9) < counts.fitted
