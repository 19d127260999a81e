"""Access tokens of Google Cloud for Vertex AI, from ``google-auth`` if it is installed.

The credentials are Application Default Credentials (``gcloud auth application-default login``, a service account, the
machine's own), read once and renewed before they expire. A token is sent to Vertex AI's own hosts only.

Source: https://cloud.google.com/docs/authentication/application-default-credentials.
"""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from sigwire.core.json import loads
from sigwire.errors import LMAuthenticationError
from sigwire.lm.http.messages import HttpRequest, Transport
from sigwire.lm.providers.authorized import AuthorizedTransport

__all__ = ["access_token", "google_transport"]

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


def google_transport(
    credentials: str | Mapping[str, object], *, transport: Transport | None = None
) -> AuthorizedTransport:
    """Return a transport that authorizes requests to Vertex AI with credentials of Google Cloud.

    ``credentials``: the path of a JSON file, its text, or its object; of a service account or a user. They are read by the
    first request. ``transport``: default: a new ``HttpTransport``. A request raises ``LMAuthenticationError`` if
    ``google-auth`` is missing or cannot read the credentials.

    >>> from sigwire.lm.client import LM
    >>> LM("vertex/gemini-2.5-flash", project="p", transport=google_transport("service-account.json"))
    LM('vertex/gemini-2.5-flash', project='p', transport=AuthorizedTransport)
    """
    if transport is None:
        from sigwire.lm.http.transport import HttpTransport

        transport = HttpTransport()
    found: list[_Credentials] = []

    def authorize(request: HttpRequest, variables: Mapping[str, str]) -> Mapping[str, str]:
        return _bearer(request, found, lambda auth: _read_credentials(auth, credentials))

    return AuthorizedTransport(transport, authorize)


def _read_credentials(auth: Any, given: str | Mapping[str, object]) -> _Credentials:
    """Return the credentials of a path, a text or an object."""
    if isinstance(given, str) and not given.lstrip().startswith("{"):
        return cast("_Credentials", auth.load_credentials_from_file(given, scopes=[_SCOPE])[0])
    try:
        described: object = loads(given) if isinstance(given, str) else dict(given)
    except ValueError:
        raise LMAuthenticationError(
            "The credentials of Google Cloud are no JSON (authorizing the request). Pass the text of the file, or its path."
        ) from None
    return cast("_Credentials", auth.load_credentials_from_dict(described, scopes=[_SCOPE])[0])


def access_token(request: HttpRequest, variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return the header with an access token; ``{}`` for another host than Vertex AI's.

    Raises ``LMAuthenticationError`` if ``google-auth`` is missing or finds no credentials.
    """
    return _bearer(request, _found, lambda auth: cast("_Credentials", auth.default(scopes=[_SCOPE])[0]))


def _bearer(request: HttpRequest, found: list[_Credentials], find: Callable[[Any], _Credentials]) -> Mapping[str, str]:
    """Return the header of credentials that are found once, into ``found``, and renewed before they expire."""
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
            if not found:
                found.append(find(auth))
            credentials = found[0]
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
