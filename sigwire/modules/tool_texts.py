"""Texts of tools as learned state of a predictor: the model reads them in place of the texts of the user's tools.

    predict.tool_texts = {"search": ToolText(desc="Search the web.", args={"query": "Three words."})}

The user's ``Tool`` stays as it is, so that two predictors may describe one tool differently. Types, required arguments,
defaults and the function cannot be changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sigwire.core.json import Value

__all__ = ["ToolText"]


@dataclass(frozen=True, slots=True)
class ToolText(Value):
    """Texts that replace those of one tool: its description, descriptions of arguments, its name for the model.

    ``None``, and an argument that ``args`` lacks, keep the text of the tool. ``alias`` is the name that the model reads and
    calls; results, histories and demos keep the true name.

    >>> ToolText.from_json({"desc": "Search.", "args": {"query": "Three words."}}).args["query"]
    'Three words.'
    """

    desc: str | None = None
    args: Mapping[str, str] = field(default_factory=dict[str, str])
    alias: str | None = None
