"""Targets that load what another program or person may have written: files of JSON, and the mappings of ``from_json``.

Each takes a valid file or mapping with a few changes: members dropped, renamed or of another type, huge numbers, ``NaN``, deep
nesting, halves of surrogate pairs, duplicate keys, keys that are no texts, bytes cut off or of another encoding. Loading gives
a value or a ``SigwireError`` with three parts, sends nothing, and leaves a file that it refuses as it was.
"""

from __future__ import annotations

import functools
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire import (
    LM,
    BootstrapFewShot,
    Cassette,
    Evaluate,
    Example,
    FakeLM,
    History,
    Image,
    Message,
    Predict,
    Prediction,
    ReAct,
    Request,
    Response,
    Tool,
    ToolCalls,
    context,
    load_examples,
    load_program,
    load_records,
    save_program,
)
from sigwire.core.json import dumps
from sigwire.core.parts import TextPart
from sigwire.core.response import Attempt, Choice, LMWarning, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import SigwireError
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.evaluate.scores import Score
from sigwire.jobs.job import Job
from sigwire.journal.errors import ApprovalNeeded
from sigwire.lm.policy.cache.answers import decode_response, encode_response
from sigwire.lm.policy.money.prices import Prices
from sigwire.optimizers.reports.report import OptimizationReport
from tests.fuzz.source import Source
from tests.jobs.engines import InlineExecutor, questions

__all__ = ["TARGETS", "check_error"]

Load = Callable[[Any], object]

# --- valid values -------------------------------------------------------------------------------------------------


def find(order: int) -> str:
    """Find an order."""
    return f"order {order}"


def exact(example: Any, prediction: Any, trace: object = None) -> bool:
    return bool(example.answer == prediction.answer)


def _answer(request: Request) -> str:
    return "[[ ## answer ## ]]\n4\n\n[[ ## completed ## ]]"


def _lm() -> FakeLM:
    return FakeLM(_answer)


ROWS = [Example(question=f"{n} + 1?", answer=str(n + 1), tags=["a", None]).with_inputs("question") for n in range(3, 5)]
TASK = "question -> answer"


def _program() -> Predict[..., Any]:
    made = Predict(TASK, lm=None, max_reasks=1, temperature=0.5)
    made.demos = [Example(question="1 + 1?", answer="2")]
    return made


def _agent(*, secret: str | None = None, asks: bool = False) -> ReAct[..., Any]:
    tool = Tool(find, approve=True) if asks else Tool(find)
    made = ReAct(TASK, tools=[tool], max_iters=5, secret=secret)
    made.set_lm(FakeLM([ToolCall("c1", "find", {"order": 7})] if asks else [{"answer": "4"}]))
    return made


