"""The marks of text that is not read for calls: thinking blocks, and results of tools that a model repeats or invents."""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.adapters.text_tools.markers import OUTPUTS

__all__ = ["CLOSERS", "ECHOES", "THOUGHTS"]

THOUGHTS: Mapping[str, str] = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
}
"""The tags that open thinking blocks, and the closing tag of each."""
CLOSERS = frozenset(THOUGHTS.values())

_TAGS = "function_response function_result function_results observation results tool_output tool_outputs tool_response"
_LLAMA_3 = ("<|eot_id|>", "<|eom_id|>", "<|start_header_id|>assistant<|end_header_id|>")
_LLAMA_4 = ("<|eot|>", "<|eom|>", "<|header_start|>assistant<|header_end|>")
ECHOES: Mapping[str, tuple[str, ...]] = {
    **{f"<{tag}>": (f"</{tag}>",) for tag in f"{_TAGS} tool_responses tool_result tool_results TOOL_RESPONSE".split()},
    **{opener: (opener.replace("begin", "end"),) for opener in OUTPUTS},
    **{f"<|start_header_id|>{role}<|end_header_id|>": _LLAMA_3 for role in ("ipython", "tool")},
    **{f"<|header_start|>{role}<|header_end|>": _LLAMA_4 for role in ("ipython", "tool")},
    **{f"<|im_start|>{role}": ("<|im_end|>", "<|im_start|>assistant") for role in ("environment", "tool")},
    "<|im_system|>tool": ("<|im_end|>", "<|im_assistant|>"),
    "<|start_of_role|>tool": ("<|end_of_text|>", "<|start_of_role|>assistant"),
    "<|START_TOOL_RESULT|>": ("<|END_TOOL_RESULT|>",),
    "<|observation|>": ("<|assistant|>", "<|user|>"),
    "<|start|>functions.": ("<|end|>", "<|start|>assistant"),
    "<|bom|><|tool|>": ("<|eom|>",),
    "<|tool_response|>": ("<|end|>", "<|assistant|>", "<|/tool_response|>"),
    "<|tool_response>": ("<tool_response|>",),
    "<|tool_response_start|>": ("<|tool_response_end|>",),
    "<start_function_response>": ("<end_function_response>",),
    "<seed:bos>tool": ("<seed:eos>",),
    "[TOOL_RESULTS]": ("[/TOOL_RESULTS]",),
    "]~b]tool": ("[e~[", "]~b]ai"),
}
"""Marks that open a tool's result, which the model repeats or invents, and the marks that end it. None starts another."""
