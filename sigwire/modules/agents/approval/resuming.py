"""``ResumableAgent``: continue a run that waits for approval, in this process or another.

The state and the decisions reach the agent by a context variable, so that a resumed run is a call like any other: blocking,
awaited, streamed, with callbacks. The states of inner agents reach them in the tool call around them in the same way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from sigwire.core.example import Prediction
from sigwire.effects.performing import current_frame
from sigwire.effects.steps import Effect, Steps
from sigwire.errors import ConfigurationError, StateError
from sigwire.modules.agents.approval import states
from sigwire.modules.agents.run import RunState
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.modules.agents.toolbox import Toolbox
from sigwire.modules.calling import called_steps
from sigwire.modules.module import StepsModule
from sigwire.modules.program_stream import AsyncProgramStream, ProgramStream
from sigwire.signatures.signature import SignatureClass

__all__ = ["ResumableAgent"]


class ResumableAgent(StepsModule):
    """An agent whose runs can wait for approval."""

    resumes: ClassVar[bool] = True
    secret: bytes | None = None
    signature: SignatureClass
    toolbox: Toolbox

    def resume(
        self,
        state: Mapping[str, Any],
        decisions: Mapping[str, object],
        *,
        claim: Callable[[str], object] | None = None,
    ) -> Any:
        """Continue a run from ``error.state`` of ``ApprovalNeeded``, blocking; return the result of the whole run.

        ``decisions`` has one for each id of ``error.pending``: ``"approve"``, ``"deny"``, ``{"deny": "why"}`` or
        ``{"edit": {arguments}}``. ``claim`` gets the id of the state, and returns True for its first use only; without it,
        a state that is resumed twice runs its calls twice. The agent must have the same signature and tools. Raises
        ``StateError`` for a state that does not fit or was claimed, ``InputError`` for decisions that are missing, unknown
        or invalid, and ``ApprovalNeeded`` if another call waits.

        >>> from sigwire.lm.fake import FakeLM
        >>> from sigwire.modules.agents.react import ReAct
        >>> from sigwire.core.tools.calls import ToolCall
        >>> from sigwire.core.tools.tool import Tool
        >>> from sigwire.journal.errors import ApprovalNeeded
        >>> def pay(cents: int) -> str:
        ...     return f"paid {cents}"
        >>> agent = ReAct("order -> answer", tools=[Tool(pay, approve=True)])
        >>> submit = ToolCall("b", "submit", {"answer": "Paid."})
        >>> agent.set_lm(FakeLM([ToolCall("a", "pay", {"cents": 500}), submit]))
        >>> try:
        ...     agent(order="1042")
        ... except ApprovalNeeded as error:
        ...     state, pending = error.state, error.pending
        >>> result = agent.resume(state, {pending[0].id: {"edit": {"cents": 400}}})
        >>> result.answer, result.steps[0].results[0].content
        ('Paid.', 'paid 400')
        """
        with _resuming([_Resumption(state, decisions, claim, self)]):
            return self()

    async def aresume(
        self,
        state: Mapping[str, Any],
        decisions: Mapping[str, object],
        *,
        claim: Callable[[str], object] | None = None,
    ) -> Any:
        """``resume``, awaited. ``claim`` may be async."""
        with _resuming([_Resumption(state, decisions, claim, self)]):
            return await self.acall()

    def resume_stream(
        self,
        state: Mapping[str, Any],
        decisions: Mapping[str, object],
        *,
        claim: Callable[[str], object] | None = None,
    ) -> ProgramStream[Any]:
        """``resume`` as ``stream``: the events from here on."""
        with _resuming([_Resumption(state, decisions, claim, self)]):
            return self.stream()

    def aresume_stream(
        self,
        state: Mapping[str, Any],
        decisions: Mapping[str, object],
        *,
        claim: Callable[[str], object] | None = None,
    ) -> AsyncProgramStream[Any]:
        """``resume_stream``, awaited."""
        with _resuming([_Resumption(state, decisions, claim, self)]):
            return self.astream()

    if TYPE_CHECKING:

        def _run(self, state: RunState, limit: int) -> Steps[Prediction]: ...

    def _keep_secret(self, secret: str | bytes | None) -> None:
        if secret is not None:
            self.secret = _SecretBytes(secret.encode() if isinstance(secret, str) else secret)

    def _resumed_steps(self) -> Steps[Prediction] | None:
        """Return the steps of the resumed run, ``None`` if this call begins a run."""
        resumption = next((each for each in _resumptions.get() if each.take(self)), None)
        return None if resumption is None else self._continue(resumption)

    def _continue(self, resumption: _Resumption) -> Steps[Prediction]:
        if current_frame() is not None:
            raise ConfigurationError(
                "A state of ApprovalNeeded is resumed without a journal (resuming). Runs of a journal continue with "
                "journal.resume(program, run, decisions)."
            )
        data = states.check_state(self, resumption.state, self.secret)
        verdicts, inner = states.own_decisions(self, data, resumption.decisions)
        run = states.load_run(self, data)
        run.gate.verdicts.update(verdicts)
        for id, decisions in inner.items():
            wrap = partial(_Inside, _Resumption(data["inner"][id], decisions))
            run.gate.inner[id] = wrap
        if resumption.claim is not None and not (yield from called_steps(resumption.claim, [data["id"]], {})):
            raise StateError("The state is claimed: its run was resumed before (resuming). Use the result of that run.")
        return (yield from self._run(run, int(data["max_iters"])))


class _SecretBytes(bytes):
    """A key whose repr is ``***``."""

    def __repr__(self) -> str:
        return "***"


class _Resumption:
    """A state with its decisions, for one call of one agent. Without ``agent``: of an inner agent, found by its signature."""

    def __init__(
        self,
        state: Mapping[str, Any],
        decisions: Mapping[str, object],
        claim: Callable[[str], object] | None = None,
        agent: ResumableAgent | None = None,
    ) -> None:
        self.state, self.decisions, self.claim, self._agent = state, decisions, claim, agent
        self._free = threading.Semaphore(1)

    def take(self, agent: ResumableAgent) -> bool:
        """Return True if the call of an agent is that of this state; once."""
        if self._agent is None:
            fits = self.state.get("signature") == states.signature_digest(agent)
        else:
            fits = agent is self._agent
        return fits and self._free.acquire(blocking=False)


_resumptions: ContextVar[tuple[_Resumption, ...]] = ContextVar("sigwire_resumptions", default=())


@contextmanager
def _resuming(resumptions: list[_Resumption]) -> Generator[None]:
    token = _resumptions.set(tuple(resumptions))
    try:
        yield
    finally:
        _resumptions.reset(token)


class _Inside:
    """The effect of a tool call in which an inner agent is resumed."""

    nests = True

    def __init__(self, resumption: _Resumption, effect: Effect[ToolRun]) -> None:
        self._resumption, self._effect = resumption, effect

    def run(self) -> ToolRun:
        with _resuming([self._resumption]):
            return self._effect.run()

    async def arun(self) -> ToolRun:
        with _resuming([self._resumption]):
            return await self._effect.arun()
