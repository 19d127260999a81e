"""An import hook of the tests: ``dspy`` and its submodules are ``sigwire.dspy`` and its submodules, the same objects."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["DoorFinder", "door_as_dspy"]


class DoorFinder(MetaPathFinder, Loader):
    """Find ``dspy.x`` where ``sigwire.dspy.x`` can be imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "dspy":
            return None
        try:
            import_module(f"sigwire.{fullname}")
        except ModuleNotFoundError as error:
            if str(error.name).startswith("sigwire.dspy"):
                return None
            raise
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(f"sigwire.{module.__name__}")
        prefix = f"sigwire.{module.__name__}."
        for name in [name for name in sys.modules if name.startswith(prefix)]:  # paths of DSPy that have no file here
            sys.modules[name.removeprefix("sigwire.")] = sys.modules[name]


@contextmanager
def door_as_dspy() -> Iterator[None]:
    """Resolve ``dspy`` to the door inside the block, and forget its modules after it."""
    finder = DoorFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "dspy"]:
            del sys.modules[name]
