"""The file of the cache: what it keeps, what it refuses, and that it never raises."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import threading
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import dumps
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.policy.cache.answers import decode_response, encode_response, is_complete
from sigwire.lm.policy.cache.cache import ResponseCache
from sigwire.lm.policy.cache.folder import default_folder
from sigwire.lm.policy.cache.rows import pack, unpack
from sigwire.lm.policy.cache.store import DiskStore
from tests.strategies import responses

KEY, OTHER = b"k" * 32, b"o" * 32
ANSWER = Response((Choice("4"),), Usage(input_tokens=3, output_tokens=1), "m", "id")
JSON = encode_response(ANSWER)
LIMIT = 1 << 30


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[DiskStore]:
    found = DiskStore(tmp_path / "cache", LIMIT, clock=clock)
    yield found
    found.close()


def write(store: DiskStore, sql: str, *values: object) -> None:
    """Change the file behind the store's back."""
    connection = sqlite3.connect(store.path)
    connection.execute(sql, values)
    connection.commit()
    connection.close()


def count(store: DiskStore) -> int:
    connection = sqlite3.connect(store.path)
    (found,) = connection.execute("SELECT count(*) FROM answers").fetchone()
    connection.close()
    return int(found)


# --- what is kept ------------------------------------------------------------------------------------


def test_stored_answer_is_found_by_another_store(store: DiskStore, clock: Clock) -> None:
    store.put(KEY, JSON)
    other = DiskStore(store.path.parent, LIMIT, clock=clock)
    assert other.get(KEY) == (JSON, clock.now)
    assert other.get(OTHER) is None
    other.close()


def test_later_answer_replaces_the_earlier_one(store: DiskStore, clock: Clock) -> None:
    store.put(KEY, JSON)
    clock.now += 5
    store.put(KEY, b'{"x": 1}')
    assert store.get(KEY) == (b'{"x": 1}', clock.now)
    assert count(store) == 1


def test_answer_that_is_too_old_is_a_miss(store: DiskStore, clock: Clock) -> None:
    store.put(KEY, JSON)
    assert store.get(KEY, clock.now + 1) is None
    assert store.get(KEY, clock.now) is not None


def test_answer_over_16_mb_is_dropped(store: DiskStore) -> None:
    store.put(KEY, os.urandom((16 << 20) + 1))  # as it is compressed: no text, which would be twice as long
    assert (store.get(KEY), store.counts["dropped"]) == (None, 1)


def test_hits_write_the_time_of_use_once_an_hour(store: DiskStore, clock: Clock) -> None:
    store.put(KEY, JSON)
    for seconds, used in ((1800, 0), (1801, 3601), (60, 3601)):
        clock.now += seconds
        store.get(KEY)
        connection = sqlite3.connect(store.path)
        assert connection.execute("SELECT used FROM answers").fetchone() == (1_000_000.0 + used,)
        connection.close()


def test_least_recently_used_answers_are_evicted(tmp_path: Path, clock: Clock) -> None:
    store = DiskStore(tmp_path / "cache", 4 << 20, clock=clock)
    text = b'{"a": "' + os.urandom(20_000).hex().encode() + b'"}'
    for number in range(400):
        clock.now += 1
        store.put(number.to_bytes(32), text)
        if number == 200:
            clock.now += 4000
            store.get((0).to_bytes(32))
    entries, size = store.size()
    assert 0 < entries < 400
    assert size <= 1.5 * (4 << 20)
    assert store.counts["evicted"] == 400 - entries
    assert store.get((399).to_bytes(32)) is not None
    assert store.get((1).to_bytes(32)) is None
    assert store.path.stat().st_size < 3 * (4 << 20)
    store.close()


def test_clear_deletes_all(store: DiskStore) -> None:
    store.put(KEY, JSON)
    store.clear()
    assert store.size()[0] == 0
    assert store.get(KEY) is None


# --- what is not trusted -----------------------------------------------------------------------------


def digest(key: bytes, json: bytes) -> bytes:
    return blake2b(key + json, digest_size=16).digest()


