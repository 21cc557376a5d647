"""One person's terminal: where the program shows things, reads keys and asks questions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from threading import Thread
from typing import TYPE_CHECKING

from interpreter.app.own_blocks import is_unfinished
from interpreter.console_text import PROSE, visible
from interpreter.frontends.terminal.keyboard import TurnKeyboard, TypeAhead
from interpreter.frontends.terminal.render.ansi import program_text, wrapped
from interpreter.frontends.terminal.render.plain import PlainDisplay
from interpreter.frontends.terminal.tty import BACKGROUND, Tty, answers_queries, early_keys, notification, unread_keys
from interpreter.leaves import exists, load
from interpreter.sigint import in_main_thread

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.app.checkpoints import Forks
    from interpreter.app.conversations import UndoableReset
    from interpreter.errors import InterpreterError
    from interpreter.frontends.terminal.prompt import Prompt
    from interpreter.frontends.terminal.render.display import TerminalDisplay

_PICTURES = "interpreter.frontends.pictures.images:Pictures"


class Terminal:
    """Type-ahead lasts as long as this object; displays follow the settings."""

    def __init__(self, plain: bool = False, tty: Tty | None = None) -> None:
        self.tty = tty or Tty()
        self.plain = plain or not self.tty.can_draw
        # Whether a program's own colours are passed on in plain text: if the user wants them in pipes too.
        is_forced = not os.environ.get("NO_COLOR") and os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0")
        self._plain_colors = is_forced and not plain
        self.typed = TypeAhead()
        self.unanswered = False  # a question could not be asked
        self.interrupted = False  # the last turn was ended by Ctrl-C
        self.forks: Forks | None = None  # where the user has forked
        self.shown_rules: set[str] = set()  # the rules of projects that the user was asked about
        self.reset: UndoableReset | None = None  # the last %reset, which %undo can revert
        self.left = False  # the user wants to leave
        self.failed = False  # a turn ended with an error
        self.problem: InterpreterError | None = None  # the error, if it is one of ours
        self.busy: TurnKeyboard | None = None
        self._display: TerminalDisplay | PlainDisplay | None = None
        self._ignores_queries = not answers_queries(os.environ)
        self._background: str | None = None  # what is known about this terminal

    @property
    def display(self) -> TerminalDisplay | PlainDisplay:
        if self._display is None:
            tty = self.tty
            if self.plain:
                self._display = PlainDisplay(tty.write, self._plain_colors, begun=tty.can_show)
                return self._display
            from interpreter.frontends.terminal.render.display import TerminalDisplay, TerminalScreen
            from interpreter.frontends.terminal.render.theme import Theme, color_depth, has_links

            theme = Theme(tty.color, tty.unicode, color_depth(os.environ), has_links(os.environ))
            pictures = load(_PICTURES)(self.query, tty.cell, color=tty.color) if exists(_PICTURES) else None
            self._display = TerminalDisplay(TerminalScreen(tty.write, tty.size), theme, pictures=pictures)
        return self._display

    @property
    def is_attended(self) -> bool:
        return self.tty.can_type and self.tty.can_show

    @property
    def colors(self) -> bool:
        """Check whether a program's output may have colours here."""
        return self._plain_colors if self.plain else self.tty.color

    def follow(self, interpreter: OpenInterpreter) -> None:
        """Apply the settings to the display."""
        display = self.display
        display.languages = interpreter.computer.registry
        if isinstance(display, PlainDisplay):
            display.draws_charts = self.tty.can_show and interpreter.terminal_images != "off"
            return
        display.show_active_line = interpreter.highlight_active_line
        display.fold_reasoning = not interpreter.verbose
        if display.pictures is not None:
            display.pictures.wanted = interpreter.terminal_images
        display.model = interpreter.llm.model
        if interpreter.theme == "auto" and self._background is None:
            from interpreter.frontends.terminal.render.theme import background_by_answer, background_by_environment

            self._background = background_by_environment(os.environ)
            if not self._background and self.tty.color:
                self._background = "".join(background_by_answer(answer) for answer in self.query(BACKGROUND))
        display.theme.set_background((self._background or "") if interpreter.theme == "auto" else interpreter.theme)

    def query(self, queries: str) -> list[bytes]:
        """Query the terminal and return its answers. Keys typed in between are kept."""
        if self._ignores_queries or not in_main_thread() or not self.tty.in_foreground:
            return []
        if self.busy is None:
            with self.tty.keys(marks=False):
                answers, typed = self.tty.query(queries)
            self.typed.feed(typed)
        else:
            answers = self.busy.query(queries)
        self._ignores_queries = not answers  # then it is never asked again
        return answers

    @contextmanager
    def early_keys(self) -> Iterator[None]:
        """Keep what was typed before the first prompt. A line that was ended with Enter is sent."""
        self.typed.feed(early_keys())
        if self.plain or not self.tty.in_foreground or not in_main_thread():
            yield
            return
        with self.tty.keys(marks=False):
            # The terminal was still in line mode, where Enter is a line feed.
            self.typed.feed(unread_keys(self.tty).replace(b"\n", b"\r"))
            yield

    def error(self, text: str) -> None:
        self.failed = True
        self.tell(text, "error")
        if self.tty.can_show:
            self.display.finish()

    def tell(self, text: str, style: str = "hint") -> None:
        """Show a line that is not part of the answer; it does not go into piped output."""
        if self.tty.can_show:
            self.display.line(text, style)
        else:
            self.display.finish()
            print(visible(text, PROSE), file=sys.stderr)

    def notify(self, interpreter: OpenInterpreter, words: str, seconds: float) -> None:
        """Ring the bell, set the title and, if wanted, show a notification: the user has waited for long."""
        after = interpreter.notify_after
        if not after or seconds < after or not self.tty.can_draw:
            return
        text = f"Open Interpreter: {words}"
        shown = f"\x1b]2;{text}\a" if answers_queries(os.environ) else ""
        if interpreter.notify_by == "desktop":
            sequence = notification(os.environ)
            shown += sequence.format(text) if sequence else ""
            if not sequence:
                Thread(target=interpreter.computer.os.notify, args=(text,), name="notify", daemon=True).start()
        self.tty.write(f"{shown}\a")

    def ask(self, question: str, password: bool = False, guarded: bool = False) -> str | None:
        """Ask for one line, None at the end of input; `guarded`: nothing typed before may answer it."""
        tty = self.tty
        pause = self.busy.paused("asking", guarded) if self.busy else nullcontext()
        with pause, self.display.asking() as begun:
            if guarded:
                self.typed.feed(early_keys())
                tty.discard_typed()
                question, width = visible(question), tty.size()[0]
                if len(question) >= width:
                    question = "\n".join(wrapped(question.rstrip(), width - 2)) + " "
            question = begun + program_text(question, self.colors)
            if in_notebook() or (sys.platform == "win32" and password and tty.can_type):
                from getpass import getpass

                try:
                    return getpass(question) if password else input(question)
                except (EOFError, NotImplementedError):  # a notebook that runs unattended
                    return None
            if tty.can_type and not self.plain:
                from interpreter.frontends.terminal.prompt import ask_line

                return ask_line(tty, question, password)
            is_hidden = password and tty.can_type
            with tty.hidden() if is_hidden else nullcontext():
                line = tty.read_line(question)
            if is_hidden:
                tty.write("\n")
            if not line:
                self.unanswered = self.unanswered or not tty.can_type
                tty.write("\n")
                return None
            if tty.can_type and not is_hidden and tty.has_typed():
                # Several lines at once were pasted, not typed, so they don't answer this question.
                tty.discard_typed()
                return "\n"
            return line.rstrip("\r\n")

    def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question. No answer is a no."""
        try:
            answer = self.ask(f"{question} (y/n) ", guarded=True)
        except KeyboardInterrupt:
            return False
        return answer is not None and answer.strip().lower() in ("y", "yes")

    def discard_reset(self) -> None:
        """Discard the last %reset, which can then no longer be undone."""
        before, self.reset = self.reset, None
        if before is not None:
            before.discard()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Let another program, such as an editor, draw here and read the keys."""
        with self.busy.paused("elsewhere") if self.busy else nullcontext(), self.display.asking():
            yield


def in_notebook() -> bool:
    """Check whether a Jupyter kernel runs us: there is no terminal, but a person can be asked."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and kernel.IPKernelApp.initialized()


def reader_for(terminal: Terminal, interpreter: OpenInterpreter) -> Prompt | LineReader:
    """Return the line editor, or plain lines if the terminal has none."""
    if terminal.plain or not terminal.tty.can_type:
        return LineReader(terminal.tty, interpreter.multi_line)
    from interpreter.frontends.terminal.prompt import Prompt

    return Prompt(terminal.tty, interpreter)


class LineReader:
    """Messages from a terminal without a line editor, or from a pipe."""

    def __init__(self, tty: Tty, marker: bool) -> None:
        self._tty, self._marker = tty, marker

    def when_ready(self, function: Callable[[], None]) -> None:
        function()

    def read(self, default: str = "") -> str:
        text = default + self._line("> " + default)
        while (self._marker and text.count('"""') % 2) or is_unfinished(text):
            text += "\n" + self._line()
        return text

    def _line(self, prompt: str = "") -> str:
        line = self._tty.read_line(prompt)
        if not line:
            raise EOFError
        return line.rstrip("\r\n")
