"""Encode a program: each module as its class and arguments. Marks: ``$program``, ``$function``, ``$signature``, ``$lm``."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from typing import Any, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.tool import Tool
from sigwire.errors import StateError
from sigwire.lm.base import BaseLM
from sigwire.modules.module import Module
from sigwire.modules.programs.library import arguments_of, class_name
from sigwire.modules.programs.signature_json import encode_signature
from sigwire.signatures.signature import SignatureMeta

__all__ = ["ProgramEncoder"]


class ProgramEncoder:
    """Encodes the modules of one program. A name stands for one class or function, and a module is encoded once."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], object] = {}
        self._modules: dict[int, Module] = {}

    def encode(self, module: Module) -> JsonObject:
        """Return a module as JSON. Raises ``StateError`` for an argument that a file does not hold."""
        name = self._note_class(type(module))
        if id(module) in self._modules:
            raise StateError(
                f"A {name} is an argument twice (saving a program), and a file would make two of it. Make the shared module "
                "in the constructor, or pass a deepcopy()."
            )
        self._modules[id(module)] = module
        arguments = {key: self._value(f"{name}({key}=)", value) for key, value in arguments_of(module).items()}
        return {"$program": name, "arguments": arguments}

    @property
    def named(self) -> ItemsView[tuple[str, str], object]:
        """The classes and functions by kind ("class", "function") and name."""
        return self._named.items()

    def _value(self, where: str, value: object) -> JsonValue:
        if value is None or type(value) in (bool, int, float, str):
            return cast(JsonValue, value)
        if isinstance(value, list | tuple):
            return [self._value(where, item) for item in cast("list[object]", value)]
        if isinstance(value, Module):
            return self.encode(value)
        if isinstance(value, SignatureMeta):
            return {"$signature": encode_signature(value, self._note_class)}
        if isinstance(value, BaseLM):
            return {"$lm": value.dump_state()}
        if isinstance(value, Mapping):
            return self._object(where, cast("Mapping[object, object]", value))
        return {"$function": self._note_function(where, value)}

    def _object(self, where: str, value: Mapping[object, object]) -> JsonObject:
        if odd := next((key for key in value if not isinstance(key, str) or key.startswith("$")), None):
            raise StateError(
                f"{where} has the key {odd!r:.80} (saving a program). Use text that does not start with $."
            )
        return {str(key): self._value(where, item) for key, item in value.items()}

    def _note_function(self, where: str, value: object) -> str:
        name: Any = value.name if isinstance(value, Tool) else getattr(value, "__name__", None)
        if not callable(value) or isinstance(value, type) or not isinstance(name, str) or not name.isidentifier():
            raise StateError(
                f"{where} is a {type(value).__name__}, which a file does not hold (saving a program). Use JSON, a module, a "
                "model, a function that def names, or a tool; make other values in the constructor."
            )
        return self._note("function", name, value)

    def _note_class(self, cls: type) -> str:
        return self._note("class", class_name(cls), cls)

    def _note(self, kind: str, name: str, value: object) -> str:
        if self._named.setdefault((kind, name), value) != value:
            raise StateError(f"Two things are the {kind} {name} (saving a program). Rename one of them.")
        return name