BOMB = zlib.compress(b"{" + b" " * (80 << 20), 9)
DEEP = b'{"raw":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
HOSTILE: dict[str, Any] = {
    "empty": b"",
    "short": b"x",
    "null": b"\0" * 40,
    "text": "some text",
    "number": 7,
    "no digest": JSON,
    "wrong digest": b"\0" * 16 + JSON,
    "swapped": pack(OTHER, JSON),
    "bomb": digest(KEY, b"{") + BOMB,
    "cut": pack(KEY, b'{"a": "' + b"x" * 5000 + b'"}')[:-3],
    "trailing": pack(KEY, b'{"a": "' + b"x" * 5000 + b'"}') + b"more",
    "no JSON": pack(KEY, b"{no"),
    "deep": pack(KEY, DEEP),
    "other JSON": pack(KEY, b'{"choices": 5}'),
    "list": digest(KEY, b"[]") + zlib.compress(b"[]"),
    "other class": pack(KEY, b'{"role": "user"}'),
    "text is a number": pack(KEY, b'{"choices": [{"text": 5}]}'),
    "usage is text": pack(KEY, b'{"choices": [{"text": "4"}], "usage": {"input_tokens": "3"}}'),
    "no choices": pack(KEY, b'{"model": "m"}'),
    "filtered": pack(KEY, b'{"choices": [{"text": "4", "finish_reason": "content_filter"}]}'),
    "call without name": pack(KEY, b'{"choices": [{"tool_calls": [{"id": "c", "name": null, "arguments": {}}]}]}'),
    "NaN": pack(KEY, b'{"choices": [{"text": "4"}], "raw": NaN}'),
}  # fmt: skip
ROW: list[Any] = [
    1,
    "4",
    "stop",
    None,
    "m",
    "id",
    [3, 1, None, None, None, None],
    {"choices": [{}]},
    ["choices", 0],
    None,
]
CHANGED_ROWS: dict[str, list[Any]] = {
    "empty row": [],
    "short row": ROW[:-1],
    "long row": [*ROW, None],
    "row of another form": [2, *ROW[1:]],
    "row without text": [1, "", *ROW[2:]],
    "row whose text is a number": [1, 4, *ROW[2:]],
    "filtered row": [*ROW[:2], "content_filter", *ROW[3:]],
    "row whose reason is a list": [*ROW[:2], ["stop"], *ROW[3:]],
    "row whose reasoning is a number": [*ROW[:3], 5, *ROW[4:]],
    "row whose model is an object": [*ROW[:4], {}, *ROW[5:]],
    "row whose id is a number": [*ROW[:5], 5, *ROW[6:]],
    "row whose counts are texts": [*ROW[:6], ["3"], *ROW[7:]],
    "row whose count is true": [*ROW[:6], [True], *ROW[7:]],
    "row with eight counts": [*ROW[:6], [3] * 8, *ROW[7:]],
    "row without counts": [*ROW[:6], None, *ROW[7:]],
    "row whose raw is no object": [*ROW[:7], None, *ROW[8:]],
    "row whose path leads nowhere": [*ROW[:8], ["choices", 1], None],
    "row whose path is a number": [*ROW[:8], 1, None],
}
HOSTILE.update({name: pack(KEY, json.dumps(row).encode()) for name, row in CHANGED_ROWS.items()})
HOSTILE["row with NaN"] = pack(KEY, json.dumps([*ROW[:7], float("nan"), None, None]).encode())
HOSTILE["deep row"] = pack(
    KEY, json.dumps([*ROW[:7], 0, None, None]).replace("0, null", "[" * 9000 + "]" * 9000 + ", null").encode()
)


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_hostile_row_is_a_miss_and_is_deleted(tmp_path: Path, value: object) -> None:
    cache = ResponseCache()
    cache.set_up(disk=True, memory=False, folder=tmp_path / "cache", limit=LIMIT, entries=1)
    cache.store(KEY, ANSWER)
    store = cache._disk
    assert store is not None
    write(store, "UPDATE answers SET value = ?", value)
    assert cache.find(KEY) is None
    assert count(store) == 0
    assert cache.stats().foreign == 1
    cache.store(KEY, ANSWER)
    assert (found := cache.find(KEY)) is not None
    assert found.choices == ANSWER.choices
    store.close()


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda data: pack(KEY, data)))
def test_random_values_never_raise(value: bytes) -> None:
    text = unpack(KEY, value)
    if text is not None:
        with pytest.raises(ValueError):
            decode_response(text)


