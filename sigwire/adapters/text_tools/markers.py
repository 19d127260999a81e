"""Literals that readers and writers of calls share: the taught fences and DeepSeek's tokens.

DeepSeek's bars and blocks arrive in two spellings each. Writers use the first spelling.
"""

from __future__ import annotations

from itertools import product

__all__ = ["CALL", "CALL_END", "CALL_FENCE", "FENCE", "OUTPUTS", "RESULT_FENCE", "SECTION", "SECTION_END", "SEPARATOR"]

FENCE = "~~~"
CALL_FENCE = "~~~tool_call"
RESULT_FENCE = "~~~tool_result"


def _spellings(*words: str) -> tuple[str, ...]:
    return tuple(f"<{bar}{block.join(words)}{bar}>" for bar, block in product("｜|", "▁_"))


SECTION, SECTION_END = _spellings("tool", "calls", "begin"), _spellings("tool", "calls", "end")
CALL, CALL_END = _spellings("tool", "call", "begin"), _spellings("tool", "call", "end")
SEPARATOR = _spellings("tool", "sep")
OUTPUTS = (*_spellings("tool", "outputs", "begin"), *_spellings("tool", "output", "begin"))
