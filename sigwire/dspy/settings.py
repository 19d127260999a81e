"""DSPy's view of the settings: those of ``sigwire.settings``, and the names in ``_OWN`` that only DSPy has.

A program may have settings of its own, under other names: ``configure(my_key=3)``. A name that is almost one of the others is
refused. ``save`` writes JSON, so it has no listeners and no functions; ``load_settings`` returns what ``configure`` takes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sigwire.adapters.base import Adapter
from sigwire.core.json import loads
from sigwire.dspy.called_models import as_model
from sigwire.dspy.tools import let_block_if
from sigwire.errors import ConfigurationError, EventLoopError, InputError, StateError, suggest, warn_user
from sigwire.files.whole import write_whole
from sigwire.lm.base import BaseLM
from sigwire.observe.usage import UsageTracker, open_trackers
from sigwire.settings import Settings, SettingsAccess, SettingValue
from sigwire.settings import configure as core_configure
from sigwire.settings import context as core_context
from sigwire.settings import settings as core_settings

__all__ = ["DspySettings", "configure", "context", "load_settings", "settings", "track_usage"]

_INSTEAD: Mapping[str, str] = {
    "max_errors": "Evaluate and Parallel take max_errors.",
    "send_stream": "streamify sets it for the program that it runs.",
    "usage_tracker": "Write with track_usage() as tracker.",
}
# Settings of DSPy: the default, the values that fit, and what to do instead of others. Those with one value that fits name
# what always holds.
_OWN: Mapping[str, tuple[SettingValue, Callable[[SettingValue], bool], str]] = {
    "allow_tool_async_sync_conversion": (
        True,
        lambda value: type(value) is bool,
        "True calls async tools blocking, False refuses such calls.",
    ),
    "async_max_workers": (8, lambda value: type(value) is int and value > 0, "It is a number above 0."),
    "interpreter_factory": (
        None,
        lambda value: value is None or callable(value),
        "It is a function that makes an interpreter.",
    ),
    "experimental": (False, lambda value: type(value) is bool, "It has no effect: nothing here is experimental."),
    "disable_history": (True, lambda value: type(value) is bool, "False keeps 10,000 calls of each module, True none."),
    "provide_traceback": (True, bool, "Errors always have their traceback."),
    "text_loop": (
        False,
        lambda value: type(value) is bool,
        "True makes each ReAct that is made run DSPy's loop in text.",
    ),
    "rm": (None, lambda value: value is None or callable(value), "It is a function of query and k."),
}
_own_defaults: dict[str, SettingValue] = {name: default for name, (default, _, _) in _OWN.items()}
_own: ContextVar[Mapping[str, SettingValue]] = ContextVar("sigwire_dspy_settings", default={})  # noqa: B039  (never changed)
_configuring: WeakSet[asyncio.Task[Any]] = WeakSet()  # those that are done were first, and do not count
_OF_MODELS = frozenset("api_base api_key base_url cache max_tokens model temperature top_p".split())  # of dspy.LM
# Settings of contexts only: an object that is open in the context.
_OPEN: Mapping[str, ContextVar[SettingValue]] = {
    name: ContextVar(f"sigwire_dspy_{name}", default=None) for name in ("send_stream", "usage_tracker")
}


def configure(**values: SettingValue) -> None:
    """Change defaults for the whole process. Raises ``ConfigurationError`` for an unfit value.

    A key that nothing else has is a setting of the program: it may have any value, and its first use is a warning.
    ``ConfigurationError`` also if the key is a misspelt one, or an option of a model.

    >>> configure(usage_tracker=True)
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: There is no setting 'usage_tracker'. Write with track_usage() as tracker. ...

    Raises ``EventLoopError`` in a task of asyncio while another task that has configured is running.
    """
    task = _configuring_task()
    own = _take_own(values)
    core_configure(**values)
    _own_defaults.update(own)
    if task is not None:
        _configuring.add(task)


def _configuring_task() -> asyncio.Task[Any] | None:
    """Return the running task. Raises ``EventLoopError`` while another one of its loop has configured and is running."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None
    loop = asyncio.get_running_loop()
    others = [other for other in list(_configuring) if other is not task and other.get_loop() is loop]
    if not all(other.done() for other in others):
        raise EventLoopError(
            "Another task has configured and is running. Until it ends, dspy.configure(...) can only be called from the same "
            "async task. Use dspy.context(...) in this one."
        )
    return task