@given(st.binary(max_size=3), st.integers(0, len(pack(KEY, JSON)) - 1))
def test_changed_bytes_are_noticed(change: bytes, at: int) -> None:
    good = pack(KEY, JSON)
    bad = good[:at] + change + good[at + 1 :]
    assert unpack(KEY, bad) == (JSON if bad == good else None)


@given(responses)
def test_complete_answers_survive_as_they_are(response: Response) -> None:
    if is_complete(response):
        hit = decode_response(encode_response(response))
        assert (hit.choices, hit.model, hit.id, hit.warnings, hit.raw) == (
            response.choices, response.model, response.id, response.warnings, response.raw,
        )  # fmt: skip
        assert (hit.cache, hit.attempts, hit.cached_usage, hit.usage.cost) == ("hit", (), response.usage, 0.0)


@pytest.mark.parametrize("calls", [(), (ToolCall("c", "f", {"a": "\udfff"}),)])
def test_text_with_half_a_surrogate_pair_survives(calls: tuple[ToolCall, ...]) -> None:
    response = Response((Choice("\ud800", tool_calls=calls),))
    assert decode_response(encode_response(response)).choices == response.choices


def test_row_without_change_is_an_answer() -> None:
    hit = decode_response(json.dumps(ROW).encode())
    assert (hit.choices, hit.cached_usage) == ((Choice("4", raw={}),), ANSWER.usage)
    assert decode_response(encode_response(hit)) == hit


@given(responses)
def test_answer_stored_as_an_object_is_found(response: Response) -> None:
    if is_complete(response):  # the form of the first files
        data = replace(response, attempts=(), cache="off", cached_usage=None).to_json()
        assert decode_response(dumps(data).encode("utf-8", "surrogatepass")).choices == response.choices


RAW: dict[str, Any] = {"id": "1", "message": {"content": "4"}, "choices": [{"text": "4"}, {"text": "5"}]}


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        (RAW, RAW),
        (RAW, RAW["message"]),
        (RAW, RAW["choices"][0]),
        (RAW, RAW["choices"][1]),
        (RAW, None),
        (RAW, {"text": "4"}),
        (None, {"text": "4"}),
        ([RAW], RAW),
    ],
)
def test_raw_of_a_choice_survives_at_any_place(raw: Any, part: Any) -> None:
    hit = decode_response(encode_response(Response((Choice("4", raw=part),), raw=raw)))
    assert (hit.raw, hit.choices[0].raw) == (raw, part)


# --- broken and foreign files ------------------------------------------------------------------------


def no_database(path: Path) -> None:
    path.write_bytes(b"this is no database, but it is long enough to be read as one " * 20)


