"""Tags: verbatim values, misplaced closing tags, and nested tags."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from sigwire.adapters.values.nested_tags import read_tags, with_lists
from sigwire.adapters.values.type_shape import Shape
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.response import Choice
from sigwire.errors import AdapterParseError
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature, make_signature

QA = Signature("question -> answer, score: float")

READ = [
    ("<answer>\nyes\n</answer>\n\n<score>\n1.0\n</score>", {"answer": "yes", "score": 1.0}, False),
    ("<answer>yes</answer><score>1</score>", {"answer": "yes", "score": 1.0}, False),
    ("<score>1</score><answer >yes</answer>", {"answer": "yes", "score": 1.0}, False),
    (
        "<answer>a < b && c > d <br> &lt;</answer><score>1</score>",
        {"answer": "a < b && c > d <br> &lt;", "score": 1.0},
        False,
    ),
    ("<answer>see ]]> and <!-- --></answer><score>1</score>", {"answer": "see ]]> and <!-- -->", "score": 1.0}, False),
    ("Sure: <answer>yes</answer> <score>1</score>", {"answer": "yes", "score": 1.0}, True),
    ("<answer>a </answer> b</answer><score>1</score>", {"answer": "a </answer> b", "score": 1.0}, True),
    ("<answer>yes\n<score>1</score>", {"answer": "yes", "score": 1.0}, True),
    ("<answer>yes</answer><score>1", {"answer": "yes", "score": 1.0}, True),
    ("<answer>yes</answer><answer>no</answer><score>1</score>", {"answer": "yes", "score": 1.0}, True),
]


@pytest.mark.parametrize(("text", "fields", "repaired"), READ)
def test_tags_are_read_in_all_spellings_with_listed_repairs(text: str, fields: dict[str, Any], repaired: bool) -> None:
    parsed = XMLAdapter().plan(QA).parse(Choice(text=text))
    assert parsed.fields == fields
    assert bool(parsed.repairs) == repaired
    if repaired:
        with pytest.raises(AdapterParseError):
            XMLAdapter(strict=True).parse(QA, text)


@pytest.mark.parametrize("text", ["prose", "<answer>yes</answer>", "<Answer>yes</Answer><score>1</score>"])
def test_missing_tag_is_an_error(text: str) -> None:
    with pytest.raises(AdapterParseError):
        XMLAdapter().parse(QA, text)


class Person(BaseModel):
    name: str
    age: int
    tags: list[str] = []


def test_nested_tags_of_a_typed_value_are_a_repair() -> None:
    plan = XMLAdapter().plan(Signature("text -> person: Person", custom_types={"Person": Person}))
    ada = Person(name="Ada & co", age=36, tags=["a", "b"])
    assert plan.parse(Choice(text=plan.layout.write({"person": ada}))).repairs == ()
    nested = "<name>Ada &amp; co</name><age>36</age><tags><item>a</item><item>b</item></tags>"
    parsed = plan.parse(Choice(text=f"<person>{nested}</person>"))
    assert parsed.fields == {"person": ada}
    assert any("nested tags" in repair.what for repair in parsed.repairs)


class Labelled(BaseModel):
    labels: list[str]


class Team(BaseModel):
    name: str = ""
    people: list[Person] = []
    groups: list[Labelled] | None = None
    scores: dict[str, list[int]] = {}


_ADA = "<name>Ada</name><age>36</age>"
TEAM = Team(people=[Person(name="Ada", age=36)])
SINGLE: list[tuple[Any, str, Any]] = [
    (Labelled, "<labels>x</labels>", Labelled(labels=["x"])),
    (Labelled, "<labels></labels>", Labelled(labels=[])),
    (Labelled, '<labels>["x", "y"]</labels>', Labelled(labels=["x", "y"])),
    (Labelled | None, "<labels>x</labels>", Labelled(labels=["x"])),
    (list[Labelled], "<labels>x</labels>", [Labelled(labels=["x"])]),
    (list[Labelled], "<one><labels>x</labels></one>", [Labelled(labels=["x"])]),
    (list[Labelled], "<item><labels>x</labels></item>", [Labelled(labels=["x"])]),
    (list[str], "<label>x</label>", ["x"]),
    (Team, f"<people><person>{_ADA}</person></people>", TEAM),
    (Team, f"<people>{_ADA}</people>", TEAM),
    (Team, "<groups><labels>x</labels></groups>", Team(groups=[Labelled(labels=["x"])])),
    (Team, "<scores><a>1</a><b>2</b><b>3</b></scores>", Team(scores={"a": [1], "b": [2, 3]})),
    (dict[str, list[str]], "<a>x</a>", {"a": ["x"]}),
    (Team, "<scores/><people></people>", Team()),
]


@pytest.mark.parametrize(("kind", "text", "value"), SINGLE)
def test_single_tag_is_a_list_of_one_when_the_type_is_a_list(kind: Any, text: str, value: Any) -> None:
    signature = make_signature({"text": InputField(), "m": (kind, OutputField())})
    parsed = XMLAdapter().plan(signature).parse(Choice(text=f"<m>{text}</m>"))
    assert parsed.fields == {"m": value}
    assert any("nested tags" in repair.what for repair in parsed.repairs)


@pytest.mark.parametrize("written", ["<m/>", "<m />", "<m></m>", "<m>\n</m>"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [(list[int], []), (dict[str, int], {}), (Team, Team()), (str, ""), (list[int] | str, "")],
)
def test_an_empty_tag_is_an_empty_value_of_the_type(kind: Any, value: Any, written: str) -> None:
    signature = make_signature({"text": InputField(), "m": (kind, OutputField()), "n": (int, OutputField())})
    plan = XMLAdapter().plan(signature)
    assert plan.parse(Choice(text=f"<n>1</n>{written}")).fields == {"m": value, "n": 1}
    for lacking in (f"<n></n>{written}", f"<n>{written}</n>"):
        with pytest.raises(AdapterParseError):
            plan.parse(Choice(text=lacking))


def test_single_tag_of_a_list_of_lists_of_itself_is_no_endless_list() -> None:
    itself: dict[str, Any] = {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    with_lists(Shape(itself, {"Tree": itself}), "x")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain &lt; text", "plain < text"),
        ("<a>1</a><a>2</a>", {"a": ["1", "2"]}),
        ("<a><b>x</b></a>", {"a": {"b": "x"}}),
        ("<item>1</item>", ["1"]),
        ("<a></a>", {"a": ""}),
        ("<a>1</a><b>open", {"a": "1"}),
        ("</a>stray", "</a>stray"),
        ("<a>&amp;lt;</a>", {"a": "&lt;"}),
    ],
)
def test_nested_tags_become_plain_values(text: str, value: Any) -> None:
    assert read_tags(text) == value


def test_deeply_nested_tags_raise_nothing() -> None:
    read_tags("<a>" * 10_000 + "</a>" * 10_000)


def test_unclosed_tags_are_read_in_linear_time() -> None:
    text = "<answer>" * 100_000  # looking for each one's end would take minutes
    with pytest.raises(AdapterParseError) as caught:
        XMLAdapter().parse(QA, text)
    assert set(caught.value.problems) == {"score"}
