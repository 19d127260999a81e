"""Module: entries, parts, copies, batches, histories and state."""

from __future__ import annotations

import _thread
import asyncio
import json
import os
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.example import Example, Prediction
from sigwire.core.response import Usage
from sigwire.effects.steps import Steps, run
from sigwire.errors import ConfigurationError, InputError, MissingState, StateError
from sigwire.lm.fake import FakeLM
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.modules.programs.files import load_program
from sigwire.observe.callbacks import BaseCallback
from sigwire.observe.usage import track_usage
from sigwire.settings import context
from sigwire.signatures import InputField, OutputField, Signature


def answering(text: str = "yes") -> FakeLM:
    """Return a model with the same answer to each request."""
    return FakeLM(lambda request: {"answer": text}, usage=Usage(input_tokens=2, output_tokens=1))


# --- entries ---------------------------------------------------------------------------------------


class Blocking(Module):
    def forward(self, n: int) -> tuple[int, str]:
        return n + 1, threading.current_thread().name


class Awaited(Module):
    async def aforward(self, n: int) -> int:
        await asyncio.sleep(0)
        return n + 1


class AwaitedForward(Module):
    async def forward(self, n: int) -> int:
        await asyncio.sleep(0)
        return n + 1


class Both(Module):
    def forward(self, n: int) -> str:
        return f"blocking {n}"

    async def aforward(self, n: int) -> str:
        return f"awaited {n}"


class Stepping(Module):
    def steps(self, n: int) -> Steps[int]:
        first, _ = yield from Blocking().call_steps(n)
        return (yield from Awaited().call_steps(first))


async def test_module_with_forward_serves_both_calls_without_blocking_the_loop() -> None:
    assert Blocking()(1) == (2, "MainThread")
    number, thread = await Blocking().acall(1)
    assert number == 2
    assert thread != "MainThread"


@pytest.mark.parametrize("module", [Awaited(), AwaitedForward()])
def test_module_with_aforward_can_be_called_blocking(module: Module) -> None:
    assert module(n=1) == 2


@pytest.mark.parametrize("module", [Awaited(), AwaitedForward()])
async def test_module_with_aforward_can_be_called_blocking_inside_a_running_loop(module: Module) -> None:
    assert module(n=1) == 2
    assert await module.acall(n=1) == 2


async def test_module_with_both_entries_uses_each_for_its_kind_of_call() -> None:
    assert Both()(n=1) == "blocking 1"
    assert await Both().acall(n=1) == "awaited 1"


async def test_module_with_steps_serves_both_kinds_of_call() -> None:
    assert Stepping()(n=1) == 3
    assert await Stepping().acall(n=1) == 3
    assert run(Stepping().call_steps(n=1)) == 3


async def test_module_uses_entry_of_nearest_class_for_both_kinds_of_call() -> None:
    class Child(Both):
        def forward(self, n: int) -> str:
            return "child " + super().forward(n)

    class Threaded(Stepping):
        def forward(self, n: int) -> str:
            return "threaded"

    assert Child()(n=1) == await Child().acall(n=1) == "child blocking 1"
    assert Threaded()(n=1) == await Threaded().acall(n=1) == "threaded"


async def test_subclass_of_predict_may_override_and_call_forward() -> None:
    class Careful(Predict[..., Any]):
        def forward(self, **inputs: Any) -> Any:
            return super().forward(**inputs).answer.upper()

    careful = Careful("question -> answer", lm=answering())
    assert careful(question="?") == await careful.acall(question="?") == "YES"


def test_module_without_entry_names_methods_to_define() -> None:
    with pytest.raises(ConfigurationError, match=r"Module cannot be called.*forward"):
        Module()()


def test_module_has_base_attributes_when_subclass_skips_super_init() -> None:
    class Forgetful(Module):
        def __init__(self) -> None:
            self.ask = Predict("question -> answer")

        def forward(self, question: str) -> Any:
            return self.ask(question=question)

    forgetful = Forgetful()
    assert (forgetful.callbacks, list(forgetful.history), forgetful._compiled) == ([], [], False)
    forgetful.set_lm(answering())
    assert forgetful(question="?").answer == "yes"


# --- parts ------------------------------------------------------------------------------------------


