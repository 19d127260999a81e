"""Behaviours of DSPy: citations, documents, reasoning, code and types of a user."""

import inspect as insp
import json
from typing import Literal, Optional, Union

import dspy
import pydantic
from dspy.utils import DummyLM

from tests.dspy.behaviours.support import Scripted, behaviour, count_parts, message, raises, sub, text_of

Type = dspy.Type

ex = sub("experimental")

Citations, Document = ex.Citations, ex.Document


@behaviour
def type_extract_direct():
    class Ev(Type):
        name: str

    class S(dspy.Signature):
        a: str = dspy.InputField()
        e: Ev = dspy.OutputField()
        es: list[Ev] = dspy.OutputField()

    f = Type.extract_custom_type_from_annotation
    assert f(S.output_fields["e"].annotation) == [Ev] == f(S.output_fields["es"].annotation) and f(str) == []


@behaviour
def type_extract_nested():
    class Ev(Type):
        name: str

    class Id(Type):
        model_config = pydantic.ConfigDict(frozen=True)
        i: str

    assert Type.extract_custom_type_from_annotation(list[dict[Id, Ev]]) == [Id, Ev]


START, END = "<<CUSTOM-TYPE-START-IDENTIFIER>>", "<<CUSTOM-TYPE-END-IDENTIFIER>>"


@behaviour
def type_split():
    f = sub("adapters.types.base_type").split_message_content_for_custom_types
    block = {"type": "document", "title": "D0"}
    m = [{"role": "user", "content": f"before {START}{json.dumps([block])}{END} after"}]
    r = f(m)[0]["content"]
    assert r == [{"type": "text", "text": "before "}, block, {"type": "text", "text": " after"}]


@behaviour
def type_split_dirty():
    f = sub("adapters.types.base_type").split_message_content_for_custom_types
    m = [
        {
            "role": "user",
            "content": f"""["{START}[{{'type': 'document', 'title': "D0"}}]{END}", "{START}[{{'type': 'document', 'title': "D1"}}]{END}"]""",
        }
    ]
    r = [p for p in f(m)[0]["content"] if p["type"] == "document"]
    assert [p["title"] for p in r] == ["D0", "D1"]


@behaviour
def type_custom_blocks_in_message():
    class Ev(Type):
        label: str

        def format(self):
            return [{"type": "event", "event": {"label": self.label}}]

    class S(dspy.Signature):
        e: Ev = dspy.InputField()
        a: str = dspy.OutputField()

    m = dspy.ChatAdapter().format(S, [], {"e": Ev(label="x")})
    assert {"type": "event", "event": {"label": "x"}} in m[-1]["content"]


@behaviour
def type_custom_text_in_message():
    class Ev(Type):
        label: str

        def format(self):
            return f"<event {self.label}>"

    class S(dspy.Signature):
        e: Ev = dspy.InputField()
        a: str = dspy.OutputField()

    m = dspy.ChatAdapter().format(S, [], {"e": Ev(label="x")})
    assert "<event x>" in text_of(m[-1]["content"])


@behaviour
def type_custom_description():
    class Ev(Type):
        label: str

        def format(self):
            return self.label

        @classmethod
        def description(cls):
            return "An event mark."

    class S(dspy.Signature):
        e: list[Ev] = dspy.InputField()
        a: str = dspy.OutputField()

    m = dspy.ChatAdapter().format(S, [], {"e": [Ev(label="x")]})
    assert "An event mark." in m[0]["content"]


@behaviour
def type_schema_docstring_stripped():
    class Doc(Type):
        """Developer text."""

        v: str

        def format(self):
            return self.v

    class S(dspy.Signature):
        q: str = dspy.InputField()
        a: Doc = dspy.OutputField()

    assert "Developer text" not in dspy.ChatAdapter().format(S, [], {"q": "x"})[0]["content"]


C1 = {"cited_text": "The sky is blue", "document_index": 0, "start_char_index": 0, "end_char_index": 15}


@behaviour
def citations_from_dicts():
    c = Citations.from_dict_list([{**C1, "document_title": "G", "supported_text": "s"}])
    assert (
        len(c.citations) == 1
        and c[0].cited_text == "The sky is blue"
        and c[0].document_title == "G"
        and c[0].end_char_index == 15
        and c[0].type == "char_location"
        and c[0].supported_text == "s"
    )


@behaviour
def citations_validate():
    a = Citations(citations=[Citations.Citation(**C1)])
    b = Citations.from_dict_list([C1])
    assert len(a.citations) == len(b) == 1 and a == b


@behaviour
def citations_format():
    f = Citations.from_dict_list([C1]).format()
    assert (
        isinstance(f, list)
        and f[0]["type"] == "char_location"
        and f[0]["cited_text"] == "The sky is blue"
        and f[0]["end_char_index"] == 15
        and "document_title" not in f[0]
    )


