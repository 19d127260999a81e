"""``dspy.cache``: DSPy's methods over the cache of the process."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pydantic
import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.dspy.clients import request_cache
from sigwire.dspy.models.cached_values import MET_CLASSES
from sigwire.errors import InputError
from sigwire.testing import FakeProvider

REQUEST = {"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}], "temperature": 0.0}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    dspy.configure_cache(disk_cache_dir=tmp_path / "cache")
    return tmp_path / "cache"


def test_door_and_core_have_one_cache() -> None:
    with FakeProvider(["answer"]) as provider:
        lm = dspy.LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
        assert lm("hello") == lm("hello") == ["answer"]
    assert dspy.cache.stats() == sigwire.cache.stats()
    assert (len(dspy.cache.memory_cache), dspy.cache.path) == (1, sigwire.cache.path)
    dspy.cache.clear()
    assert sigwire.cache.stats().disk_entries == 0


def test_cache_key_is_64_hex_characters_whatever_the_order() -> None:
    key = dspy.cache.cache_key(REQUEST)
    assert len(bytes.fromhex(key)) == 32
    assert key == dspy.cache.cache_key(dict(reversed(REQUEST.items())))
    assert key != dspy.cache.cache_key({**REQUEST, "temperature": 1.0})
    assert dspy.cache.cache_key({**REQUEST, "api_key": "a"}, ["api_key"]) == key


class Said(pydantic.BaseModel):
    content: str


class Chosen(pydantic.BaseModel):
    message: Said


class Completion(pydantic.BaseModel):
    choices: list[Chosen]


ANSWERS: list[Any] = [
    sigwire.Response((sigwire.Choice("answer"),)),
    Completion(choices=[Chosen(message=Said(content="answer"))]),
    SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content="answer"))]),
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_put_keeps_answers_of_models_as_responses(answer: Any) -> None:
    dspy.cache.put(REQUEST, answer)
    assert dspy.cache.cache_key(REQUEST) in dspy.cache.memory_cache
    for _ in range(2):
        found = dspy.cache.get(REQUEST)
        assert found is not None
        assert (found.choices[0].text, found.cache) == ("answer", "hit")
        dspy.cache.reset_memory_cache()  # then from disk
        assert len(dspy.cache.memory_cache) == 0


def test_request_without_a_key_is_not_kept() -> None:
    request = {**REQUEST, "callback": print}
    dspy.cache.put(request, ["answer"])
    assert dspy.cache.get(request) is None
    assert "no key" not in dspy.cache.memory_cache


def test_memory_is_saved_and_loaded_as_json(tmp_path: Path) -> None:
    dspy.cache.put(REQUEST, ["answer"])
    dspy.cache.save_memory_cache(tmp_path / "memory.jsonl")
    dspy.cache.clear()
    with pytest.raises(InputError, match="allow_pickle=True only"):
        dspy.cache.load_memory_cache(tmp_path / "memory.jsonl")
    dspy.cache.load_memory_cache(tmp_path / "memory.jsonl", allow_pickle=True)
    assert dspy.cache.get(REQUEST) == ["answer"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    for data in (pickle.dumps({"a": 1}), b'{"a": 1}\n', b'["00", {"choices": 5}]\n'):
        path.write_bytes(data)
        with pytest.raises(InputError, match="no file of save_memory_cache"):
            dspy.cache.load_memory_cache(path, allow_pickle=True)


def test_configure_cache_takes_the_arguments_of_dspy(folder: Path) -> None:
    dspy.configure_cache(True, True, str(folder), 1 << 20, 10, restrict_pickle=True, safe_types=[dict])
    assert dspy.cache.path == folder / "cache-1.sqlite3"
    dspy.configure_cache(enable_memory_cache=False, enable_disk_cache=False)
    assert dspy.cache.path is None
    dspy.cache.put(REQUEST, ["answer"])
    assert dspy.cache.get(REQUEST) is None
    dspy.cache.reset_memory_cache()


def own_cache(folder: Path, **options: Any) -> Any:
    return dspy.clients.Cache(
        enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=folder / "own", memory_max_entries=9, **options
    )


def test_cache_with_arguments_is_a_cache_of_its_own(tmp_path: Path) -> None:
    cache = own_cache(tmp_path)
    cache.put(REQUEST, sigwire.Response((sigwire.Choice("hi"),)))
    assert (cache.enable_disk_cache, cache.enable_memory_cache) == (True, True)
    assert cache.cache_key(REQUEST) in cache.memory_cache
    assert cache.cache_key(REQUEST) not in dspy.cache.memory_cache
    cache.reset_memory_cache()
    assert cache.get(REQUEST).choices[0].text == "hi"


@pytest.mark.parametrize(("entries", "reason"), [(0, "positive number, but received 0"), (None, "cannot be None")])
def test_cache_without_room_in_memory_is_refused(entries: Any, reason: str) -> None:
    with pytest.raises(dspy.ConfigurationError, match=f"`memory_max_entries` .*{reason}"):
        dspy.clients.Cache(enable_disk_cache=False, memory_max_entries=entries)


def test_cache_key_takes_pydantic_models_and_their_classes() -> None:
    class Query(pydantic.BaseModel):
        text: str

    keys = [dspy.cache.cache_key({"data": value}) for value in (Query(text="a"), Query(text="b"), Query)]
    assert len(set(keys)) == 3
    assert keys[0] == dspy.cache.cache_key({"data": Query(text="a")})


# --- values of programs


@dataclass
class Found:
    pages: list[str]
    usage: dict[str, int]


class Quiz(pydantic.BaseModel):
    choices: list[str]
    right: int = 0


@dataclass(frozen=True)
class Point:
    x: int
    usage: int = 3


QUIZ = Quiz(choices=["tea", "rye"], right=1)
PLAIN: list[Any] = ["text", 4, ["a", {"b": None}], {"choices": [{"message": {"content": "kept as it is"}}]}]


@pytest.mark.parametrize("value", [*PLAIN, QUIZ, Point(2)])
@pytest.mark.parametrize("restricted", [False, True])
def test_values_come_back_from_memory_and_from_disk(tmp_path: Path, value: Any, restricted: bool) -> None:
    cache = own_cache(tmp_path, restrict_pickle=restricted, safe_types=[Quiz, Point])
    cache.put(REQUEST, value)
    for _ in range(2):
        found = cache.get(REQUEST)
        assert (found, type(found)) == (value, type(value))
        cache.reset_memory_cache()


def test_a_hit_used_no_tokens() -> None:
    dspy.cache.put(REQUEST, Found(["p. 3"], {"input_tokens": 9}))
    assert dspy.cache.get(REQUEST) == Found(["p. 3"], {})


def test_restricted_cache_reads_only_safe_types_from_disk(tmp_path: Path) -> None:
    cache = own_cache(tmp_path, restrict_pickle=True)
    cache.put(REQUEST, QUIZ)
    assert cache.get(REQUEST) == QUIZ
    cache.reset_memory_cache()
    assert cache.get(REQUEST) is None
    assert own_cache(tmp_path).get(REQUEST) == QUIZ  # this process has stored one
    assert own_cache(tmp_path, restrict_pickle=True, safe_types=[Quiz]).get(REQUEST) == QUIZ


def test_class_that_this_process_does_not_know_is_a_miss_until_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "values"
    dspy.configure_cache(disk_cache_dir=folder)
    dspy.cache.put(REQUEST, QUIZ)
    monkeypatch.delitem(MET_CLASSES, f"{__name__}.Quiz")  # as in another process
    assert dspy.cache.get(REQUEST) is None
    dspy.configure_cache(disk_cache_dir=folder, safe_types=[Quiz])
    assert dspy.cache.get(REQUEST) == QUIZ


def test_value_whose_class_has_changed_is_a_miss(tmp_path: Path) -> None:
    def made(**fields: Any) -> Any:
        return pydantic.create_model("Changing", __module__=__name__, **fields)

    own_cache(tmp_path).put(REQUEST, made(a=(int, 1))(a=2))
    assert own_cache(tmp_path, safe_types=[made(a=(str, ...), b=(str, ...))]).get(REQUEST) is None


@pytest.mark.parametrize("value", [object(), (1, 2), b"bytes", Quiz, SimpleNamespace(choices=["a"])])
def test_other_values_are_not_stored(value: Any) -> None:
    dspy.cache.put(REQUEST, value)
    assert dspy.cache.get(REQUEST) is None


@pytest.mark.parametrize("make", [own_cache, lambda folder, **options: dspy.configure_cache(**options)])
def test_safe_types_are_classes(tmp_path: Path, make: Any) -> None:
    with pytest.raises(TypeError, match="safe_types entries must be types, not 'Quiz'"):
        make(tmp_path, safe_types=["Quiz"])


def test_keys_and_folder_of_the_disk(tmp_path: Path) -> None:
    cache = own_cache(tmp_path)
    cache.put(REQUEST, QUIZ)
    key = cache.cache_key(REQUEST)
    assert (key in cache.disk_cache, "no key" in cache.disk_cache, len(cache.disk_cache)) == (True, False, 1)
    assert cache.disk_cache_dir == str(tmp_path / "own")
    cache.disk_cache.close()
    assert key in cache.disk_cache
    without = dspy.clients.Cache(enable_disk_cache=False)
    assert (without.disk_cache_dir, key in without.disk_cache, len(without.disk_cache)) == (None, False, 0)
    without.disk_cache.close()


def test_cache_key_takes_dataclasses() -> None:
    keys = [dspy.cache.cache_key({"at": value}) for value in (Point(1), Point(2), Point(1))]
    assert (keys[0] == keys[2], keys[0] == keys[1]) == (True, False)


# --- functions of the user


class Counted:
    """A function of the user that counts its runs."""

    def __init__(self, value: Any) -> None:
        self.runs, self.value = 0, value

    def run(self, *_: object, **__: object) -> Any:
        self.runs += 1
        return self.value


VALUES = [None, "text", ["a", 1], {"a": [1.5, None]}, QUIZ]


@pytest.mark.parametrize("value", VALUES)
def test_request_cache_returns_the_stored_json_from_memory_and_disk(value: Any) -> None:
    counted = Counted(value)

    @request_cache()
    def search(query: str, k: int = 1, **options: object) -> Any:
        return counted.run()

    assert search("a") == search(query="a", k=1) == search("a", api_key="other") == value
    dspy.cache.reset_memory_cache()
    assert (search("a"), counted.runs) == (value, 1)
    search("a", 2)
    search("a", flag=True)
    assert counted.runs == 3


@pytest.mark.parametrize("value", VALUES)
async def test_request_cache_awaits_async_functions(value: Any) -> None:
    counted = Counted(value)

    @request_cache(ignored_args_for_cache_key=["model"])
    async def search(query: str, model: str) -> Any:
        return counted.run()

    assert [await search("a", model) for model in ("m", "n")] == [value, value]
    assert counted.runs == 1


def test_request_cache_returns_answers_of_models_as_responses() -> None:
    counted = Counted(ANSWERS[-1])

    @request_cache(cache_arg_name="request")
    def complete(request: dict[str, Any], num_retries: int) -> Any:
        request.clear()
        return counted.run()

    assert complete(dict(REQUEST), num_retries=1) is ANSWERS[-1]
    found = complete(request=dict(REQUEST), num_retries=2)
    assert (found.choices[0].text, found.cache, counted.runs) == ("answer", "hit", 1)


@pytest.mark.parametrize("value", [object(), (1, 2), {1: 2}, b"bytes"])
def test_request_cache_does_not_store_values_that_json_changes(value: Any) -> None:
    counted = Counted(value)
    search = request_cache()(counted.run)
    assert search("a") is search("a") is value
    assert counted.runs == 2


def test_request_cache_runs_calls_whose_arguments_are_no_json() -> None:
    counted = Counted("a")
    search = request_cache()(counted.run)
    assert search(object()) == search(object()) == "a"
    assert counted.runs == 2


class Ticket(pydantic.BaseModel):
    number: int
    pin: pydantic.SecretStr = pydantic.SecretStr("")


def test_a_value_that_would_come_back_changed_is_not_stored(tmp_path: Path) -> None:
    mine = dspy.clients.Cache(True, True, tmp_path)
    mine.put({"q": 1}, Ticket(number=1, pin=pydantic.SecretStr("4711")))
    mine.put({"q": 2}, Ticket(number=2))
    assert (mine.get({"q": 1}), mine.get({"q": 2})) == (None, Ticket(number=2))


def test_a_restricted_cache_stays_restricted_after_a_read(tmp_path: Path) -> None:
    dspy.clients.Cache(True, True, tmp_path).put({"q": 2}, Ticket(number=2))
    other = dspy.clients.Cache(True, True, tmp_path, restrict_pickle=True)
    assert [other.get({"q": 2}) for _ in range(2)] == [None, None]
