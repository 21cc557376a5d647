"""The look: a few named styles in the terminal's own colours, links, and how much of that a terminal can show."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import quote

from interpreter.console_text import visible_line
from interpreter.frontends.terminal.render.ansi import RESET

LIGHT, DARK = "light", "dark"
TRUE_COLOR = 1 << 24

_ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4", "strike": "9"}
_COLORS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36"}
# Some of the sixteen colours are unreadable on white, others on black; the 256 have readable replacements.
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
    # charts, in the order of matplotlib's own colours
    "series0": "blue",
    "series1": "yellow",
    "series2": "green",
    "series3": "red",
    "series4": "magenta",
    "series5": "cyan",
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
SYMBOLS = {  # with and without Unicode
    "bullet": ("•", "*"),
    "quote": ("▎", "|"),
    "rule": ("─", "-"),
    "more": ("…", "..."),
    "typed": ("›", ">"),
    "dot": ("·", "-"),
}

_TRUE_COLOR_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "ghostty", "vscode", "Hyper", "rio", "mintty"})
_TRUE_COLOR_TERMS = ("xterm-kitty", "xterm-ghostty")
_LINK_PROGRAMS = _TRUE_COLOR_PROGRAMS | {"Tabby", "WarpTerminal", "zed"}
_LINK_TERMS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "contour", "wezterm")
_LINK_VARIABLES = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "ALACRITTY_WINDOW_ID", "WEZTERM_PANE")
_FIRST_VTE_WITH_LINKS = 5000
_SAFE_ADDRESS = re.compile(r"(?:https?|mailto|file):[!-~]+", re.IGNORECASE)


class Theme:
    """Styles for one terminal. Without colour, only bold, dim, italic and the like are left."""

    def __init__(
        self, color: bool = True, unicode: bool = True, depth: int = 16, links: bool = False, background: str = ""
    ) -> None:
        self.color = color
        self.unicode = unicode
        self.depth = depth  # how many colours there are
        self.links = links  # whether addresses can be clicked
        self.set_background(background)

    def set_background(self, background: str) -> None:
        """Choose readable colours for a light or dark background; empty means unknown."""
        replaced: dict[str, str] = {}
        if self.depth >= 256:
            colors = _ON_LIGHT if background == LIGHT else _ON_DARK if background == DARK else {}
            replaced = {word: f"color({number})" for word, number in colors.items()}
        elif background == LIGHT:
            replaced = _ON_LIGHT_OF_SIXTEEN
        self._words: dict[str, list[str]] = {}
        self._codes: dict[str, str] = {}
        for name, style in STYLES.items():
            attributes = [replaced.get(word, word) for word in style.split()]
            if not self.color:
                attributes = [word for word in style.split() if word in _ATTRIBUTES]
            codes = [f"38;5;{word[6:-1]}" if "(" in word else (_ATTRIBUTES | _COLORS)[word] for word in attributes]
            self._words[name] = attributes
            self._codes[name] = f"\x1b[{';'.join(codes)}m" if codes else ""

    def start(self, style: str) -> str:
        """Return the escape that begins a style; empty if this terminal does not show it."""
        return self._codes[style]

    def paint(self, text: str, style: str) -> str:
        """Put the text in a style; the style "" leaves it unchanged."""
        code = self._codes[style] if style else ""
        return f"{code}{text}{RESET}" if code and text else text

    def rich_style(self, style: str) -> str:
        return " ".join(self._words[style])

    def path(self, path: str) -> str:
        """Format a path, as a link if the terminal has links."""
        return file_link(path) if self.links else visible_line(path)

    def symbol(self, name: str) -> str:
        return SYMBOLS[name][0 if self.unicode else 1]


def color_depth(environ: Mapping[str, str]) -> int:
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM")
    true = environ.get("COLORTERM", "") in ("truecolor", "24bit") or environ.get("WT_SESSION")
    if true or program in _TRUE_COLOR_PROGRAMS or "direct" in term or term in _TRUE_COLOR_TERMS:
        return TRUE_COLOR
    return 256 if "256" in term or program == "Apple_Terminal" else 16


def background_by_environment(environ: Mapping[str, str]) -> str:
    """Read the background that some terminals name in COLORFGBG; empty if it is not set."""
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    if not background.isdigit():
        return ""
    return LIGHT if int(background) in (7, *range(9, 16)) else DARK


def background_by_answer(answer: bytes) -> str:
    """Read the background from the terminal's answer to a query, such as `rgb:ffff/ffff/ffff`."""
    _, separator, rest = answer.partition(b"rgb:")
    values = rest.rstrip(b"\x07\x1b\\").split(b"/")
    if not separator or len(values) != 3:
        return ""
    try:
        red, green, blue = (int(value, 16) / float((1 << 4 * len(value)) - 1) for value in values)
    except (ValueError, ZeroDivisionError):
        return ""
    return LIGHT if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else DARK


# -- links of the terminal (OSC 8) -------------------------------------------------------------------------------


def has_links(environ: Mapping[str, str]) -> bool:
    forced, term = environ.get("FORCE_HYPERLINK"), environ.get("TERM", "")
    if forced:
        return forced != "0"
    # tmux and screen may drop a link, and then its address is lost.
    if environ.get("TMUX") or environ.get("STY") or term.startswith(("tmux", "screen")):
        return False
    vte = environ.get("VTE_VERSION", "")
    return (
        environ.get("TERM_PROGRAM") in _LINK_PROGRAMS
        or environ.get("LC_TERMINAL") == "iTerm2"
        or term.startswith(_LINK_TERMS)
        or (vte.isdigit() and int(vte) >= _FIRST_VTE_WITH_LINKS)
        or any(environ.get(name) for name in _LINK_VARIABLES)
    )


def safe_address(address: str) -> str:
    """Quote an address for a link; empty if it is not allowed in one."""
    address = quote(address, safe="!#$%&'()*+,/:;=?@[]~-._")
    return address if _SAFE_ADDRESS.fullmatch(address) else ""


def file_link(path: str) -> str:
    from socket import gethostname

    address = f"file://{gethostname()}{quote(os.path.abspath(os.path.expanduser(path)))}"
    label = visible_line(path)
    return f"\x1b]8;;{address}\x1b\\{label}\x1b]8;;\x1b\\"
