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
    provider is treated as its own. ``thinking``: the family's thinking that is kept: "any", "signed": with a signature,
    "items": beside an item of reasoning, which holds it on the wire, or "none". ``thinking_as_text``: whether thinking that
    is not kept becomes text. ``last_reasoning``: whether an item of reasoning may end a turn. ``block_fields``: whether an
    opaque part without a type belongs to the part before it, and is left out with it. ``ids``: ``None`` accepts any id
    that is not empty. ``system``: "keep" system turns in place, "front": one turn, first, or "between": behind turns of
    the user. ``merge``: roles whose neighbouring turns become one. ``first_user``: the text of a user turn to put first if
    another role would be. ``blank_text``: whether a text may be white space. ``result_media``: "keep" in the result, or
    "user": in a user turn behind it. ``media``: the kinds of input that are kept ("image", "audio", "file"), others become
    a note; ``None`` keeps all, for the encoder to refuse. ``media_roles``: the roles of turns that may hold media.
    ``detail``: whether an image may have one. ``filenames``: the names of files that are kept: "all", "data": of files with
    data, "plain": of letters and digits, one for each document of the request (Bedrock), or "none". ``document_text``: the
    text of turns that hold documents only, if the provider requires one. ``model_family``: whose limits of media hold beside
    those of the provider ("claude").
    """

    family: str = ""
    untagged_thinking: bool = True
    thinking: Literal["any", "signed", "items", "none"] = "any"
    thinking_as_text: bool = False
    last_reasoning: bool = True
    block_fields: bool = False
    ids: CallIdRules | None = None
    system: Literal["keep", "front", "between"] = "keep"
    merge: frozenset[Role] = frozenset()
    first_user: str | None = None
    blank_text: bool = True
    result_media: Literal["keep", "user"] = "keep"
    media: frozenset[str] | None = None
    media_roles: frozenset[Role] = frozenset({"user"})
    detail: bool = True
    filenames: Literal["all", "data", "plain", "none"] = "all"
    document_text: str | None = None
    model_family: str = ""
