"""Each row of the tables of docs/coming-from-dspy.md has a check here, under the name of the row."""

from __future__ import annotations

import asyncio
import copy
import datetime
import re
import sys
import threading
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.compaction import drop_oldest
from sigwire.dspy import datasets
from sigwire.dspy.missing import INSTEAD
from sigwire.testing import FakeProvider

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "coming-from-dspy.md").read_text(encoding="utf-8")
Check = Callable[[Path], None]
CHECKS: dict[str, Check] = {}
ANSWER = {"answer": "4"}


def rows_of(heading: str) -> list[str]:
    """Return the first cells of the table under a heading, without its head."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| (.+?) \|", section, re.MULTILINE)[1:]


ROWS = [*rows_of("The same"), *rows_of("Different")]


def row(name: str) -> Callable[[Check], Check]:
    def keep(check: Check) -> Check:
        CHECKS[name] = check
        return check

    return keep


def test_each_row_has_one_check_and_each_check_a_row() -> None:
    assert sorted(ROWS) == sorted(CHECKS)


@pytest.mark.parametrize("name", ROWS)
def test_row_of_the_page_holds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with sigwire.context(lm=sigwire.FakeLM(lambda request: ANSWER)):
        CHECKS[name](tmp_path)


@pytest.mark.parametrize("name", INSTEAD)
def test_missing_name_of_dspy_is_on_the_page_and_its_error_has_the_advice(name: str) -> None:
    assert f"`dspy.{name}`" in PAGE
    assert INSTEAD[name] in PAGE
    with pytest.raises(AttributeError, match=re.escape(INSTEAD[name])):
        attrgetter(name)(dspy)


@pytest.mark.parametrize("name", ["AvatarOptimizer", "BootstrapFinetune", "GRPO"])
def test_optimizer_that_the_page_excludes_raises_its_reason(name: str) -> None:
    assert f"`{name}`" in PAGE
    with pytest.raises(sigwire.ConfigurationError, match=f"{name} is not in sigwire"):
        getattr(dspy, name)(metric=len).compile(dspy.Predict("question -> answer"), trainset=[])


# --- the same -------------------------------------------------------------------------------------------------


@row("data")
def _data(folder: Path) -> None:
    (folder / "rows.csv").write_text("question,answer\n2+2?,4\n", encoding="utf-8")
    (example,) = datasets.DataLoader().from_csv(folder / "rows.csv", input_keys=("question",))
    assert datasets.gsm8k.gsm8k_metric(example, dspy.Prediction(answer="It is 4."))
    assert datasets.Dataset(train_size=3).train == []


@row("tutorials")
def _tutorials(_: Path) -> None:
    programs = Path(__file__).parent / "dspy" / "tutorials" / "programs"
    names = {path.stem for path in programs.glob("*.py")}
    assert names == {"classification", "rag", "react", "math_reasoning", "streaming", "saving"}


@row("signatures")
def _signatures(_: Path) -> None:
    text = dspy.Signature("question, k: int -> answer")
    longer = text.with_instructions("Be brief.").append("score", dspy.OutputField(), float)
    longer = longer.insert(0, "topic", dspy.InputField(), str).delete("k")
    assert list(longer.input_fields) == ["topic", "question"]
    assert list(longer.output_fields) == ["answer", "score"]
    assert text.signature == "question, k -> answer"


@row("predictors")
def _predictors(_: Path) -> None:
    predict = dspy.Predict("question -> answer", temperature=0.2)
    predict.demos = [dspy.Example(question="1+1?", answer="2")]
    predict.lm = dspy.DummyLM([ANSWER])
    assert predict(question="2+2?", config={"temperature": 0.0}).answer == "4"
    think = dspy.ChainOfThought("question -> answer")
    think.set_lm(dspy.DummyLM([{"reasoning": "Two and two.", "answer": "4"}]))
    assert think(question="2+2?").reasoning == "Two and two."


class Twice(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ask = dspy.Predict("question -> answer")

    def forward(self, question: str) -> Any:
        return self.ask(question=question)


@row("programs")
def _programs(_: Path) -> None:
    program = Twice()
    program.set_lm(sigwire.FakeLM(lambda request: ANSWER))
    assert [name for name, _ in program.named_predictors()] == ["ask"]
    assert asyncio.run(program.acall(question="2+2?")).answer == "4"
    assert copy.deepcopy(program)(question="2+2?").answer == "4"
    assert [each.answer for each in program.batch([dspy.Example(question="a").with_inputs("question")] * 2)] == [
        "4"
    ] * 2


@row("records")
def _records(_: Path) -> None:
    example = dspy.Example(question="2+2?", answer="4").with_inputs("question")
    assert (example.inputs().toDict(), example.labels().toDict()) == ({"question": "2+2?"}, {"answer": "4"})
    several = dspy.Predict("question -> answer", n=2, lm=sigwire.FakeLM([ANSWER, ANSWER]))
    assert several(question="2+2?").completions.answer == ["4", "4"]


@row("settings")
def _settings(_: Path) -> None:
    with dspy.context(max_trace_size=7), dspy.track_usage() as tracker:
        dspy.Predict("question -> answer")(question="2+2?")
        assert dspy.settings.max_trace_size == 7
    assert isinstance(tracker.get_total_tokens(), dict)
    assert callable(dspy.configure)
    assert callable(dspy.inspect_history)


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


@row("tools")
def _tools(_: Path) -> None:
    tool = dspy.Tool(func=add, name="plus", desc="Add.", args={"a": {"type": "integer"}})
    assert (tool.name, tool.desc, tool(a=1)) == ("plus", "Add.", 1)
    calls = dspy.ToolCalls.from_dict_list([{"name": "plus", "args": {"a": 1}}])
    assert calls.tool_calls[0].args == {"a": 1}


@row("models")
def _models(_: Path) -> None:
    class Parrot(dspy.BaseLM):
        def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
            return {"choices": [{"message": {"content": "[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]"}}]}

    assert dspy.Predict("question -> answer", lm=Parrot("parrot"))(question="Open?").answer == "yes"
    lm = dspy.LM("openai/gpt-4o", max_tokens=100)
    assert (lm.model, lm.kwargs["max_tokens"]) == ("openai/gpt-4o", 100)
    with FakeProvider(["Hello"]) as provider:
        assert dspy.LM("openai/gpt-5-mini", base_url=provider.url("openai"), api_key="any")("Hi") == ["Hello"]


@row("adapters")
def _adapters(_: Path) -> None:
    signature = dspy.Signature("question -> answer")
    for adapter in (dspy.ChatAdapter(), dspy.JSONAdapter(), dspy.XMLAdapter()):
        assert adapter.format(signature, [], {"question": "2+2?"})
    assert "[[ ## question ## ]]" in dspy.ChatAdapter().format(signature, [], {"question": "2+2?"})[-1]["content"]
    assert dspy.TwoStepAdapter(dspy.DummyLM([ANSWER])) is not None

    class Polite(dspy.ChatAdapter):
        def format_task_description(self, signature: Any) -> str:
            return "Please answer."

    with dspy.context(adapter=Polite(), lm=(lm := sigwire.FakeLM([ANSWER]))):
        dspy.Predict(signature)(question="2+2?")
    assert "Please answer." in lm.requests[0].messages[0].text


def rows_of_numbers(count: int = 4) -> list[dspy.Example]:
    return [dspy.Example(question=f"{n}?", answer="4").with_inputs("question") for n in range(count)]


def exact(example: Any, pred: Any, trace: Any = None) -> bool:
    return bool(example.answer == pred.answer)


@row("evaluation")
def _evaluation(_: Path) -> None:
    evaluate = dspy.Evaluate(
        devset=rows_of_numbers(), metric=exact, num_threads=2, display_progress=False, max_errors=3, failure_score=0.0
    )
    result = evaluate(dspy.Predict("question -> answer"))
    assert result.score == 100.0
    assert [len(triple) for triple in result.results] == [3] * 4


@row("optimizers")
def _optimizers(_: Path) -> None:
    student = dspy.Predict("question -> answer")
    compiled = dspy.teleprompt.BootstrapFewShot(metric=exact, max_labeled_demos=0).compile(
        student, trainset=rows_of_numbers()
    )
    assert (len(compiled.demos) > 0, student.demos) == (True, [])


@row("saved programs")
def _saved_programs(folder: Path) -> None:
    # The keys of a file that DSPy 3 writes for a bare Predict.
    fields = [{"prefix": "Question:", "description": "${question}"}, {"prefix": "Answer:", "description": "${answer}"}]
    state = {
        "traces": [],
        "train": [],
        "demos": [{"question": "1+1?", "answer": "2"}],
        "signature": {"instructions": "Answer.", "fields": fields},
        "lm": None,
    }
    predict = dspy.Predict("question -> answer")
    predict.load_state(state)
    predict.save(folder / "program.json")
    other = dspy.Predict("question -> answer")
    other.load(folder / "program.json")
    assert (other.demos[0]["answer"], other.signature.instructions) == ("2", "Answer.")


@row("callbacks")
def _callbacks(_: Path) -> None:
    seen: list[str] = []

    class Listener(dspy.BaseCallback):
        def on_module_start(self, call_id: str, instance: Any, inputs: Any) -> None:
            seen.append("module")

        def on_lm_end(self, call_id: str, outputs: Any, exception: Any = None) -> None:
            seen.append("lm")

    with dspy.context(callbacks=[Listener()]):
        dspy.Predict("question -> answer")(question="2+2?")
    assert seen == ["module", "lm"]


@row("streaming")
def _streaming(_: Path) -> None:
    predict = dspy.Predict("question -> answer", lm=sigwire.FakeLM([{"answer": "one two"}]))
    listener = dspy.streaming.StreamListener("answer")
    stream = dspy.streamify(
        predict,
        stream_listeners=[listener],
        status_message_provider=dspy.streaming.StatusMessageProvider(),
        async_streaming=False,
    )
    items = list(stream(question="Count."))
    assert "".join(item.chunk for item in items if isinstance(item, dspy.streaming.StreamResponse)) == "one two"
    assert items[-1].answer == "one two"


@row("tests")
def _tests(_: Path) -> None:
    assert dspy.Predict("q -> answer", lm=dspy.DummyLM([ANSWER]))(q="2+2?").answer == "4"
    assert dspy.Predict("q -> answer", lm=dspy.DummyLM({"2+2": ANSWER}))(q="2+2?").answer == "4"
    follower = dspy.Predict("q -> answer", lm=dspy.DummyLM([{"answer": "no"}], follow_examples=True))
    assert follower(q="2+2?", demos=[dspy.Example(q="2+2?", answer="4")]).answer == "4"


@row("decisions")
def _decisions(folder: Path) -> None:
    signature = dspy.Signature("note -> open: bool")
    predict = dspy.Predict(signature)
    predict.fields = {"open": {"threshold": 0.8}}
    predict.set_criteria("open", {"true": "lights are on"})
    predict.save(folder / "open.json")
    loaded = dspy.Predict(signature)
    loaded.load(folder / "open.json")
    assert loaded.get_criteria("open") == {"true": "lights are on"}
    with dspy.context(lm=dspy.DummyLM([{"open": {"noul": 0.75}}])):
        assert loaded(note="x").open is False
    assert {"Choice", "Noul", "ReAnchor", "Score", "TypeSafe"} <= {*dspy.experimental.__all__}


# --- different ------------------------------------------------------------------------------------------------


@row("requests of a call")
def _requests(_: Path) -> None:
    for adapter, requests in ((dspy.ChatAdapter(use_json_adapter_fallback=False), 1), (dspy.ChatAdapter(), 2)):
        lm = sigwire.FakeLM(["no fields"] * 2)
        with dspy.context(adapter=adapter), pytest.raises(dspy.AdapterParseError) as caught:
            dspy.Predict("question -> answer: int", lm=lm)(question="2+2?")
        assert len(lm.requests) == len(caught.value.attempts) == requests
    lm = sigwire.FakeLM(["no fields", ANSWER])
    asked = dspy.Predict("question -> answer: int", lm=lm, max_reasks=1)(question="2+2?")
    assert [attempt.purpose for attempt in asked.attempts] == ["ask", "repair"]


@row("unreadable outputs")
def _unreadable(_: Path) -> None:
    cut = sigwire.Choice(text="[[ ## answer ## ]]\nfo", finish_reason="length")
    refused = sigwire.Choice(refusal="No.")
    for answer, error in (
        ("[[ ## other ## ]]\n4", dspy.AdapterParseError),
        (cut, dspy.OutputTruncated),
        (refused, dspy.Refused),
        ("", dspy.EmptyResponse),
    ):
        with pytest.raises(error):
            dspy.Predict("question -> answer: int", lm=sigwire.FakeLM([answer] * 2))(question="2+2?")


@row("inputs")
def _inputs(_: Path) -> None:
    lm = sigwire.FakeLM([ANSWER])
    given = {"question": "2+2?", "topic": "sums"}
    with pytest.raises(sigwire.InputError):
        dspy.Predict("question -> answer", lm=lm)()
    with dspy.context(unknown_inputs="error"), pytest.raises(sigwire.InputError):
        dspy.Predict("question -> answer", lm=lm)(**given)
    assert lm.requests == []
    assert dspy.Predict("question -> answer", lm=lm)(**given).answer == "4"
    assert dspy.Predict("question, hint: str | None -> answer")(question="2+2?").answer == "4"


@row("agents")
def _agents(_: Path) -> None:
    agent = dspy.ReAct("question -> answer: int", tools=[add])
    lm = sigwire.FakeLM([dspy.ToolCall("", "add", {"a": 2, "b": 2}), dspy.ToolCall("", "submit", {"answer": 4})])
    agent.set_lm(lm)
    result = agent(question="2+2?")
    assert [tool["function"]["name"] for tool in lm.requests[0].tools] == ["add", "submit"]
    assert [step.calls[0].name for step in result.steps] == ["add", "submit"]
    assert result.trajectory["tool_name_0"] == "add"


@row("long conversations")
def _long_conversations(_: Path) -> None:
    def page(n: int) -> str:
        """Read a page."""
        return f"Page {n}. " + "A quiet room. " * 100

    def answer(request: sigwire.Request) -> Any:
        read = [result.text for message in request.messages for result in message.tool_results]
        n = int(read[-1].split(".")[0].removeprefix("Page ")) + 1 if read else 0
        return dspy.ToolCall(f"p{n}", "page", {"n": n}) if n < 8 else dspy.ToolCall("s", "submit", {"answer": "4"})

    compaction = sigwire.Compaction([drop_oldest()], window=2400)
    agent = dspy.ReAct("question -> answer", tools=[page], compaction=compaction)
    agent.set_lm(lm := sigwire.FakeLM(answer))
    result = agent(question="What is on page 7?")
    sent = [sum(len(message.tool_results) for message in request.messages) for request in lm.requests]
    assert sent == [0, 1, 2, 3, 4, 5, 1, 2, 3]
    assert "search_conversation" in [tool["function"]["name"] for tool in lm.requests[-1].tools]
    kept = [step.results[0].text for step in result.steps[:8]]
    assert (kept, len(result.history.folds)) == ([page(n) for n in range(8)], 1)
    assert result.trajectory["observation_0"] == page(0)


@row("demos of a loaded program")
def _loaded_demos(folder: Path) -> None:
    predict = dspy.Predict("question -> when: datetime.date")
    predict.demos = [dspy.Example(question="?", when=datetime.date(2026, 1, 2))]
    predict.save(str(folder / "p.json"))
    again = dspy.Predict("question -> when: datetime.date")
    again.load(str(folder / "p.json"))
    assert again.demos[0]["when"] == datetime.date(2026, 1, 2)


@row("a module as a tool")
def _module_tools(_: Path) -> None:
    inner = dspy.Predict("text -> label")
    inner.set_lm(sigwire.FakeLM([{"label": "spam"}]))
    agent = dspy.ReAct("question -> answer", tools=[inner])
    calls = [dspy.ToolCall("", "label", {"text": "win"}), dspy.ToolCall("", "submit", {"answer": "spam"})]
    agent.react.lm = sigwire.FakeLM(calls)
    result = agent(question="Is it spam?")
    assert result.steps[0].results[0].content == "spam"


@row("an output that no text can fill (`dspy.Image`, a function)")
def _unfillable(_: Path) -> None:
    class Draw(dspy.Signature):
        text: str = dspy.InputField()
        picture: dspy.Image = dspy.OutputField()

    lm = sigwire.FakeLM([])
    draw = dspy.Predict(Draw)
    draw.set_lm(lm)
    with pytest.raises(sigwire.errors.FieldDefinitionError):
        draw(text="a tree")
    assert lm.requests == []


def broken(a: int) -> int:
    """Look up a number."""
    raise KeyError(a)


@row("errors of tools")
def _tool_errors(_: Path) -> None:
    agent = dspy.ReAct("question -> answer: int", tools=[broken])
    agent.set_lm(sigwire.FakeLM([dspy.ToolCall("", "broken", {"a": 2}), dspy.ToolCall("", "submit", {"answer": 4})]))
    with pytest.warns(sigwire.ToolWarning, match=r"test_coming_from_dspy\.py"):
        result = agent(question="2+2?")
    text = result.steps[0].results[0].text
    assert "KeyError" in text
    assert not {"Traceback", ".py", "line"} & set(re.findall(r"Traceback|\.py|line", text))


@row("async tools")
def _async_tools(_: Path) -> None:
    async def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    agent = dspy.ReAct("question -> answer: int", tools=[double])
    agent.set_lm(sigwire.FakeLM([dspy.ToolCall("", "double", {"n": 2}), dspy.ToolCall("", "submit", {"answer": 4})]))
    assert agent(question="2+2?").steps[0].results[0].text == "4"
    assert dspy.Tool(double)(n=2) == 4


@row("bugs of a metric")
def _metric_bugs(_: Path) -> None:
    def metric(example: Any, pred: Any, trace: Any = None) -> float:
        return 1 / int(example.question[0])

    result = dspy.Evaluate(devset=rows_of_numbers(5), metric=metric, display_progress=False, num_threads=1)(
        dspy.Predict("question -> answer")
    )
    assert (result.scored, result.n) == (4, 5)
    assert result.mean == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


@row("evaluations")
def _evaluations(folder: Path) -> None:
    lm = sigwire.FakeLM(lambda request: ANSWER)
    evaluate = dspy.Evaluate(
        devset=rows_of_numbers(8), metric=exact, log=folder / "run.jsonl", display_progress=False, num_threads=1
    )
    first = evaluate(dspy.Predict("question -> answer", lm=lm))
    assert evaluate(dspy.Predict("question -> answer", lm=lm)).score == first.score == 100.0
    assert len(lm.requests) == 8
    assert first.interval is not None
    assert "not shown to be better" in dspy.compare({"first": first, "second": first}).sentences[0]


@row("stored answers")
def _stored_answers(folder: Path) -> None:
    dspy.configure_cache(disk_cache_dir=folder / "cache")
    with FakeProvider(["Hello"]) as provider:
        lm = dspy.LM("openai/gpt-5-mini", base_url=provider.url("openai"), api_key="any", cache=True)
        request = sigwire.Request((sigwire.Message.user("Hi"),))
        responses = [lm.respond(request) for _ in range(2)]
        assert [response.cache for response in responses] == ["miss", "hit"]
        assert (responses[1].cost, responses[1].cached_usage) == (0.0, responses[0].usage)
        assert len(provider.requests) == 1
        provider.script.add("[[ ## answer ## ]]\n4 and more")
        listener = dspy.streaming.StreamListener("answer")
        stream = dspy.streamify(
            dspy.Predict("question -> answer", lm=lm), stream_listeners=[listener], async_streaming=False
        )
        read = [[item.chunk for item in list(stream(question="2+2?"))[:-1]] for _ in range(2)]
    assert (len(read[0]) > 2, read[1]) == (True, ["4 and more", ""])


@row("pickle")
def _pickle(folder: Path) -> None:
    with pytest.raises(sigwire.StateError):
        dspy.Predict("question -> answer").save(folder / "program.pkl")
    dspy.Predict("question -> answer").save(folder / "whole", save_program=True)
    assert list(dspy.load(folder / "whole").signature.output_fields) == ["answer"]


@row("keys")
def _keys(_: Path) -> None:
    lm = dspy.LM("openai/gpt-5-mini", api_key="sk-canary")
    assert "sk-canary" not in f"{lm!r} {lm.dump_state()} {lm.kwargs} {dspy.Predict('q -> a', lm=lm).dump_state()}"


@row("configure")
def _configure(_: Path) -> None:
    before = dspy.settings.max_trace_size
    thread = threading.Thread(target=lambda: dspy.configure(max_trace_size=77))
    thread.start()
    thread.join()
    try:
        assert dspy.settings.max_trace_size == 77
    finally:
        dspy.configure(max_trace_size=before)


@row("misspelt options")
def _misspelt_options(_: Path) -> None:
    with pytest.raises(sigwire.UnsupportedFeature, match="Did you mean temperature"):
        dspy.LM("openai/gpt-5-mini", temprature=1)
    with pytest.raises(sigwire.CallerError, match="max_iters"):
        dspy.ReAct("q -> a", tools=[], max_iter=3)
    with pytest.raises(sigwire.CallerError, match="num_threads"):
        dspy.Evaluate(devset=rows_of_numbers(), metric=exact, num_thread=3)


@row("usage")
def _usage(_: Path) -> None:
    usage = sigwire.Usage(input_tokens=12, output_tokens=3)
    result = dspy.Predict("question -> answer", lm=sigwire.FakeLM([ANSWER], usage=usage))(question="2+2?")
    assert (result.usage.input_tokens, result.usage.output_tokens) == (12, 3)
    assert dspy.CallReport.of(result).cost is None
    priced = dspy.LM("offline/lexical", price=sigwire.Price(input=1.0, output=1.0))
    priced_result = dspy.Predict("text -> label", lm=priced)(text="A parcel arrived.")
    assert (dspy.CallReport.of(priced_result).cost or 0) > 0


@row("history")
def _history(_: Path) -> None:
    predict = dspy.Predict("question -> answer", lm=(lm := sigwire.FakeLM([ANSWER, ANSWER])))
    predict(question="2+2?")
    assert (len(predict.history), len(lm.history)) == (0, 1)
    with dspy.context(max_history_size=5):
        predict(question="2+2?")
    assert len(predict.history) == 1


@row("LiteLLM")
def _litellm(_: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, FakeProvider(["Hello"]) as provider:
        patch.setitem(sys.modules, "litellm", None)  # its import fails
        assert dspy.LM("openai/gpt-5-mini", base_url=provider.url("openai"), api_key="any")("Hi") == ["Hello"]
        with pytest.raises(sigwire.ConfigurationError, match=r'pip install "sigwire\[litellm\]"'):
            dspy.LM("some-other-host/model")("Hi")


@row("module paths")
def _module_paths(_: Path) -> None:
    from sigwire.dspy.adapters.types.tool import Tool  # pyright: ignore
    from sigwire.dspy.predict.react import ReAct  # pyright: ignore
    from sigwire.dspy.utils.callback import with_callbacks

    assert (Tool, ReAct, with_callbacks) == (dspy.Tool, dspy.ReAct, dspy.with_callbacks)


class Doubled(dspy.Module):
    @dspy.with_callbacks
    async def aforward(self, n: int) -> int:
        return 2 * n


@row("helpers")
def _helpers(_: Path) -> None:
    assert dspy.syncify(Doubled())(n=2) == asyncio.run(dspy.asyncify(lambda n: 2 * n)(2)) == 4
    assert dspy.clients.request_cache()(lambda n: 2 * n)(2) == 4
    answer = dspy.Predict("documents: list[dspy.Document] -> citations: dspy.Citations")
    assert answer.signature.output_fields["citations"].annotation is dspy.Citations


@row("`settings.save`")
def _settings_save(path: Path) -> None:
    with dspy.context(callbacks=[dspy.BaseCallback()], num_threads=3):
        with pytest.raises(sigwire.InputError, match="exclude_keys"):
            dspy.settings.save(path / "settings.json")
        dspy.settings.save(path / "settings.json", exclude_keys=["callbacks", "lm"])
    assert dspy.load_settings(path / "settings.json") == {"num_threads": 3}


class Event(dspy.Type):
    name: str

    def format(self) -> str:
        return f"Event: {self.name}"

    @classmethod
    def description(cls) -> str:
        return "A day in town."


@row("types of your own")
def _types(_: Path) -> None:
    class Visit(dspy.Signature):
        event: Event = dspy.InputField()
        answer: str = dspy.OutputField()

    lm = dspy.DummyLM([{"answer": "Yes."}])
    dspy.Predict(Visit, lm=lm)(event=Event(name="fair"))
    system, asked = (message["content"] for message in lm.history[-1]["messages"])
    assert ("A day in town." in system, "\nEvent: fair\n" in asked) == (True, True)


@row("media")
def _media(folder: Path) -> None:
    class Brief(dspy.ChatAdapter):
        def format_user_message_content(self, signature: Any, inputs: Any, *args: Any, **options: Any) -> Any:
            return f"Look: {inputs['image']}"

    lm = dspy.DummyLM([ANSWER])
    with dspy.context(lm=lm, adapter=Brief()):
        dspy.Predict("image: dspy.Image -> answer")(image=dspy.Image("https://example.com/cat.png"))
    assert [part["type"] for part in lm.history[-1]["messages"][-1]["content"]] == ["text", "image_url"]
    (folder / "a.txt").write_text("tea")
    assert dspy.File.from_path(str(folder / "a.txt")) == dspy.File.from_bytes(b"tea", "a.txt", "text/plain")


@row("conversations")
def _conversations(_: Path) -> None:
    history = dspy.History(messages=[])
    calls = dspy.ToolCalls.from_dict_list([{"id": "a", "name": "add", "args": {"a": 1}}])
    results = dspy.ToolCallResults.from_tool_calls_and_values(calls, [2])
    history.messages.append({"question": "1+1?", "calls": calls.model_copy(update={"tool_call_results": results})})
    ask = dspy.Signature("question, history: dspy.History, tools: list[dspy.Tool] -> calls: dspy.ToolCalls")
    messages = dspy.ChatAdapter().format(ask, [], {"question": "2+2?", "history": history, "tools": [dspy.Tool(add)]})
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "user"]
    assert "2" in messages[3]["content"]


@row("content parts")
def _content_parts(_: Path) -> None:
    lm = dspy.DummyLM([ANSWER])
    dspy.Predict("page: dspy.Document -> answer", lm=lm)(page=dspy.Document("Tea."))
    assert '"data":"Tea."' in lm.history[-1]["messages"][-1]["content"]


@row("missing files")
def _missing_files(folder: Path) -> None:
    with pytest.raises(sigwire.InputError, match="File not found"):
        dspy.Image.from_path(folder / "none.png")
    with pytest.warns(UserWarning, match=r"download=True\) has no effect: the provider gets the URL"):
        assert dspy.Image("https://example.com/cat.png", download=True).url == "https://example.com/cat.png"


@row("agents of the second kind")
def _second_agents(_: Path) -> None:
    agent = dspy.ReActV2("question -> answer: int", tools=[add])
    agent.set_lm(sigwire.FakeLM([dspy.ToolCall("", "submit", {"answer": 4})]))
    assert (isinstance(agent, dspy.ReAct), agent(question="2+2?").termination_reason) == (True, "submit")


@row("texts")
def _texts(_: Path) -> None:
    assert repr(dspy.Example(a=1)) == "Example(a=1)"
    assert not dspy.Signature("a -> b").instructions.startswith("Given the fields")
