"""Signature classes: declaring, editing, comparing, saving."""

from __future__ import annotations

import copy
import datetime as datetime_module
import pickle
import sys
import textwrap
import warnings
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field, StringConstraints

from sigwire.errors import FieldDefinitionError, InputError, SignatureError, StateError
from sigwire.signatures.declarations import UNSET, InputField, OutputField
from sigwire.signatures.signature import Signature, make_signature
from sigwire.signatures.types import History, Image, Tool, ToolCalls


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


class Address(BaseModel):
    """A postal address."""

    city: str = Field(description="the town", min_length=1)
    zip: int | None = None


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict):
    deep: bool


class QA(Signature):
    """Answer the question.

    Be brief.
    """

    question: str = InputField(desc="what to answer")
    k: int = InputField(default=3, ge=1)
    answer: str = OutputField()
    score: float | None = OutputField(desc="how sure", le=1)


class Everything(Signature):
    """All kinds of types."""

    address: Address = InputField()
    point: Point = InputField()
    options: Options = InputField()
    moods: list[Mood] = OutputField()
    on: date | None = OutputField()
    kind: Literal["a", "b"] = OutputField()
    size: Annotated[int, Field(gt=0, description="in cm")] = OutputField(multiple_of=2)


# --- declaring ---


def test_docstring_is_the_instructions() -> None:
    assert QA.instructions == "Answer the question.\n\nBe brief."


def test_fields_are_resolved_in_order() -> None:
    assert QA.signature == "question, k -> answer, score"
    assert [(s.name, s.annotation, s.direction) for s in QA.spec.fields] == [
        ("question", str, "input"),
        ("k", int, "input"),
        ("answer", str, "output"),
        ("score", float | None, "output"),
    ]
    assert [spec.required for spec in QA.spec.fields] == [True, False, True, False]
    assert [spec.default for spec in QA.spec.fields] == [UNSET, 3, UNSET, UNSET]


def test_inputs_precede_outputs() -> None:
    class Mixed(Signature):
        out = OutputField()
        first: int = InputField()
        second = InputField()
        last: int = OutputField()

    assert Mixed.signature == "first, second -> out, last"
    assert Mixed.spec.field("second").annotation is str


def test_types_of_every_kind_are_validated() -> None:
    values: dict[str, Any] = {
        "address": {"city": "Ulm"}, "point": {"x": 1}, "options": {"deep": True}, "moods": ["good", "bad"],
        "on": "2026-01-02", "kind": "a", "size": 4,
    }  # fmt: skip
    assert Everything.spec.load(values) == {
        "address": Address(city="Ulm"), "point": Point(1), "options": {"deep": True}, "moods": [Mood.GOOD, Mood.BAD],
        "on": date(2026, 1, 2), "kind": "a", "size": 4,
    }  # fmt: skip


def test_annotated_metadata_and_constraints_are_joined() -> None:
    size = Everything.spec.field("size")
    assert size.annotation is int
    assert size.description == "in cm"
    assert size.constraints == "a multiple of 2, more than 0"
    for wrong in (3, 0, -2):
        with pytest.raises(ValueError, match=r"multiple|greater"):
            size.adapter.validate_python(wrong)


def test_classes_inside_functions_see_local_names() -> None:
    class Local(BaseModel):
        x: int

    class Inner(Signature):
        given: list[Local] = InputField()
        made: Local | None = OutputField()

    assert [spec.annotation for spec in Inner.spec.fields] == [list[Local], Local | None]


def test_field_may_be_named_like_its_type() -> None:
    class Dated(Signature):
        date: date = InputField()

    assert Dated.spec.field("date").annotation is date


def test_annotations_may_be_objects() -> None:
    source = """
    from datetime import date
    from sigwire.signatures.declarations import InputField, OutputField
    from sigwire.signatures.signature import Signature
    class Plain(Signature):
        "Do."
        date: date = InputField()
        n: "list[date]" = OutputField()
    """
    namespace: dict[str, Any] = {}
    exec(textwrap.dedent(source), namespace)
    assert [spec.annotation for spec in namespace["Plain"].spec.fields] == [date, list[date]]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type statements came with Python 3.12")
