"""Behaviours of DSPy: the compact types of BAMLAdapter."""

from typing import Literal

import dspy
import pydantic

from tests.dspy.behaviours.support import Scripted, behaviour, raises, sub, text_of

BAML = sub("adapters.baml_adapter").BAMLAdapter

ParseError = sub("utils.exceptions").AdapterParseError


def search(query: str, k: int = 3) -> str:
    """Search for documents."""
    return query


CS = sub("adapters.baml_adapter")


class Addr(pydantic.BaseModel):
    street: str
    city: str
    country: Literal["US", "CA"]


class Patient(pydantic.BaseModel):
    name: str = pydantic.Field(description="Full name")
    age: int
    address: Addr | None = None


class Complex(pydantic.BaseModel):
    id: int = pydantic.Field(description="Unique id")
    details: Patient
    tags: list[str] = []
    meta: dict[str, str] = {}


class Lists(pydantic.BaseModel):
    items: list[Addr] = pydantic.Field(description="Addresses")
    scores: list[float]


class Circ(pydantic.BaseModel):
    name: str
    field: "Circ"


def bsig(t):
    return dspy.Signature("input -> output: T", custom_types={"T": t})


def bs(t):
    return BAML().format_field_structure(bsig(t))


@behaviour
def baml_basic():
    s = bs(Patient)
    assert "Full name" in s and "street" in s and '"US"' in s and '"CA"' in s and "name" in s and "age" in s


@behaviour
def baml_basic_exact():
    s = bs(Patient)
    assert (
        f"{CS.COMMENT_SYMBOL} Full name" in s
        and "name: string," in s
        and "age: int," in s
        and 'country: "US" or "CA",' in s
    )


@behaviour
def baml_optional():
    assert "or null" in bs(Patient)


@behaviour
def baml_primitives():
    class Sm(pydantic.BaseModel):
        text: str
        number: int
        decimal: float
        flag: bool

    s = bs(Sm)
    assert all(x in s for x in ("text: string,", "number: int,", "decimal: float,", "flag: boolean,"))


@behaviour
def baml_lists():
    s = bs(Lists)
    assert "items: [" in s and "Addresses" in s and "scores: float[]," in s


@behaviour
def baml_complex():
    s = bs(Complex)
    assert "Unique id" in s and "tags: string[]," in s and "meta: dict[string, string]," in s and "details:" in s


@behaviour
def baml_circular():
    with raises(ValueError):
        bs(Circ)


@behaviour
def baml_inputs():
    S = dspy.Signature("patient: P, priority: int, notes -> answer", custom_types={"P": Patient})
    u = BAML().format(
        S,
        [],
        {
            "patient": Patient(name="John", age=45, address=Addr(street="M", city="A", country="US")),
            "priority": 1,
            "notes": "Urgent",
        },
    )[-1]["content"]
    assert '"John"' in u and "45" in u and "priority ## ]]\n1" in u and "notes ## ]]\nUrgent" in u


@behaviour
def baml_inputs_indented():
    S = dspy.Signature("patient: P -> answer", custom_types={"P": Patient})
    u = BAML().format(S, [], {"patient": Patient(name="John", age=45)})[-1]["content"]
    assert '"name": "John"' in u and '"age": 45' in u


@behaviour
def baml_missing():
    with raises(ParseError, match="summary") as e:
        BAML().parse(
            dspy.Signature("input -> patient: P, summary", custom_types={"P": Patient}),
            '{"patient": {"name": "J", "age": 3}}',
        )


@behaviour
def baml_missing_name():
    with raises(ParseError) as e:
        BAML().parse(
            dspy.Signature("input -> patient: P, summary", custom_types={"P": Patient}),
            '{"patient": {"name": "J", "age": 3}}',
        )
    assert e.value.adapter_name == "JSONAdapter"


@behaviour
def baml_cast_error():
    with raises(ParseError, pydantic.ValidationError):
        BAML().parse(bsig(Patient), '{"output": {"name": "J", "age": "no"}}')


@behaviour
def baml_tools():
    u = BAML(use_native_function_calling=False).format(
        dspy.Signature("question, tools: list[dspy.Tool] -> answer"),
        [],
        {"question": "q", "tools": [dspy.Tool(search)]},
    )
    t = u[0]["content"] + text_of(u[-1]["content"])
    assert "search" in t and "Search for documents." in t


@behaviour
def baml_code():
    u = BAML().format(dspy.Signature("code: dspy.Code -> analysis"), [], {"code": "def hello():\n    pass"})[-1][
        "content"
    ]
    assert "def hello():" in u


@behaviour
def baml_history():
    S = dspy.Signature("history: dspy.History, question -> answer")
    m = BAML().format(
        S,
        [],
        {
            "history": dspy.History(messages=[{"question": "Age?", "answer": "45"}, {"question": "B?", "answer": "c"}]),
            "question": "q",
        },
    )
    assert len(m) == 6 and "Age?" in m[1]["content"] and '"45"' in m[2]["content"]


@behaviour
def baml_shorter():
    assert len(bs(Complex)) < len(dspy.JSONAdapter().format_field_structure(bsig(Complex)))


@behaviour
def baml_same_parse():
    t = '{"output": {"name": "A", "age": 3, "address": {"street": "s", "city": "b", "country": "US"}}}'
    assert BAML().parse(bsig(Patient), t) == dspy.JSONAdapter().parse(bsig(Patient), t)


@behaviour
async def baml_async():
    assert (
        await BAML().acall(Scripted('{"output": {"name": "J", "age": 28}}'), {}, bsig(Patient), [], {"input": "x"})
    )[0]["output"].age == 28


@behaviour
def baml_alias():
    class Al(pydantic.BaseModel):
        full_name: str = pydantic.Field(alias="name")
        patient_age: int = pydantic.Field(alias="age")

    s = bs(Al)
    assert "name:" in s and "age:" in s


@behaviour
def baml_multi():
    S = dspy.Signature("a: P, b: P -> result", custom_types={"P": Patient})
    s = BAML().format_field_structure(S)
    assert "[[ ## a ## ]]" in s and "[[ ## b ## ]]" in s and "{a}" in s
    assert "input fields" in BAML().format_field_description(S).lower()
