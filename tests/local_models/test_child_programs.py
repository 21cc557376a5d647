"""Child programs end with us, and installed servers are started and awaited."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from interpreter.errors import LocalServerError
from interpreter.local_models.engine import (
    Child,
    llamafiles,
    ollama_program,
    start_llamafile,
    start_ollama,
)
from interpreter.local_models.servers import KINDS, ServerKind, look
from interpreter.local_models.weights import models_folder
from ports import free_ports
from waiting import until_ended

pytestmark = pytest.mark.usefixtures("no_strays")

# Starts listening after a while, like a server that first checks its graphics cards.
SERVER = """\
import http.server, json, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args): pass
    def do_GET(self):
        models = {"models": [{"name": "tiny:latest"}], "data": [{"id": "tiny"}]}
        body = json.dumps(models if self.path in ("/api/tags", "/v1/models") else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
print("looking at the graphics cards", file=sys.stderr, flush=True)
server = http.server.HTTPServer(("127.0.0.1", PORT), Handler)
print("listening", file=sys.stderr, flush=True)
server.serve_forever()
"""


def ollama_at(port: int) -> ServerKind:
    return replace(KINDS[0], address=f"http://127.0.0.1:{port}")


def make_program(path: Path, port: str) -> str:
    """A shell script, which is what a llamafile is to the system, that becomes the server above."""
    path.parent.mkdir(parents=True, exist_ok=True)
    code = path.with_suffix(".py")
    code.write_text(SERVER.replace("PORT", port))
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {code} "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_the_data_socket_works_in_both_directions() -> None:
    child = Child([sys.executable, "-c", "import socket; s = socket.socket(fileno={data}); s.sendall(s.recv(9))"])
    child.data.sendall(b"hello")
    assert child.data.makefile("rb").read() == b"hello"
    child.close()


def test_last_words_are_the_errors_of_a_failed_program() -> None:
    child = Child(["/bin/sh", "-c", "echo out of memory >&2; exit 3"])
    assert child.data.recv(1) == b"", "it is gone"
    assert child.last_words() == "out of memory"
    child.close()
    assert child.last_words() == ""


def test_a_missing_program_reports_an_error() -> None:
    child = Child(["/no/such/program"])
    assert child.data.recv(1) == b""
    assert "No such file" in child.last_words()
    child.close()


def test_closing_ends_the_program_and_its_children() -> None:
    child = Child(["/bin/sh", "-c", "sleep 1000 & sleep 1000 & echo >&{data}; wait"])
    child.data.recv(1)
    processes = psutil.Process(child.pid).children(recursive=True)
    assert len(processes) == 3
    child.close()
    until_ended(processes)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_the_program_ends_when_we_are_killed(signal_number: int) -> None:
    code = (
        "import threading; from interpreter.local_models.engine import Child;"
        "child = Child(['/bin/sh', '-c', 'sleep 1000 & sleep 1000']);"
        "print(child.pid, flush=True); threading.Event().wait()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        supervisor = psutil.Process(int(host.stdout.readline()))
        os.kill(host.pid, signal_number)
    until_ended([supervisor])  # no_strays checks that its children ended too


def test_ollama_is_started_and_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_ports(1)[0]
    make_program(tmp_path / "bin" / "ollama", "int(os.environ['OLLAMA_HOST'].rpartition(':')[2])")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    program = ollama_program()
    assert program == str(tmp_path / "bin" / "ollama")
    kind = ollama_at(port)
    assert look(kind, {}) is None
    started = start_ollama(kind, program)
    server = look(kind, {})
    assert server is not None
    assert [model.name for model in server.models] == ["tiny"]
    started.child.close()
    assert look(kind, {}) is None


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    program = tmp_path / "ollama"
    program.write_text("#!/bin/sh\necho address already in use >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(LocalServerError, match="address already in use"):
        start_ollama(ollama_at(free_ports(1)[0]), str(program))


def test_a_llamafile_in_the_models_folder_is_started() -> None:
    assert llamafiles() == []
    port = free_ports(1)[0]
    make_program(models_folder() / "tiny.llamafile", str(port))
    (file,) = llamafiles()
    started = start_llamafile(file, port)
    server = look(started.kind, {})
    assert server is not None
    assert server.model_string(server.models[0]) == "openai/tiny"
    started.child.close()
