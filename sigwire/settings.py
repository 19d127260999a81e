"""Settings: process-wide defaults, and contexts that override them.

    configure(lm=lm)                    changes a default, from any thread, task or notebook cell
    with context(lm=other): ...         overrides it inside the block only

``Settings`` is the table of keys: name, type, default, meaning. A context overrides only the keys it sets, also after a
``configure`` inside the context. Contexts are context variables: tasks, ``asyncio.to_thread`` and the threads of the library
copy them. For other thread pools, wrap the function in ``bind``: ``unseen_model`` finds calls that were not.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypeVar

from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.tools.hooks import find_injected_with
from sigwire.errors import ConfigurationError, suggest
from sigwire.lm.policy.cache.choice import read_settings_from
from sigwire.lm.policy.money.opened import find_budget_with
from sigwire.observe.callbacks import CallbackLike, listen_to
from sigwire.observe.place import find_history_size_with

if TYPE_CHECKING:
    from sigwire.adapters.base import Adapter
    from sigwire.lm.base import LanguageModel
    from sigwire.lm.policy.money.budget import Budget

__all__ = [
    "Settings",
    "SettingsAccess",
    "bind",
    "configure",
    "context",
    "current",
    "sample_in_context",
    "settings",
    "unseen_model",
]

P = ParamSpec("P")
T = TypeVar("T")
SettingValue: TypeAlias = Any
"""The value of a setting; ``_CHECKS`` checks its type at run time."""


def _key(default: object, meaning: str, check: str, *, repr: bool = True) -> Any:
    return field(default=default, metadata={"meaning": meaning, "check": check}, repr=repr)


@dataclass(frozen=True, slots=True)
class Settings:
    """The current values. Names of other settings are refused."""

    lm: LanguageModel | None = _key(None, "The model for modules that have none of their own.", "lm")
    adapter: Adapter | None = _key(None, "How signatures become requests; `None` is `ChatAdapter()`.", "adapter")
    callbacks: Sequence[CallbackLike] = _key((), "Listeners for every call (see `BaseCallback`).", "listeners")
    trace: list[Any] | None = _key(
        None, "A list that gets `(predictor, inputs, prediction)` of every `Predict`.", "trace"
    )
    max_trace_size: int = _key(10_000, "How many entries `trace` keeps; the oldest go first.", "count")
    track_usage: bool = _key(False, "The outermost module puts token totals by model on its prediction.", "switch")
    max_history_size: int = _key(
        0,
        "How many requests each module remembers for `inspect_history`; 0 is none. A model keeps as many, 50 at least.",
        "count",
    )
    max_reasks: int = _key(
        0,
        "How often an answer that cannot be parsed is sent back with its errors, unless the call, the module, the model or the "
        "adapter decides, in this order.",
        "count",
    )
    num_threads: int = _key(8, "How many calls `batch` and `abatch` have under way at once.", "positive")
    fresh: bool = _key(False, "Calls read no stored answer, but store theirs (see `configure_cache`).", "switch")
    rollout_id: int | str | None = _key(None, "Calls share stored answers with calls of the same id only.", "sample")
    budget: Budget | None = _key(None, "A `Budget` for every call, around those of `with` blocks.", "budget")
    warn_on_type_mismatch: bool = _key(True, "Warn when an input does not fit its declared type.", "switch")
    unknown_inputs: Literal["error", "warn", "ignore"] | None = _key(
        None,
        'Inputs that a signature does not have: `"error"` refuses the call, `"warn"` and `"ignore"` leave them out; `None` '
        "leaves it to the class of the module.",
        "unknown inputs",
    )
    max_depth: int = _key(8, "How many calls of tools may be nested; a deeper call is not run.", "positive")
    injected: Mapping[str, object] | None = _key(
        None, "Values of `Injected` parameters of tools, by name; never shown.", "injected", repr=False
    )


def _none_or(method: str) -> Callable[[object], bool]:
    """Return a check that accepts ``None``, and an object, not a class, with a method of that name."""
    return lambda value: value is None or (not isinstance(value, type) and callable(getattr(value, method, None)))


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


_CHECKS: dict[str, tuple[Callable[[object], bool], str]] = {
    "lm": (_none_or("respond"), 'a language model such as sigwire.LM("offline/lexical")'),
    "adapter": (_none_or("plan"), "an adapter such as sigwire.ChatAdapter()"),
    "listeners": (
        lambda value: is_items(value) and not any(isinstance(item, type) for item in value),
        "a list of listeners such as [MyCallback()]",
    ),
    "budget": (_none_or("deadline"), "a budget such as sigwire.Budget(money=1.0)"),
    "sample": (lambda value: value is None or type(value) in (int, str), "a number, a text or None"),
    "trace": (lambda value: value is None or isinstance(value, list), "a list or None"),
    "switch": (lambda value: isinstance(value, bool), "True or False"),
    "unknown inputs": (lambda value: value in (None, "error", "warn", "ignore"), '"error", "warn", "ignore" or None'),
    "count": (lambda value: _is_number(value, 0), "a number, 0 or more"),
    "positive": (lambda value: _is_number(value, 1), "a number above 0"),
    "injected": (
        lambda value: value is None or (is_mapping(value) and all(type(name) is str for name in value)),
        'a dict of values by name such as {"user": user}',
    ),
}

_KEYS = {entry.name: entry for entry in fields(Settings)}


def _check(values: dict[str, SettingValue]) -> dict[str, SettingValue]:
    for name, value in values.items():
        if name not in _KEYS:
            known = ", ".join(sorted(_KEYS))
            raise ConfigurationError(
                f"There is no setting {name!r} (configuring). {suggest(name, _KEYS)}The settings are {known}."
            )
        fits, wanted = _CHECKS[_KEYS[name].metadata["check"]]
        if not fits(value):
            shown = f"{value!r:.80}" if _KEYS[name].repr else f"a value of the type {type(value).__name__}"
            raise ConfigurationError(
                f"The setting {name!r} takes {wanted}, not {shown} (configuring). {_correction(name, value)}"
            )
    return values


def _correction(name: str, value: object) -> str:
    """Return a sentence with what was probably meant: the object of a name, the instance of a class."""
    if isinstance(value, type):
        return f"Write {name}={value.__name__}(...)."
    if isinstance(value, str) and name in _BY_NAME:
        return f"Write {name}={_BY_NAME[name](value)}."
    return f"Pass such a value for {name}=."


_ADAPTERS = {"chat": "ChatAdapter", "json": "JSONAdapter", "xml": "XMLAdapter", "two_step": "TwoStepAdapter"}
_BY_NAME: dict[str, Callable[[str], str]] = {
    "lm": lambda text: f"sigwire.LM({text!r:.80})",
    "adapter": lambda text: (
        f"sigwire.{_ADAPTERS.get(text.lower().removesuffix('adapter').strip('_'), 'ChatAdapter')}()"
    ),
}


class _Overlay:
    """The values of a context, and the last merge with the defaults."""

    __slots__ = ("_merged", "values")

    def __init__(self, values: dict[str, SettingValue]) -> None:
        self.values = values
        self._merged: tuple[Settings, Settings] | None = None

    def merge(self, defaults: Settings) -> Settings:
        merged = self._merged
        if merged is None or merged[0] is not defaults:
            merged = self._merged = (defaults, replace(defaults, **self.values))
        return merged[1]


_defaults = Settings()
_overlay: contextvars.ContextVar[_Overlay | None] = contextvars.ContextVar("sigwire_settings", default=None)


def current() -> Settings:
    """Return the current values as one frozen object.

    >>> with context(num_threads=2):
    ...     current().num_threads
    2
    """
    overlay = _overlay.get()
    return _defaults if overlay is None else overlay.merge(_defaults)


def sample_in_context(own: int | str | None) -> int | str | None:
    """Return the sample that a part of a run asks the cache for: its own, within that of the context (``rollout_id``).

    >>> with context(rollout_id=3):
    ...     sample_in_context(None), sample_in_context(2)
    (3, '3/2')
    """
    outer = current().rollout_id
    return outer if own is None else own if outer is None else f"{outer}/{own}"


def configure(**values: SettingValue) -> None:
    """Change defaults for the whole process. Raises ``ConfigurationError`` for an unknown key or an invalid value.

    >>> configure(num_threads=8)
    >>> configure(temperature=1)
    Traceback (most recent call last):
        ...
    sigwire.errors.ConfigurationError: There is no setting 'temperature' (configuring). The settings are adapter, ...
    """
    global _defaults
    _defaults = replace(_defaults, **_check(values))


@contextmanager
def context(**values: SettingValue) -> Generator[None]:
    """Override settings inside the ``with`` block, and in tasks and library threads that it starts.

    >>> with context(num_threads=2):
    ...     configure(max_trace_size=5)
    ...     settings.num_threads, settings.max_trace_size
    (2, 5)
    >>> configure(max_trace_size=10_000)
    """
    checked = _check(values)
    before, place = _overlay.get(), object()
    _overlay.set(_Overlay({**before.values, **checked} if before else checked))
    if "lm" in checked:
        _open_models[place] = (threading.get_ident(), checked["lm"])
    try:
        yield
    finally:
        _open_models.pop(place, None)
        _overlay.set(before)


_open_models: dict[object, tuple[int, LanguageModel | None]] = {}
"""The threads and models of all ``context(lm=...)`` blocks that are open now."""


def unseen_model() -> LanguageModel | None:
    """Return a model of ``context(lm=...)`` that is open in another thread and that this thread of the user does not see.

    ``None`` in the main thread, in threads of sigwire, and in a context or a function of ``bind``.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from sigwire.lm.fake import FakeLM
    >>> with ThreadPoolExecutor(1) as pool, context(lm=FakeLM([])):
    ...     pool.submit(unseen_model).result(), pool.submit(bind(unseen_model)).result()
    (FakeLM('fake'), None)
    """
    if not _open_models or _overlay.get() is not None:
        return None
    thread = threading.current_thread()
    if thread is threading.main_thread() or thread.name.startswith("sigwire"):
        return None
    return next(
        (lm for ident, lm in list(_open_models.values()) if ident != thread.ident and lm is not _defaults.lm), None
    )


def bind(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function that runs in the current context from any thread, for thread pools of users.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(1) as pool, context(num_threads=2):
    ...     pool.submit(bind(lambda: settings.num_threads)).result()
    2
    """
    captured = contextvars.copy_context()
    if captured.get(_overlay) is None:
        captured.run(_overlay.set, _Overlay({}))  # bound on purpose: no call misses a context

    def bound(*args: P.args, **kwargs: P.kwargs) -> T:
        # A copy for each call: only one thread at a time can enter a context.
        return captured.copy().run(function, *args, **kwargs)

    return bound


