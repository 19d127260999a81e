"""The hosts of decision endpoints, as data: how each writes questions and input, and its limits.

OPENAI       OpenAI's ``/decisions``: a list of named questions over items of a conversation
SYSTEM_ONE   ``/v1/systemone`` of open hosts: questions by name over a state, which is text; TYPESAFE is TypeSafe's
GEMINI       the Gemini API's ``/v1/decisions``: questions by id over blocks of text, images, sound and documents
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sigwire.core.evidence import EvidenceKind
from sigwire.core.json import JsonValue
from sigwire.core.tools.names import NameRules
from sigwire.errors import LMUnsupportedModelError
from sigwire.lm.codecs.shared.errors import MODEL_HINT, OPENAI_ERRORS, ErrorBody, ErrorRule, read_error_body
from sigwire.lm.codecs.shared.google_errors import GOOGLE_ERRORS, read_google_error
from sigwire.lm.codecs.shared.history import HistoryRules
from sigwire.lm.codecs.shared.interface import WireProfile
from sigwire.lm.codecs.shared.options import Option, Place

__all__ = ["GEMINI", "OPENAI", "SYSTEM_ONE", "TYPESAFE", "DecisionsProfile"]

_HISTORY = HistoryRules(thinking="none", detail=True, media_roles=frozenset({"user"}))


@dataclass(frozen=True, kw_only=True, eq=False)  # compared by identity: it is part of the key of a cache
class DecisionsProfile(WireProfile):
    """The differences of one host. The defaults are OpenAI's.

    ``form``: how questions are listed and answered: "listed" with their names, or "named": by name in an object. ``input``:
    "items" of a conversation, one "text", or "blocks". ``kinds``: the host's words for kinds. ``ids``: questions are called by
    their number (``q0``), where names may not hold every path. ``typed_bools``: a choice may have true and false as values.
    ``bool_criteria``: the names of the descriptions of ``True`` and ``False``, ``()`` if a described bool is sent as a choice.
    ``undescribed``: the description of a value without one. ``most_questions``, ``most_choices``, ``most_levels``: limits of
    the host. ``options``, ``errors``: its rows; ``read_error`` reads its error replies. ``bills_output``: whether output tokens
    cost money, if a price table has a price for them. ``plain_labels``: whether values need a text without blanks around it.
    """

    family: str = "openai"
    path: str = "/decisions"
    names: NameRules = NameRules(allowed="a-zA-Z0-9_-", max_length=64)
    history_rules: HistoryRules = _HISTORY
    media: frozenset[str] = frozenset({"image"})
    form: Literal["listed", "named"] = "listed"
    input: Literal["items", "text", "blocks"] = "items"
    kinds: Mapping[EvidenceKind, str] = field(
        default_factory=lambda: {"bool": "predicate", "choice": "choice", "score": "score"}
    )
    ids: bool = False
    typed_bools: bool = True
    bool_criteria: tuple[str, ...] = ()
    undescribed: str | None = None
    most_questions: int | None = 400
    most_choices: int = 255
    most_levels: int = 10
    options: Mapping[str, Option | None] = field(
        default_factory=lambda: {"user": Place("safety_identifier"), "safety_identifier": Place("safety_identifier")}
    )
    errors: tuple[ErrorRule, ...] = OPENAI_ERRORS
    read_error: Callable[[int, Mapping[str, str], bytes | str | JsonValue], ErrorBody] = read_error_body
    takes_cache_key: bool = True
    bills_output: bool = False
    plain_labels: bool = False


OPENAI = DecisionsProfile()

SYSTEM_ONE = DecisionsProfile(
    family="system-one",
    path="/v1/systemone",
    media=frozenset(),
    form="named",
    input="text",
    kinds={"bool": "noul", "choice": "choice", "score": "score"},
    typed_bools=False,
    bool_criteria=("true", "false"),
    most_questions=None,
    bills_output=True,
    options={"temperature": Place("temperature")},
    errors=(ErrorRule(LMUnsupportedModelError, frozenset({400, 422}), texts=("unknown model",), hint=MODEL_HINT),),
    takes_cache_key=False,
)

TYPESAFE = replace(SYSTEM_ONE, family="typesafe", options={}, bills_output=False)  # its API has no option

GEMINI = DecisionsProfile(
    family="gemini",
    path="/v1/decisions",
    media=frozenset({"image", "audio", "file"}),
    plain_labels=True,
    form="named",
    input="blocks",
    kinds={"bool": "noul", "choice": "choice", "score": "score"},
    ids=True,
    typed_bools=False,
    bool_criteria=("true_description", "false_description"),
    undescribed="",
    most_questions=1000,
    most_levels=255,
    options={},
    errors=GOOGLE_ERRORS,
    read_error=read_google_error,
    takes_cache_key=False,
)
