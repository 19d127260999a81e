"""``BestOfN``: run a program several times and return the best result by a reward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from sigwire.effects.steps import Steps
from sigwire.errors import CallerError, ConfigurationError, LMAuthenticationError, LMBillingError
from sigwire.keywords import check_whole
from sigwire.modules.calling import called_steps
from sigwire.modules.module import Module, StepsModule
from sigwire.settings import context, current
from sigwire.show.card import BoundedRepr

__all__ = ["BestOfN", "RewardFunction", "SampledRun"]

RewardFunction: TypeAlias = "Callable[[Mapping[str, Any], Any], object] | Module"
"""``reward_fn(inputs, prediction)`` returns a number; the more, the better. Sync, async, or a module."""

_HOPELESS = (CallerError, LMAuthenticationError, LMBillingError)
"""Errors that another run would raise again; ``BudgetSpent`` is among them."""


@dataclass(frozen=True, slots=True)
class SampledRun(BoundedRepr):
    """One run: its prediction, its reward, and ``(predictor, inputs, prediction)`` of each call of a predictor."""

    prediction: Any
    reward: float
    trace: Sequence[tuple[Any, Mapping[str, Any], Any]] = ()


class BestOfN(StepsModule):
    """Run ``module`` up to ``N`` times; return the first result whose reward reaches ``threshold``, else the best.

    ``reward_fn(inputs, prediction)`` returns a number. Each run after the first asks for another sample of the cache, so equal
    requests get new answers; a model at temperature 0 gives the same answer again. ``fail_count``: how many runs may raise
    (default: all but one); the next error is raised. Errors of the caller, keys and budgets are raised at once. The trace of
    the settings gets the calls of the returned run only.

    Cost: at most ``N`` times that of the module, and that of the reward.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> answers = FakeLM([{"answer": "It is Paris, of course."}, {"answer": "Paris"}])
    >>> one_word = lambda inputs, prediction: float(len(prediction.answer.split()) == 1)
    >>> best = BestOfN(Predict("question -> answer", lm=answers), N=3, reward_fn=one_word, threshold=1.0)
    >>> best(question="Capital of France?").answer
    'Paris'
    """

    _hooks: ClassVar[Sequence[str]] = ("next_program",)

    def __init__(
        self,
        module: Module,
        N: int,  # noqa: N803
        reward_fn: RewardFunction,
        threshold: float,
        fail_count: int | None = None,
        *,
        callbacks: Sequence[object] | None = None,
    ) -> None:
        super().__init__(callbacks)
        name = type(self).__name__
        if not isinstance(module, Module):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may pass any object
            raise ConfigurationError(f"{name} takes a module, not {type(module).__name__} (making it).")
        check_whole("N", N, f"making a {name}", of="runs", least=1)
        check_whole("fail_count", fail_count, f"making a {name}", of="failures", optional=True)
        if not callable(reward_fn):
            raise ConfigurationError(f"reward_fn is a function of inputs and prediction, not {reward_fn!r:.80}.")
        self.module, self.N, self.threshold = module, N, threshold
        self.reward_fn = reward_fn
        self.fail_count = N - 1 if fail_count is None else fail_count

    def steps(self, /, *args: object, **inputs: object) -> Steps[Any]:
        """Return the steps of one call, without callbacks and call records of this module."""
        best: SampledRun | None = None
        program, failures = self.module, 0
        for number in range(self.N):
            try:
                found = yield from self._run(program, number, args, inputs)
            except _HOPELESS:
                raise
            except Exception:
                failures += 1
                if failures > self.fail_count or (best is None and number == self.N - 1):
                    raise
                continue
            if best is None or found.reward > best.reward:
                best = found
            if found.reward >= self.threshold or number == self.N - 1:
                break
            program = yield from type(self).next_program(self, program, found, inputs)
        assert best is not None  # otherwise the last error was raised
        if (trace := current().trace) is not None:
            trace.extend(best.trace)
        return best.prediction

    def tool_source(self) -> object:
        """Return what describes the module inside."""
        return self.module.tool_source()

    def _run(
        self, program: Module, number: int, args: tuple[object, ...], inputs: dict[str, object]
    ) -> Steps[SampledRun]:
        """Run the program as sample ``number``; the first one shares stored answers with plain calls."""
        trace: list[Any] = []
        outer = current().rollout_id
        sample = outer if number == 0 else f"{'' if outer is None else f'{outer}/'}best-{number}"
        with context(trace=trace, rollout_id=sample):
            prediction = yield from program.call_steps(*args, **inputs)
        with context(trace=None):
            reward = yield from called_steps(self.reward_fn, (inputs, prediction), {})
        return SampledRun(prediction, _number(reward), tuple(trace))

    def next_program(self, program: Module, found: SampledRun, inputs: Mapping[str, object]) -> Steps[Module]:
        """Return the program of the next run. A subclass may change it: the run before had too small a reward."""
        return program
        yield


def _number(reward: object) -> float:
    value = getattr(reward, "score", reward)
    if isinstance(value, int | float) and value == value:
        return float(value)
    raise ConfigurationError(
        f"reward_fn returned {reward!r:.80}, which is no number (choosing a run). Return a float; the more, the better."
    )
