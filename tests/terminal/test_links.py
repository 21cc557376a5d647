"""Clickable links, on terminals that support them."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

import pytest

from interpreter.frontends.terminal.render.ansi import (
    cells,
    clip,
    without_styles,
)
from interpreter.frontends.terminal.render.code_block import with_linked_frame
from interpreter.frontends.terminal.render.markdown import MarkdownView
from interpreter.frontends.terminal.render.theme import Theme, file_link, has_links, safe_address

_LINK = re.compile(r"\x1b\]8;[^;]*;([^\x1b]*)\x1b\\(.*?)\x1b\]8;;\x1b\\")


def links(text: str) -> list[tuple[str, str]]:
    return [(address, without_styles(words)) for address, words in _LINK.findall(text)]


def shown(markdown: str, theme: Theme, width: int = 80) -> str:
    view = MarkdownView(theme, width)
    return "\n".join(view.feed(markdown) + view.close())


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4800"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "tmux-256color", "TERM_PROGRAM": "tmux"}, False),
        ({"TERM": "screen-256color", "TMUX": "/tmp/tmux/default,1,0", "KITTY_WINDOW_ID": "1"}, False),
        ({"TERM": "xterm-256color", "STY": "1.pts", "VTE_VERSION": "7200"}, False),
        ({"TERM": "xterm-256color", "FORCE_HYPERLINK": "1"}, True),
        ({"TERM": "xterm-kitty", "FORCE_HYPERLINK": "0"}, False),
    ],
)
def test_link_support_is_detected_from_the_environment(environ: dict[str, str], expected: bool) -> None:
    assert has_links(environ) is expected


def test_a_markdown_link_shows_its_text() -> None:
    text = shown("See [the manual](https://x.org/a b) now.", Theme(links=True))
    assert without_styles(text) == "See [the manual](https://x.org/a b) now."  # not a link in Markdown either
    text = shown("See [the manual](https://x.org/ä?q=1) now.", Theme(links=True))
    assert without_styles(text) == "See the manual now."
    assert [address for address, _ in links(text)] == ["https://x.org/%C3%A4?q=1"]
    assert without_styles(shown("See [the manual](https://x.org/) now.", Theme())).endswith("(https://x.org/) now.")


def test_link_text_that_looks_like_a_url_does_not_hide_the_real_one() -> None:
    text = shown("[https://good.org](https://bad.org/)", Theme(links=True))
    assert without_styles(text) == "https://good.org (https://bad.org/)"


@pytest.mark.parametrize("address", ["javascript:alert(1)", "x", "", "data:text/html,x", "ssh://x"])
def test_only_safe_urls_become_links(address: str) -> None:
    assert safe_address(address) == ""
    assert links(shown(f"[words]({address})", Theme(links=True))) == []


def test_the_same_link_is_drawn_the_same_each_time() -> None:
    theme = Theme(links=True)
    assert shown("[a](https://x.org)", theme) == shown("[a](https://x.org)", theme)


def test_a_link_has_the_width_of_its_text() -> None:
    text = "\x1b]8;;https://x.org/very/long\x1b\\words\x1b]8;;\x1b\\"
    assert cells(text) == 5
    assert clip(text, 3) == text.replace("words", "wor")


@pytest.mark.parametrize("line", ["File /a/b c.py:12, in f(x)", '  File "/a/b c.py", line 12, in f'])
def test_traceback_frames_link_to_their_file(line: str) -> None:
    shown = with_linked_frame(line)
    assert without_styles(shown) == line
    (address, words), *_ = links(shown)
    assert words == "/a/b c.py"
    assert unquote(urlsplit(address).path) == "/a/b c.py"
    assert file_link("/a/b c.py") in shown


@pytest.mark.parametrize("line", ["Files /a:1", "File x", "Cell In[1], line 1", "a File /a:1"])
def test_other_lines_get_no_link(line: str) -> None:
    assert with_linked_frame(line) == line


def test_our_own_paths_become_links() -> None:
    assert Theme().path("/a") == "/a"
    assert links(Theme(links=True).path("/a")) == links(file_link("/a"))
