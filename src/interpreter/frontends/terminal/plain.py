"""Plain text, in order and complete: for pipes, screen readers, and terminals that can do no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from interpreter.frontends.terminal.render import files, words
from interpreter.frontends.terminal.render.ansi import ProgramText, visible
from interpreter.frontends.terminal.render.saved import (
    picture_size,
    save_image,
    save_text,
)
from interpreter.runtimes import BUILT_IN

if TYPE_CHECKING:
    from interpreter.messages import Chunk

_WIDTH = 120  # of a line that tells of files


class PlainDisplay:
    """Writes each chunk as it comes; nothing is ever drawn twice."""

    def __init__(self, write: Callable[[str], object], color: bool = False, begun: bool = True) -> None:
        self._out = write
        self._begun = begun  # whether something stands above; what is piped on has no empty line on top
        self._color = color  # whether a program's own colours are passed on
        self._text_form = ""  # of a display that also comes as a page
        self._kind = ""
        self._line_begun = False
        self._program: ProgramText | None = None
        self._silent = True
        self._language = ""
        self.languages = BUILT_IN  # those of the session, once one is shown
        self._call = ""  # the arguments of a tool call, as far as they have come
        self._files = ""  # what the block did to files, told when it is over
        self.on_change: Callable[[], None] = lambda: None  # nothing is drawn later
        self.show_active_line = False  # nothing here can mark a line
        self.fold_reasoning = False  # nor take one back

    # -- chunks --------------------------------------------------------------------------------------------

    def show(self, chunk: Chunk) -> None:
        """Show one chunk of the stream."""
        if (chunk.get("recipient", "user") != "user" and chunk["type"] != "image") or chunk.get("start"):
            return
        if chunk.get("end"):
            if chunk["type"] == "tool_call":
                arguments, self._call, self._language = self._call, "", ""
                self.line(words.tool_call(chunk.get("format", ""), arguments))
            elif chunk["type"] != "console":
                self._end_section()
        else:
            self._content(chunk)

    def _content(self, chunk: Chunk) -> None:
        kind, content = chunk["type"], str(chunk.get("content"))
        if kind in ("message", "reasoning"):
            self._section(kind)
            self._write(visible(content))
        elif kind == "code" and chunk.get("role") != "computer" and "recipient" not in chunk:
            self._language = chunk.get("format", "").lower()
            self._section("code", f"```{chunk.get('format', '')}\n")
            self._write(visible(content))
        elif kind == "tool_call":
            self._call += content
        elif kind == "console":
            self._console(chunk)
        elif kind in ("image", "code"):
            self._attachment(chunk)
        elif kind == "decision":
            self._say(words.decision(chunk.get("format", ""), chunk.get("content") or {}))
        elif kind == "status" and chunk.get("format") == "retry":
            news = chunk["content"]
            self._say(f"{words.retry(news)}, trying again in {round(news.get('seconds', 0))} s")
        elif kind == "status" and chunk.get("format") == "fallback":
            self._say(words.fallback(chunk["content"]))
        elif kind == "status" and chunk.get("format") == "compacted":
            self._say(words.compacted(chunk["content"]))
        elif kind == "status" and chunk.get("format") == "notice":
            self._say(chunk["content"]["text"])
        elif kind == "status" and chunk.get("format") == "redacted":
            self._say(words.redacted(chunk["content"]))
        elif kind == "status" and chunk.get("format") == "scan":
            self._say(visible(words.scanned(chunk["content"])))
        elif kind == "status" and chunk.get("format") == "files":
            self._files = files.line(chunk["content"], _WIDTH, hint="")
        elif kind == "status" and chunk.get("format") == "control":
            self._say(words.control(chunk["content"]))
        elif kind == "status" and chunk.get("format") == "stopped":
            self._say(words.stopped(chunk["content"]))
        elif kind == "confirmation":
            self._end_section()
            if card := words.card(chunk):
                self.line(card)

    def _console(self, chunk: Chunk) -> None:
        if chunk.get("format") == "active_line":
            if chunk["content"] is None:
                self._block_over(chunk)
            return
        mime = chunk.get("mime", "")
        if mime and chunk.get("recipient") == "user":
            self._say(words.shown_in(mime, save_text(str(chunk["content"]), mime)))
            return
        self._silent = False
        if chunk.get("also"):
            self._text_form = str(chunk["content"])
            if words.is_mere_name(self._text_form):
                return
        self._section("console")
        self._program = self._program or ProgramText(color=self._color, limit=None)
        lines = self._program.feed(str(chunk["content"]))
        self._write("".join(f"{line}\n" for line in lines))

    def _block_over(self, chunk: Chunk) -> None:
        silent, self._silent = self._silent, True
        self._end_section()
        explained = self.languages.describe(self._language).explains_failures
        self._say(words.ending(dict(chunk), 0.0, silent, explained))
        self.tell_files()

    def tell_files(self) -> None:
        """What a block did to files."""
        changed, self._files = self._files, ""
        self._say(changed)

    def _attachment(self, chunk: Chunk) -> None:
        kind, content = chunk.get("format", ""), str(chunk["content"])
        self._silent = False
        if chunk["type"] == "code":
            self._page(kind, content)
        elif kind != "description" and (path := save_image(content, kind)):
            self._say(words.figure(path, picture_size(path)))

    def _page(self, kind: str, content: str) -> None:
        """A table was shown as text already; its page has what that may have left out."""
        from interpreter.frontends.terminal.render.html_table import table_in

        text, self._text_form = self._text_form, ""
        table = table_in(content) if text and kind == "html" else None
        path = save_text(content, kind)
        self._say(words.table(path, table.notes) if table else words.shown_in(kind, path))

    def picture(self, path: str) -> None:
        """A picture of the user's, or one that somebody asked to see."""
        self.show({"role": "computer", "type": "image", "format": "path", "content": path})

    # -- sections: an empty line before each ---------------------------------------------------------------

    def _section(self, kind: str, opening: str = "") -> None:
        if self._kind == kind:
            return
        self._end_section()
        self._kind = kind
        self._write(f"\n{opening}" if self._begun else opening)

    def _end_section(self) -> None:
        kind, self._kind = self._kind, ""
        if kind == "console" and self._program:
            for line in self._program.close():
                self._write(line)
            self._program = None
        if self._line_begun:
            self._write("\n")
        if kind == "code":
            self._write("```\n")

    def _say(self, text: str) -> None:
        if text:
            self._end_section()
            self._write(text + "\n")

    def _write(self, text: str) -> None:
        if text:
            self._begun = True
            self._out(text)
            self._line_begun = not text.endswith("\n")

    # -- what the other display has too --------------------------------------------------------------------

    def line(self, text: str, style: str = "hint") -> None:
        """Words of ours."""
        self._say(visible(text))

    def markdown(self, text: str) -> None:
        """A whole text of ours."""
        self._say(visible(text))

    def begin(self, what: str = "thinking") -> None:
        """A turn begins."""

    def finish(self) -> None:
        """The turn is over."""
        self._end_section()

    def running(self) -> None:
        """A block starts to run."""

    def resumed(self) -> None:
        """A shell has had the terminal meanwhile."""

    def stopping(self) -> None:
        """The turn was told to end."""

    @contextmanager
    def asking(self) -> Iterator[str]:
        """The user is asked something at the cursor."""
        if self._program and (begun := self._program.open):
            self._program.close()
            self._write(begun)
        yield ""
        self._line_begun = False

    def typed(self, text: str) -> None:
        """What is being typed for later is not shown here."""

    def deadline(self) -> float | None:
        """Nothing here moves by itself."""
        return None

    def tick(self) -> None:
        """Nothing to draw."""