def test_type_statements_are_resolved() -> None:
    source = """
    from sigwire.signatures.declarations import InputField, OutputField
    from sigwire.signatures.signature import Signature
    from sigwire.signatures.types import Image, Tool, ToolCalls
    type Score = int | None
    type Tools = list[Tool]
    type Many[T] = list[T]
    class Aliased(Signature):
        tools: Tools = InputField()
        pictures: Many[Image] = InputField()
        score: Score = OutputField()
        calls: ToolCalls = OutputField()
    """
    namespace: dict[str, Any] = {}
    exec(textwrap.dedent(source), namespace)
    spec = namespace["Aliased"].spec
    assert {field.name: field.role for field in spec.fields} == {
        "tools": "tools", "pictures": "media", "score": "value", "calls": "tool_calls",
    }  # fmt: skip
    assert spec.field("score").nullable
    assert spec.field("score").adapter.validate_python(None) is None


def test_unknown_type_name_raises_with_the_name() -> None:
    with pytest.raises(SignatureError, match="Nowhere"):

        class _Bad(Signature):
            x: Nowhere = InputField()  # type: ignore[name-defined]  # noqa: F821


STRAYS: list[tuple[str, str]] = [
    ("x: str", "x is not a field"),
    ("x: str = 'a'", r"x = 'a' is not a field.*InputField\(default"),
    ("x = 3", "x = 3 is not a field"),
    ("x: int = Field(ge=1)", "is not a field"),
    ("_x: int = InputField()", "leading underscore"),
]


@pytest.mark.parametrize(("line", "message"), STRAYS, ids=[line for line, _ in STRAYS])
def test_attribute_without_a_declaration_raises(line: str, message: str) -> None:
    with pytest.raises(FieldDefinitionError, match=message) as caught:
        exec(f"class Bad(Signature):\n    {line}", {**globals()})
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


def test_methods_and_class_variables_are_allowed() -> None:
    class Rich(Signature):
        """Do."""

        limit: ClassVar[int] = 3
        _private = 4
        a: str = InputField()
        b: str = OutputField()

        def shout(self) -> str:
            return self.b.upper()

        @property
        def length(self) -> int:
            return len(self.b)

    assert Rich.limit == 3
    assert Rich.with_instructions("Other.")(b="x").shout() == "X"


def test_fields_may_be_named_like_methods() -> None:
    class Clashing(Signature):
        """Do."""

        insert: str = InputField()
        items: list[str] = OutputField()
        fields: str = OutputField()
        signature: str = OutputField()

    assert Clashing.signature == "insert -> items, fields, signature"
    assert Clashing.insert(0, "first", InputField()).signature == "first, insert -> items, fields, signature"  # type: ignore[operator]
    assert Clashing(items=["a"]).items == ["a"]  # type: ignore[call-arg]


def test_subclasses_inherit_fields_and_instructions() -> None:
    class More(QA):
        extra: int = InputField()
        answer: list[str] = OutputField()  # type: ignore[assignment]

    class Other(More):
        """Something else."""

    assert More.signature == "question, k, extra -> answer, score"
    assert More.spec.field("answer").annotation == list[str]
    assert More.instructions == QA.instructions
    assert Other.instructions == "Something else."
    assert QA.spec.field("answer").annotation is str


def test_default_instructions_follow_the_fields() -> None:
    class Base(Signature):
        a: str = InputField()

    class Sub(Base):
        b: str = OutputField()

    assert Base.instructions == "Read `a`."
    assert Sub.instructions == "Use `a` to write `b`."
    assert Sub.append("c", OutputField()).instructions == "Use `a` to write `b`, `c`."


def test_f_string_docstring_warns() -> None:
    topic = "cats"
    with pytest.warns(UserWarning, match="Lost starts with an f-string") as caught:

        class Lost(Signature):
            f"""Talk about {topic}."""  # noqa: B021

            a: str = InputField()

    assert caught[0].filename == __file__
    assert Lost.instructions == "Read `a`."


def test_other_f_strings_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Fine(Signature):
            a: str = InputField(desc=f"{1 + 1} words")

    assert Fine.spec.field("a").description == "2 words"


def test_ignored_options_warn() -> None:
    with pytest.warns(DeprecationWarning, match="prefix"):
        field = InputField(prefix="Q:")
    assert Signature({"a": field}).spec.field("a").prefix == "A:"


# --- DSPy's view ---


