"""Chunks on a terminal: each goes to the view that shows its kind, and finished rows go to the scrollback.

A view turns text into rows: what its `feed` and `close` return is final, and its `open_rows` may still change. Those
are redrawn at the bottom of the screen, above a status line.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from interpreter.console_text import PROSE, visible, visible_line
from interpreter.frontends.terminal.render import notes
from interpreter.frontends.terminal.render.ansi import cells, clip, wrapped
from interpreter.frontends.terminal.render.code_block import CodeView, OutputView, shortened
from interpreter.frontends.terminal.render.markdown import MarkdownView, ReasoningView
from interpreter.frontends.terminal.render.saved import save_image, save_text
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.messages import Chunk
from interpreter.runtimes import BUILT_IN

V = TypeVar("V", MarkdownView, CodeView, ReasoningView)
FRAME_INTERVAL = 0.04  # seconds between two drawings, at least
_DRAW_BUDGET = 4  # drawing may take at most one part in this many of the time
_MAX_LINE_LENGTH = 40  # characters of the line that is running
SPINNER_DELAY = 0.3  # seconds of silence before the spinner shows
STALL_DELAY = 1.0  # the same if a text is already on the screen
TICK_INTERVAL = 0.125
_HINT_AFTER = 5.0
_SPINNERS = ("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\")  # with and without Unicode


class TerminalDisplay:
    """Shows a stream of chunks: one open view and a status line. The caller calls `tick` at each `deadline`."""

    def __init__(
        self,
        screen: TerminalScreen,
        theme: Theme,
        clock: Callable[[], float] = time.monotonic,
        pictures: Any = None,
    ) -> None:
        self.screen = screen
        self.theme = theme
        self.status = Status(theme)
        self.pictures = pictures  # a `frontends.pictures.images.Pictures`, if this installation has it
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
        self._call = ""  # the arguments of a tool call that have arrived so far
        self._text_form = ""  # of a display that comes in a better form next
        self._files: dict[str, Any] = {}  # what the block did to files, shown when it ends

    # -- chunks --------------------------------------------------------------------------------------------

    def show(self, chunk: Chunk) -> None:
        kind = chunk["type"]
        if kind == "image" and "content" in chunk:
            if self.pictures is not None:
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
        match kind:
            case "message":
                if not isinstance(view, MarkdownView):
                    view = self._open(MarkdownView(self.theme, width, self.languages))
                self._put(view.feed(str(content)))
            case "reasoning":
                if not isinstance(view, ReasoningView):
                    view = self._open(ReasoningView(self.theme, width, self._clock, self.fold_reasoning))
                self._put(view.feed(str(content)))
            case "code" if chunk.get("role") != "computer" and "recipient" not in chunk:
                if not isinstance(view, CodeView):
                    view = self._open(CodeView(form, self.theme, width, self.languages))
                self._language, self._code = form.lower(), view.source
                self._put(view.feed(str(content)))
            case "tool_call":
                self._call += str(content)
            case "console":
                self._console(chunk)
            case "image" | "code":
                self._attachment(kind, form, str(content))
            case "decision":
                if line := notes.decision(form, chunk.get("content") or {}):
                    self.line(line)
                if form in ("approved", "edited"):
                    self._running()
            case "status":
                self._show_status(form, chunk.get("content") or {})
            case "confirmation":
                self._close_view()
                for line in notes.card(chunk).split("\n"):
                    first, *rest = wrapped(line, width - 1) or [""]
                    word, space, remainder = first.partition(" ")  # the action in bold: colour alone is not enough
                    self._put([self.theme.paint(word, "column") + space + remainder, *rest] if line else [])
                self._put(notes.card_diff(chunk.get("diff", ""), width, self.theme))
                self.flush()

    def _show_status(self, form: str, content: dict[str, Any]) -> None:
        now, note = self._clock(), notes.status_note(form, content)
        match form:
            case "retry":
                self.status.begin(notes.retry_reason(content), now, seconds=float(content.get("seconds", 0)))
            case "loading":
                self.status.begin("thinking" if content.get("done") else f"loading {content.get('model')}", now)
            case "reading":
                done, total = content.get("done"), content.get("total")
                if isinstance(done, int) and isinstance(total, int) and 0 <= done <= total and total:
                    self.status.detail = f"reading the prompt: {100 * done // total}% of {total:,} tokens"
            case "scanning":
                self.status.begin("scanning", now)
            case "preparing":
                self.status.what, self.status.detail = content.get("what", "running"), content.get("progress", "")
            case "installing" if "packages" in content:
                self.status.begin(f"installing {', '.join(content['packages'])}", now)
            case "installing":
                self.status.detail = clip(visible_line(str(content.get("step"))), self.screen.width - 30)
            case "files":
                self._files = content
            case "call" if note:
                self._among_output([self.theme.paint(clip(visible_line(note), self.screen.width - 1), "hint")])
            case _ if note:
                self.line(note, "error" if form == "scan" and content.get("asks") else "hint")

    # -- a running block -----------------------------------------------------------------------------------

    def running(self) -> None:
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
        if not 0 < number <= len(self._code):
            return ""
        line = visible(self._code[number - 1].strip())
        line = line if len(line) <= _MAX_LINE_LENGTH else line[:_MAX_LINE_LENGTH] + self.theme.symbol("more")
        return f"line {number}: {line}" if len(self._code) > 1 else line

    def _console(self, chunk: Chunk) -> None:
        output, content = self._running(), chunk["content"]
        match chunk:
            case {"format": "active_line", "content": None}:
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
            case {"format": "active_line"}:
                if self.show_active_line:
                    self.status.detail = self._active(content)
            case {"mime": "text/markdown"}:
                view = MarkdownView(self.theme, self.screen.width)
                self._among_output(view.feed(str(content)) + view.close())
            case {"mime": mime, "recipient": "user"} if mime:
                self._among_output([self._file_row(str(content), mime)])
            case {"mime": mime} if mime:
                self._put(output.feed(str(content)))
            case {"also": _}:
                self._text_form = str(content)
            case {"ours": True}:
                rows = wrapped(visible(str(content).rstrip("\n"), PROSE), self.screen.width - 1)
                self._put(output.feed("".join(row + "\n" for row in rows), stderr=True, whole=str(content)))
            case _:
                self._printed(output, str(content), chunk.get("stream") == "stderr")

    def _printed(self, output: OutputView, text: str, stderr: bool) -> None:
        traceback = shortened(text, self.theme) if stderr else None
        if traceback is None:
            self._put(output.feed(text, stderr))
            return
        short, cut = traceback
        self._put(output.feed(short, whole=text))
        if cut:
            path = self.theme.path(save_text(text, "traceback"))
            self._among_output([self.theme.paint(f"{self.theme.symbol('more')} whole traceback: {path}", "hint")])

    def _show_text_form(self) -> None:
        """Show the text form of a display, because no better form has arrived."""
        text, self._text_form = self._text_form, ""
        self._printed(self._running(), text, stderr=False)

    def _attachment(self, kind: str, form: str, content: str) -> None:
        """Save a picture or a page, and show it as well as this terminal can."""
        theme = self.theme
        if kind == "image":
            if form != "description" and (path := save_image(content, form)):
                caption = theme.paint(notes.saved_to("image", theme.path(path)), "hint")
                rows = [caption]
                if self.pictures is not None:
                    rows = self.pictures.rows(path, *self.screen.size, caption, theme)
                self._among_output(rows)
            return
        from interpreter.frontends.terminal.render.tables import fitted, table_in

        table = table_in(content) if form == "html" else None
        if table is not None:
            rows, cut = fitted(table, self.screen.width - 1, theme)
            if cut:
                saved = f"{table.what_is_saved.capitalize()}: {theme.path(save_text(content, 'html'))}"
                rows.append(theme.paint(saved, "hint"))
        else:
            if self._text_form and not notes.is_mere_name(self._text_form):
                self._show_text_form()
            rows = [self._file_row(content, form)]
        self._text_form = ""
        self._among_output(rows)

    def _file_row(self, content: str, kind: str) -> str:
        """Save what only another program can show, and return a row with its path."""
        return self.theme.paint(notes.saved_to(kind, self.theme.path(save_text(content, kind))), "hint")

    def _among_output(self, rows: list[str]) -> None:
        """Insert our own rows into a block's output."""
        if rows and isinstance(self._view, OutputView):
            self._view.empty = False
            line = self._view.take_line()
            rows = [line, *rows] if line else rows
        elif rows:
            self._close_view()
        self._put(rows)

    def show_file_changes(self) -> None:
        """Say what a block did to files, if its end is not shown."""
        if note := self._take_files_note():
            self.line(note)

    def _take_files_note(self) -> str:
        changed, self._files = self._files, {}
        return notes.files_note(changed, self.screen.width - 1, self.theme.symbol("dot"))

    # -- lines of ours, and turns --------------------------------------------------------------------------

    def line(self, text: str, style: str = "hint") -> None:
        """Show our own line between the parts of the stream."""
        with self.screen.lock:
            self._close_view()
            rows = wrapped(visible(text, PROSE), self.screen.width - 1)
            self._put([self.theme.paint(row, style) for row in rows])
            self.flush()

    def markdown(self, text: str) -> None:
        with self.screen.lock:
            self._put(self._open(MarkdownView(self.theme, self.screen.width)).feed(text))
            self._close_view()
            self.flush()

    def begin(self, what: str = "thinking") -> None:
        with self.screen.lock:
            self._spaced = False
            self.status.begin(what, self._clock(), self.model)
            self._changed()

    def finish(self) -> None:
        """End the turn: close what is open, and add an empty line."""
        with self.screen.lock:
            if self._text_form:
                self._show_text_form()
            self.status.what = self.status.detail = self.status.typed = ""
            self._close_view()
            if not self._spaced:
                self._put([""])
            self.flush()

    def resumed(self) -> None:
        """Draw what is open again, after a shell has used the terminal and below what it wrote."""
        with self.screen.lock:
            self.screen.forget()
            self.flush()

    def stopping(self) -> None:
        with self.screen.lock:
            self.status.begin("stopping", self._clock())
            self._changed()

    @contextmanager
    def asking(self) -> Iterator[str]:
        """Prepare for a question at the cursor; yields the open line of the output."""
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
            self._next_draw = done + max(FRAME_INTERVAL, _DRAW_BUDGET * (done - now))
            self._next_tick = done + TICK_INTERVAL

    def _spinner_delay(self) -> float:
        output = self._view if isinstance(self._view, OutputView) else None
        if not self._body or (output and not output.text.open):
            return SPINNER_DELAY
        # A line that a program has begun may be a question: the cursor stays at its end.
        return math.inf if output else STALL_DELAY

    def deadline(self) -> float | None:
        """Return the time for the next call of `tick`; None if nothing is due before something changes."""
        with self.screen.lock:
            if self._dirty or self._commit:
                return self._next_draw
            due = self.status.appears_at(self._spinner_delay())
            return None if due is None else max(due, self._next_tick)

    def tick(self) -> None:
        with self.screen.lock:
            due = self.deadline()
            if due is not None and self._clock() >= due:
                self.flush()


