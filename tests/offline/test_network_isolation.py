"""With `offline`, whole tasks work without a network, and contact only the named server."""

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

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="needs Linux network namespaces"),
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


class IsolatedNetwork:
    """Runs programs in an isolated network; `contacted` returns the hosts they tried to reach."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.trace, self.script = folder / "log", folder / "trace", folder / "script.json"
        self.script.write_text(json.dumps(SCRIPT))
        monkeypatch.setenv("NETWORK_LOG", str(self.log))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE / "guard"), str(SOURCE), str(HERE.parent)]))

    def command(self, *program: str) -> list[str]:
        strace = ["strace", "-f", "-qq", "-e", "trace=connect,sendto", "-o", str(self.trace)]
        watched = [*strace, *program] if _can_trace() else list(program)
        return [str(HERE / "isolated_run.py"), str(self.script), str(PORT), *watched]

    def run(self, *program: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([sys.executable, *self.command(*program)], capture_output=True, text=True, timeout=100)
        if done.returncode == 77:
            pytest.skip(f"can't create a network namespace here: {done.stderr.strip()}")
        return done

    def contacted(self) -> set[tuple[str, str]]:
        """Addresses, ports and looked-up names, from Python and all other processes."""
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
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IsolatedNetwork:
    made = IsolatedNetwork(tmp_path, monkeypatch)
    made.run("true")
    return made


ONLY_THE_SERVER = {("127.0.0.1", str(PORT))}


@pytest.mark.full
@pytest.mark.needs("node")
def test_a_library_task_in_three_languages_contacts_only_the_server(isolated: IsolatedNetwork) -> None:
    done = isolated.run(sys.executable, str(HERE / "three_languages.py"), BASE)
    printed = ["from Python 42", "from Shell 42", "from JavaScript 42", "All three agree."]
    assert (done.stdout.splitlines(), done.stderr) == (printed, "")
    assert isolated.contacted() == ONLY_THE_SERVER


@pytest.mark.needs("node")
def test_a_terminal_chat_contacts_only_the_server(isolated: IsolatedNetwork) -> None:
    program = [sys.executable, "-c", PROGRAM, "--offline", "--api_base", BASE, "--model", "gpt-4o", "-y"]
    person = Person([sys.executable, *isolated.command(*program)])
    try:
        person.says("Count in three languages")
        for words in ("from Python 42", "from Shell 42", "from JavaScript 42", "All three agree."):
            person.sees(words)
        assert person.leaves() == 0
    finally:
        person.close()
    assert isolated.contacted() == ONLY_THE_SERVER


def test_a_hosted_model_is_refused_without_any_contact(isolated: IsolatedNetwork) -> None:
    program = [sys.executable, "-c", PROGRAM, "--offline", "--model", "gpt-4o", "--api_key", "key", "-y"]
    done = isolated.run(*program, "Hello")
    assert done.returncode == 3
    assert "`offline` is set" in done.stderr
    assert isolated.contacted() == set()


def test_the_guards_detect_contacts(isolated: IsolatedNetwork) -> None:
    """Proves that the tests above would find other contacts."""
    code = "import socket\ntry: socket.create_connection(('models.example.org', 443))\nexcept OSError: pass"
    isolated.run(sys.executable, "-c", code)
    assert ("models.example.org", "443") in isolated.contacted()
    if _can_trace():
        other = "import subprocess; subprocess.run(['bash', '-c', ': > /dev/tcp/192.0.2.1/99'], stderr=-3)"
        isolated.run(sys.executable, "-c", other)
        assert ("192.0.2.1", "99") in isolated.contacted()
