"""The cost of installing, importing and starting."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pyte

from bench.subject import OURS, ROOT, ProbeFailure, Subject, cpu, environment, new_folder, once, probe
from bench.table import Measurement

IMPORT = "from interpreter import interpreter"


def run_cpu(python: Path, code: str) -> float:
    return cpu([str(python), "-c", code], 5 if python == OURS.python else 2)


def memory(python: Path, code: str) -> float:
    return float(probe(python, "memory", code=code)["megabytes"])


def version_cpu(subject: Subject) -> float:
    return cpu([str(subject.program), "--version"], 2 if subject.is_original else 5)


def start_to_prompt(subject: Subject) -> float:
    flags = ["--model", "openai/none", "--api_base", "http://127.0.0.1:9/v1", "--api_key", "x", "--offline"]
    command = [str(subject.program), *flags]
    return min(_start_once(command) for _ in range(1 if subject.is_original else 5))


def modules_at_prompt(subject: Subject) -> float:
    """Count our modules that are loaded when the prompt accepts a key."""
    flags = "--model openai/none --api_base http://127.0.0.1:9/v1 --api_key x --offline"
    with new_folder() as home:
        log = Path(home) / "imports"
        script = f'exec "{subject.python}" -X importtime "{subject.program}" {flags} 2>"{log}"'
        _prompt_in(environment(home), ["/bin/sh", "-c", script])
        names = [line.rpartition("|")[2].strip() for line in log.read_text().splitlines()]
    return sum(name.split(".")[0] == "interpreter" for name in names)


def bare_prompt() -> float:
    code = "from prompt_toolkit import PromptSession; PromptSession().prompt('> ')"
    return min(_start_once([sys.executable, "-c", code]) for _ in range(5))


@once
def _mcp_calls() -> dict[str, float]:
    return probe(OURS.python, "mcp_calls", server=str(ROOT / "tests" / "mcp_servers" / "hostile_server.py"))


@once
def _mcp_tasks() -> dict[str, dict[str, float]]:
    return probe(OURS.python, "mcp_tasks", tests=str(ROOT / "tests"))


def mcp_tasks(way: str, what: str) -> float:
    return _mcp_tasks()[way][what]


def mcp_call(key: str) -> float:
    return _mcp_calls()[key]


@once
def start_with_servers() -> tuple[float, float]:
    """Seconds to a prompt without MCP servers and with five, in turns."""
    flags = ["--model", "openai/none", "--api_base", "http://127.0.0.1:9/v1", "--api_key", "x", "--offline"]
    rows = {f"server{number}": {"command": "mcp-server-time"} for number in range(5)}
    command = [str(OURS.program), *flags]
    pairs = [(_start_once(command), _start_once(command, json.dumps({"mcpServers": rows}))) for _ in range(8)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def _start_once(command: list[str], servers: str = "") -> float:
    """Seconds until a key pressed at the prompt is shown."""
    with new_folder() as home:
        env = environment(home)
        if servers:
            folder = Path(env.get("XDG_CONFIG_HOME") or Path(home, ".config")) / "open-interpreter"
            folder.mkdir(parents=True)
            (folder / "mcp.json").write_text(servers)
        return _prompt_in(env, command)


def _prompt_in(env: dict[str, str], command: list[str]) -> float:
    began = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    screen = pyte.Screen(80, 24)
    try:
        _read_until(terminal, screen, ">", began)
        os.write(terminal, b"Q")
        _read_until(terminal, screen, "> Q", began)
        return time.perf_counter() - began
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def _read_until(terminal: int, screen: pyte.Screen, prompt: str, began: float, limit: float = 60) -> None:
    """Read until the line with the cursor starts with the prompt."""
    stream = pyte.ByteStream(screen)
    while not screen.display[screen.cursor.y].startswith(prompt):
        left = limit - (time.perf_counter() - began)
        if not select.select([terminal], [], [], max(0, left))[0]:
            raise ProbeFailure(f"no prompt within {limit:.0f} s")
        try:
            seen = os.read(terminal, 65536)
        except OSError:
            lines = [line for line in screen.display if line.strip()]
            raise ProbeFailure(f"ended: {(lines or ['no word'])[-1].strip()[:50]}") from None
        stream.feed(seen)
        # A terminal must answer a cursor position request.
        if b"\x1b[6n" in seen:
            os.write(terminal, f"\x1b[{screen.cursor.y + 1};{screen.cursor.x + 1}R".encode())


def fresh_core() -> Subject:
    """Install only the core in a virtual environment, as a user does."""
    return Subject("core", new_environment("core", str(ROOT)))


def new_environment(name: str, *packages: str) -> Path:
    """Make a fresh virtual environment with these packages, and return its Python."""
    folder = ROOT / ".bench" / name
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", folder], check=True)
    # The newest pip, because older ones keep trying versions of 0.4.3's dependencies forever.
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "pip"]
    subprocess.run(pip, check=True)
    if subprocess.run([python, "-m", "pip", "install", "--quiet", *packages]).returncode:
        raise ProbeFailure("pip could not install it")
    return python


@once
def installed(subject: Subject) -> tuple[int, float]:
    """Return the number of packages, and their size in megabytes."""
    measured = subject if subject.is_original else fresh_core()
    [folder] = measured.python.parent.parent.glob("lib/python3.*/site-packages")
    packages = [each for each in folder.glob("*.dist-info") if not each.name.startswith(("pip-", "setuptools-"))]
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return len(packages), size / 1e6


MEASUREMENTS = [
    Measurement("`interpreter --version`, CPU", "s", version_cpu, lambda: run_cpu(OURS.python, "pass"), budget=0.10),
    Measurement(
        f"`{IMPORT}`, CPU",
        "s",
        lambda it: run_cpu(it.python, IMPORT),
        lambda: run_cpu(OURS.python, "pass"),
        budget=0.10,
    ),
    Measurement(
        "the same, memory",
        "MB",
        lambda it: memory(it.python, IMPORT),
        lambda: memory(OURS.python, "pass"),
        budget=40,
    ),
    Measurement("start to a prompt that accepts a key", "s", start_to_prompt, bare_prompt, budget=0.35),
    Measurement(
        "start with five MCP servers configured (bare: without)",
        "s",
        lambda it: start_with_servers()[1],
        lambda: start_with_servers()[0],
        budget_of_bare=1.1,
    ),
    Measurement(
        "MCP: a call from code, beyond one of the bare SDK",
        "s",
        lambda it: mcp_call("ours") - mcp_call("bare"),
        budget=0.002,
    ),
    Measurement(
        "MCP: tokens of eight tasks as code (bare: native calls)",
        "",
        lambda it: mcp_tasks("code", "tokens"),
        lambda: mcp_tasks("native", "tokens"),
        budget_of_bare=0.5,
    ),
    Measurement(
        "MCP: seconds of these tasks, without the model's (bare: native calls)",
        "s",
        lambda it: mcp_tasks("code", "seconds"),
        lambda: mcp_tasks("native", "seconds"),
        budget_of_bare=1.5,
    ),
    Measurement("our modules loaded at import", "", lambda it: float(probe(it.python, "modules")["at_import"])),
    Measurement("our modules loaded at the prompt", "", modules_at_prompt),
]

INSTALL = [
    Measurement("packages in a core install", "", lambda it: installed(it)[0], budget=45),
    Measurement("size of a core install", "MB", lambda it: installed(it)[1], budget=130),
]
