"""Behaviours of DSPy: signatures in text and class form."""

import pickle
from types import UnionType
from typing import Any, Literal, Optional, Union, get_args, get_origin

import dspy
import pydantic

from tests.dspy.behaviours.support import behaviour, raises, sub

Signature, InputField, OutputField = dspy.Signature, dspy.InputField, dspy.OutputField


def union_of(ann):
    return set(get_args(ann))


@behaviour
def signature_types_of_fields():
    class A(Signature):
        """Do it"""

        a: str = InputField()
        b: int = InputField()
        c: list[str] = OutputField()
        d = OutputField()

    assert A.instructions == "Do it"
    assert A.input_fields["a"].annotation == str and A.input_fields["b"].annotation == int
    assert A.output_fields["c"].annotation == list[str] and A.output_fields["d"].annotation == str


@behaviour
def signature_no_declaration():
    with raises(TypeError):

        class A(Signature):
            a: str


@behaviour
def signature_no_declaration2():
    with raises(TypeError):

        class A(Signature):
            a: str = pydantic.Field()


@behaviour
def signature_prefixes():
    class A(Signature):
        input = InputField(prefix="Other:")
        output = OutputField()

    assert A.input_fields["input"].json_schema_extra["prefix"] == "Other:"
    assert A.output_fields["output"].json_schema_extra["prefix"] == "Output:"


@behaviour
def signature_parses():
    s = Signature("a1, a2 -> out")
    assert list(s.input_fields) == ["a1", "a2"] and list(s.output_fields) == ["out"]


@behaviour
def signature_distinct():
    with raises(ValueError, match="distinct names|value"):
        Signature("value -> value")


@behaviour
def signature_new_instructions():
    s = Signature("a -> b")
    t = s.with_instructions("T")
    assert t.instructions == "T" and s is not t


@behaviour
def signature_updated():
    s = Signature("input1, input2 -> output")
    t = s.with_updated_fields("input1", prefix="M:")
    assert (
        t.input_fields["input1"].json_schema_extra["prefix"] == "M:"
        and s.input_fields["input1"].json_schema_extra["prefix"] == "Input 1:"
    )
    for k in s.fields:
        if k != "input1":
            assert s.fields[k].json_schema_extra == t.fields[k].json_schema_extra
    assert s.instructions == t.instructions and s is not t


@behaviour
def signature_updated_type():
    t = Signature("a -> b").with_updated_fields("a", int, desc="n")
    assert t.fields["a"].annotation is int and t.fields["a"].json_schema_extra["desc"] == "n"


@behaviour
def signature_empty():
    with raises(ValueError):
        Signature("")


@behaviour
def signature_instructions_both():
    assert Signature("a -> b", instructions="T").instructions == "T" == Signature("a -> b", "T").instructions


@behaviour
def signature_instructions_default():
    assert Signature("a, b -> c").instructions == "Given the fields `a`, `b`, produce the fields `c`."


@behaviour
def signature_from_dict():
    s = Signature({"a": InputField(), "b": OutputField()})
    assert list(s.fields) == ["a", "b"] and s.fields["a"].annotation == str


@behaviour
def signature_equal():
    assert Signature("a -> b").equals(Signature("a -> b"))


@behaviour
def signature_unequal():
    assert not Signature("a -> b").equals(Signature("c -> d"))


@behaviour
def signature_equal_format():
    class A(Signature):
        input = InputField(format=lambda x: x)
        output = OutputField()

    assert A.equals(A)


@behaviour
def signature_text():
    assert Signature("a -> b").signature == "a -> b"


@behaviour
def signature_inserts():
    class A(Signature):
        a: str = InputField()
        b: int = OutputField()

    assert (
        list(A.prepend("n", InputField(), str).input_fields)[0] == "n"
        and list(A.append("n", InputField(), str).input_fields)[-1] == "n"
    )
    assert (
        list(A.prepend("n", OutputField(), str).output_fields)[0] == "n"
        and list(A.append("n", OutputField(), str).output_fields)[-1] == "n"
    )


@behaviour
def signature_order():
    class A(Signature):
        a: str = InputField()
        b = OutputField()
        c: bool = OutputField()

    assert list(A.fields) == ["a", "b", "c"]


