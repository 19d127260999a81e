"""``RunLog``: records are kept with and without a file, and a run takes those of an earlier one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sigwire.core.example import Example
from sigwire.core.json import JsonObject
from sigwire.errors import ConfigurationError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.running.log import RunLog

HEADER: JsonObject = {"type": "run", "format": 1, "metrics": ["exact"]}
EXAMPLES = [Example(question=text).with_inputs("question") for text in "ab"]


def record_of(index: int, repeat: int = 1) -> ExampleRecord:
    cell = Cell(1.0, outputs={"answer": "4"})
    return ExampleRecord("ab"[index], index, repeat, {"question": "ab"[index]}, {}, cell, "now")


def keep(log: RunLog, record: ExampleRecord) -> None:
    log.keep(record, None, log.line_of(record))


def test_log_without_a_file_keeps_records() -> None:
    log = RunLog(None, HEADER, True)
    keep(log, record_of(1))
    log.sync()
    log.close("complete", 0.1)
    assert ([*log.records], log.path, log.is_closed) == ([(1, 1)], None, True)


def test_log_takes_the_records_of_its_examples_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = RunLog(path, HEADER, True)
    for record in (record_of(0), record_of(1), record_of(0, repeat=2)):
        keep(log, record)
    log.close("cancelled", 0.1)
    assert [json.loads(line)["type"] for line in path.read_text().splitlines()] == ["run", *["record"] * 3, "end"]
    changed = [EXAMPLES[0], Example(question="another").with_inputs("question")]
    again = RunLog(path, HEADER, True)
    again.take(["a", "b"], changed, repeat=1)
    again.close("complete", 0.1)
    assert [(key, record.kept) for key, record in again.records.items()] == [((0, 1), True)]
    assert again.predictions[0, 1].answer == "4"


def test_refused_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    RunLog(path, HEADER, True).close("complete", 0.1)
    with pytest.raises(ConfigurationError, match="metrics differs"):
        RunLog(path, {**HEADER, "metrics": ["other"]}, True)
    RunLog(path, HEADER, True).close("complete", 0.1)  # not held by the refused one
