"""Print facts for a bug report: versions, extras, names of keys, proxies, cache. No secret is printed.

Without --ping no connection is opened.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sigwire.commands.output import Status, add_json, print_json
from sigwire.core.lazy import version

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["add", "run"]

NEEDED = ("aiohttp", "docstring-parser", "httptools", "jsonschema", "pydantic", "typing-extensions")
EXTRAS: Mapping[str, str] = {
    "bedrock": "botocore",
    "code": "pydantic-monty",
    "data": "pyarrow",
    "langchain": "langchain-core",
    "litellm": "litellm",
    "mcp": "mcp",
    "media": "pillow",
    "numpy": "numpy",
    "optuna": "optuna",
    "otel": "opentelemetry-api",
    "prices": "genai-prices",
    "rich": "rich",
    "socks": "aiohttp-socks",
}
"""The extras, each with the package that it installs."""
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire doctor``."""
    parser.add_argument("--ping", metavar="MODEL", help="ask this model one short question, which may cost money")
    add_json(parser)


def run(options: Namespace) -> int:
    """Print the facts; return the exit status."""
    facts: dict[str, dict[str, str]] = {
        "versions": _versions(),
        "extras": {name: _installed(package) or "not installed" for name, package in EXTRAS.items()},
        "keys": _keys(),
        "proxies": _proxies(),
        "cache": _cache(),
    }
    status = Status.DONE
    if options.ping:
        facts["ping"], status = _ping(options.ping)
    if options.json:
        print_json(facts)
        return status
    for title, rows in facts.items():
        print(title)
        for name, value in rows.items():
            print(f"  {name:<18} {value}")
    if not options.ping:
        print("ping\n  no connection was opened; --ping MODEL asks a model")
    return status


def _versions() -> dict[str, str]:
    import platform

    own = {"sigwire": version(), "Python": platform.python_version(), "platform": platform.platform()}
    return {**own, **{name: _installed(name) or "missing" for name in NEEDED}}


def _installed(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _keys() -> dict[str, str]:
    from sigwire.commands.models import keys_of
    from sigwire.lm.providers.registry import PROVIDERS

    found = {name: is_set for row in PROVIDERS.values() for name, is_set in keys_of(row).items()}
    present = {name: "set" for name, is_set in found.items() if is_set}
    return {**present, "not set": f"{len(found) - len(present)} others (sigwire models)"}


def _proxies() -> dict[str, str]:
    names = [name for lower in PROXIES for name in (lower, lower.upper()) if os.environ.get(name)]
    return {name: _without_user(os.environ[name]) for name in names} or {"none": "in the environment"}


def _without_user(url: str) -> str:
    """Return a proxy without its user and password.

    >>> _without_user("http://me:secret@proxy.corp:3128"), _without_user("localhost,.corp")
    ('http://proxy.corp:3128', 'localhost,.corp')
    """
    scheme, mark, rest = url.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2].partition('?')[0]}"


def _cache() -> dict[str, str]:
    from sigwire.lm.policy.cache.folder import default_folder

    mode = os.environ.get("SIGWIRE_CACHE") or "disk"
    folder = default_folder()
    return {"mode": mode, "folder": _shortened(folder), "size": f"{_size(folder) / 1e6:.1f} MB"}


def _shortened(folder: Path) -> str:
    """Return a folder without the name of the user."""
    from pathlib import Path

    user = Path("~").expanduser()
    return f"~/{folder.relative_to(user).as_posix()}" if folder.is_relative_to(user) else str(folder)


def _size(folder: Path) -> int:
    if not folder.is_dir():
        return 0
    return sum(each.stat().st_size for each in folder.iterdir() if each.is_file())


def _ping(model: str) -> tuple[dict[str, str], Status]:
    """Ask a model one question. An answer that cannot be used is an answer."""
    import time

    from sigwire.errors import ModelError, SigwireError
    from sigwire.lm.client import LM

    started = time.monotonic()
    facts = {"model": model}
    try:
        lm = LM(model, cache=False, max_tokens=64, timeout=30, num_retries=0)
        try:
            lm("Reply with the word pong.")
        except ModelError as error:
            facts["answer"] = f"not usable: {type(error).__name__}"
        if model.startswith(("ollama/", "ollama_chat/")):
            facts |= _ollama(model.partition("/")[2])
    except SigwireError as error:
        facts["error"] = " ".join(f"{type(error).__name__}: {error}".split())
        return facts, Status.ABORTED
    facts["seconds"] = f"{time.monotonic() - started:.1f}"
    return facts, Status.DONE


def _ollama(model: str) -> dict[str, str]:
    """Return the version of Ollama and the window (``num_ctx``) with which it has loaded a model."""
    import json

    from sigwire.errors import LMError
    from sigwire.lm.http import HttpRequest, HttpTransport
    from sigwire.lm.providers.registry import PROVIDERS
    from sigwire.lm.secrets import redact_url

    row = PROVIDERS["ollama"]
    given = next((url for name in row.base_variables if (url := os.environ.get(name))), str(row.base_url))
    base = row.tidy(given)
    facts = {"address": redact_url(base)}
    with HttpTransport(timeout=5) as transport:
        try:
            found: Any = [
                json.loads(transport.send(HttpRequest(f"{base}/api/{path}", method="GET")).body)
                for path in ("version", "ps")
            ]
            loaded = [each for each in found[1].get("models", []) if str(each.get("name")).startswith(model)]
            facts["Ollama"] = str(found[0].get("version"))
            facts["num_ctx"] = str(loaded[0].get("context_length")) if loaded else "unknown: the model is not loaded"
        except (LMError, ValueError, AttributeError) as error:
            facts["Ollama"] = f"unknown ({type(error).__name__})"
    return facts
