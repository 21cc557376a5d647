"""Text mode, for models without tools: code goes out and comes back in Markdown fences.

`TextChat` writes the conversation. `TextParser` reads the streamed text of a reply, in tool mode too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from interpreter.llm.model_profile import Forms
from interpreter.messages import Chunk

DEFAULT_LANGUAGE = "python"
PROSE_LANGUAGES = frozenset({"text", "markdown", "plaintext"})  # a block in one of these is not code
MAX_FENCE_LINE_LENGTH = 256  # a longer line is never a fence, so little is ever held back

_MAYBE_OPENS = re.compile(r"[ \t]*(?:`{0,2}|~{0,2}|`{3,}[^`]*|~{3,}.*)\Z")
_OPENS = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}(?=[^`]*\Z)|~{3,})(?P<info>.*)\Z")
# Weak models put the fence at the end of a line of text; a language right after it distinguishes it from inline code.
_MAYBE_OPENS_LATE = re.compile(r"(?<!`)`++(?:(?<=```)[A-Za-z][\w+#-]{0,40}+[ \t]{0,40}+)?\Z")
_OPENS_LATE = re.compile(r"(?<!`)(?P<fence>`{3,}+)(?P<info>[A-Za-z][\w+#-]{0,40}+)[ \t]{0,40}+\Z")
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z+#-]*")
_MARKS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
}
_OPENS_SPAN = re.compile(r"[ \t]*(" + "|".join(map(re.escape, _MARKS)) + ")")


def language_of(info: str) -> str:
    """Return the language that a fence's info string names; "python3 title=x" and "{.r}" name one too."""
    match = _LANGUAGE.search(info)
    return match.group() if match else DEFAULT_LANGUAGE


