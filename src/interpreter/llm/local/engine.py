"""The built-in engine: llama.cpp in a child process, which serves one model to us alone."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from interpreter.errors import EngineError
from interpreter.llm.local.child import Child

PACKAGE = "xllamacpp"
PROGRAM = Path(__file__).with_name("engine_program.py")
CONTEXT = 8192
_CACHE_MEGABYTES = 256  # of earlier prompts; the library's own limit is 8 GB
_MAGIC = b"GGUF"

Watch = Callable[[socket.socket], None]


@dataclass
class Engine:
    """A model that is loaded and served at `base_url` to whoever knows `key`."""

    name: str
    weights: Path
    context: int
    base_url: str
    key: str
    child: Child

    @property
    def alive(self) -> bool:
        """Whether its process is still there."""
        try:
            return self.child.data.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def close(self) -> None:
        self.child.close()


_engines: dict[tuple[Path, int], Engine] = {}
_starting = threading.Lock()


def running(weights: Path, context: int | None = None, watch: Watch | None = None) -> Engine:
    """The engine for these weights, started if it is not there; the same one for all who ask in this process.

    `watch` is told the socket that the start waits on: shutting it down from another thread ends the start.
    """
    wanted = (weights, context or CONTEXT)
    with _starting:
        engine = _engines.get(wanted)
        if engine is not None and engine.alive:
            return engine
        for other in list(_engines):
            _engines.pop(other).close()  # two models at once may not fit into memory
        _engines[wanted] = start(weights, wanted[1], watch)
        return _engines[wanted]


def is_running(weights: Path, context: int | None = None) -> bool:
    """Whether `running` would return at once."""
    engine = _engines.get((weights, context or CONTEXT))
    return engine is not None and engine.alive


def loaded() -> Engine | None:
    """The engine that runs now, if one does."""
    return next((engine for engine in _engines.values() if engine.alive), None)


def stop_all() -> None:
    """End every engine; at the end of this process they end by themselves."""
    with _starting:
        for key in list(_engines):
            _engines.pop(key).close()


def start(weights: Path, context: int = CONTEXT, watch: Watch | None = None) -> Engine:
    """Start an engine and wait until its model is loaded."""
    _check(weights)
    key = secrets.token_urlsafe(24)
    orders = {
        "weights": str(weights),
        "name": weights.stem,
        "context": context,
        "key": key,
        "threads": _processors(),
        "cache_megabytes": _CACHE_MEGABYTES,
    }
    # Passive: waiting threads sleep, so that the code it works beside gets the processors.
    env = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    child = Child([sys.executable, "-P", str(PROGRAM), "{data}"], env)
    try:
        with child.data.dup() as waiting:  # so that shutting it means nothing once the model is there
            if watch is not None:
                watch(waiting)
            told = _answer(child, orders)
        if told.get("event") != "ready":
            raise _failed(weights, child, told.get("detail", ""))
    except BaseException:
        child.close()
        raise
    return Engine(weights.stem, weights, context, f"{told['address']}/v1", key, child)


def is_installed() -> bool:
    """Whether the engine's package is there; it may have come a moment ago."""
    invalidate_caches()
    return find_spec(PACKAGE) is not None


def install_command() -> list[str]:
    """What installs the engine into the Python that runs us."""
    if find_spec("pip") is None and (uv := shutil.which("uv")):
        return [uv, "pip", "install", "--python", sys.executable, PACKAGE]
    return [sys.executable, "-m", "pip", "install", PACKAGE]


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check(weights: Path) -> None:
    if not is_installed():
        raise EngineError(
            f"The built-in model needs llama.cpp, which is not installed. Run: {' '.join(install_command())}"
        )
    try:
        with open(weights, "rb") as file:
            is_gguf = file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise EngineError(f"The model file {weights} cannot be read: {error.strerror}.") from error
    if not is_gguf:
        raise EngineError(f"{weights} is not a GGUF file, which is what llama.cpp reads.")


def _answer(child: Child, orders: dict[str, Any]) -> dict[str, Any]:
    """What the engine says once it has loaded; nothing if it ended before that."""
    try:
        child.data.sendall(json.dumps(orders).encode() + b"\n")
        with child.data.makefile("rb") as lines:
            line = lines.readline()
    except OSError:
        return {}
    told: dict[str, Any] = json.loads(line) if line.endswith(b"\n") else {}
    return told


def _failed(weights: Path, child: Child, detail: str) -> EngineError:
    words = child.last_words().splitlines()
    reason = next((line.partition(" E ")[2] for line in words if " E " in line), "") or "\n".join(words[-3:])
    return EngineError(
        f"The built-in engine could not load {weights.name}. Is the file whole, is there enough memory, "
        f"and is {PACKAGE} new enough for this model?",
        detail=reason or detail,
    )