class SettingsAccess:
    """The object ``settings``: the current values by attribute, by item or with ``get``.

    >>> settings.num_threads, settings["num_threads"], settings.get("nothing", 1), "lm" in settings
    (8, 8, 1, True)
    """

    configure = staticmethod(configure)
    context = staticmethod(context)
    bind = staticmethod(bind)

    __slots__ = ()

    def __getattr__(self, name: str) -> SettingValue:
        if name not in _KEYS:
            raise AttributeError(f"There is no setting {name!r}. The settings are {', '.join(sorted(_KEYS))}.")
        return getattr(current(), name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Settings cannot be assigned. Write configure({name}=...) or with context({name}=...).")

    def __getitem__(self, name: str) -> SettingValue:
        if name not in _KEYS:
            raise KeyError(f"There is no setting {name!r}. The settings are {', '.join(sorted(_KEYS))}.")
        return getattr(current(), name)

    def __contains__(self, name: object) -> bool:
        return name in _KEYS

    def __iter__(self) -> Iterator[str]:
        return iter(_KEYS)

    def get(self, name: str, default: object = None) -> SettingValue:
        """Return the value of a key, or ``default`` for an unknown key."""
        return getattr(current(), name) if name in _KEYS else default

    def meanings(self) -> dict[str, str]:
        """Return the meaning of each key, as in the table of the documentation."""
        return {name: entry.metadata["meaning"] for name, entry in _KEYS.items()}

    def __repr__(self) -> str:
        shown = [name for name in _KEYS if _KEYS[name].repr]
        return f"settings({', '.join(f'{name}={getattr(current(), name)!r}' for name in shown)})"


settings = SettingsAccess()


def _callbacks() -> Sequence[CallbackLike]:  # ``current()`` spared: each call asks three times
    overlay = _overlay.get()
    return (_defaults if overlay is None else overlay.merge(_defaults)).callbacks


listen_to(_callbacks)
read_settings_from(current)
find_history_size_with(lambda: current().max_history_size)
find_budget_with(lambda: current().budget)
find_injected_with(lambda: current().injected)