class TextParser:
    """Takes the text of a reply piece by piece: messages, thinking between marks, and blocks between fences.

    The result does not depend on how the text is split. Only what may be part of a mark or a fence is held back.

    Without `fences`, blocks are a part of the message. A fence with the name of one of the `tools` is a call of it;
    every other one is code. `thinks_first`: the text begins inside a span. If that span never ends, it was none,
    and the whole text comes again as a message.

    The methods that yield read `_text`, and yield where they need more.
    """

    def __init__(self, *, fences: bool = True, tools: Collection[str] = (), thinks_first: bool = False) -> None:
        self.languages: set[str] = set()  # of the blocks so far
        self.thinks_first = thinks_first
        self._fences, self._tools = fences, tools
        self._block: _Block | None = None
        self._unopened: list[str] | None = None  # a span that began with the reply
        self._text = ""
        self._return = ""  # a carriage return at the end of the text so far
        self._in_line = False  # in the middle of a line, with nothing held back
        self._ended = False  # no more text will come
        self._out: list[Chunk] = []
        self._reading = self._read()

    def feed(self, text: str) -> list[Chunk]:
        is_special = "\n" in text or "\r" in text or "`" in text or self._return
        if text and self._in_line and self._block is None and not is_special:  # nearly every piece
            return [{"type": "message", "content": text}]
        text = self._return + text
        self._return = "\r" if text.endswith("\r") else ""
        self._take(text.removesuffix("\r").replace("\r\n", "\n"))
        out, self._out = self._out, []
        return out

    def finish(self, close: bool = True) -> list[Chunk]:
        """Return the rest at the end of the reply, which ends an open span and, with `close`, an open block."""
        self._take(self._return)
        if self._unopened is not None and close:
            whole, self._unopened = "".join(self._unopened), None
            self._text, self._reading = "", self._read_lines()
            self._take(whole)
        self._ended = True
        next(self._reading)
        if self._block is not None and close:
            self._close_block(self._block)
        out, self._out = self._out, []
        return out

    @property
    def in_block(self) -> bool:
        return self._fences and self._block is not None

    def _take(self, text: str) -> None:
        for line in text.splitlines(keepends=True):
            self._text += line
            if self._unopened is not None:
                self._unopened.append(line)
            next(self._reading)

    def _read(self) -> Iterator[None]:
        while not (begun := self._text.lstrip()) or _may_become_mark(begun):
            if self._ended:
                break
            yield
        if _OPENS_SPAN.match(begun):
            self._text = begun  # space before a span at the very beginning is dropped
        elif self.thinks_first and not self._ended:
            self._unopened = [self._text]
            yield from self._read_span("</think>")
        yield from self._read_lines()

    def _read_lines(self) -> Iterator[None]:
        while True:  # at the beginning of a line
            opening = _OPENS_SPAN.match(self._text) if self._block is None else None
            if opening:
                self._text = self._text[opening.end() :]
                yield from self._read_span(_MARKS[opening[1]])
            elif not self._text or (self._is_undecided() and not self._ended):
                yield
            else:
                yield from self._read_line()

    def _is_undecided(self) -> bool:
        """Return whether the beginning of a line may become a mark or a fence."""
        line = self._text
        if "\n" in line or len(line) > MAX_FENCE_LINE_LENGTH:
            return False
        if self._block is not None:
            return self._block.maybe_closes.match(line) is not None
        return _MAYBE_OPENS.match(line) is not None or _may_become_mark(line.lstrip(" \t"))

    def _read_line(self) -> Iterator[None]:
        """Read a line to its end. The line may be a fence, or end with one that opens a block."""
        block, is_begun = self._block, False
        while True:
            line, newline, rest = self._text.partition("\n")
            may_be_fence = not is_begun and len(line) <= MAX_FENCE_LINE_LENGTH
            late = None
            if block is None and newline:
                opening = (_OPENS.match(line) if may_be_fence else None) or _OPENS_LATE.search(line)
                if opening is not None:
                    self._give(line[: opening.start()] if self._fences else line + newline)
                    self._open_block(opening)
                    break
            elif block is None:
                late = _MAYBE_OPENS_LATE.search(line) if not self._ended else None
            elif may_be_fence and block.closes.match(line):
                self._close_block(block)
                if not self._fences:
                    self._give(line + newline)
                break
            elif self._fences and not is_begun:
                line = line[min(block.indent, len(line) - len(line.lstrip(" \t"))) :]
            certain = late.start() if late else len(line)
            self._give(line[:certain], newline)
            if newline or self._ended:
                break
            self._text, self._in_line, is_begun = line[certain:], certain == len(line), True
            yield
            self._in_line = False
        self._text = rest

    def _read_span(self, closing: str) -> Iterator[None]:
        """Read a span between its opening and its closing mark; space on both sides is dropped."""
        yield from self._skip_space()
        blank = ""  # space that belongs to the span only if more of it comes
        while (end := self._text.find(closing)) < 0 and not self._ended:
            # The end of the text may be the beginning of the mark.
            sizes = range(min(len(self._text), len(closing) - 1), 0, -1)
            held = next((size for size in sizes if self._text.endswith(closing[:size])), 0)
            blank = self._think(blank + self._text[: len(self._text) - held])
            self._text = self._text[len(self._text) - held :]
            yield
        self._think(blank + (self._text[:end] if end >= 0 else self._text))
        self._text = self._text[end + len(closing) :] if end >= 0 else ""
        self._unopened = None
        yield from self._skip_space()

    def _skip_space(self) -> Iterator[None]:
        while not (text := self._text.lstrip()) and not self._ended:
            self._text = ""
            yield
        self._text = text

    def _think(self, text: str) -> str:
        """Emit a thought without the space at its end, which is returned."""
        thought = text.rstrip()
        if thought:
            self._out.append({"type": "reasoning", "content": thought})
        return text[len(thought) :]

    def _give(self, text: str, newline: str = "") -> None:
        block = self._block if self._fences else None
        if block is None:
            chunk: Chunk = {"type": "message", "content": text + newline}
        else:  # the newline before the closing fence is not part of the code
            chunk = {"type": block.kind, "format": block.language, "content": block.newline + text}
            block.newline = newline
            block.is_blank = block.is_blank and not chunk["content"]
        if chunk["content"]:
            self._out.append(chunk)

    def _open_block(self, opening: re.Match[str]) -> None:
        indent = len(opening.groupdict().get("indent") or "")
        tool = next(iter(opening["info"].split()), "")
        is_call = tool in self._tools
        name = tool if is_call else language_of(opening["info"])
        self._block = _Block(opening["fence"], indent, name, "tool_call" if is_call else "code")
        if self._fences:
            self.languages.add(name.lower())

    def _close_block(self, block: _Block) -> None:
        self._block = None
        if not self._fences:
            return
        if block.is_blank:
            nothing = "" if block.kind == "code" else "{}"
            self._out.append({"type": block.kind, "format": block.language, "content": nothing})
        self._out.append({"type": block.kind, "format": block.language, "end": True})


