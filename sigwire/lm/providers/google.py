"""Access tokens of Google Cloud for Vertex AI, from ``google-auth`` if it is installed.

The credentials are Application Default Credentials (``gcloud auth application-default login``, a service account, the
machine's own), read once and renewed before they expire. A token is sent to Vertex AI's own hosts only.

Source: https://cloud.google.com/docs/authentication/application-default-credentials.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Mapping
from typing import Any, Protocol, cast

from sigwire.errors import LMAuthenticationError
from sigwire.lm.http.messages import HttpRequest

__all__ = ["access_token"]

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_HOST = re.compile(r"https://(?:[a-z0-9-]+-)?aiplatform(?:\.(?:us|eu)\.rep)?\.googleapis\.com/")


class _Credentials(Protocol):
    @property
    def valid(self) -> bool: ...

    @property
    def token(self) -> str: ...

    def refresh(self, request: object) -> None: ...


_found: list[_Credentials] = []
_lock = threading.Lock()


def access_token(request: HttpRequest, variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return the header with an access token; ``{}`` for another host than Vertex AI's.

    Raises ``LMAuthenticationError`` if ``google-auth`` is missing or finds no credentials.
    """
    if not _HOST.match(request.url):
        return {}
    try:
        auth, errors, requests = (_load(f"google.auth{name}") for name in ("", ".exceptions", ".transport.requests"))
    except ImportError as error:
        raise LMAuthenticationError(
            "No key for Vertex AI, so nothing was sent (authorizing the request). Set GOOGLE_OAUTH_ACCESS_TOKEN or pass "
            'api_key=..., or install google-auth: pip install "google-auth[requests]".'
        ) from error
    try:
        with _lock:
            if not _found:
                _found.append(cast("_Credentials", auth.default(scopes=[_SCOPE])[0]))
            credentials = _found[0]
            if not credentials.valid:
                credentials.refresh(requests.Request())
            return {"authorization": f"Bearer {credentials.token}"}
    except errors.GoogleAuthError as error:
        raise LMAuthenticationError(
            f"The credentials of Google Cloud cannot be read (authorizing the request): {error}."
        ) from error


def _load(name: str) -> Any:
    """Return a module of google-auth, which may be missing."""
    return importlib.import_module(name)
