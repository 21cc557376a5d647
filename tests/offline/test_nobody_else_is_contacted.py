"""With `offline`, whole tasks work in a network without anything, and nobody but the named server is asked."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import SOURCE
from terminal.person import PROGRAM, Person

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's"),
              pytest.mark.usefixtures("no_strays")]  # fmt: skip

HERE = Path(__file__).parent
PORT = 8321
BASE = f"http://127.0.0.1:{PORT}/v1"


SCRIPT: list[Any] = [
    {"language": "python", "code": "print('from', 'Python', 6 * 7)"},
    {"language": "shell", "code": "echo from Shell $((6 * 7))"},
    {"language": "javascript", "code": "console.log('from', 'JavaScript', 6 * 7)"},
    "All three agree.",
]
CALLED = re.compile(r"sin6?_port=htons\((\d+)\).*?inet_(?:addr|pton)\((?:AF_INET6, )?\"([^\"]+)\"")


class Alone:
    """Programs in a network of their own; `contacted` is whom they tried to reach."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.trace, self.script = folder / "log", folder / "trace", folder / "script.json"
        self.script.write_text(json.dumps(SCRIPT))
        monkeypatch.setenv("NETWORK_LOG", str(self.log))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE / "guard"), str(SOURCE), str(HERE.parent)]))

    def command(self, *program: str) -> list[str]:
        strace = ["strace", "-f", "-qq", "-e", "trace=connect,sendto", "-o", str(self.trace)]
        watched = [*strace, *program] if _can_trace() else list(program)
        return [str(HERE / "alone.py"), str(self.script), str(PORT), *watched]

    def run(self, *program: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([sys.executable, *self.command(*program)], capture_output=True, text=True, timeout=100)
        if done.returncode == 77:
            pytest.skip(f"no network namespace can be made here: {done.stderr.strip()}")
        return done

    def contacted(self) -> set[tuple[str, str]]:
        """Addresses and ports, and names that were looked up, of Python and of everything else."""
        found: set[tuple[str, str]] = set()
        for line in self.log.read_text().splitlines() if self.log.exists() else ():
            _, whom = json.loads(line)
            found.add((whom[0], whom[1] if len(whom) > 1 else ""))
        traced = self.trace.read_text() if self.trace.exists() else ""
        return found | {(host, port) for port, host in CALLED.findall(traced)}


def _can_trace() -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True).returncode == 0


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Alone:
    there = Alone(tmp_path, monkeypatch)
    there.run("true")
    return there


ONLY_THE_SERVER = {("127.0.0.1", str(PORT))}


@pytest.mark.full
@pytest.mark.needs("node")
def test_a_task_of_the_library_in_three_languages(alone: Alone) -> None:
    done = alone.run(sys.executable, str(HERE / "three_languages.py"), BASE)
    printed = ["from Python 42", "from Shell 42", "from JavaScript 42", "All three agree."]
    assert (done.stdout.splitlines(), done.stderr) == (printed, "")
    assert alone.contacted() == ONLY_THE_SERVER


@pytest.mark.needs("node")
def test_a_chat_in_the_terminal_from_start_to_end(alone: Alone) -> None:
    program = [sys.executable, "-c", PROGRAM, "--offline", "--api_base", BASE, "--model", "gpt-4o", "-y"]
    person = Person([sys.executable, *alone.command(*program)])
    try:
        person.says("Count in three languages")
        for words in ("from Python 42", "from Shell 42", "from JavaScript 42", "All three agree."):
            person.sees(words)
        assert person.leaves() == 0
    finally:
        person.close()
    assert alone.contacted() == ONLY_THE_SERVER


def test_a_model_on_the_net_is_refused_before_anybody_is_contacted(alone: Alone) -> None:
    program = [sys.executable, "-c", PROGRAM, "--offline", "--model", "gpt-4o", "--api_key", "key", "-y"]
    done = alone.run(*program, "Hello")
    assert done.returncode == 3
    assert "`offline` is set" in done.stderr
    assert alone.contacted() == set()


def test_the_guards_see_a_name_that_is_looked_up(alone: Alone) -> None:
    """The proof that the sets above could have more in them."""
    code = "import socket\ntry: socket.create_connection(('models.example.org', 443))\nexcept OSError: pass"
    alone.run(sys.executable, "-c", code)
    assert ("models.example.org", "443") in alone.contacted()
    if _can_trace():
        other = "import subprocess; subprocess.run(['bash', '-c', ': > /dev/tcp/192.0.2.1/99'], stderr=-3)"
        alone.run(sys.executable, "-c", other)
        assert ("192.0.2.1", "99") in alone.contacted()
