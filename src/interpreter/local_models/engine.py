"""Model servers that we start: the built-in engine (llama.cpp in a child process), Ollama and llamafiles.

Each runs under a supervisor, and ends when this process does.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from interpreter.errors import EngineError, LocalServerError
from interpreter.host import processes
from interpreter.host.installation import pip_command
from interpreter.llm.model_servers import Watch
from interpreter.local_models.servers import KINDS, ServerKind
from interpreter.local_models.weights import models_folder

# Run by its path and not imported: the supervisor program that live runtimes use, too.
SUPERVISOR = Path(__file__).parents[1] / "runtimes" / "supervisor.py"
_LOG_KEPT = 4000
_END_TIMEOUT = 5.0


def check_system() -> None:
    """Raise EngineError where programs cannot be supervised."""
    if sys.platform == "win32":
        raise EngineError("Open Interpreter can't start a model on Windows. Start Ollama or LM Studio yourself.")


class Child:
    """Runs `argv` under a supervisor that kills it, and all it started, when our end of a socket closes.

    `{data}` in `argv` becomes the number of a socket whose other end is `data`; what the program writes to
    standard output and error goes to a file without a name.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        check_system()
        self.data, data = socket.socketpair()
        self._control, control = socket.socketpair()
        self._log: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the child
        with data, control:
            command = processes.python(str(SUPERVISOR), str(control.fileno()), "exec", *argv)
            self._process = processes.start(command, env=env, pass_fds=[control.fileno()])
            null = os.open(os.devnull, os.O_RDWR)
            log = self._log.fileno()
            try:
                socket.send_fds(self._control, [b"spawn\n"], [data.fileno(), null, log, log])
            finally:
                os.close(null)

    @property
    def pid(self) -> int:
        """Return the pid of the supervisor, which outlives the program."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        try:
            return self.data.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def last_words(self) -> str:
        """Return the end of what the program wrote."""
        if self._log.closed:
            return ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _LOG_KEPT))
        return self._log.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End the program and everything it started."""
        for ours in (self.data, self._control):
            with contextlib.suppress(OSError):
                ours.shutdown(socket.SHUT_RDWR)
            ours.close()
        with contextlib.suppress(TimeoutError):
            processes.collect(self._process, _END_TIMEOUT)
        self._log.close()


PACKAGE = "xllamacpp"
PROGRAM = Path(__file__).with_name("engine_program.py")
CONTEXT = 8192
_CACHE_MEGABYTES = 256  # of earlier prompts; the library's own limit is 8 GB
_MAGIC = b"GGUF"


@dataclass
class Engine:
    """A model that is loaded and served at `base_url` to clients with `key`."""

    name: str
    context: int
    base_url: str
    key: str
    child: Child


_engines: dict[tuple[Path, int], Engine] = {}
_starting = threading.RLock()


def running(weights: Path, context: int | None = None, watch: Watch | None = None) -> Engine:
    """Return the engine for these weights, started if necessary; there is one for the whole process.

    `watch` gets the socket that the start waits on: shutting it down from another thread ends the start.
    """
    wanted = (weights, context or CONTEXT)
    with _starting:
        if not is_running(*wanted):
            stop_all()  # two models at once may not fit into memory
            _engines[wanted] = start(*wanted, watch)
        return _engines[wanted]


def is_running(weights: Path, context: int | None = None) -> bool:
    """Return whether `running` would return at once."""
    engine = _engines.get((weights, context or CONTEXT))
    return engine is not None and engine.child.alive


def loaded() -> Engine | None:
    """Return the engine that is running, if any."""
    return next((engine for engine in _engines.values() if engine.child.alive), None)


def stop_all() -> None:
    """End every engine. They also end with this process."""
    with _starting:
        for key in list(_engines):
            _engines.pop(key).child.close()


