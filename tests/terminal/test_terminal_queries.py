"""Queries to the terminal: its answers are separated from typed keys, and no key is lost."""

from __future__ import annotations

import base64
import os
import pty
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from interpreter.frontends.terminal.keyboard import TypeAhead
from interpreter.frontends.terminal.render.theme import (
    DARK,
    LIGHT,
    Theme,
    background_by_answer,
    background_by_environment,
)
from interpreter.frontends.terminal.tty import (
    BACKGROUND,
    KITTY_GRAPHICS,
    Tty,
    answers_queries,
)
from model_replies import text, tool_call
from model_server import ModelServer
from terminal.person import someone
from terminal.test_images import picture, png

ATTRIBUTES = b"\x1b[?62;4c"
GREY = b"\x1b]11;rgb:1d1d/1f1f/2121\x1b\\"


@contextmanager
def terminal(*pieces: bytes) -> Iterator[Tty]:
    """A terminal that answers a query with these bytes, one read at a time."""
    master, slave = pty.openpty()
    with open(slave, "r+b", buffering=0) as raw, open(master, "r+b", buffering=0) as other:
        stdin, stdout = os.fdopen(os.dup(slave)), os.fdopen(os.dup(slave), "w")

        def answer() -> None:
            asked = b""
            while not asked.endswith(b"\x1b[c"):
                asked += other.read(4096)
            for piece in pieces:
                other.write(piece)

        thread = threading.Thread(target=answer)
        thread.start()
        with stdin, stdout:
            tty = Tty(stdin, stdout)
            with tty.keys(marks=False):
                yield tty
            thread.join()
        assert raw


@pytest.mark.parametrize(
    "pieces",
    [
        (GREY, ATTRIBUTES),
        (b"abc", GREY, ATTRIBUTES),
        (b"ab" + GREY[:9], GREY[9:] + b"c" + ATTRIBUTES[:3], ATTRIBUTES[3:]),
        (GREY + b"\x1b[A" + b"abc" + ATTRIBUTES,),
    ],
)
def test_keys_among_the_answers_are_kept(pieces: tuple[bytes, ...]) -> None:
    with terminal(*pieces) as tty:
        answers, typed = tty.query(BACKGROUND, 30)
    assert answers == [GREY, ATTRIBUTES]
    assert typed.replace(b"\x1b[A", b"") in (b"abc", b"")
    assert (b"abc" in typed) == (b"c" in b"".join(pieces).replace(ATTRIBUTES, b""))


def test_a_terminal_that_does_not_answer_times_out() -> None:
    with terminal(b"keys") as tty:
        assert tty.query(KITTY_GRAPHICS, 0.2) == ([], b"keys")


def test_which_terminals_answer_queries() -> None:
    assert answers_queries({"TERM": "xterm-256color"})
    assert answers_queries({"TERM": "screen-256color", "TMUX": "/tmp/x"})
    assert not answers_queries({"TERM": "linux"})
    assert not answers_queries({"TERM": "screen"})


def test_a_late_answer_is_not_typed_text() -> None:
    typed = TypeAhead()
    typed.feed(b"a" + GREY + b"b\x1b_Gi=31;OK\x1b\\c" + ATTRIBUTES + b"d")
    assert typed.open == "abcd"


@pytest.mark.parametrize(
    ("value", "background"), [("15;0", DARK), ("0;15", LIGHT), ("0;default;15", LIGHT), ("", ""), ("0;default", "")]
)
def test_the_background_is_read_from_the_environment(value: str, background: str) -> None:
    assert background_by_environment({"COLORFGBG": value}) == background


@pytest.mark.parametrize(
    ("answer", "background"),
    [
        (GREY, DARK),
        (b"\x1b]11;rgb:ffff/ffff/dddd\x07", LIGHT),
        (b"\x1b]11;rgb:ff/ff/ff\x07", LIGHT),
        (b"\x1b]11;x\x07", ""),
        (b"\x1b]11;rgb://\x07", ""),
        (ATTRIBUTES, ""),
    ],
)
def test_the_background_is_read_from_the_terminals_answer(answer: bytes, background: str) -> None:
    assert background_by_answer(answer) == background


def test_styles_depend_on_the_background_and_colour_depth() -> None:
    assert Theme(depth=16).start("name") == "\x1b[34m"
    assert Theme(depth=256, background=LIGHT).start("builtin") == "\x1b[38;5;30m"
    assert Theme(depth=256, background=LIGHT).rich_style("builtin") == "color(30)"
    assert Theme(depth=16, background=LIGHT).start("decorator") == "\x1b[35m"
    assert Theme(depth=256, background=DARK).start("name") == "\x1b[38;5;75m"
    assert Theme(color=False, depth=256, background=LIGHT).start("error") == ""
    assert Theme(color=False).start("heading2") == "\x1b[1m"


def test_keys_typed_while_an_image_is_shown_are_kept() -> None:
    content = base64.b64encode(png(picture(90, 36))).decode()
    code = f"import base64\nfrom IPython.display import Image\ndisplay(Image(base64.b64decode({content!r})))\nprint('shown')"
    replies = [tool_call("python", code), text("Done.")]
    far = {"SSH_CONNECTION": "it has more time to answer"}
    with ModelServer(replies) as server, someone("-y", server=server, env=far) as person:
        person.answer = "ke\x1b[?62;4;22cys"  # keys typed while the terminal answers
        person.says("draw")
        person.sees("Done.")
        person.sees("> keyskeys")  # once for the background, once for the image
        assert "\x1bP0;1q" in person.raw
        person.types("\x15")
        assert person.leaves() == 0
        assert person.mode_is_restored
    rows = person.rows
    image = next(number for number, row in enumerate(rows) if row.startswith("Image: "))
    assert rows[image - 2 : image] == ["", ""]
    assert rows[image + 1] == "shown"
