"""The JSON of a run that waits for approval: dump, sign, check, load. No code, no class path and no key is in it."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast
from uuid import uuid4

from sigwire.core.json import JsonObject, Value, dumps, loads
from sigwire.core.narrow import is_mapping
from sigwire.core.report import CallReport
from sigwire.core.response import Attempt, Choice
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import InputError, StateError
from sigwire.journal.errors import ApprovalNeeded
from sigwire.journal.packing import digest_of
from sigwire.journal.verdicts import CallVerdict, read_checked_verdict
from sigwire.lm.policy.money.opened import open_budgets
from sigwire.modules.agents.approval.asking import checked_verdict
from sigwire.modules.agents.approval.gate import CallGate
from sigwire.modules.agents.approval.limits import CallCounts
from sigwire.modules.agents.large_results.lookup import LargeResults
from sigwire.modules.agents.run import ReActStep
from sigwire.modules.agents.run_state import RunState
from sigwire.modules.agents.running_call import current_call
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.signatures.signature import SignatureClass
from sigwire.signatures.types.history import History

if TYPE_CHECKING:
    from sigwire.modules.agents.toolbox import Toolbox

__all__ = ["StateOwner", "check_state", "dump_run", "load_run", "own_decisions", "signature_digest", "signed"]

_FORMAT = 1
_KEYS = {
    "calls", "choice", "history", "id", "inner", "inputs", "large", "limits", "max_iters", "pending", "results",
    "signature", "steps", "tools", "turn", "verdicts",
}  # fmt: skip


class StateOwner(Protocol):
    """An agent, as its states need it. ``resumes``: its runs continue from a state, without a journal."""

    resumes: ClassVar[bool]
    secret: bytes | None
    signature: SignatureClass
    toolbox: Toolbox


def signature_digest(agent: StateOwner) -> str:
    """Return the digest of the signature of an agent."""
    return digest_of(str(agent.signature))


def dump_run(agent: StateOwner, state: RunState, limit: int, error: ApprovalNeeded) -> JsonObject:
    """Return a suspended run as JSON. Raises ``ValueError`` if a value of the run has no JSON form."""
    open_ids = {call.id for call in state.open_calls}
    budgets = open_budgets()
    data: dict[str, Any] = {
        "format": _FORMAT,
        "id": uuid4().hex,
        "signature": signature_digest(agent),
        "tools": {name: digest_of(tool.spec) for name, tool in agent.toolbox.tools.items()},
        "inputs": agent.signature.spec.dump(state.inputs),
        "history": agent.signature.spec.plain_history(state.history).to_json(),
        "steps": _all_json(state.steps),
        "reports": _all_json(list(_open_reports(state.new_reports, _decided_calls(error)))),
        "choice": state.choice.to_json(),
        "calls": _all_json(state.open_calls),
        "results": _all_json(state.tool_runs),
        "large": state.large.texts,
        "size": state.room.counted,
        "verdicts": {id: each.to_json() for id, each in state.gate.verdicts.items() if id in open_ids},
        "pending": [asdict(call) for call in error.pending],
        "schemas": {name: agent.toolbox.tools[name].parameters for name in _own_names(error)},
        "inner": dict(error.inner),
        "place": state.place,
        "decided": {place: done.to_json() for place, done in current_call().decided.items()},
        "turn": state.turn,
        "max_iters": limit,
        "limits": state.gate.counts.to_json(),
        "budget_left": asdict(cast(Any, budgets[-1]).left) if budgets else None,
    }
    plain: JsonObject = loads(dumps(data))
    return plain


def _own_names(error: ApprovalNeeded) -> set[str]:
    """Return the names of the tools that wait, without those of inner agents."""
    return {call.name for call in error.pending if call.id.partition("/")[0] not in error.inner}


def _all_json(values: Sequence[Value]) -> list[JsonObject]:
    return [value.to_json() for value in values]


def _open_reports(reports: Iterable[CallReport], decided: Sequence[object]) -> Iterator[CallReport]:
    """Yield the reports of a turn that no tool run and no state has, as those have which an inner agent waits with.

    ``decided``: the inner reports of results that the resumed calls get again.
    """
    for report in reports:
        is_around = report.error == _WAITS and not _has_state(report)
        if inner := tuple(_open_reports(report.inner, decided)) if is_around else ():
            yield replace(report, inner=inner)
        elif report.error != _WAITS and report.kind == "module" and report.inner not in decided:
            yield report


def _decided_calls(error: ApprovalNeeded) -> Sequence[tuple[CallReport, ...]]:
    known: list[Any] = [done for state in error.inner.values() for done in cast(Any, state).get("decided", {}).values()]
    return [inner for done in known if "run" in done and (inner := CallReport.from_json(done["run"]).inner)]


def _has_state(report: CallReport) -> bool:
    """Return True if a report is of an agent that waits, and not of a program or a tool around it."""
    return report.kind == "module" and not any(each.kind == "module" and each.error == _WAITS for each in report.inner)


_WAITS = ApprovalNeeded.__name__


def _reports_of(data: Mapping[str, Any]) -> Iterator[CallReport]:
    """Yield the reports of a state. One of an earlier version has a list of attempts in their place."""
    yield from map(CallReport.from_json, data.get("reports", ()))
    if attempts := data.get("attempts"):
        yield CallReport(name="Predict", path="react", own=tuple(map(Attempt.from_json, attempts)))


def signed(state: JsonObject, secret: bytes | None) -> JsonObject:
    """Return a state with its signature; without a secret, the state."""
    return state if secret is None else {**state, "mac": _mac(state, secret)}


def _is_signed(state: Mapping[Any, object], secret: bytes) -> bool:
    given = str(state.get("mac", "")).encode("utf-8", "surrogatepass")
    try:
        return all(isinstance(name, str) for name in state) and hmac.compare_digest(given, _mac(state, secret).encode())
    except (TypeError, ValueError, RecursionError):  # a value that no state has
        return False


def _mac(state: Mapping[str, object], secret: bytes) -> str:
    unsigned = {name: value for name, value in state.items() if name != "mac"}
    return hmac.new(secret, json.dumps(unsigned, sort_keys=True).encode(), "sha256").hexdigest()


def check_state(agent: StateOwner, state: object, secret: bytes | None) -> Mapping[str, Any]:
    """Return a state that the agent can continue. Raises ``StateError`` for any other value."""
    if not is_mapping(state) or state.get("format") != _FORMAT:
        raise _unfit("this is no state of ApprovalNeeded of this version", "Pass error.state")
    if secret is not None and not _is_signed(state, secret):
        raise _unfit("the secret of this agent did not sign it", "Pass the state unchanged, and the same secret=")
    if state.get("run"):
        raise _unfit("the run has a journal", "Use journal.resume(program, run, decisions)")
    if "inputs" not in state:
        why = state.get("problem", "this kind of agent runs code, whose state is not kept")
        raise _unfit(str(why), "Run the agent with a Journal, and resume with journal.resume")
    if lacking := sorted(_KEYS - state.keys()):
        raise _unfit(f"its state lacks {', '.join(lacking)}", "Pass error.state unchanged")
    if state["signature"] != signature_digest(agent):
        raise _unfit("the signature of the agent is another", "Use the agent that was suspended")
    for name in ("tools", "inner", "verdicts", "large", "limits"):
        if not is_mapping(state[name]):
            raise _unfit(f"its {name} are no object", "Pass error.state unchanged")
    for name in ("turn", "max_iters"):
        if type(state[name]) is not int or not 0 <= state[name] <= 1_000_000:
            raise _unfit(f"its {name} is no number of turns", "Pass error.state unchanged")
    _check_tools(agent, state["tools"])
    _check_pending(state)
    return state


def _check_pending(state: Mapping[str, Any]) -> None:
    """Refuse a state whose pending calls, which a person saw, are not those that would run."""
    try:
        run = _calls_by_id(state)
        for shown in state["pending"]:
            if run.get(str(shown["id"])) != (shown["name"], shown["arguments"]):
                raise _unfit(
                    f"the pending call {shown['id']!r:.60} is not one of its calls", "Pass error.state unchanged"
                )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise _unfit(f"its calls cannot be read: {error!r:.200}", "Pass error.state unchanged") from error


def _calls_by_id(state: Mapping[str, Any]) -> dict[str, tuple[object, object]]:
    """Return name and arguments of the calls that run, by the id of their decision; those of inner agents as well."""
    calls = [ToolCall.from_json(call) for call in state["calls"]]
    found: dict[str, tuple[object, object]] = {call.id: (call.name, call.arguments) for call in calls}
    for id, inner in state["inner"].items():
        found.update({f"{id}/{own}": call for own, call in _calls_by_id(inner).items()})
    return found


def _check_tools(agent: StateOwner, digests: Mapping[str, object]) -> None:
    for name, digest in digests.items():
        tool = agent.toolbox.tools.get(name)
        if tool is None or digest_of(tool.spec) != digest:
            change = "is gone" if tool is None else "has another description or schema"
            raise _unfit(f"the tool {name!r} {change}", "Use the tools of the agent that was suspended")


def _unfit(problem: str, advice: str) -> StateError:
    return StateError(f"The run cannot be resumed: {problem} (resuming). {advice}.")


def own_decisions(
    agent: StateOwner, state: Mapping[str, Any], decisions: Mapping[str, object]
) -> tuple[dict[str, CallVerdict], dict[str, dict[str, object]]]:
    """Return the verdicts about the agent's own calls, and the decisions about those of inner agents by call.

    Raises ``InputError`` unless each pending call, at any depth, has one valid decision.
    """
    pending = {str(call["id"]): str(call["name"]) for call in state["pending"]}
    if not is_mapping(cast(object, decisions)):
        raise InputError(f"decisions are a dict of call ids, not {type(decisions).__name__} (resuming).")
    if wrong := sorted(map(str, pending.keys() ^ decisions.keys())):
        raise InputError(
            f"The run needs one decision for each pending call ({', '.join(sorted(pending)) or 'none'}); missing or unknown: "
            f"{', '.join(wrong)} (resuming)."
        )
    own, inner = _split(state, decisions)
    verdicts = {id: checked_verdict(id, agent.toolbox.tools[pending[id]], decision) for id, decision in own.items()}
    for call, of_call in inner.items():
        _check_inner(state["inner"][call], of_call, call)
    return verdicts, inner


def _split(
    state: Mapping[str, Any], decisions: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    """Return the decisions about the calls of an agent, and those about calls of agents inside its calls, by call."""
    own: dict[str, object] = {}
    inner: dict[str, dict[str, object]] = {id: {} for id in state["inner"]}
    for id, decision in decisions.items():
        call, _, rest = id.partition("/")
        if rest and call in inner:
            inner[call][rest] = decision
        else:
            own[id] = decision
    return own, inner


def _check_inner(state: Mapping[str, Any], decisions: Mapping[str, object], path: str) -> None:
    """Check the decisions about the calls of an inner agent, which exists only inside a tool call, by its state."""
    names = {str(call["id"]): str(call["name"]) for call in state["pending"]}
    own, inner = _split(state, decisions)
    for id, decision in own.items():
        read_checked_verdict(f"{path}/{id}", decision, names[id], state.get("schemas", {}).get(names[id]))
    for call, of_call in inner.items():
        _check_inner(state["inner"][call], of_call, f"{path}/{call}")


def _size(data: Any) -> tuple[int, int] | None:
    """Return the size of a conversation and the number of its turns. States of earlier versions have none."""
    if data is None:
        return None
    tokens, turns = data
    if type(tokens) is not int or type(turns) is not int:
        raise TypeError("a size is two numbers")
    return tokens, turns


def load_run(agent: StateOwner, data: Mapping[str, Any]) -> RunState:
    """Return the run of a state."""
    try:
        inputs = agent.signature.spec.load(data["inputs"])
        history = agent.signature.spec.typed_history(History.from_json(data["history"]))
        gate = CallGate(agent.toolbox.rules, CallCounts(data["limits"]))
        state = RunState(history, inputs, gate, LargeResults(agent.toolbox))
        state.restore([ReActStep.from_json(step) for step in data["steps"]], _reports_of(data))
        state.choice = Choice.from_json(data["choice"])
        state.open_calls = tuple(ToolCall.from_json(call) for call in data["calls"])
        state.tool_runs = [ToolRun.from_json(done) for done in data["results"]]
        state.large.restore(data["large"])
        state.size = _size(data.get("size"))
        state.turn, state.place, state.is_resumed = data["turn"], str(data.get("place", "")), True
        state.gate.verdicts = {id: CallVerdict.from_json(each) for id, each in data["verdicts"].items()}
        state.gate.kept = {done.call.id: done for done in state.tool_runs}
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise _unfit(f"its state cannot be read: {error!r:.200}", "Pass error.state unchanged") from error
    return state