def start(weights: Path, context: int = CONTEXT, watch: Watch | None = None) -> Engine:
    """Start an engine and wait until its model is loaded."""
    _check(weights)
    key = secrets.token_urlsafe(24)
    orders = {
        "weights": str(weights),
        "name": weights.stem,
        "context": context,
        "key": key,
        "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "cache_megabytes": _CACHE_MEGABYTES,
    }
    # Passive: waiting threads sleep, so that the code it works beside gets the processors.
    child = Child(processes.python(str(PROGRAM), "{data}", packages=True), {"OMP_WAIT_POLICY": "passive"})
    try:
        with child.data.dup() as waiting:  # shutting it has no effect once the model is loaded
            if watch is not None:
                watch(waiting)
            answer: dict[str, Any] = {}  # stays empty if the engine ends before it has loaded the model
            with contextlib.suppress(OSError), child.data.makefile("rwb") as lines:
                lines.write(json.dumps(orders).encode() + b"\n")
                lines.flush()
                line = lines.readline()
                answer = json.loads(line) if line.endswith(b"\n") else {}
        if answer.get("event") != "ready":
            log = child.last_words().splitlines()
            reason = next((line.partition(" E ")[2] for line in log if " E " in line), "") or "\n".join(log[-3:])
            raise EngineError(
                f"The built-in engine could not load {weights.name}. Check that the file is complete, that there is "
                f"enough memory, and that {PACKAGE} is recent enough for this model.",
                detail=reason or answer.get("detail", ""),
            )
    except BaseException:
        child.close()
        raise
    return Engine(weights.stem, context, f"{answer['address']}/v1", key, child)


def is_installed() -> bool:
    """Return whether the engine's package is installed, perhaps only just now."""
    invalidate_caches()
    return find_spec(PACKAGE) is not None


def _check(weights: Path) -> None:
    if not is_installed():
        raise EngineError(
            f"The built-in model needs llama.cpp, which is not installed. Run: {' '.join(pip_command(PACKAGE))}"
        )
    try:
        with open(weights, "rb") as file:
            is_gguf = file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise EngineError(f"Can't read the model file {weights}: {error.strerror}.") from error
    if not is_gguf:
        raise EngineError(f"{weights} is not a GGUF file, the format that llama.cpp needs.")


_START_TIMEOUT = 120.0
_POLL_INTERVAL = 0.1


@dataclass
class StartedServer:
    kind: ServerKind
    child: Child


def ollama_program() -> str | None:
    return processes.which("ollama")


def llamafiles() -> list[Path]:
    return sorted(models_folder().glob("*.llamafile"))


def start_ollama(kind: ServerKind, program: str) -> StartedServer:
    """Start Ollama at its usual address, and wait for it."""
    return _start(kind, [program, "serve"], {"OLLAMA_HOST": urlsplit(kind.address).netloc})


def start_llamafile(file: Path, port: int | None = None) -> StartedServer:
    """Start a llamafile and wait for it; at a free port, since its default may be taken."""
    if port is None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    usual = next(kind for kind in KINDS if kind.name == "llama.cpp")
    kind = replace(usual, title=file.name, address=f"http://127.0.0.1:{port}")
    options = ["--server", "--nobrowser", "--host", "127.0.0.1", "--port", str(port)]
    # Through a shell: the system doesn't recognize the format of the program.
    return _start(kind, ["/bin/sh", str(file), *options, "-c", str(CONTEXT), "-ngl", "9999"])


def _start(kind: ServerKind, argv: list[str], env: Mapping[str, str] | None = None) -> StartedServer:
    """Start a server and wait until it takes connections, or say why it does not."""
    child = Child(argv, env)
    deadline = time.monotonic() + _START_TIMEOUT
    while not listens(kind.address):
        if not child.alive or time.monotonic() > deadline:
            output_end = child.last_words()[-1000:]
            child.close()
            raise LocalServerError(
                f"{kind.title} was started but does not answer at {kind.address}.", detail=output_end
            )
        time.sleep(_POLL_INTERVAL)
    return StartedServer(kind, child)


def listens(address: str) -> bool:
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=1):
            return True
    except OSError:
        return False