@behaviour
def citations_iter():
    c = Citations.from_dict_list([C1, {**C1, "cited_text": "x"}])
    assert len(c) == 2 and [x.cited_text for x in c] == ["The sky is blue", "x"]


@behaviour
def citations_field():
    class S(dspy.Signature):
        q: str = dspy.InputField()
        a: str = dspy.OutputField()
        c: Citations = dspy.OutputField()

    assert S.output_fields["c"].annotation == Citations


@behaviour
def citations_parse_lm():
    r = Citations.parse_lm_response({"text": "b", "citations": [C1]})
    assert (
        isinstance(r, Citations)
        and r[0].cited_text == "The sky is blue"
        and Citations.parse_lm_response({"text": "b"}) is None
    )


@behaviour
def citations_description():
    assert "citation" in Citations.description().lower()


@behaviour
def citations_streamable():
    assert Citations.is_streamable() is True and Type.is_streamable() is False


@behaviour
def citations_adapt():
    S = dspy.Signature("q -> a, c: Citations", custom_types={"Citations": Citations})
    lm = Scripted("x", model="anthropic/claude-3-5-sonnet")
    out = Citations.adapt_to_native_lm_feature(S, "c", lm, {})
    assert "c" not in out.output_fields
    assert "c" in Citations.adapt_to_native_lm_feature(S, "c", Scripted("x"), {}).output_fields


@behaviour
def citations_output():
    class S(dspy.Signature):
        q: str = dspy.InputField()
        a: str = dspy.OutputField()
        c: Citations = dspy.OutputField()

    with dspy.context(lm=DummyLM([{"a": "x", "c": [C1]}])):
        assert dspy.Predict(S)(q="q").c[0].cited_text == "The sky is blue"


@behaviour
def citations_kept_schema():
    class S(dspy.Signature):
        q: str = dspy.InputField()
        c: Citations = dspy.OutputField()

    t = dspy.ChatAdapter().format(S, [], {"q": "x"})[0]["content"]
    assert "cited_text" in t and "schema" in t.lower() and Citations.description() in t


@behaviour
def document_validate():
    assert Document(data="x").data == "x"
    with raises(pydantic.ValidationError):
        Document(data=123)


@behaviour
def document_nested():
    class W(pydantic.BaseModel):
        document: Document

    assert W(document=Document(data="x")).document.data == "x"


@behaviour
def document_all():
    d = Document(data="x", title="t", media_type="application/pdf", context="c")
    assert (d.title, d.media_type, d.context) == ("t", "application/pdf", "c")


@behaviour
def document_format():
    f = Document(data="x", title="t", media_type="text/plain").format()[0]
    assert (
        f["type"] == "document"
        and f["source"] == {"type": "text", "media_type": "text/plain", "data": "x"}
        and f["title"] == "t"
        and f["citations"]["enabled"] is True
    )


@behaviour
def document_in_prompt():
    class S(dspy.Signature):
        d: Document = dspy.InputField()
        a: str = dspy.OutputField()

    m = dspy.ChatAdapter().format(S, [], {"d": Document(data="x")})
    assert {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "x"},
        "citations": {"enabled": True},
    } in m[-1]["content"]


@behaviour
def document_list_in_prompt():
    class S(dspy.Signature):
        d: list[Document] = dspy.InputField()
        a: str = dspy.OutputField()

    m = dspy.ChatAdapter().format(S, [], {"d": [Document(data="x"), Document(data="y")]})
    assert count_parts(m[-1]["content"], "document") == 2


@behaviour
def document_wrapped_json():
    class W(pydantic.BaseModel):
        documents: list[Document]

    class S(dspy.Signature):
        d: W = dspy.InputField()
        a: str = dspy.OutputField()

    m = dspy.JSONAdapter().format(S, [], {"d": W(documents=[Document(data="x"), Document(data="y")])})
    assert count_parts(m[-1]["content"], "document") == 2


@behaviour
def document_str():
    assert "chars" in str(Document(data="abc", title="t"))


@behaviour
def document_description():
    assert Document.description()


R = dspy.Reasoning


@behaviour
def reasoning_basic():
    r = R(content="Hello World")
    assert (
        str(r) == "Hello World"
        and r == "Hello World"
        and r == R(content="Hello World")
        and r != "hello"
        and len(r) == 11
        and r[0] == "H"
        and r[0:5] == "Hello"
        and "World" in r
        and len(list(r)) == 11
    )


@behaviour
def reasoning_repr():
    assert repr(R(content="Hello")) == "'Hello'"


@behaviour
def reasoning_concat():
    r = R(content="Hello")
    a = r + " World"
    b = "P: " + r
    c = r + R(content=" W")
    assert a == "Hello World" and b == "P: Hello" and c == "Hello W" and isinstance(c, R) and c.content == "Hello W"


