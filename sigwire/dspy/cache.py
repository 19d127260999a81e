"""``dspy.cache``: the cache of the process with DSPy's methods. Its files are JSON; there is no pickle.

Cache            DSPy's class: answers and values of programs by the key of a request
configure_cache  ``sigwire.configure_cache``, which also names classes of values
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from functools import wraps
from hashlib import sha256
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from sigwire.core.json import loads
from sigwire.dspy.models.cached_values import MET_CLASSES, decode_value, encode_value, path_of_class
from sigwire.errors import ConfigurationError, InputError
from sigwire.files.whole import write_whole
from sigwire.lm.policy.cache import cache as core
from sigwire.lm.policy.cache.answers import decode_response, encode_response
from sigwire.lm.policy.cache.keys import canonical_bytes
from sigwire.lm.policy.cache.memory import MemoryStore

if TYPE_CHECKING:
    from sigwire.lm.policy.cache.store import DiskStore

__all__ = ["Cache", "WrongSafeType", "cache", "configure_cache"]


class WrongSafeType(ConfigurationError, TypeError):
    """An item of ``safe_types`` is no class."""


class Cache(core.ResponseCache):
    """``sigwire.cache`` with DSPy's methods; both are one cache. With arguments, it is a cache of its own.

    Requests are dicts. Values are answers of models, which are ``Response``, JSON, dataclasses and pydantic models; others are
    not stored. A dataclass or model comes back if this process has stored one of its class, or ``safe_types`` has the class;
    a cache of its own with ``restrict_pickle`` reads them from disk by ``safe_types`` only. There is no pickle.

    >>> cache.cache_key({"model": "m", "messages": []}) == cache.cache_key({"messages": [], "model": "m"})
    True
    >>> cache.cache_key({"model": "m", "seed": 1}, ["seed"]) == cache.cache_key({"model": "m"})
    True
    """

    _is_restricted = False
    _own_keys: frozenset[bytes] = frozenset()  # what a restricted cache stored, and has in memory
    _safe: Mapping[str, type] = MappingProxyType({})

    def __init__(
        self,
        enable_disk_cache: bool | None = None,
        enable_memory_cache: bool = True,
        disk_cache_dir: str | os.PathLike[str] | None = None,
        disk_size_limit_bytes: int | None = None,
        memory_max_entries: int = 1_000_000,
        restrict_pickle: bool = False,
        safe_types: Iterable[type] | None = None,
    ) -> None:
        if enable_disk_cache is None:
            self.__dict__ = core.cache.__dict__  # one state
            return
        super().__init__()
        self._is_restricted, self._safe = restrict_pickle, _by_path(safe_types)
        if enable_memory_cache and not _is_positive(memory_max_entries):
            wrong = "cannot be None. Use `math.inf` if you need an unbounded cache"
            if memory_max_entries is not None:  # pyright: ignore[reportUnnecessaryComparison]  # untyped callers
                wrong = f"must be a positive number, but received {memory_max_entries!r}"
            raise ConfigurationError(f"`memory_max_entries` {wrong} (making a Cache).")
        folder = Path(disk_cache_dir) if disk_cache_dir else None
        limit = disk_size_limit_bytes or 1 << 30
        self.set_up(
            disk=enable_disk_cache, memory=enable_memory_cache, folder=folder, limit=limit, entries=memory_max_entries
        )

    @property
    def enable_memory_cache(self) -> bool:
        """True if answers are kept in memory."""
        return self.memory is not None

    @property
    def enable_disk_cache(self) -> bool:
        """True if answers are kept on disk."""
        return self._disk is not None

    def cache_key(self, request: Mapping[str, Any], ignored_args_for_cache_key: Iterable[str] | None = None) -> str:
        """Return the key of a request as 64 hex characters. Raises ``ValueError`` for a request that is not JSON."""
        ignored = {*(ignored_args_for_cache_key or ())}
        parts = [[name, _plain(request[name])] for name in sorted(request) if name not in ignored]
        return sha256(canonical_bytes(parts)).hexdigest()

    def get(self, request: Mapping[str, Any], ignored_args_for_cache_key: Iterable[str] | None = None) -> Any:
        """Return the stored value of a request, ``None`` if there is none."""
        key = self._key(request, ignored_args_for_cache_key)
        return None if key is None else next(iter(self.find_value(key)), None)

    def find_value(self, key: bytes) -> list[Any]:
        """Return the stored value of a key, which may be ``None``, as a list of one; an empty list if there is none."""
        is_met = not self._is_restricted or key in self._own_keys
        found = self.find(key)
        try:
            return [] if found is None else [decode_value(found, {**(MET_CLASSES if is_met else {}), **self._safe})]
        except LookupError:
            return []

    def put(
        self, request: Mapping[str, Any], value: object, ignored_args_for_cache_key: Iterable[str] | None = None
    ) -> None:
        """Store a value, if it can be stored. An object in the form of OpenAI's answers becomes a ``Response``."""
        key = self._key(request, ignored_args_for_cache_key)
        if key is not None and (answer := encode_value(value)) is not None:
            if self._is_restricted:
                self._own_keys |= {key}
            self.store(key, answer)

    def _key(self, request: Mapping[str, Any], ignored: Iterable[str] | None) -> bytes | None:
        try:
            return bytes.fromhex(self.cache_key(request, ignored))
        except (RecursionError, TypeError, ValueError):
            return None

    @property
    def memory_cache(self) -> MemoryKeys:
        """The keys in memory."""
        return MemoryKeys(self.memory)

    @property
    def disk_cache(self) -> DiskKeys:
        """The keys on disk; ``close()`` closes the file."""
        return DiskKeys(self._disk)

    @property
    def disk_cache_dir(self) -> str | None:
        """The folder of the file on disk; ``None`` without one."""
        return None if self.path is None else str(self.path.parent)

    def reset_memory_cache(self) -> None:
        """Drop the answers in memory; those on disk stay."""
        if self.memory is not None:
            self.memory.clear()
        if self._is_restricted:
            self._own_keys = frozenset()

    def save_memory_cache(self, filepath: str | os.PathLike[str]) -> None:
        """Write the answers in memory to a file: one JSON object a line."""
        items = [] if self.memory is None else self.memory.items()
        lines = [json.dumps([key.hex(), json.loads(encode_response(answer))]) for key, answer in items]
        write_whole(filepath, "".join(f"{line}\n" for line in lines))

    def load_memory_cache(self, filepath: str | os.PathLike[str], allow_pickle: bool = False) -> None:
        """Read a file of ``save_memory_cache`` into memory. Raises ``InputError`` for any other file, a pickle included.

        Answers of a file are trusted like those of a model: as in DSPy, ``allow_pickle=True`` states that the file is yours.
        """
        if not allow_pickle:
            raise InputError(f"{filepath} is loaded with allow_pickle=True only, if it is yours (loading the cache).")
        if self.memory is None:
            return
        try:
            for line in Path(filepath).read_text(encoding="utf-8").splitlines():
                key, data = loads(line)
                text = json.dumps(data).encode()
                self.memory.put(bytes.fromhex(key), decode_response(text), len(text), self._clock())
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{filepath} is no file of save_memory_cache (loading the cache): {error}. Save it again."
            ) from error


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