def test_field_metadata_has_the_keys_of_dspy() -> None:
    assert QA.fields["question"].json_schema_extra == {
        "__dspy_field_type": "input", "desc": "what to answer", "prefix": "Question:",
    }  # fmt: skip
    assert QA.output_fields["score"].json_schema_extra == {
        "__dspy_field_type": "output", "desc": "how sure", "prefix": "Score:", "constraints": "at most 1",
    }  # fmt: skip
    assert QA.fields["answer"].json_schema_extra["desc"] == "${answer}"  # type: ignore[index, call-overload]
    assert list(QA.input_fields) == ["question", "k"]
    assert list(QA.fields) == ["question", "k", "answer", "score"]


def test_unknown_keywords_are_kept() -> None:
    made = Signature({"a": InputField(unit="cm", json_schema_extra={"more": 1})})
    extra: Any = made.fields["a"].json_schema_extra
    assert (extra["unit"], extra["more"]) == ("cm", 1)


# --- editing ---

EDITS: list[tuple[str, Any, str]] = [
    ("prepend an input", lambda s: s.prepend("x", InputField()), "x, question, k -> answer, score"),
    ("append an input", lambda s: s.append("x", InputField()), "question, k, x -> answer, score"),
    ("prepend an output", lambda s: s.prepend("x", OutputField()), "question, k -> x, answer, score"),
    ("append an output", lambda s: s.append("x", OutputField(), int), "question, k -> answer, score, x"),
    ("insert in the middle", lambda s: s.insert(1, "x", InputField()), "question, x, k -> answer, score"),
    ("insert at the end", lambda s: s.insert(2, "x", InputField()), "question, k, x -> answer, score"),
    ("insert from the end", lambda s: s.insert(-2, "x", OutputField()), "question, k -> answer, x, score"),
    ("insert at the very start", lambda s: s.insert(-3, "x", OutputField()), "question, k -> x, answer, score"),
    ("delete", lambda s: s.delete("k"), "question -> answer, score"),
    ("delete what is not there", lambda s: s.delete("nothing"), "question, k -> answer, score"),
    ("move to the other side", lambda s: s.append("k", OutputField(), int), "question -> answer, score, k"),
]


@pytest.mark.parametrize(("edit", "expected"), [case[1:] for case in EDITS], ids=[name for name, *_ in EDITS])
def test_edit_makes_a_new_class(edit: Any, expected: str) -> None:
    before = QA.dump_state()
    edited = edit(QA)
    assert edited.signature == expected
    assert edited is not QA
    assert edited.__name__ == "QA"
    assert edited.instructions == QA.instructions
    assert (QA.signature, QA.dump_state()) == ("question, k -> answer, score", before)


@pytest.mark.parametrize("index", [3, -4])
def test_index_out_of_range_raises(index: int) -> None:
    with pytest.raises(SignatureError, match=f"index {index} is out of range for 2 inputs"):
        QA.insert(index, "x", InputField())


UPDATES: list[tuple[dict[str, Any], str, list[Any], list[Any]]] = [
    # what is changed of ge=1, le=9 and a length of the text; the limits in words; values that fit and that do not
    ({"ge": 3}, "at most 9, at least 3", [3, 9], [2, 10]),
    ({"ge": 0, "le": 5}, "at least 0, at most 5", [0, 5], [-1, 6]),
    ({"gt": 4, "ge": None}, "at most 9, more than 4", [5], [4, 10]),
    ({"ge": None, "le": None}, "", [-5, 50], []),
    ({"multiple_of": 2}, "at least 1, at most 9, a multiple of 2", [2, 8], [3, 10]),
    ({"desc": "how many"}, "at least 1, at most 9", [1], [0]),
]


@pytest.mark.parametrize(("changes", "words", "good", "bad"), UPDATES, ids=[str(changes) for changes, *_ in UPDATES])
def test_updated_constraint_is_enforced_and_described(
    changes: dict[str, Any], words: str, good: list[Any], bad: list[Any]
) -> None:
    class Count(Signature):
        text: str = InputField()
        n: int = OutputField(ge=1, le=9, unit="kg", default=7)

    spec = Count.with_updated_fields("n", **changes).spec.field("n")
    assert (spec.constraints, spec.default, spec.info.json_schema_extra["unit"]) == (words, 7, "kg")
    assert spec.info.json_schema_extra.get("constraints", "") == words
    assert [spec.adapter.validate_python(value) for value in good] == good
    for value in bad:
        with pytest.raises(ValueError, match="Input should be"):
            spec.adapter.validate_python(value)
    assert Count.spec.field("n").constraints == "at least 1, at most 9"


