"""Behaviours of DSPy: requests and answers of ChatAdapter and TwoStepAdapter."""

from typing import Literal

import dspy
import pydantic

from tests.dspy.behaviours.support import Scripted, behaviour, raises, sub

ParseError = sub("utils.exceptions").AdapterParseError

QA = dspy.make_signature("question->answer")

Q = {"question": "Capital?"}

for i, (lit, text) in enumerate(
    [
        (Literal["four", "five", 'six"'], 'six"'),
        (Literal["done", "maybe'soon"], "maybe'soon"),
        (Literal[True, 3, "foo"], "True"),
    ]
):

    def s(lit=lit, text=text):
        class S(dspy.Signature):
            q: str = dspy.InputField()
            a: lit = dspy.OutputField()

        assert text in dspy.ChatAdapter().format(S, [], {"q": "x"})[0]["content"]

    s.__name__ = f"chat_literal_{i}"
    behaviour(s)


@behaviour
def chat_literal_python_form():
    class S(dspy.Signature):
        q: Literal["one", 'three"'] = dspy.InputField()
        a: Literal["four", "five"] = dspy.OutputField()

    c = dspy.ChatAdapter().format(S, [], {"q": "one"})[0]["content"]
    assert "Literal['four', 'five']" in c


class Dog(pydantic.BaseModel):
    breeds: list[str]
    num: int = pydantic.Field(ge=0)


class Owner(pydantic.BaseModel):
    name: str
    dogs: Dog


class Ans(pydantic.BaseModel):
    result: str
    analysis: str


@behaviour
def chat_models():
    class S(dspy.Signature):
        owner: Owner = dspy.InputField()
        question: str = dspy.InputField()
        output: Ans = dspy.OutputField()

    m = dspy.ChatAdapter().format(
        S, [], {"owner": Owner(name="J", dogs=Dog(breeds=["lab"], num=1)), "question": "How many?"}
    )
    assert (
        "1. `owner` (Owner)" in m[0]["content"]
        and "2. `question` (str)" in m[0]["content"]
        and "1. `output` (Ans)" in m[0]["content"]
    )
    assert all(t in m[1]["content"] for t in ("name", "breeds", "num", "How many?"))


@behaviour
def chat_field_information():
    class S(dspy.Signature):
        input1: str = dspy.InputField(desc="S in")
        input2: int = dspy.InputField()
        output: str = dspy.OutputField(desc="S out")

    m = dspy.ChatAdapter().format(S, [], {"input1": "T", "input2": 11})
    assert [x["role"] for x in m] == ["system", "user"]
    s, u = m[0]["content"], m[1]["content"]
    assert (
        "1. `input1` (str)" in s
        and "1. `output` (str)" in s
        and "S in" in s
        and "S out" in s
        and "[[ ## output ## ]]\n{output}" in s
        and "[[ ## completed ## ]]" in s
    )
    assert (
        "[[ ## input1 ## ]]" in u
        and "[[ ## input2 ## ]]" in u
        and "[[ ## output ## ]]" in u
        and "[[ ## completed ## ]]" in u
    )


@behaviour
def chat_input_structure():
    class S(dspy.Signature):
        input1: str = dspy.InputField()
        output: str = dspy.OutputField()

    s = dspy.ChatAdapter().format(S, [], {"input1": "T"})[0]["content"]
    assert "[[ ## input1 ## ]]\n{input1}" in s


@behaviour
def chat_parse_error():
    with raises(ParseError, match="ChatAdapter") as e:
        dspy.ChatAdapter().parse(QA, "{'output':'mismatched value'}")


@behaviour
def chat_parse_error_text():
    with raises(ParseError, match="Adapter ChatAdapter failed to parse") as e:
        dspy.ChatAdapter().parse(QA, "{'output':'mismatched value'}")


@behaviour
def chat_parse_ok():
    assert dspy.ChatAdapter().parse(QA, "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]") == {"answer": "Paris"}


@behaviour
def chat_history():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        answer: str = dspy.OutputField()

    h = dspy.History(messages=[{"question": "F?", "answer": "Paris"}, {"question": "G?", "answer": "Berlin"}])
    m = dspy.ChatAdapter().format(S, [], {"question": "F?", "history": h})
    assert len(m) == 6
    assert (
        m[1]["content"] == "[[ ## question ## ]]\nF?"
        and m[2]["content"].strip() == "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]"
    )


