"""Images in the terminal: the escape sequences decode to the image, and the screen around it stays intact."""

from __future__ import annotations

import base64
import io
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from interpreter.frontends.pictures.images import (
    COARSE,
    Graphics,
    Pictures,
    block_rows,
    find_graphics,
    fitted,
    kitty_escapes,
    sixel_escape,
)
from interpreter.frontends.terminal.render.display import TerminalDisplay, TerminalScreen
from interpreter.frontends.terminal.render.plain import PlainDisplay
from interpreter.frontends.terminal.render.saved import png_size
from interpreter.frontends.terminal.render.theme import Theme, color_depth
from terminal.emulator import Emulator

KITTY = {"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"}
SIXEL = [b"\x1b[?62;4;22c"]


def picture(width: int = 40, height: int = 30, seed: int = 0) -> Image.Image:
    """Coloured rectangles: sharp edges and few colours, like a figure."""
    chance = random.Random(seed)
    image = Image.new("RGB", (width, height), "white")
    for _ in range(6):
        color = tuple(chance.randrange(256) for _ in range(3))
        image.paste(color, (*(box := (chance.randrange(width), chance.randrange(height))), box[0] + 9, box[1] + 7))
    return image


def png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def pixels(image: Image.Image) -> list[Any]:
    data = image.convert("RGB").tobytes()
    return [tuple(data[at : at + 3]) for at in range(0, len(data), 3)]


def decoded_sixel(escape: str) -> Image.Image:
    """A sixel image, decoded as the standard says."""
    body = re.fullmatch(r"\x1bP[\d;]*q(.*)\x1b\\", escape, re.DOTALL)
    assert body
    width, height = map(int, re.match(r'"1;1;(\d+);(\d+)', body[1]).groups())  # type: ignore[union-attr]
    image = Image.new("RGB", (width, height), (1, 2, 3))
    colors: dict[int, tuple[int, ...]] = {}
    color, x, y = 0, 0, 0
    rest = re.sub(r'^"[\d;]*', "", body[1])
    for token in re.finditer(r"#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)([?-~])|([?-~])|([$-])", rest):
        if token[1]:
            colors[int(token[1])] = tuple(round(int(token[n]) * 255 / 100) for n in (2, 3, 4))
        elif token[5]:
            color = int(token[5])
        elif token[9]:
            x, y = 0, y + (6 if token[9] == "-" else 0)
        else:
            bits, count = ord(token[7] or token[8]) - 63, int(token[6] or 1)
            for row in range(6):
                if bits >> row & 1:
                    image.paste(colors[color], (x, y + row, x + count, y + row + 1))
            x += count
    return image


def decoded_kitty(text: str) -> tuple[dict[str, str], bytes]:
    """The keys and the file of a kitty transmission, joined from its chunks."""
    chunks = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", text)
    keys = dict(pair.split("=") for pair in chunks[0][0].split(","))
    more = [dict(pair.split("=") for pair in head.split(","))["m"] for head, _ in chunks]
    assert more == ["1"] * (len(chunks) - 1) + ["0"]
    assert all(len(data) <= 4096 for _, data in chunks)
    return keys, base64.b64decode("".join(data for _, data in chunks))


# -- encoding ----------------------------------------------------------------------------------------------