for a, b in [
    ("someAttributeName42IsCool", "Some Attribute Name 42 Is Cool"),
    ("isHTTPSSecure123", "Is HTTPS Secure 123"),
    ("URLAddress", "URL Address"),
    ("some_attribute_name", "Some Attribute Name"),
]:

    def one(a=a, b=b):
        assert dspy.infer_prefix(a) == b

    one.__name__ = "signature_prefix" + a
    behaviour(one)


@behaviour
def signature_instance():
    s = Signature("input -> output")
    v = s(input="t", output="t")
    assert issubclass(s, Signature) and s.__name__ == "StringSignature" and isinstance(v, s)


@behaviour
def signature_instance2():
    class Sub(Signature):
        input = InputField()
        output = OutputField()

    assert isinstance(Sub(input="t", output="t"), Sub) and Sub.__name__ == "Sub"


@behaviour
def signature_multiline():
    class A(Signature):
        """One
        Two
            Three"""

        output = OutputField()

    with dspy.context(
        lm=dspy.DummyLM([{"output": "x"}]) if hasattr(dspy, "DummyLM") else sub("utils").DummyLM([{"output": "x"}])
    ):
        assert dspy.Predict(A)().output == "x"


@behaviour
def signature_state():
    class A(Signature):
        """Just text."""

        sentence = InputField(desc="An input")
        mood = OutputField()

    st = A.dump_state()
    assert st["instructions"] == "Just text." and [f["prefix"] for f in st["fields"]] == ["Sentence:", "Mood:"]
    assert [f["description"] for f in st["fields"]] == ["An input", "${mood}"]

    class B(Signature):
        """Other."""

        sentence = InputField(desc="Bad")
        mood = OutputField()

    assert B.dump_state() != st
    L = B.load_state(st)
    assert (
        L.instructions == "Just text."
        and L.dump_state() == st
        and B.instructions == "Other."
        and B.fields["sentence"].json_schema_extra["desc"] == "Bad"
    )


@behaviour
def signature_state_unnamed():
    class B(Signature):
        """Other."""

        sentence = InputField(desc="Bad")
        mood = OutputField()

    L = B.load_state(
        {
            "instructions": "I",
            "fields": [{"prefix": "Sentence:", "description": "d"}, {"prefix": "Mood:", "description": "${mood}"}],
        }
    )
    assert L.instructions == "I" and L.fields["sentence"].json_schema_extra["desc"] == "d"


@behaviour
def signature_basic_types():
    s = Signature("a: int, b: str -> c: float")
    assert [s.fields[k].annotation for k in "abc"] == [int, str, float]


@behaviour
def signature_generics():
    s = Signature("a: list[int], b: dict[str, float] -> c: tuple[str, int]")
    assert [s.fields[k].annotation for k in "abc"] == [list[int], dict[str, float], tuple[str, int]]


@behaviour
def signature_unions():
    s = Signature("a: Optional[str], b: Union[int, None] -> c: Union[int, str]")
    assert (
        union_of(s.fields["a"].annotation) == {str, type(None)}
        and union_of(s.fields["b"].annotation) == {int, type(None)}
        and union_of(s.fields["c"].annotation) == {int, str}
    )


@behaviour
def signature_unions_origin():
    s = Signature("a: Optional[str] -> c: Union[int, str]")
    assert get_origin(s.fields["c"].annotation) is Union


@behaviour
def signature_anys():
    s = Signature("a: Any -> b: Any")
    assert s.fields["a"].annotation == Any == s.fields["b"].annotation


@behaviour
def signature_nested():
    s = Signature("a: list[Union[str, int]] -> b: Tuple[int, Optional[float], list[str]]")
    a = s.fields["a"].annotation
    b = s.fields["b"].annotation
    assert (
        a.__origin__ is list
        and union_of(a.__args__[0]) == {str, int}
        and b.__origin__ is tuple
        and b.__args__[0] is int
        and union_of(b.__args__[1]) == {float, type(None)}
        and b.__args__[2] == list[str]
    )


@behaviour
def signature_dict_typed():
    s = Signature(
        {"a": (list[str], InputField()), "b": (dict[str, int], InputField()), "c": (tuple[int, float], OutputField())}
    )
    assert [s.fields[k].annotation for k in "abc"] == [list[str], dict[str, int], tuple[int, float]]


@behaviour
def signature_complex():
    s = Signature("a: dict[str, list[Optional[Tuple[int, str]]]] -> b: Union[list[str], dict[str, Any]]")
    a = s.fields["a"].annotation
    assert a.__origin__ is dict and a.__args__[1].__origin__ is list
    assert union_of(s.fields["b"].annotation) == {list[str], dict[str, Any]}


