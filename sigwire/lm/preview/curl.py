"""The shell command of a request: keys as variables of the shell, every other character as it is sent."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

from sigwire.core.json import JsonValue
from sigwire.show.cleaning import visible

__all__ = ["MASK", "curl_command"]

MASK = "***"
_LONGEST_ARGUMENT = 100_000  # Linux limits one argument to 128 KiB
_KEY = re.compile(r"^(.*?)env:([A-Za-z_]\w*)$", re.DOTALL)


def curl_command(url: str, headers: Mapping[str, str], body: JsonValue, text: str | None = None) -> str:
    r"""Return the command for a POSIX shell. ``text``: the JSON of the body as it is sent, if it holds no secret.

    >>> print(curl_command("https://llm.example/v1", {"authorization": "Bearer env:ACME_API_KEY"}, {"q": "it's $HOME"}))
    curl -X POST https://llm.example/v1 \
      -H 'authorization: Bearer '"$ACME_API_KEY" \
      --data-raw '{"q":"it'"'"'s $HOME"}'
    """
    json_text = _printable_json(json.dumps(body, ensure_ascii=False, separators=(",", ":")) if text is None else text)
    lines = [f"curl -X POST {shlex.quote(visible(url))}", *(_header(*header) for header in headers.items())]
    if len(json_text) <= _LONGEST_ARGUMENT:
        return " \\\n  ".join([*lines, f"--data-raw {shlex.quote(json_text)}"])
    return " \\\n  ".join([*lines, f"--data-binary @- <<'SIGWIRE_BODY'\n{json_text}\nSIGWIRE_BODY"])


def _header(name: str, value: str) -> str:
    """Return the option of a header; a key, or a masked value, is a variable of the shell in double quotes."""
    if value == MASK:
        value = f"env:{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"
    found = _KEY.match(value)
    if found is None:
        return f"-H {shlex.quote(visible(f'{name}: {value}'))}"
    return f"""-H {_single_quoted(visible(f"{name}: {found[1]}"))}"${found[2]}\""""


def _single_quoted(text: str) -> str:
    """Return a text in single quotes. ``shlex.quote`` leaves some texts without quotes."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _printable_json(text: str) -> str:
    """Return JSON whose unprintable characters are escapes: a terminal must not act on them."""
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]
