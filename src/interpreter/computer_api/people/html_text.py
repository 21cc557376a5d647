"""What an HTML page says, without its looks."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_SILENT = frozenset({"script", "style", "head", "title", "template", "noscript"})
_LINES = frozenset("p div br li tr ul ol table h1 h2 h3 h4 h5 h6 blockquote section article header footer hr".split())


def text_of_html(html: str) -> str:
    """Its text, a line per block; addresses of links in brackets behind them."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    text = re.sub(r"[ \t\xa0]+", " ", "".join(reader.pieces))
    lines = [line.strip() for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._silent = 0
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag in _LINES:
            self.pieces.append("\n")
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")
        elif tag == "img" and not self._silent and (words := dict(attrs).get("alt")):
            self.pieces.append(words)

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in _LINES:
            self.pieces.append("\n")
        elif tag == "a" and self._links:
            link = self._links.pop()
            if link.startswith(("http:", "https:", "mailto:")) and link not in "".join(self.pieces[-1:]):
                self.pieces.append(f" ({link})")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.pieces.append(re.sub(r"\s+", " ", data))
