"""``download`` of ``dspy.utils``: the file behind a URL, into the working directory."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

from sigwire.errors import InputError
from sigwire.files.whole import replacing

__all__ = ["download"]

_TIMEOUT = 60.0  # seconds without a byte


def download(url: str) -> None:
    """Write the file behind a URL to the working directory, under its own name; a file of the same size stays.

    Pass URLs of yours only. Raises ``InputError`` for a URL without the name of a file, or of another kind than http and
    https, and what ``urllib`` raises for a server that does not answer. A file that was not received whole is not kept.

    >>> download("ftp://files.example/wiki.jsonl")
    Traceback (most recent call last):
    sigwire.errors.InputError: 'ftp://files.example/wiki.jsonl' is no URL of a file (downloading). Pass https://host/name.
    """
    parts = urlsplit(url)
    name = Path(unquote(parts.path)).name
    if parts.scheme not in ("http", "https") or not name:
        raise InputError(f"{url!r} is no URL of a file (downloading). Pass https://host/name.")
    target = Path(name)
    with urlopen(url, timeout=_TIMEOUT) as reply:
        size = int(reply.headers.get("Content-Length") or -1)
        if target.is_file() and target.stat().st_size == size:
            return
        print(f"Downloading {name!r}...")
        with replacing(target) as file:
            shutil.copyfileobj(reply, file)
            if size not in (-1, file.tell()):
                raise OSError(f"{file.tell()} of {size} bytes were received (downloading {name!r}). Call it again.")
