"""``PartReader``: the named parts of what a result depends on, each with a digest or a short text.

Code of the user is read: functions, what they call in the user's modules, closures, defaults, globals, the state of objects.
Code of installed packages counts by its name and the version of the package. Values that the code itself changes while it runs
(counters, lists that it appends to) are left out. What has no content that can be read is listed in ``unknown``.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache, partial
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec, resolve_name
from inspect import getattr_static
from pathlib import Path, PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, ForwardRef, TypeVar, cast, get_args, get_origin
from uuid import UUID
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from pydantic import BaseModel

from sigwire.core.bytecode import CodeUse, code_digest, code_use, digest
from sigwire.core.lazy import version
from sigwire.core.record import Record
from sigwire.core.tools.tool import Tool
from sigwire.lm.base import BaseLM
from sigwire.lm.secrets import is_secret, redact_url, storable_options
from sigwire.modules.module import Module
from sigwire.modules.tree.walk import Predictor

__all__ = ["PartReader", "is_users_file", "package_version"]

_PLAIN = (
    str, bytes, int, float, complex, bool, type(None), type(...), Decimal, Fraction, UUID, PurePath, date, datetime, time,
    timedelta,
)  # fmt: skip
_CONTAINERS: tuple[type, ...] = (dict, list, set)
_MOST_DEPTH = 40
_INTERACTIVE = ("<doctest ", "<ipython-", "<stdin>")
_STARTING = ("__init__", "__new__", "__post_init__", "__setstate__")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_OF_CLASSES = frozenset(
    ("__module__", "__doc__", "__dict__", "__weakref__", "__slots__", "__orig_bases__", "__parameters__")
)
_OF_PREDICTORS = frozenset(("signature", "demos", "traces", "train", "lm", "config", "tool_texts", "nearest"))


class PartReader:
    """Reads programs and metrics. ``parts``: digests by name of the part; ``unknown``: what cannot be compared."""

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}
        self.unknown: list[str] = []
        self.asks_default = False  # a predictor has no model of its own
        self._asks = False  # there is a predictor
        self._names: dict[int, str] = {}
        self._read: list[object] = []  # what has an entry in ``_names``: no other object gets its id
        self._taken: set[str] = set()

    # --- programs and models

    def program(self, program: object, lm: object) -> None:
        """Read a program, or several by their roles. ``lm``: the model of the predictors that have none."""
        roles = cast("dict[str, object]", program) if isinstance(program, dict) else {"program": program}
        for role, each in roles.items():
            self.parts[role] = digest(self.value(each, role))
        if self.asks_default or not self._asks:
            self.model(lm, "")

    def model(self, lm: object, place: str) -> None:
        """Read a model: its name, its address, its options, and the code of a class of the user. ``place``: its owner."""
        if lm is None:
            return
        of = f" of `{place}`" if place else ""
        self.parts[f"model{of}"] = _shown(str(getattr(lm, "model", type(lm).__name__)))
        with suppress(Exception):  # a model of the user may have any attribute
            if address := getattr(lm, "address", None):
                self.parts[f"address{of}"] = _shown(redact_url(str(address)))
        options = storable_options(getattr(lm, "kwargs", None) or {})
        if given := {name: value for name, value in sorted(options.items()) if value is not None}:
            self.parts[f"options{of}"] = _shown(repr(given))
        cls: Any = type(lm)
        if _is_users_class(cls):
            self._class(cls)

    def _module(self, module: Module, name: str) -> str:
        """Read a module and those in it."""
        around = "" if name == "program" else name
        for path, part in (dict(module.named_sub_modules()) or {"self": module}).items():
            if id(part) not in self._names:
                place = ".".join(filter(None, (around, path.removeprefix("self").removeprefix("."))))
                self._name(part, place or name)
                self._one_module(part, place)
        return name

    def _one_module(self, module: Module, path: str) -> None:
        of = f" of `{path}`" if path else ""
        cls: type = type(module)
        if _is_users_class(cls):
            self._class(cls)
        else:
            self.parts[f"class{of}"] = _shown(_library_name(cls))
        written = _written_by_class(cls)
        own = _OF_PREDICTORS if isinstance(module, Predictor) else frozenset[str]()
        if own:
            self._predictor(cast("Any", module), path, of)
        for attribute, value in vars(module).items():
            hidden = attribute.startswith("_") and not _is_users_class(cls)
            if hidden or attribute in own or attribute in _OF_MODULES or isinstance(value, Module):
                continue
            if is_secret(attribute, value):
                continue
            if attribute in written:
                self._skip(f"attribute `{attribute}`{of}")
            else:
                self._put(f"attribute `{attribute}`{of}", value)

    def _predictor(self, predictor: Any, path: str, of: str) -> None:
        try:
            state = predictor.dump_state()
        except Exception:  # a demo without a JSON form
            self._skip(f"state{of}")
            return
        signature = predictor.signature
        self.parts[f"signature{of}"] = digest(state.get("signature"))
        fields = {**signature.input_fields, **signature.output_fields}
        self._put(f"types{of}", [(name, getattr(each, "annotation", None)) for name, each in fields.items()])
        rest = {
            name: each for name, each in state.items() if name not in ("lm", "signature", "traces", "train", "demos")
        }
        self._put(f"demos{of}", predictor.demos)
        if any(rest.values()):
            self._put(f"state{of}", rest)
        if config := storable_options(predictor.config):
            self.parts[f"config{of}"] = _shown(repr(sorted(config.items())))
        self._asks = True
        self.asks_default = self.asks_default or predictor.lm is None
        self.model(predictor.lm, path)

    # --- values

    def value(self, value: object, place: str, depth: int = 0) -> object:
        """Return a value whose ``repr`` is equal for equal content in each process. ``place``: its name in ``unknown``."""
        if isinstance(value, _PLAIN) and not isinstance(value, Enum):
            return (
                "a secret" if isinstance(value, str) and is_secret("", value) else (type(value).__name__, repr(value))
            )
        if (known := self._names.get(id(value))) is not None:
            return known
        if depth > _MOST_DEPTH:
            return "deep"
        return self._object(value, place, depth)

    def _object(self, value: Any, place: str, depth: int) -> object:
        for kind, read in _KINDS:
            if isinstance(value, kind):
                return read(self, value, place, depth)
        if (origin := get_origin(value)) is not None:  # list[int], int | None, Literal["a"]
            return "type", self.value(origin, place, depth + 1), self._items(get_args(value), place, depth)
        if isinstance(value, (TypeVar, ForwardRef)) or type(value).__module__ == "typing":
            return "type", repr(value)
        return self._instance(value, place, depth)

    def _put(self, part: str, value: object) -> None:
        self.parts[part] = digest(self.value(value, part))

    def _skip(self, place: str) -> None:
        if place not in self.unknown:
            self.unknown.append(place)

    def _items(self, value: Iterable[object], place: str, depth: int) -> object:
        return [self.value(each, place, depth + 1) for each in value]

    def _mapping(self, value: Mapping[Any, object], place: str, depth: int) -> object:
        found = [
            (repr(self.value(key, place, depth + 1)), "a secret" if is_secret(str(key), item) else item)
            for key, item in list(value.items())  # other threads of the user may add items meanwhile
        ]
        return [(key, self.value(item, place, depth + 1)) for key, item in sorted(found, key=lambda each: each[0])]

    def _instance(self, value: Any, place: str, depth: int) -> object:
        """Read an object by its class and its attributes; of an installed package only the plain ones."""
        cls = cast("Any", type(value))
        if isinstance(value, (Record, BaseModel)) or hasattr(cls, "__dataclass_fields__"):
            return _class_token(self, cls), self.value(dict(vars_of(value)), place, depth + 1)
        if _is_users_class(cls):
            self._name(value, place)
            written = _written_by_class(cls)
            token = self._class(cls)
            for name, each in vars_of(value).items():
                if name in written:
                    self._skip(f"attribute `{name}` of {token}")
                elif not is_secret(name, each):
                    self._put(f"{place}: attribute `{name}` of {token}", each)
            return token
        if cls.__module__.partition(".")[0] == "sigwire":
            shown = {
                name: each for name, each in vars_of(value).items() if not name.startswith("_") and name != "callbacks"
            }
            self._name(value, place)
            return cls.__qualname__, self.value(shown, place, depth + 1)
        if isinstance(value, re.Pattern):
            return "pattern", repr(cast("re.Pattern[str]", value))
        self._skip(f"{place} ({cls.__module__}.{cls.__qualname__})")
        return _library_name(cls)

    def _name(self, value: object, name: str) -> None:
        self._names[id(value)] = name
        self._read.append(value)

    # --- functions and classes

    def _function(self, function: FunctionType, place: str, depth: int) -> object:
        if not is_users_file(function.__code__.co_filename):
            return _library_name(function)
        label = self._label(function)
        self._name(function, label)
        use = code_use(function.__code__)
        self.parts[f"{label}: body"] = code_digest(function.__code__)
        self._defaults(function, label)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name != "__class__":
                with suppress(ValueError):  # an empty cell
                    self._variable(f"{label}: closure `{name}`", name, cell.cell_contents, use)
        for name, attributes in sorted(use.globals.items()):
            if name in function.__globals__:
                self._global(label, name, function.__globals__[name], attributes, use)
        for name, level in sorted(use.imports):
            self._import(label, name, level, str(function.__globals__.get("__package__") or ""))
        return label

    def _defaults(self, function: FunctionType, label: str) -> None:
        code = function.__code__
        positional = code.co_varnames[: code.co_argcount]
        given = function.__defaults__ or ()
        values = {
            **dict(zip(positional[len(positional) - len(given) :], given, strict=True)),
            **(function.__kwdefaults__ or {}),
        }
        for name, value in values.items():
            if not is_secret(name, value):
                self._put(f"{label}: default `{name}`", value)

    def _variable(self, part: str, name: str, value: object, use: CodeUse) -> None:
        """Read a variable, unless the code changes it: a counter has another value after each run."""
        if is_secret(name, value) or isinstance(value, ModuleType):
            return
        is_changed = name in use.written or (use.stores_items and isinstance(value, _CONTAINERS))
        if is_changed and not isinstance(value, (FunctionType, type)):
            self._skip(part)
        else:
            self._put(part, value)

    def _global(self, label: str, name: str, value: object, attributes: Iterable[str], use: CodeUse) -> None:
        if isinstance(value, ModuleType):
            if _is_users_module(value):
                for attribute in sorted(attributes):
                    if hasattr(value, attribute):
                        self._variable(
                            f"{label}: global `{name}.{attribute}`", attribute, getattr(value, attribute), use
                        )
        elif isinstance(value, FunctionType):
            self.value(value, name)  # its parts have its own name
        else:
            self._variable(f"{label}: global `{name}`", name, value, use)

    def _import(self, label: str, name: str, level: int, package: str) -> None:
        """Read the file of a module of the user that a function imports: it may not be loaded yet."""
        with suppress(ImportError, ValueError, OSError):
            spec = find_spec(resolve_name("." * level + name, package) if level else name)
            if spec is not None and spec.origin and spec.has_location and is_users_file(spec.origin):
                self.parts[f"{label}: import `{name}`"] = sha256(Path(spec.origin).read_bytes()).hexdigest()[:16]

    def _class(self, cls: Any) -> str:
        """Read a class of the user and its bases; return its name."""
        if (known := self._names.get(id(cls))) is not None:
            return known
        label = self._label(cls)
        self._name(cls, label)
        bases: list[str] = []
        for base in cast("tuple[type, ...]", cls.__mro__)[1:]:
            if base is not object:
                bases.append(self._class(base) if _is_users_class(base) else _library_name(base))
        self.parts[f"{label}: bases"] = digest(bases)
        if issubclass(cls, BaseModel):
            self.parts[f"{label}: fields"] = digest(_ADDRESS.sub("", repr(cast("object", cls.model_fields))))
        elif annotations := _members(cls).get("__annotations__"):
            self.parts[f"{label}: annotations"] = digest(_ADDRESS.sub("", repr(annotations)))
        written = _written_by_class(cls)
        for name, member in _members(cls).items():
            for function in _functions_of(member):
                self._function(function, name, 0)
            is_data = not name.startswith("__") and not issubclass(cls, BaseModel) and not _functions_of(member)
            if is_data and name not in written and not name.startswith("_abc_") and not hasattr(member, "__get__"):
                self._put(f"{label}: attribute `{name}`", member)
        return label

    def _label(self, named: Any) -> str:
        name = f"`{named.__qualname__.rpartition('<locals>.')[2]}`"
        label, number = name, 1
        while label in self._taken:
            number += 1
            label = f"{name} ({number})"
        self._taken.add(label)
        return label


def _read_model(reader: PartReader, lm: BaseLM, place: str, depth: int) -> object:
    reader.model(lm, place.replace("`", ""))
    return "model"


def _read_tool(reader: PartReader, tool: Tool, place: str, depth: int) -> object:
    facts = (
        tool.name,
        tool.description,
        repr(tool.parameters),
        tool.max_calls,
        tool.max_output,
        tool.timeout,
        tool.repeat,
    )
    functions = [each for each in (tool.handler, *tool.guards) if each is not None]
    read = [reader.value(each, f"tool `{tool.name}`", depth + 1) for each in functions]
    return "tool", facts, *(read or [None])


def _read_method(reader: PartReader, method: MethodType, place: str, depth: int) -> object:
    of = method.__self__
    return reader.value(method.__func__, place, depth + 1), reader.value(of, place, depth + 1)


def _read_partial(reader: PartReader, given: partial[object], place: str, depth: int) -> object:
    arguments = [*given.args, *given.keywords.values()]
    names = [*map(str, range(len(given.args))), *given.keywords]
    for name, value in zip(names, arguments, strict=True):
        reader._put(f"{place}: argument `{name}`", value)  # pyright: ignore[reportPrivateUsage]
    return "partial", reader.value(given.func, place, depth + 1), names


def _read_builtin(reader: PartReader, function: BuiltinFunctionType, place: str, depth: int) -> object:
    owner = function.__self__
    if owner is None or isinstance(owner, ModuleType):
        return _library_name(function)
    return function.__qualname__, reader.value(owner, place, depth + 1)


def _class_token(reader: PartReader, cls: Any) -> str:
    return reader._class(cls) if _is_users_class(cls) else _library_name(cls)  # pyright: ignore[reportPrivateUsage]


def _read_enum(reader: PartReader, member: Enum, place: str, depth: int) -> object:
    return _class_token(reader, type(member)), member.name


def _skip_weak(reader: PartReader, value: object, place: str, depth: int) -> object:
    """Leave a weak collection out: the collector of garbage decides what is in it."""
    name = type(value).__qualname__
    reader._skip(f"{place} (weakref.{name})")  # pyright: ignore[reportPrivateUsage]
    return name


def _read_set(reader: PartReader, value: Iterable[object], place: str, depth: int) -> object:
    return sorted(repr(reader.value(each, place, depth + 1)) for each in value)


_KINDS: Sequence[tuple[Any, Callable[[PartReader, Any, str, int], object]]] = (
    (Module, lambda reader, value, place, depth: reader._module(value, place.replace("`", ""))),  # pyright: ignore
    (BaseLM, _read_model),
    (FunctionType, PartReader._function),  # pyright: ignore[reportPrivateUsage]
    (MethodType, _read_method),
    (partial, _read_partial),
    (BuiltinFunctionType, _read_builtin),
    (Tool, _read_tool),
    (Enum, _read_enum),
    (type, lambda reader, value, place, depth: _class_token(reader, value)),
    (ModuleType, lambda reader, value, place, depth: value.__name__),
    ((WeakKeyDictionary, WeakSet, WeakValueDictionary), _skip_weak),
    (Mapping, PartReader._mapping),  # pyright: ignore[reportPrivateUsage]
    ((set, frozenset), _read_set),
    ((list, tuple), PartReader._items),  # pyright: ignore[reportPrivateUsage]
)
_OF_MODULES = frozenset(("callbacks", "optimization", "_compiled", "_log"))


def vars_of(value: object) -> dict[str, object]:
    """Return the attributes of an object, those in slots as well."""
    found = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                found.setdefault(name, getattr(value, name))
    return found


def _members(cls: Any) -> Mapping[str, object]:
    return cast("Mapping[str, object]", vars(cls))


def _functions_of(member: object) -> list[FunctionType]:
    """Return the functions of a member of a class."""
    if isinstance(member, (staticmethod, classmethod)):
        member = cast("staticmethod[..., object]", member).__func__
    given: list[object] = [member]
    if isinstance(member, property):
        given = [member.fget, member.fset, member.fdel]
    elif not isinstance(member, FunctionType):
        given = [getattr_static(member, "func", None), getattr_static(member, "__wrapped__", None)]
    return [each for each in given if isinstance(each, FunctionType)]


@lru_cache(maxsize=1024)
def _written_by_class(cls: Any) -> frozenset[str]:
    """Return the attributes that the methods of the user's classes change after an object is made."""
    found: set[str] = set()
    for base in cast("tuple[type, ...]", cls.__mro__):
        for name, member in _members(base).items():
            for function in _functions_of(member):
                if name not in _STARTING and is_users_file(function.__code__.co_filename):
                    use = code_use(function.__code__)
                    found |= use.written
    return frozenset(found)


