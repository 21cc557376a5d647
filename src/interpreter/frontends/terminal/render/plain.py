"""Plain text, in order and complete: for pipes, screen readers, and terminals that can do no more."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from interpreter.console_text import PROSE, visible, visible_line
from interpreter.frontends.terminal.render import notes
from interpreter.frontends.terminal.render.ansi import ProgramText, without_styles
from interpreter.frontends.terminal.render.saved import png_size, save_image, save_text
from interpreter.host import files
from interpreter.leaves import exists, load
from interpreter.messages import Chunk
from interpreter.runtimes import BUILT_IN

_WIDTH = 120  # of the line about changed files
_CHART, _CHART_SIZE = "interpreter.frontends.pictures.charts:chart_of", (79, 24)
_MAX_CHART_BYTES = 200_000


class PlainDisplay:
    """Writes each chunk as it comes; nothing is ever drawn twice."""

    def __init__(self, write: Callable[[str], object], color: bool = False, begun: bool = True) -> None:
        self._out = write
        self._is_piped = not begun
        self._begun = begun  # whether something is above; piped output has no empty line on top
        self._color = color  # whether a program's own colours are passed on
        self._text_form = ""  # of a display that also comes as a page
        self._kind = self._before = ""
        self._line_begun = False
        self._program: ProgramText | None = None
        self._silent = True
        self._language = ""
        self.draws_charts = False  # with plain characters; a pipe only gets the path
        self.languages = BUILT_IN  # those of the session, once one is shown
        self._call = ""  # the arguments of a tool call that have arrived so far
        self._files = ""  # what the block did to files, shown when it ends
        self.on_change: Callable[[], None] = lambda: None  # nothing is drawn later

    # -- chunks --------------------------------------------------------------------------------------------

    def show(self, chunk: Chunk) -> None:
        kind, form, content = chunk["type"], chunk.get("format", ""), str(chunk.get("content"))
        details = chunk.get("content") or {}
        if (chunk.get("recipient", "user") != "user" and kind != "image") or chunk.get("start"):
            return
        match kind:
            case "tool_call" if chunk.get("end"):
                from interpreter.tools.toolbox import shown_call

                arguments, self._call, self._language = self._call, "", ""
                self.line(visible_line(shown_call(form, arguments)))
            case _ if chunk.get("end"):
                if kind != "console":
                    self.finish()
            case "message" | "reasoning":
                self._section(kind)
                # How a character is shown may depend on the two before it, which are written already.
                before, self._before = visible(self._before, PROSE), (self._before + content)[-2:]
                self._write(visible(before + content, PROSE)[len(before) :])
            case "code" if chunk.get("role") != "computer" and "recipient" not in chunk:
                self._language = form.lower()
                self._section("code", f"```{visible_line(form)}\n")
                self._write(visible(content))
            case "tool_call":
                self._call += content
            case "console":
                self._console(chunk)
            case "image" | "code":
                self._attachment(kind, form, content)
            case "decision":
                self.line(notes.decision(form, details))
            case "status" if form == "retry":
                self.line(f"{notes.retry_reason(details)}, trying again in {round(details.get('seconds', 0))} s")
            case "status" if form == "files":
                self._files = notes.files_note(details, _WIDTH, hint="")
            case "status" if {"check", "aside"} & details.keys() and self._is_piped:  # no part of the answer
                self.finish()
                print(visible(notes.status_note(form, details), PROSE), file=sys.stderr)
            case "status" if form != "call":
                self.line(notes.status_note(form, details))
            case "confirmation":
                self.finish()
                self.line("\n".join([notes.card(chunk), *notes.card_diff(chunk.get("diff", ""), 100)]))

    def _console(self, chunk: Chunk) -> None:
        content = str(chunk["content"])
        match chunk:
            case {"format": "active_line", "content": None}:
                silent, self._silent = self._silent, True
                self.finish()
                explained = self.languages.describe(self._language).explains_failures
                self.line(notes.ending(dict(chunk), 0.0, silent, explained))
                self.show_file_changes()
            case {"format": "active_line"}:
                return
            case {"mime": mime, "recipient": "user"} if mime:
                self.line(notes.saved_to(mime, save_text(content, mime)))
            case _:
                self._silent = False
                if chunk.get("also"):
                    self._text_form = content
                    if notes.is_mere_name(content):
                        return
                self._section("console")
                self._program = self._program or ProgramText(color=self._color, limit=None)
                self._write("".join(f"{line}\n" for line in self._program.feed(content)))

    def show_file_changes(self) -> None:
        changed, self._files = self._files, ""
        self.line(changed)

    def _attachment(self, kind: str, form: str, content: str) -> None:
        self._silent = False
        if kind == "image":
            if form != "description" and (path := save_image(content, form)):
                data = b""
                with suppress(OSError):
                    data = files.read_bytes(path, _MAX_CHART_BYTES if self.draws_charts else 32)
                size = png_size(data)
                if self.draws_charts and exists(_CHART):
                    from interpreter.frontends.terminal.render.theme import Theme

                    chart = load(_CHART)(data, *_CHART_SIZE, Theme(color=False, unicode=False))
                    self.line(without_styles("\n".join(chart)))
                self.line(f"[figure: saved to {path}" + (f", {size[0]}x{size[1]}]" if size else "]"))
            return
        # The table was shown as text. Its page is saved because the text may leave something out.
        from interpreter.frontends.terminal.render.tables import table_in

        text, self._text_form = self._text_form, ""
        table = table_in(content) if text and form == "html" else None
        path = save_text(content, form)
        if table:
            self.line(f"[table: {', '.join([*table.notes, ''])}{table.what_is_saved} saved to {path}]")
        else:
            self.line(notes.saved_to(form, path))

    # -- sections: an empty line before each ---------------------------------------------------------------

    def _section(self, kind: str, opening: str = "") -> None:
        if self._kind == kind:
            return
        self.finish()
        self._kind, self._before = kind, ""
        self._write(f"\n{opening}" if self._begun else opening)

    def finish(self) -> None:
        kind, self._kind = self._kind, ""
        if kind == "console" and self._program:
            for line in self._program.close():
                self._write(line)
            self._program = None
        if self._line_begun:
            self._write("\n")
        if kind == "code":
            self._write("```\n")

    def line(self, text: str, style: str = "hint") -> None:
        if text:
            self.finish()
            self._write(visible(text, PROSE) + "\n")

    markdown = line

    def _write(self, text: str) -> None:
        if text:
            self._begun = True
            self._out(text)
            self._line_begun = not text.endswith("\n")

    # -- what the other display has too --------------------------------------------------------------------

    @contextmanager
    def asking(self) -> Iterator[str]:
        if self._program and (begun := self._program.open):
            self._program.close()
            self._write(begun)
        yield ""
        self._line_begun = False

    def _ignore(self, *arguments: object) -> None:
        """Do nothing: plain text is not animated or drawn again."""

    begin = running = resumed = stopping = typed = tick = deadline = _ignore
