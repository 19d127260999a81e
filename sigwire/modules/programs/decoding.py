"""Decode a program. The file chooses among registered classes and functions; no name is imported, and no text is evaluated."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.held import Memo, rebound
from sigwire.core.tools.tool import Tool
from sigwire.errors import CallerError, ConfigurationError, StateError
from sigwire.lm.base import BaseLM, LanguageModel
from sigwire.lm.option_aliases import OPTION_NAMES
from sigwire.lm.secrets import is_secret
from sigwire.modules.ask import REQUEST_OPTIONS
from sigwire.modules.module import Module
from sigwire.modules.programs.library import LIBRARY, class_name
from sigwire.modules.programs.signature_json import decode_signature
from sigwire.settings import current

__all__ = ["ProgramRegistry"]

T = TypeVar("T")


class ProgramRegistry:
    """The classes and functions that a file may name: those of the caller, and ``LIBRARY``."""

    def __init__(
        self,
        classes: Iterable[type],
        functions: Iterable[Callable[..., object] | Tool],
        allow_unsafe_lm_state: bool,
        lm: LanguageModel | None = None,
    ) -> None:
        self._lm = lm
        self._memo: Memo = {}  # a program has modules of its own, also in its tools
        self.options: list[tuple[Module, list[str]]] = []  # of each module of the library, those that are no parameters
        self._allow_unsafe_lm_state = allow_unsafe_lm_state
        self.given = _by_name("classes", classes, _name_of_class)
        self.classes = {**LIBRARY, **self.given}
        self.functions = _by_name("functions", functions, _name_of_function)

    def decode(self, data: JsonValue) -> Module:
        """Return the program of a result of ``ProgramEncoder.encode``. Raises ``StateError`` before anything is made."""
        if not isinstance(data, dict) or "$program" not in data:
            raise StateError("The file names no program class (loading a program). Write it by save_program(...).")
        self._check_names(data)
        return self._module(data)

    def _check_names(self, data: JsonObject) -> None:
        names = list(_names_in(data))
        classes = sorted({name for kind, name in names if kind == "class"} - self.classes.keys())
        functions = sorted({name for kind, name in names if kind == "function"} - self.functions.keys())
        if classes or functions:
            lists = (("classes", classes), ("functions", functions))
            register = ", ".join(f"{kind}=[{', '.join(found)}]" for kind, found in lists if found)
            raise StateError(
                f"The file names {', '.join([*classes, *functions])}, which are not registered (loading a program). Import "
                f"them, and pass {register}."
            )

    def _module(self, data: JsonObject) -> Module:
        name: Any = data["$program"]
        cls: Any = self.classes[name]
        if not issubclass(cls, Module):
            raise StateError(f"{name} is a program in the file, and no Module here (loading a program).")
        arguments = {key: self._value(value) for key, value in _object(data, "arguments").items()}
        if secrets := [key for key in arguments if is_secret(key)]:
            raise StateError(
                f"The argument {secrets[0]!r} of {name}(...) is a secret, which no file holds: its author would know it "
                "(loading a program). Remove it from the file, and set it on the loaded program."
            )
        if cls in LIBRARY.values() and isinstance(text := arguments.get("signature"), str):
            # The constructor would look names of types up in this file.
            arguments["signature"] = decode_signature({"text": text, "texts": {}}, self.given)
        try:
            inspect.signature(cls.__init__).bind(None, **arguments)
        except TypeError as error:
            raise StateError(
                f"{name}(...) does not take the arguments of the file: {error} (loading a program). Load it with the code that "
                "saved it."
            ) from error
        try:
            made: Module = cls(**arguments)
        except StateError:
            raise
        except Exception as error:
            if cls not in LIBRARY.values():
                raise  # of the user's code
            raise StateError(
                f"{name}(...) does not take the arguments of the file (loading a program): {error!s:.400} Load it with the "
                "version of sigwire that saved it, or correct the file."
            ) from error
        if cls in LIBRARY.values():
            known = inspect.signature(cls.__init__).parameters
            asked = [
                each for each in arguments if not (each in known or each in OPTION_NAMES or each in REQUEST_OPTIONS)
            ]
            self.options.append((made, asked))
        return made

    def check_options(self) -> None:
        """Raise ``StateError`` for an option in the file that the models do not have; call it when the models are loaded.

        Constructors take any option, since a later model may have it. A file is checked: its author may be a stranger.
        """
        for module, options in self.options:
            for _, predictor in module.named_predictors() if options else ():
                _check_options(type(module).__name__, options, predictor.lm or self._lm or current().lm)

    def _value(self, data: JsonValue) -> Any:
        if isinstance(data, list):
            return [self._value(item) for item in data]
        if not isinstance(data, dict):
            return data
        if "$program" in data:
            return self._module(data)
        if "$signature" in data:
            return decode_signature(_object(data, "$signature"), self.given)
        if "$lm" in data:
            if self._lm is not None:
                return self._lm
            return BaseLM.load_state(_object(data, "$lm"), allow_unsafe_lm_state=self._allow_unsafe_lm_state)
        if "$function" in data:
            return rebound(self.functions[cast("str", data["$function"])], self._memo)
        return {key: self._value(item) for key, item in data.items()}


def _names_in(data: JsonValue, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each class and function in the file, after a check of their form."""
    if depth > _DEEPEST:
        raise StateError(
            f"The arguments of the file are nested deeper than {_DEEPEST} levels (loading a program). Write it by "
            "save_program(...)."
        )
    if isinstance(data, list):
        for item in data:
            yield from _names_in(item, depth + 1)
    if not isinstance(data, dict):
        return
    if "$program" in data:
        yield "class", _text(data["$program"])
    if "$function" in data:
        yield "function", _text(data["$function"])
    if "$signature" in data:
        yield from (("class", name) for name in _signature_classes(_object(data, "$signature")))
        return
    for item in data.values():
        yield from _names_in(item, depth + 1)


