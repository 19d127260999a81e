"""The public names as type checkers read them, from the stubs. Checked by mypy and pyright (strict), never run."""

from __future__ import annotations

from typing import assert_type

import sigwire
import sigwire.dspy as dspy
from sigwire import JSONAdapter, json_match, settings
from sigwire.errors import Where

assert_type(sigwire.__version__, str)
assert_type(dspy.__version__, str)
assert_type(sigwire.__all__, list[str])
assert_type(sigwire.f1_score("a", "b"), float)
assert_type(sigwire.LM("openai/gpt-4.1"), sigwire.LM)
where: type[Where] = sigwire.Where
core: type[sigwire.Predict[..., object]] = dspy.Predict
matches = [json_match, dspy.json_match]
adapter: sigwire.Adapter = JSONAdapter()
options = settings.get("lm")

sigwire.Predictor  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
sigwire.DummyLM  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
sigwire.import_module  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
dspy.ColBERTv2  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