class Nested(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Predict("a -> b")
        self.many = [Predict("a -> b"), (ChainOfThought("a -> b"), {"deep": [Predict("a -> b")]})]
        self.named = {"k": Predict("a -> b"), 7: self.first}
        self.inner = Blocking()
        self.again = self.many
        self.loop = self


NAMES = ["first", "many[0]", "many[1][0].predict", "many[1][1]['deep'][0]", "named['k']"]


def test_named_parameters_use_paths_and_list_shared_ones_once() -> None:
    nested = Nested()
    assert [name for name, _ in nested.named_parameters()] == NAMES
    assert [name for name, _ in nested.named_predictors()] == NAMES
    assert nested.predictors() == nested.parameters()


def test_predictor_is_its_own_parameter() -> None:
    predict = Predict("a -> b")
    assert predict.named_parameters() == [("self", predict)]


def test_named_sub_modules_are_breadth_first() -> None:
    nested = Nested()
    named = dict(nested.named_sub_modules())
    assert list(named) == [
        "self", "self.first", "self.many[0]", "self.many[1][0]", "self.many[1][1][deep][0]", "self.named[k]", "self.inner",
        "self.many[1][0].predict",
    ]  # fmt: skip
    assert named["self"] is nested
    assert [name for name, _ in nested.named_sub_modules(ChainOfThought)] == ["self.many[1][0]"]


def test_compiled_sub_module_hides_its_parameters() -> None:
    nested = Nested()
    nested.many[1][0]._compiled = True  # type: ignore[index, union-attr]
    assert [name for name, _ in nested.named_parameters()] == [name for name in NAMES if "predict" not in name]
    assert "self.many[1][0].predict" not in dict(nested.named_sub_modules(skip_compiled=True))


def test_get_lm_returns_common_model_and_raises_when_there_are_several() -> None:
    nested, lm = Nested(), answering()
    assert nested.get_lm() is None
    nested.set_lm(lm)
    assert nested.get_lm() is lm
    nested.first.lm = FakeLM("x", model="other")
    with pytest.raises(ConfigurationError, match=r"different models \(fake, other\)"):
        nested.get_lm()


# --- copies --------------------------------------------------------------------------------------------


def test_deepcopy_copies_parts_and_shares_resources() -> None:
    class Holder(Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = Predict("question -> answer", lm=answering())
            self.same = [self.ask]
            self.lock = threading.Lock()
            self.facts = {"list": [1, 2]}
            self.function = lambda: 1
            self.self_in_list = [self]
            self.plan = Predict("question -> plan")

    holder = Holder()
    holder.ask.demos = [Example(question="q", answer="a"), {"question": "x"}]
    made = holder.deepcopy()
    assert made.ask is not holder.ask
    assert made.plan is not holder.plan
    assert made.same[0] is made.ask
    assert made.self_in_list[0] is made
    assert made.lock is holder.lock
    assert made.function is holder.function
    assert made.ask.lm is holder.ask.lm
    made.facts["list"].append(3)
    made.ask.demos[0].answer = "changed"
    made.ask.demos.append({})
    assert holder.facts == {"list": [1, 2]}
    assert holder.ask.demos == [Example(question="q", answer="a"), {"question": "x"}]


def test_deepcopy_never_pickles() -> None:
    class Hostile:
        def __reduce_ex__(self, protocol: Any) -> Any:
            raise RuntimeError("this must not be taken apart")

    class Holder(Module):
        def __init__(self) -> None:
            super().__init__()
            self.hostile = Hostile()

    holder = Holder()
    assert holder.deepcopy().hostile is holder.hostile


# --- batches -------------------------------------------------------------------------------------------


class Slow(Module):
    """Waits longer for smaller numbers, and counts the calls that run at once."""

    def __init__(self) -> None:
        super().__init__()
        self.running = self.most = 0
        self.lock = threading.Lock()

    def forward(self, n: int) -> int:
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(0.002 * (5 - n % 5))
        with self.lock:
            self.running -= 1
        if n == 13:
            raise ValueError("unlucky")
        return n


async def test_batch_keeps_order_and_limit() -> None:
    slow = Slow()
    assert slow.batch([{"n": n} for n in range(12)], num_threads=3) == list(range(12))
    assert 1 < slow.most <= 3
    slow.most = 0
    assert await slow.abatch([{"n": n} for n in range(12)], num_threads=3) == list(range(12))
    assert 1 < slow.most <= 3


def test_batch_takes_limit_from_settings() -> None:
    slow = Slow()
    with context(num_threads=1):
        slow.batch([{"n": n} for n in range(4)])
    assert slow.most == 1


async def test_batch_raises_or_returns_errors() -> None:
    inputs = [{"n": 1}, {"n": 13}, {"n": 2}]
    with pytest.raises(ValueError, match="unlucky"):
        Slow().batch(inputs)
    with pytest.raises(ValueError, match="unlucky"):
        await Slow().abatch(inputs)
    for results in (Slow().batch(inputs, return_exceptions=True), await Slow().abatch(inputs, return_exceptions=True)):
        assert results[0] == 1
        assert results[2] == 2
        assert isinstance(results[1], ValueError)


async def test_batch_returns_failed_examples_separately() -> None:
    inputs = [{"n": 1}, {"n": 13}, {"n": 2}]
    for batch in (
        Slow().batch(inputs, 2, return_failed_examples=True),
        await Slow().abatch(inputs, return_failed_examples=True),
    ):
        results, failed, errors = batch
        assert (results, failed, [str(error) for error in errors]) == ([1, None, 2], [{"n": 13}], ["unlucky"])
    assert Slow().batch([], return_failed_examples=True) == ([], [], [])


@pytest.mark.parametrize("threads", [0, -1])
def test_batch_refuses_limit_of_zero(threads: int) -> None:
    with pytest.raises(ConfigurationError, match="num_threads is a number above 0"):
        Slow().batch([{"n": 1}], num_threads=threads)


async def test_batch_inherits_the_context() -> None:
    predict = Predict("question -> answer")
    with context(lm=answering("inherited")), track_usage() as tracker:
        results = predict.batch([{"question": str(n)} for n in range(4)])
        results += await predict.abatch([{"question": str(n)} for n in range(4)])
    assert [result.answer for result in results] == ["inherited"] * 8
    assert tracker.get_total_tokens()["fake"]["input_tokens"] == 16


def test_batch_takes_examples_and_dicts_only() -> None:
    assert Slow().batch([Example(n=3, label="x").with_inputs("n")]) == [3]
    assert Slow().batch([]) == []
    with pytest.raises(ValueError, match="with_inputs"):
        Slow().batch([Example(n=3)])
    with pytest.raises(InputError, match="not int"):
        Slow().batch([3])  # type: ignore[list-item]


def test_batch_starts_no_call_after_an_interrupt() -> None:
    begun: list[int] = []

    class Interrupted(Module):
        def forward(self, n: int) -> None:
            begun.append(n)
            if n == 0:
                _thread.interrupt_main()
            time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        Interrupted().batch([{"n": n} for n in range(50)], num_threads=2)
    assert len(begun) < 10


# --- callbacks, usage, history -------------------------------------------------------------------------


class Recorder(BaseCallback):
    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def on_module_start(self, call_id: str, instance: Any, inputs: Any) -> None:
        self.events.append(("start", type(instance).__name__, dict(inputs)))

    def on_lm_start(self, call_id: str, instance: Any, inputs: Any) -> None:
        self.events.append(("asked", instance.model))

    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.events.append(("end", outputs, exception))

    def on_adapter_format_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.events.append(("formatted", type(outputs).__name__))

    def on_adapter_parse_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.events.append(("parsed", outputs))


async def test_callbacks_receive_modules_and_adapters_in_both_kinds_of_call() -> None:
    class Outer(Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = Predict("question -> answer", lm=answering())

        def forward(self, question: str) -> Any:
            return self.ask(question=question).answer

    for positional in (False, True):
        recorder = Recorder()
        with context(callbacks=[recorder]):
            if positional:
                await Outer().acall("?")
            else:
                Outer()(question="?")
        assert recorder.events == [
            ("start", "Outer", {"question": "?"}),
            ("start", "Predict", {"question": "?"}),
            ("formatted", "Request"),
            ("asked", "fake"),
            ("parsed", {"answer": "yes"}),
            ("end", Prediction(answer="yes"), None),
            ("end", "yes", None),
        ]


def test_callbacks_of_a_module_receive_its_calls_and_failures() -> None:
    recorder = Recorder()
    module = Predict("question -> answer", callbacks=[recorder], lm=answering())
    with pytest.raises(InputError) as caught:
        module(qestion="?")
    assert recorder.events == [("start", "Predict", {"qestion": "?"}), ("end", None, caught.value)]


async def test_track_usage_sets_totals_on_outermost_module_only() -> None:
    class Twice(Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = Predict("question -> answer", lm=answering())

        def forward(self, question: str) -> Any:
            self.inner = self.ask(question=question)
            return self.ask(question=question)

    twice = Twice()
    with context(track_usage=True):
        for prediction in (twice(question="?"), await twice.acall(question="?")):
            assert prediction.get_lm_usage()["fake"] == Usage(input_tokens=4, output_tokens=2).counts()
    assert twice(question="?").get_lm_usage()["fake"]["input_tokens"] == 4
    assert twice.inner.get_lm_usage()["fake"]["input_tokens"] == 2


@pytest.fixture
def chatty() -> Module:
    class Chatty(Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = Predict("question -> answer", lm=answering())

        def forward(self, question: str) -> Any:
            return self.ask(question=question)

    return Chatty()


def test_module_history_is_empty_by_default_and_inspect_history_names_the_setting(
    chatty: Module, capsys: pytest.CaptureFixture[str]
) -> None:
    chatty(question="?")
    assert list(chatty.history) == []
    chatty.inspect_history()
    assert "max_history_size" in capsys.readouterr().out


def test_module_history_records_calls_of_inner_modules_when_size_is_set(
    chatty: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with context(max_history_size=2):
        for question in ("one", "two", "three"):
            chatty(question=question)
    assert len(chatty.history) == len(chatty.ask.history) == 2
    assert "three" in chatty.history[-1]["messages"][-1]["content"]
    chatty.inspect_history(n=1)
    assert "three" in (shown := capsys.readouterr().out)
    assert "two" not in shown


# --- state -----------------------------------------------------------------------------------------------


class Pair(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Predict("question -> answer")
        self.second = ChainOfThought("question -> answer")


def test_saved_program_loads_into_new_program(tmp_path: Path) -> None:
    pair, path = Pair(), tmp_path / "pair.json"
    pair.first.demos = [Example(question="é", answer="4").with_inputs("question")]
    pair.first.signature = pair.first.signature.with_instructions("Be brief.")
    pair.save(path)
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert set(saved) == {"first", "second.predict", "metadata"}
    assert saved["metadata"].keys() == {"dependency_versions", "sigwire"}
    assert set(saved["metadata"]["dependency_versions"]) == {"python"}  # DSPy's loader looks each up among its own
    fresh = Pair()
    fresh.load(path)
    assert Pair().load_state(pair.dump_state()).dump_state() == fresh.dump_state()
    assert fresh.first.demos == [{"question": "é", "answer": "4"}]
    assert fresh.first.signature.instructions == "Be brief."
    assert fresh.dump_state() == pair.dump_state()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_saving_keeps_the_mode_of_the_file(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text("{}")
    path.chmod(mode)
    Predict("question -> answer").save(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert "traces" in path.read_text(encoding="utf-8")


def test_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.json"
    path.write_text("old")

    def fails(descriptor: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="full"):
        Predict("question -> answer").save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.json"]
    assert path.read_bytes() == b"old"


def test_predictor_is_saved_at_top_level(tmp_path: Path) -> None:
    predict = Predict("question -> answer")
    predict.save(tmp_path / "p.json")
    saved = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    assert list(saved) == ["traces", "train", "demos", "signature", "lm", "metadata"]
    Predict("question -> answer").load(tmp_path / "p.json")


def test_saved_program_has_no_secrets(tmp_path: Path) -> None:
    predict = Predict(
        "question -> answer", lm=FakeLM("x", extra_body={"api_key": "canary-key"}, extra_headers={"X": "canary-key"})
    )
    with pytest.warns(UserWarning, match="a plain load refuses the file"):
        predict.save(tmp_path / "p.json")
    assert "canary-key" not in (tmp_path / "p.json").read_text(encoding="utf-8")


BROKEN: list[tuple[str, Any, type[Exception], str]] = [
    ("a missing part", lambda state: state.pop("second.predict"), MissingState, "second.predict"),
    ("an unknown part", lambda state: state.update(third=state["first"]), StateError, "third"),
    ("no object", lambda state: state.update(first=[]), StateError, "'first' cannot be used"),
    ("no signature", lambda state: state["second.predict"].pop("signature"), StateError, "second.predict"),
    ("demos of a wrong type", lambda state: state["second.predict"].update(demos={}), StateError, "demos is a list"),
    ("a demo of a wrong type", lambda state: state["second.predict"].update(demos=["x"]), StateError, "not str"),
    (
        "other fields",
        lambda state: state["second.predict"].update(signature=Predict("x -> y").signature.dump_state()),
        StateError,
        "second.predict",
    ),
    (
        "no texts",
        lambda state: state["second.predict"]["signature"].update(instructions=None),
        StateError,
        "instructions are NoneType",
    ),
    (
        "fields that are no objects",
        lambda state: state["second.predict"]["signature"].update(fields=[1, 2]),
        StateError,
        "fields hold int",
    ),
    (
        "a field text that is none",
        lambda state: state["second.predict"]["signature"]["fields"][0].update(description=[1]),
        StateError,
        "field texts hold list",
    ),
    (
        "a model that nobody serves",
        lambda state: state["second.predict"].update(lm={"model": "offline/at-all"}),
        StateError,
        "at-all",
    ),
    (
        "a foreign class",
        lambda s: s["second.predict"].update(lm={"class": "os.path", "model": "m"}),
        StateError,
        "os.path",
    ),
]


@pytest.mark.parametrize(("name", "damage", "error", "text"), BROKEN, ids=[case[0] for case in BROKEN])
def test_load_changes_nothing_when_a_part_is_invalid(name: str, damage: Any, error: type[Exception], text: str) -> None:
    pair = Pair()
    pair.first.demos = [{"question": "new"}]
    state = json.loads(json.dumps(pair.dump_state()))
    damage(state)
    target = Pair()
    target.first.demos = [{"question": "old"}]
    before = target.dump_state()
    with pytest.raises(error, match=text):
        target.load_state(state)
    assert target.dump_state() == before


def test_load_raises_readable_key_error_when_a_part_is_missing() -> None:
    with pytest.raises(KeyError) as caught:
        Pair().load_state({})
    assert str(caught.value).startswith("The saved state has nothing for first, second.predict")


@pytest.mark.parametrize("name", ["program.pkl", "program", "program.yaml"])
def test_save_and_load_refuse_other_suffixes_than_json(tmp_path: Path, name: str) -> None:
    with pytest.raises(StateError, match="JSON"):
        Pair().save(tmp_path / name)
    with pytest.raises(StateError, match="JSON"):
        Pair().load(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{", "\x80\x04K\x01."])
def test_load_raises_state_error_when_file_is_not_a_program(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StateError, match=r"p\.json is not a saved program"):
        Pair().load(path)


def test_save_and_load_never_pickle_even_on_request(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="needs pickle"):
        Pair().save(tmp_path / "program", save_program=True)
    Pair().save(tmp_path / "p.json", save_program=False)
    Pair().load(tmp_path / "p.json")
    with pytest.raises(StateError, match="Pickle files"):
        Pair().load(tmp_path / "p.pkl")


def test_load_state_of_predictor_reports_errors_like_a_program() -> None:
    predict = Predict("question -> answer")
    with pytest.raises(StateError, match=r"at-all.*Nothing was changed"):
        predict.load_state({**predict.dump_state(), "lm": {"model": "offline/at-all"}})


class Photo(Signature):
    """Describe it."""

    raw: bytes = InputField()
    text: str = OutputField()


def test_saved_demos_give_the_same_prompt(tmp_path: Path) -> None:
    lm, path = FakeLM(lambda request: {"text": "a cat"}), tmp_path / "p.json"
    predict, fresh = Predict(Photo), Predict(Photo)
    predict.demos = [Example(raw=b"\xff\x00", text="caf\udce9")]
    predict.save(path)
    fresh.load(path)
    for module in (predict, fresh):
        module(raw=b"", lm=lm)
    assert lm.requests[0] == lm.requests[1]


@pytest.mark.parametrize("bad", [object(), float("nan")])
def test_save_raises_state_error_when_a_demo_has_no_json_form(tmp_path: Path, bad: object) -> None:
    predict = Predict("question -> answer")
    predict.demos = [{"question": "fine"}, {"question": bad}]
    with pytest.raises(StateError, match=r"demos\[1\] of a predictor|A demo holds NaN"):
        predict.save(tmp_path / "p.json")
    assert list(tmp_path.iterdir()) == []


def test_save_names_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no directory '.*nowhere' to save 'p\.json' in"):
        Pair().save(tmp_path / "nowhere" / "p.json")


@pytest.mark.parametrize("error", [StateError, FileNotFoundError])
def test_load_names_missing_file_and_folder(tmp_path: Path, error: type[Exception]) -> None:
    (tmp_path / "folder.json").mkdir()
    for name in ("nothing.json", "folder.json"):
        for load in (Pair().load, load_program):
            with pytest.raises(error, match=rf"{name}': (No such file|Is a dir).* \(loading it in "):
                load(tmp_path / name)


def test_save_works_from_many_threads_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: Pair().save(path), range(40)))
    Pair().load(path)
    assert list(tmp_path.iterdir()) == [path]


def test_save_keeps_old_file_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    predict = Predict("question -> answer")
    predict.save(path)
    before = path.read_text(encoding="utf-8")
    predict.demos = [{"question": object()}]
    with pytest.raises(ValueError, match="JSON"):
        predict.save(path)
    assert path.read_text(encoding="utf-8") == before
    assert list(tmp_path.iterdir()) == [path]
