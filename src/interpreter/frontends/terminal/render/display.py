"""Chunks on a terminal: each goes to the view that shows its kind, and finished rows go to the scrollback."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from interpreter.console_text import PROSE, visible, visible_line
from interpreter.frontends.terminal.render import notes
from interpreter.frontends.terminal.render.ansi import clip, wrapped
from interpreter.frontends.terminal.render.code_block import CodeView, OutputView, shortened
from interpreter.frontends.terminal.render.images import Pictures
from interpreter.frontends.terminal.render.markdown import MarkdownView, ReasoningView
from interpreter.frontends.terminal.render.saved import save_image, save_text
from interpreter.frontends.terminal.render.screen import SPINNER_DELAY, STALL_DELAY, TICK, Screen, Status
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.runtimes import BUILT_IN

if TYPE_CHECKING:
    from interpreter.messages import Chunk

V = TypeVar("V", MarkdownView, CodeView, ReasoningView)
FRAME = 0.04  # seconds between two drawings, at least
_SHARE = 4  # drawing may take one part in so many of the time
_LONGEST_LINE = 40  # characters of the line that is running


class Display:
    """Shows a stream of chunks: one open view and a status line. The caller calls `tick` at each `deadline`."""

    def __init__(
        self,
        screen: Screen,
        theme: Theme,
        clock: Callable[[], float] = time.monotonic,
        pictures: Pictures | None = None,
    ) -> None:
        self.screen = screen
        self.theme = theme
        self.status = Status(theme)
        self.pictures = pictures or Pictures(color=theme.color)
        self.on_change: Callable[[], None] = lambda: None
        self.show_active_line = True
        self.fold_reasoning = True
        self.model = ""  # shown while it thinks
        self.languages = BUILT_IN  # those of the session, once one is shown
        self._clock = clock
        self._view: MarkdownView | CodeView | OutputView | ReasoningView | None = None
        self._commit: list[str] = []  # rows for the scrollback at the next drawing
        self._body: list[str] = []
        self._spaced = True  # whether the last row above is empty
        self._dirty = False
        self._next_draw = 0.0
        self._next_tick = 0.0
        # the current block
        self._began = 0.0
        self._language = ""
        self._code: list[str] = []
        self._call = ""  # the arguments of a tool call, as far as they have arrived
        self._text_form = ""  # of a display that comes in a better form next
        self._files: dict[str, Any] = {}  # what the block did to files, shown when it ends

    # -- chunks --------------------------------------------------------------------------------------------

    def show(self, chunk: Chunk) -> None:
        """Show one chunk of the stream."""
        kind = chunk["type"]
        if kind == "image" and "content" in chunk:
            self.pictures.prepare()  # outside the lock: it may query the terminal, whose answer bypasses the screen
        elif chunk.get("recipient", "user") != "user":
            return
        with self.screen.lock:
            if self._view:
                self._view.width = self.screen.width
            if chunk.get("end"):
                if kind == "tool_call":
                    from interpreter.tools.toolbox import shown_call

                    arguments, self._call, self._language, self._code = self._call, "", "", []
                    self.line(visible_line(shown_call(chunk.get("format", ""), arguments)), "code")
                if not isinstance(self._view, OutputView):  # attachments do not end a block's output
                    self._close_view()
            elif not chunk.get("start"):
                self._content(chunk)
            elif kind == "console":
                self._running()
            self._changed()

    def _content(self, chunk: Chunk) -> None:
        kind, form, content = chunk["type"], chunk.get("format", ""), chunk.get("content")
        self.status.quiet_since = self._clock()
        if self._text_form and not (kind == "code" and form == "html"):
            self._show_text_form()
        width, view = self.screen.width, self._view
        if kind == "message":
            if not isinstance(view, MarkdownView):
                view = self._open(MarkdownView(self.theme, width, self.languages))
            self._put(view.feed(str(content)))
        elif kind == "reasoning":
            if not isinstance(view, ReasoningView):
                view = self._open(ReasoningView(self.theme, width, self._clock, self.fold_reasoning))
            self._put(view.feed(str(content)))
        elif kind == "code" and chunk.get("role") != "computer" and "recipient" not in chunk:
            if not isinstance(view, CodeView):
                view = self._open(CodeView(form, self.theme, width, self.languages))
            self._language, self._code = form.lower(), view.source
            self._put(view.feed(str(content)))
        elif kind == "tool_call":
            self._call += str(content)
        elif kind == "console":
            self._console(chunk)
        elif kind in ("image", "code"):
            self._attachment(kind, form, str(content))
        elif kind == "decision":
            if line := notes.decision(form, chunk.get("content") or {}):
                self._put_note(line, "hint")
            if form in ("approved", "edited"):
                self._running()
        elif kind == "status":
            self._show_status(form, chunk.get("content") or {})
        elif kind == "confirmation":
            self._close_view()
            if card := notes.card(chunk):
                self.line(card)

    def _show_status(self, form: str, content: dict[str, Any]) -> None:
        now = self._clock()
        if form == "retry":
            self.status.begin(notes.retry_reason(content), now, seconds=float(content.get("seconds", 0)))
        elif form == "loading":
            self.status.begin("thinking" if content.get("done") else f"loading {content.get('model')}", now)
        elif form == "scanning":
            self.status.begin("scanning", now)
        elif form == "files":
            self._files = content
        elif not (note := notes.status_note(form, content)):
            return
        elif form == "call":
            self._among_output([self.theme.paint(clip(visible_line(note), self.screen.width - 1), "hint")])
        else:
            self.line(note, "error" if form == "scan" and content.get("asks") else "hint")

    # -- a running block -----------------------------------------------------------------------------------

    def running(self) -> None:
        """A block starts to run."""
        with self.screen.lock:
            self._running()
            self._changed()

    def _running(self) -> OutputView:
        if self.status.what not in ("running", "stopping"):
            self.status.begin("running", self._clock(), self._active(1) if len(self._code) == 1 else "")
        if not isinstance(self._view, OutputView):
            self._began = self._clock()
            self._close_view()
            self._view = OutputView(self.theme, self.screen.width)
        return self._view

    def _active(self, number: int) -> str:
        """The line of the block that runs now."""
        if not 0 < number <= len(self._code):
            return ""
        line = visible(self._code[number - 1].strip())
        line = line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + self.theme.symbol("more")
        return f"line {number}: {line}" if len(self._code) > 1 else line

    def _console(self, chunk: Chunk) -> None:
        output, content, mime = self._running(), chunk["content"], chunk.get("mime")
        if chunk.get("format") == "active_line" and content is None:
            elapsed, silent = self._clock() - self._began, output.empty
            self._put(output.close(chunk.get("truncated")))
            explained = self.languages.describe(self._language).explains_failures
            ending = notes.ending(dict(chunk), elapsed, silent, explained)
            files = self._take_files_note()
            if ending and not (files and ending == notes.NO_OUTPUT):
                good = chunk.get("ended", "done") in ("done", "background") and not chunk.get("exit_code")
                self._put([self.theme.paint(ending, "hint" if good else "error")])
            if files:
                self._put([self.theme.paint(files, "hint")])
            self._view = None
            self.status.begin("thinking", self._clock(), self.model)
        elif chunk.get("format") == "active_line":
            if self.show_active_line:
                self.status.detail = self._active(content)
        elif mime == "text/markdown":
            view = MarkdownView(self.theme, self.screen.width)
            self._among_output(view.feed(str(content)) + view.close())
        elif mime and chunk.get("recipient") == "user":
            self._among_output([self._file_row(str(content), mime)])
        elif mime:
            self._put(output.feed(str(content)))
        elif chunk.get("also"):
            self._text_form = str(content)
        elif chunk.get("ours"):
            rows = wrapped(visible(str(content).rstrip("\n"), PROSE), self.screen.width - 1)
            self._put(output.feed("".join(row + "\n" for row in rows), stderr=True, whole=str(content)))
        else:
            self._printed(output, str(content), chunk.get("stream") == "stderr")

    def _printed(self, output: OutputView, text: str, stderr: bool) -> None:
        found = shortened(text, self.theme) if stderr else None
        if found is None:
            self._put(output.feed(text, stderr))
            return
        short, cut = found
        self._put(output.feed(short, whole=text))
        if cut:
            path = self.theme.path(save_text(text, "traceback"))
            self._among_output([self.theme.paint(f"{self.theme.symbol('more')} whole traceback: {path}", "hint")])

    def _show_text_form(self) -> None:
        """No better form of a display has arrived: show its text."""
        text, self._text_form = self._text_form, ""
        self._printed(self._running(), text, stderr=False)

    def _attachment(self, kind: str, form: str, content: str) -> None:
        """A picture or a page: saved, and shown as well as this terminal can."""
        theme = self.theme
        if kind == "image":
            if form != "description" and (path := save_image(content, form)):
                caption = theme.paint(notes.saved_to("image", theme.path(path)), "hint")
                self._among_output(self.pictures.rows(path, *self.screen.size, caption))
            return
        from interpreter.frontends.terminal.render.tables import fitted, table_in

        table = table_in(content) if form == "html" else None
        if table is not None:
            rows, cut = fitted(table, self.screen.width - 1, theme)
            if cut:
                rows.append(theme.paint(f"Whole table: {theme.path(save_text(content, 'html'))}", "hint"))
        else:
            if self._text_form and not notes.is_mere_name(self._text_form):
                self._show_text_form()
            rows = [self._file_row(content, form)]
        self._text_form = ""
        self._among_output(rows)

    def _file_row(self, content: str, kind: str) -> str:
        """The path of something that only another program can show."""
        return self.theme.paint(notes.saved_to(kind, self.theme.path(save_text(content, kind))), "hint")

    def _among_output(self, rows: list[str]) -> None:
        """Rows of ours in the middle of a block's output."""
        if rows and isinstance(self._view, OutputView):
            self._view.empty = False
            line = self._view.take_line()
            rows = [line, *rows] if line else rows
        elif rows:
            self._close_view()
        self._put(rows)

    def picture(self, path: str) -> None:
        """A picture that the user attached or asked for."""
        self.show({"role": "computer", "type": "image", "format": "path", "content": path})
        self.flush()

    def tell_files(self) -> None:
        """Say what a block did to files, if its end is not shown."""
        if note := self._take_files_note():
            self.line(note)

    def _take_files_note(self) -> str:
        changed, self._files = self._files, {}
        return notes.files_note(changed, self.screen.width - 1, self.theme.symbol("dot"))

    # -- lines of ours, and turns --------------------------------------------------------------------------

    def line(self, text: str, style: str = "hint") -> None:
        """A line of ours between the parts of the stream."""
        with self.screen.lock:
            self._put_note(text, style)
            self.flush()

    def _put_note(self, text: str, style: str) -> None:
        self._close_view()
        rows = wrapped(visible(text, PROSE), self.screen.width - 1)
        self._put([self.theme.paint(row, style) for row in rows])

    def markdown(self, text: str) -> None:
        """A whole text of ours."""
        with self.screen.lock:
            self._put(self._open(MarkdownView(self.theme, self.screen.width)).feed(text))
            self._close_view()
            self.flush()

    def begin(self, what: str = "thinking") -> None:
        """A turn begins."""
        with self.screen.lock:
            self._spaced = False
            self.status.begin(what, self._clock(), self.model)
            self._changed()

    def finish(self) -> None:
        """The turn is over: close what is open, and add an empty line."""
        with self.screen.lock:
            if self._text_form:
                self._show_text_form()
            self.status.what = self.status.detail = self.status.typed = ""
            self._close_view()
            if not self._spaced:
                self._put([""])
            self.flush()

    def resumed(self) -> None:
        """A shell has had the terminal meanwhile: draw what is open again, below what it wrote."""
        with self.screen.lock:
            self.screen.forget()
            self.flush()

    def stopping(self) -> None:
        """The turn is being cancelled."""
        with self.screen.lock:
            self.status.begin("stopping", self._clock())
            self._changed()

    @contextmanager
    def asking(self) -> Iterator[str]:
        """The user is asked something at the cursor; gives the open line of the output."""
        status = self.status
        with self.screen.lock:
            what, detail, typed = status.what, status.detail, status.typed
            status.what = status.typed = ""
            begun = self._view.take_line() if isinstance(self._view, OutputView) else ""
            self._dirty = True
            self.flush()
            self.screen.forget()
        try:
            yield begun
        finally:
            with self.screen.lock:
                self._spaced = False
                status.typed = typed
                if what:
                    status.begin(what, self._clock(), detail)
                self._changed()

    def typed(self, text: str) -> None:
        """Show type-ahead."""
        with self.screen.lock:
            self.status.typed = text
            self.flush()

    # -- drawing -------------------------------------------------------------------------------------------

    def _open(self, view: V) -> V:
        self._close_view()
        if not self._spaced:
            self._put([""])
        self._view = view
        return view

    def _close_view(self) -> None:
        if self._view is not None:
            view, self._view = self._view, None
            self._put(view.close())
            self._dirty = True

    def _put(self, rows: list[str]) -> None:
        self._commit += rows
        if rows:
            self._spaced = not rows[-1]

    def _changed(self) -> None:
        self._dirty = True
        if self._clock() >= self._next_draw:
            self.flush()
        self.on_change()

    def flush(self) -> None:
        """Draw now."""
        with self.screen.lock:
            now = self._clock()
            if self._dirty:
                if isinstance(self._view, MarkdownView):
                    self._put(self._view.settle())
                self._body = self._view.open_rows() if self._view else []
            footer = self.status.rows(now, self._spinner_delay())
            commit, self._commit, self._dirty = self._commit, [], False
            self.screen.paint(commit, self._body, footer)
            done = self._clock()
            self._next_draw = done + max(FRAME, _SHARE * (done - now))
            self._next_tick = done + TICK

    def _spinner_delay(self) -> float:
        output = self._view if isinstance(self._view, OutputView) else None
        if not self._body or (output and not output.text.open):
            return SPINNER_DELAY
        # A line that a program has begun may be a question: the cursor stays at its end.
        return math.inf if output else STALL_DELAY

    def deadline(self) -> float | None:
        """When `tick` wants to be called next; None: not before something changes."""
        with self.screen.lock:
            if self._dirty or self._commit:
                return self._next_draw
            due = self.status.appears_at(self._spinner_delay())
            return None if due is None else max(due, self._next_tick)

    def tick(self) -> None:
        """Draw what is due."""
        with self.screen.lock:
            due = self.deadline()
            if due is not None and self._clock() >= due:
                self.flush()