_DEEPEST = 100


def _signature_classes(signature: JsonObject) -> list[str]:
    _object(signature, "texts")
    if "class" in signature:
        return [_text(signature["class"])]
    _text(signature.get("text"))
    types = signature.get("types", [])
    return [_text(name) for name in types] if isinstance(types, list) else [_text(types)]


def _object(data: Mapping[str, JsonValue], name: str) -> JsonObject:
    value = data.get(name, {})
    if not isinstance(value, dict):
        raise StateError(
            f"{name} is an object, not {type(value).__name__} (loading a program). Write the file by save_program(...)."
        )
    return value


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise StateError(
            f"A name is a text, not {type(value).__name__} (loading a program). Write the file by save_program(...)."
        )
    return value


def _check_options(owner: str, options: Sequence[str], lm: object) -> None:
    try:
        check: Callable[..., object] | None = getattr(lm, "check_options", None)
        if check is not None:
            check(options, "loading a program")
        else:
            raise ConfigurationError(
                f"{owner} has no parameter {options[0]!r}, and no model is known that has it. Pass lm=, or configure a model."
            )
    except CallerError as error:
        raise StateError(
            f"{owner}(...) has an argument in the file that it does not take (loading a program): {error} Or "
            "remove it from the file."
        ) from error


# --- the registry ------------------------------------------------------------------------------------


def _by_name(kind: str, values: Iterable[T], name_of: Callable[[T], str | None]) -> dict[str, T]:
    found = dict[str, T]()
    for value in [values] if callable(values) else values:
        name = name_of(cast("T", value))
        if name is None or found.setdefault(name, cast("T", value)) != value:
            problem = "which has no name for a file" if name is None else f"and another one named {name}"
            raise ConfigurationError(
                f"{kind}= has {value!r:.80}, {problem} (loading a program). Pass a list of {kind} that class or def names."
            )
    return found


def _name_of_class(cls: object) -> str | None:
    return class_name(cls) if isinstance(cls, type) else None


def _name_of_function(function: object) -> str | None:
    name = function.name if isinstance(function, Tool) else getattr(function, "__name__", None)
    return name if callable(function) and isinstance(name, str) else None
