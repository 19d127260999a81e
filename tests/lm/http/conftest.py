"""Fixtures of the tests of the transport: servers and certificates that end with the test, and the four ways to call."""

from __future__ import annotations

import importlib
import ssl
from collections.abc import Callable, Iterator

import pytest

from tests.lm.http.server import Call, Certificates, Script, Server, awaited, blocking, streamed, streamed_awaited


@pytest.fixture(scope="session", autouse=True)
def aiohttp_is_imported() -> None:
    """The import counts against the deadline of the first awaited call."""
    importlib.import_module("sigwire.lm.http.async_client")


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(script: Script | None = None, tls: ssl.SSLContext | None = None) -> Server:
        servers.append(Server(script, tls))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "REQUEST_METHOD",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(params=[blocking, awaited, streamed, streamed_awaited], ids=lambda call: call.__name__)
def call(request: pytest.FixtureRequest) -> Call:
    return request.param


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    import trustme

    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    own, demanding, other = (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(3))
    for context in (own, demanding):
        authority.issue_cert("127.0.0.1", "localhost", "model.test").configure_cert(context)
    authority.issue_cert("elsewhere.example.org").configure_cert(other)
    authority.configure_trust(demanding)
    demanding.verify_mode = ssl.CERT_REQUIRED
    return Certificates(folder / "ca.pem", folder / "client.pem", own, demanding, other)
