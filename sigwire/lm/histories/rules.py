"""The form of history that a wire accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sigwire.core.messages import Role
from sigwire.lm.histories.call_ids import CallIdRules

__all__ = ["HistoryRules"]


@dataclass(frozen=True, slots=True)
class HistoryRules:
    """The form of history that a wire accepts.

    ``family``: the provider family whose thinking and opaque items are kept. ``untagged_thinking``: whether thinking of no
    provider is kept. ``thinking_as_text``: whether thinking that is not kept becomes text. ``signed_thinking``: whether
    kept thinking needs a signature. ``ids``: ``None`` accepts any id
    that is not empty. ``system``: "keep" system turns in place, or "front": one turn, first. ``merge``: roles whose
    neighbouring turns become one. ``first_user``: the text of a user turn to put first if another role would be.
    ``result_media``: "keep" in the result, or "user": in a user turn behind it. ``media``: the kinds of input that are kept
    ("image", "audio", "file"), others become a note; ``None`` keeps all, for the encoder to refuse. ``assistant_media``:
    whether assistant turns may hold media.
    """

    family: str = ""
    untagged_thinking: bool = True
    thinking_as_text: bool = False
    signed_thinking: bool = False
    ids: CallIdRules | None = None
    system: Literal["keep", "front"] = "keep"
    merge: frozenset[Role] = frozenset()
    first_user: str | None = None
    result_media: Literal["keep", "user"] = "keep"
    media: frozenset[str] | None = None
    assistant_media: bool = False