def foreign_schema(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE VIEW answers AS SELECT 1 AS key, 2 AS value, 3 AS at, 4 AS used")
    connection.commit()
    connection.close()


def newer_format(path: Path) -> None:
    store = DiskStore(path.parent, LIMIT)
    store.put(KEY, JSON)
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=2")
    connection.close()


def cut_pages(path: Path) -> None:
    store = DiskStore(path.parent, LIMIT)
    for number in range(300):
        store.put(number.to_bytes(32), b'{"a": "' + os.urandom(400).hex().encode() + b'"}')
    store.close()
    data = path.read_bytes()
    path.write_bytes(data[:4096] + os.urandom(len(data) - 4096))


@pytest.mark.parametrize("damage", [no_database, foreign_schema, newer_format, cut_pages])
def test_broken_file_is_renamed_and_replaced(tmp_path: Path, damage: Any) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    path = folder / "cache-1.sqlite3"
    damage(path)
    store = DiskStore(folder, LIMIT)
    store.get(KEY)
    store.put(KEY, JSON)
    store.put(KEY, JSON)
    assert (found := store.get(KEY)) is not None
    assert found[0] == JSON
    assert len(list(folder.glob("cache-1.sqlite3.broken-*"))) == 1
    store.close()


def test_broken_file_that_another_process_uses_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    user = DiskStore(folder, LIMIT)
    user.put(KEY, JSON)
    store = DiskStore(folder, LIMIT)
    foreign = sqlite3.connect(user.path)
    foreign.execute("CREATE TABLE more (a)")
    foreign.commit()
    foreign.close()
    assert store.get(KEY) is None  # the lock is shared by the user of the file
    store.put(KEY, JSON)
    assert list(folder.glob("*.broken-*")) == []
    user.close()
    store.close()


# --- places and permissions --------------------------------------------------------------------------


def test_folder_and_file_are_for_the_user_alone(store: DiskStore) -> None:
    before = os.umask(0)
    try:
        store.put(KEY, JSON)
    finally:
        os.umask(before)
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    for path in store.path.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def shared_folder(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    return tmp_path / "shared"


def linked_file(tmp_path: Path) -> Path:
    (tmp_path / "linked").mkdir(mode=0o700)
    (tmp_path / "elsewhere").touch()
    (tmp_path / "linked" / "cache-1.sqlite3").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "linked"


@pytest.mark.parametrize("folder", [shared_folder, linked_file])
def test_unsafe_folder_is_refused_with_one_warning(tmp_path: Path, folder: Any) -> None:
    cache = ResponseCache()
    cache.set_up(disk=True, memory=True, folder=folder(tmp_path), limit=LIMIT, entries=9)
    with pytest.warns(UserWarning, match="in memory only.*SIGWIRE_CACHE_DIR"):
        cache.store(KEY, ANSWER)
    with warnings.catch_warnings(action="error"):
        assert cache.find(KEY) is not None
        assert cache.find(OTHER) is None


def test_refused_folder_raises_nothing_where_warnings_are_errors(tmp_path: Path) -> None:
    cache = ResponseCache()
    cache.set_up(disk=True, memory=True, folder=shared_folder(tmp_path), limit=LIMIT, entries=9)
    with warnings.catch_warnings(action="error"):
        assert cache.find(KEY) is None


def test_place_without_a_folder_is_a_miss(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = DiskStore(tmp_path / "file" / "below", LIMIT)
    store.put(KEY, JSON)
    assert store.get(KEY) is None
    assert store.counts["dropped"] == 1


def test_locked_file_is_a_miss_or_a_dropped_write(store: DiskStore) -> None:
    store.put(KEY, JSON)
    writer = sqlite3.connect(store.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    store.put(OTHER, JSON)
    assert store.get(KEY) is not None  # readers do not wait for writers
    assert (store.counts["dropped"], store.get(OTHER)) == (1, None)
    writer.execute("ROLLBACK")
    writer.close()
    store.put(OTHER, JSON)
    assert store.get(OTHER) is not None


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/sigwire"),
        ("linux", {}, "/home/me/.cache/sigwire"),
        ("darwin", {}, "/home/me/Library/Caches/sigwire"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/sigwire/Cache"),
        ("linux", {"SIGWIRE_CACHE_DIR": "~/own"}, "/home/me/own"),
    ],
)
def test_default_folder_is_that_of_the_platform(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], folder: str
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "SIGWIRE_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    assert default_folder() == Path(folder)


# --- threads -----------------------------------------------------------------------------------------


def test_threads_share_a_store(store: DiskStore) -> None:
    def work(thread: int) -> None:
        for number in range(20):
            key = (thread * 100 + number).to_bytes(32)
            store.put(key, JSON)
            found.append(store.get(key) is not None)

    found: list[bool] = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 160
    assert store.size()[0] == 160
