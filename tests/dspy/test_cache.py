"""``dspy.cache``: DSPy's methods over the cache of the process."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pydantic
import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.dspy.clients import request_cache
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


ANSWERS: list[Any] = [
    ["answer"],
    {"choices": [{"message": {"content": "answer"}}]},
    SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content="answer"))]),
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_put_keeps_what_a_custom_model_may_return(answer: Any) -> None:
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
    dspy.cache.load_memory_cache(tmp_path / "memory.jsonl", allow_pickle=True)
    found = dspy.cache.get(REQUEST)
    assert found is not None
    assert found.choices[0].text == "answer"


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


@pytest.mark.parametrize("entries", [0, -1, None])
def test_cache_without_room_in_memory_is_refused(entries: Any) -> None:
    with pytest.raises(dspy.ConfigurationError, match="memory_max_entries is a number above 0"):
        dspy.clients.Cache(enable_disk_cache=False, memory_max_entries=entries)


def test_cache_key_takes_pydantic_models_and_their_classes() -> None:
    class Query(pydantic.BaseModel):
        text: str

    keys = [dspy.cache.cache_key({"data": value}) for value in (Query(text="a"), Query(text="b"), Query)]
    assert len(set(keys)) == 3
    assert keys[0] == dspy.cache.cache_key({"data": Query(text="a")})


class Counted:
    """A function of the user that counts its runs."""

    def __init__(self, value: Any) -> None:
        self.runs, self.value = 0, value

    def run(self, *_: object, **__: object) -> Any:
        self.runs += 1
        return self.value


VALUES = [None, "text", ["a", 1], {"a": [1.5, None]}]


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
