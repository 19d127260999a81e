"""The provider table: what a model string such as ``offline/lexical`` means.

The text before the first slash names a row, the rest is the row's own name for the model. A row says what its models can do and
where the code that answers lives; that code is imported when a model of the row is first made.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

from sigwire.core.capabilities import Capabilities
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import ConfigurationError

__all__ = ["PROVIDERS", "Backend", "Provider", "find_provider"]


class Backend(Protocol):
    """What answers the requests for one model. It must not block for long in ``answer`` where it has no ``aanswer``."""

    def answer(self, request: Request) -> Response: ...

    async def aanswer(self, request: Request) -> Response: ...


@dataclass(frozen=True, slots=True)
class Provider:
    """One row: a prefix, where its backend is made (``module:function``, given the model's name), and what models can do.

    ``models`` maps the names the row serves to their capabilities.
    """

    prefix: str
    backend: str
    models: Mapping[str, Capabilities] = field(default_factory=lambda: dict[str, Capabilities]())

    def connect(self, name: str) -> Backend:
        """The backend for a model of this row."""
        module, _, function = self.backend.partition(":")
        return cast(Backend, getattr(importlib.import_module(module), function)(name))


_ROWS = (
    Provider(
        prefix="offline",
        backend="sigwire.lm.offline:connect",
        models={
            "lexical": Capabilities(
                native_tools=True,
                parallel_tool_calls=True,
                tool_choice=True,
                json_schema=True,
                json_object=True,
                tools_with_json_schema=True,
            )
        },
    ),
)

PROVIDERS: Mapping[str, Provider] = {row.prefix: row for row in _ROWS}


def find_provider(model: str) -> tuple[Provider, str]:
    """The row and the row's own model name for a model string.

    Raises ``ConfigurationError`` that lists what is known.

    >>> row, name = find_provider("offline/lexical")
    >>> row.prefix, name
    ('offline', 'lexical')
    """
    prefix, slash, name = model.partition("/")
    row = PROVIDERS.get(prefix)
    if row is None or not slash:
        raise ConfigurationError(
            f"No provider for the model {model!r} (making an LM). Write provider/model with one of the providers "
            f"{', '.join(sorted(PROVIDERS))}, for example {_examples()[0]!r}; for your own client subclass BaseLM."
        )
    if name not in row.models:
        raise ConfigurationError(
            f"{prefix} has no model {name!r} (making an LM from {model!r}). Use one of {', '.join(_examples(row))}."
        )
    return row, name


def _examples(*rows: Provider) -> list[str]:
    return [f"{row.prefix}/{name}" for row in rows or PROVIDERS.values() for name in row.models]
