"""``dspy.cache``: the cache of the process with DSPy's methods. Its files are JSON; there is no pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sigwire.core.response import Response
from sigwire.dspy.models.answers import decode_answer
from sigwire.errors import ConfigurationError, InputError
from sigwire.lm.policy.cache import cache as core
from sigwire.lm.policy.cache.answers import decode_response, encode_response
from sigwire.lm.policy.cache.keys import canonical_bytes
from sigwire.lm.policy.cache.memory import MemoryStore

__all__ = ["Cache", "cache"]


class Cache(core.ResponseCache):
    """``sigwire.cache`` with DSPy's methods; both are one cache. Requests are dicts, answers are ``Response``.

    With arguments, it is a cache of its own: ``restrict_pickle`` and ``safe_types`` have no effect, since there is no pickle.

    >>> cache.cache_key({"model": "m", "messages": []}) == cache.cache_key({"messages": [], "model": "m"})
    True
    >>> cache.cache_key({"model": "m", "seed": 1}, ["seed"]) == cache.cache_key({"model": "m"})
    True
    """

    def __init__(
        self,
        enable_disk_cache: bool | None = None,
        enable_memory_cache: bool = True,
        disk_cache_dir: str | os.PathLike[str] | None = None,
        disk_size_limit_bytes: int | None = None,
        memory_max_entries: int = 1_000_000,
        restrict_pickle: bool = True,
        safe_types: object = None,
    ) -> None:
        if enable_disk_cache is None:
            self.__dict__ = core.cache.__dict__  # one state
            return
        super().__init__()
        if enable_memory_cache and not _is_positive(memory_max_entries):
            raise ConfigurationError(
                f"memory_max_entries is a number above 0, not {memory_max_entries!r} (making a Cache)."
            )
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

    def get(
        self, request: Mapping[str, Any], ignored_args_for_cache_key: Iterable[str] | None = None
    ) -> Response | None:
        """Return the stored answer of a request, ``None`` if there is none."""
        key = self._key(request, ignored_args_for_cache_key)
        return None if key is None else self.find(key)

    def put(
        self, request: Mapping[str, Any], value: object, ignored_args_for_cache_key: Iterable[str] | None = None
    ) -> None:
        """Store an answer: a ``Response``, or anything that a custom model may return."""
        key = self._key(request, ignored_args_for_cache_key)
        if key is not None:
            self.store(key, value if isinstance(value, Response) else decode_answer(value))

    def _key(self, request: Mapping[str, Any], ignored: Iterable[str] | None) -> bytes | None:
        try:
            return bytes.fromhex(self.cache_key(request, ignored))
        except ValueError:
            return None

    @property
    def memory_cache(self) -> MemoryKeys:
        """The keys in memory."""
        return MemoryKeys(self.memory)

    def reset_memory_cache(self) -> None:
        """Drop the answers in memory; those on disk stay."""
        if self.memory is not None:
            self.memory.clear()

    def save_memory_cache(self, filepath: str | os.PathLike[str]) -> None:
        """Write the answers in memory to a file: one JSON object a line."""
        items = [] if self.memory is None else self.memory.items()
        lines = [json.dumps([key.hex(), json.loads(encode_response(answer))]) for key, answer in items]
        Path(filepath).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def load_memory_cache(self, filepath: str | os.PathLike[str], allow_pickle: bool = False) -> None:
        """Read a file of ``save_memory_cache`` into memory. Raises ``InputError`` for any other file, a pickle included."""
        if self.memory is None:
            return
        try:
            for line in Path(filepath).read_text(encoding="utf-8").splitlines():
                key, data = json.loads(line)
                text = json.dumps(data).encode()
                self.memory.put(bytes.fromhex(key), decode_response(text), len(text), self._clock())
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{filepath} is no file of save_memory_cache (loading the cache): {error}. Save it again."
            ) from error


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


def _plain(value: object) -> object:
    """Return the JSON form of a pydantic model, or the schema of a class of models; any other value as it is."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
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


cache = Cache()
