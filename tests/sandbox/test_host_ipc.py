"""Code in a sandbox can't reach host programs: no Unix sockets unless the user allows them."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from .conftest import Inside

CONNECT = "import socket; s = socket.socket(socket.AF_UNIX); s.connect({path!r}); print('conn' + 'ected')"


@pytest.fixture
def listening(workspace: Path) -> Any:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(workspace / "socket"))
        opened.listen()
        yield str(workspace / "socket")


def test_a_unix_socket_is_refused_with_a_reason(inside: Inside, listening: str) -> None:
    ran = inside.do("python", CONNECT.format(path=listening))
    assert "connected" not in ran.text and "Blocked by the sandbox: a Unix socket." in ran.text
    assert "sandbox_unix_sockets" in ran.text
    ran = inside.do("shell", f"""python3 -c "{CONNECT.format(path=listening)}" 2>&1""")
    assert "connected" not in ran.text and "Probably blocked by the sandbox: a Unix socket." in ran.text


@pytest.mark.needs("node")
def test_a_unix_socket_is_refused_in_javascript(inside: Inside, listening: str) -> None:
    ran = inside.do(
        "javascript", f"await new Promise((done, no) => require('net').connect({listening!r}, done).on('error', no))"
    )
    assert "EAFNOSUPPORT" in ran.text and "Blocked by the sandbox: a Unix socket." in ran.text


def test_sandbox_unix_sockets_allows_unix_sockets(contained: Any, listening: str) -> None:
    inside = contained(unix_sockets=True)
    assert inside.do("python", CONNECT.format(path=listening)).text.strip() == "connected"


def test_socket_pairs_process_pools_and_child_processes_work(inside: Inside) -> None:
    """They need Unix sockets that lead nowhere outside."""
    inside.do("python", "import asyncio, multiprocessing as mp, socket, subprocess\ndef double(n): return 2 * n")
    assert inside.do("python", "with mp.Pool(2) as pool: print(pool.map(double, [1, 2]))").text == "[2, 4]\n"
    assert inside.do("python", "with mp.Manager() as shared: print(shared.list([3]))").text == "[3]\n"
    started = "p = await asyncio.create_subprocess_exec('echo', 'hello'); print(await p.wait())"
    assert inside.do("python", started).text.endswith("0\n")
    assert inside.do("python", "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))").text == "b'x'\n"
    assert inside.do(
        "shell", "echo one | cat <(echo two) -; getent passwd root >/dev/null && echo found"
    ).text.split() == [
        "two",
        "one",
        "found",
    ]


@pytest.mark.parametrize("language", ["python", "shell", pytest.param("javascript", marks=pytest.mark.needs("node"))])
def test_no_signal_ends_the_init_process(inside: Inside, language: str) -> None:
    """SIGTERM once did: the supervisor handles it, and the kernel only drops signals without a handler."""
    code = {
        "python": "import os, time\nkept = 42\nfor n in range(1, 65):\n    os.kill(1, n)\ntime.sleep(0.3)",
        "shell": "kept=42; for n in $(seq 1 64); do kill -$n 1; done 2>/dev/null; sleep 0.3",
        "javascript": "kept = 42; for (let n = 1; n < 65; n++) { try { process.kill(1, n); } catch {} }\n"
        "await new Promise((resolve) => setTimeout(resolve, 300))",
    }
    inside.do(language, code[language])
    pipes = "for fd in /proc/1/fd/*; do printf '\\17' >$fd & done 2>/dev/null; sleep 0.3"  # a forged signal, written to its pipes
    inside.do("shell", pipes if language == "shell" else "true")
    inside.do("python", f"import subprocess; subprocess.run(['bash', '-c', {pipes!r}], timeout=5)")
    shown = {"python": "print(kept)", "shell": "echo $kept", "javascript": "console.log(kept)"}
    assert inside.do(language, shown[language]).text.strip() == "42"
