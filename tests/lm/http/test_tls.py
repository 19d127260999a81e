"""TLS of the transport: authorities, certificates of hosts and clients, and the errors of broken handshakes."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

import sigwire
from sigwire.errors import ConfigurationError, LMTransportError
from sigwire.lm.http.transport import HttpTransport
from sigwire.lm.http.urls import tls_context
from tests.lm.http.server import Call, Certificates, Server, ask, no_open_sockets, says


def test_private_authority_is_trusted_when_given(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(tls=certificates.server)
    with no_open_sockets(), HttpTransport(ca=certificates.ca) as transport:
        for size in (2, 1_000_000):
            assert call(transport, ask(server.url, b"x" * size)).status == 200
    assert [len(body) for _, body in server.requests] == [2, 1_000_000]
    assert server.is_left(0)


def test_certificate_of_an_unknown_authority_is_refused_and_not_retryable(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(tls=certificates.server)
    with (
        HttpTransport() as transport,
        pytest.raises(LMTransportError, match=r"not trusted .*REQUESTS_CA_BUNDLE.* LM\(\.\.\., transport=") as caught,
    ):
        call(transport, ask(server.url))
    assert not caught.value.retryable
    assert server.requests == []
    assert server.is_left(0)
    advice = str(caught.value).partition("transport=")[2].removesuffix(").")
    with eval(advice.replace("authority.pem", str(certificates.ca)), {"sigwire": sigwire}) as transport:
        assert call(transport, ask(server.url)).status == 200


@pytest.mark.parametrize("name", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_authorities_of_the_environment_are_trusted(
    serve: Callable[..., Server], call: Call, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    server = serve(tls=certificates.server)
    monkeypatch.setenv(name, str(certificates.ca))
    with HttpTransport() as transport:
        assert call(transport, ask(server.url)).status == 200
    if name != "SSL_CERT_FILE":  # OpenSSL reads it itself
        with HttpTransport(trust_env=False) as transport, pytest.raises(LMTransportError, match="not trusted"):
            call(transport, ask(server.url))


def test_bundle_of_the_environment_replaces_the_system_authorities(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURL_CA_BUNDLE", "/does/not/exist.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates.ca))
    assert len(tls_context(None, None).get_ca_certs()) == 1
    assert len(tls_context(certificates.ca, None).get_ca_certs()) == 1


def test_unreadable_bundle_of_the_environment_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/does/not/exist.pem")
    with pytest.raises(ConfigurationError, match="REQUESTS_CA_BUNDLE"):
        tls_context(None, None)


def test_certificate_for_another_host_is_refused(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(tls=certificates.other_host)
    with HttpTransport(ca=certificates.ca) as transport, pytest.raises(LMTransportError, match="not valid for '127"):
        call(transport, ask(server.url))
    assert server.requests == []


def test_client_certificate_is_sent_when_requested(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(tls=certificates.demanding)
    with HttpTransport(ca=certificates.ca, certificate=certificates.client) as transport:
        assert call(transport, ask(server.url)).status == 200
    with HttpTransport(ca=certificates.ca) as transport, pytest.raises(LMTransportError):
        call(transport, ask(server.url))
    assert len(server.requests) == 1


def test_given_tls_context_is_used_unchanged(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(tls=certificates.server)
    with HttpTransport(tls=ssl.create_default_context(cafile=certificates.ca)) as transport:
        assert call(transport, ask(server.url)).status == 200


@pytest.mark.parametrize("wrong", [{"ca": "/no/such/file.pem"}, {"certificate": ("/no/such.pem", "/no/such.key")}])
def test_unreadable_certificates_are_a_configuration_error(call: Call, wrong: dict[str, Any]) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening, no_open_sockets():
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        with HttpTransport(**wrong) as transport, pytest.raises(ConfigurationError, match="cannot be loaded"):
            call(transport, ask(url))


def test_tls_context_beside_ca_is_refused(certificates: Certificates) -> None:
    with pytest.raises(ConfigurationError, match="tls="):
        HttpTransport(tls=ssl.create_default_context(), ca=certificates.ca)


def test_truncated_reply_over_tls_is_an_error(
    serve: Callable[..., Server], call: Call, certificates: Certificates
) -> None:
    server = serve(says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"), certificates.server)
    with (
        HttpTransport(ca=certificates.ca) as transport,
        pytest.raises(LMTransportError, match="in the middle of the reply"),
    ):
        call(transport, ask(server.url))


def test_server_without_tls_is_an_error(call: Call) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def greet_in_plain_text() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.recv(65536)

        threading.Thread(target=greet_in_plain_text, daemon=True).start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        with HttpTransport() as transport, pytest.raises(LMTransportError, match="TLS failed"):
            call(transport, ask(url))