@functools.cache
def _files() -> Mapping[str, bytes]:
    """The content of a valid file of each kind."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _program().save(folder / "state.json")
        save_program(_agent_program(), folder / "program.json")
        with context(lm=_lm()):
            Evaluate(devset=ROWS, metric=exact, log=folder / "records.jsonl", progress=False)(_program())
            with Cassette(folder / "cassette.jsonl", mode="record"):
                _program()(question="2 + 2?")
            BootstrapFewShot(exact, journal=folder / "search.jsonl").compile(_program(), trainset=ROWS, valset=ROWS)
        _map_rows(folder / "rows.jsonl")
        with context(adapter=dspy.JSONAdapter()):
            dspy.settings.save(folder / "settings.json", exclude_keys=["lm"])
        rows = [{"question": "1 + 1?", "answer": 2, "tags": ["a"]}, {"question": "2", "answer": None, "tags": []}]
        (folder / "rows.json").write_text(json.dumps(rows))
        (folder / "examples.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        (folder / "examples.csv").write_text("question,answer\n1 + 1?,2\n2 + 2?,4\n")
        (folder / "prices.json").write_text('{"m": {"input": 1.5, "output": 2}}')
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def _agent_program() -> ReAct[..., Any]:
    return ReAct(TASK, tools=[find], max_iters=5, temperature=0.5)


# --- loaders of files ---------------------------------------------------------------------------------------------


def _load_state(path: Path) -> None:
    _program().load(path)


def _load_program(path: Path) -> None:
    load_program(path, functions=[find])


def _evaluate(path: Path) -> None:
    with context(lm=_lm()):
        Evaluate(devset=ROWS, metric=exact, log=path, resume=True, progress=False)(_program())


def _map_rows(path: Path) -> None:
    map_rows(Job(program="tests.jobs.app:shout"), questions(2), path, executor=InlineExecutor())


def _replay(path: Path) -> None:
    with Cassette(path, mode="replay"), context(lm=_lm()):
        _program()(question="2 + 2?")


def _compile(path: Path) -> None:
    with context(lm=_lm()):
        BootstrapFewShot(exact, journal=path).compile(_program(), trainset=ROWS, valset=ROWS)


def _read_examples(path: Path) -> None:
    repr(load_examples(path, inputs=["question"]))


def _read_records(path: Path) -> None:
    result = load_records(path)
    repr(result), str(result)
    result.rescore(exact)


def _read_report(path: Path) -> None:
    repr(OptimizationReport.load(path))


def _read_prices(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SIGWIRE_PRICES", str(path))
        Prices().find("m")


FILES: Mapping[str, tuple[str, Callable[[Path], None]]] = {
    "file_state": ("state.json", _load_state),
    "file_program": ("program.json", _load_program),
    "file_records": ("records.jsonl", _read_records),
    "file_evaluation": ("records.jsonl", _evaluate),
    "file_rows": ("rows.jsonl", _map_rows),
    "file_cassette": ("cassette.jsonl", _replay),
    "file_search": ("search.jsonl", _compile),
    "file_report": ("search.jsonl", _read_report),
    "file_examples_jsonl": ("examples.jsonl", _read_examples),
    "file_examples_json": ("rows.json", _read_examples),
    "file_examples_csv": ("examples.csv", _read_examples),
    "file_settings": ("settings.json", lambda path: dspy.load_settings(path)),
    "file_prices": ("prices.json", _read_prices),
}
_WRITERS = {"file_evaluation", "file_rows", "file_search"}  # they may append to a file that they take

# --- loaders of mappings ------------------------------------------------------------------------------------------


@functools.cache
def _suspended(secret: str | None) -> str:
    try:
        _agent(asks=True, secret=secret)(question="2 + 2?")
    except ApprovalNeeded as error:
        return dumps(error.state)
    raise AssertionError("the agent asked for no approval")


def _resume(secret: str | None, state: Any) -> None:
    agent = _agent(asks=True, secret=secret)
    agent.set_lm(FakeLM([ToolCall("end", "submit", {"answer": "4"})]))
    agent.resume(state, {"c1": "approve"})


def _values() -> dict[str, tuple[Any, Load]]:
    call = ToolCall("c1", "find", {"order": 7})
    choice = Choice("4", (call,), "because", parts=(TextPart("4"), call))
    attempt = Attempt(model="m", usage=Usage(3, 4, cost=0.5))
    response = Response((choice,), Usage(3, 4, cost=0.5), "m", "r1", (LMWarning("top_k", "dropped"),), (attempt,))
    image = Image(b"\x89PNG\r\n\x1a\n", media_type="image/png")
    messages = (Message.system("s"), Message.user("q"), Message.assistant("a", (call,)))
    request = Request(messages)
    prediction = Prediction(answer="4", calls=ToolCalls([call]))
    tool = Tool(find)
    history = History([{"question": "1", "answer": "2"}])
    record = ExampleRecord("a", 0, 0, {"question": "1"}, {"answer": "2"})
    values: list[tuple[Any, Load]] = [
        (response, Response.from_json), (choice, Choice.from_json), (call, ToolCall.from_json),
        (request, Request.from_json), (messages[2], Message.from_json), (image, Image.from_json),
        (prediction, Prediction.from_json), (ROWS[0], Example.from_json), (tool, Tool.from_json),
        (history, History.from_json), (record, ExampleRecord.from_json), (Score(0.5, "good"), Score.from_json),
        (ToolCalls([call]), ToolCalls.from_json), (ToolResult("c1", "find", {"left": 3}), ToolResult.from_json),
        (attempt, Attempt.from_json),
    ]  # fmt: skip
    return {f"json_{type(value).__name__}": (value.to_json(), load) for value, load in values}


@functools.cache
def _mappings() -> Mapping[str, tuple[str, Load]]:
    """JSON of a valid mapping, and what loads it."""
    report = next(
        row["report"] for row in map(json.loads, _files()["search.jsonl"].splitlines()) if row["type"] == "end"
    )
    return {
        **{name: (dumps(data), load) for name, (data, load) in _values().items()},
        "json_report": (dumps(report), OptimizationReport.from_json),
        "json_state": (dumps(_program().dump_state()), lambda state: _program().load_state(state)),
        "json_agent_state": (dumps(_agent_program().dump_state()), lambda state: _agent_program().load_state(state)),
        "json_lm": (dumps(LM("openai/gpt-5-mini", api_key="k", temperature=1.0).dump_state()), LM.load_state),
        "json_door_lm": (dumps(dspy.LM("openai/gpt-5-mini", api_key="k").dump_state()), dspy.LM.load_state),
        "json_resume": (_suspended(None), partial(_resume, None)),
        "json_resume_signed": (_suspended("secret"), partial(_resume, "secret")),
    }


MAPPINGS = (
    "json_Response", "json_Choice", "json_ToolCall", "json_Request", "json_Message", "json_Image", "json_Prediction",
    "json_Example", "json_Tool", "json_History", "json_ExampleRecord", "json_Score", "json_ToolCalls", "json_ToolResult",
    "json_Attempt", "json_report", "json_lm", "json_door_lm",
    "json_state", "json_agent_state", "json_resume", "json_resume_signed",
)  # fmt: skip

# --- changes ------------------------------------------------------------------------------------------------------

_DEEP: Any = functools.reduce(lambda inner, _: [inner], range(150), 0)
_DEEPER: Any = functools.reduce(lambda inner, _: {"a": inner}, range(3000), 0)
_LIKE_JSON: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**30, 1e308, "", "x", "\ud800", "ü", [], [None], [[]], {}, {"a": 1}, {"": None}, {"type": "text"},
    {"$program": "ReAct"}, _DEEP, ["x", 3], "c1", [1, 2], {"ü": "\ud83d"},
)  # fmt: skip
_NO_JSON: tuple[Any, ...] = (float("nan"), float("inf"), b"x", {1: 2}, {"\ud800": 1}, (1,), {1, 2}, object(), _DEEPER)


def _changed(source: Source, value: Any, others: tuple[Any, ...]) -> Any:
    """Return the value with one change, at a depth that the source decides."""
    if not value or not isinstance(value, dict | list) or source.below(5) == 0:
        return source.choose(others)
    if isinstance(value, list):
        at, how = source.below(len(value)), source.below(4)
        if how == 0:
            return value[:at] + value[at + 1 :]
        return [*value[:at], _changed(source, value[at], others), *value[at + 1 :]]
    name, how = source.choose(sorted(value, key=repr)), source.below(8)
    if how == 0:
        return {key: child for key, child in value.items() if key != name}
    if how == 1:
        return {**value, source.choose(("ü", "\ud800", "type", "class", "items", "self")): value[name]}
    return {**value, name: _changed(source, value[name], others)}


def _encoded(source: Source, value: Any) -> str:
    """JSON as text, at times with what only a text can have."""
    text = json.dumps(value)
    change = source.below(10)
    if change == 0 and text.startswith("{") and len(text) > 2:
        return text[:1] + text[1:-1] + "," + text[1:]  # every key twice
    if change == 1:
        return re.sub(r"\d+", source.choose(("NaN", "1e999", "9" * 5000, "-Infinity")), text, count=1)
    if change == 2:
        return re.sub("null|true|false", "[" * 100_000, text, count=1)
    if change == 3:
        return re.sub(r'"(\w+)":', r'"\1": {}, "\1":', text, count=1)
    return text


def _damaged_bytes(source: Source, content: bytes) -> bytes:
    """Return the content of a file, changed as values and then perhaps as bytes."""
    lines = content.split(b"\n")
    try:
        whole = json.loads(content)
        lines = [_encoded(source, _changed(source, whole, _LIKE_JSON)).encode("utf-8", "surrogatepass")]
    except ValueError:
        for _ in range(1 + source.below(2)):
            at = source.below(len(lines))
            try:
                value = json.loads(lines[at])
            except (ValueError, RecursionError):
                continue
            lines[at] = _encoded(source, _changed(source, value, _LIKE_JSON)).encode("utf-8", "surrogatepass")
    text = b"\n".join(lines)
    how, at = source.below(16), source.below(1000) * len(text) // 1000
    changes: dict[int, Callable[[], bytes]] = {
        1: lambda: text[:at],
        2: lambda: b"\xef\xbb\xbf" + text,
        3: lambda: text.decode("utf-8", "replace").encode("utf-16"),
        4: lambda: text[:at] + b"\xff\xfe" + text[at:],
        5: lambda: text[:at] + b"\0\0" + text[at:],
        6: lambda: text[:at] + b"\n" + text[at:],
        7: lambda: text.decode("utf-8", "replace").encode("latin-1", "replace"),
        8: lambda: b"",
    }
    return changes[how]() if how in changes else text


# --- checks -------------------------------------------------------------------------------------------------------


def check_error(error: SigwireError) -> None:
    """Check the three parts of a text: what, (where), what next."""
    text = str(error)
    found = re.search(r"\S \([^()]*(\([^()]*\)[^()]*)*\)", text)
    assert found, f"no place in parentheses: {type(error).__name__}: {text}"
    after = text[found.end() :].strip(" .:,;")
    assert after, f"nothing says what next: {type(error).__name__}: {text}"


def _run_file(name: str, source: Source) -> None:
    kind, load = FILES[name]
    content = _damaged_bytes(source, _files()[kind])
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, kind)
        path.write_bytes(content)
        try:
            load(path)
        except SigwireError as error:
            check_error(error)
            left = path.read_bytes()
            ended = name in _WRITERS and (left == content + b"\n" or content.startswith(left))  # a torn end is cut off
            assert left == content or ended, "a refused file was changed"


def _run_mapping(name: str, source: Source) -> None:
    text, load = _mappings()[name]
    value = json.loads(text)
    for _ in range(1 + source.below(2)):
        value = _changed(source, value, (*_LIKE_JSON, *_NO_JSON))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            load(value)
        except SigwireError as error:
            check_error(error)


def _run_answer(source: Source) -> None:
    """Answers of the cache: any bytes are an answer or a ``ValueError``, which is a miss."""
    choice = Choice("4", reasoning="because")
    response = (
        Response((choice,), Usage(3, 4), "m") if source.below(2) else Response((choice, choice), Usage(3, 4), "m")
    )
    content = _damaged_bytes(source, encode_response(response))
    with suppress(ValueError):
        repr(decode_response(content))


TARGETS: Mapping[str, Callable[[Source], None]] = {
    **{name: partial(_run_file, name) for name in FILES},
    **{name: partial(_run_mapping, name) for name in MAPPINGS},
    "cached_answer": _run_answer,
}
