"""``inspect_history``: the last requests of the model in the settings, for a person at a terminal."""

from __future__ import annotations

from typing import TextIO

from sigwire.errors import ConfigurationError
from sigwire.modules.ask import resolve_lm
from sigwire.settings import current

__all__ = ["inspect_history"]


def inspect_history(n: int = 1, file: TextIO | None = None) -> None:
    """Print what the configured model was asked last and what it answered: ``n`` calls, to the terminal or to ``file``.

    Other models and modules have a method of the same name. Raises ``LMNotConfigured`` without a model, and
    ``ConfigurationError`` where the model keeps no history.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.settings import context
    >>> with context(lm=FakeLM(["Hello!"])):
    ...     _ = current().lm("Hi")
    ...     inspect_history()
    <BLANKLINE>
    ...Hi...Hello!...
    """
    lm = resolve_lm(current().lm, "inspect_history")
    show = getattr(lm, "inspect_history", None)
    if show is None:
        raise ConfigurationError(
            f"The model {lm.model!r} keeps no history (inspect_history). Subclass BaseLM, or set max_history_size and ask "
            "the module: module.inspect_history()."
        )
    show(n, file)