def test_update_keeps_other_constraints_and_the_default() -> None:
    class Clean(Signature):
        text: Annotated[str, StringConstraints(strip_whitespace=True, max_length=3)] = InputField(default_factory=str)
        code: str = OutputField(pattern="^x", alias="the_code")

    spec = Clean.with_updated_fields("text", max_length=5).spec.field("text")
    assert spec.adapter.validate_python(" abcde ") == "abcde"
    assert spec.default_value() == ""
    assert Clean.with_updated_fields("text", default="x").spec.field("text").default_value() == "x"
    code = Clean.with_updated_fields("code", pattern="^y").spec.field("code")
    assert (code.constraints, code.info.alias) == ("matching the pattern ^y", "the_code")
    assert code.adapter.validate_python("y") == "y"


def test_updated_field_keeps_its_position() -> None:
    edited = QA.with_updated_fields("k", float, desc="how many", unit="kg")
    spec = edited.spec.field("k")
    assert (spec.annotation, spec.description, spec.default, spec.constraints) == (float, "how many", 3, "at least 1")
    assert edited.fields["k"].json_schema_extra["unit"] == "kg"
    assert edited.signature == QA.signature
    assert QA.spec.field("k").description == ""
    with pytest.raises(SignatureError, match=r"no field 'z' .* It has question, k, answer, score"):
        QA.with_updated_fields("z")


def test_instructions_are_replaced_appended_and_set() -> None:
    assert QA.with_instructions("New.").instructions == "New."
    assert QA.append_instructions("More.").instructions == QA.instructions + "\n\nMore."
    mine = QA.with_instructions("a")
    before = mine.spec
    mine.instructions = "b"
    assert mine.instructions == mine.spec.instructions == "b"
    assert mine.spec is not before
    assert QA.instructions.startswith("Answer")


def test_edited_class_derives_from_the_declared_class() -> None:
    edited: Any = QA
    for number in range(20):
        edited = edited.with_instructions(str(number))
    assert issubclass(edited, QA)
    assert len(edited.__mro__) == len(QA.__mro__) + 1


# --- comparing ---

DIFFERENCES: list[tuple[str, Any]] = [
    ("instructions", lambda s: s.with_instructions("x")),
    ("type", lambda s: s.with_updated_fields("answer", int)),
    ("description", lambda s: s.with_updated_fields("answer", desc="x")),
    ("order", lambda s: s.delete("question").append("question", InputField(desc="what to answer"))),
    ("constraint", lambda s: s.insert(1, "k", InputField(default=3, ge=2), int)),
    ("default", lambda s: s.insert(1, "k", InputField(default=4, ge=1), int)),
    ("fields", lambda s: s.delete("k")),
    ("direction", lambda s: s.delete("answer").append("answer", InputField())),
]


@pytest.mark.parametrize("edit", [case[1] for case in DIFFERENCES], ids=[name for name, _ in DIFFERENCES])
def test_equals_is_false_for_every_difference(edit: Any) -> None:
    assert not QA.equals(edit(QA))
    assert not edit(QA).equals(QA)


def test_equals_is_true_for_equal_signatures() -> None:
    assert QA.equals(QA.delete("k").insert(1, "k", InputField(default=3, ge=1), int))
    assert Signature("a -> b: int | None").equals(Signature("a->b: Optional[int]"))
    assert not QA.equals("question, k -> answer, score")


# --- state ---


def test_state_is_loaded_by_name() -> None:
    tuned = (
        QA.with_instructions("Tuned.").with_updated_fields("answer", desc="short").with_updated_fields("k", prefix="N:")
    )
    state = tuned.dump_state()
    assert state["fields"][2] == {"name": "answer", "prefix": "Answer:", "description": "short"}
    state["fields"].reverse()
    loaded = QA.load_state(state)
    assert loaded.equals(tuned)
    assert QA.instructions.startswith("Answer")


def test_state_that_does_not_fit_raises() -> None:
    with pytest.raises(StateError, match="'gone'"):
        QA.load_state({"instructions": "x", "fields": [{"name": "gone", "prefix": "", "description": ""}]})
    with pytest.raises(StateError, match=r"fields without names \(loading QA\)"):
        QA.load_state({"instructions": "x", "fields": [{"prefix": "", "description": ""}]})


