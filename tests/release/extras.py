"""Each extra alone: its feature works, and the features of the others name the line that installs them.

    python tests/release/extras.py prices            in an environment that has only sigwire[prices]
    python tests/release/extras.py prices --block    with the packages of the other extras made unimportable

Standard library and sigwire only.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

__all__ = ["EXTRAS", "FEATURES", "main"]

EXTRAS: Mapping[str, str] = {
    "bedrock": "botocore",
    "code": "pydantic_monty",
    "data": "pyarrow",
    "langchain": "langchain_core",
    "litellm": "litellm",
    "mcp": "mcp",
    "media": "PIL",
    "numpy": "numpy",
    "optuna": "optuna",
    "otel": "opentelemetry",
    "prices": "genai_prices",
    "rich": "rich",
    "socks": "aiohttp_socks",
}
"""The extras, each with the package that it installs."""
COMES_WITH: Mapping[str, set[str]] = {"mcp": {"otel"}, "optuna": {"numpy"}}
"""Extras whose package another extra's package requires."""


def main(arguments: Sequence[str]) -> int:
    """Check one extra, or ``all``; return the exit code."""
    extra, *rest = arguments
    present = {*EXTRAS} - {"litellm"} if extra == "all" else {extra, *COMES_WITH.get(extra, ())}
    if "--block" in rest:
        hidden = {EXTRAS[each] for each in EXTRAS if each not in present}
        sys.meta_path[:] = [_Hiding(finder, hidden) for finder in sys.meta_path]
    failed = []
    for name, feature in FEATURES.items():
        has_it = name in present or importlib.util.find_spec(EXTRAS[name]) is not None
        try:
            feature(has_it)
            print(f"{name:<10} {'works' if has_it else 'is absent, as it should be'}")
        except Exception as error:
            failed.append(name)
            print(f"{name:<10} {type(error).__name__}: {error}", file=sys.stderr)
    return 1 if failed else 0


class _Hiding:
    """A finder of modules that does not find those of some packages: they look like packages that are not installed."""

    def __init__(self, finder: Any, packages: set[str]) -> None:
        self._finder, self._packages = finder, packages

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        return None if name.partition(".")[0] in self._packages else self._finder.find_spec(name, path, target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)


# --- the features: True if the package is there


def bedrock(is_there: bool) -> None:
    import sigwire
    from sigwire.lm.providers.aws import aws_transport
    from sigwire.testing import FakeProvider

    if is_there:
        keys: Any = importlib.import_module("botocore.credentials").Credentials("AKIAEXAMPLE", "secret")
        with FakeProvider(["pong"], key="AKIAEXAMPLE") as provider:
            signed = aws_transport(lambda: keys, region="us-east-1")
            lm = sigwire.LM("bedrock/some-model", base_url=provider.url("bedrock"), transport=signed, cache=False)
            assert lm("ping") == ["pong"]
            lm.close()
        return
    with _Raises("sigwire[bedrock]"):
        sigwire.LM("bedrock/some-model", region="us-east-1", cache=False)("ping")


def code(is_there: bool) -> None:
    import sigwire

    if not is_there:
        with _Raises("sigwire[code]"):
            sigwire.CodeAct("q -> a")
        return
    agent = sigwire.CodeAct("q -> a: int", lm=sigwire.FakeLM([{"reasoning": "", "code": "submit(a=2 + 2)"}]))
    assert agent(q="2+2?").a == 4


def data(is_there: bool) -> None:
    import tempfile
    from pathlib import Path

    from sigwire.data.reading import read_rows

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        if not is_there:
            path.touch()
            with _Raises("sigwire[data]"):
                next(iter(read_rows(path)))
            return
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"n": [1, 2]}), path)
        assert [*read_rows(path)] == [{"n": 1}, {"n": 2}]


def langchain(is_there: bool) -> None:
    import sigwire

    if not is_there:
        with _Raises("LangChain"):
            sigwire.Tool.from_langchain(object())
        return
    from langchain_core.tools import tool

    @tool
    def half(n: int) -> int:
        """Halve a number."""
        return n // 2

    assert str(sigwire.Tool.from_langchain(half)(n=8)) == "4"


def litellm(is_there: bool) -> None:
    import sigwire

    if is_there:
        from sigwire.testing import FakeProvider

        with FakeProvider(lambda request: "pong") as provider:
            lm = sigwire.LM("litellm/openai/gpt-5-mini", base_url=provider.url("openai"), api_key="k", cache=False)
            assert "pong" in str(lm("ping"))
        return
    with _Raises('pip install "sigwire[litellm]"'):
        sigwire.LM("sagemaker/some-model", cache=False)("ping")


