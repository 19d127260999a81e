"""No option of an optimizer is accepted and then silently ignored: it is read, or it warns, or it is refused."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire import ConfigurationError
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.rules.copro import COPRO
from sigwire.optimizers.rules.labeled_few_shot import LabeledFewShot
from sigwire.optimizers.rules.miprov2 import MIPROv2
from sigwire.optimizers.rules.simba import SIMBA
from tests.optimizers.stub import Stub, exact, pure_writer, rows
from tests.optimizers.table import TABLE, TRAIN, VAL, outcome, student
from tests.optimizers.writer import Writer

PACKAGE = Path(dspy.__file__).parents[1]
IN_THE_DOOR = {"COPRO": lambda **options: dspy.COPRO(pure_writer(), exact, breadth=3, depth=2, **options)}
MAKERS = {**TABLE, **{f"dspy.{name}": make for name, make in IN_THE_DOOR.items()}}
OF_THE_CALL = {"num_threads", "seed"}  # read by the base, which all searches go through


class Recorded(dict[str, Any]):
    """Options of a call that know which of them were read."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.read = set[str]()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)


def idle(optimizer: Optimizer) -> Mapping[str, str]:
    return optimizer._idle


@pytest.mark.parametrize("name", MAKERS)
def test_each_option_of_compile_is_read_or_warns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer, calls = MAKERS[name](), list[Recorded]()
    kept = type(optimizer).check_options

    def recording(self: Any, program: object, options: Mapping[str, Any]) -> Any:
        calls.append(Recorded(kept(self, program, options)))
        return calls[-1]

    monkeypatch.setattr(type(optimizer), "check_options", recording)
    optimizer.compile(student(Stub()), trainset=TRAIN, valset=VAL)
    read = set[str]().union(*(each.read for each in calls)) | OF_THE_CALL
    if isinstance(optimizer, COPRO):
        read.add("eval_kwargs")  # by ``check_options``; tested below
    if isinstance(optimizer, MIPROv2):
        read.add("num_trials")  # of ``auto=None``
    assert {*optimizer._compile_options} - read == set()


def attributes_read() -> set[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (PACKAGE / "optimizers").rglob("*.py")]
    trees += [ast.parse(path.read_text(encoding="utf-8")) for path in (PACKAGE / "dspy").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {node.attr for node in nodes if isinstance(node.ctx, ast.Load)}


def test_each_option_of_a_constructor_is_read_or_warns() -> None:
    read, unread = attributes_read(), dict[str, list[str]]()
    for name, make in MAKERS.items():
        optimizer = make()
        kept = [
            option for option in inspect.signature(type(optimizer).__init__).parameters if option in vars(optimizer)
        ]
        unread[name] = sorted(option for option in kept if option not in read and option not in idle(optimizer))
    assert {name: options for name, options in unread.items() if options} == {}


def idle_options() -> Iterator[Any]:
    for name, make in TABLE.items():
        optimizer = make()
        for option in idle(optimizer):
            yield pytest.param(name, option, id=f"{name}-{option}")


@pytest.mark.parametrize(("name", "option"), [*idle_options()])
def test_option_without_effect_warns_if_it_asks_for_something(name: str, option: str) -> None:
    optimizer = TABLE[name]()
    is_of_call = option in optimizer._compile_options
    if not is_of_call:
        vars(optimizer)[option] = 7
    with pytest.warns(UserWarning, match=rf"{option}=\.\.\.\) has no effect"):
        optimizer.compile(student(Stub()), trainset=TRAIN, valset=VAL, **({option: 7} if is_of_call else {}))


def test_default_options_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TABLE["MIPROv2"]().compile(
            student(Stub()), trainset=TRAIN, valset=VAL, minibatch=True, requires_permission_to_run=False
        )


@pytest.mark.parametrize("make", [COPRO, dspy.COPRO])
async def test_threads_of_eval_kwargs_are_those_of_the_search(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = list[int]()
    kept = Optimizer._setup

    def noting(self: Any, *args: Any) -> Any:
        setup = kept(self, *args)
        limits.append(setup.limit)
        return setup

    monkeypatch.setattr(Optimizer, "_setup", noting)
    optimizer = make(pure_writer(), exact, breadth=2, depth=1, num_threads=5)
    with pytest.warns(UserWarning, match=r"display_progress of eval_kwargs has no effect"):
        optimizer.compile(
            student(Stub()), trainset=TRAIN, valset=VAL, eval_kwargs={"num_threads": 3, "display_progress": True}
        )
    await optimizer.acompile(student(Stub()), trainset=TRAIN, valset=VAL, eval_kwargs={"num_threads": 2})
    optimizer.compile(student(Stub()), trainset=TRAIN, valset=VAL)
    assert limits == [3, 2, 5]
    with pytest.raises(ConfigurationError, match=r"not 'failure_score' \(compiling\)"):
        optimizer.compile(student(Stub()), trainset=TRAIN, eval_kwargs={"failure_score": 1})


@pytest.mark.parametrize("name", ["MIPROv2", "SIMBA"])
def test_seed_of_a_call_is_the_seed_of_the_search(name: str) -> None:
    made: Any = {
        "MIPROv2": lambda **search: MIPROv2(
            exact, prompt_model=pure_writer(), auto="light", max_labeled_demos=2, **search
        ),
        "SIMBA": lambda **search: SIMBA(
            metric=exact, bsize=8, num_candidates=3, max_steps=2, prompt_model=Writer(), **search
        ),
    }[name]
    sets: dict[str, Any] = {"trainset": rows(24), "valset": rows(16, 100)}
    first, second = (
        optimizer.compile(student(Stub()), **sets, **options)
        for optimizer, options in ((made(seed=4), {}), (made(seed=1), {"seed": 4}))
    )
    assert outcome(first) == outcome(second)


def test_threads_of_a_call_are_above_zero() -> None:
    with pytest.raises(ConfigurationError, match="num_threads is a number above 0"):
        TABLE["BetterTogether"]().compile(student(Stub()), trainset=TRAIN, valset=VAL, num_threads=-1)
    assert LabeledFewShot(2)._idle == {}
