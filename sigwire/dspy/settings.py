"""DSPy's view of the settings: hints for names that only DSPy has, and ``send_stream``.

The values are those of ``sigwire.settings``; nothing is stored here but the stream of the current context.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sigwire.errors import ConfigurationError
from sigwire.settings import SettingsAccess
from sigwire.settings import configure as core_configure
from sigwire.settings import context as core_context
from sigwire.settings import settings as core_settings

__all__ = ["DspySettings", "configure", "context", "settings"]

_INSTEAD: Mapping[str, str] = {
    "allow_tool_async_sync_conversion": "Async tools can always be called blocking.",
    "async_max_workers": "num_threads limits batches.",
    "disable_history": "Modules keep no history unless max_history_size is set.",
    "send_stream": "streamify sets it for the program that it runs.",
    "usage_tracker": "Write with track_usage() as tracker.",
}
_stream: ContextVar[Any] = ContextVar("sigwire_dspy_send_stream", default=None)


def configure(**values: Any) -> None:
    """Change defaults for the whole process. Raises ``ConfigurationError`` for an unknown key or an unfit value.

    >>> configure(disable_history=True)
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: There is no setting 'disable_history'. Modules keep no history unless ...
    """
    _check_names(values)
    core_configure(**values)


@contextmanager
def context(**values: Any) -> Generator[None]:
    """Change settings inside the ``with`` block; ``send_stream`` is the stream that a model may send chunks to."""
    stream = values.pop("send_stream", _stream.get())
    _check_names(values)
    with core_context(**values):
        before = _stream.get()
        _stream.set(stream)
        try:
            yield
        finally:
            _stream.set(before)


def _check_names(values: Mapping[str, Any]) -> None:
    if name := next((name for name in values if name in _INSTEAD), None):
        raise ConfigurationError(
            f"There is no setting {name!r}. {_INSTEAD[name]} The settings are {', '.join(sorted(core_settings))}."
        )


class DspySettings(SettingsAccess):
    """The object ``dspy.settings``: the settings in effect, and ``send_stream`` inside a program of ``streamify``."""

    __slots__ = ()

    configure = staticmethod(configure)
    context = staticmethod(context)

    def __getattr__(self, name: str) -> Any:
        return _stream.get() if name == "send_stream" else super().__getattr__(name)

    def __getitem__(self, name: str) -> Any:
        return _stream.get() if name == "send_stream" else super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a key, or ``default`` if there is no such key."""
        return _stream.get() if name == "send_stream" else super().get(name, default)


settings = DspySettings()