@behaviour
def chat_history_newline():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        answer: str = dspy.OutputField()

    m = dspy.ChatAdapter().format(
        S, [], {"question": "F?", "history": dspy.History(messages=[{"question": "F?", "answer": "Paris"}])}
    )
    assert m[2]["content"] == "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]\n"


@behaviour
def chat_demo_completed():
    m = dspy.ChatAdapter().format(QA, [{"question": "Q1", "answer": "A1"}], Q)
    assert len(m) == 4 and "[[ ## completed ## ]]" in m[2]["content"] and "A1" in m[2]["content"]


@behaviour
def chat_incomplete_demo():
    m = dspy.ChatAdapter().format(
        dspy.Signature("question, context -> answer, confidence: float"),
        [{"question": "Q1", "answer": "A1"}],
        {"question": "Q2", "context": "C"},
    )
    assert len(m) == 4 and "A1" in m[2]["content"] and "Q1" in m[1]["content"]


@behaviour
def chat_incomplete_demo_mark():
    m = dspy.ChatAdapter().format(
        dspy.Signature("question, context -> answer, confidence: float"),
        [{"question": "Q1", "answer": "A1"}],
        {"question": "Q2", "context": "C"},
    )
    assert "Not supplied" in m[2]["content"] and "some input or output fields are not" in m[1]["content"]


@behaviour
def chat_list_as_text():
    m = dspy.ChatAdapter().format(dspy.Signature("context -> answer"), [], {"context": ["alpha", "beta"]})
    assert "alpha" in m[1]["content"] and "beta" in m[1]["content"]


@behaviour
def chat_list_as_text_numbered():
    m = dspy.ChatAdapter().format(dspy.Signature("context -> answer"), [], {"context": ["alpha", "beta"]})
    assert "[1] «alpha»\n[2] «beta»" in m[1]["content"]


@behaviour
def chat_json_fallback():
    lm = Scripted("{'answer': 'Paris'}")
    assert dspy.ChatAdapter()(lm, {}, QA, [], Q) == [{"answer": "Paris"}]


@behaviour
async def chat_json_fallback_async():
    lm = Scripted("{'answer': 'Paris'}")
    assert await dspy.ChatAdapter().acall(lm, {}, QA, [], Q) == [{"answer": "Paris"}]


@behaviour
def chat_no_fallback_flag():
    with raises(ParseError):
        dspy.ChatAdapter(use_json_adapter_fallback=False)(Scripted("nonsense"), {}, QA, [], Q)


@behaviour
def chat_no_fallback_calls():
    lm = Scripted("nonsense")
    with raises(ParseError):
        dspy.ChatAdapter(use_json_adapter_fallback=False)(lm, {}, QA, [], Q)
    assert len(lm.seen) == 1


@behaviour
def chat_fallback_second_request():
    lm = Scripted("nonsense", '{"answer": "Paris"}')
    assert dspy.ChatAdapter()(lm, {}, QA, [], Q) == [{"answer": "Paris"}] and len(lm.seen) == 2


@behaviour
def chat_both_fail():
    with raises(ParseError):
        dspy.ChatAdapter()(Scripted("nonsense"), {}, QA, [], Q)


@behaviour
def chat_both_fail_chained():
    with raises(ParseError) as e:
        dspy.ChatAdapter()(Scripted("nonsense"), {}, QA, [], Q)
    assert e.value.adapter_name == "JSONAdapter" and e.value.__cause__.adapter_name == "ChatAdapter"


@behaviour
def chat_bug_not_retried():
    class Bad(dspy.ChatAdapter):
        def parse(self, signature, completion):
            raise RuntimeError("bug in parse")

    lm = Scripted("[[ ## answer ## ]]\nParis")
    with raises(RuntimeError, match="bug in parse"):
        Bad()(lm, {}, QA, [], Q)
    assert len(lm.seen) == 1


@behaviour
async def chat_bug_not_retried_async():
    class Bad(dspy.ChatAdapter):
        def parse(self, signature, completion):
            raise RuntimeError("bug in parse")

    lm = Scripted("[[ ## answer ## ]]\nParis")
    with raises(RuntimeError, match="bug in parse"):
        await Bad().acall(lm, {}, QA, [], Q)


@behaviour
def chat_null_content():
    with dspy.context(lm=Scripted(None)), raises(ParseError):
        dspy.ChainOfThought("question -> answer")(question="t")


@behaviour
def chat_empty_content():
    with dspy.context(lm=Scripted("")), raises(ParseError):
        dspy.ChainOfThought("question -> answer")(question="t")