# --- roles ---


def test_roles_follow_from_types() -> None:
    class Agent(Signature):
        """Do."""

        question: str = InputField()
        pictures: list[Image] = InputField()
        tools: list[Tool] = InputField()
        history: History | None = InputField(default=None)
        answer: str = OutputField()
        calls: ToolCalls | None = OutputField()

    spec = Agent.spec
    assert [field.role for field in spec.fields] == ["value", "media", "tools", "history", "value", "tool_calls"]
    assert spec.tools_field is spec.field("tools")
    assert spec.calls_field is spec.field("calls")
    assert spec.history_field is spec.field("history")


CONTRADICTIONS = [
    ("q -> calls: ToolCalls", "no input offers tools"),
    ("q, a: list[Tool], b: Tool -> calls: ToolCalls", "'a', 'b' are all tools fields"),
    ("t: list[Tool] -> a: ToolCalls, b: ToolCalls", "'a', 'b' are all tool calls fields"),
    ("a: History, b: History -> c", "'a', 'b' are all history fields"),
    ("calls: ToolCalls -> a", "as an input: calls are made by the model"),
    ("q -> t: Tool", "as an output: tools are offered by the caller"),
    ("q -> t: list[Tool]", "as an output: tools are offered"),
    ("q -> h: History", "as an output: a history is kept"),
    ("q -> picture: Image", "as an output: answers are text"),
    ("q -> pictures: list[Image]", "as an output: answers are text"),
    ("q -> sound: Audio | None", "as an output: answers are text"),
    ("q -> scans: dict[str, File]", "as an output: answers are text"),
    ("q, t: list[list[Tool]] -> a", "Tool has no meaning"),
    ("q, t: list[Tool] -> a: list[ToolCalls]", "ToolCalls has no meaning"),
    ("q, h: list[History] -> a", "History has no meaning"),
]


@pytest.mark.parametrize(("text", "message"), CONTRADICTIONS, ids=[text for text, _ in CONTRADICTIONS])
def test_contradicting_roles_raise_at_definition(text: str, message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        make_signature(text)


def test_types_inside_a_users_record_have_no_role() -> None:
    class Run(BaseModel):
        past: History

    judged = Signature("run: Run -> verdict: bool").spec.field("run")
    assert judged.role == "value"
    assert judged.adapter.validate_python({"past": [{"q": "a"}]}).past == History([{"q": "a"}])


def test_media_inside_a_users_record_make_a_media_field() -> None:
    class Page(BaseModel):
        pictures: list[Image]
        next: Page | None = None

    Page.model_rebuild(_types_namespace={"Page": Page})
    assert Signature("pages: list[Page] -> summary").spec.field("pages").role == "media"


def test_roles_are_checked_at_edits() -> None:
    agent = make_signature("q, tools: list[Tool] -> calls: ToolCalls")
    with pytest.raises(SignatureError, match="no input offers tools"):
        agent.delete("tools")
    assert agent.delete("calls").delete("tools").signature == "q -> "


# --- instances, copies, pickles ---


def test_instance_is_a_record_of_its_fields() -> None:
    made: Any = QA(question="2+2?", answer="4")  # type: ignore[call-arg]
    assert (made.question, made["answer"], made.toDict()) == ("2+2?", "4", {"question": "2+2?", "answer": "4"})
    assert made == QA(question="2+2?", answer="4")  # type: ignore[call-arg]
    with pytest.raises(InputError, match="no field 'anser'"):
        QA(question="?", anser="4")  # type: ignore[call-arg]


def test_classes_are_copied_and_pickled() -> None:
    assert copy.deepcopy(QA) is QA
    assert copy.copy(QA) is QA
    assert pickle.loads(pickle.dumps(QA)) is QA
    spec = pickle.loads(pickle.dumps(QA.spec.field("k")))
    assert spec == QA.spec.field("k")
    assert spec.adapter.validate_python("4") == 4


def test_repr_shows_the_signature() -> None:
    assert "QA(question, k -> answer, score" in repr(QA)
    assert "score: float | None (output): how sure; at most 1" in repr(QA)


def test_annotation_may_use_a_standard_module() -> None:
    class When(Signature):
        on: datetime_module.datetime = OutputField()

    assert When.spec.load({"on": "2026-01-02T03:04:05"})["on"] == datetime_module.datetime(2026, 1, 2, 3, 4, 5)
