"""The four adapters with DSPy's options, as subclasses of the core's.

``use_native_function_calling`` is another name for ``native_tools``. ``use_json_adapter_fallback`` and
``native_response_types`` have no effect, and warn where they ask for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from typing import Any

from sigwire.adapters import base, chat, json, two_step, xml
from sigwire.errors import warn_user

__all__ = ["Adapter", "ChatAdapter", "JSONAdapter", "TwoStepAdapter", "XMLAdapter"]

_NO_FALLBACK = (
    "use_json_adapter_fallback=True has no effect: one call is one request. An answer that is a JSON object is read as it "
    "stands; to ask again after an answer that cannot be read, use Predict(..., max_reasks=1)."
)
_NO_NATIVE_TYPES = (
    "native_response_types has no effect: an output of type Reasoning is the model's own reasoning wherever the model's "
    "capabilities have it."
)


@dataclass(frozen=True, kw_only=True)
class Adapter(base.Adapter):
    """Base of the adapters; a subclass gives the layout of fields.

    >>> ChatAdapter(use_native_function_calling=False).native_tools
    False
    """

    use_native_function_calling: InitVar[bool | None] = None
    use_json_adapter_fallback: InitVar[bool | None] = None
    native_response_types: InitVar[Sequence[Any] | None] = None

    def __post_init__(
        self,
        use_native_function_calling: bool | None,
        use_json_adapter_fallback: bool | None,
        native_response_types: Sequence[Any] | None,
    ) -> None:
        if use_native_function_calling is not None:
            object.__setattr__(self, "native_tools", use_native_function_calling)
        super().__post_init__()
        if use_json_adapter_fallback:
            warn_user(_NO_FALLBACK)
        if native_response_types:
            warn_user(_NO_NATIVE_TYPES)


@dataclass(frozen=True)
class ChatAdapter(Adapter, chat.ChatAdapter):
    """``sigwire.ChatAdapter`` with DSPy's options."""


@dataclass(frozen=True)
class JSONAdapter(Adapter, json.JSONAdapter):
    """``sigwire.JSONAdapter`` with DSPy's options."""


@dataclass(frozen=True)
class XMLAdapter(Adapter, xml.XMLAdapter):
    """``sigwire.XMLAdapter`` with DSPy's options."""


@dataclass(frozen=True)
class TwoStepAdapter(Adapter, two_step.TwoStepAdapter):  # type: ignore[misc]  # __post_init__ takes the options above
    """``sigwire.TwoStepAdapter`` with DSPy's options."""
