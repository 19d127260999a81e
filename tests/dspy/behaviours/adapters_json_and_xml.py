"""Behaviours of DSPy: requests and answers of JSONAdapter and XMLAdapter."""

import enum
import json
from typing import Literal

import dspy
import pydantic

from tests.dspy.behaviours.support import Scripted, behaviour, raises, sub

ParseError = sub("utils.exceptions").AdapterParseError

QA = dspy.make_signature("question->answer")

Q = {"question": "Capital?"}


class Ans(pydantic.BaseModel):
    result: str
    analysis: str


def search(query: str, k: int = 3) -> str:
    """Search for documents."""
    return query


class ToolSig(dspy.Signature):
    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    answer: str = dspy.OutputField()
    tool_calls: dspy.ToolCalls = dspy.OutputField()


TI = {"question": "Weather?", "tools": [dspy.Tool(search)]}


@behaviour
def json_parse():
    assert (
        dspy.JSONAdapter().parse(QA, "{'answer': 'Paris'}")
        == {"answer": "Paris"}
        == dspy.JSONAdapter().parse(QA, 'text ```json\n{"answer": "Paris"}\n```')
    )


@behaviour
def json_mismatch():
    with raises(ParseError) as e:
        dspy.JSONAdapter()(Scripted("{'answer1': 'Paris'}"), {}, QA, [], Q)
    assert (
        e.value.adapter_name == "JSONAdapter"
        and e.value.signature == QA
        and e.value.lm_response == "{'answer1': 'Paris'}"
        and e.value.parsed_result == {}
    ), e.value.parsed_result


@behaviour
def json_no_structured():
    lm = Scripted('{"answer": "x"}')
    dspy.JSONAdapter()(lm, {}, QA, [], Q)
    assert "response_format" not in lm.seen[0][1]


@behaviour
def json_structured():
    lm = Scripted('{"answer": "x"}', schema=True, params=["response_format"])
    dspy.JSONAdapter()(lm, {}, QA, [], Q)
    f = lm.seen[0][1]["response_format"]
    assert f and f != {"type": "json_object"}


@behaviour
def json_structured_is_model():
    lm = Scripted('{"answer": "x"}', schema=True, params=["response_format"])
    dspy.JSONAdapter()(lm, {}, QA, [], Q)
    assert issubclass(lm.seen[0][1]["response_format"], pydantic.BaseModel)


@behaviour
def json_object_mode():
    lm = Scripted('{"answer": "x"}', params=["response_format"])
    dspy.JSONAdapter()(lm, {}, QA, [], Q)
    assert lm.seen[0][1]["response_format"] == {"type": "json_object"}


@behaviour
def json_dict_output_object_mode():
    S = dspy.Signature("question -> answer: dict[str, str]")
    lm = Scripted('{"answer": {"a": "b"}}', schema=True, params=["response_format"])
    dspy.JSONAdapter()(lm, {}, S, [], Q)
    assert lm.seen[0][1]["response_format"] == {"type": "json_object"}


@behaviour
def json_toolcalls_text_object_mode():
    lm = Scripted("{'answer': 's', 'tool_calls': {'tool_calls': []}}", schema=True, params=["response_format"])
    dspy.JSONAdapter(use_native_function_calling=False)(lm, {}, ToolSig, [], TI)
    assert lm.seen[0][1]["response_format"] == {"type": "json_object"}


@behaviour
def json_signature_untouched():
    class S(dspy.Signature):
        a: str = dspy.InputField()
        b: str = dspy.OutputField()
        c = dspy.OutputField(desc="x")

    lm = Scripted('{"b": "x", "c": "y"}', schema=True, params=["response_format"])
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        p = dspy.Predict(S)
        p(a="q")
    assert p.signature.output_fields == S.output_fields and p.signature.equals(S)


@behaviour
def json_model_both():
    class User(pydantic.BaseModel):
        id: int
        name: str

    class S(dspy.Signature):
        user: User = dspy.InputField(desc="The user")
        question: str = dspy.InputField()
        answer: Ans = dspy.OutputField(desc="The answer")

    lm = Scripted("{'answer': {'analysis': 'A', 'result': 'Paris'}}")
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        r = dspy.Predict(S)(user={"id": 5, "name": "n"}, question="Q?")
    m = lm.seen[0][0]
    assert (
        len(m) == 2
        and "1. `user` (User): The user" in m[0]["content"]
        and '"name": "n"' in m[1]["content"].replace('"name":"n"', '"name": "n"')
        and r.answer.result == "Paris"
    )


@behaviour
async def json_model_async():
    with dspy.context(lm=Scripted("{'answer': {'analysis': 'A', 'result': 'Paris'}}"), adapter=dspy.JSONAdapter()):
        assert (
            await dspy.Predict(dspy.Signature("question -> answer: Ans", custom_types={"Ans": Ans})).acall(question="q")
        ).answer.result == "Paris"


@behaviour
def json_lm_error():
    lm = Scripted(RuntimeError("Structured failed!"), schema=True, params=["response_format"])
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()), raises(Exception, match="Structured failed"):
        dspy.Predict(QA)(question="x")
    assert len(lm.seen) == 1


@behaviour
def json_history():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        answer: str = dspy.OutputField()

    m = dspy.JSONAdapter().format(
        S,
        [],
        {
            "question": "F?",
            "history": dspy.History(
                messages=[{"question": "F?", "answer": "Paris"}, {"question": "G?", "answer": "B"}]
            ),
        },
    )
    assert (
        len(m) == 6
        and m[1]["content"] == "[[ ## question ## ]]\nF?"
        and json.loads(m[2]["content"]) == {"answer": "Paris"}
    )


