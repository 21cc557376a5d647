"""A user at a terminal: types, waits for text to appear, and reads the screen."""

from __future__ import annotations

import os
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pexpect

from model_server import ModelServer
from terminal.emulator import Emulator

PROGRAM = """
import faulthandler, signal, sys
faulthandler.register(signal.SIGUSR2)  # prints the stacks of a program that hangs
from interpreter.frontends.cli import main
sys.exit(main())
"""
TIMEOUT = 60.0
DEFAULTS = {"INTERPRETER_DATA_STACK": ","}  # none: only test_data_stack.py wants a first start to offer packages
DEVICE_ATTRIBUTES, CURSOR_POSITION = "\x1b[c", "\x1b[6n"
CTRL_B, CTRL_C, CTRL_D, CTRL_J, ALT_ENTER, ENTER = "\x02", "\x03", "\x04", "\n", "\x1b\r", "\r"


class Person:
    """One run of a program in a pseudo-terminal of the given size."""

    def __init__(
        self,
        arguments: list[str],
        columns: int = 80,
        lines: int = 24,
        env: dict[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.emulator = Emulator(columns, lines)
        self._child = pexpect.spawn(
            arguments[0],
            arguments[1:],
            env={**DEFAULTS, **os.environ, "TERM": "xterm-256color", **(env or {})},
            dimensions=(lines, columns),
            encoding="utf-8",
            codec_errors="replace",
            timeout=timeout,
        )
        self._timeout = timeout
        self._child.delaybeforesend = None
        self._child.ptyproc.delayafterclose = 0
        self.raw = ""
        self.answer = "\x1b[?62;22c"  # what the terminal reports about itself

    # -- looking -----------------------------------------------------------------------------------------

    @property
    def rows(self) -> list[str]:
        return self.emulator.everything

    @property
    def screen(self) -> str:
        return "\n".join(self.rows)

    def sees(self, text: str, times: int = 1) -> None:
        """Wait until a text is on the screen or above it, however its lines are broken."""

        def has_appeared() -> bool:
            rows = self.rows
            return any(glue.join(rows).count(text) >= times for glue in ("\n", " ", ""))

        self.wait_until(has_appeared, text)

    def glimpses(self, text: str) -> None:
        """Wait until a text was on the screen, however briefly."""
        self.wait_until(lambda: text in self.raw, text)

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + self._timeout
        while not condition():
            if not self._read(max(0.0, end - time.monotonic())):
                raise AssertionError(f"{what!r} did not appear on:\n{self.screen}\n\n{self._where_it_hangs()}")

    def at_prompt(self) -> None:
        """Wait for a prompt that accepts keys."""
        self.wait_until(lambda: self.emulator.row == ">" and self.emulator.cursor[0] == 2, "a prompt")

    def _where_it_hangs(self) -> str:
        """Return the stacks of the program's threads, or how it ended."""
        if not self._child.isalive():
            return f"The program has ended: exit code {self._child.exitstatus}, signal {self._child.signalstatus}"
        shown = len(self.raw)
        self.signals(signal.SIGUSR2)
        while self._read(2.0):
            pass
        return self.raw[shown:].replace("\r", "")

    def _read(self, timeout: float) -> bool:
        try:
            text = self._child.read_nonblocking(65536, timeout)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return False
        before = len(self.raw)
        self.raw += text
        self.emulator.feed(text)

        def is_asked(question: str) -> bool:
            return question in self.raw[max(0, before - len(question) + 1) :]  # it may arrive in two pieces

        # Terminals answer these at once.
        if is_asked(DEVICE_ATTRIBUTES):
            self.types(self.answer)
        if is_asked(CURSOR_POSITION):
            column, line = self.emulator.cursor
            self.types(f"\x1b[{line + 1};{column + 1}R")
        return True

    # -- doing -------------------------------------------------------------------------------------------

    def types(self, keys: str) -> None:
        self._child.send(keys)

    def says(self, text: str) -> None:
        """Type a line, wait until it appears, and send it."""
        self.at_prompt()
        self.types(text)
        self.sees("> " + text[: self.emulator.screen.columns - 3])
        self.types(ENTER)

    def answers(self, question: str, text: str, times: int = 1) -> None:
        """Answer a question once it appears."""
        self.sees(question, times)
        self.types(text + ENTER)

    def resizes(self, columns: int, lines: int) -> None:
        self.emulator.screen.resize(lines, columns)
        self._child.setwinsize(lines, columns)

    def signals(self, number: int) -> None:
        os.kill(self._child.pid, number)

    def leaves(self) -> int:
        """Press Ctrl-D at the prompt, and return the exit code."""
        self.at_prompt()
        self.types(CTRL_D)
        return self.ends()

    def ends(self) -> int:
        """Wait for the program to end, and return its exit code."""
        while self._read(self._timeout):
            pass
        if not self._child.flag_eof:
            raise AssertionError(f"The program did not end:\n{self.screen}\n\n{self._where_it_hangs()}")
        self._child.wait()
        code = self._child.exitstatus
        return -self._child.signalstatus if code is None else code

    @property
    def mode_is_restored(self) -> bool:
        """Check that the terminal is as before: line by line, with echo, without bracketed paste."""
        marks = self.raw.rfind("\x1b[?2004h") <= self.raw.rfind("\x1b[?2004l")
        return termios.tcgetattr(self._child.child_fd) == _mode_of_new_terminal() and marks

    def close(self) -> None:
        try:
            self._child.close(force=True)
        except pexpect.ExceptionPexpect:
            self._child.ptyproc.wait()  # it was killed, but a busy machine takes a while to end it


def _mode_of_new_terminal() -> list[Any]:
    """Read it from a new terminal: on a busy machine, the program has changed the mode before we can read it."""
    ours, theirs = os.openpty()
    try:
        return termios.tcgetattr(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


@contextmanager
def someone(*arguments: str, server: ModelServer | None = None, **more: Any) -> Iterator[Person]:
    """Start the interpreter as a user."""
    where = ["--api_base", server.base_url, "--api_key", "key"] if server else []
    person = Person([sys.executable, "-c", PROGRAM, *where, *arguments], **more)
    try:
        yield person
    finally:
        person.close()
