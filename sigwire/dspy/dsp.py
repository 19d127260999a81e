"""DSPy's paths ``dspy.dsp.utils``: its settings, and a dict whose keys are attributes."""

from __future__ import annotations

from sigwire.dspy.paths import add_paths
from sigwire.dspy.settings import settings

__all__ = ["dotdict", "settings"]


class dotdict(dict[str, object]):  # noqa: N801
    """A dict whose keys are attributes, for answers of a ``forward`` of yours; a missing key raises ``AttributeError``.

    >>> dotdict(content=None, role="assistant").role
    'assistant'
    """

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'") from error

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]


add_paths(__name__, "utils utils.utils")
add_paths("sigwire.dspy.settings", "utils.settings", __name__)
