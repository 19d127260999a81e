"""The classes of sigwire that every file may name, the names of classes, and the arguments of their constructors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from sigwire.core.foreign_names import DOOR, NAMESPACE
from sigwire.errors import StateError
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.monty import MontyInterpreter
from sigwire.lm.secrets import is_secret, without_secrets
from sigwire.modules.agents.react import ReAct
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.code.code_act import CodeAct
from sigwire.modules.code.program_of_thought import ProgramOfThought
from sigwire.modules.code.rlm import RLM
from sigwire.modules.module import Module
from sigwire.modules.parallel import Parallel
from sigwire.modules.predict import Predict
from sigwire.modules.sampling.best_of_n import BestOfN
from sigwire.modules.sampling.multi_chain import MultiChainComparison
from sigwire.modules.sampling.refine import Refine

__all__ = ["LIBRARY", "arguments_of", "class_name"]

LIBRARY: Mapping[str, type] = {
    cls.__name__: cls
    for cls in (
        BestOfN,
        ChainOfThought,
        CodeAct,
        MultiChainComparison,
        Parallel,
        Predict,
        ProgramOfThought,
        ReAct,
        Refine,
        RLM,
    )
}


def class_name(cls: type) -> str:
    """Return the name of a class in files. Raises ``StateError`` for a user's class with the name of a library class.

    >>> class_name(Predict)
    'Predict'
    """
    name = f"{NAMESPACE}.{cls.__name__}" if cls.__module__.startswith(f"{DOOR}.") else cls.__name__
    if LIBRARY.get(name, cls) is not cls:
        raise StateError(f"A class named {name} is a class of sigwire in every file (naming a class). Rename yours.")
    return name


def arguments_of(module: Module) -> dict[str, object]:
    """Return the arguments that make a module of equal structure; those that equal their default are omitted.

    A user's class: the attributes with the names of the constructor's parameters. Raises ``StateError`` if one is missing.
    """
    cls: Any = type(module)
    described = next(
        (
            _DESCRIBE[base]
            for base in cls.__mro__
            if base in _DESCRIBE and base.__init__ is inspect.unwrap(cls.__init__)
        ),
        None,
    )
    found = _attributes(module) if described is None else described(module)
    defaults = {name: each.default for name, each in inspect.signature(cls.__init__).parameters.items()}
    return {
        name: value for name, value in found.items() if not _is_same(value, defaults.get(name, inspect.Parameter.empty))
    }


def _is_same(value: object, default: object) -> bool:
    return value is default or (
        type(value) is type(default) and isinstance(value, str | int | float) and value == default
    )


def _attributes(module: Module) -> dict[str, object]:
    cls, found = type(module), dict[str, object]()
    if cls.__init__ is Module.__init__:
        return found
    for name, each in list(inspect.signature(cls.__init__).parameters.items())[1:]:
        if name == "callbacks":
            continue
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY) or name not in vars(module):
            raise StateError(
                f"The argument {name!r} of {cls.__name__}(...) is not known after the call (saving a program). Take it by "
                f"name, and keep it in the constructor: self.{name} = {name}."
            )
        if is_secret(name, found.setdefault(name, vars(module)[name])):
            raise StateError(
                f"The argument {name!r} of {cls.__name__}(...) is a secret, which no file holds (saving a program). Read it "
                "in the constructor, from the environment."
            )
    return found


def _predict(module: Predict[..., Any]) -> dict[str, object]:
    if module.nearest is not None and module.nearest.vectorizer is not None:
        raise StateError(
            "The demos of a predictor are chosen by a vectorizer, which is code (saving a program). Save the state with "
            "save('program.json'), and load it into a program with that vectorizer."
        )
    return {"signature": module.signature, **_options(module)}


def _options(module: Predict[..., Any]) -> dict[str, object]:
    return {"max_reasks": module.max_reasks, **without_secrets(module.config)}


def _chain_of_thought(module: ChainOfThought[..., Any]) -> dict[str, object]:
    asked = module.predict.signature
    bare = asked.delete("reasoning").with_instructions(asked.instructions)
    made = ChainOfThought(bare).predict.signature if bare.spec.outputs else bare
    is_plain = made.signature == asked.signature and made.load_state(asked.dump_state()).equals(asked)
    return {"signature": bare if is_plain else asked, **_options(module.predict)}


def _multi_chain(module: MultiChainComparison) -> dict[str, object]:
    asked = module.predict.signature
    bare = asked.delete("rationale")
    for number in range(1, module.M + 1):
        bare = bare.delete(f"reasoning_attempt_{number}")
    return {"signature": bare.with_instructions(asked.instructions), "M": module.M, **_options(module.predict)}


def _react(module: ReAct[..., Any]) -> dict[str, object]:
    box = module.toolbox
    return {
        "signature": module.signature,
        "tools": list(box.tools.values()),
        "max_iters": module.max_iters,
        "parallel": box.parallel or False,
        **({} if box.on_error is None else {"on_tool_error": box.on_error}),
        "extract": module.extracts,
        "tool_timeout": box.timeout,
        "max_output": box.max_output,
        **{name: value for name in ("approve", "max_calls") if (value := getattr(box.rules, name)) is not None},
        "max_repeats": box.rules.max_repeats,
        **({} if module.tool_search == "auto" else {"tool_search": module.tool_search}),
        **_compaction(module),
        **module.loop_options(),
        **_options(module.react),
    }


def _compaction(module: Any) -> dict[str, object]:
    found = module.compaction
    return {
        **({} if found is True else {"compaction": found if found is False else found.to_json()}),
        **({} if module.on_turn is None else {"on_turn": module.on_turn}),
    }


def _code_act(module: CodeAct[..., Any]) -> dict[str, object]:
    _check_interpreter(module.interpreter)
    fixed = {"parallel", "max_output", "max_repeats"}  # ReAct's, which CodeAct does not take
    return {
        **{name: value for name, value in _react(module).items() if name not in fixed},
        "max_calls": module.max_calls,
    }


def _program_of_thought(module: ProgramOfThought[..., Any]) -> dict[str, object]:
    _check_interpreter(module.interpreter)
    return {"signature": module.signature, "max_iters": module.max_iters, **_options(module.code_generate.predict)}


def _rlm(module: RLM[..., Any]) -> dict[str, object]:
    _check_interpreter(module.interpreter)
    kept = ("signature", "max_iters", "max_llm_calls", "max_output_chars", "sub_lm", "parallel")
    described = {name: getattr(module, name) for name in kept}
    box = module.toolbox
    described |= {
        "tools": list(box.tools.values()),
        **({} if box.on_error is None else {"on_tool_error": box.on_error}),
    }
    return {**described, "extract": module.extracts, **_compaction(module), **_options(module.generate_action)}


def _check_interpreter(interpreter: object) -> None:
    if not isinstance(interpreter, MontyInterpreter) or interpreter.limits != CodeLimits():
        raise StateError(
            f"A {type(interpreter).__name__} with its limits is code, which no file holds (saving a program). Save the state "
            "with save('program.json'), and load it into a program with that interpreter."
        )


_DESCRIBE: Mapping[type, Callable[[Any], dict[str, object]]] = {
    Predict: _predict, ChainOfThought: _chain_of_thought, MultiChainComparison: _multi_chain, ReAct: _react,
    CodeAct: _code_act, ProgramOfThought: _program_of_thought, RLM: _rlm,
}  # fmt: skip
