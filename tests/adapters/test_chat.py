"""Sections: spellings of headers, text outside of sections, and repairs that strict refuses."""

from __future__ import annotations

import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.prompts.escaping import line_escaper
from sigwire.core.response import Choice
from sigwire.errors import AdapterParseError
from sigwire.signatures.signature import Signature

QA = Signature("question -> answer, score: float")
GOOD = {"answer": "yes", "score": 1.0}

READ = [
    ("[[ ## answer ## ]]\nyes\n\n[[ ## score ## ]]\n1.0\n\n[[ ## completed ## ]]", 0),
    ("[[ ## answer ## ]]\nyes\n[[ ## score ## ]]\n1", 0),
    ("[[ ## answer ## ]] yes\n[[ ## score ## ]] 1", 0),
    ("[[##answer##]]\nyes\n[[  ##  score  ##  ]]\n1", 0),
    ("[[ ## answer ## ]]\r\nyes\r\n[[ ## score ## ]]\r\n1\r\n[[ ## completed ## ]]\r\n", 0),
    ("[[ ## score ## ]]\n1\n[[ ## answer ## ]]\nyes", 0),
    ("Sure!\n[[ ## answer ## ]]\nyes\n[[ ## score ## ]]\n1", 1),
    ("[[ ## answer ## ]]\nyes\n[[ ## score ## ]]\n1\n[[ ## completed ## ]]\nAnything else?", 1),
    ("[[ ## answer ## ]]\nyes\n[[ ## notes ## ]]\nnone\n[[ ## score ## ]]\n1", 1),
    ("[[ ## answer ## ]]\nyes\n[[ ## score ## ]]\n1\n[[ ## answer ## ]]\nno", 1),
    ("[[ ## question ## ]]\n?\n[[ ## answer ## ]]\nyes\n[[ ## score ## ]]\n1", 1),
    ('{"answer": "yes", "score": 1}', 1),
    ('```json\n{"answer": "yes", "score": 1}\n```', 2),
]


@pytest.mark.parametrize(("text", "repairs"), READ)
def test_sections_are_read_in_all_spellings_with_listed_repairs(text: str, repairs: int) -> None:
    parsed = ChatAdapter().plan(QA).parse(_choice(text))
    assert parsed.fields == GOOD
    assert (len(parsed.repairs) > 0) == (repairs > 0)


@pytest.mark.parametrize("text", [text for text, repairs in READ if repairs])
def test_strict_read_refuses_every_repair(text: str) -> None:
    with pytest.raises(AdapterParseError):
        ChatAdapter(strict=True).parse(QA, text)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("just prose", {"answer", "score"}),
        ("[[ ## answer ## ]]\nyes", {"score"}),
        ("[[ ## answer ## ]]\nyes\n[[ ## score ## ]]\nhigh", {"score"}),
        ("In a line: [[ ## answer ## ]] yes", {"answer", "score"}),
        ('{"answer": "yes"}', {"answer", "score"}),
    ],
)
def test_unreadable_values_are_problems_by_field(text: str, problems: set[str]) -> None:
    with pytest.raises(AdapterParseError) as caught:
        ChatAdapter().parse(QA, text)
    assert set(caught.value.problems) == problems


def test_text_of_unknown_sections_is_not_part_of_a_value() -> None:
    text = "[[ ## answer ## ]]\nyes\n[[ ## aside ## ]]\nnot this\n[[ ## score ## ]]\n1"
    assert ChatAdapter().parse(QA, text)["answer"] == "yes"


def test_output_named_completed_is_read() -> None:
    signature = Signature("task -> completed: bool, note")
    plan = ChatAdapter().plan(signature)
    text = plan.layout.write({"completed": True, "note": "n"})
    assert plan.parse(_choice(text)).fields == {"completed": True, "note": "n"}
    assert plan.parse(_choice("[[ ## completed ## ]]\ntrue\n[[ ## note ## ]]\nn")).fields["completed"] is True


def test_types_are_shown_compact_or_as_schemas() -> None:
    signature = Signature("question -> scores: dict[str, list[float]]")
    compact = ChatAdapter().format(signature, {"question": "Q?"}).messages[0].text
    schema = ChatAdapter(types="schema").format(signature, {"question": "Q?"}).messages[0].text
    assert '"additionalProperties"' not in compact
    assert '"additionalProperties"' in schema
    assert len(compact) < len(schema)


def test_unescape_inverts_escape_for_every_number_of_backslashes() -> None:
    escaper = line_escaper(calls=True)
    for mark in ("[[ ## a ## ]]", "~~~tool_call", "```tool_call", "~~~~"):
        for count in range(4):
            for before in ("", " \t", "text\n"):
                text = before + "\\" * count + mark
                assert escaper.unescape(escaper.escape(text)) == text
                assert escaper.escape(text) != text


def _choice(text: str) -> Choice:

    return Choice(text=text)
