"""DSPy's options of the four adapters."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.tools.calls import ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.dspy.adapters import Adapter, ChatAdapter, JSONAdapter, TwoStepAdapter, XMLAdapter
from sigwire.lm.fake import FakeLM
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.signatures.types.text import Reasoning


class Both(Signature):
    question: str = InputField()
    tools: list[Tool] = InputField()
    calls: ToolCalls = OutputField()


def test_options_that_change_nothing_are_accepted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter = ChatAdapter(callbacks=None, use_json_adapter_fallback=False, native_response_types=[])
    assert adapter == ChatAdapter()


@pytest.mark.parametrize(
    ("option", "instead"),
    [({"use_json_adapter_fallback": True}, "max_reasks"), ({"native_response_types": [Reasoning]}, "capabilities")],
)
def test_options_without_effect_warn_and_name_the_alternative(option: dict[str, Any], instead: str) -> None:
    with pytest.warns(UserWarning, match=instead) as caught:
        adapter = XMLAdapter(**option)
    assert adapter == XMLAdapter()
    assert caught[0].filename == __file__


@pytest.mark.parametrize("adapter", [ChatAdapter, JSONAdapter, XMLAdapter])
def test_native_function_calling_is_another_name_for_native_tools(adapter: type[Adapter]) -> None:
    native = Capabilities(native_tools=True)
    assert adapter(use_native_function_calling=False).plan(Both, native).tools_mode == "text"
    assert adapter().plan(Both, native).tools_mode == "native"


def test_two_step_adapter_takes_the_options_beside_its_model() -> None:
    lm = FakeLM(["x"])
    adapter = TwoStepAdapter(lm, use_native_function_calling=False)
    assert (adapter.extraction_model, adapter.native_tools) == (lm, False)
    with pytest.raises(ValueError, match="extracts with a language model"):
        TwoStepAdapter("openai/gpt-4.1")