@contextmanager
def context(**values: SettingValue) -> Generator[None]:
    """Change settings inside the ``with`` block.

    ``send_stream`` is the stream that a model may send chunks to, ``usage_tracker`` counts the requests of the block.
    """
    opened = {name: values.pop(name) for name in _OPEN.keys() & values.keys()}
    tracker = opened.get("usage_tracker")
    if not isinstance(tracker, UsageTracker | None):
        raise ConfigurationError(f"The setting 'usage_tracker' cannot be {tracker!r:.80}. It is a UsageTracker.")
    own = _take_own(values)
    with core_context(**values), _counting(tracker):
        before = _own.get(), {name: _OPEN[name].get() for name in opened}
        _own.set({**before[0], **own})
        for name, value in opened.items():
            _OPEN[name].set(value)
        try:
            yield
        finally:
            _own.set(before[0])
            for name, value in before[1].items():
                _OPEN[name].set(value)


@contextmanager
def _counting(tracker: UsageTracker | None) -> Generator[None]:
    """Count the requests of the block in a tracker that may be open in other tasks; one that is open here counts already."""
    before = open_trackers.get()
    if tracker is not None and all(tracker is not each for each in before):
        open_trackers.set((*before, tracker))
    try:
        yield
    finally:
        open_trackers.set(before)


@contextmanager
def track_usage() -> Generator[UsageTracker]:
    """Count the usage of all requests made inside the block; ``settings.usage_tracker`` is the tracker there.

    >>> with track_usage() as tracker:
    ...     settings.usage_tracker is tracker
    True
    """
    with context(usage_tracker=UsageTracker()):
        yield settings.usage_tracker


def _take_own(values: dict[str, SettingValue]) -> dict[str, SettingValue]:
    """Remove the settings that only DSPy has from ``values``; return them. ``callbacks=None`` is no listeners.

    DSPy always keeps a trace: ``max_trace_size`` starts one here. A plain callable becomes a model.
    """
    if name := next((name for name in values if name in _INSTEAD), None):
        known = ", ".join((*sorted(core_settings), *_OWN))
        raise ConfigurationError(f"There is no setting {name!r}. {_INSTEAD[name]} The settings are {known}.")
    invented = {name: values.pop(name) for name in [*values] if name not in core_settings and name not in _OWN}
    for name in invented.keys() - _own_defaults.keys() - _own.get().keys():
        _check_invented(name)
    for name in _OWN.keys() & values.keys():
        _, fits, instead = _OWN[name]
        if not fits(values[name]):
            raise ConfigurationError(f"The setting {name!r} cannot be {values[name]!r:.80}. {instead}")
    if "disable_history" in values:
        values.setdefault("max_history_size", 0 if values["disable_history"] else 10_000)
    if "max_trace_size" in values and core_settings.trace is None:
        values.setdefault("trace", [])
    if values.get("callbacks", ()) is None:
        values["callbacks"] = ()
    if "lm" in values and not hasattr(values["lm"], "respond"):
        values["lm"] = as_model(values["lm"])
    return {**invented, **{name: values.pop(name) for name in _OWN.keys() & values.keys()}}


def _check_invented(name: str) -> None:
    """Warn about the first use of a setting that only the program has. Raises ``ConfigurationError`` for a likely mistake."""
    known = [*core_settings, *_OWN]
    hint = suggest(name, known)
    if name in _OF_MODELS:
        hint = f"It is an option of a model: configure(lm=dspy.LM(..., {name}=...)). "
    if hint:
        raise ConfigurationError(f"There is no setting {name!r}. {hint}The settings are {', '.join(sorted(known))}.")
    warn_user(f"The setting {name!r} is one of the program alone: the library does not read it.")