class TerminalScreen:
    """Draws on one terminal. The display holds the lock while it draws."""

    def __init__(self, write: Callable[[str], object], size: Callable[[], tuple[int, int]]) -> None:
        self._write = write
        self._size = size
        self._rows: list[str] = []  # what is drawn below the scrollback
        self._width = 0  # of the screen when they were drawn
        self.lock = threading.RLock()

    @property
    def width(self) -> int:
        return max(self._size()[0], 4)

    @property
    def size(self) -> tuple[int, int]:
        columns, lines = self._size()
        return max(columns, 4), lines

    def paint(self, commit: Sequence[str] = (), body: Sequence[str] = (), footer: Sequence[str] = ()) -> None:
        """Put `commit` into the scrollback and make body and footer the open rows, in one write.

        `body` is what is still open, `footer` a status line below it.
        """
        width, lines = self.size
        room = max(lines - 1 - len(footer), 1)
        open_rows = [clip(row, width - 1) for row in [*body[-room:], *footer]]
        old, target = self._rows, [*commit, *open_rows]
        same = next((at for at, (one, other) in enumerate(zip(old, target, strict=False)) if one != other), None)
        same = min(len(old), len(target)) if same is None else same
        height = len(old)
        if old and self._width != width:
            same = 0
            # Most terminals wrap old lines again when their width changes; the few that don't are listed.
            if "XTERM_VERSION" not in os.environ and os.environ.get("TERM", "") not in ("linux", "vt100", "vt220"):
                height = sum(max(1, -(-cells(row) // width)) for row in old)
            height = min(height, lines)
        elif same < len(old) and same == len(target) and open_rows:
            same -= 1  # the cursor belongs at the end of the last row, so that row is written again
        rest = target[same:]
        text = "\r\n".join(rest) + ("\r\n" if rest and not open_rows else "")
        if same < len(old):
            up = height - 1 - same
            text = (f"\x1b[{up}A" if up > 0 else "") + "\r\x1b[J" + text
        elif old and (rest or not open_rows):
            text = "\r\n" + text
        self._rows, self._width = open_rows, width
        if text:
            self._write(text)

    def forget(self) -> None:
        """Leave the open rows as they are, because another program writes below them."""
        self._rows = []


class Status:
    """The line at the bottom during a turn: a spinner, the current activity and its duration, and type-ahead."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self.what = ""  # thinking, running, ...; empty if idle
        self.detail = ""
        self.typed = ""
        self._since = 0.0
        self.quiet_since = 0.0  # when something was shown last: the spinner waits after that
        self._until: float | None = None  # end of a countdown

    def begin(self, what: str, now: float, detail: str = "", seconds: float | None = None) -> None:
        """Show a new activity; with `seconds`, a countdown."""
        self.what, self.detail = what, detail
        self._since = self.quiet_since = now
        self._until = None if seconds is None else now + seconds

    def appears_at(self, delay: float) -> float | None:
        """Return when the spinner is due; None if idle."""
        if not self.what or delay == math.inf:
            return None
        return self.quiet_since + delay if self._until is None else self._since

    def rows(self, now: float, delay: float) -> list[str]:
        theme, parts = self._theme, []
        due = self.appears_at(delay)
        if due is not None and now >= due - 0.001:
            elapsed, dot = now - self._since, f" {theme.symbol('dot')} "
            text = f"{self.what} {notes.duration(elapsed, 0)}"
            if self._until is not None:
                text = f"{self.what}, trying again in {notes.duration(max(0, round(self._until - now)), 0)}"
            if self.detail:
                text += dot + self.detail
            if elapsed > _HINT_AFTER and not self.typed:
                text += f"{dot}Ctrl-C stops"
                text += ", Ctrl-B to the background" if self.what == "running" else ""
            frames = _SPINNERS[0 if theme.unicode else 1]
            frame = theme.paint(frames[int(now / TICK_INTERVAL) % len(frames)], "spinner")
            parts.append(frame + " " + theme.paint(visible(text).replace("\n", " "), "hint"))
        if self.typed:
            typed = visible(self.typed, PROSE).replace("\n", " ")  # a paste can have anything in it
            parts.append(theme.paint(f"{theme.symbol('typed')} {typed}", "typed"))
        return ["  ".join(parts)] if parts else []
