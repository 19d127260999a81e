"""``sigwire.cache``: the cache of responses of this process.

A look-up is in memory, then on disk. Nothing of the cache raises into a call. The memory is shared by the threads, tasks and
event loops of a process, the file by processes; a forked child keeps the memory, and opens the file again.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sigwire.core.response import Response
from sigwire.effects.forks import on_fork
from sigwire.errors import ConfigurationError
from sigwire.lm.policy.cache.answers import as_hit, decode_response, encode_response, is_complete
from sigwire.lm.policy.cache.choice import set_off
from sigwire.lm.policy.cache.memory import MemoryStore
from sigwire.lm.policy.cache.single_flight import SingleFlight

if TYPE_CHECKING:
    from sigwire.lm.policy.cache.store import DiskStore

__all__ = ["CacheStats", "ResponseCache", "cache", "configure_cache", "read_environment"]

_LIMIT = 2 << 30  # bytes on disk


class CacheStats(NamedTuple):
    """Counts of this process, and the contents of both stores.

    ``joined``: calls that got the answer of an equal call at the same time. ``dropped``: answers that could not be written.
    ``failed``: look-ups that failed. ``foreign``: rows that were deleted because they are no stored answer.
    """

    hits: int
    misses: int
    joined: int
    stored: int
    dropped: int
    failed: int
    foreign: int
    evicted: int
    memory_entries: int
    memory_bytes: int
    disk_entries: int
    disk_bytes: int


class ResponseCache:
    """The answers that equal requests get again. ``sigwire.cache`` is the one of the process.

    >>> cache = ResponseCache()
    >>> cache.set_up(disk=False, memory=True, limit=0, entries=1000)
    >>> cache.find(b"key"), cache.stats().misses, cache.path
    (None, 1, None)
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.flights = SingleFlight()
        self.memory: MemoryStore | None = None
        self._disk: DiskStore | None = None
        self._ttl: float | None = None
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()  # of the counts

    def set_up(
        self,
        *,
        disk: bool,
        memory: bool,
        folder: Path | None = None,
        limit: int,
        entries: int,
        ttl: float | None = None,
    ) -> None:
        """Replace the stores. The file is opened by its first use."""
        if self._disk is not None:
            self._disk.close()
        self._disk, self._ttl = None, ttl
        self.memory = MemoryStore(entries) if memory else None
        self._counts.clear()
        self.flights.joined = 0
        if disk:
            from sigwire.lm.policy.cache.folder import default_folder
            from sigwire.lm.policy.cache.store import DiskStore

            self._disk = DiskStore(folder or default_folder(), limit, clock=self._clock, refused=_warn_refused)

    # --- answers

    def find(self, key: bytes) -> Response | None:
        """Return the hit for a key, from memory or disk."""
        oldest = 0.0 if self._ttl is None else self._clock() - self._ttl
        found = None if self.memory is None else self.memory.get(key, oldest)
        if found is None and self._disk is not None:
            found = self._read(self._disk, key, oldest)
        with self._lock:
            self._counts["misses" if found is None else "hits"] += 1
        return found

    def peek(self, key: bytes) -> Response | None:
        """Return the hit for a key that is in memory, uncounted."""
        return (
            None
            if self.memory is None
            else self.memory.get(key, 0.0 if self._ttl is None else self._clock() - self._ttl)
        )

    def holds(self, key: bytes) -> bool:
        """Return True if ``find`` would return a hit. Not counted."""
        oldest = 0.0 if self._ttl is None else self._clock() - self._ttl
        return self.peek(key) is not None or (self._disk is not None and self._disk.get(key, oldest) is not None)

    def store(self, key: bytes, response: Response) -> None:
        """Keep an answer, if it is complete and has a JSON form."""
        try:
            json = encode_response(response) if is_complete(response) else b""
        except (RecursionError, TypeError, ValueError):
            json = b""
        if not json:
            return
        if self.memory is not None:
            self.memory.put(key, as_hit(response), len(json), self._clock())
        if self._disk is not None:
            self._disk.put(key, json)

    def _read(self, disk: DiskStore, key: bytes, oldest: float) -> Response | None:
        stored = disk.get(key, oldest)
        if stored is None:
            return None
        json, at = stored
        try:
            response = decode_response(json)
        except ValueError:
            disk.drop(key)
            return None
        if self.memory is not None:
            self.memory.put(key, response, len(json), at)
        return response

    # --- for users

    @property
    def path(self) -> Path | None:
        """The file on disk; ``None`` without one."""
        return None if self._disk is None else self._disk.path

    def stats(self) -> CacheStats:
        """Return counts of this process, and the sizes of both stores."""
        disk, memory = self._disk, self.memory
        counts = self._counts if disk is None else self._counts + disk.counts
        entries, size = disk.size() if disk is not None else (0, 0)
        names = ("hits", "misses", "stored", "dropped", "failed", "foreign", "evicted")
        return CacheStats(
            **{name: counts[name] for name in names},
            joined=self.flights.joined,
            memory_entries=0 if memory is None else len(memory),
            memory_bytes=0 if memory is None else memory.size,
            disk_entries=entries,
            disk_bytes=size,
        )

    def clear(self) -> None:
        """Delete every answer, in memory and on disk."""
        if self.memory is not None:
            self.memory.clear()
        if self._disk is not None:
            self._disk.clear()

    def after_fork(self) -> None:
        """Drop locks and flights of the parent, in a forked child."""
        self.flights, self._lock = SingleFlight(), threading.Lock()
        if self.memory is not None:
            self.memory.forget_lock()


