"""The code in a text of a model: one fenced block of Python. Text outside a block is never code."""

from __future__ import annotations

from sigwire.signatures.types.text import fenced_blocks

__all__ = ["fenced_code"]

_PYTHON = frozenset({"python", "py", "python3", "py3"})


def fenced_code(text: str) -> str:
    """Return the body of the one fenced block of Python; if no block is tagged Python, of the one block without a tag.

    Raises ``ValueError``, with a line that the model can act on, if there is no such block or there are several.

    >>> fenced_code("I look first.\\n```python\\nprint(len(text))\\n```\\nThen I count.")
    'print(len(text))'
    >>> fenced_code("print(len(text))")
    Traceback (most recent call last):
        ...
    ValueError: there is no closed block of Python. Write one block: ```python, the code, and ``` on a line of its own.
    """
    blocks = list(fenced_blocks(text.split("\n")))
    found = [body for tag, body in blocks if tag in _PYTHON] or [body for tag, body in blocks if not tag]
    if len(found) == 1:
        return found[0]
    count = f"are {len(found)} blocks" if found else "is no closed block"
    raise ValueError(f"there {count} of Python. Write one block: ```python, the code, and ``` on a line of its own.")
