"""One person's terminal: where things are shown, typed and asked."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Protocol

from interpreter.app.own_blocks import is_unfinished
from interpreter.frontends.interrupts import Interrupts
from interpreter.frontends.terminal.keyboard import Keyboard, TypeAhead
from interpreter.frontends.terminal.render.ansi import wrapped
from interpreter.frontends.terminal.render.plain import PlainDisplay
from interpreter.frontends.terminal.tty import BACKGROUND, Tty, answers_questions, interview, read_line, time_limit

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.app.checkpoints import Forks
    from interpreter.errors import InterpreterError
    from interpreter.frontends.terminal.render.display import Display
    from interpreter.messages import Chunk


QUIET = 0.8  # seconds without a key before a question may appear


class Terminal:
    """What is typed ahead lives as long as this does; displays follow the settings."""

    def __init__(self, plain: bool = False, tty: Tty | None = None) -> None:
        self.tty = tty or Tty()
        self.plain = plain or not self.tty.can_draw
        self._wanted_plain = plain
        self.typed = TypeAhead()
        self.unanswered = False  # a question came up and nobody was there
        self.interrupted = False  # the last turn was ended by Ctrl-C
        self.forks: Forks | None = None  # where the user has forked
        self.shown_rules: set[str] = set()  # of projects, that the user was asked about
        self.left = False  # the user has said that it is enough
        self.failed = False  # a turn ended with an error
        self.problem: InterpreterError | None = None  # the error, where it is one of ours
        self.busy: Busy | None = None
        self._display: Display | PlainDisplay | None = None
        self._mute = not answers_questions(os.environ)
        self._background: str | None = None  # what has been found out about it

    @property
    def display(self) -> Display | PlainDisplay:
        if self._display is None:
            self._display = self._written() if self.plain else self._drawn()
        return self._display

    @property
    def colors(self) -> bool:
        """Whether what programs print may have colours here."""
        return self._colors_anyway if self.plain else self.tty.color

    @property
    def _colors_anyway(self) -> bool:
        return self.tty.forced_color and not self._wanted_plain

    def _written(self) -> PlainDisplay:
        return PlainDisplay(self.tty.write, self._colors_anyway, begun=self.tty.can_show)

    def _drawn(self) -> Display:
        from interpreter.frontends.terminal.render.display import Display
        from interpreter.frontends.terminal.render.images import Pictures
        from interpreter.frontends.terminal.render.screen import Screen
        from interpreter.frontends.terminal.render.theme import Theme, color_depth, has_links

        theme = Theme(self.tty.color, self.tty.unicode, color_depth(os.environ), has_links(os.environ))
        pictures = Pictures(self.learn, self.tty.cell, color=self.tty.color)
        return Display(Screen(self.tty.write, self.tty.size), theme, pictures=pictures)

    def show_pictures(self, interpreter: OpenInterpreter, paths: list[str]) -> None:
        """Pictures that the user attached; not where nothing but their names could be shown."""
        if paths and not self.plain:
            self.follow(interpreter)
            for path in paths:
                self.display.picture(path)

    def follow(self, interpreter: OpenInterpreter) -> None:
        """Show things as the settings say."""
        display = self.display
        display.show_active_line = interpreter.highlight_active_line
        display.languages = interpreter.computer.registry
        if isinstance(display, PlainDisplay):
            return
        display.pictures.wanted = interpreter.terminal_images
        display.model = interpreter.llm.model
        display.theme.set_background(self._found_background() if interpreter.theme == "auto" else interpreter.theme)

    def _found_background(self) -> str:
        """Light, dark, or empty if neither the environment nor the terminal tells."""
        from interpreter.frontends.terminal.render.theme import background_by_answer, background_by_environment

        if self._background is None:
            self._background = background_by_environment(os.environ)
            if not self._background and self.tty.color:
                self._background = "".join(background_by_answer(answer) for answer in self.learn(BACKGROUND))
        return self._background

    def learn(self, questions: str) -> list[bytes]:
        """What the terminal itself answers; keys that are typed meanwhile are kept."""
        in_charge = threading.current_thread() is threading.main_thread()
        if self._mute or not in_charge or not self.tty.in_foreground:
            return []
        limit = time_limit(os.environ)
        if self.busy is not None:
            with self.busy.keys_lent():
                answers, typed = interview(self.tty, questions, limit)
            self.busy.keyboard.call(partial(self.busy.keyboard.take, typed))
        else:
            with self.tty.keys(marks=False):
                answers, typed = interview(self.tty, questions, limit)
            self.typed.feed(typed)
        self._mute = not answers  # then it is never asked again
        return answers

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

        pause = self.busy.paused(guarded) if self.busy else nullcontext()
        with pause, self.display.asking() as begun:
            if guarded:
                self.tty.forget_typed()
                question = self._fitting(question)
            return ask(self, begun + question, password)

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Another program draws here and reads the keys, such as an editor."""
        with self.busy.lent() if self.busy else nullcontext(), self.display.asking():
            yield

    def _fitting(self, question: str) -> str:
        """A question of ours, whose lines end between words."""
        width = self.tty.size()[0]
        if len(question) < width or "\x1b" in question:
            return question
        return "\n".join(wrapped(question.rstrip(), width - 2)) + " "

    def confirm(self, question: str) -> bool:
        """Whether the user says yes; nobody there is a no."""
        try:
            answer = self.ask(f"{question} (y/n) ", guarded=True)
        except KeyboardInterrupt:
            return False
        return answer is not None and answer.strip().lower() in ("y", "yes")


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
        terminal.follow(self._interpreter)
        outer, terminal.busy = terminal.busy, self
        self.keyboard.on_ctrl_b = self._detach
        self.keyboard.on_typed = terminal.display.typed
        display = terminal.display
        before = display.on_change
        display.on_change = self.keyboard.reschedule
        self.keyboard.start()
        try:
            with self.interrupts.taken(), self._modes:
                self._listen()
                terminal.display.typed(terminal.typed.shown)
                yield self
        finally:
            display.on_change = before  # what is asked between turns must not wake a keyboard that is gone
            self.keyboard.stop()
            terminal.busy = outer

    @contextmanager
    def paused(self, guarded: bool) -> Iterator[None]:
        """Somebody else reads the keys."""
        if guarded and self._takes_keys:
            self.keyboard.wait_until_quiet(QUIET)
        with self._deaf(), self.interrupts.asking():
            yield

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Another program has the whole terminal."""
        with self._deaf(), self.interrupts.elsewhere():
            yield

    @contextmanager
    def _deaf(self) -> Iterator[None]:
        self.keyboard.listen(False)
        self._modes.close()
        try:
            yield
        finally:
            self._listen()

    @contextmanager
    def keys_lent(self) -> Iterator[None]:
        """Somebody else reads what comes from the terminal, in the same mode."""
        self.keyboard.listen(False)
        try:
            yield
        finally:
            self.keyboard.listen(True)

    def _listen(self) -> None:
        if self._takes_keys:
            self._modes.enter_context(self._terminal.tty.keys(marks=not self._terminal.plain))
            self.keyboard.listen(True)

    def follow(self, chunk: Chunk) -> None:
        """Where keys go depends on what is running."""
        if chunk["type"] == "code" and chunk.get("end") and chunk.get("role") == "assistant":
            if self._interpreter.auto_run and self._interpreter.safe_mode == "off":
                self.block_runs(chunk.get("format", ""))
        elif chunk["type"] == "status" and chunk.get("format") == "scan":
            if self._interpreter.auto_run and not chunk["content"]["asks"]:
                self.block_runs(chunk["content"]["language"])
        elif "ended" in chunk or (chunk.get("format") == "active_line" and chunk.get("content") is None):
            self.keyboard.to_block = None

    def block_runs(self, language: str | None) -> None:
        """A block begins; None: in any language, and one that does not want keys drops them."""
        self._terminal.display.running()
        if language is None or self._interpreter.computer.registry.describe(language).takes_keys:
            self.keyboard.to_block = self._interpreter.computer.send_keys

    def _resumed(self) -> None:
        self._terminal.tty.keys_again()
        self._terminal.display.resumed()

    def _detach(self) -> None:
        self._interpreter.computer.detach()

    def _cancel(self) -> None:
        self._terminal.display.stopping()
        self._interpreter.cancel()


def ask(terminal: Terminal, question: str, password: bool = False) -> str | None:
    """The answer, or None at the end of input; KeyboardInterrupt for Ctrl-C."""
    if in_notebook():
        return _ask_in_notebook(question, password)
    if terminal.tty.can_type and not terminal.plain:
        from interpreter.frontends.terminal.prompt import ask_line

        return ask_line(terminal.tty, question, password)
    line = _read_hidden(terminal, question) if password else _read(terminal, question)
    if line is None:
        terminal.unanswered = terminal.unanswered or not terminal.tty.can_type
        terminal.tty.write("\n")
    return line


def _read(terminal: Terminal, question: str) -> str | None:
    terminal.tty.write(question)
    line = read_line(terminal.tty)
    if not line:
        return None
    if terminal.tty.can_type and select.select([terminal.tty.stdin], [], [], 0)[0]:
        # More than a line at once was pasted, not typed: it is no answer to this question.
        terminal.tty.forget_typed()
        return "\n"
    return line.rstrip("\r\n")


def _read_hidden(terminal: Terminal, question: str) -> str | None:
    if not terminal.tty.can_type:
        return _read(terminal, question)
    with terminal.tty.hidden():
        terminal.tty.write(question)
        line = read_line(terminal.tty)
    terminal.tty.write("\n")
    return line.rstrip("\r\n") if line else None


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs us: there is no terminal, but there is somebody to ask."""
    kernel = sys.modules.get("ipykernel.kernelapp")
    return kernel is not None and kernel.IPKernelApp.initialized()


