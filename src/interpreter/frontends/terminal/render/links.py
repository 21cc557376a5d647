"""What can be clicked: addresses and paths as links of the terminal (OSC 8), where it has them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import quote

_END = "\x1b]8;;\x1b\\"
_PROGRAMS = frozenset(
    {"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "mintty", "rio", "Tabby", "WarpTerminal", "zed"}
)
_TERMS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "contour", "wezterm")
_SIGNS = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "ALACRITTY_WINDOW_ID", "WEZTERM_PANE")
_BETWEEN = ("TMUX", "STY")  # tmux and screen: what is behind them may not get a link, and its address would be gone
_FIRST_VTE = 5000  # the first version that has links
_SAFE = re.compile(r"(?:https?|mailto|file):[!-~]+", re.IGNORECASE)
# As IPython writes a frame, and as Python does; a style may stand between the words.
_STYLE = r"(?:\x1b\[[0-9;:]*m)*"
_FRAME = re.compile(rf'^({_STYLE}File {_STYLE}|\s*{_STYLE}File {_STYLE}")((?:/|~/)[^\x1b":]+)')


def has_links(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is known to have links."""
    forced = environ.get("FORCE_HYPERLINK")
    if forced:
        return forced != "0"
    if any(environ.get(sign) for sign in _BETWEEN) or environ.get("TERM", "").startswith(("tmux", "screen")):
        return False
    if environ.get("TERM_PROGRAM") in _PROGRAMS or environ.get("LC_TERMINAL") == "iTerm2":
        return True
    vte = environ.get("VTE_VERSION", "")
    known = environ.get("TERM", "").startswith(_TERMS) or (vte.isdigit() and int(vte) >= _FIRST_VTE)
    return known or any(environ.get(sign) for sign in _SIGNS)


def safe_address(address: str) -> str:
    """The address as it may stand in a link; empty if it may not."""
    address = quote(address, safe="!#$%&'()*+,/:;=?@[]~-._")
    return address if _SAFE.fullmatch(address) else ""


def to_file(path: str) -> str:
    """The address of a file on this machine."""
    from socket import gethostname

    return f"file://{gethostname()}{quote(os.path.abspath(os.path.expanduser(path)))}"


def linked(text: str, address: str) -> str:
    return f"\x1b]8;;{address}\x1b\\{text}{_END}"


def with_linked_frame(line: str) -> str:
    """A line of a traceback that names a file, with the file as a link."""
    found = _FRAME.match(line)
    if not found:
        return line
    return found[1] + linked(found[2], to_file(found[2])) + line[found.end() :]