@behaviour
def reasoning_methods():
    r = R(content="  Hello World  ")
    assert (
        r.strip() == "Hello World"
        and r.lower() == "  hello world  "
        and r.strip().split() == ["Hello", "World"]
        and r.replace("World", "P") == "  Hello P  "
        and r.find("World") == 8
        and r.count("l") == 3
        and r.strip().join(["a", "b"]) == "aHello Worldb"
    )


@behaviour
def reasoning_cot():
    with dspy.context(lm=DummyLM([{"reasoning": "Step by step", "answer": "42"}])):
        x = dspy.ChainOfThought("question -> answer")(question="?").reasoning
    assert isinstance(x, str) and x.lower() == "step by step" and len(x) == 12


@behaviour
def reasoning_missing():
    with raises(AttributeError):
        R(content="x").nonexistent_method


@behaviour
def reasoning_validate():
    assert R.model_validate("x").content == "x" and R.model_validate({"content": "x"}).content == "x"
    with raises(ValueError):
        R.model_validate({"other": 1})


@behaviour
def reasoning_parse():
    assert R.parse_lm_response({"reasoning_content": "t"}) == "t" and R.parse_lm_response({"text": "x"}) is None


@behaviour
def reasoning_field_text():
    class S(dspy.Signature):
        q: str = dspy.InputField()
        t: dspy.Reasoning = dspy.OutputField()
        a: str = dspy.OutputField()

    with dspy.context(lm=DummyLM([{"t": "think", "a": "x"}])):
        p = dspy.Predict(S)(q="?")
    assert p.t == "think" and isinstance(p.t, R) and p.t.content == "think"


@behaviour
def reasoning_native():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        reasoning: dspy.Reasoning = dspy.OutputField()
        answer: str = dspy.OutputField()

    for ad, text in [
        (dspy.ChatAdapter(), "[[ ## answer ## ]]\nParis\n[[ ## completed ## ]]"),
        (dspy.JSONAdapter(), "{'answer': 'Paris'}"),
    ]:
        lm = Scripted(message(text, reasoning="Thought."), reasons=True, model="anthropic/claude-3-7-sonnet")
        r = ad(lm, {}, S, [], {"question": "?"})
        assert r[0]["reasoning"] == R(content="Thought.") and r[0]["answer"] == "Paris", r


@behaviour
def reasoning_native_effort():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        reasoning: dspy.Reasoning = dspy.OutputField()
        answer: str = dspy.OutputField()

    lm = Scripted(
        message("[[ ## answer ## ]]\nParis", reasoning="Thought."), reasons=True, model="anthropic/claude-3-7-sonnet"
    )
    dspy.ChatAdapter()(lm, {}, S, [], {"question": "?"})
    assert lm.seen[0][1].get("reasoning_effort") == "low"


@behaviour
def reasoning_native_off():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        reasoning: dspy.Reasoning = dspy.OutputField()
        answer: str = dspy.OutputField()

    lm = Scripted("[[ ## reasoning ## ]]\nR\n\n[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]", reasons=False)
    r = dspy.ChatAdapter()(lm, {}, S, [], {"question": "?"})
    assert r[0]["reasoning"] == "R"


Code = dspy.Code


@behaviour
def code_valid():
    assert Code["python"](code="print(1)").code == "print(1)"
    with raises(ValueError):
        Code["python"](code=123)
    src = insp.getsource(text_of)
    assert Code["python"](code=src).code == src


@behaviour
def code_nested():
    class W(pydantic.BaseModel):
        code: dspy.Code

    assert W(code=Code(code="x")).code.code == "x"


@behaviour
def code_language():
    j = Code["java"](code="S;")
    assert j.code == "S;" and j.language == "java"


@behaviour
def code_language_desc():
    assert "java" in Code["java"].description() and "java" in Code["java"](code="x").description()


@behaviour
def code_dirty():
    assert (
        Code(code="```python\nprint('H')```").code == "print('H')"
        and Code(code="\nThe code:\n```python\nprint('H')\n```\n\nBecause.\n").code == "print('H')"
    )


@behaviour
def code_plain_string():
    assert pydantic.TypeAdapter(Code).validate_python("x = 1").code == "x = 1"


@behaviour
def code_model_validate():
    assert Code.model_validate("```\nx\n```").code == "x"


@behaviour
def code_prompt():
    for ad in (dspy.ChatAdapter(), dspy.JSONAdapter(), dspy.XMLAdapter()):

        class S(dspy.Signature):
            code: dspy.Code = dspy.InputField()
            r: str = dspy.OutputField()

        m = ad.format(S, [], {"code": "print('H')"})
        assert len(m) == 2 and "print('H')" in text_of(m[1]["content"])


