"""Markdown inside a line: from `**bold** and [links](x)` to styled text."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any
from zlib import crc32

from rich.style import Style
from rich.text import Text

from interpreter.frontends.terminal.render.ansi import visible
from interpreter.frontends.terminal.render.links import safe_address
from interpreter.frontends.terminal.render.theme import Theme

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LIKE_ADDRESS = re.compile(r"://|www\.|\w\.\w")
_LINK_ID = re.compile(r"\x1b\]8;id=[^;]*;([^\x1b]+)\x1b")
_SPANS = {"strong": "bold", "em": "italic", "s": "strike"}


@cache
def parser() -> MarkdownIt:
    """CommonMark with tables; HTML is text, and so is a reference whose definition is in another piece."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("reference")


def inline(source: str, theme: Theme, base: str = "") -> Text:
    """The styled text of a paragraph; line breaks stay where the model put them."""
    tokens = parser().parseInline(visible(source))
    return styled((tokens[0].children if tokens else None) or [], theme, base)


def styled(tokens: list[Token], theme: Theme, base: str = "") -> Text:
    text = Text(style=base)
    styles: list[str] = []
    links: list[tuple[str, int]] = []
    for token in tokens:
        name = token.type.removesuffix("_open").removesuffix("_close")
        if token.type == "link_open":
            links.append((str(token.attrs.get("href", "")), len(text)))
            styles.append(theme.rich_style("link"))
        elif token.type == "link_close":
            styles.pop()
            _address(text, *links.pop(), theme)
        elif name in _SPANS:
            styles.append(_SPANS[name]) if token.nesting > 0 else styles.pop()
        else:
            text.append(*_content(token, " ".join(styles), theme))
    return text


def _content(token: Token, style: str, theme: Theme) -> tuple[str, str]:
    if token.type in ("softbreak", "hardbreak"):
        return "\n", ""
    if token.type == "code_inline":
        return token.content, f"{style} {theme.rich_style('code')}".strip()
    if token.type == "image":
        return f"{token.content or 'image'} ({token.attrs.get('src', '')})", style
    return token.content, style


def _address(text: Text, address: str, start: int, theme: Theme) -> None:
    """Make the words a link, and name the address behind them where it cannot be clicked or they might deceive."""
    words = text.plain[start:]
    clickable = safe_address(address) if theme.links else ""
    if clickable:
        text.stylize(Style(link=clickable), start)
    plain = clickable and not _LIKE_ADDRESS.search(words)
    if address and not plain and address.removeprefix("mailto:") != words:
        text.append(f" ({address})", theme.rich_style("hint"))


def close_spans(source: str) -> str:
    """An unfinished text with its open emphasis or code span closed, so that it does not jump later."""
    tail = source.rpartition("\n")[2]
    if tail.count("`") % 2:
        return source + "`"
    if tail.count("**") % 2:
        return source.removesuffix("*") + "**" if not tail.endswith("**") else source[:-2]
    return source


def rows(renderable: Any, width: int, theme: Theme) -> list[str]:
    """A rich renderable as lines with escapes."""
    console = _console(("256" if theme.depth >= 256 else "standard") if theme.color else None)
    options = console.options.update(width=max(width, 1))
    system = console._color_system
    lines = console.render_lines(renderable, options, pad=False)
    return ["".join(_segment(s, system) for s in _trimmed(line)) for line in lines]


def _trimmed(line: list[Any]) -> list[Any]:
    """A line without the spaces at its end, which wrapping and padding leave."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    if line:
        last = line[-1]
        line = [*line[:-1], type(last)(last.text.rstrip(), last.style)]
    return line


def _segment(segment: Any, system: Any) -> str:
    if segment.style is None or not segment.text:
        return str(segment.text)
    shown = str(segment.style.render(segment.text, color_system=system, legacy_windows=False))
    return _LINK_ID.sub(_stable, shown) if segment.style.link else shown


def _stable(link: re.Match[str]) -> str:
    """The parts of a wrapped link belong together by an identity that is the same at every drawing."""
    return f"\x1b]8;id={crc32(link[1].encode())};{link[1]}\x1b"


@cache
def _console(system: Any) -> Any:
    from rich.console import Console

    return Console(
        force_terminal=True,
        color_system=system,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
