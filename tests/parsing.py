"""A guard of ``ast.parse`` for CPython 3.11: the report of a failed test is made while other threads parse.

CPython before 3.11.8 counts the depth of a tree in the interpreter, not in the call (gh-106905). If the garbage collector runs
between two nodes of a tree, it runs Python code (a finalizer, the collection hook of hypothesis), another thread may parse in
between (each traceback with carets does), and the first call fails: ``SystemError: AST constructor recursion depth mismatch``.
pytest parses the source of a failed test, so the worker dies of an INTERNALERROR and the name of the test is lost.
"""

from __future__ import annotations

import ast
import gc
import os
import sys
import threading
from typing import Any

_lock = threading.RLock()


def guard_parsing() -> None:
    """Collect no garbage while ``ast.parse`` makes its nodes. Does nothing on versions of Python that need no guard."""
    if not (3, 11) <= sys.version_info < (3, 11, 8) or getattr(ast.parse, "__wrapped__", None):
        return
    parse = ast.parse

    def guarded(*args: Any, **options: Any) -> Any:
        # Under a lock: a second thread would turn the collector on while the first one is between two nodes.
        with _lock:
            is_on = gc.isenabled()
            gc.disable()
            try:
                return parse(*args, **options)
            finally:
                if is_on:
                    gc.enable()

    guarded.__wrapped__ = parse  # type: ignore[attr-defined]
    ast.parse = guarded
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
