"""One person's terminal: where things are shown, typed and asked."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING

from interpreter.terminal.interrupts import Interrupts
from interpreter.terminal.keyboard import Keyboard, TypeAhead
from interpreter.terminal.plain import PlainDisplay
from interpreter.terminal.render.words import SHELLS
from interpreter.terminal.tty import Tty

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.messages import Chunk
    from interpreter.terminal.render.display import Display

QUIET = 0.8  # seconds without a key before a question may appear


class Terminal:
    """What is typed ahead lives as long as this does; displays follow the settings."""

    def __init__(self, plain: bool = False, tty: Tty | None = None) -> None:
        self.tty = tty or Tty()
        self.plain = plain or not self.tty.can_draw
        self.typed = TypeAhead()
        self.unanswered = False  # a question came up and nobody was there
        self.interrupted = False  # the last turn was ended by Ctrl-C
        self.failed = False  # a turn ended with an error
        self.busy: Busy | None = None
        self._display: Display | PlainDisplay | None = None

    @property
    def display(self) -> Display | PlainDisplay:
        if self._display is None:
            self._display = PlainDisplay(self.tty.write) if self.plain else self._drawn()
        return self._display

    def _drawn(self) -> Display:
        from interpreter.terminal.render.display import Display
        from interpreter.terminal.render.screen import Screen
        from interpreter.terminal.render.theme import Theme

        return Display(Screen(self.tty.write, self.tty.size), Theme(self.tty.color, self.tty.unicode))

    def error(self, text: str) -> None:
        """What went wrong, in words, once."""
        self.failed = True
        self.tell(text, "error")
        if self.tty.can_show:
            self.display.finish()

    def tell(self, text: str, style: str = "hint") -> None:
        """Words of ours, kept out of what is piped on."""
        if self.tty.can_show:
            self.display.line(text, style)
        else:
            self.display.finish()
            print(text, file=sys.stderr)

    def ask(self, question: str, password: bool = False, guarded: bool = False) -> str | None:
        """One line from the user, None at the end of input; `guarded`: nothing typed before may answer it."""
        from interpreter.terminal.ask import ask

        pause = self.busy.paused(guarded) if self.busy else nullcontext()
        with pause, self.display.asking() as begun:
            if guarded:
                self.tty.forget_typed()
            return ask(self, begun + question, password)


class Busy:
    """A turn is on: keys are kept or go to the block, Ctrl-C cancels, the spinner turns."""

    def __init__(self, terminal: Terminal, interpreter: OpenInterpreter) -> None:
        self._terminal, self._interpreter = terminal, interpreter
        in_charge = threading.current_thread() is threading.main_thread()
        self._takes_keys = in_charge and terminal.tty.in_foreground
        self.keyboard = Keyboard(terminal.tty, terminal.display, terminal.typed)
        self.interrupts = Interrupts(
            lambda: self.keyboard.call(self._cancel), lambda: self.keyboard.call(self._resumed)
        )
        self._modes = ExitStack()

    @contextmanager
    def on(self) -> Iterator[Busy]:
        """For the length of a turn."""
        terminal = self._terminal
        outer, terminal.busy = terminal.busy, self
        self.keyboard.on_ctrl_b = self._detach
        self.keyboard.on_typed = terminal.display.typed
        if not isinstance(terminal.display, PlainDisplay):
            terminal.display.on_change = self.keyboard.reschedule
        self.keyboard.start()
        try:
            with self.interrupts.taken(), self._modes:
                self._listen()
                terminal.display.typed(terminal.typed.shown)
                yield self
        finally:
            self.keyboard.stop()
            terminal.busy = outer

    @contextmanager
    def paused(self, guarded: bool) -> Iterator[None]:
        """Somebody else reads the keys."""
        if guarded and self._takes_keys:
            self.keyboard.wait_until_quiet(QUIET)
        self.keyboard.listen(False)
        self._modes.close()
        try:
            with self.interrupts.asking():
                yield
        finally:
            self._listen()

    def _listen(self) -> None:
        if self._takes_keys:
            self._modes.enter_context(self._terminal.tty.keys(marks=not self._terminal.plain))
            self.keyboard.listen(True)

    def follow(self, chunk: Chunk) -> None:
        """Where keys go depends on what is running."""
        if chunk["type"] == "code" and chunk.get("end") and chunk.get("role") == "assistant":
            if self._interpreter.auto_run:
                self.block_runs(chunk.get("format", ""))
        elif "ended" in chunk or (chunk.get("format") == "active_line" and chunk.get("content") is None):
            self.keyboard.to_block = None

    def block_runs(self, language: str) -> None:
        """A block begins."""
        self._terminal.display.running()
        if language.lower() in SHELLS:
            self.keyboard.to_block = self._interpreter.computer.send_keys

    def _resumed(self) -> None:
        self._terminal.tty.keys_again()
        self._terminal.display.resumed()

    def _detach(self) -> None:
        self._interpreter.computer.detach()

    def _cancel(self) -> None:
        self._terminal.display.stopping()
        self._interpreter.cancel()
