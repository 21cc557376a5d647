"""Starting a model server that is installed and does not run: Ollama, or a llamafile."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from interpreter.errors import LocalServerError
from interpreter.llm.local.child import Child
from interpreter.llm.local.servers import KINDS, Kind
from interpreter.llm.local.weights import models_folder

_LONGEST_START = 120.0
_CONTEXT = 8192


class StartedServer:
    """A server of ours; it ends with us."""

    def __init__(self, kind: Kind, child: Child, log: int) -> None:
        self.kind = kind
        self._child = child
        self._log = log
        self._settled = threading.Event()
        self._listens = False
        self._tail = b""
        threading.Thread(target=self._follow, name=f"{kind.name} log", daemon=True).start()

    def wait(self, seconds: float = _LONGEST_START) -> None:
        """Wait until it takes connections, or say why it does not."""
        self._settled.wait(seconds)
        if not self._listens:
            self.close()
            raise LocalServerError(
                f"{self.kind.title} was started and does not answer at {self.kind.address}.",
                detail=self._tail.decode("utf-8", "replace").strip(),
            )

    def close(self) -> None:
        self._child.close()

    def _follow(self) -> None:
        """Read its log to the end: each piece is a reason to look whether it listens by now."""
        with open(self._log, "rb", buffering=0) as log:
            while piece := log.read(65536):
                self._tail = (self._tail + piece)[-1000:]
                if not self._settled.is_set() and listens(self.kind.address):
                    self._listens = True
                    self._settled.set()
        self._settled.set()


def ollama_program() -> str | None:
    """Ollama's program, if it is installed."""
    return shutil.which("ollama")


def llamafiles() -> list[Path]:
    """The llamafiles in the models folder."""
    folder = models_folder()
    return sorted(folder.glob("*.llamafile")) if folder.is_dir() else []


def start_ollama(kind: Kind, program: str) -> StartedServer:
    """Start Ollama where it is expected, and wait for it."""
    env = {**os.environ, "OLLAMA_HOST": urlsplit(kind.address).netloc}
    return _start(kind, [program, "serve"], env)


def start_llamafile(file: Path, port: int | None = None) -> StartedServer:
    """Start a llamafile and wait for it; at a free port, since its own may be taken."""
    port = port or _free_port()
    usual = next(kind for kind in KINDS if kind.name == "llama.cpp")
    kind = replace(usual, title=file.name, address=f"http://127.0.0.1:{port}")
    options = ["--server", "--nobrowser", "--host", "127.0.0.1", "--port", str(port)]
    # Through a shell: to the system it is a program of no kind that it knows.
    argv = ["/bin/sh", str(file), *options, "-c", str(_CONTEXT), "-ngl", "9999"]
    return _start(kind, argv, dict(os.environ))


def _start(kind: Kind, argv: list[str], env: dict[str, str]) -> StartedServer:
    reader, writer = os.pipe()
    try:
        child = Child(argv, env, log=writer)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    server = StartedServer(kind, child, reader)
    server.wait()
    return server


def listens(address: str) -> bool:
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=1):
            return True
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
