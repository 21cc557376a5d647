"""Chunks on a terminal: each goes to the view that shows its kind, and what is finished to the scrollback."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from interpreter.frontends.terminal.render import files, words
from interpreter.frontends.terminal.render.ansi import clip, visible
from interpreter.frontends.terminal.render.canvas import Canvas
from interpreter.frontends.terminal.render.code import CodeView
from interpreter.frontends.terminal.render.images import Pictures
from interpreter.frontends.terminal.render.markdown import MarkdownView
from interpreter.frontends.terminal.render.output import OutputView
from interpreter.frontends.terminal.render.reasoning import ReasoningView
from interpreter.frontends.terminal.render.rich_output import (
    file_row,
    picture_rows,
    table_rows,
    traceback_row,
)
from interpreter.frontends.terminal.render.screen import Screen
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.frontends.terminal.render.tracebacks import shortened
from interpreter.runtimes import BUILT_IN

if TYPE_CHECKING:
    from interpreter.messages import Chunk

_LONGEST_LINE = 40  # characters of the line that is running


class Display(Canvas):
    """Shows a stream of chunks."""

    def __init__(
        self,
        screen: Screen,
        theme: Theme,
        clock: Callable[[], float] = time.monotonic,
        pictures: Pictures | None = None,
    ) -> None:
        super().__init__(screen, theme, clock)
        self.pictures = pictures or Pictures(color=theme.color)
        self.show_active_line = True
        self.model = ""  # who is waited for while it thinks
        self.languages = BUILT_IN  # those of the session, once one is shown
        self._text_form = ""  # of a display that comes in a better form next
        self._files: dict[str, Any] = {}  # what the block did to files, told when it is over
        self.fold_reasoning = True
        self._began = 0.0  # when the block did
        self._language = ""
        self._code: list[str] = []
        self._call = ""  # the arguments of a tool call, as far as they have come

    # -- chunks --------------------------------------------------------------------------------------------

    def show(self, chunk: Chunk) -> None:
        """Show one chunk of the stream."""
        if chunk["type"] == "image" and "content" in chunk:
            self.pictures.prepare()  # the terminal may have to be asked, and its answer comes past the screen
        elif chunk.get("recipient", "user") != "user":
            return
        with self.screen.lock:
            if self._view:
                self._view.width = self.screen.width
            if chunk.get("end"):
                if chunk["type"] == "tool_call":
                    self._tool_call(chunk.get("format", ""))
                if self._kind != "output":  # what a block shows besides its output does not end it
                    self._close_view()
            elif not chunk.get("start"):
                self._content(chunk)
            elif chunk["type"] == "console":
                self._running()
            self._changed()

    def _content(self, chunk: Chunk) -> None:
        kind, content = chunk["type"], chunk.get("content")
        self.status.progress(self._clock())
        if self._text_form and not (kind == "code" and chunk.get("format") == "html"):
            self._plainly()
        if kind == "message":
            self._message(str(content))
        elif kind == "reasoning":
            self._reasoning(str(content))
        elif kind == "code" and chunk.get("role") != "computer" and "recipient" not in chunk:
            self._program(chunk.get("format", ""), str(content))
        elif kind == "tool_call":
            self._call += str(content)
        elif kind == "console":
            self._console(chunk)
        elif kind in ("image", "code"):
            self._attachment(chunk)
        elif kind == "decision":
            self._decision(chunk)
        elif kind == "status":
            self._news(chunk)
        elif kind == "confirmation":
            self._close_view()
            if card := words.card(chunk):
                self.line(card)

    def _message(self, content: str) -> None:
        if self._kind != "message":
            self._open("message", MarkdownView(self.theme, self.screen.width, self.languages))
        assert isinstance(self._view, MarkdownView)
        self._put(self._view.feed(content))

    def _reasoning(self, content: str) -> None:
        if self._kind != "reasoning":
            view = ReasoningView(self.theme, self.screen.width, self._clock, self.fold_reasoning)
            self._open("reasoning", view)
        assert isinstance(self._view, ReasoningView)
        self._put(self._view.feed(content))

    def _program(self, language: str, content: str) -> None:
        if self._kind != "code":
            self._open("code", CodeView(language, self.theme, self.screen.width, self.languages))
        assert isinstance(self._view, CodeView)
        self._language, self._code = language.lower(), self._view.source
        self._put(self._view.feed(content))

    def _tool_call(self, name: str) -> None:
        """A call in a line of its own, once it is whole; its result comes beneath."""
        arguments, self._call, self._language, self._code = self._call, "", "", []
        self.line(words.tool_call(name, arguments), "code")

    # -- a running block -----------------------------------------------------------------------------------

    def running(self) -> None:
        """A block starts to run."""
        with self.screen.lock:
            self._running()
            self._changed()

    def _running(self) -> None:
        if self.status.what not in ("running", "stopping"):
            self.status.begin("running", self._clock(), self._active(1) if len(self._code) == 1 else "")
        if self._output is None:
            self._began = self._clock()
            self._close_view()
            self._output = OutputView(self.theme, self.screen.width)
            self._view, self._kind = self._output, "output"

    def _console(self, chunk: Chunk) -> None:
        self._running()
        assert self._output
        if chunk.get("format") == "active_line":
            if chunk["content"] is None:
                self._block_over(chunk)
            elif self.show_active_line:
                self.status.detail = self._active(chunk["content"])
        elif chunk.get("mime"):
            self._rich_output(chunk)
        elif chunk.get("also"):
            self._text_form = str(chunk["content"])
        elif chunk.get("ours"):
            self._notice(str(chunk["content"]))
        else:
            self._printed(str(chunk["content"]), chunk.get("stream") == "stderr")

    def _printed(self, text: str, stderr: bool) -> None:
        assert self._output
        found = shortened(text, self.theme) if stderr else None
        if found is None:
            self._put(self._output.feed(text, stderr))
            return
        short, cut = found
        self._put(self._output.feed(short, whole=text))
        if cut:
            self._among_output([traceback_row(text, self.theme)])

    def _notice(self, text: str) -> None:
        """Words of ours among the output: their lines end between words."""
        assert self._output
        rows = words.wrapped(visible(text.rstrip("\n")), self.screen.width - 1)
        self._put(self._output.feed("".join(row + "\n" for row in rows), stderr=True, whole=text))

    def _plainly(self) -> None:
        """What was expected in a better form did not come in one."""
        text, self._text_form = self._text_form, ""
        self._running()
        self._printed(text, stderr=False)

    def _active(self, number: int) -> str:
        if not 0 < number <= len(self._code):
            return ""
        line = visible(self._code[number - 1].strip())
        line = line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + self.theme.symbol("more")
        return f"line {number}: {line}" if len(self._code) > 1 else line

    def _rich_output(self, chunk: Chunk) -> None:
        assert self._output
        mime, content = chunk["mime"], str(chunk["content"])
        if mime == "text/markdown":
            view = MarkdownView(self.theme, self.screen.width)
            self._put(self._output.take_open() + view.feed(content) + view.close())
        elif chunk.get("recipient") == "user":
            self._among_output([file_row(content, mime, self.theme)])
        else:
            self._put(self._output.feed(content))

    def _attachment(self, chunk: Chunk) -> None:
        """A picture or a page: saved, and shown as well as this terminal can."""
        content, kind = str(chunk["content"]), chunk.get("format", "")
        if chunk["type"] == "image":
            self._among_output(picture_rows(content, kind, self.pictures, self.theme, *self.screen.size))
            return
        rows = table_rows(content, self.theme, self.screen.width) if kind == "html" else None
        if rows is None and self._text_form and not words.is_mere_name(self._text_form):
            self._plainly()
        self._text_form = ""
        self._among_output(rows or [file_row(content, kind, self.theme)])

    def _among_output(self, rows: list[str]) -> None:
        """Rows of ours in the middle of a block's output."""
        if self._output and rows:
            self._output.empty = False
            rows = self._output.take_open() + rows
        elif rows:
            self._close_view()
        self._put(rows)

    def picture(self, path: str) -> None:
        """A picture of the user's, or one that somebody asked to see."""
        self.show({"role": "computer", "type": "image", "format": "path", "content": path})
        self.flush()

    def _block_over(self, chunk: Chunk) -> None:
        assert self._output
        elapsed = self._clock() - self._began
        silent = self._output.empty
        self._put(self._output.close(chunk.get("truncated")))
        explained = self.languages.describe(self._language).explains_failures
        ending = words.ending(dict(chunk), elapsed, silent, explained)
        files_line = self._taken_files()
        if ending and not (files_line and ending == words.SILENT):
            good = chunk.get("ended", "done") in ("done", "background") and not chunk.get("exit_code")
            self._put([self.theme.paint(ending, "hint" if good else "error")])
        if files_line:
            self._put([self.theme.paint(files_line, "hint")])
        self._output, self._view, self._kind = None, None, ""
        self.status.begin("thinking", self._clock(), self.model)

    def tell_files(self) -> None:
        """What a block did to files whose end is not shown."""
        if line := self._taken_files():
            self.line(line)

    def _taken_files(self) -> str:
        changed, self._files = self._files, {}
        return files.line(changed, self.screen.width - 1, self.theme.symbol("dot"))

    # -- words of ours -------------------------------------------------------------------------------------

    def _decision(self, chunk: Chunk) -> None:
        line = words.decision(chunk.get("format", ""), chunk.get("content") or {})
        if line:
            self._close_view()
            self._put([self.theme.paint(row, "hint") for row in words.wrapped(visible(line), self.screen.width - 1)])
        if chunk.get("format") in ("approved", "edited"):
            self._running()

    def _news(self, chunk: Chunk) -> None:
        content: dict[str, Any] = chunk.get("content") or {}
        if chunk.get("format") == "retry":
            self.status.countdown(words.retry(content), float(content.get("seconds", 0)), self._clock())
        elif chunk.get("format") == "loading":
            what = "thinking" if content.get("done") else f"loading {content.get('model')}"
            self.status.begin(what, self._clock())
        elif chunk.get("format") == "fallback":
            self.line(words.fallback(content))
        elif chunk.get("format") == "compacted":
            self.line(words.compacted(content))
        elif chunk.get("format") == "notice":
            self.line(str(content.get("text", "")))
        elif chunk.get("format") == "redacted":
            self.line(words.redacted(content))
        elif chunk.get("format") == "scanning":
            self.status.begin("scanning", self._clock())
        elif chunk.get("format") == "scan":
            self.line(words.scanned(content), "error" if content.get("asks") else "hint")
        elif chunk.get("format") == "files":
            self._files = content
        elif chunk.get("format") == "call":
            if told := words.call(content):
                self._among_output([self.theme.paint(clip(visible(told), self.screen.width - 1), "hint")])
        elif chunk.get("format") in ("control", "stopped"):
            self.line(words.control(content) if chunk["format"] == "control" else words.stopped(content))

    def line(self, text: str, style: str = "hint") -> None:
        """Words of ours, between what the stream says."""
        with self.screen.lock:
            self._close_view()
            rows = words.wrapped(visible(text), self.screen.width - 1)
            self._put([self.theme.paint(row, style) for row in rows])
            self.flush()

    def markdown(self, text: str) -> None:
        """A whole text of ours."""
        with self.screen.lock:
            self._open("", MarkdownView(self.theme, self.screen.width))
            assert isinstance(self._view, MarkdownView)
            self._put(self._view.feed(text))
            self._close_view()
            self.flush()

    # -- turns ---------------------------------------------------------------------------------------------

    def begin(self, what: str = "thinking") -> None:
        """A turn begins."""
        with self.screen.lock:
            self._spaced = False
            self.status.begin(what, self._clock(), self.model)
            self._changed()

    def finish(self) -> None:
        """The turn is over: nothing of it stays open, and an empty line follows."""
        with self.screen.lock:
            self.status.stop()
            self.status.typed = ""
            if self._text_form:
                self._plainly()
            self._close_view()
            if not self._spaced:
                self._put([""])
            self.flush()

    def resumed(self) -> None:
        """A shell has had the terminal meanwhile: what was open is drawn anew, below what it wrote."""
        with self.screen.lock:
            self.screen.forget()
            self.flush()

    def stopping(self) -> None:
        """The turn was told to end."""
        with self.screen.lock:
            self.status.begin("stopping", self._clock())
            self._changed()

    @contextmanager
    def asking(self) -> Iterator[str]:
        """The user is asked something at the cursor; gives what stands on the open line of the output."""
        with self.screen.lock:
            what, self.status.what = self.status.what, ""
            detail = self.status.detail
            typed, self.status.typed = self.status.typed, ""
            begun = self._output.take_line() if self._output else ""
            self._dirty = True
            self.flush()
            self.screen.forget()
        try:
            yield begun
        finally:
            with self.screen.lock:
                self._spaced = False
                self.status.typed = typed
                if what:
                    self.status.begin(what, self._clock(), detail)
                self._changed()

    def typed(self, text: str) -> None:
        """What is being typed for later."""
        with self.screen.lock:
            self.status.typed = text
            self._draw(self._clock())
