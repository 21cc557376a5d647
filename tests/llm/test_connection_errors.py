"""Connection errors say whether the server, a proxy or a certificate is the cause, and what to do."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from interpreter.errors import ModelUnreachableError, UnknownModelError
from interpreter.llm.failures import ModelFailure, error_for
from interpreter.llm.providers import resolve
from model_server import ModelServer
from scripted_llm import Start


@contextmanager
def self_signed_server(folder: Path) -> Iterator[str]:
    """A server with a self-signed certificate."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    what = ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *what], check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with suppress(OSError), connection:
                        context.wrap_socket(connection, server_side=True).close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}/v1"
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.needs("openssl")
def test_a_self_signed_certificate_is_named_as_the_cause(asking: Start, tmp_path: Path) -> None:
    with self_signed_server(tmp_path) as address:
        chunks, caught = asking(api_base=address).until_error(ModelUnreachableError)
    assert chunks == []  # retrying would not help
    assert "certificate" in str(caught) and "SSL_CERT_FILE" in str(caught)


def test_https_to_a_plain_http_server_suggests_http(asking: Start) -> None:
    with ModelServer() as server:
        address = server.base_url.replace("http:", "https:")
        _, caught = asking(api_base=address).until_error(ModelUnreachableError)
    assert "http://" in str(caught) and "--api_base" in str(caught)


def test_a_refusing_proxy_is_named_without_its_password(asking: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer() as server:
        monkeypatch.setenv("HTTPS_PROXY", server.base_url.replace("http://", "http://me:secret@"))
        model = asking(api_base="https://model.invalid/v1", max_retries=0)
        _, caught = model.until_error(ModelUnreachableError)
    assert "proxy" in str(caught) and "HTTPS_PROXY" in str(caught)
    assert "secret" not in str(caught)


def test_an_unreachable_proxy_is_named(asking: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer() as server:
        gone = server.base_url.removesuffix("/v1")
    monkeypatch.setenv("HTTPS_PROXY", gone)
    model = asking(api_base="https://model.invalid/v1", max_retries=0)
    _, caught = model.until_error(ModelUnreachableError)
    assert f"the proxy {gone}" in str(caught)


def test_a_misspelled_model_gets_a_suggestion() -> None:
    endpoint = resolve("gpt-4o-minni", {"OPENAI_API_KEY": "k"})
    error = error_for(ModelFailure(404, is_structured=True), endpoint)
    assert isinstance(error, UnknownModelError)
    assert "Did you mean gpt-4o-mini" in str(error)
    own = resolve("gpt-4o-minni", {}, "http://localhost:1/v1")
    assert "Did you mean" not in str(error_for(ModelFailure(404, is_structured=True), own))