def _by_path(classes: Iterable[object] | None) -> dict[str, type]:
    found: dict[str, type] = {}
    for cls in classes or ():
        if not isinstance(cls, type):
            raise WrongSafeType(f"safe_types entries must be types, not {cls!r:.80} (setting up the cache).")
        found[path_of_class(cls)] = cls
    return found


def _plain(value: object) -> object:
    """Return the JSON form of a pydantic model or dataclass, or the schema of a class of models; any other value as it is."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    schema = getattr(value, "model_json_schema", None)
    return value if schema is None else schema()


class MemoryKeys:
    """The keys of the answers in memory, as hex texts."""

    def __init__(self, store: MemoryStore | None) -> None:
        self._store = store

    def __contains__(self, key: object) -> bool:
        try:
            return self._store is not None and bytes.fromhex(str(key)) in self._store
        except ValueError:
            return False

    def __len__(self) -> int:
        return 0 if self._store is None else len(self._store)


class DiskKeys:
    """The keys of the answers on disk, as hex texts."""

    def __init__(self, store: DiskStore | None) -> None:
        self._store = store

    def __contains__(self, key: object) -> bool:
        try:
            return self._store is not None and self._store.get(bytes.fromhex(str(key))) is not None
        except ValueError:
            return False

    def __len__(self) -> int:
        return 0 if self._store is None else self._store.size()[0]

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._store is not None:
            self._store.close()


cache = Cache()


@wraps(core.configure_cache)
def configure_cache(*args: Any, **options: Any) -> None:
    """``sigwire.configure_cache``; values of the classes in ``safe_types`` come back from disk, see ``Cache``.

    >>> configure_cache(safe_types=["Answer"])
    Traceback (most recent call last):
    sigwire.dspy.cache.WrongSafeType: safe_types entries must be types, not 'Answer' (setting up the cache).
    """
    given: Any = signature(core.configure_cache).bind(*args, **options).arguments.get("safe_types")
    MET_CLASSES.update(_by_path(given))
    core.configure_cache(*args, **options)