@behaviour
def chat_float_underscores():
    class Sc(pydantic.BaseModel):
        score: float

    class S(dspy.Signature):
        question: str = dspy.InputField()
        score: Sc = dspy.OutputField()

    assert (
        dspy.ChatAdapter()(Scripted("[[ ## score ## ]]\n{'score': 123_456.789}\n[[ ## completed ## ]]"), {}, S, [], Q)[
            0
        ]["score"].score
        == 123456.789
    )


@behaviour
def chat_custom_history_hook():
    class H(dspy.ChatAdapter):
        def format_conversation_history(self, signature, history_field_name, inputs):
            del inputs[history_field_name]
            return [{"role": "user", "content": "custom history"}]

    class S(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        answer: str = dspy.OutputField()

    m = H().format(S, [], {"question": "Q2", "history": dspy.History(messages=[{"question": "Q1"}])})
    assert m[1] == {"role": "user", "content": "custom history"} and "Q2" in m[2]["content"]


@behaviour
def chat_system_message():
    t = dspy.ChatAdapter().format_system_message(dspy.Signature("question -> answers: list[str]", "Do it."))
    assert "Do it." in t and "`question` (str)" in t and "`answers` (list[str])" in t and "[[ ## answers ## ]]" in t


@behaviour
def chat_format_does_not_change_inputs():
    h = dspy.History(messages=[{"question": "Q1", "answer": "x"}])
    i = {"question": "q", "history": h}

    class S(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        answer: str = dspy.OutputField()

    dspy.ChatAdapter().format(S, [], i)
    assert i["history"] is h


@behaviour
def chat_extra_outputs_ignored():
    assert dspy.ChatAdapter().parse(QA, "[[ ## other ## ]]\nx\n\n[[ ## answer ## ]]\nParis") == {"answer": "Paris"}


@behaviour
def chat_parse_error_fields():
    with raises(ParseError) as e:
        dspy.ChatAdapter().parse(QA, "junk")
    assert e.value.adapter_name == "ChatAdapter" and e.value.signature is QA and e.value.lm_response == "junk"


class Two(dspy.Signature):
    question: str = dspy.InputField(desc="math")
    solution: str = dspy.OutputField(desc="Step by step solution")
    answer: float = dspy.OutputField(desc="number")


@behaviour
def two_call():
    main, ext = Scripted("text from main LM"), Scripted('{"solution": "s", "answer": "12"}')
    ad = dspy.TwoStepAdapter(extraction_model=ext)
    with dspy.context(lm=main, adapter=ad):
        r = dspy.Predict(Two)(question="What is 5 + 7?")
    assert r.answer == 12 and len(main.seen) == 1
    m = main.seen[0][0]
    assert (
        len(m) == 2
        and "`question` (str)" in m[0]["content"]
        and "`answer` (float)" in m[0]["content"]
        and "What is 5 + 7?" in m[1]["content"]
        and "question" in m[1]["content"].lower()
    )
    e = ext.seen[0][0]
    assert (
        len(e) == 2
        and "`text` (str)" in e[0]["content"]
        and "`solution` (str)" in e[0]["content"]
        and "text from main LM" in e[1]["content"]
    )


@behaviour
async def two_async():
    main, ext = Scripted("text from main LM"), Scripted('{"solution": "s", "answer": "12"}')
    with dspy.context(lm=main, adapter=dspy.TwoStepAdapter(ext)):
        assert (await dspy.Predict(Two).acall(question="x")).answer == 12


@behaviour
def two_parse():
    S = dspy.Signature("input_text -> tags: list[str], confidence: float")
    ext = Scripted('\n {"tags": ["AI", "DL"], "confidence": 0.87}   \n')
    with dspy.context(lm=ext):
        assert dspy.TwoStepAdapter(ext).parse(S, "main text") == {"tags": ["AI", "DL"], "confidence": 0.87}


@behaviour
def two_parse_error():
    with raises(ValueError):
        dspy.TwoStepAdapter(Scripted("{invalid json}")).parse(QA, "main")


@behaviour
def two_needs_lm():
    with raises(ValueError):
        dspy.TwoStepAdapter("model")


@behaviour
def two_adapter_call():
    r = dspy.TwoStepAdapter(Scripted('{"answer": "x"}'))(Scripted("main"), {}, QA, [], Q)
    assert r == [{"answer": "x"}]
