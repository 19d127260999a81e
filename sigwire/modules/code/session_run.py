"""``SessionRun``: a run of code in turns, with its conversation."""

from __future__ import annotations

from sigwire.core.messages import Message
from sigwire.modules.agents.run import ReActStep
from sigwire.modules.code.code_run import CodeReply, CodeRun
from sigwire.signatures.types.history import AnyTurn, History

__all__ = ["SessionRun"]

_LARGE_RESULT = 200  # characters
_REMOVED = "[Result removed to save space: {} characters]"


class SessionRun(CodeRun):
    """A run of code with its conversation."""

    history = History()
    described = ""

    def add_reply(self, reply: CodeReply) -> None:
        """Add the model's message."""
        if (message := reply.choice.message()).parts:
            self.history = self.history.append(message)

    def add_message(self, text: str) -> None:
        """Add a message to the model."""
        self.history = self.history.append(Message.user(text))

    def remove_old_results(self) -> bool:
        """Remove the older half of the large results; return False if there is none but the latest."""
        turns = list(self.history.messages)
        lengths = {
            at: length for at, turn in enumerate(turns[:-1]) if (length := _length_of_result(turn)) > _LARGE_RESULT
        }
        for at in list(lengths)[: (len(lengths) + 1) // 2]:
            turns[at] = Message.user(_REMOVED.format(lengths[at]))
        self.history = History(turns)
        return bool(lengths)

    def log(self) -> object:
        """Return the code of all turns with its results, for a prompt."""
        return "\n\n".join(_as_text(step) for step in self.steps if step.calls)


def _length_of_result(turn: AnyTurn) -> int:
    return len(turn.text) if isinstance(turn, Message) and turn.role == "user" else 0


def _as_text(step: ReActStep) -> str:
    return f"{(step.calls[0].arguments or {}).get('code')}\n-> {step.results[0].text}"
