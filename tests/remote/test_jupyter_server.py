"""Kernels of a real Jupyter server with a token."""

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
from interpreter.remote.jupyter import JupyterServer
from interpreter.runtimes import built_in_languages
from interpreter.runtimes.conformance import CHECKS, conform
from model_server import text as said
from model_server import tool_call
from ports import free_ports
from remote.conftest import Elsewhere, text, told
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
    """A server, with https if there is a certificate; the key is beside it."""
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
def there(server: Server) -> Iterator[Elsewhere]:
    made = Elsewhere(JupyterServer(server.url), None)  # type: ignore[arg-type]
    made.language()
    yield made
    for language in made.made.values():
        language.terminate()


@pytest.mark.full
@pytest.mark.parametrize(
    "checks", [("output", "exit_codes", "state", "answered_input", "figures", "interrupt_while_busy")]
)
def test_a_kernel_conforms(server: Server, checks: tuple[str, ...]) -> None:
    check(server, checks)


@pytest.mark.full
def test_a_kernel_conforms_in_everything_that_it_can_do(server: Server) -> None:
    check(server, tuple(CHECKS))


def check(server: Server, checks: tuple[str, ...]) -> None:
    machine = JupyterServer(server.url)
    language = next(each for each in machine.languages(built_in_languages(), True) if each.name == "Python")
    # The folder and the variables of the session are not those of the server.
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
            made = Elsewhere(JupyterServer(running.url), None)  # type: ignore[arg-type]
            with pytest.raises(RemoteError, match="User 'root' is not authorized to start kernel"):
                made.run("1")
            monkeypatch.setenv("KERNEL_USERNAME", "ada")
            check(running, tuple(name for name in CHECKS if name not in ("figures", "tables")))
        finally:
            process.terminate()


@pytest.mark.full
def test_no_answer_is_an_empty_line_for_a_kernel_without_an_end_of_input(there: Elsewhere) -> None:
    there.machine.connect()
    if "r" not in there.machine.kernels:  # type: ignore[attr-defined]
        pytest.skip("IRkernel is not installed")
    assert "got 0" in there.output('cat("got", nchar(readline("? ")))', "R")


@pytest.mark.full
@pytest.mark.needs("openssl")
def test_https_with_a_certificate_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        there = Elsewhere(JupyterServer(running.url), None)  # type: ignore[arg-type]
        there.language()
        assert text(there.run("print(6 * 7)")) == "42\n"
        for language in there.made.values():
            language.terminate()


def test_output_state_and_variables(there: Elsewhere) -> None:
    chunks = there.run("x = 41\nprint('hello')")
    assert text(chunks) == "hello\n"
    assert chunks[-1]["ended"] == "done"
    assert there.output("x + 1") == "42\n"
    assert [(each.name, each.preview) for each in there.language().variables()] == [("x", "41")]


def test_it_says_once_that_undo_does_not_cover_it(there: Elsewhere) -> None:
    assert "are not covered by undo" in told(there.run("x = 1"))
    assert "undo" not in told(there.run("x = 2"))


@pytest.mark.full
def test_a_connection_that_is_lost_comes_back(there: Elsewhere) -> None:
    chunks: list[dict[str, Any]] = []
    code = "import time\nfor i in range(30):\n    print(i, flush=True)\n    time.sleep(0.05)"
    for chunk in there.language().run(code):
        chunks.append(dict(chunk))
        if str(chunk.get("content")).startswith("5"):
            there.language()._socket.socket.shutdown(2)
    assert text(chunks).split() == [str(i) for i in range(30)]
    assert "Lost the connection" in told(chunks)
    assert chunks[-1]["ended"] == "done"


@pytest.mark.full
def test_a_kernel_that_is_gone_is_told(there: Elsewhere, server: Server) -> None:
    chunks: list[dict[str, Any]] = []
    for chunk in there.language().run("print('ready', flush=True)\nimport time\ntime.sleep(1000)"):
        chunks.append(dict(chunk))
        if chunk.get("content") == "ready\n":
            kernel = there.language()._id
            headers = {"Authorization": f"token {server.token}"}
            threading.Thread(
                target=httpx.delete, args=(f"{server.address}/api/kernels/{kernel}",), kwargs={"headers": headers}
            ).start()
    assert chunks[-1]["ended"] == "died"
    assert there.output("print('new')") == "new\n"


def test_terminating_deletes_the_kernel(there: Elsewhere, server: Server) -> None:
    there.run("x = 1")
    kernel = there.language()._id
    assert kernel in [each["id"] for each in server.kernels()]
    there.language().terminate()
    assert kernel not in [each["id"] for each in server.kernels()]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("jupyter+http://127.0.0.1:{port}/?token=wrong", "refuses the token"),
        ("jupyter+http://127.0.0.1:{port}/?token={token}&kernel=none", "has no kernel none. It has: python3"),
        ("jupyter+http://127.0.0.1:1/", "Can't reach 127.0.0.1:1"),
    ],
)
def test_what_is_wrong_is_told(server: Server, url: str, problem: str) -> None:
    address = url.format(port=server.address.rpartition(":")[2], token=server.token)
    with pytest.raises(RemoteError, match=problem):
        list(JupyterServer(address).connecting())


@pytest.mark.parametrize("url", ["jupyter+ftp://host", "jupyter+http://", "jupyter+http://host/?secret=1"])
def test_a_wrong_address_is_told_without_its_token(url: str) -> None:
    with pytest.raises(SettingError, match="is not an address") as raised:
        JupyterServer(url)
    assert "secret" not in str(raised.value)


def test_an_interrupt_that_costs_the_reply_ends_the_block(there: Elsewhere) -> None:
    chunks: list[dict[str, Any]] = []
    for chunk in there.language().run(STRIKE):
        chunks.append(dict(chunk))
        if chunk.get("content") == "ready\n":
            threading.Thread(target=there.language().stop).start()
    assert chunks[-1]["ended"] == "interrupted"
    assert there.output("session.send is send") == "True\n"


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


def test_a_session_on_a_server(chatting: Chatting, server: Server) -> None:
    code = tool_call("execute", {"language": "python", "code": "open('a.txt', 'w').write('1'); print(6 * 7)"})
    interpreter, _ = chatting(code, said("Done."))
    interpreter.computer.remote = server.url
    chunks = list(interpreter.chat("go", display=False, stream=True))
    (card,) = [chunk for chunk in chunks if chunk["type"] == "confirmation"]
    assert card["effects"][0] == f"Runs on {interpreter.computer.machine.name}"
    assert card["undo"]["kind"] == "not"
    assert any(chunk.get("content") == "42\n" for chunk in chunks)
    assert any("not covered by undo" in str(chunk.get("content")) for chunk in chunks)
    assert server.token not in str(chunks)


@pytest.mark.full
def test_a_kernel_has_its_name_in_a_session_that_works_here(server: Server) -> None:
    made = OpenInterpreter()
    made.computer.remotes = {"lab": server.url}
    try:
        shown = made.computer.run("python@lab", "print(6 * 7)")
        assert "42\n" in "".join(str(each["content"]) for each in shown)
    finally:
        made.computer.terminate()
        made.timeline.reset()
