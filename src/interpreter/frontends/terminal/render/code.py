"""Code, coloured line by line as it arrives: a finished line is never drawn again."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from interpreter.frontends.terminal.render.ansi import visible
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.runtimes import BUILT_IN, Registry

if TYPE_CHECKING:
    from pygments.lexer import Lexer

RULE = 72  # columns of the lines above and below a block
_CONTEXT = 30  # lines that are read again inside a string or comment of several lines
_TOKENS = {
    "Comment": "comment",
    "Keyword": "keyword",
    "Keyword.Constant": "constant",
    "Keyword.Type": "builtin",
    "Operator.Word": "keyword",
    "Literal.String": "string",
    "Literal.Number": "number",
    "Name.Function": "name",
    "Name.Class": "name",
    "Name.Tag": "keyword",
    "Name.Attribute": "name",
    "Name.Builtin": "builtin",
    "Name.Exception": "builtin",
    "Name.Decorator": "decorator",
    "Name.Variable": "name",
}


class CodeLines:
    """Colours the lines of one block in order."""

    def __init__(self, language: str, theme: Theme, languages: Registry = BUILT_IN) -> None:
        self._theme = theme
        described = languages.describe(language)
        self._lexer = _lexer(described.lexer or described.name.lower()) if theme.color else None
        self._context: list[str] = []

    def line(self, text: str) -> str:
        """The next finished line."""
        text = visible(text)
        shown, inside = self._colored(text)
        # Inside a long string, the lexer must see its first line to know that it is one.
        context = [*self._context, text] if inside else []
        self._context = context if len(context) <= _CONTEXT else context[:1] + context[2:]
        return shown

    def preview(self, text: str) -> str:
        """The line that is still being written."""
        return self._colored(visible(text))[0]

    def _colored(self, text: str) -> tuple[str, bool]:
        """The line in colours, and whether it ends inside a string or comment."""
        if self._lexer is None:
            return text, False
        source = "\n".join([*self._context, text]) + "\n"
        parts: list[str] = []
        row, inside = 0, False
        for kind, value in self._lexer.get_tokens(source):
            style = _style_of(kind)
            for number, piece in enumerate(value.split("\n")):
                if number:
                    row += 1
                    inside = style in ("string", "comment")
                if row == len(self._context) and piece:
                    parts.append(self._theme.paint(piece, style))
        return "".join(parts), inside


@cache
def _lexer(name: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(name, stripnl=False)
    except ClassNotFound:
        return None


@cache
def _style_of(kind: Any) -> str:
    """The style of a token type, or of its nearest ancestor that has one."""
    names = [str(each).removeprefix("Token.") for each in reversed(kind.split())]
    return next((_TOKENS[name] for name in names if name in _TOKENS), "")


class CodeView:
    """A block of code between two rules, as it arrives."""

    def __init__(self, language: str, theme: Theme, width: int, languages: Registry = BUILT_IN) -> None:
        self._lines = CodeLines(language, theme, languages)
        self._theme = theme
        self.width = width
        self._language = language
        self._partial = ""
        self._begun = False
        self.source: list[str] = []

    def feed(self, text: str) -> list[str]:
        """The rows that are final now."""
        *lines, self._partial = (self._partial + text).split("\n")
        self.source += lines
        return self._head() + [self._lines.line(line) for line in lines]

    def open_rows(self) -> list[str]:
        """The line that is still being written."""
        return [self._lines.preview(self._partial)] if self._partial else []

    def close(self) -> list[str]:
        """The rest of the block, and the rule below it."""
        rows = self.feed("\n") if self._partial else self._head()
        rule = self._theme.symbol("rule") * min(self.width - 1, RULE)
        return [*rows, self._theme.paint(rule, "rule")]

    def _head(self) -> list[str]:
        if self._begun:
            return []
        self._begun = True
        rule = self._theme.symbol("rule")
        title = f"{rule * 2} {self._language} " if self._language else ""
        return [self._theme.paint((title + rule * RULE)[: min(self.width - 1, RULE)], "rule")]
