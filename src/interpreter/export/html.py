"""The conversation as one page: code in colours, figures inside, nothing loaded from anywhere.

What code displayed as HTML is in frames that cannot reach the page; everything else is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from interpreter.export import Conversation, Document
from interpreter.export.markdown import why_not
from interpreter.export.outputs import Output, Page, Picture, Text, outputs_of, picture
from interpreter.runtimes import (
    Registry,
)
from interpreter.session.journal.reader import (
    Block,
    Entry,
    Said,
    Shown,
    ToolCall,
)

_POLICY = "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
_LIGHT, _DARK = "friendly", "github-dark"
_ROW_HEIGHT, _LEAST_HEIGHT, _MOST_HEIGHT = 30, 140, 640


def page(conversation: Conversation) -> Document:
    """The whole page."""
    writer, title = _Writer(conversation.registry), escape(conversation.title)
    body = "\n".join(writer.entry(entry) for entry in conversation.entries)
    return Document(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_template('page.css')}{writer.style}</style>\n</head>\n"
        f"<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


class _Writer:
    """Turns entries into HTML with one Markdown reader and one highlighter."""

    def __init__(self, registry: Registry) -> None:
        from markdown_it import MarkdownIt
        from pygments.formatters import HtmlFormatter

        self._registry = registry
        # Without raw HTML; pictures from elsewhere become links.
        self._markdown: Any = MarkdownIt("commonmark", {"html": False}).enable("table").enable("strikethrough")
        self._markdown.add_render_rule("image", _image)
        make: Any = HtmlFormatter
        self._formatter = make(nowrap=True)
        light, dark = (make(style=name).get_style_defs(".code") for name in (_LIGHT, _DARK))
        plain = ".code { background: none; }"
        self.style = f"{light}\n{plain}\n@media (prefers-color-scheme: dark) {{\n{dark}\n{plain}\n}}\n"
        self._figures = 0

    def entry(self, entry: Entry) -> str:
        match entry:
            case Said(role="user"):
                return f'<section class="you">{escape(entry.text)}</section>'
            case Said():
                return f'<section class="prose">{self._markdown.render(entry.text)}</section>'
            case Shown(message=message):
                if (image := picture(message)) is not None:
                    return self._figure(image)
                return f'<section class="you">{escape(str(message.get("content", "")))}</section>'
            case Block():
                return self._block(entry)
            case ToolCall():
                code = f'<pre class="code"><code>{escape(str(entry))}</code></pre>'
                return f'<section class="block">{code}{self._outputs(entry)}</section>'

    def _block(self, block: Block) -> str:
        from pygments import highlight
        from pygments.lexers import get_lexer_by_name
        from pygments.util import ClassNotFound

        told = f'<span class="bad">{escape(reason)}</span>' if (reason := why_not(block)) else ""
        language = self._registry.describe(block.language)
        try:
            lexer = get_lexer_by_name(language.lexer or language.name.lower() or "text", stripnl=False)
            code = str(highlight(block.code, lexer, self._formatter)).rstrip("\n")
        except ClassNotFound:
            code = escape(block.code)
        return (
            f'<section class="block"><header><span>{escape(language.name.lower())}</span>{told}</header>'
            f'<pre class="code"><code>{code}</code></pre>'
            f"{self._outputs(block) if block.ran else ''}</section>"
        )

    def _outputs(self, of: Block | ToolCall) -> str:
        return "".join(f'<div class="out">{self._output(output)}</div>' for output in outputs_of(of.outputs))

    def _output(self, output: Output) -> str:
        match output:
            case Picture():
                return self._figure(output)
            case Page(html=html):
                return _frame(html)
            case Text(text=text, mime="text/markdown"):
                return f'<div class="prose">{self._markdown.render(text)}</div>'
            case Text(text=text):
                return f"<pre>{escape(text.rstrip())}</pre>"

    def _figure(self, image: Picture) -> str:
        self._figures += 1
        return f'<figure><img src="{escape(image.uri)}" alt="Figure {self._figures}"></figure>'


def _frame(html: str) -> str:
    """A page within the page: it may run its own scripts, but reach neither this page nor the network."""
    rows = len(re.findall(r"<tr\b", html, re.IGNORECASE))
    lively = re.search(r"<(?:script|svg|canvas|img|iframe)\b", html, re.IGNORECASE)
    height = _MOST_HEIGHT if lively else min(max(rows * _ROW_HEIGHT + 40, _LEAST_HEIGHT), _MOST_HEIGHT)
    inside = f"<!doctype html><style>{_template('frame.css')}</style>{html}"
    return f'<iframe sandbox="allow-scripts" style="height: {height}px" srcdoc="{escape(inside)}"></iframe>'


def _image(self: Any, tokens: Sequence[Any], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    source, words = str(token.attrGet("src") or ""), escape(token.content or "image")
    if source.startswith("data:image/"):
        return f'<img src="{escape(source)}" alt="{words}">'
    return f'<a href="{escape(source)}">{words}</a>'


def _template(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
