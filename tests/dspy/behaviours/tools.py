"""Behaviours of DSPy: tools, calls and their results."""

import asyncio
import json
from typing import Any

import dspy
import pydantic

from tests.dspy.behaviours.support import behaviour, raises, sub

mod = sub("adapters.types.tool")

Tool, ToolCalls = mod.Tool, mod.ToolCalls


def plain(n: int, word: str = "hi") -> str:
    """Write a word and a number.

    Args:
        n: number
        word: word
    """
    return f"{word} {n}"


class M(pydantic.BaseModel):
    first: str = "hi"
    second: int


def takes_model(m: M) -> str:
    """Use a model."""
    return f"{m.first} {m.second}"


class Place(pydantic.BaseModel):
    city: str
    main: bool = False


class Contact(pydantic.BaseModel):
    mail: str
    places: list[Place]


class Person(pydantic.BaseModel):
    uid: int
    age: int | None = None
    contact: Contact


class Note(pydantic.BaseModel):
    text: str


def deep(who: Person, rank: int, notes: list[Note] | None = None) -> dict[str, Any]:
    "Deep."
    return {"uid": who.uid, "rank": rank, "notes": notes, "city": who.contact.places[0].model_dump()}


async def aplain(n: int, word: str = "hi") -> str:
    "Write later."
    await asyncio.sleep(0)
    return f"{word} {n}"


async def amodel(m: M) -> str:
    await asyncio.sleep(0)
    return f"{m.first} {m.second}"


async def adeep(who: Person, rank: int, notes: list[Note] | None = None) -> dict[str, Any]:
    await asyncio.sleep(0)
    return deep(who, rank, notes)


@behaviour
def tool_init():
    t = Tool(name="t", desc="d", args={"p": {"type": "string"}}, func=lambda p: p)
    assert t.name == "t" and t.desc == "d" and t.args == {"p": {"type": "string"}} and callable(t.func)


@behaviour
def tool_from_function():
    t = Tool(plain)
    assert t.name == "plain" and "Write a word" in t.desc
    assert t.args["n"]["type"] == "integer" and t.args["word"]["type"] == "string" and t.args["word"]["default"] == "hi"


@behaviour
def tool_from_object():
    class Foo:
        def __init__(self, x):
            self.x = x

        def __call__(self, a: int, b: int) -> int:
            """Add."""
            return a + b

    t = Tool(Foo(1))
    assert t.name == "Foo" and t.desc == "Add." and t.args == {"a": {"type": "integer"}, "b": {"type": "integer"}}, (
        t.name,
        t.args,
    )


@behaviour
def tool_from_model():
    t = Tool(takes_model)
    assert t.args["m"]["type"] == "object" and set(t.args["m"]["properties"]) == {"first", "second"}
    assert t.args["m"]["properties"]["first"]["default"] == "hi"


