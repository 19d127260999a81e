"""Samplers of choices: which of its options each part of a candidate gets next. TPE by optuna; at random for plans.

    sampler.ask(4) -> [{"a": 0, "b": 2}, ...]     four choices, asked before any score is known
    sampler.learn({"a": 0, "b": 2}, 0.7)           the score of a choice

The number that is asked at once is the caller's and fixed, so that the path does not depend on the number of threads.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias, cast

from sigwire.errors import ConfigurationError

__all__ = ["Choice", "ChoiceSampler", "Choices", "RandomChoices"]

Choice: TypeAlias = dict[str, int]
"""The chosen option of each part, by its number."""


class ChoiceSampler(Protocol):
    """Proposes choices and learns from their scores."""

    def ask(self, count: int) -> list[Choice]:
        """Return the next choices."""
        ...

    def learn(self, choice: Choice, score: float) -> None:
        """Learn the score of a choice, whether it was asked or not."""
        ...


class RandomChoices:
    """Choices at random, which learn nothing: for plans. ``options``: the number of options of each part.

    ``distinct``: a choice repeats an earlier one only if others are hard to find; otherwise all choices are the same.
    """

    def __init__(self, options: Mapping[str, int], seed: int, *, distinct: bool = True) -> None:
        self._options, self._source, self._distinct = dict(options), random.Random(seed), distinct
        self._asked: list[Choice] = []

    def ask(self, count: int) -> list[Choice]:
        """Return choices."""
        asked: list[Choice] = []
        for _ in range(count):
            asked.append(self._next())
            self._asked.append(asked[-1])
        return asked

    def _next(self) -> Choice:
        if self._asked and not self._distinct:
            return self._asked[0]
        choice: Choice = {}
        for _ in range(50):
            choice = {name: self._source.randrange(most) for name, most in self._options.items()}
            if choice not in self._asked:
                break
        return choice

    def learn(self, choice: Choice, score: float) -> None:
        """Do nothing."""


class Choices:
    """Choices by the tree-structured Parzen estimator of optuna (Bergstra et al. 2011), in memory, seeded.

    Needs the extra ``sigwire[optuna]``; raises ``ConfigurationError`` without it. The settings of optuna and of logging are
    not changed.
    """

    def __init__(self, options: Mapping[str, int], seed: int) -> None:
        optuna = _optuna()
        self._options = {
            name: optuna.distributions.CategoricalDistribution(list(range(most))) for name, most in options.items()
        }
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        with _unlogged(optuna.storages.InMemoryStorage.__module__):
            self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._optuna, self._asked = optuna, list[tuple[Choice, Any]]()

    def ask(self, count: int) -> list[Choice]:
        """Return the next choices; those without a score yet are taken for bad ones."""
        trials = [self._study.ask(self._options) for _ in range(count)]
        choices = [cast(Choice, dict(trial.params)) for trial in trials]
        self._asked += [(choice, trial) for choice, trial in zip(choices, trials, strict=True)]
        return choices

    def learn(self, choice: Choice, score: float) -> None:
        """Learn the score of a choice."""
        for at, (asked, trial) in enumerate(self._asked):
            if asked == choice:
                del self._asked[at]
                self._study.tell(trial, score)
                return
        made = self._optuna.trial.create_trial(params=dict(choice), distributions=self._options, value=score)
        self._study.add_trial(made)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise ConfigurationError(
            f"The sampler of this optimizer is optuna, which cannot be imported: {error} (compiling). Install it: pip install "
            '"sigwire[optuna]". BootstrapFewShotWithRandomSearch and GEPA do not need it.'
        ) from error
    return optuna


@contextmanager
def _unlogged(name: str) -> Generator[None]:
    """Drop the records of one logger that this thread makes inside the block; the levels of optuna are the user's."""
    mine = threading.get_ident()

    def is_of_others(record: logging.LogRecord) -> bool:
        return record.thread != mine

    logger = logging.getLogger(name)
    logger.addFilter(is_of_others)
    try:
        yield
    finally:
        logger.removeFilter(is_of_others)