@behaviour
def code_prompt_description():
    for ad in (dspy.ChatAdapter(), dspy.JSONAdapter(), dspy.XMLAdapter()):

        class S(dspy.Signature):
            code: dspy.Code = dspy.InputField()
            r: str = dspy.OutputField()

        assert Code.description() in ad.format(S, [], {"code": "print('H')"})[0]["content"]


@behaviour
def code_output():
    class S(dspy.Signature):
        q: str = dspy.InputField()
        code: dspy.Code = dspy.OutputField()

    for ad, t in [
        (dspy.ChatAdapter(), '[[ ## code ## ]]\nprint("H")'),
        (dspy.JSONAdapter(), "{'code': 'print(\"H\")'}"),
        (dspy.XMLAdapter(), '<code>print("H")</code>'),
        (
            dspy.BAMLAdapter() if hasattr(dspy, "BAMLAdapter") else sub("adapters.baml_adapter").BAMLAdapter(),
            '{"code": "print(\\"H\\")"}',
        ),
    ]:
        assert ad(Scripted(t), {}, S, [], {"q": "?"})[0]["code"].code == 'print("H")'


@behaviour
def code_no_schema():
    class S(dspy.Signature):
        q: str = dspy.InputField()
        code: dspy.Code = dspy.OutputField()

    t = dspy.ChatAdapter().format(S, [], {"q": "?"})[0]["content"]
    assert "JSON schema" not in t and '"properties"' not in t


@behaviour
def code_list():
    class S(dspy.Signature):
        q: str = dspy.InputField()
        s: list[dspy.Code] = dspy.OutputField()

    t = dspy.ChatAdapter().format(S, [], {"q": "?"})[0]["content"]
    assert "sleepsort" not in t and "Code" in t


pv = sub("adapters.utils").parse_value


class Prof(pydantic.BaseModel):
    name: str
    age: int


@behaviour
def value_str():
    assert [pv(x, str) for x in (123, True, "h", None, [1, 2])] == ["123", "True", "h", "None", "[1, 2]"]


@behaviour
def value_model():
    assert pv('{"name": "J", "age": 3}', Prof) == Prof(name="J", age=3) == pv({"name": "J", "age": 3}, Prof)
    with raises(Exception):
        pv('{"name": "J"}', Prof)


@behaviour
def value_basic():
    assert (
        pv("42", int) == 42 == pv(42, int)
        and pv("3.14", float) == 3.14 == pv(3.14, float)
        and pv("true", bool) is True is pv(True, bool)
        and pv("false", bool) is False
        and pv("[1, 2]", list[int]) == [1, 2] == pv([1, 2], list[int])
    )


@behaviour
def value_literal():
    L = Literal["o1", "o2"]
    assert pv("o1", L) == "o1" == pv("'o1'", L) == pv('"o1"', L)
    with raises(ValueError):
        pv("no", L)


@behaviour
def value_literal_prefix():
    L = Literal["o1", "o2"]
    assert pv("Literal[o1]", L) == "o1" == pv("str[o1]", L)


@behaviour
def value_union():
    assert (
        pv("t", Optional[str]) == "t" == pv("t", str | None)
        and pv(None, Optional[str]) is None
        and pv("f", Union[int, str, None]) == "f" == pv("f", int | str | None)
    )


@behaviour
def value_repair():
    assert pv('{"k": "v"}', dict) == {"k": "v"} == pv("{'k': 'v'}", dict)
    with raises(Exception):
        pv("not json", dict)


@behaviour
def value_enum():
    import enum

    class E(enum.Enum):
        A = "a1"

    assert pv("a1", E) is E.A and pv("A", E) is E.A


@behaviour
def history_messages():
    h = dspy.History(messages=[{"q": "1"}])
    assert (
        h.messages == [{"q": "1"}]
        and dspy.History.model_validate({"messages": [{"q": "1"}]}).messages == [{"q": "1"}]
        and h.model_dump()["messages"] == [{"q": "1"}]
    )


@behaviour
def history_frozen():
    with raises(Exception):
        dspy.History(messages=[]).messages = [1]


@behaviour
def history_predict():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        answer: str = dspy.OutputField()

    lm = DummyLM([{"answer": "x"}])
    with dspy.context(lm=lm):
        dspy.Predict(S)(question="q2", history=dspy.History(messages=[{"question": "q1", "answer": "a1"}]))
    assert [m["role"] for m in lm.history[-1]["messages"]] == ["system", "user", "assistant", "user"]


@behaviour
def history_extra_keys():
    class S(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        answer: str = dspy.OutputField()

    lm = DummyLM([{"answer": "x"}])
    with dspy.context(lm=lm):
        p = dspy.Predict(S)
        o = p(question="q1", history=dspy.History(messages=[]))
        p(question="q2", history=dspy.History(messages=[{"question": "q1", **o}]))
    assert len(lm.history[-1]["messages"]) == 4
