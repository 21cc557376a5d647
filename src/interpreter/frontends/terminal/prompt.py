"""The prompt: a line editor with history, in which a paste never sends itself off."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from interpreter.app.own_blocks import is_unfinished
from interpreter.frontends.terminal.status_line import line_of
from interpreter.frontends.terminal.tty import Tty

MARKER = '"""'
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse fg:ansibrightblack"})


class Prompt:
    """Reads messages; Enter sends one off, Alt-Enter or Ctrl-J begins a new line."""

    def __init__(
        self,
        tty: Tty,
        folder: str | None,
        marker: bool = True,
        completer: Completer | None = None,
        status: Callable[[], list[str]] = list,
    ) -> None:
        self._tty, self._status = tty, status
        self._facts: list[str] = []

        def unfinished(text: str) -> bool:
            return (marker and _in_quotes(text)) or is_unfinished(text)

        self._session = _session(tty, _history(folder), unfinished, completer)
        self._session.key_bindings = merge_key_bindings([self._session.key_bindings or KeyBindings(), _rerun_key()])

    def when_ready(self, function: Callable[[], None]) -> None:
        """Have something done as soon as the prompt stands and takes keys, once."""

        def once(sender: object) -> None:
            self._session.app.after_render.remove_handler(once)
            function()

        self._session.app.after_render.add_handler(once)

    def read(self, default: str = "") -> str:
        """A message; EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
        self._facts = self._status()
        toolbar = self._under_the_prompt if self._facts else None
        return _ask(self._session, "> ", default=default, bottom_toolbar=toolbar)

    def _under_the_prompt(self) -> str:
        separator = " · " if self._tty.unicode else " - "
        return line_of(self._facts, self._tty.size()[0] - 1, separator)


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


def _session(
    tty: Tty, history: History, unfinished: Callable[[str], bool], completer: Completer | None = None
) -> PromptSession[str]:
    # Cursor position requests are off: their answers would end up in what is typed ahead.
    output = create_output(stdout=tty.stdout)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
        # Without an answer the line under the prompt would not be drawn.
        output.get_rows_below_cursor_position = lambda: 1  # type: ignore[method-assign]
    return PromptSession(
        history=history,
        multiline=True,
        key_bindings=_bindings(unfinished),
        prompt_continuation="  ",
        input=create_input(tty.stdin),
        output=output,
        color_depth=None if tty.color else ColorDepth.DEPTH_1_BIT,
        enable_history_search=True,
        enable_suspend=True,  # Ctrl-Z is what it is everywhere
        completer=completer,
        complete_while_typing=False,
        complete_in_thread=True,
        style=_STYLE,
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


def _rerun_key() -> KeyBindings:
    """F5 is %rerun, where nothing has been typed that it would take away."""
    keys = KeyBindings()

    @keys.add("f5")
    def _(event: KeyPressEvent) -> None:
        if not event.current_buffer.text:
            event.current_buffer.text = "%rerun"
            event.current_buffer.validate_and_handle()

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
