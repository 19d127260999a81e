"""A folder with a program, a metric and data, as the current directory of each test."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

APP = '''
import sigwire

class Triage(sigwire.Signature):
    """Sort the message."""

    message: str = sigwire.InputField()
    order: int = sigwire.InputField(default=0)
    topic: str = sigwire.OutputField()

class Support(sigwire.Module):
    def __init__(self):
        super().__init__()
        self.triage = sigwire.Predict("message -> topic", lm=sigwire.FakeLM(answer))

    def forward(self, message):
        return self.triage(message=message)

def answer(request):
    return {"topic": request.messages[-1].text.split("[[ ## message ## ]]")[1].split()[0]}

program = Support()
unset = sigwire.Predict("message -> topic")

def first_word(message):
    return sigwire.Prediction(topic=message.split()[0])

def exact(example, prediction, trace=None):
    return example.topic == prediction.topic

def broken(example, prediction, trace=None):
    raise KeyError("topic")

number = 7
'''
ROWS = [("billing please", "billing"), ("delivery is late", "delivery"), ("refund me", "billing")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory: ``app.py`` and ``data.jsonl``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "app", sys)  # restored after the test
    del sys.modules["app"]
    monkeypatch.setenv("SIGWIRE_PROGRESS", "off")
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    lines = [json.dumps({"message": message, "topic": topic}) for message, topic in ROWS]
    (tmp_path / "data.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path
