"""The random search over demos with DSPy's ``restrict`` and sets of one row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sigwire.core.example import Example
from sigwire.errors import ConfigurationError
from sigwire.optimizers.rules import random_search

__all__ = ["BootstrapFewShotWithRandomSearch"]


class BootstrapFewShotWithRandomSearch(random_search.BootstrapFewShotWithRandomSearch):
    """``sigwire.BootstrapFewShotWithRandomSearch``; an only training row is the validation row as well.

    ``compile(..., restrict=seeds)`` takes any iterable, and raises ``ConfigurationError`` if no candidate has one of the seeds.
    """

    def check_options(self, student: object, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options; ``restrict`` is a set of seeds."""
        given = super().check_options(student, options)
        if given["restrict"] is None:
            return given
        wanted = frozenset(given["restrict"])
        if wanted.isdisjoint(range(-3, self.num_candidate_programs)):
            raise ConfigurationError(
                f"restrict has no seed of a candidate, only {sorted(wanted)} (compiling). The seeds are -3 to "
                f"{self.num_candidate_programs - 1}."
            )
        return {**given, "restrict": wanted}

    def row_sets(
        self, trainset: Iterable[Example], valset: Iterable[Example] | None, given: Mapping[str, Any]
    ) -> tuple[list[Example], list[Example]]:
        """Return the training and the validation rows."""
        train, val = super().row_sets(trainset, valset, given)
        return train, val or (train if len(train) == 1 else [])