_LIBRARY_FOLDERS = tuple(
    {str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {str(Path(__file__).resolve().parents[2])}
)
# Other interpreters, users and tools install into folders of these names: a base under a venv, ``pip install --user``, Debian.
_PACKAGES = frozenset(("site-packages", "dist-packages"))


@cache  # asked of each loaded module, one after the other: a bounded cache of fewer would miss each time
def is_users_file(path: str) -> bool:
    """Return True for a file of the user: no package is installed there. Cells of notebooks have names in brackets.

    >>> is_users_file("<ipython-input-1>"), is_users_file(re.__file__)
    (True, False)
    >>> is_users_file("/home/me/.local/lib/python3.12/site-packages/polars/frame.py")
    False
    """
    if path.startswith("<"):
        return not path.startswith("<frozen")
    given, resolved = Path(path), Path(path).resolve()
    if not _PACKAGES.isdisjoint((*given.parts, *resolved.parts)):  # the file of a package may link into a cache
        return False
    return not any(resolved.is_relative_to(folder) for folder in _LIBRARY_FOLDERS)


def _is_users_module(module: ModuleType) -> bool:
    return (path := getattr(module, "__file__", None)) is not None and is_users_file(path)


@lru_cache(maxsize=4096)
def _is_users_class(cls: Any) -> bool:
    """Return True for a class of the user, also of a cell or of an example in a docstring, whose module is another one."""
    module = sys.modules.get(cls.__module__)
    if cls.__module__ == "__main__" or (module is not None and _is_users_module(module)):
        return True
    files = (each.__code__.co_filename for member in _members(cls).values() for each in _functions_of(member))
    return any(file.startswith(_INTERACTIVE) for file in files)


def _library_name(found: Any) -> str:
    """Return the name of a function or class of a package, and the version of the package."""
    module = str(getattr(found, "__module__", "") or "builtins")
    name = getattr(found, "__qualname__", type(found).__qualname__)
    return f"{module}.{name} {package_version(module.partition('.')[0])}".rstrip()


@lru_cache(maxsize=256)
def package_version(package: str) -> str:
    """Return the version of an installed package, "" if there is none of that name.

    >>> package_version("sigwire") == version(), package_version("no such package")
    (True, '')
    """
    if package == "sigwire":
        return version()
    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, ValueError):  # of the standard library, or a distribution of another name
        return ""


def _shown(text: str) -> str:
    """Return a part that an error may show as it is."""
    return f"= {text}" if len(text) <= 200 else digest(text)