@behaviour
def tool_from_nested():
    t = Tool(deep)
    p = t.args["who"]["properties"]
    assert t.args["who"]["type"] == "object" and p["uid"]["type"] == "integer"
    assert p["age"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert p["contact"]["type"] == "object" and p["contact"]["properties"]["mail"]["type"] == "string"
    assert "$defs" not in str(t.args["notes"])
    n = t.args["notes"]["anyOf"][0]
    assert (
        n["type"] == "array" and n["items"]["type"] == "object" and n["items"]["properties"]["text"]["type"] == "string"
    )


@behaviour
def tool_calls():
    assert Tool(plain)(n=42, word="x") == "x 42"


@behaviour
def tool_calls_model():
    assert Tool(takes_model)(m=M(first="t", second=3)) == "t 3"


@behaviour
def tool_bad_value():
    with raises(ValueError):
        Tool(plain)(n="no int", word="x")


@behaviour
def tool_arg_desc():
    assert Tool(plain, arg_desc={"n": "The number"}).args["n"]["description"] == "The number"


@behaviour
def tool_default_without_hint():
    def foo(x=100):
        return x

    assert Tool(foo).args["x"]["default"] == 100 and "type" not in Tool(foo).args["x"], Tool(foo).args


@behaviour
def tool_parses_args():
    assert Tool(takes_model)(m={"first": "a", "second": 1}) == "a 1"


@behaviour
def tool_parses_lists():
    def f(x: list[list[M]]):
        return x

    assert Tool(f)(x=[[{"first": "a", "second": 1}]]) == [[M(first="a", second=1)]]


@behaviour
def tool_kwargs():
    def fn(x: int, **kwargs):
        return kwargs

    assert Tool(fn)(x=1, y=2, z=3) == {"y": 2, "z": 3}


@behaviour
def tool_as_text():
    def add(x: int, y: int = 0) -> int:
        """Add two integers."""
        return x + y

    s = str(Tool(add))
    assert s.startswith(
        "add, whose description is <desc>Add two integers.</desc>. It takes arguments {'x': {'type': 'integer'}, 'y': {"
    ), s


@behaviour
async def tool_async_from_function():
    t = Tool(aplain)
    assert t.args["word"]["default"] == "hi" and await t.acall(n=4, word="x") == "x 4"


@behaviour
async def tool_async_model():
    t = Tool(amodel)
    assert await t.acall(m=M(first="t", second=1)) == "t 1" and await t.acall(m={"first": "t", "second": 1}) == "t 1"


@behaviour
async def tool_async_deep():
    who = Person(uid=1, contact=Contact(mail="m", places=[Place(city="c", main=True)]))
    r = await Tool(adeep).acall(who=who, rank=1, notes=[Note(text="x")])
    assert r["uid"] == 1 and r["notes"] == [Note(text="x")] and r["city"]["city"] == "c"


@behaviour
async def tool_async_bad():
    with raises(ValueError):
        await Tool(aplain).acall(n="no", word="x")


@behaviour
async def tool_async_kwargs():
    async def fn(x: int, **kwargs):
        return kwargs

    assert await Tool(fn).acall(x=1, y=2) == {"y": 2}


@behaviour
async def tool_async_concurrent():
    t = Tool(aplain)
    assert await asyncio.gather(*[t.acall(n=i, word=f"w{i}") for i in range(5)]) == [f"w{i} {i}" for i in range(5)]


@behaviour
def tool_async_in_sync():
    t = Tool(aplain)
    with dspy.context(allow_tool_async_sync_conversion=False), raises(ValueError, match="acall"):
        t(n=1, word="x")
    with dspy.context(allow_tool_async_sync_conversion=True):
        assert t(n=1, word="x") == "x 1"


CASES = [
    [],
    [{"name": "s", "args": {"q": "h"}}],
    [{"name": "s", "args": {"q": "h"}}, {"name": "t", "args": {"a": 1, "l": "fr"}}],
    [{"name": "now", "args": {}}],
]

for i, case in enumerate(CASES):

    def one(case=case):
        c = ToolCalls(tool_calls=[ToolCalls.ToolCall(**d) for d in case])
        assert c.format() == {"tool_calls": case}, c.format()

    one.__name__ = f"tool_format{i}"
    behaviour(one)

for i, case in enumerate(CASES):

    def one(case=case):
        c = ToolCalls.from_dict_list(case)
        assert [(x.name, x.args) for x in c.tool_calls] == [(d["name"], d["args"]) for d in case]

    one.__name__ = f"tool_from_dicts{i}"
    behaviour(one)


@behaviour
def tool_vague():
    one = ToolCalls.model_validate({"name": "s", "args": {"q": "h"}})
    assert isinstance(one, ToolCalls) and len(one.tool_calls) == 1 and one.tool_calls[0].args == {"q": "h"}
    two = ToolCalls.model_validate([{"name": "s", "args": {"q": "h"}}, {"name": "t", "args": {}}])
    assert [c.name for c in two.tool_calls] == ["s", "t"]
    three = ToolCalls.model_validate({"tool_calls": [{"name": "s", "args": {}}, {"name": "n", "args": {}}]})
    assert [c.name for c in three.tool_calls] == ["s", "n"]
    with raises(ValueError):
        ToolCalls.model_validate({"foo": "bar"})
    with raises(ValueError):
        ToolCalls.model_validate([{"foo": "bar"}])


@behaviour
def tool_vague_openai_forms():
    a = ToolCalls.model_validate(
        [{"id": "c1", "type": "function", "function": {"name": "s", "arguments": '{"q": "h"}'}}]
    )
    assert (a.tool_calls[0].id, a.tool_calls[0].name, a.tool_calls[0].args) == ("c1", "s", {"q": "h"})
    b = ToolCalls.model_validate([{"name": "s", "arguments": {"q": "h"}}])
    assert b.tool_calls[0].args == {"q": "h"}
    c = ToolCalls.model_validate([{"name": "s", "arguments": '{"q": "h",}'}])
    assert c.tool_calls[0].args == {"q": "h"}


@behaviour
def tool_schema_none():
    assert mod.convert_input_schema_to_tool_args({"properties": {}}) == ({}, {}, {})


@behaviour
def tool_schema_some():
    a, t, d = mod.convert_input_schema_to_tool_args(
        {
            "type": "object",
            "properties": {
                "bar": {"title": "Bar", "description": "The bar.", "type": "string"},
                "baz": {"title": "Baz", "type": "integer"},
            },
            "required": ["baz"],
        }
    )
    assert a == {
        "bar": {"title": "Bar", "description": "The bar.", "type": "string"},
        "baz": {"title": "Baz", "type": "integer"},
    }
    assert t == {"bar": str, "baz": int} and d["bar"] == "The bar." and "Required" in d["baz"]


@behaviour
def tool_execute():
    def weather(city: str):
        return f"{city} sunny"

    def add(a: int, b: int):
        return a + b

    tools = [Tool(weather), Tool(add)]
    assert ToolCalls.ToolCall(name="weather", args={"city": "B"}).execute(functions=tools) == "B sunny"
    assert ToolCalls.ToolCall(name="add", args={"a": 7, "b": 13}).execute(functions={"add": add}) == 20
    assert ToolCalls.ToolCall(name="pi", args={}).execute(functions={"pi": lambda: 3}) == 3
    with raises(ValueError, match="not found"):
        ToolCalls.ToolCall(name="none", args={}).execute(functions=tools)


@behaviour
def tool_execute_local():
    def local_add(a, b):
        return a + b

    assert ToolCalls.ToolCall(name="local_add", args={"a": 1, "b": 2}).execute() == 3
    globals()["local_add"] = lambda a, b: 1000
    try:
        assert ToolCalls.ToolCall(name="local_add", args={"a": 1, "b": 2}).execute() == 3
    finally:
        globals().pop("local_add")


@behaviour
def tool_execute_error():
    def boom():
        raise KeyError("x")

    with raises(RuntimeError):
        ToolCalls.ToolCall(name="boom", args={}).execute(functions={"boom": boom})


@behaviour
def tool_id_none():
    assert ToolCalls.ToolCall(name="f", args={}).id is None


@behaviour
def tool_id_kept():
    assert ToolCalls.ToolCall(name="f", args={"a": 1}, id="c").id == "c"


@behaviour
def tool_id_in_container():
    assert ToolCalls(tool_calls=[ToolCalls.ToolCall(name="f", args={}, id="c")]).tool_calls[0].id == "c"


@behaviour
def tool_id_absent_in_container():
    c = ToolCalls(tool_calls=[ToolCalls.ToolCall(name="f", args={})])
    assert c.tool_calls[0].id is None, c.tool_calls[0].id


@behaviour
def tool_equality():
    a = ToolCalls(tool_calls=[ToolCalls.ToolCall(name="f", args={"x": 1})])
    assert (
        a
        == ToolCalls(tool_calls=[ToolCalls.ToolCall(name="f", args={"x": 1})])
        == ToolCalls.from_dict_list([{"name": "f", "args": {"x": 1}}])
    )
    assert a != ToolCalls(tool_calls=[ToolCalls.ToolCall(name="f", args={"x": 2})])


@behaviour
def tool_litellm_form():
    t = Tool(lambda city: city, name="w", desc="weather")
    f = t.format_as_litellm_function_call()
    assert (
        f["type"] == "function"
        and f["function"]["name"] == "w"
        and f["function"]["description"] == "weather"
        and "parameters" in f["function"]
    )


@behaviour
def tool_litellm_required():
    f = Tool(plain).format_as_litellm_function_call()["function"]["parameters"]
    assert f["type"] == "object" and f["required"] == ["n"] and f["properties"]["word"]["default"] == "hi"


@behaviour
def tool_unknown_arg():
    with raises(ValueError):
        Tool(plain)(n=1, other=2)


@behaviour
def tool_results():
    R = dspy.ToolCallResults
    c = [ToolCalls.ToolCall(id="a", name="f", args={}), ToolCalls.ToolCall(id="b", name="g", args={})]
    r = R.from_tool_calls_and_values(c, [1, "x"], [False, True])
    assert [(x.call_id, x.name, x.value, x.is_error) for x in r.tool_call_results] == [
        ("a", "f", 1, False),
        ("b", "g", "x", True),
    ]


@behaviour
def tool_results_of_toolcalls():
    c = ToolCalls.from_dict_list([{"name": "f", "args": {}}])
    assert dspy.ToolCallResults.from_tool_calls_and_values(c, [1]).tool_call_results[0].value == 1


@behaviour
def tool_results_lengths():
    c = [ToolCalls.ToolCall(id="a", name="f", args={})]
    with raises(ValueError):
        dspy.ToolCallResults.from_tool_calls_and_values(c, [])
    with raises(ValueError):
        dspy.ToolCallResults.from_tool_calls_and_values(c, [1], [True, False])


@behaviour
def tool_results_validate():
    R = dspy.ToolCallResults
    a = R.model_validate([{"name": "f", "value": 1}])
    b = R.model_validate({"tool_call_results": [{"name": "f", "value": 1}]})
    assert a.tool_call_results[0].value == b.tool_call_results[0].value == 1 and a.tool_call_results[0].call_id is None


@behaviour
def tool_results_dump():
    c = [ToolCalls.ToolCall(id="a", name="f", args={})]
    r = dspy.ToolCallResults.from_tool_calls_and_values(c, [1])
    assert r.model_dump() == {"tool_call_results": [{"call_id": "a", "name": "f", "value": 1, "is_error": False}]}


@behaviour
def tool_calls_with_results():
    c = ToolCalls.ToolCall(id="a", name="f", args={})
    r = dspy.ToolCallResults.from_tool_calls_and_values([c], [1])
    both = ToolCalls(tool_calls=[c], tool_call_results=r)
    assert both.tool_call_results.tool_call_results[0].value == 1 and both.format() == {
        "tool_calls": [{"name": "f", "args": {}}]
    }


@behaviour
def tool_calls_model_copy():
    c = ToolCalls.from_dict_list([{"name": "f", "args": {}, "id": "a"}])
    r = dspy.ToolCallResults.from_tool_calls_and_values(c, [1])
    assert c.model_copy(update={"tool_call_results": r}).tool_call_results == r


@behaviour
def tool_schema_hides_ids():
    s = json.dumps(pydantic.TypeAdapter(ToolCalls).json_schema())
    assert '"id"' not in s and "tool_call_results" not in s and '"name"' in s and '"args"' in s


@behaviour
def tool_desc_of_calls():
    assert "args" in ToolCalls.description()


@behaviour
def tool_tool_in_type_extraction():
    assert dspy.Type.extract_custom_type_from_annotation(list[dict[str, Tool]]) == [Tool]


@behaviour
def tool_unserializable_value_as_text():
    # arguments a tool gets may be Any
    def f(x: Any):
        return x

    assert Tool(f)(x={"a": 1}) == {"a": 1}


@behaviour
def tool_union_with_model():
    def f(x: M | None = None):
        return x

    assert Tool(f)(x={"second": 1}) in (M(second=1), {"second": 1})


@behaviour
def tool_has_kwargs_attr():
    def fn(x: int, **kw):
        return kw

    assert Tool(fn).has_kwargs is True and Tool(plain).has_kwargs is False


@behaviour
def tool_arg_types_attr():
    assert Tool(plain).arg_types["n"] is int


@behaviour
def tool_lambda_name():
    t = Tool(lambda x: x, name="n")
    assert t.name == "n"


@behaviour
def tool_repr_text():
    assert repr(Tool(plain)).startswith("Tool(name=plain") or "plain" in repr(Tool(plain))