@behaviour
def json_history_indent():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        answer: str = dspy.OutputField()

    m = dspy.JSONAdapter().format(
        S, [], {"question": "F?", "history": dspy.History(messages=[{"question": "F?", "answer": "Paris"}])}
    )
    assert m[2]["content"] == '{\n  "answer": "Paris"\n}'


@behaviour
def json_enum_literal():
    class L(enum.Enum):
        P = "positive"

    class S(dspy.Signature):
        t: str = dspy.InputField()
        d: Literal["a", "r"] = dspy.OutputField()
        l: L = dspy.OutputField()

    assert dspy.JSONAdapter().parse(S, '{"d": "a", "l": "positive"}') == {"d": "a", "l": L.P}


@behaviour
def json_missing_field():
    with raises(ParseError):
        dspy.JSONAdapter().parse(dspy.Signature("q -> a, b"), '{"a": "x"}')


@behaviour
def json_system_message():
    t = dspy.JSONAdapter().format_system_message(dspy.Signature("question -> answers: list[str]", "Do it."))
    assert "Do it." in t and "`answers` (list[str])" in t and "JSON" in t


fwn = lambda: sub("adapters.chat_adapter").FieldInfoWithName


def xml_value(S, **values):
    F = fwn()
    return dspy.XMLAdapter().format_field_with_value({F(name=k, info=S.output_fields[k]): v for k, v in values.items()})


@behaviour
def xml_format_value():
    assert xml_value(QA, answer="Paris").strip() == "<answer>\nParis\n</answer>"


@behaviour
def xml_parse():
    assert dspy.XMLAdapter().parse(QA, "<answer>Paris</answer>") == {"answer": "Paris"}


@behaviour
def xml_parse_many():
    assert dspy.XMLAdapter().parse(dspy.Signature("q -> a, b"), "\n<a>Paris</a>\n<b>Because.</b>\n") == {
        "a": "Paris",
        "b": "Because.",
    }


@behaviour
def xml_missing():
    with raises(ParseError) as e:
        dspy.XMLAdapter().parse(dspy.Signature("q -> answer, explanation"), "<answer>Paris</answer>")
    assert (
        e.value.adapter_name == "XMLAdapter"
        and e.value.lm_response == "<answer>Paris</answer>"
        and "explanation" in str(e.value)
    )


@behaviour
def xml_casts():
    assert dspy.XMLAdapter().parse(
        dspy.Signature("q -> number: int, flag: bool"), "<number>42</number>\n<flag>true</flag>"
    ) == {"number": 42, "flag": True}


@behaviour
def xml_bad_type():
    with raises(ParseError):
        dspy.XMLAdapter().parse(dspy.Signature("q -> number: int"), "<number>not_a_number</number>")


class Inner(pydantic.BaseModel):
    value: int
    label: str


@behaviour
def xml_model():
    S = dspy.Signature("q -> result: Inner", custom_types={"Inner": Inner})
    assert dspy.XMLAdapter().parse(S, '<result>{"value": 5, "label": "foo"}</result>')["result"] == Inner(
        value=5, label="foo"
    )


@behaviour
def xml_model_nested_tags():
    S = dspy.Signature("q -> result: Inner", custom_types={"Inner": Inner})
    assert dspy.XMLAdapter().parse(S, "<result><value>5</value><label>foo</label></result>")["result"] == Inner(
        value=5, label="foo"
    )


@behaviour
def xml_list_models():
    S = dspy.Signature("q -> items: list[Inner]", custom_types={"Inner": Inner})
    r = dspy.XMLAdapter().parse(S, '<items>[{"value": 5, "label": "foo"}]</items>')["items"]
    assert r == [Inner(value=5, label="foo")]


@behaviour
def xml_tool_like():
    class TCx(pydantic.BaseModel):
        name: str
        args: dict
        result: str

    class S(dspy.Signature):
        q: str = dspy.InputField()
        tool_calls: list[TCx] = dspy.OutputField()
        answer: str = dspy.OutputField()

    r = dspy.XMLAdapter().parse(
        S, '<tool_calls>[{"name": "g", "args": {"c": "T"}, "result": "s"}]</tool_calls>\n<answer>Sunny.</answer>'
    )
    assert r["tool_calls"][0].name == "g" and r["answer"] == "Sunny."


@behaviour
def xml_format_model():
    x = xml_value(
        dspy.Signature("q -> result: Inner", custom_types={"Inner": Inner}), result=Inner(value=5, label="foo")
    )
    assert x.strip().startswith("<result>") and x.strip().endswith("</result>") and "5" in x and "foo" in x


@behaviour
def xml_prompt():
    m = dspy.XMLAdapter().format(
        dspy.Signature("query, context: str | None -> answer"), [], {"query": "when", "context": None}
    )
    assert (
        len(m) == 2 and "<answer>" in m[0]["content"] and "when" in m[1]["content"] and "`<answer>`" in m[1]["content"]
    )


@behaviour
def xml_prompt_missing_input():
    m = dspy.XMLAdapter().format(dspy.Signature("query, context: str | None -> answer"), [], {"query": "when"})
    assert len(m) == 2 and "when" in m[1]["content"]


@behaviour
def xml_escapes():
    assert dspy.XMLAdapter().parse(QA, "<answer>a < b && c</answer>")["answer"] == "a < b && c"


@behaviour
def xml_demos():
    m = dspy.XMLAdapter().format(QA, [{"question": "1", "answer": "2"}], Q)
    assert "<answer>" in m[2]["content"] and "2" in m[2]["content"]
