"""Signatures of AWS (Signature Version 4) for Amazon Bedrock, made by ``botocore`` on requests of sigwire's own HTTP.

Credentials, the first that exist: a profile given in code; ``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY``, read for each
request; and what botocore finds (profiles, SSO, roles of containers and machines), which it renews. A signature holds for one
host, path, body and a few minutes. ``botocore`` is the extra ``bedrock``, imported by the first signed request.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html.
"""

from __future__ import annotations

import importlib
import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

from sigwire.errors import ConfigurationError, LMAuthenticationError
from sigwire.lm.http.messages import HttpRequest, Transport
from sigwire.lm.providers.authorized import AuthorizedTransport
from sigwire.lm.secrets import Secret

__all__ = ["AWSCredentials", "AWSKeys", "aws_transport", "sign"]


class AWSCredentials(Protocol):
    """Keys of AWS: ``botocore.credentials.Credentials``, and any object with these attributes."""

    @property
    def access_key(self) -> str: ...

    @property
    def secret_key(self) -> str: ...

    @property
    def token(self) -> str | None: ...


class AWSKeys(NamedTuple):
    """Keys that do not change."""

    access_key: str
    secret_key: str
    token: str | None = None


def aws_transport(
    credentials: Callable[[], AWSCredentials | None], *, region: str | None = None, transport: Transport | None = None
) -> AuthorizedTransport:
    """Return a transport that signs requests to Bedrock with the credentials that a function returns for each request.

    ``credentials``: a function without parameters, such as ``boto3.Session(profile_name="work").get_credentials``.
    ``region``: default: that of the address, of the model, or ``AWS_REGION``. ``transport``: default: a new ``HttpTransport``.
    A request raises ``LMAuthenticationError`` if the function returns ``None``, and ``ImportError`` without ``botocore``.

    >>> from botocore.credentials import Credentials
    >>> keys = Credentials("AKIAEXAMPLE", "a secret")
    >>> transport = aws_transport(lambda: keys, region="eu-central-1")
    >>> from sigwire.lm.client import LM
    >>> LM("bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", region="eu-central-1", transport=transport)
    LM('bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0', region='eu-central-1', transport=AuthorizedTransport)
    """
    if transport is None:
        from sigwire.lm.http.transport import HttpTransport

        transport = HttpTransport()

    def authorize(request: HttpRequest, variables: Mapping[str, str]) -> Mapping[str, str]:
        found = credentials()
        if found is None:
            raise LMAuthenticationError("The function of aws_transport returned no credentials (signing the request).")
        return _signature(request, found, variables)

    return AuthorizedTransport(transport, authorize, {} if region is None else {"region": region})


def sign(request: HttpRequest, variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers of a signature with the credentials of this machine; ``{}`` for another host without credentials.

    Raises ``LMAuthenticationError`` if there are no credentials for a host of AWS, and ``ConfigurationError`` if ``botocore``
    is missing.
    """
    found = _find_credentials(variables.get("profile"), required=_HOST.search(_host(request)) is not None)
    return {} if found is None else _signature(request, found, variables)


_HOST = re.compile(r"(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$")


def _host(request: HttpRequest) -> str:
    return (urlsplit(request.url).hostname or "").lower()


def _signature(request: HttpRequest, credentials: AWSCredentials, variables: Mapping[str, str]) -> Mapping[str, str]:
    signer, requests = _load("botocore.auth"), _load("botocore.awsrequest")
    freeze = getattr(credentials, "get_frozen_credentials", None)
    keys = cast(AWSCredentials, freeze()) if freeze is not None else credentials
    kind = request.headers.get("content-type", "application/json")
    signed = requests.AWSRequest(request.method, str(request.url), {"content-type": kind}, request.body)
    signer.SigV4Auth(keys, "bedrock", _region(request, variables)).add_auth(signed)
    added = ((name.lower(), str(value)) for name, value in signed.headers.items())
    return {name: value for name, value in added if name != "content-type"}


def _region(request: HttpRequest, variables: Mapping[str, str]) -> str:
    in_host = _HOST.search(_host(request))
    names = ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_REGION_NAME")
    from_environment = next((value for name in names if (value := os.environ.get(name, "").strip())), None)
    region = in_host[1] if in_host else variables.get("region") or from_environment
    if region is None:
        raise ConfigurationError(
            "A signature needs a region (signing the request). Set AWS_REGION, or pass LM(..., region=...)."
        )
    return region


def _load(name: str) -> Any:
    """Return a module of botocore, which has no types."""
    return importlib.import_module(name)


# --- credentials of this machine

_sessions: dict[str | None, AWSCredentials] = {}  # by profile; botocore renews them
_lock = threading.Lock()


def _find_credentials(profile: str | None, *, required: bool) -> AWSCredentials | None:
    """Return the credentials; ``None`` if there are none and none are required."""
    try:
        sessions, failures = _load("botocore.session"), _load("botocore.exceptions")
    except ImportError as error:
        if not required:
            return None
        raise ConfigurationError(
            'Signing requests to AWS needs botocore (signing the request): pip install "sigwire[bedrock]". Or use a Bedrock '
            "API key: set AWS_BEARER_TOKEN_BEDROCK, or pass api_key=..."
        ) from error
    if profile is None and (keys := _from_environment()) is not None:
        return keys
    try:
        with _lock:
            found: AWSCredentials | None = _sessions.get(profile)
            if found is None:
                found = sessions.Session(profile=profile).get_credentials()
            if found is not None:
                _sessions[profile] = found
    except failures.BotoCoreError as error:
        raise LMAuthenticationError(f"The credentials of AWS cannot be read (signing the request): {error}.") from error
    if found is None and required:
        raise LMAuthenticationError(
            "No credentials of AWS were found, so nothing was sent (signing the request). Set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, a profile (AWS_PROFILE, profile=...), or an API key (AWS_BEARER_TOKEN_BEDROCK)."
        )
    return found


def _from_environment() -> AWSCredentials | None:
    key, secret, token = (
        os.environ.get(name, "").strip() for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    )
    return AWSKeys(key, Secret(secret), Secret(token) if token else None) if key and secret else None
