"""Tool prompts: the offered tools of a request with the texts that depend on them. Written once for equal tools.

``ToolPromptWriter`` belongs to one plan. Its cache is bounded and replaced as a whole, because threads share a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from sigwire.adapters.options import AdapterOptions, ToolsMode, check_functions_only
from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.text_tools.render import instructions
from sigwire.adapters.text_tools.styles import CallStyle
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.narrow import is_mapping
from sigwire.core.request import MemoTuple
from sigwire.core.tools.calls import WebSearch
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.tool import Tool, are_same_tools, as_tool
from sigwire.errors import InputError

if TYPE_CHECKING:
    from sigwire.adapters.text_tools import ToolCatalog

__all__ = ["ANSWER_PLAINLY", "ToolPrompt", "ToolPromptWriter"]

ANSWER_PLAINLY = "Reply in plain text."
_CALLS_FIRST = "Write the output fields only when you need no more tool calls."
_CALL_OR_REPLY = "Call the tools you need. If no tool fits, say so in plain text."
_MAX_PROMPTS = 8  # predictors of one signature share a plan, and each may have its own tools
_ToolLike: TypeAlias = "Tool | Callable[..., Any]"


@dataclass(frozen=True, slots=True)
class ToolPrompt:
    """The offered tools of a request: as given, by name, as specs (native tools only), and the texts about them."""

    given: tuple[object, ...]
    tools: tuple[Tool, ...]
    by_name: Mapping[str, Tool]
    catalog: ToolCatalog | None
    specs: tuple[JsonObject, ...]
    reminder: str
    system_messages: dict[str, Message]
    """The system message by its note about demos."""


class ToolPromptWriter:
    """Writes and caches the tool prompts of one plan. ``empty`` is the prompt without tools."""

    def __init__(
        self,
        layout: Layout,
        options: AdapterOptions,
        style: CallStyle,
        tools_mode: ToolsMode | None,
        task: str,
        calls_name: str | None,
    ) -> None:
        self._layout, self._options, self._style = layout, options, style
        self._tools_mode, self._task, self._calls_name = tools_mode, task, calls_name
        self._prompts: tuple[ToolPrompt, ...] = ()
        self.empty = self._write((), ())

    def prompt_of(self, value: object) -> ToolPrompt:
        """Return the prompt for the value of a tools field. Raises ``InputError`` if two tools have one name."""
        if not value:
            return self.empty
        for prompt in self._prompts:  # fast path: the tuple of an earlier call
            if value is prompt.given:
                return prompt
        several = (
            value.values()
            if is_mapping(value)
            else (value,)
            if callable(value) or isinstance(value, WebSearch)
            else value
        )
        given = tuple(cast("Iterable[_ToolLike]", several))
        for prompt in self._prompts:
            if are_same_tools(given, prompt.given):
                return prompt
        prompt = self._write(given, tuple(map(as_tool, given)))
        self._prompts = (prompt, *self._prompts[: _MAX_PROMPTS - 1])
        return prompt

    def find(self, tools: tuple[Tool, ...]) -> ToolPrompt | None:
        """Return the cached prompt of these tools."""
        return next((prompt for prompt in self._prompts if are_same_tools(tools, prompt.tools)), None)

    def catalog_of(self, tools: tuple[Tool, ...]) -> ToolCatalog:
        """Return the tools in the form that readers of text calls need."""
        prompt = self.find(tools)
        return self._write_catalog(tools) if prompt is None or prompt.catalog is None else prompt.catalog

    def system_message(self, prompt: ToolPrompt, note: str = "") -> Message:
        """Return the system message, with a note about the demos."""
        if note not in prompt.system_messages:
            text = self._system_text([tool.spec for tool in prompt.tools], note)
            prompt.system_messages[note] = Message.system(text)
        return prompt.system_messages[note]

    def reminder(self, prompt: ToolPrompt, choice: ToolChoice | None) -> str:
        """Return the last line of a request. It requires a call if the model takes no ``tool_choice``."""
        if choice is None or self._tools_mode != "text" or choice.mode != "required" or not prompt.tools:
            return prompt.reminder
        return f"You must call {' or '.join(choice.allowed) or 'a tool'} now."

    def _write(self, given: tuple[object, ...], tools: tuple[Tool, ...]) -> ToolPrompt:
        by_name = {tool.name: tool for tool in tools}
        if len(by_name) < len(tools):
            names = [tool.name for tool in tools]
            twice = min(name for name in names if names.count(name) > 1)
            raise InputError(
                f"Two tools are called {twice!r}. Name them: {{'one': f, 'other': g}}, or Tool(f, name=...)."
            )
        specs = tuple(tool.spec for tool in tools)
        catalog = self._write_catalog(tools) if tools else None
        native = MemoTuple(specs) if self._tools_mode == "native" else ()
        system_messages = {"": Message.system(self._system_text(specs))}
        return ToolPrompt(given, tools, by_name, catalog, native, self._write_reminder(bool(tools)), system_messages)

    def _write_catalog(self, tools: tuple[Tool, ...]) -> ToolCatalog:
        from sigwire.adapters.text_tools import ToolCatalog

        schemas = {tool.name: tool.parameters for tool in tools}
        # The outputs of an agent are the parameters of its tool ``submit``.
        submits = [schema.get("properties") for name, schema in schemas.items() if name.startswith("submit")]
        fields = self._layout.field_tags([name for outputs in submits if is_mapping(outputs) for name in outputs])
        return ToolCatalog.of(schemas, strict=self._options.strict, output=self._calls_name or "", fields=fields)

    def _write_reminder(self, has_tools: bool) -> str:
        reminder = self._layout.format_reminder() if self._layout.outputs else ""
        if self._layout.unprompted:
            return ""
        if not has_tools:
            return reminder or ANSWER_PLAINLY
        return f"Call tools if needed; otherwise {reminder[0].lower()}{reminder[1:]}" if reminder else _CALL_OR_REPLY

    def _system_text(self, specs: Sequence[JsonObject], note: str = "") -> str:
        parts = [self._layout.format_instructions()]
        if specs and self._tools_mode == "text":
            check_functions_only(specs)
            options = self._options
            parts.append(instructions(specs, options.tool_schemas, self._style, alone=options.calls_alone is True))
        if specs and self._layout.outputs:
            parts.append(_CALLS_FIRST)
        task = self._task if self._layout.unprompted else f"Task:\n{self._task}"
        return "\n\n".join(part for part in [*parts, note, task] if part)