@behaviour
def signature_make():
    s = dspy.make_signature("a: int, b: dict[str, int] -> c: list[str], d: Union[int, str]")
    assert [s.fields[k].annotation for k in "abcd"] == [int, dict[str, int], list[str], Union[int, str]]


@behaviour
def signature_constraints():
    class A(Signature):
        i: str = InputField()
        a: str = OutputField(min_length=5, max_length=10)
        b: int = OutputField(ge=5, le=10)

    x = A.output_fields["a"].json_schema_extra["constraints"]
    y = A.output_fields["b"].json_schema_extra["constraints"]
    assert (
        "minimum length: 5" in x
        and "maximum length: 10" in x
        and "greater than or equal to: 5" in y
        and "less than or equal to: 10" in y
    )


@behaviour
def signature_custom():
    class Cu(pydantic.BaseModel):
        value: str

    s = Signature("input: Cu -> output: str", custom_types={"Cu": Cu})
    assert s.fields["input"].annotation == Cu
    with dspy.context(lm=sub("utils").DummyLM([{"output": "p"}])):
        assert dspy.Predict(s)(input=Cu(value="t")).output == "p"


@behaviour
def signature_custom_path():
    from pathlib import Path

    s = Signature("input: Path -> output: str")
    assert s.fields["input"].annotation == Path
    with dspy.context(lm=sub("utils").DummyLM([{"output": "/t"}])):
        assert dspy.Predict(s)(input=Path("/t")).output == "/t"


@behaviour
def signature_pep604():
    s = Signature("a: str | None, b: None | int -> c: int | str")
    assert (
        union_of(s.fields["a"].annotation) == {str, type(None)}
        and union_of(s.fields["b"].annotation) == {int, type(None)}
        and union_of(s.fields["c"].annotation) == {int, str}
    )
    assert s.fields["a"].annotation == Optional[str]


@behaviour
def signature_pep604_equal():
    s = Signature("a: str | None -> b: int | str")
    t = Signature("a: Optional[str] -> b: Union[int, str]")
    assert s.equals(t) and s.fields["a"].annotation == t.fields["a"].annotation


@behaviour
def signature_pep604_nested():
    s = Signature("a: str | (int | float) | None -> b: str")
    assert (
        union_of(s.fields["a"].annotation) == {str, int, float, type(None)}
        and get_origin(s.fields["a"].annotation) is Union
    )


@behaviour
def signature_pep604_class():
    class A(Signature):
        a: str | (int | float) | None = InputField()
        b: str = OutputField()

    x = A.fields["a"].annotation
    assert isinstance(x, UnionType) and set(x.__args__) == {str, int, float, type(None)}


@behaviour
def signature_pep604_class_equal():
    class A(Signature):
        a: str | None = InputField()
        b: int | str = OutputField()

    class B(Signature):
        a: str | None = InputField()
        b: Union[int, str] = OutputField()

    assert (
        A.equals(B)
        and A.fields["b"].annotation == B.fields["b"].annotation
        and isinstance(A.fields["a"].annotation, UnionType)
    )


@behaviour
def signature_pep604_insert():
    class A(Signature):
        a: str | None = InputField()
        b: int | str = OutputField()

    n = A.prepend("n", InputField(), float | int)
    assert (
        isinstance(n.fields["n"].annotation, UnionType)
        and isinstance(n.fields["a"].annotation, UnionType)
        and set(n.fields["b"].annotation.__args__) == {int, str}
    )


@behaviour
def signature_pep604_custom():
    class Cu(pydantic.BaseModel):
        value: str

    s = Signature("input: Cu | None -> output: int | str", custom_types={"Cu": Cu})
    assert s.fields["input"].annotation == Union[Cu, None]
    with dspy.context(lm=sub("utils").DummyLM([{"output": "p"}])):
        assert dspy.Predict(s)(input=Cu(value="t")).output == "p"


@behaviour
def signature_pickles():
    import cloudpickle

    class My(Signature):
        """Answer it."""

        context: list[str] = InputField()
        q: str = InputField()
        a: str = OutputField()

    L = pickle.loads(cloudpickle.dumps(My))
    assert L.__name__ == "My" and list(L.input_fields) == ["context", "q"] and L.instructions == "Answer it."


@behaviour
def signature_pickles_predict():
    import cloudpickle

    class My(Signature):
        """Answer it."""

        q: str = InputField()
        a: str = OutputField()

    assert list(pickle.loads(cloudpickle.dumps(dspy.Predict(My))).signature.fields) == ["q", "a"]