class DspySettings(SettingsAccess):
    """The object ``dspy.settings``: the settings in effect, and what is open in the context.

    ``send_stream`` is the stream of a program of ``streamify``, ``usage_tracker`` the tracker of ``track_usage()``.

    >>> settings.async_max_workers, "rm" in settings, settings.copy()["num_threads"]
    (8, True, 8)
    """

    __slots__ = ()

    configure = staticmethod(configure)
    context = staticmethod(context)

    def __getattr__(self, name: str) -> SettingValue:
        if name in _OPEN:
            return _OPEN[name].get()
        if name == "callbacks":  # a list in DSPy, which programs lengthen: [*settings.callbacks, mine]
            return list(super().__getattr__(name))
        return _own.get().get(name, _own_defaults.get(name)) if self._is_own(name) else super().__getattr__(name)

    def __setattr__(self, name: str, value: object) -> None:
        configure(**{name: value})

    def __getitem__(self, name: str) -> SettingValue:
        return getattr(self, name) if name in ("callbacks", *_OPEN) or self._is_own(name) else super().__getitem__(name)

    def __setitem__(self, name: str, value: object) -> None:
        configure(**{name: value})

    def __contains__(self, name: object) -> bool:
        return self._is_own(name) or super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        yield from {**_own_defaults, **_own.get()}

    @staticmethod
    def _is_own(name: object) -> bool:
        return name in _own_defaults or name in _own.get()

    def get(self, name: str, default: SettingValue = None) -> SettingValue:
        """Return the value of a key, or ``default`` if there is no such key."""
        return self[name] if name in _OPEN or name in self else default

    def copy(self) -> dict[str, SettingValue]:
        """Return the values as a dict, for ``configure(**values)``."""
        return {name: self[name] for name in self}

    @property
    def config(self) -> dict[str, SettingValue]:
        """The values as a dict."""
        return self.copy()

    def save(
        self, path: str | PathLike[str], modules_to_serialize: object = None, exclude_keys: Collection[str] = ()
    ) -> None:
        """Write the settings that differ from the defaults as JSON. Raises ``InputError`` for a value that is not data.

        Keys and headers of the model are not written. ``modules_to_serialize`` must be empty: no file holds code.
        """
        if modules_to_serialize:
            raise InputError(
                "No file holds code (saving the settings). Import the modules where you load the settings."
            )
        state = {
            name: _encode(name, value)
            for name, value in self.copy().items()
            if name not in exclude_keys and value != _DEFAULTS.get(name) and name not in ("trace", "injected")
        }
        write_whole(path, json.dumps(state, indent=2))

    @staticmethod
    def load(path: str | PathLike[str], allow_pickle: bool = False) -> dict[str, SettingValue]:
        """Return the settings of a file of ``save``. Raises ``StateError`` for any other file, a pickle included."""
        try:
            state = loads(Path(path).read_bytes())
            return {name: _decode(name, value) for name, value in state.items()}
        except OSError as error:
            raise StateError(
                f"{path} cannot be read: {error.strerror} (loading settings in {Path.cwd()}). Check the path."
            ) from error
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise StateError(
                f"{path} is no file of settings.save (loading settings): {error}. Save the settings again."
            ) from error


_DEFAULTS: Mapping[str, SettingValue] = {
    **{field.name: field.default for field in fields(Settings)},
    **_own_defaults,
    "callbacks": [],
}


def _encode(name: str, value: SettingValue) -> SettingValue:
    if isinstance(value, BaseLM):
        return value.dump_state()
    if isinstance(value, Adapter):
        options = {field.name: getattr(value, field.name) for field in fields(value) if field.init and field.compare}
        changed = {field.name for field in fields(value) if field.init and options.get(field.name) != field.default}
        native: dict[str, Any] = {} if getattr(value, "native_reasoning", True) else {"native_response_types": []}
        falls_back = getattr(value, "falls_back", False)
        if falls_back != getattr(type(value), "falls_back", False):
            native["use_json_adapter_fallback"] = falls_back
        return {
            "class": type(value).__name__,
            **{key: options[key] for key in sorted(options.keys() & changed)},
            **native,
        }
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise InputError(f"The setting {name!r} is no data (saving the settings). Pass exclude_keys=[{name!r}].")


def _decode(name: str, value: SettingValue) -> SettingValue:
    if name == "lm" and value is not None:
        from sigwire.dspy.lm import LM

        return LM.load_state(value)
    if name == "adapter" and value is not None:
        from sigwire.dspy import adapters

        options = dict(value)
        return getattr(adapters, options.pop("class"))(**options)
    return value


settings = DspySettings()
load_settings = settings.load
let_block_if(lambda: settings.allow_tool_async_sync_conversion)
