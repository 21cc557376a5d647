"""For every test: its own home folder, no keys, no network, no process left behind."""

from __future__ import annotations

import gc
import ipaddress
import os
import re
import shutil
import signal
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

from interpreter.leaves import ROWS, Leaf

SOURCE = Path(__file__).parent.parent / "src"
SYSTEM_PACKAGES = {"node": "nodejs", "xrandr": "x11-xserver-utils", "rg": "ripgrep"}
_MARK = "TEST_RUN_MARK"
_PRIVATE_PREFIXES = ("INTERPRETER_", "OPENAI_", "ANTHROPIC_", "OLLAMA_", "GROQ_", "XDG_")
# A run starts hundreds of programs: each would compile all of our code again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
_PRIVATE_NAMES = ("DISABLE_TELEMETRY", "EDITOR", "VISUAL", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")
_PRIVATE_NAMES += ("VIRTUAL_ENV", "CONDA_PREFIX")


def pytest_configure(config: pytest.Config) -> None:
    sys.addaudithook(_refuse_foreign_address)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background by a script
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(50_000)  # thousands of test modules stay in memory
    # The same examples in every run, so that only a change can make a test fail; `make test-full` tries others.
    # No deadlines: how long an example takes depends on the load of the machine.
    wants_others = "not full" not in config.option.markexpr
    unhurried = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("suite", derandomize=not wants_others, **unhurried)
    settings.load_profile("suite")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out test files that import a leaf which `WITHOUT_LEAF` says is deleted."""
    if (leaf := _deleted_leaf()) is None or collection_path.suffix != ".py":
        return None
    needed = re.compile(rf"interpreter\.{re.escape(leaf.package)}\b")
    return bool(needed.search(collection_path.read_text(encoding="utf-8"))) or None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Skip a test that failed because a leaf is deleted, if what it used said so."""
    outcome = yield
    report, leaf = outcome.get_result(), _deleted_leaf()  # type: ignore[attr-defined]
    if leaf is not None and report.failed and f"{leaf.about} is not part of this installation" in report.longreprtext:
        report.outcome, report.longrepr = "skipped", (str(__file__), 1, f"{leaf.name} is deleted")


def _deleted_leaf() -> Leaf | None:
    name = os.environ.get("WITHOUT_LEAF")
    return next((leaf for leaf in ROWS if leaf.name == name), None) if name else None


def pytest_collection_finish() -> None:
    gc.freeze()  # the tests themselves are not garbage


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            if shutil.which(program) is None:
                package = SYSTEM_PACKAGES.get(program, program)
                pytest.skip(f"{program} is not installed: apt-get install {package}")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test a fresh home folder, an empty workspace, and an environment without keys or settings."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.chdir(tmp_path_factory.mktemp("workspace"))
    for name in list(os.environ):
        if name.startswith(_PRIVATE_PREFIXES) or name.endswith("_API_KEY") or name in _PRIVATE_NAMES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    return folder


@pytest.fixture(scope="session", autouse=True)
def _no_strays_at_the_end() -> Iterator[None]:
    mark = uuid.uuid4().hex
    os.environ[_MARK + "_ALL"] = mark
    yield
    _assert_none_left(_MARK + "_ALL", mark)


@pytest.fixture
def no_strays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process that the test started, even indirectly, outlives it."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(_MARK, mark)
    yield
    _assert_none_left(_MARK, mark)


def _assert_none_left(name: str, mark: str) -> None:
    _, alive = psutil.wait_procs(_marked(name, mark), timeout=60)
    left = [f"{process.pid} {' '.join(_command(process))[:120]}" for process in alive]
    for process in alive:
        process.kill()
    assert not left, "processes left behind:\n" + "\n".join(left)


def _marked(name: str, mark: str) -> list[psutil.Process]:
    """Processes that inherited the mark, which survives a double fork, unlike the parent's list of children."""
    processes = []
    for process in psutil.process_iter():
        try:
            # The environment is the one at process start, so this test process itself doesn't count.
            if process.pid != os.getpid() and process.environ().get(name) == mark:
                processes.append(process)
        except psutil.Error:
            continue
    return processes


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() or [process.name()]
    except psutil.Error:
        return ["(gone)"]


def _refuse_foreign_address(event: str, args: tuple[Any, ...]) -> None:
    if event != "socket.connect" or not isinstance(args[1], tuple) or not isinstance(args[1][0], str):
        return
    host = args[1][0].partition("%")[0]
    try:
        near = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        near = False
    if not near:
        raise PermissionError(f"a test tried to reach {host}: tests stay on this machine")
