"""Every target, driven by hypothesis, and the inputs that once failed."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz import files
from tests.fuzz.__main__ import main
from tests.fuzz.source import Source
from tests.fuzz.targets import KEPT, TARGETS


@pytest.mark.parametrize(
    "name", [name if name in files.TARGETS else pytest.param(name, marks=pytest.mark.long) for name in TARGETS]
)
@given(data=st.binary(max_size=160))
def test_any_input_gives_a_result_or_a_sigwire_error(name: str, data: bytes) -> None:
    TARGETS[name](Source(data))


@pytest.mark.parametrize(("name", "data", "fault"), KEPT)
def test_inputs_that_once_failed_pass(name: str, data: bytes, fault: str) -> None:
    TARGETS[name](Source(data))


def test_missing_atheris_is_reported_with_the_command_to_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["json"]) == 2
    assert "pip install atheris" in capsys.readouterr().err