@given(width=st.integers(1, 50), height=st.integers(1, 40), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_sixels_decode_to_the_image(width: int, height: int, seed: int) -> None:
    image = picture(width, height, seed)
    shown = decoded_sixel(sixel_escape(image, 256))
    assert shown.size == image.size
    for sent, seen in zip(pixels(image), pixels(shown), strict=True):
        assert all(abs(one - other) <= 2 for one, other in zip(sent, seen, strict=True))


def test_a_terminal_with_few_colour_registers_gets_few_colours() -> None:
    escape = sixel_escape(Image.linear_gradient("L").convert("RGB"), 16)
    assert len(re.findall(r"#\d+;2;", escape)) <= 16


def test_kitty_gets_the_file_unchanged() -> None:
    data = random.Random(0).randbytes(20_000)
    keys, sent = decoded_kitty("".join(kitty_escapes(data, 30, 10)))
    assert sent == data
    assert {"a": "T", "f": "100", "C": "1", "c": "30", "r": "10"}.items() <= keys.items()


@pytest.mark.parametrize(
    ("colors", "code"), [(1 << 24, r"38;2;255;0;0;48;2;0;0;255"), (256, "38;5;196;48;5;21"), (16, r"31;44")]
)
def test_block_cells_hold_two_pixels(colors: int, code: str) -> None:
    image = Image.new("RGB", (1, 2))
    image.putpixel((0, 0), (255, 0, 0))
    image.putpixel((0, 1), (0, 0, 255) if colors > 16 else (0, 0, 238))
    assert block_rows(image, 1, 1, colors) == [f"\x1b[{code}m▀\x1b[0m"]


def test_block_cells_of_one_colour_are_spaces() -> None:
    assert block_rows(Image.new("RGB", (2, 2), "white"), 2, 1, 256) == ["\x1b[48;5;231m  \x1b[0m"]


# -- size --------------------------------------------------------------------------------------------------


@given(
    width=st.integers(1, 9000),
    height=st.integers(1, 9000),
    columns=st.integers(4, 300),
    lines=st.integers(4, 100),
    cell=st.sampled_from([(6, 13), (9, 18), (10, 20), (20, 42)]),
)
@settings(max_examples=200, deadline=None)
def test_an_image_fits_the_screen(width: int, height: int, columns: int, lines: int, cell: tuple[int, int]) -> None:
    wide, high, scale = fitted((width, height), cell, columns, lines)
    assert 1 <= wide < columns
    assert 1 <= high <= max(2, lines * 0.6)
    assert scale <= max(1.0, cell[1] / 20)
    assert int(height * scale) <= max(high * cell[1], 1)


def test_the_size_of_a_png_is_read_without_decoding() -> None:
    assert png_size(png(picture(40, 30))) == (40, 30)
    assert png_size(b"no picture") is None


# -- which protocol ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "answers", "protocol"),
    [
        (KITTY, [], "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, [], "iterm"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, [], "iterm"),
        ({"TERM": "xterm-ghostty"}, [], "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, SIXEL, "blocks"),
        ({"TERM": "xterm"}, SIXEL, "sixel"),
        ({"TERM": "xterm"}, [b"\x1b_Gi=31;OK\x1b\\", *SIXEL], "kitty"),
        ({"TERM": "xterm"}, [b"\x1b_Gi=31;ENOTSUPPORTED\x1b\\", b"\x1b[?62;22c"], "blocks"),
        ({"TERM": "xterm"}, [], "blocks"),
        ({"TERM": "screen"}, SIXEL, "blocks"),
        ({**KITTY, "TERM": "tmux-256color", "TMUX": "/tmp/x"}, [b"\x1b[?1;2c"], "blocks"),
        ({**KITTY, "TERM": "tmux-256color", "TMUX": "/tmp/x"}, [b"\x1b[?1;2;4c"], "sixel"),
    ],
)
def test_the_protocol_is_chosen_for_the_terminal(environ: dict[str, str], answers: list[bytes], protocol: str) -> None:
    assert find_graphics("auto", environ, (9, 18), lambda questions: answers).protocol == protocol


def test_known_terminals_are_not_queried() -> None:
    asked: list[str] = []

    def ask(questions: str) -> list[bytes]:
        asked.append(questions)
        return [b"\x1b[6;40;20t", b"\x1b[?1;0;1024S", b"\x1b[?62;4c"]

    assert find_graphics("auto", KITTY, (9, 18), ask).protocol == "kitty"
    assert find_graphics("off", {"TERM": "xterm"}, None, ask).protocol == "off"
    assert asked == []
    found = find_graphics("sixel", {"TERM": "xterm"}, None, ask)
    assert found == Graphics("sixel", (20, 40), 16, 256)
    assert "_G" not in asked[0]


def test_forced_graphics_go_through_tmux(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(png(picture()))
    pictures = Pictures(cell=lambda: (9, 18), environ={"TERM": "tmux-256color", "TMUX": "x"})
    pictures.wanted = "kitty"
    pictures.prepare()
    last = pictures.rows(str(path), 80, 24, "", Theme())[-1]
    wrapped = re.search(r"\x1bPtmux;((?:\x1b\x1b|[^\x1b])*)\x1b\\", last)
    assert wrapped is not None
    assert decoded_kitty(wrapped[1].replace("\x1b\x1b", "\x1b"))[1] == path.read_bytes()


def test_the_colour_depth_follows_the_environment() -> None:
    assert color_depth({"TERM": "xterm", "COLORTERM": "truecolor"}) == 1 << 24
    assert color_depth({"TERM": "xterm-256color"}) == 256
    assert color_depth({"TERM": "xterm"}) == 16


# -- on the screen -----------------------------------------------------------------------------------------


class Stage:
    """A display on an emulated terminal of the given kind."""

    def __init__(self, environ: dict[str, str], answers: list[bytes] | None = None, color: bool = True) -> None:
        self.emulator = Emulator(80, 24)
        self.sent = ""
        pictures = Pictures(lambda questions: answers or [], lambda: (9, 18), environ, color)
        screen = TerminalScreen(self._write, self.emulator.size)
        self.display = TerminalDisplay(screen, Theme(color), pictures=pictures)

    def _write(self, text: str) -> None:
        self.sent += text
        self.emulator.feed(text)

    def show(self, *contents: dict[str, Any]) -> list[str]:
        self.display.begin()
        for content in contents:
            self.display.show({"role": "computer", **content})  # type: ignore[typeddict-item]
        self.display.finish()
        return self.emulator.everything


def figure(image: Image.Image | None = None) -> dict[str, Any]:
    data = png(image or picture(640, 480))
    return {"type": "image", "format": "base64.png", "content": base64.b64encode(data).decode()}


def printed(text: str) -> dict[str, Any]:
    return {"type": "console", "format": "output", "content": text}


@pytest.mark.parametrize(("environ", "answers"), [(KITTY, []), ({"TERM": "xterm"}, SIXEL)])
def test_an_image_reserves_rows_and_text_continues_below(environ: dict[str, str], answers: list[bytes]) -> None:
    stage = Stage(environ, answers)
    many = "".join(f"{n}\n" for n in range(15))
    rows = stage.show(printed(many), figure(), printed("after\n"), figure(), printed("end\n"))
    high = fitted((640, 480), (9, 18), 80, 24)[1]
    first, second = (number for number, row in enumerate(rows) if row.startswith("Image: "))
    assert rows[first - high : first] == rows[second - high : second] == [""] * high
    assert rows[first - high - 1] == "14"
    assert rows[first + 1] == "after"
    assert rows[second + 1 :] == ["end"]
    assert high == 14


def test_an_image_is_drawn_in_its_reserved_rows() -> None:
    stage = Stage(KITTY)
    image = picture(90, 36)
    stage.show(printed("above\n"), figure(image))
    climb = re.search(r"\x1b7\x1b\[(\d+)A\r(\x1b_G.*\x1b\\)\x1b8\r", stage.sent, re.DOTALL)
    assert climb is not None
    keys, data = decoded_kitty(climb[2])
    assert (climb[1], keys["c"], keys["r"]) == ("2", "10", "2")
    assert pixels(Image.open(io.BytesIO(data))) == pixels(image)


def test_block_images_come_with_a_hint() -> None:
    rows = Stage({"TERM": "xterm-256color"}).show(figure())
    assert sum("▀" in row for row in rows) > 2
    assert all(len(row) < 80 for row in rows)
    assert rows[-2].startswith("Image: ")
    assert rows[-1] == COARSE


@pytest.mark.parametrize("content", [b"no picture", png(picture())[:60]])
def test_invalid_images_show_only_their_path(content: bytes) -> None:
    chunk = {"type": "image", "format": "base64.png", "content": base64.b64encode(content).decode()}
    rows = Stage({"TERM": "xterm"}).show(chunk)
    assert len(rows) == 1
    assert Path(rows[0].removeprefix("Image: ")).read_bytes() == content


def test_without_colours_only_the_path_is_shown() -> None:
    assert len(Stage({"TERM": "xterm"}, color=False).show(figure())) == 1


def test_with_images_off_only_the_path_is_shown() -> None:
    stage = Stage(KITTY)
    stage.display.pictures.wanted = "off"
    assert len(stage.show(figure())) == 1


def test_without_pillow_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "PIL", None)
    stage = Stage({"TERM": "xterm"}, SIXEL)
    rows = stage.show(figure_of(b"\x89PNG..."), figure_of(b"\x89PNG..."))
    assert [row for row in rows if "install" in row] == ["To show images here: %install images"]
    assert len(rows) == 3


def figure_of(data: bytes) -> dict[str, Any]:
    return {"type": "image", "format": "base64.png", "content": base64.b64encode(data).decode()}


def test_images_for_the_model_are_shown_to_the_user() -> None:
    rows = Stage(KITTY).show({**figure(), "recipient": "assistant"})
    assert rows[-1].startswith("Image: ")


def test_a_transparent_image_is_drawn_on_white() -> None:
    stage = Stage({"TERM": "xterm", "COLORTERM": "truecolor"})
    stage.show(figure(Image.new("RGBA", (64, 64), (0, 0, 0, 0))))  # type: ignore[arg-type]
    assert "48;2;255;255;255m" in stage.sent


def test_plain_text_shows_the_path_and_size_of_an_image() -> None:
    written: list[str] = []
    display = PlainDisplay(written.append)
    display.show({"role": "computer", **figure(picture(64, 48))})  # type: ignore[typeddict-item]
    found = re.fullmatch(r"\[figure: saved to (\S+), 64x48\]\n", "".join(written))
    assert found is not None
    assert Path(found[1]).is_file()