# --- the process

cache = ResponseCache()
"""The cache of the process."""


def configure_cache(
    enable_disk_cache: bool = True,
    enable_memory_cache: bool = True,
    disk_cache_dir: str | os.PathLike[str] | None = None,
    disk_size_limit_bytes: int | None = _LIMIT,
    memory_max_entries: int = 1_000_000,
    restrict_pickle: bool = True,
    safe_types: object = None,
    *,
    ttl: float | None = None,
) -> None:
    """Set up the cache of responses of this process, and override ``$SIGWIRE_CACHE``. Memory begins empty.

    ``disk_cache_dir``: default ``$SIGWIRE_CACHE_DIR``, else the platform's folder for caches. ``ttl``: seconds after which an
    answer is asked for again; default never. ``restrict_pickle`` and ``safe_types`` mean nothing: there is no
    pickle.

    >>> configure_cache(memory_max_entries=0)
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: memory_max_entries is a number above 0, not 0 (configure_cache).
    """
    numbers: dict[str, Any] = {
        "disk_size_limit_bytes": disk_size_limit_bytes,
        "memory_max_entries": memory_max_entries,
        "ttl": ttl,
    }
    for name, number in numbers.items():
        is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
        if number is not None and not (is_number and number > 0):
            raise ConfigurationError(f"{name} is a number above 0, not {number!r:.80} (configure_cache).")
    for name, switch in (("enable_disk_cache", enable_disk_cache), ("enable_memory_cache", enable_memory_cache)):
        if type(switch) is not bool:
            raise ConfigurationError(f"{name} is True or False, not {switch!r:.80} (configure_cache).")
    if not _is_path(disk_cache_dir):
        raise ConfigurationError(
            f"disk_cache_dir is the path of a folder, not {disk_cache_dir!r:.80} (configure_cache)."
        )
    cache.set_up(
        disk=enable_disk_cache,
        memory=enable_memory_cache,
        folder=None if disk_cache_dir is None else Path(disk_cache_dir).expanduser(),
        limit=disk_size_limit_bytes or _LIMIT,
        entries=memory_max_entries,
        ttl=ttl,
    )
    set_off(not (enable_disk_cache or enable_memory_cache))


def _is_path(value: object) -> bool:
    return value is None or (isinstance(value, (str, os.PathLike)) and value != "")


def read_environment() -> None:
    """Set up the cache by ``$SIGWIRE_CACHE``: off, memory, or disk (the default: memory and disk)."""
    mode = os.environ.get("SIGWIRE_CACHE", "").strip().lower() or "disk"
    if mode not in ("off", "memory", "disk"):
        raise ConfigurationError(f"SIGWIRE_CACHE is off, memory or disk, not {mode!r:.80} (setting up the cache).")
    configure_cache(mode == "disk", mode != "off")


def _warn_refused(reason: str) -> None:
    from sigwire.observe.tracing.logs import log_warning  # loads logging

    log_warning("cache", f"in memory only: {reason}")
    with suppress(Warning):  # the cache never raises into a call
        warnings.warn(
            f"The cache of responses is in memory only: {reason}. Name another folder in SIGWIRE_CACHE_DIR.",
            stacklevel=2,
        )


read_environment()
on_fork(cache.after_fork)
