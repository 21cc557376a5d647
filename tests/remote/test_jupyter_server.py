"""Kernels on a real Jupyter server with a token."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.errors import RemoteError, SettingError
from interpreter.languages.conformance import CHECKS, conform
from interpreter.remote.jupyter import JupyterServer
from interpreter.runtimes import built_in_languages
from model_server import text as said
from model_server import tool_call
from ports import free_ports
from remote.conftest import RemoteSession, notices, text
from runtimes.language_samples import IPYKERNEL, STRIKE
from waiting import until

pytest.importorskip("jupyter_server")
__all__ = ["chatting"]


class Server:
    def __init__(self, address: str, token: str, folder: str) -> None:
        self.address, self.token, self.folder = address, token, folder

    @property
    def url(self) -> str:
        return f"jupyter+{self.address}/?token={self.token}"

    def kernels(self) -> list[dict[str, Any]]:
        found = httpx.get(f"{self.address}/api/kernels", headers={"Authorization": f"token {self.token}"})
        return found.json()  # type: ignore[no-any-return]


@contextmanager
def serving(folder: Path, certificate: Path | None = None) -> Iterator[Server]:
    """A running server, with https if there is a certificate; the key is next to it."""
    port, token = free_ports(1)[0], secrets.token_hex(8)
    secure = {"ServerApp.certfile": certificate, "ServerApp.keyfile": certificate and certificate.with_suffix(".key")}
    settings = {
        **(secure if certificate else {}),
        "ServerApp.port": port,
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "ServerApp.root_dir": folder,
        "ServerApp.terminals_enabled": False,
        "IdentityProvider.token": token,
    }
    argv = [sys.executable, "-m", "jupyter_server", *(f"--{name}={value}" for name, value in settings.items())]
    env = {**os.environ, "HOME": str(folder), "JUPYTER_RUNTIME_DIR": str(folder / "run")}
    log = (folder / "log").open("wb")
    with subprocess.Popen(argv, env=env, cwd=folder, stdout=log, stderr=log) as process:
        address = f"{'https' if certificate else 'http'}://127.0.0.1:{port}"

        def is_up() -> bool:
            assert process.poll() is None, (folder / "log").read_text()
            try:
                return httpx.get(f"{address}/api", verify=False).status_code == 200
            except httpx.HTTPError:
                return False

        until(is_up, "the server")
        yield Server(address, token, str(folder))
        process.terminate()
    log.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("jupyter")) as running:
        yield running


@pytest.fixture
def remote(server: Server) -> Iterator[RemoteSession]:
    made = RemoteSession(JupyterServer(server.url), None)  # type: ignore[arg-type]
    made.language()
    yield made
    for language in made.made.values():
        language.terminate()


@pytest.mark.full
@pytest.mark.parametrize(
    "checks",
    [("output", "exit_codes", "state", "answered_input", "figures", "interrupt_while_busy"), tuple(CHECKS)],
    ids=["core checks", "all checks"],
)
def test_a_kernel_conforms(server: Server, checks: tuple[str, ...]) -> None:
    check(server, checks)


def check(server: Server, checks: tuple[str, ...]) -> None:
    machine = JupyterServer(server.url)
    language = next(each for each in machine.languages(built_in_languages(), True) if each.name == "Python")
    # The session's folder and variables don't apply to the server.
    results = conform(language, replace(IPYKERNEL, where=None, go=None, env=None), checks)
    assert {name: how for name, how in results.items() if how not in ("passed", "not claimed")} == {}


@pytest.mark.full
@pytest.mark.needs("jupyter-enterprisegateway")
def test_a_kernel_of_an_enterprise_gateway_conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port, token = free_ports(1)[0], secrets.token_hex(8)
    argv = [
        "jupyter-enterprisegateway",
        "--ip=127.0.0.1",
        f"--port={port}",
        f"--EnterpriseGatewayApp.auth_token={token}",
    ]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(argv, cwd=tmp_path, stdout=log, stderr=log) as process:
        running = Server(f"http://127.0.0.1:{port}", token, str(tmp_path))
        until(lambda: b"is available at" in (tmp_path / "log").read_bytes(), "the gateway")
        try:
            monkeypatch.setenv("KERNEL_USERNAME", "root")
            made = RemoteSession(JupyterServer(running.url), None)  # type: ignore[arg-type]
            with pytest.raises(RemoteError, match="User 'root' is not authorized to start kernel"):
                made.run("1")
            monkeypatch.setenv("KERNEL_USERNAME", "ada")
            check(running, tuple(name for name in CHECKS if name not in ("figures", "tables")))
        finally:
            process.terminate()


@pytest.mark.full
def test_unanswered_input_is_an_empty_line_in_r(remote: RemoteSession) -> None:
    remote.language().version()  # which connects
    if "r" not in remote.machine.kernels:  # type: ignore[attr-defined]
        pytest.skip("IRkernel is not installed")
    assert "got 0" in remote.output('cat("got", nchar(readline("? ")))', "R")


@pytest.mark.full
@pytest.mark.needs("openssl")
def test_https_works_with_a_self_signed_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = tmp_path / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate)]
    subprocess.run([*command, "-keyout", str(certificate.with_suffix(".key"))], check=True, capture_output=True)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    with serving(tmp_path, certificate) as running:
        with pytest.raises(RemoteError, match="certificate verify failed"):
            list(JupyterServer(running.url).connecting())
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        remote = RemoteSession(JupyterServer(running.url), None)  # type: ignore[arg-type]
        remote.language()
        assert text(remote.run("print(6 * 7)")) == "42\n"
        for language in remote.made.values():
            language.terminate()


def test_a_kernel_returns_output_and_keeps_variables(remote: RemoteSession) -> None:
    chunks = remote.run("x = 41\nprint('hello')")
    assert text(chunks) == "hello\n"
    assert chunks[-1]["ended"] == "done"
    assert remote.output("x + 1") == "42\n"
    assert [(each.name, each.preview) for each in remote.language().variables()] == [("x", "41")]


def test_missing_undo_support_is_mentioned_once(remote: RemoteSession) -> None:
    assert "are not covered by undo" in notices(remote.run("x = 1"))
    assert "undo" not in notices(remote.run("x = 2"))


@pytest.mark.full
def test_a_lost_connection_is_restored(remote: RemoteSession) -> None:
    chunks: list[dict[str, Any]] = []
    code = "import time\nfor i in range(30):\n    print(i, flush=True)\n    time.sleep(0.05)"
    for chunk in remote.language().run(code):
        chunks.append(dict(chunk))
        if str(chunk.get("content")).startswith("5"):
            remote.language()._socket.socket.shutdown(2)
    assert text(chunks).split() == [str(i) for i in range(30)]
    assert "Lost the connection" in notices(chunks)
    assert chunks[-1]["ended"] == "done"


@pytest.mark.full
def test_a_deleted_kernel_ends_the_block_and_is_replaced(remote: RemoteSession, server: Server) -> None:
    chunks: list[dict[str, Any]] = []
    for chunk in remote.language().run("print('ready', flush=True)\nimport time\ntime.sleep(1000)"):
        chunks.append(dict(chunk))
        if chunk.get("content") == "ready\n":
            kernel = remote.language()._id
            headers = {"Authorization": f"token {server.token}"}
            threading.Thread(
                target=httpx.delete, args=(f"{server.address}/api/kernels/{kernel}",), kwargs={"headers": headers}
            ).start()
    assert chunks[-1]["ended"] == "died"
    assert remote.output("print('new')") == "new\n"


def test_terminating_deletes_the_kernel(remote: RemoteSession, server: Server) -> None:
    remote.run("x = 1")
    kernel = remote.language()._id
    assert kernel in [each["id"] for each in server.kernels()]
    remote.language().terminate()
    assert kernel not in [each["id"] for each in server.kernels()]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("jupyter+http://127.0.0.1:{port}/?token=wrong", "refuses the token"),
        ("jupyter+http://127.0.0.1:{port}/?token={token}&kernel=none", "has no kernel none. It has: python3"),
        ("jupyter+http://127.0.0.1:1/", "Can't reach 127.0.0.1:1"),
    ],
)
def test_connection_errors_say_what_is_wrong(server: Server, url: str, problem: str) -> None:
    address = url.format(port=server.address.rpartition(":")[2], token=server.token)
    with pytest.raises(RemoteError, match=problem):
        list(JupyterServer(address).connecting())


@pytest.mark.parametrize("url", ["jupyter+ftp://host", "jupyter+http://", "jupyter+http://host/?secret=1"])
def test_invalid_addresses_are_rejected_without_showing_the_token(url: str) -> None:
    with pytest.raises(SettingError, match="is not an address") as raised:
        JupyterServer(url)
    assert "secret" not in str(raised.value)


def test_an_interrupt_that_loses_the_reply_ends_the_block(remote: RemoteSession) -> None:
    chunks: list[dict[str, Any]] = []
    for chunk in remote.language().run(STRIKE):
        chunks.append(dict(chunk))
        if chunk.get("content") == "ready\n":
            threading.Thread(target=remote.language().stop).start()
    assert chunks[-1]["ended"] == "interrupted"
    assert remote.output("session.send is send") == "True\n"


def test_values_are_shared_with_a_kernel(server: Server) -> None:
    made = OpenInterpreter()
    made.computer.remotes = {"lab": server.url}
    try:
        made.computer.run("python", "import pandas\nrows = pandas.DataFrame({'n': [1, 2]})\nshare('rows')")
        made.computer.run("python@lab", "total = int(rows['n'].sum())\nshare('total', shape=list(rows.shape))")
        assert "3 [2, 1]" in str(made.computer.run("python", "print(total, shape)"))
        assert "it has a set" in str(made.computer.run("python@lab", "share(x={1})"))
        made.computer.run("python", "share(large='é' * 2_000_000, wide='é' * 1_200_000)")
        shown = str(list(made.computer.run("python@lab", "print(len(wide))", stream=True, display=False)))
        assert "large is too large to be shared" in shown and "1200000" in shown
    finally:
        made.computer.terminate()
        made.timeline.reset()


def test_a_session_can_run_on_a_jupyter_server(chatting: Chatting, server: Server) -> None:
    code = tool_call("execute", {"language": "python", "code": "open('a.txt', 'w').write('1'); print(6 * 7)"})
    interpreter, _ = chatting(code, said("Done."))
    interpreter.computer.remote = server.url
    chunks = list(interpreter.chat("go", display=False, stream=True))
    (question,) = [chunk for chunk in chunks if chunk["type"] == "confirmation"]
    assert question["effects"][0] == f"Runs on {interpreter.computer.machine.name}"
    assert question["undo"]["kind"] == "not"
    assert any(chunk.get("content") == "42\n" for chunk in chunks)
    assert any("not covered by undo" in str(chunk.get("content")) for chunk in chunks)
    assert server.token not in str(chunks)


@pytest.mark.full
def test_a_local_session_can_use_a_named_kernel(server: Server) -> None:
    made = OpenInterpreter()
    made.computer.remotes = {"lab": server.url}
    try:
        shown = made.computer.run("python@lab", "print(6 * 7)")
        assert "42\n" in "".join(str(each["content"]) for each in shown)
    finally:
        made.computer.terminate()
        made.timeline.reset()