def _may_become_mark(text: str) -> bool:
    return any(mark.startswith(text) and mark != text for mark in _MARKS)


class _Block:
    def __init__(self, fence: str, indent: int, language: str, kind: str) -> None:
        self.indent = indent
        self.kind = kind
        self.language = language
        self.newline = ""  # at the end of the last line
        self.is_blank = True  # no character yet
        mark = fence[0]
        self.maybe_closes = re.compile(rf"[ \t]*{mark}*[ \t]*\Z")
        self.closes = re.compile(rf"[ \t]{{0,{indent + 3}}}{mark}{{{len(fence)},}}[ \t]*\Z")


def fenced(language: str, code: str) -> str:
    """Write a fenced block, its fence longer than any in the code."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"


class TextChat:
    """Builds a conversation. Consecutive messages of one role become one, as chat templates require."""

    def __init__(self, forms: Forms) -> None:
        self._forms = forms
        self._turns: list[tuple[str, list[dict[str, Any]]]] = []
        self._results: list[str] | None = None  # of the last block, so far
        self._failed = False
        self._is_unrun = False

    def system(self, text: str) -> None:
        self._add("system", text)

    def user(self, text: str) -> None:
        self._end_block()
        self._add("user", text)

    def say(self, text: str) -> None:
        if text:
            self._end_results()
            self._add("assistant", text)

    def code(self, language: str, code: str, call: str | None = None) -> None:
        self._end_results()
        self._add("assistant", fenced(language, code))
        self._is_unrun = True

    def call(self, name: str, arguments: str, call: str | None = None) -> None:
        self.code(name, arguments)

    def output(self, text: str, failed: bool = False, call: str | None = None) -> None:
        self._is_unrun = False
        self._failed = failed
        self._results = [*(self._results or []), *([text] if text else [])]

    def picture(self, parts: list[dict[str, Any]], shown_by_code: bool) -> None:
        if shown_by_code:
            self._is_unrun = False
        self._end_block()
        self._add("user", *parts)

    def finish(self) -> list[dict[str, Any]]:
        self._end_block()
        return [{"role": role, "content": _joined(parts)} for role, parts in self._turns]

    def _end_block(self) -> None:
        self._end_results()
        if self._is_unrun:
            self._is_unrun = False
            self._add("user", "The code above was not run.")

    def _end_results(self) -> None:
        if self._results is None:
            return
        output, self._results = "\n".join(self._results), None
        if self._forms.output_sender == "assistant":
            self._add("assistant", fenced("output", output or "No output"))
        elif output:
            template = self._forms.failed_output_template if self._failed else self._forms.output_template
            self._add("user", template.replace("{content}", output).strip())
        else:
            self._add("user", self._forms.empty_output_template.strip())

    def _add(self, role: str, *parts: str | dict[str, Any]) -> None:
        if not self._turns or self._turns[-1][0] != role:
            self._turns.append((role, []))
        self._turns[-1][1].extend({"type": "text", "text": p} if isinstance(p, str) else p for p in parts)


def _joined(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts
