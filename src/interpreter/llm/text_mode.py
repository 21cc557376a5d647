"""Text mode, for models without tools: code goes out and comes back in Markdown fences.

`TextChat` writes the conversation; `FenceParser` reads the streamed reply, the same however it is split.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from interpreter.llm.model_profile import Forms
from interpreter.messages import Chunk

DEFAULT_LANGUAGE = "python"
PROSE_LANGUAGES = frozenset({"text", "markdown", "plaintext"})  # a block in one of these is not code
LONGEST_FENCE_LINE = 256  # a longer line is never a fence, so little is ever held back

_MAYBE_OPENS = re.compile(r"[ \t]*(?:`{0,2}|~{0,2}|`{3,}[^`]*|~{3,}.*)\Z")
_OPENS = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}(?=[^`]*\Z)|~{3,})(?P<info>.*)\Z")
# Weak models put the fence at the end of a line of text; a language right after it distinguishes it from inline code.
_MAYBE_OPENS_LATE = re.compile(r"(?<!`)`++(?:(?<=```)[A-Za-z][\w+#-]{0,40}+[ \t]{0,40}+)?\Z")
_OPENS_LATE = re.compile(r"(?<!`)(?P<fence>`{3,}+)(?P<info>[A-Za-z][\w+#-]{0,40}+)[ \t]{0,40}+\Z")
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z+#-]*")


def language_of(info: str) -> str:
    """The language that a fence's info string names; "python3 title=x" and "{.r}" name one too."""
    found = _LANGUAGE.search(info)
    return found.group() if found else DEFAULT_LANGUAGE


class FenceParser:
    """Takes the reply piece by piece; holds back only what may be part of a fence.

    A fence with the name of one of the `tools` is a call of it; every other one is code.
    """

    def __init__(self, tools: Collection[str] = ()) -> None:
        self.languages: set[str] = set()  # of the blocks so far
        self._tools = tools
        self._held = ""  # the end of the text so far, while its meaning is open
        self._return_held = False
        self._line_is_plain = False  # the current line is certainly not a fence
        self._block: _Block | None = None
        self._out: list[Chunk] = []

    def feed(self, text: str) -> list[Chunk]:
        """The chunks that this piece makes certain."""
        if self._return_held:
            text = "\r" + text
        self._return_held = text.endswith("\r")
        text = text.removesuffix("\r").replace("\r\n", "\n")
        *lines, rest = text.split("\n")
        for line in lines:
            self._settle_line(self._held + line, ended=True)
            self._held, self._line_is_plain = "", False
        if rest:
            self._continue_line(rest)
        out, self._out = self._out, []
        return out

    def finish(self, close: bool = True) -> list[Chunk]:
        """The rest, at the end of the reply. With `close`, an open block ends too."""
        if self._return_held:
            self._return_held = False
            self._continue_line("\r")
        if self._held:
            self._settle_line(self._held, ended=False)
        if self._block is not None and close:
            self._close_block(self._block)
        out, self._out = self._out, []
        return out

    @property
    def in_block(self) -> bool:
        return self._block is not None

    def _continue_line(self, text: str) -> None:
        """More of a line has come: pass on what cannot be part of a fence."""
        self._held += text
        block = self._block
        if block is not None:
            if self._line_is_plain:
                self._code(block, self._held)
                self._held = ""
            elif len(self._held) > LONGEST_FENCE_LINE or not block.maybe_closes.match(self._held):
                self._begin_code_line(block, self._held)
                self._line_is_plain, self._held = True, ""
            return
        if not self._line_is_plain:
            if len(self._held) <= LONGEST_FENCE_LINE and _MAYBE_OPENS.match(self._held):
                return
            self._line_is_plain = True
        late = _MAYBE_OPENS_LATE.search(self._held)
        certain = late.start() if late else len(self._held)
        self._prose(self._held[:certain])
        self._held = self._held[certain:]

    def _settle_line(self, line: str, ended: bool) -> None:
        """The rest of a line has come."""
        block = self._block
        if block is not None:
            if self._line_is_plain:
                self._code(block, line)
            elif len(line) <= LONGEST_FENCE_LINE and block.closes.match(line):
                self._close_block(block)
            else:
                self._begin_code_line(block, line)
            return
        may_open = ended and not self._line_is_plain and len(line) <= LONGEST_FENCE_LINE
        opening = (_OPENS.match(line) if may_open else None) or (_OPENS_LATE.search(line) if ended else None)
        if opening is None:
            self._prose(line + "\n" if ended else line)
            return
        self._prose(line[: opening.start()])
        indent = len(opening.groupdict().get("indent") or "")
        tool = next(iter(opening["info"].split()), "")
        is_call = tool in self._tools
        name = tool if is_call else language_of(opening["info"])
        self.languages.add(name.lower())
        self._block = _Block(opening["fence"], indent, name, "tool_call" if is_call else "code")

    def _prose(self, text: str) -> None:
        if text:
            self._out.append({"type": "message", "content": text})

    def _begin_code_line(self, block: _Block, line: str) -> None:
        indent = len(line) - len(line.lstrip(" \t"))
        line = line[min(indent, block.indent) :]
        self._code(block, line if block.is_empty else "\n" + line)
        block.is_empty = False

    def _code(self, block: _Block, text: str) -> None:
        if text:
            self._out.append({"type": block.kind, "format": block.language, "content": text})
            block.is_blank = False

    def _close_block(self, block: _Block) -> None:
        if block.is_blank:
            nothing = "" if block.kind == "code" else "{}"
            self._out.append({"type": block.kind, "format": block.language, "content": nothing})
        self._out.append({"type": block.kind, "format": block.language, "end": True})
        self._block = None


class _Block:
    def __init__(self, fence: str, indent: int, language: str, kind: str) -> None:
        self.indent = indent
        self.kind = kind
        self.language = language
        self.is_empty = True  # no line yet
        self.is_blank = True  # no character yet
        mark = fence[0]
        self.maybe_closes = re.compile(rf"[ \t]*{mark}*[ \t]*\Z")
        self.closes = re.compile(rf"[ \t]{{0,{indent + 3}}}{mark}{{{len(fence)},}}[ \t]*\Z")


def fenced(language: str, code: str) -> str:
    """A fenced block, its fence longer than any in the code."""
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"


NOT_RUN = "The code above was not run."


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
            self._add("user", NOT_RUN)

    def _end_results(self) -> None:
        if self._results is None:
            return
        output, self._results = "\n".join(self._results), None
        if self._forms.output_sender == "assistant":
            self._add("assistant", fenced("output", output or "No output"))
        elif output:
            forms = self._forms
            template = forms.failed_output_template if self._failed else forms.output_template
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