@behaviour
def signature_literal_in_text():
    s = Signature("a -> b: Literal['x', 'y']")
    assert s.fields["b"].annotation == Literal["x", "y"]


@behaviour
def signature_dotted_dspy():
    s = Signature("i: dspy.Image, h: dspy.History -> o")
    assert s.fields["i"].annotation is dspy.Image, s.fields["i"].annotation
    assert s.fields["h"].annotation is dspy.History


@behaviour
def signature_dotted_dspy_tool():
    s = Signature("q, tools: list[dspy.Tool] -> calls: dspy.ToolCalls")
    assert s.fields["tools"].annotation == list[dspy.Tool] and s.fields["calls"].annotation is dspy.ToolCalls, s.fields[
        "calls"
    ].annotation


@behaviour
def signature_deletes():
    s = Signature("a, b -> c").delete("a")
    assert list(s.input_fields) == ["b"]
    assert list(s.delete("none").fields) == ["b", "c"]


@behaviour
def signature_insert_at():
    s = Signature("a, b -> c").insert(1, "n", InputField(desc="d"), int)
    assert list(s.input_fields) == ["a", "n", "b"] and s.fields["n"].annotation is int
    s = Signature("a -> b, c").insert(-1, "z", OutputField())
    assert list(s.output_fields)[-1] == "z"
    with raises(ValueError):
        Signature("a -> b").insert(9, "z", OutputField())


@behaviour
def signature_append_instr():
    if not hasattr(Signature, "append_instructions"):
        return
    assert Signature("a -> b", "X.").append_instructions("Y.").instructions.split() == ["X.", "Y."]


@behaviour
def signature_inherits():
    class A(Signature):
        """Base."""

        a: str = InputField()

    class B(A):
        """Sub."""

        b: str = OutputField()

    assert list(B.input_fields) == ["a"] and list(B.output_fields) == ["b"] and B.instructions == "Sub."


@behaviour
def signature_ensure():
    e = dspy.ensure_signature("a -> b")
    assert list(e.fields) == ["a", "b"] and dspy.ensure_signature(e) is e


@behaviour
def signature_field_type():
    f = sub("signatures.utils").get_dspy_field_type
    s = Signature("a -> b")
    assert f(s.fields["a"]) == "input" and f(s.fields["b"]) == "output"


@behaviour
def signature_repr_has_fields():
    assert (
        "StringSignature" in repr(Signature("a -> b")) and "Input" in repr(Signature("a -> b"))
    ) or "a -> b" in repr(Signature("a -> b"))


@behaviour
def signature_default_desc():
    s = Signature("a -> b")
    assert (
        s.fields["a"].json_schema_extra["desc"] == "${a}"
        and s.fields["a"].json_schema_extra["__dspy_field_type"] == "input"
    )


@behaviour
def signature_bad_syntax():
    for t in ["a b c", "a ->", "a -> b -> c", "a: nonsense -> b"]:
        with raises((ValueError, SyntaxError)) if False else raises(ValueError, SyntaxError):
            Signature(t)


class Outer:
    class Inner(pydantic.BaseModel):
        name: str
        value: int


class GlobalType(pydantic.BaseModel):
    value: str


@behaviour
def signature_resolves_local():
    class Lo(pydantic.BaseModel):
        value: str

    assert (
        Signature("i: Lo -> o: str").fields["i"].annotation == Lo
        and Signature("i: Lo -> o: str", custom_types={"Lo": Lo}).fields["i"].annotation == Lo
    )


@behaviour
def signature_resolves_alias():
    Al = Outer.Inner
    assert Signature("i -> o: Al").fields["o"].annotation == Outer.Inner


@behaviour
def signature_resolves_global():
    assert Signature("n: str -> r: GlobalType").fields["r"].annotation == GlobalType


@behaviour
def signature_resolves_dotted():
    assert Signature("i -> o: Outer.Inner").fields["o"].annotation == Outer.Inner


@behaviour
def signature_unresolved():
    with raises(ValueError):
        Signature("i -> o: Inner")


@behaviour
def signature_in_module():
    class Mo(dspy.Module):
        def __init__(self):
            super().__init__()
            self.predict = dspy.Predict("i: str -> o: Outer.Inner")

    assert Mo().predict.signature.fields["o"].annotation == Outer.Inner