def _ask_in_notebook(question: str, password: bool) -> str | None:
    try:
        if password:
            from getpass import getpass

            return getpass(question)
        return input(question)
    except (EOFError, NotImplementedError):  # a notebook that runs without anybody
        return None


class Reader(Protocol):
    """Reads messages one by one."""

    def when_ready(self, function: Callable[[], None]) -> None:
        """Have something done once, when the user can type."""

    def read(self, default: str = "") -> str:
        """A message; EOFError at the end, KeyboardInterrupt for Ctrl-C."""


def reader_for(terminal: Terminal, interpreter: OpenInterpreter) -> Reader:
    """What reads the messages here."""
    if terminal.plain or not terminal.tty.can_type:
        return LineReader(terminal, interpreter.multi_line)
    from interpreter.frontends.terminal.prompt import Prompt, Suggestions, facts

    def status() -> list[str]:
        return facts(interpreter) if interpreter.status_line else []

    completer = Suggestions(interpreter)
    return Prompt(terminal.tty, interpreter.get_oi_dir(), interpreter.multi_line, completer, status)


class LineReader:
    """Messages from a terminal without a line editor, or from something that is none."""

    def __init__(self, terminal: Terminal, marker: bool) -> None:
        self._terminal, self._marker = terminal, marker

    def when_ready(self, function: Callable[[], None]) -> None:
        function()

    def read(self, default: str = "") -> str:
        self._terminal.tty.write("> " + default)
        text = default + self._line()
        while (self._marker and text.count('"""') % 2) or is_unfinished(text):
            text += "\n" + self._line()
        return text

    def _line(self) -> str:
        line = read_line(self._terminal.tty)
        if not line:
            raise EOFError
        return line.rstrip("\r\n")
