"""The start of a run: the earlier conversation with a result for every call, the task, and the search of many tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sigwire.core.tools.tool import Tool
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError
from sigwire.modules.agents import conversation
from sigwire.modules.agents.approval.gate import CallGate
from sigwire.modules.agents.large_results.lookup import LargeResults
from sigwire.modules.agents.react_signatures import AgentSignatures
from sigwire.modules.agents.run_state import OffersTools, RunState
from sigwire.modules.agents.toolbox import Toolbox
from sigwire.modules.ask import resolve_lm
from sigwire.settings import current
from sigwire.signatures.types.history import Turn

if TYPE_CHECKING:
    from sigwire.core.example import Prediction
    from sigwire.lm.base import LanguageModel

__all__ = ["FIRST_TOKENS", "FIRST_TOOLS", "asked_with_tools", "check_search", "set_up", "start_run"]

FIRST_TOOLS, FIRST_TOKENS = 20, 6_000  # that fit the inputs best: tools, and tokens of their schemas
_MANY = 30  # tools: more are searched
_SHARE = 0.1  # of the window of the model, for schemas
_SMALLEST, _SMALL = 400, 3_000  # tokens of schemas that fit every window, and every window of a listed model


def start_run(
    toolbox: Toolbox,
    signatures: AgentSignatures,
    inputs: dict[str, object],
    before: object,
    read: Callable[..., dict[str, object]],
) -> RunState:
    """Return a run at its start. ``before``: the history of an earlier one. ``read`` checks the inputs.

    Without inputs the run continues the task of the earlier one.
    """
    history = conversation.earlier_history(before, signatures.task.spec)
    if not inputs and len(history):
        inputs = conversation.latest_inputs(history, [field.name for field in signatures.task.spec.inputs])
    else:
        inputs = read(dict(inputs), check_types=current().warn_on_type_mismatch)
        history = history.append(Turn(inputs))
    return RunState(history, inputs, CallGate(toolbox.rules), LargeResults(toolbox))


def check_search(option: Any, tools: Iterable[Tool], where: str) -> Any:
    """Return an option ``tool_search``. Raises ``ConfigurationError`` for another value, and if a tool needs what is off."""
    is_known = (
        isinstance(option, bool) or option == "auto" or callable(option) or (isinstance(option, int) and option > 0)
    )
    if not is_known:
        raise ConfigurationError(
            f"tool_search is {option!r:.60} ({where}). Use 'auto', True, False, a number of tools above 0, or an Embedder."
        )
    if option is False and (deferred := next((tool.name for tool in tools if tool.defer), None)):
        raise ConfigurationError(
            f"The tool {deferred!r} has defer=True, and tool_search=False never offers it ({where}). Remove one of the two."
        )
    return option


def set_up(agent: Any, state: RunState) -> None:
    """Set what a run needs of its agent: the predictor of its turns, and the search of many tools."""
    state.asker, state.search = agent.react, tool_search(agent, state)


def tool_search(agent: Any, state: RunState) -> OffersTools | None:
    """Return the search of a run; ``None`` if all tools of the agent are sent."""
    option, tools, room = agent.tool_search, state.large.toolbox.tools, None
    if option is False:
        return None
    if not any(tool.defer for tool in tools.values()):
        if option == "auto":
            room = _room(agent)
            if len(tools) <= _MANY and room is None:
                return None
        elif len(tools) <= (option if type(option) is int else FIRST_TOOLS):
            return None
    from sigwire.modules.agents.tool_search import search_for  # few agents have many tools

    model = _model_of(agent) if agent.takes_tools else None
    count = option if type(option) is int else FIRST_TOOLS
    most = room if type(option) is int else min(room or FIRST_TOKENS, FIRST_TOKENS)
    return search_for(state, option, agent, count, most, model)


def _room(agent: Any) -> int | None:
    """Return the tokens for the schemas that are sent first; ``None`` if all need no more than their share of the window."""
    size = agent.toolbox.schema_size
    if size <= _SMALLEST:
        return None
    model = _model_of(agent)
    window = model.capabilities.context_window
    if window is None and size > _SMALL:
        from sigwire.lm.preview.limits import input_limit  # reads tables: only for large schemas

        limit = input_limit(model.model, model.capabilities)
        window = limit and limit.tokens
    return None if window is None or size <= _SHARE * window else int(_SHARE * window)


def _model_of(agent: Any) -> LanguageModel:
    return resolve_lm(agent.react.lm, type(agent).__name__)


def asked_with_tools(state: RunState, ask: Callable[[], Steps[Prediction]]) -> Steps[Prediction]:
    """Ask with the tools of a turn: all of the agent, or ``state.offered``, those that the search of the run offers."""
    return ask() if state.search is None else state.search.ask(ask)
