"""The fingerprint of a result, by content: in records, search journals, jobs and comparisons."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import pytest

from sigwire import (
    BootstrapFewShot,
    ChatAdapter,
    ConfigurationError,
    Example,
    FakeLM,
    JSONAdapter,
    Module,
    Predict,
    Prediction,
    ReAct,
    StateError,
    compare,
    context,
)
from sigwire.evaluate.evaluation import Evaluate, load_records
from sigwire.evaluate.fingerprint.identity import differences, run_fingerprint
from sigwire.evaluate.fingerprint.reading import is_users_file
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider

COUNT = 4


def devset(count: int = COUNT) -> list[Example]:
    return [Example(question=f"number {n}", answer=str(n)).with_inputs("question") for n in range(count)]


def plain(example: Example, prediction: Prediction) -> bool:
    return bool(prediction.answer == example.answer)


def program(**options: Any) -> Predict[..., Prediction]:
    return Predict("question -> answer", lm=FakeLM(lambda request: {"answer": "1"}, **options))


def first_normal(text: str) -> str:
    return text.lower()


def second_normal(text: str) -> str:
    return text.upper()


def calling(normal: Callable[[str], str]) -> Callable[..., bool]:
    """Return a metric whose helper is a global of its module."""
    names: dict[str, Any] = {"normal": normal}
    exec(
        "def metric(example, prediction):\n    return normal(prediction.answer) == normal(example.answer)", names
    )  # the helper is found by its name
    found: Callable[..., bool] = names["metric"]
    return found


def closed_over(least: int) -> Callable[..., bool]:
    def metric(example: Example, prediction: Prediction) -> bool:
        return len(prediction.answer) >= least

    return metric


class Least:
    """A metric with state, that counts its calls."""

    def __init__(self, least: int) -> None:
        self.least, self.calls = least, 0

    def __call__(self, example: Example, prediction: Prediction) -> bool:
        self.calls += 1
        return len(prediction.answer) >= self.least


def with_default(least: int) -> Callable[..., bool]:
    def metric(example: Example, prediction: Prediction, trace: object = None, least: int = least) -> bool:
        return len(prediction.answer) >= least

    return metric


def at_least(least: int, example: Example, prediction: Prediction) -> bool:
    return len(prediction.answer) >= least


class Shouting(Module):
    def __init__(self, mark: str = "!") -> None:
        self.answer, self.mark, self.calls = program(), mark, 0

    def forward(self, question: str) -> Prediction:
        self.calls += 1
        return Prediction(answer=self.answer(question=question).answer + self.mark)


def other_forward() -> Module:
    class Shouting(Module):
        def __init__(self, mark: str = "!") -> None:
            self.answer, self.mark, self.calls = program(), mark, 0

        def forward(self, question: str) -> Prediction:
            self.calls += 1
            return Prediction(answer=self.mark + self.answer(question=question).answer)

    return Shouting()


def looks(found: str) -> ReAct[..., Prediction]:
    def search(query: str) -> str:
        """Search."""
        return found

    agent = ReAct("question -> answer", tools=[search])
    agent.set_lm(FakeLM(lambda request: {"answer": "1"}))
    return agent


def function_of(mark: str) -> Callable[..., Prediction]:
    ask = program()

    def answer(question: str) -> Prediction:
        return Prediction(answer=ask(question=question).answer + mark)

    return answer


def always(example: Example, prediction: Prediction) -> int:
    return 1


def never(example: Example, prediction: Prediction) -> int:
    return 0


never.__qualname__ = never.__name__ = "always"
METRICS: dict[str, tuple[Any, Any, str]] = {
    "body": (always, never, "`always`: body changed"),
    "closure": (closed_over(1), closed_over(2), "closure `least`"),
    "default": (with_default(1), with_default(2), "default `least`"),
    "partial": (partial(at_least, 1), partial(at_least, 2), "argument `0`"),
    "state of an object": (Least(1), Least(2), "attribute `least` of `Least` changed"),
    "helper": (calling(first_normal), calling(second_normal), "normal"),
}
PROGRAMS: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "forward": (Shouting, other_forward, "`Shouting.forward`: body changed"),
    "attribute": (Shouting, partial(Shouting, "?"), "attribute `mark`"),
    "function": (lambda: function_of("!"), lambda: function_of("?"), "closure `mark`"),
    "tool": (lambda: looks("a"), lambda: looks("b"), "closure `found`"),
    "temperature": (program, lambda: program(temperature=1.0), "options"),
    "model": (lambda: Predict("question -> answer", lm=LM("offline/lexical")), program, "model: was offline/lexical"),
}


def blocking(evaluate: Evaluate, tried: Any) -> None:
    evaluate(tried)


def awaited(evaluate: Evaluate, tried: Any) -> None:
    asyncio.run(evaluate.acall(tried))


def streamed(evaluate: Evaluate, tried: Any) -> None:
    for _ in evaluate.stream(tried):
        pass


unknown_parts = pytest.mark.filterwarnings("ignore:log.jsonl is resumed")
each_way = pytest.mark.parametrize("way", [blocking, awaited, streamed])


@unknown_parts
@each_way
@pytest.mark.parametrize(("old", "new", "words"), METRICS.values(), ids=list(METRICS))
def test_changed_metric_of_the_same_name_is_refused_by_its_part(
    old: Any, new: Any, words: str, way: Callable[[Evaluate, Any], None], tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    way(Evaluate(devset=devset(), metric=old, log=path, progress=False), program())
    way(Evaluate(devset=devset(), metric=old, log=path, progress=False), program())  # the same one goes on
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match=words):
        way(Evaluate(devset=devset(), metric=new, log=path, progress=False), program())
    assert path.read_bytes() == before


@unknown_parts
@each_way
@pytest.mark.parametrize(("old", "new", "words"), PROGRAMS.values(), ids=list(PROGRAMS))
def test_changed_program_is_refused_by_its_part(
    old: Callable[[], Any], new: Callable[[], Any], words: str, way: Callable[[Evaluate, Any], None], tmp_path: Path
) -> None:
    evaluate = Evaluate(devset=devset(1), metric=plain, log=tmp_path / "log.jsonl", progress=False)
    way(evaluate, old())
    way(evaluate, old())
    with pytest.raises(ConfigurationError, match=words):
        way(evaluate, new())


def test_changed_adapter_and_address_are_refused_with_both(tmp_path: Path) -> None:
    evaluate = Evaluate(devset=devset(1), metric=plain, log=tmp_path / "log.jsonl", progress=False)
    with FakeProvider(lambda request: "[[ ## answer ## ]]\n0") as one, FakeProvider(lambda request: "no") as other:
        first, second = (LM("openai/gpt-4o-mini", base_url=each.url("openai"), api_key="k") for each in (one, other))
        with context(lm=first, adapter=ChatAdapter()):
            evaluate(Predict("question -> answer"))
        changed = pytest.raises(ConfigurationError, match=r"was ChatAdapter.*is JSONAdapter")
        with context(lm=first, adapter=JSONAdapter()), changed:
            evaluate(Predict("question -> answer"))
        moved = pytest.raises(ConfigurationError, match="address: was http")
        with context(lm=second, adapter=ChatAdapter()), moved:
            evaluate(Predict("question -> answer"))
        assert len(other.requests) == 0


class Remembering:
    """A metric that keeps what it found; each way is a class, as all methods of a class are read."""

    def __init__(self) -> None:
        self.memo: dict[Any, Any] = {"n": 0, "rows": []}
        self.limit = [1]

    def __call__(self, example: Example, prediction: Prediction) -> bool:
        self.keep(example)
        return len(self.limit) == 1

    def keep(self, example: Example) -> None:
        raise NotImplementedError


class Storing(Remembering):
    def keep(self, example: Example) -> None:
        self.memo[example.question, len(example.answer)] = 1.0


class Adding(Remembering):
    def keep(self, example: Example) -> None:
        self.memo["n"] += self.limit[0]


class Appending(Remembering):
    def keep(self, example: Example) -> None:
        self.memo["rows"].append(example.question)


class Nesting(Remembering):
    def keep(self, example: Example) -> None:
        self.memo["rows"][:] = [example.question]
        self.memo["rows"][0] = example.answer


@pytest.mark.parametrize("metric", [Storing(), Adding(), Appending(), Nesting()], ids=lambda each: type(each).__name__)
def test_metric_that_remembers_what_it_found_does_not_refuse_a_resume(metric: Remembering, tmp_path: Path) -> None:
    path, tried = tmp_path / "log.jsonl", program()
    before = repr(metric.memo)
    evaluate = Evaluate(devset=devset(), metric=metric, log=path, progress=False)
    evaluate(tried)
    with pytest.warns(UserWarning, match="`memo`"):
        evaluate(tried)
    assert isinstance(tried.lm, FakeLM)
    assert len(tried.lm.requests) == len(devset())
    assert repr(metric.memo) != before
    metric.limit.append(2)  # what it only reads still decides
    with pytest.raises(ConfigurationError, match="attribute `limit` of"):
        evaluate(tried)


def test_forced_resume_keeps_the_records_and_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    Evaluate(devset=devset(), metric=closed_over(1), log=path, progress=False)(program())
    tried = program()
    Evaluate(devset=devset(), metric=closed_over(2), log=path, resume="force", progress=False)(tried)
    assert isinstance(tried.lm, FakeLM)
    assert tried.lm.requests == []
    assert load_records(path).run.header["forced"] == ["metric `metric`, `metric`: closure `least` changed"]


def test_longer_devset_is_extended_and_a_changed_row_is_run(tmp_path: Path) -> None:
    path, tried = tmp_path / "log.jsonl", program()
    assert isinstance(tried.lm, FakeLM)
    Evaluate(devset=devset(3), metric=plain, log=path, progress=False)(tried)
    tried.lm.requests.clear()
    rows = devset(5)[1:]
    rows[0] = Example(question="number 1", answer="another").with_inputs("question")
    result = Evaluate(devset=rows, metric=plain, log=path, progress=False)(tried)
    assert len(tried.lm.requests) == 3  # of the changed row and the two new ones
    header: Any = load_records(path).run.header
    assert (len(result.records), header["type"]) == (4, "segment")
    assert (
        [each.records for each in result.segments] == [each.records for each in load_records(path).segments] == [1, 3]
    )


def test_results_of_different_metrics_of_one_name_are_not_compared(tmp_path: Path) -> None:
    results = [
        Evaluate(devset=devset(), metric=closed_over(least), log=tmp_path / f"{least}.jsonl", progress=False)(program())
        for least in (1, 2)
    ]
    with pytest.raises(ConfigurationError, match="closure `least` changed"):
        compare({"a": results[0], "b": results[1]})
    with pytest.raises(ConfigurationError, match="closure `least` changed"):
        compare({"a": tmp_path / "1.jsonl", "b": tmp_path / "2.jsonl"})
    assert compare({"a": results[0], "b": results[1].rescore(closed_over(1))})["b"].difference.mean == 0


@pytest.mark.parametrize("changed", ["metric", "adapter", "options"])
def test_journal_of_a_search_is_refused_by_the_changed_part(changed: str, tmp_path: Path) -> None:
    def search(least: int, **options: Any) -> None:
        optimizer = BootstrapFewShot(closed_over(least), journal=tmp_path / "search.jsonl")
        optimizer.compile(program(**options), trainset=devset())

    search(1)
    search(1)
    words = {"metric": "closure `least` changed", "adapter": "adapter is new", "options": "options"}[changed]
    with context(adapter=JSONAdapter() if changed == "adapter" else None), pytest.raises(StateError, match=words):
        search(2 if changed == "metric" else 1, **({"temperature": 0.3} if changed == "options" else {}))


FUNCTION = """
import json, sys
from sigwire import Predict
from sigwire.evaluate.fingerprint.identity import run_fingerprint
NAMES = {"b", "a", "c"}
def helper(text): return text in {"x", "y", "z"} and text in NAMES
def metric(example, prediction): return helper(prediction.answer)
print(json.dumps(run_fingerprint(Predict("question -> answer"), None, None, {"metric": metric})))
"""


def test_fingerprint_is_the_same_in_every_process_and_place_of_the_code() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", "\n" * seed + FUNCTION],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in (1, 2)
    }
    assert len(found) == 1
    assert {"`metric`: body", "`helper`: body", "`helper`: global `NAMES`"} <= json.loads(found.pop())["metrics"][
        "metric"
    ].keys()


def test_values_that_the_code_changes_are_skipped_and_named() -> None:
    seen: list[str] = []

    def metric(example: Example, prediction: Prediction) -> bool:
        seen.append(prediction.answer)
        return True

    def read() -> Any:
        return run_fingerprint(tried, None, None, {"metric": metric, "Least": least})

    tried, least = Shouting(), Least(1)
    before = read()
    seen.append("a")
    tried.calls = least.calls = 7
    assert differences(before, read()) == []
    assert {"`metric`: closure `seen`", "attribute `calls`", "attribute `calls` of `Least`"} <= {*before["unknown"]}


def test_objects_without_a_readable_content_are_named() -> None:
    handle = object()

    def answer(question: str) -> object:
        return handle

    found: Any = run_fingerprint(answer, None, None, {})
    assert [each for each in found["unknown"] if "closure `handle`" in each and "object" in each]


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_file_that_is_installed_for_another_interpreter_is_no_file_of_the_user(folder: str, tmp_path: Path) -> None:
    path = tmp_path / "lib" / folder / "package" / "part.py"
    path.parent.mkdir(parents=True)
    path.write_text("")
    (tmp_path / "linked.py").symlink_to(path)
    assert [is_users_file(str(each)) for each in (path, tmp_path / "linked.py", tmp_path / "own.py")] == [
        False,
        False,
        True,
    ]


def test_files_of_thousands_of_modules_are_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [f"/a-project/module_{number}.py" for number in range(5000)]
    assert all(is_users_file(path) for path in paths)
    resolved: list[Path] = []
    monkeypatch.setattr(Path, "resolve", lambda path: resolved.append(path) or path)
    assert all(is_users_file(path) for path in paths)
    assert not resolved


def test_weak_collections_are_skipped_and_named() -> None:
    class Held:
        pass

    held = Held()
    by_name, names, some = WeakValueDictionary({"a": held}), WeakKeyDictionary({held: 1}), WeakSet([held])

    def metric(example: Example, prediction: Prediction) -> bool:
        return bool(by_name or names or some)

    def read() -> Any:
        return run_fingerprint(tried, None, None, {"metric": metric})

    tried = program()
    before = read()
    del held
    gc.collect()
    assert differences(before, read()) == []
    assert [each for each in before["unknown"] if "weakref" in each] == [
        f"`metric`: closure `{name}` (weakref.{kind})"
        for name, kind in [("by_name", "WeakValueDictionary"), ("names", "WeakKeyDictionary"), ("some", "WeakSet")]
    ]


def test_mapping_to_which_an_item_is_added_while_it_is_read_is_read() -> None:
    class Growing:
        def __str__(self) -> str:
            found[len(found)] = 0
            return "growing"

    found: dict[object, int] = {Growing(): 1}

    def metric(example: Example, prediction: Prediction) -> bool:
        return bool(found)

    assert (
        "`metric`: closure `found`" in run_fingerprint(program(), None, None, {"metric": metric})["metrics"]["metric"]
    )


def test_no_secret_enters() -> None:
    def read(key: str) -> Any:
        class Client:
            def __init__(self) -> None:
                self.api_key, self.limit = key, 3

            def ask(self) -> str:
                return self.api_key

        client, token = Client(), key

        def answer(question: str) -> tuple[str, str]:
            return client.ask(), token

        lm = LM("openai/gpt-4o-mini", api_key=key, base_url=f"https://user:{key}@host.example/v1")
        return run_fingerprint(answer, lm, None, {})

    one, other = read("sk-aaaaaaaaaaaaaaaaaaaaaaaa"), read("sk-bbbbbbbbbbbbbbbbbbbbbbbb")
    assert differences(one, other) == []
    assert "aaaa" not in json.dumps(one)
    assert one["program"]["address"] == "= https://host.example/v1"
