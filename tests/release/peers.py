"""The public names of other libraries that sigwire stands beside: DSPy, pydantic-ai, and the resources of openai's client.

    python tests/release/peers.py            names that are installed and not reviewed
    python tests/release/peers.py --write    add them to peers.txt: someone has read them

``peers.txt`` has one name a line, behind that of its library. A name that arrives is read by a person: it gets a counterpart,
a row of advice (``sigwire/dspy/missing.py``), or nothing. The file imports nothing of sigwire, so that an environment with
a peer alone can run it: the peers do not agree with all test extras.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

REVIEWED = Path(__file__).with_name("peers.txt")
PARTS_OF_DSPY = (
    "adapters", "clients", "datasets", "evaluate", "experimental", "predict", "primitives", "retrievers", "signatures",
    "streaming", "teleprompt", "utils",
)  # fmt: skip


def names_of_dspy() -> Iterator[str]:
    """Yield the names of ``dspy`` and of its packages."""
    module = importlib.import_module("dspy")
    yield from _public(module, "")
    for part in PARTS_OF_DSPY:
        yield from _public(importlib.import_module(f"dspy.{part}"), f"{part}.")


def names_of_pydantic_ai() -> Iterator[str]:
    """Yield the names of ``pydantic_ai`` and of its modules."""
    module = importlib.import_module("pydantic_ai")
    yield from _public(module, "")
    for found in pkgutil.iter_modules(module.__path__):
        if not found.name.startswith("_"):
            yield found.name


def names_of_openai() -> Iterator[str]:
    """Yield the calls of the client's resources, as ``chat.completions.create``, without awaited and raw forms."""
    for found in pkgutil.walk_packages(importlib.import_module("openai.resources").__path__, "openai.resources."):
        module, path = importlib.import_module(found.name), found.name.removeprefix("openai.resources.")
        for name, cls in vars(module).items():
            is_resource = (
                inspect.isclass(cls) and cls.__module__ == module.__name__ and hasattr(cls, "with_raw_response")
            )
            if is_resource and not name.startswith("Async") and "With" not in name:
                yield from (f"{path}.{method}" for method in _methods(cls))


def _public(module: ModuleType, prefix: str) -> Iterator[str]:
    names: Iterable[str] = getattr(module, "__all__", None) or vars(module)
    for name in names:
        if not name.startswith("_") and not inspect.ismodule(getattr(module, name, None)):
            yield f"{prefix}{name}"


def _methods(cls: Any) -> Iterator[str]:
    return (name for name, value in vars(cls).items() if inspect.isfunction(value) and not name.startswith("_"))


PEERS: dict[str, Callable[[], Iterator[str]]] = {
    "dspy": names_of_dspy, "openai": names_of_openai, "pydantic_ai": names_of_pydantic_ai,
}  # fmt: skip


def reviewed(peer: str) -> set[str]:
    """Return the names of a peer that someone has read."""
    lines = REVIEWED.read_text(encoding="utf-8").splitlines() if REVIEWED.is_file() else []
    return {name for library, _, name in (line.partition(" ") for line in lines) if library == peer}


def unread(peer: str) -> list[str]:
    """Return the names of an installed peer that ``peers.txt`` lacks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted({*PEERS[peer]()} - reviewed(peer))


def main() -> None:
    """Print the names, or add them to the file."""
    found = [f"{peer} {name}" for peer in PEERS if importlib.util.find_spec(peer) is not None for name in unread(peer)]
    if "--write" in sys.argv[1:]:
        kept = REVIEWED.read_text(encoding="utf-8").splitlines() if REVIEWED.is_file() else []
        REVIEWED.write_text("\n".join(sorted({*kept, *found})) + "\n", encoding="utf-8")
    print("\n".join(found))


if __name__ == "__main__":
    main()
