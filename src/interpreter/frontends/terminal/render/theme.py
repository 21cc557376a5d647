"""The look: a few named styles in the terminal's own colours, with darker ones for a light background."""

from __future__ import annotations

from collections.abc import Mapping

RESET = "\x1b[0m"
LIGHT, DARK = "light", "dark"

_ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4", "strike": "9"}
_COLORS = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
# Some of the sixteen cannot be read on white, others on black; where there are more colours, some of those can.
_ON_LIGHT = {"red": 124, "green": 28, "yellow": 130, "blue": 25, "magenta": 90, "cyan": 30, "dim": 242}
_ON_DARK = {"blue": 75, "red": 203, "magenta": 176}
_ON_LIGHT_OF_SIXTEEN = {"yellow": "magenta", "cyan": "blue"}

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
    # tables
    "column": "bold",
    "border": "dim",
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

    def __init__(
        self, color: bool = True, unicode: bool = True, depth: int = 16, links: bool = False, background: str = ""
    ) -> None:
        self.color = color
        self.unicode = unicode
        self.depth = depth  # how many colours there are
        self.links = links  # whether addresses can be clicked
        self.stand_on(background)

    def stand_on(self, background: str) -> None:
        """The background is light, or dark, or nobody knows."""
        self.background = background
        self._words = {name: [*self._known(words.split())] for name, words in STYLES.items()}
        self._codes = {name: self._code(words) for name, words in self._words.items()}

    def _known(self, words: list[str]) -> list[str]:
        """The words of a style that this terminal can show, for its background."""
        if not self.color:
            return [word for word in words if word in _ATTRIBUTES]
        if self.depth < 256:
            return [_ON_LIGHT_OF_SIXTEEN.get(word, word) for word in words] if self.background == LIGHT else words
        colors = _ON_LIGHT if self.background == LIGHT else _ON_DARK if self.background == DARK else {}
        return [f"color({colors[word]})" if word in colors else word for word in words]

    @staticmethod
    def _code(words: list[str]) -> str:
        codes = [f"38;5;{word[6:-1]}" if word.startswith("color(") else (_ATTRIBUTES | _COLORS)[word] for word in words]
        return f"\x1b[{';'.join(codes)}m" if codes else ""

    def start(self, style: str) -> str:
        """The escape that begins a style; empty when this terminal shows none."""
        return self._codes[style]

    def paint(self, text: str, style: str) -> str:
        """The text in a style; "" leaves it as it is."""
        code = self._codes[style] if style else ""
        return f"{code}{text}{RESET}" if code and text else text

    def rich_style(self, style: str) -> str:
        """The same style as rich spells it."""
        return " ".join(self._words[style])

    def path(self, path: str) -> str:
        """A path, to be clicked where that is possible."""
        if not self.links:
            return path
        from interpreter.frontends.terminal.render.links import linked, to_file

        return linked(path, to_file(path))

    def symbol(self, name: str) -> str:
        return SYMBOLS[name][0 if self.unicode else 1]


SYMBOLS = {
    "bullet": ("•", "*"),
    "quote": ("▎", "|"),
    "rule": ("─", "-"),
    "more": ("…", "..."),
    "typed": ("›", ">"),
    "dot": ("·", "-"),
    "times": ("×", "x"),
    "cross": ("┼", "+"),
    "bar": ("│", "|"),
}


def background_by_environment(environ: Mapping[str, str]) -> str:
    """The background as some terminals tell it in COLORFGBG; empty if nobody does."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    if not background.isdigit():
        return ""
    return LIGHT if int(background) in (7, *range(9, 16)) else DARK


def background_by_answer(answer: bytes) -> str:
    """The same from the terminal's answer about its background, such as `rgb:ffff/ffff/ffff`."""
    _, found, rest = answer.partition(b"rgb:")
    values = rest.rstrip(b"\x07\x1b\\").split(b"/")
    if not found or len(values) != 3:
        return ""
    try:
        red, green, blue = (int(value, 16) / float((1 << 4 * len(value)) - 1) for value in values)
    except (ValueError, ZeroDivisionError):
        return ""
    return LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else DARK