def mcp(is_there: bool) -> None:
    import sigwire

    class Session:
        async def call_tool(self, name: str, arguments: Any) -> Any:
            return {"content": [{"type": "text", "text": "4"}]}

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    description: Any = {"name": "half", "inputSchema": schema}
    if is_there:
        import mcp.types

        description = mcp.types.Tool(name="half", inputSchema=schema)
    assert sigwire.Tool.from_mcp_tool(Session(), description)(n=8) == "4"


def media(is_there: bool) -> None:
    import struct

    import sigwire
    from sigwire.lm.media.fitting import fit_media

    header = struct.pack(
        "<2sIHHI IiiHHIIiiII", b"BM", 58, 0, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0
    )  # one white pixel
    turn = sigwire.Message("user", (sigwire.Image(header + b"\xff\xff\xff\x00").part(),))
    if is_there:
        (part,) = fit_media([turn], "anthropic", [])[0].parts
        assert getattr(part, "media_type", None) == "image/jpeg"
        return
    with _Raises("sigwire[media]"):
        fit_media([turn], "anthropic", [])


def numpy(is_there: bool) -> None:
    from sigwire.retrieval.embedder import Embedder
    from sigwire.retrieval.embeddings import Embeddings

    corpus = ["Parcels arrive in two days.", "Refunds take a week."]
    if is_there:
        search = Embeddings(corpus, Embedder("offline/lexical"), k=1)
        assert search("When does my parcel arrive?").passages == corpus[:1]
        return
    with _Raises("sigwire[numpy]"):
        Embeddings(corpus, Embedder("offline/lexical"), k=1)


def optuna(is_there: bool) -> None:
    import sigwire

    rows = [sigwire.Example(n=str(n), m=str(n)).with_inputs("n") for n in range(8)]
    student = sigwire.Predict("n -> m", lm=sigwire.FakeLM(lambda request: {"m": "1"}))
    search = sigwire.BootstrapFewShotWithOptuna(lambda example, found, trace=None: 1.0, num_candidate_programs=2)
    if is_there:
        search.compile(student, trainset=rows)
        return
    with _Raises("sigwire[optuna]"):
        search.compile(student, trainset=rows)


def otel(is_there: bool) -> None:
    import sigwire

    if importlib.util.find_spec("sigwire.observe.otel") is None:
        return
    tracing: Any = importlib.import_module("sigwire.observe.otel")
    if not is_there:
        with _Raises("sigwire[otel]"):
            tracing.instrument()
        return
    tracing.instrument()
    try:
        answer = sigwire.Predict("q -> a", lm=sigwire.FakeLM([{"a": "4"}]))(q="2+2?")
    finally:
        tracing.uninstrument()
    assert answer.a == "4"


def prices(is_there: bool) -> None:
    import sigwire

    if not is_there and "litellm" in sys.modules:  # LiteLLM's table is another source of prices
        return
    usage = sigwire.Usage(input_tokens=1_000_000, output_tokens=0)
    cost = sigwire.prices.cost("openai/gpt-5-mini", usage)
    assert (cost is not None and cost > 0) if is_there else cost is None, cost
    if not is_there:
        with sigwire.Budget(money=1.0), _Raises("sigwire[prices]"):
            sigwire.LM("openai/gpt-5-mini", api_key="k", base_url="http://127.0.0.1:9", cache=False)("ping")


def rich(is_there: bool) -> None:
    import sigwire

    if is_there:
        from rich.console import Console

        with open("/dev/null" if sys.platform != "win32" else "NUL", "w", encoding="utf-8") as nowhere:
            Console(file=nowhere).print(sigwire.Predict("question -> answer"))


def socks(is_there: bool) -> None:
    import asyncio

    from sigwire.lm.http import HttpRequest, HttpTransport

    with HttpTransport(proxy="socks5://127.0.0.1:9", timeout=5) as transport:
        request = transport.asend(HttpRequest("https://api.example.com/"))
        with _Raises("127.0.0.1:9" if is_there else 'pip install "sigwire[socks]"'):
            asyncio.run(request)


class _Raises:
    """The block raises a ``SigwireError`` whose text has a part."""

    def __init__(self, part: str) -> None:
        self._part = part

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        from sigwire.errors import SigwireError

        assert isinstance(error, SigwireError), f"expected a SigwireError, got {error!r}"
        assert self._part in str(error), f"{self._part!r} is not in {error}"
        return True


FEATURES: Mapping[str, Callable[[bool], None]] = {
    each.__name__: each
    for each in (bedrock, code, data, langchain, litellm, mcp, media, numpy, optuna, otel, prices, rich, socks)
}

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
