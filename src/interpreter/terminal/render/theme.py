"""The look: a few named styles in the terminal's own sixteen colours, so that light and dark both work."""

from __future__ import annotations

RESET = "\x1b[0m"

_ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4", "strike": "9"}
_COLORS = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "grey": "90",
}

STYLES = {
    "heading1": "bold underline magenta",
    "heading2": "bold magenta",
    "heading3": "bold",
    "bullet": "cyan",
    "quote": "dim",
    "code": "cyan",
    "link": "underline blue",
    "rule": "dim",
    "hint": "dim",
    "reasoning": "dim italic",
    "error": "red",
    "stderr": "red",
    "spinner": "cyan",
    "typed": "dim",
    # code
    "comment": "dim italic",
    "keyword": "magenta",
    "string": "green",
    "number": "cyan",
    "name": "blue",
    "builtin": "cyan",
    "decorator": "yellow",
    "constant": "cyan",
}


class Theme:
    """Styles for one terminal; without colour only bold, dim, italic and the like are left."""

    def __init__(self, color: bool = True, unicode: bool = True) -> None:
        self.color = color
        self.unicode = unicode
        self._codes = {name: self._code(words) for name, words in STYLES.items()}

    def _code(self, words: str) -> str:
        known = _ATTRIBUTES | _COLORS if self.color else _ATTRIBUTES
        codes = [known[word] for word in words.split() if word in known]
        return f"\x1b[{';'.join(codes)}m" if codes else ""

    def start(self, style: str) -> str:
        """The escape that begins a style; empty when this terminal shows none."""
        return self._codes[style]

    def paint(self, text: str, style: str) -> str:
        code = self._codes[style]
        return f"{code}{text}{RESET}" if code and text else text

    def rich_style(self, style: str) -> str:
        """The same style as rich spells it."""
        words = STYLES[style].replace("grey", "bright_black")
        return words if self.color else " ".join(word for word in words.split() if word in _ATTRIBUTES)

    def symbol(self, name: str) -> str:
        return SYMBOLS[name][0 if self.unicode else 1]


SYMBOLS = {
    "bullet": ("•", "*"),
    "quote": ("▎", "|"),
    "rule": ("─", "-"),
    "more": ("…", "..."),
    "typed": ("›", ">"),
    "dot": ("·", "-"),
}
