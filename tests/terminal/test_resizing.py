"""Resizing a terminal that rewraps its lines, as most do: tmux."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pexpect
import pytest

from model_server import ModelServer, stall, text
from sampling import some
from terminal.person import PROGRAM, TIMEOUT

pytestmark = [pytest.mark.needs("tmux"), pytest.mark.usefixtures("no_strays")]


class Tmux:
    """Our own tmux, attached to a pseudo-terminal: whenever that shows something new, we look again."""

    def __init__(self, command: str, columns: int, lines: int) -> None:
        self._base = ["-L", f"test-{uuid.uuid4().hex}", "-f", os.devnull]
        self._client = pexpect.spawn(
            "tmux",
            [*self._base, "new-session", command, ";", "set", "status", "off"],
            env={**os.environ, "TERM": "xterm-256color"},
            dimensions=(lines, columns),
            timeout=TIMEOUT,
        )

    @property
    def text(self) -> str:
        return self._run("capture-pane", "-p", "-S", "-1000")

    def types(self, keys: str) -> None:
        self._client.send(keys)

    def resizes(self, columns: int, lines: int) -> None:
        """Change the size, and wait until tmux has passed it on to the program."""
        tty = self._run("display-message", "-p", "#{pane_tty}").strip()
        self._client.setwinsize(lines, columns)
        with open(tty) as pane:
            while os.get_terminal_size(pane.fileno()) != (columns, lines):
                self._client.expect([".+", pexpect.TIMEOUT], timeout=0.05)

    def _run(self, *command: str) -> str:
        done = subprocess.run(["tmux", *self._base, *command], capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    def sees(self, expected: str) -> None:
        while True:
            if expected in self.text:
                return
            self._client.expect(".+")

    def close(self) -> None:
        subprocess.run(["tmux", *self._base, "kill-server"], capture_output=True, timeout=60)
        self._client.close(force=True)


@contextmanager
def tmux(server: ModelServer, columns: int, lines: int) -> Iterator[Tmux]:
    arguments = ["-c", PROGRAM, "--api_base", server.base_url, "--api_key", "key"]
    window = Tmux(shlex.join([sys.executable, *arguments]), columns, lines)
    try:
        window._client.expect(".+")  # the tmux server is running now
        window.sees("Ctrl-D exits.\nTry: ")
        window.sees("\n\n>")
        yield window
    finally:
        window.close()


@pytest.mark.parametrize("sizes", some(1, [[(40, 20), (90, 30)], [(120, 40), (60, 20)]]))
def test_a_paragraph_stays_complete_after_two_resizes(sizes: list[tuple[int, int]]) -> None:
    pauses = [threading.Event() for _ in sizes]
    words = [f"word{number}" for number in range(90)]
    reply = text(" ".join(words[:30])).then(stall(pauses[0])).then(text(" " + " ".join(words[30:60])))
    reply = reply.then(stall(pauses[1])).then(text(" " + " ".join(words[60:])))
    with ModelServer([reply]) as server, tmux(server, 80, 24) as window:
        window.types("Hello\r")
        for size, pause, last in zip(sizes, pauses, ("word29", "word59"), strict=True):
            window.sees(last)
            window.resizes(*size)
            pause.set()
        window.sees("word89\n\n>")
        # tmux may have rewrapped rows that were final before the resize.
        shown = "".join(window.text.split("> Hello")[1].split())
        assert shown.startswith("".join(words) + ">")
