"""The subjects that do the tasks: ours in this process, or the original in its own virtual environment."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil
from bench.__main__ import original as installed_original
from bench.subject import ROOT, ProbeFailure, environment

from eval.gauge import Gauge
from eval.outcome import Message
from interpreter import OpenInterpreter
from interpreter.errors import InterpreterError, SandboxUnavailableError, WeightsMissingError
from interpreter.local_models import engine, weights
from interpreter.sandbox import bubblewrap

sys.path.insert(0, str(ROOT / "scripts"))

from fetch_test_models import MODELS, models_folder
from fetch_test_models import main as fetch_test_models

CHAT = Path(__file__).with_name("original_chat.py")
# What `--packages data` installs for the tasks.
DATA_STACK = (
    "pandas", "pyarrow", "openpyxl", "matplotlib", "seaborn", "scipy", "scikit-learn", "statsmodels", "Pillow",
    "duckdb", "requests", "beautifulsoup4", "lxml", "pypdf", "python-docx",
)  # fmt: skip
# Packages for the tasks that our environment has and 0.4.3 doesn't install.
ANALYSIS = ("pandas", "python-dateutil", "six")
_START = 120  # seconds for the original's import and exit


@dataclass(frozen=True)
class Limits:
    """How long one task may take, in seconds and in blocks."""

    seconds: float
    blocks: int


@dataclass(frozen=True)
class Chat:
    """A finished conversation; `broke` says what ended it, if it didn't end normally."""

    messages: list[Message]
    seconds: float
    broke: str = ""

    @property
    def blocks(self) -> int:
        return sum(message.get("type") == "code" and message.get("role") == "assistant" for message in self.messages)


class Subject(Protocol):
    """Something that can chat in a folder."""

    name: str

    def chat(self, texts: Sequence[str], folder: Path, limits: Limits) -> Chat: ...


@contextmanager
def served(model: str, fresh: bool) -> Iterator[tuple[Path, Gauge]]:
    """Load a built-in model once for all subjects, behind a gauge."""
    file = _weights(model)
    running = engine.running(file)
    try:
        with Gauge(running.base_url, running.key, fresh) as gauge:
            running.base_url = gauge.base_url
            yield file, gauge
    finally:
        engine.stop_all()


def _weights(model: str) -> Path:
    """Return the file of `builtin/NAME`: from the product's folder, or else from the tests', downloaded if needed."""
    name = model.removeprefix(weights.PREFIX)
    try:
        return weights.file_of(name)
    except WeightsMissingError:
        if name not in MODELS or fetch_test_models([name]):
            raise
        return models_folder() / MODELS[name].file


def python_with(packages: str) -> str | None:
    """Return a Python that has only these packages: `none` or `data`, made once; None for ours with what it has."""
    if packages == "ours":
        return None
    folder = ROOT / ".bench" / f"eval-{packages}"
    if not (folder / "done").exists():
        installing = [[str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *DATA_STACK]]
        for command in [[sys.executable, "-m", "venv", str(folder)], *(installing if packages == "data" else [])]:
            if subprocess.run(command).returncode:
                raise ProbeFailure(f"{' '.join(command[1:4])} failed")
        (folder / "done").touch()
    return str(folder)


def can_contain() -> bool:
    """Check whether our tasks can run in a sandbox, where installs and deletions stay in the task's folder."""
    try:
        return bool(bubblewrap.available())
    except SandboxUnavailableError:
        return False


class Ours:
    """The whole product as a library: its own prompts, loop, sessions and engine."""

    name = "ours"

    def __init__(self, file: Path, python: str | None = None) -> None:
        self._model, self._python = weights.model_string(file), python
        self._sandbox = "workspace" if can_contain() else "off"

    def chat(self, texts: Sequence[str], folder: Path, limits: Limits) -> Chat:
        interpreter = OpenInterpreter(
            auto_run=True, offline=True, workspace=str(folder), max_blocks=limits.blocks, disable_telemetry=True,
            sandbox=self._sandbox,
        )  # fmt: skip
        interpreter.llm.model = self._model
        interpreter.llm.temperature = 0
        interpreter.computer.python = self._python
        late = threading.Event()

        def stop() -> None:
            late.set()
            interpreter.cancel()

        timer = threading.Timer(limits.seconds, stop)
        began = time.monotonic()
        timer.start()
        broke, marks = "", list[Message]()
        try:
            for message in texts:
                if not late.is_set():
                    for event in interpreter.respond(message):
                        if event.kind == "status" and "check" in (event.data.get("content") or {}):
                            marks.append(event.data)
        except InterpreterError as error:
            broke = f"{type(error).__name__}: {error}"
        finally:
            timer.cancel()
            seconds = time.monotonic() - began
            messages: list[Message] = [*map(dict, interpreter.messages), *marks]
            interpreter.reset()
        return Chat(messages, seconds, "time" if late.is_set() else broke)


class Original:
    """0.4.3 as a library in its own environment, optionally with one of its profiles."""

    name = "0.4.3"

    def __init__(self, gauge: Gauge, profile: str | None = None) -> None:
        self._python = installed_original().python
        self._packages = _analysis_packages(self._python)
        self._gauge, self._profile = gauge, profile

    def chat(self, texts: Sequence[str], folder: Path, limits: Limits) -> Chat:
        result_file = folder.with_name(f"{folder.name}.json")
        orders = {
            "words": texts, "told": str(result_file), "seconds": limits.seconds, "blocks": limits.blocks,
            "api_base": self._gauge.base_url, "profile": self._profile,
        }  # fmt: skip
        began = time.monotonic()
        process = subprocess.Popen(
            [str(self._python), str(CHAT), json.dumps(orders)],
            cwd=folder,
            env=environment() | {"PYTHONPATH": str(self._packages), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(limits.seconds + _START)
        except subprocess.TimeoutExpired:
            _kill(process.pid)
            process.wait()
        if not result_file.exists():
            return Chat([], time.monotonic() - began, "ended without a result")
        result = json.loads(result_file.read_text(encoding="utf-8"))
        return Chat(result["messages"], result["seconds"], result["broke"])


def _kill(pid: int) -> None:
    """Kill a process and its descendants."""
    process = psutil.Process(pid)
    for each in [*process.children(recursive=True), process]:
        each.kill()


def _analysis_packages(python: Path) -> Path:
    """Return a folder with packages for the tasks, outside the original's environment, which `make bench` measures."""
    folder = ROOT / ".bench" / "analysis"
    if not (folder / ANALYSIS[0]).exists():
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
        if subprocess.run([*pip, "--target", str(folder), *ANALYSIS]).returncode:
            raise ProbeFailure(f"pip could not install {', '.join(ANALYSIS)}")
    return folder
