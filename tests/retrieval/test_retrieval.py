"""``Embedder``, ``Embeddings``, ``KNN``: over HTTP on three wires, batches, usage, saved folders, indexes of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sigwire
from sigwire import Example
from sigwire.retrieval.embedder import Embedder
from sigwire.retrieval.embeddings import Embeddings, EmbeddingsWithScores
from sigwire.retrieval.knn import KNN
from sigwire.retrieval.model import EmbeddingModel
from sigwire.testing import FakeProvider, RateLimit

MODELS = {"openai": "openai/text-embedding-3-small", "gemini": "gemini/gemini-embedding-001", "ollama": "ollama/nomic"}
TEXTS = ["a late parcel", "the weather", "parcels that are late"]


def embedder(provider: FakeProvider, wire: str, **options: Any) -> Embedder:
    return Embedder(MODELS[wire], base_url=provider.url(wire), api_key="k", **options)


@pytest.mark.parametrize("wire", MODELS)
async def test_vectors_of_every_wire_are_those_of_the_texts(wire: str) -> None:
    with FakeProvider() as provider:
        embed = embedder(provider, wire)
        blocking, awaited = embed(TEXTS), await embed.acall(TEXTS)
        single = embed("a late parcel")
    assert (blocking.shape, blocking.dtype) == ((3, 512), np.float32)
    assert np.array_equal(blocking, awaited)
    assert np.array_equal(single, blocking[0])
    assert blocking[0] @ blocking[2] > blocking[0] @ blocking[1]


@pytest.mark.parametrize("wire", MODELS)
def test_dimensions_are_sent(wire: str) -> None:
    with FakeProvider() as provider:
        assert embedder(provider, wire, dimensions=16)("text").shape == (16,)


def test_texts_go_in_batches_equal_ones_once_and_order_is_kept() -> None:
    with FakeProvider() as provider:
        embed = embedder(provider, "openai", batch_size=2)
        vectors = embed(["a1", "b2", "a1", "c3"])
        sizes = sorted(len(request.body["input"]) for request in provider.requests)  # type: ignore[index, arg-type, call-overload]
        alone = [embed(text) for text in ("a1", "b2", "a1", "c3")]
    assert sizes == [1, 2]
    assert np.array_equal(vectors, np.stack(alone))


def test_usage_is_counted_and_a_rate_limit_is_waited_for() -> None:
    with FakeProvider(limit=RateLimit(requests=20, per=1, burst=1)) as provider, sigwire.track_usage() as tracker:
        embedder(provider, "openai", batch_size=1)(["one", "two", "three"])
    total = tracker.get_total_tokens()[MODELS["openai"]]
    assert total["input_tokens"] > 0


def test_wrong_key_is_an_authentication_error() -> None:
    with FakeProvider(key="right") as provider, pytest.raises(sigwire.LMAuthenticationError):
        embedder(provider, "openai")("text")


def test_function_may_be_async_and_its_vectors_are_kept() -> None:
    calls: list[list[str]] = []

    async def embed(texts: list[str]) -> list[list[float]]:
        calls.append(texts)
        return [[float(len(text)), 1.0] for text in texts]

    made = Embedder(embed)
    assert made(["ab", "c"]).tolist() == [[2.0, 1.0], [1.0, 1.0]]
    assert made("ab").tolist() == [2.0, 1.0]
    assert calls == [["ab", "c"]]


def test_two_functions_of_equal_source_share_nothing() -> None:
    def make(value: float) -> Embedder:
        return Embedder(lambda texts: [[value] for _ in texts])

    assert (make(1.0)("x").tolist(), make(2.0)("x").tolist()) == ([1.0], [2.0])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Embedder("anthropic/claude"), "no embeddings of anthropic"),
        (lambda: Embedder(lambda texts: [], dimensions=3), "no option 'dimensions'"),
        (lambda: Embedder(lambda texts: [])("x"), "made 0 vectors of 1 texts"),
        (lambda: Embedder(lambda texts: [[1.0], [1.0, 2.0]])(["x", "y"]), "different lengths"),
        (lambda: Embedder(7), "a model's name or a function"),  # type: ignore[arg-type]
        (lambda: Embeddings([], Embedder("offline/lexical")), "corpus is empty"),
        (lambda: KNN(0, []), "above 0"),
    ],
)
def test_wrong_use_is_refused(make: Any, text: str) -> None:
    with pytest.raises(sigwire.ConfigurationError, match=text):
        make()


def test_reply_with_too_few_vectors_is_an_error() -> None:
    from sigwire.lm.codecs.embeddings import openai
    from sigwire.lm.codecs.embeddings.shared import EmbeddingProfile
    from sigwire.lm.codecs.shared.interface import Target

    target = Target("openai", "m", EmbeddingProfile())
    sent = openai.encode(sigwire.Request((sigwire.Message.user("a"), sigwire.Message.user("b"))), target)
    with pytest.raises(sigwire.LMServerError, match="1 vectors for 2 texts"):
        openai.decode({"data": [{"index": 0, "embedding": [1.0]}]}, sent, target)


async def test_search_is_the_same_blocking_awaited_and_streamed() -> None:
    search = Embeddings(TEXTS, Embedder("offline/lexical"), k=2)
    found = search("late parcel")
    assert found.passages == ["a late parcel", "parcels that are late"]
    assert found.indices == [0, 2]
    assert (await search.acall("late parcel")).indices == [0, 2]
    *_, last = search.stream("late parcel")
    assert last.value.indices == [0, 2]
    assert search("late parcel", k=9).indices == [0, 2, 1]


def test_saved_folder_is_read_without_an_embedding(tmp_path: Path) -> None:
    Embeddings(TEXTS, Embedder("offline/lexical"), k=1).save(tmp_path / "index")
    asked: list[list[str]] = []

    def embed(texts: list[str]) -> Any:
        asked.append(texts)
        return Embedder("offline/lexical")(texts)

    search = EmbeddingsWithScores.from_saved(tmp_path / "index", embed)
    assert search("weather").passages == ["the weather"]
    assert asked == [["weather"]]
    with pytest.raises(sigwire.StateError, match="no saved embeddings"):
        Embeddings.from_saved(tmp_path, embed)


def test_index_of_another_library_is_searched() -> None:
    class Store:
        """As FAISS: scores and positions, -1 where there are fewer."""

        def search(self, queries: Any, k: int, /) -> tuple[Any, Any]:
            return np.array([[0.5, 0.0]]), np.array([[2, -1]])

    search = EmbeddingsWithScores(TEXTS, Embedder("offline/lexical"), k=2, index=Store())
    found = search("anything")
    assert (found.passages, found.scores) == (["parcels that are late"], [0.5])
    with pytest.raises(sigwire.ConfigurationError, match="its own way"):
        search.save("nowhere")


def test_faiss_index_is_searched() -> None:
    faiss = pytest.importorskip("faiss")
    embed = Embedder("offline/lexical")
    vectors = embed(TEXTS)
    faiss.normalize_L2(vectors)  # the inner product of unit vectors is their cosine
    index = faiss.IndexFlatIP(512)
    index.add(vectors)
    found = EmbeddingsWithScores(TEXTS, embed, k=2, index=index)("late parcel")
    exact = EmbeddingsWithScores(TEXTS, embed, k=2)("late parcel")
    assert sorted(found.indices) == exact.indices == [0, 2]  # both have one score, whose order an index chooses
    assert np.allclose(found.scores, exact.scores, atol=1e-6)


def test_nearest_examples_by_words_and_by_vectors() -> None:
    train = [Example(text=text).with_inputs("text") for text in TEXTS]
    for vectorizer in (None, Embedder("offline/lexical")):
        assert [each.text for each in KNN(2, train, vectorizer)(text="late parcel")] == [TEXTS[0], TEXTS[2]]


def test_official_package_reads_the_embeddings_of_the_fake_provider() -> None:
    import openai

    with FakeProvider() as provider:
        client = openai.OpenAI(api_key="k", base_url=provider.url("openai"))
        reply = client.embeddings.create(
            model="text-embedding-3-small", input=["a late parcel"], encoding_format="float"
        )
        client.close()
    assert np.allclose(reply.data[0].embedding, Embedder("offline/lexical")("a late parcel"), atol=1e-6)


def test_model_of_embeddings_keeps_no_key_in_its_repr() -> None:
    assert "secret" not in repr(EmbeddingModel("openai/text-embedding-3-small", api_key="secret"))
