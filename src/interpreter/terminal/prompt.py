"""The prompt: a line editor with history, in which a paste never sends itself off."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.output.vt100 import Vt100_Output

from interpreter.terminal.tty import Tty

MARKER = '"""'


class Prompt:
    """Reads messages; Enter sends one off, Alt-Enter or Ctrl-J begins a new line."""

    def __init__(self, tty: Tty, folder: str | None, marker: bool = True) -> None:
        unfinished = _in_quotes if marker else lambda text: False
        self._session = _session(tty, _history(folder), unfinished)

    def when_ready(self, function: Callable[[], None]) -> None:
        """Have something done as soon as the prompt stands and takes keys, once."""

        def once(sender: object) -> None:
            self._session.app.after_render.remove_handler(once)
            function()

        self._session.app.after_render.add_handler(once)

    def read(self, default: str = "") -> str:
        """A message; EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
        return _ask(self._session, "> ", default=default)


def ask_line(tty: Tty, question: str, password: bool = False) -> str | None:
    """One line, None at the end of input."""
    session = _session(tty, InMemoryHistory(), lambda text: False)
    try:
        return _ask(session, ANSI(question), is_password=password)
    except EOFError:
        return None


class _ToldToEnd(Exception):
    """Raised where the prompt waits, so that it puts the terminal in order on its way out."""


_up: list[tuple[asyncio.AbstractEventLoop, PromptSession[str]]] = []  # the prompt that waits, if any


def leave(code: int) -> bool:
    """The program is told to end; False if no prompt is up that has to be left first."""
    for loop, session in _up:
        loop.call_soon_threadsafe(partial(session.app.exit, exception=_ToldToEnd(code)))
    return bool(_up)


def _ask(session: PromptSession[str], question: Any, **more: Any) -> str:
    def when_up() -> None:
        _up.append((asyncio.get_running_loop(), session))

    try:
        return session.prompt(question, in_thread=_in_event_loop(), pre_run=when_up, **more)
    except _ToldToEnd as told:
        raise SystemExit(told.args[0]) from None
    finally:
        _up.clear()


def _session(tty: Tty, history: History, unfinished: Callable[[str], bool]) -> PromptSession[str]:
    # Cursor position requests are off: their answers would end up in what is typed ahead.
    output = create_output(stdout=tty.stdout)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return PromptSession(
        history=history,
        multiline=True,
        key_bindings=_bindings(unfinished),
        prompt_continuation="  ",
        input=create_input(tty.stdin),
        output=output,
        color_depth=None if tty.color else ColorDepth.DEPTH_1_BIT,
        enable_history_search=True,
    )


def _bindings(unfinished: Callable[[str], bool]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        # Where a terminal does not mark a paste, more keys are waiting behind its line ends.
        pasted = bool(event.app.key_processor.input_queue)
        if pasted or unfinished(buffer.text):
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


def _in_quotes(text: str) -> bool:
    """Whether a text that was begun with three quotes is not closed yet."""
    return text.count(MARKER) % 2 == 1


def _history(folder: str | None) -> History:
    """Kept in a file that only its owner can read, where that is possible."""
    if folder is None:
        return InMemoryHistory()
    path = os.path.join(folder, "history")
    with suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        return FileHistory(path)
    return InMemoryHistory()


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
