"""``dspy.utils`` and ``dspy.teleprompt.utils``: functions over items, evaluation of candidates."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.dspy.utils import download
from sigwire.dspy.utils.parallelizer import ParallelExecutor


@pytest.mark.filterwarnings("ignore:Item 1 failed")
def test_executor_of_one_thread_runs_in_the_thread_of_the_caller() -> None:
    def work(number: int) -> Any:
        if number == 2:
            raise ValueError(number)
        return threading.current_thread()

    executor = ParallelExecutor(num_threads=1, max_errors=2)
    assert executor.execute(work, [1, 2]) == [threading.current_thread(), None]
    assert executor.failed_indices == [1]


@pytest.mark.parametrize(("size", "count"), [(10, 5), (3, 3)])
def test_candidate_is_evaluated_on_all_examples_or_on_some(size: int, count: int) -> None:
    asked: list[Any] = []

    def evaluate(program: Any, devset: list[int], callback_metadata: Any) -> float:
        asked.append((len(devset), callback_metadata["metric_key"]))
        return 50.0

    assert dspy.teleprompt.eval_candidate_program(size, [1, 2, 3, 4, 5], dspy.Module(), evaluate) == 50.0
    assert asked == [(count, "eval_full" if count == 5 else "eval_minibatch")]


def test_failed_evaluation_of_a_candidate_counts_as_zero() -> None:
    def fail(program: Any, **options: Any) -> float:
        raise ValueError("no")

    with pytest.warns(UserWarning, match="counts as 0"):
        assert float(dspy.teleprompt.eval_candidate_program(2, [1, 2, 3], dspy.Module(), fail)) == 0.0


def test_logging_is_switched_off_and_on() -> None:
    for name, off, on in (
        ("sigwire", dspy.disable_logging, dspy.enable_logging),
        ("LiteLLM", dspy.disable_litellm_logging, dspy.enable_litellm_logging),
    ):
        off()
        assert not logging.getLogger(f"{name}.part").isEnabledFor(logging.CRITICAL)
        on()
        assert logging.getLogger(f"{name}.part").isEnabledFor(logging.CRITICAL)


def test_embeddings_take_the_options_of_dspy_and_load_a_folder(tmp_path: Path) -> None:
    def embed(texts: list[str]) -> Any:
        return [[float("cat" in text), float("dog" in text)] for text in texts]

    search = dspy.Embeddings(["a cat", "a dog"], embed, k=1, cache=True, brute_force_threshold=9)
    search.save(tmp_path)
    other = dspy.retrievers.EmbeddingsWithScores(["else"], embed, brute_force_threshold=5).load(tmp_path, embed)
    assert (other.corpus, other.k, other.brute_force_threshold) == (["a cat", "a dog"], 1, 5)
    assert (other("my dog").passages, other("my dog").scores) == (["a dog"], [1.0])
    assert type(dspy.Embeddings.from_saved(tmp_path, embed)) is dspy.Embeddings
    with pytest.raises(FileNotFoundError, match="no saved embeddings"):
        dspy.Embeddings.from_saved(tmp_path / "none", embed)


def test_folders_of_embeddings_are_those_of_dspy_and_of_sigwire(tmp_path: Path) -> None:
    def embed(texts: list[str]) -> Any:
        return [[float(len(text)), 1.0] for text in texts]

    dspy.Embeddings(["oak", "sycamore"], embed, k=1, normalize=False).save(tmp_path / "dspy")
    settings = tmp_path / "dspy" / "config.json"
    assert sorted(path.name for path in settings.parent.iterdir()) == ["config.json", "corpus_embeddings.npy"]
    facts = {"k": 1, "normalize": False, "corpus": ["oak", "sycamore"]}
    assert json.loads(settings.read_text()) == {**facts, "has_faiss_index": False}
    settings.write_text(json.dumps({**facts, "has_faiss_index": True}))  # the vectors are in the folder also
    sigwire.Embeddings(["oak", "sycamore"], embed, k=1).save(tmp_path / "sigwire")
    for name in ("dspy", "sigwire"):
        found = dspy.Embeddings.from_saved(tmp_path / name, embed)
        assert (found.corpus, found.embedder, found.index) == (["oak", "sycamore"], embed, None)
        assert found("a long word").indices == [1]


ROWS = [dspy.Example(text=text, number=number).with_inputs("text") for text, number in (("one", 1), ("two", 2))]


def equal(example: Any, prediction: Any, trace: Any) -> bool:
    assert trace
    return bool(example.number == prediction.number)


@pytest.fixture
def one_request() -> Iterator[None]:
    with dspy.context(adapter=dspy.ChatAdapter(use_json_adapter_fallback=False)):
        yield


@pytest.mark.usefixtures("one_request")
def test_traces_of_runs_have_a_score_and_unreadable_answers() -> None:
    program = dspy.Predict(
        "text -> number: int, note", lm=dspy.DummyLM([{"number": 1, "note": "n"}, {"number": 2}] * 3)
    )
    good, bad = dspy.bootstrap_trace_data(
        program, ROWS, equal, num_threads=1, capture_failed_parses=True, failure_score=1, format_failure_score=-1
    )
    assert (good["prediction"].number, good["score"], good["example_ind"]) == (1, True, 0)
    assert isinstance(bad["prediction"], dspy.teleprompt.FailedPrediction)
    assert "[[ ## number ## ]]" in bad["prediction"].completion_text
    assert (bad["score"], bad["trace"][-1][0], bad["trace"][-1][1]) == (0.0, program, {"text": "two"})
    assert [
        row["example_ind"] for row in dspy.bootstrap_trace_data(program, ROWS, raise_on_error=False, num_threads=1)
    ] == [0]
    with pytest.raises(dspy.AdapterParseError):
        dspy.bootstrap_trace_data(program, ROWS, num_threads=1)


def test_traces_of_runs_capture_errors_of_the_program_and_not_of_the_model() -> None:
    class Fails(dspy.Module):
        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

        def forward(self, text: str) -> Any:
            raise self.error

    (row,) = dspy.bootstrap_trace_data(Fails(RuntimeError("bug")), ROWS[:1], num_threads=1, capture_crashes=True)
    assert row["prediction"].completion_text == "RuntimeError: bug"
    limited = Fails(dspy.LMRateLimitError("429"))
    assert dspy.bootstrap_trace_data(limited, ROWS[:1], None, 1, raise_on_error=False, capture_crashes=True) == []


def test_runs_with_traces_are_one_evaluation_for_callbacks() -> None:
    class Metadata(dspy.BaseCallback):
        def on_evaluate_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
            seen.append(inputs["callback_metadata"])

    seen: list[Any] = []
    with dspy.context(callbacks=[Metadata()], lm=dspy.DummyLM([{"number": 1}] * 2)):
        dspy.bootstrap_trace_data(dspy.Predict("text -> number: int"), ROWS, callback_metadata={"round": 3})
    assert seen == [{"round": 3}]


def test_paths_of_dsp_are_those_of_the_settings_and_dicts_with_attributes() -> None:
    from sigwire.dspy.dsp.utils import settings  # type: ignore[import-not-found]
    from sigwire.dspy.dsp.utils.utils import dotdict  # type: ignore[import-not-found]

    record = dotdict(a=1)
    record.b = 2
    del record.a
    assert (record, settings) == ({"b": 2}, dspy.settings)
    with pytest.raises(AttributeError, match="no attribute 'a'"):
        record.a  # noqa: B018


class Files(BaseHTTPRequestHandler):
    """Serves one file; the second half of ``/cut.jsonl`` never arrives."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"01234" if self.path.startswith("/cut") else b"0123456789")

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def files() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_download_writes_a_file_once_and_keeps_no_part_of_one(
    files: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        download(f"{files}/a/wiki%20one.jsonl?raw=true")
    assert (tmp_path / "wiki one.jsonl").read_bytes() == b"0123456789"
    assert capsys.readouterr().out == "Downloading 'wiki one.jsonl'...\n"
    with pytest.raises(OSError, match="5 of 10 bytes"):
        download(f"{files}/cut.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["wiki one.jsonl"]


@pytest.mark.parametrize("url", ["file:///etc/hosts", "https://files.example/", "wiki.jsonl"])
def test_download_refuses_what_is_no_url_of_a_file(url: str) -> None:
    with pytest.raises(sigwire.InputError, match="no URL of a file"):
        download(url)
