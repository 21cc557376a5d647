"""Screenshots of the whole screen or a part, at any size, with positions mapped back to the screen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from PIL.Image import Image

from interpreter import OpenInterpreter
from interpreter.computer_api.screen.display import Display, NoDisplayError, NotFoundOnScreenError
from interpreter.computer_api.tool import Picture
from screen.desktop import Desktop
from screen.drawing import Canvas

RED, GREEN, BLUE = 0xFF0000, 0x00FF00, 0x0000FF


@pytest.fixture
def display() -> Display:
    made: Display = OpenInterpreter().computer.display
    return made


@pytest.fixture
def canvas(desktop: Desktop) -> Iterator[Canvas]:
    made = Canvas(desktop)
    made.clear()
    yield made
    made.clear()


def single(picture: Picture | list[Picture]) -> Picture:
    assert isinstance(picture, Picture)
    return picture


def colour(picture: Picture, x: int, y: int) -> int:
    red, green, blue = picture.pil().convert("RGB").getpixel((x, y))
    return red << 16 | green << 8 | blue


def test_the_whole_screen_has_its_real_size(display: Display, canvas: Canvas) -> None:
    canvas.fill(RED, 1000, 500, 10, 10)
    picture = single(display.view(screen=-1))
    assert (picture.width, picture.height, picture.scale) == (1280, 800, 1)
    assert colour(picture, 1000, 500) == colour(picture, 1009, 509) == RED
    assert colour(picture, 999, 500) == colour(picture, 1010, 500) == 0


@pytest.mark.parametrize("size", [333, 640, 1000])
def test_positions_in_a_scaled_screenshot_map_to_the_screen(display: Display, canvas: Canvas, size: int) -> None:
    canvas.fill(RED, 1171, 701, 40, 40)
    display.computer.screenshot_size = size
    picture = single(display.view(screen=-1))
    assert max(picture.width, picture.height) == size
    image = picture.pil().convert("RGB")
    box = image.getchannel("R").point(lambda value: 255 if value > 128 else 0).getbbox()
    left, top = picture.on_screen(box[0], box[1])
    right, bottom = picture.on_screen(box[2], box[3])
    slack = picture.scale / 2 + 0.01
    for seen, drawn in ((left, 1171), (top, 701), (right, 1211), (bottom, 741)):
        assert abs(seen - drawn) <= slack


def test_regions_and_quadrants(display: Display, canvas: Canvas) -> None:
    canvas.fill(GREEN, 640, 400, 640, 400)
    region = single(display.view(region=[630, 390, 100, 50]))
    assert (region.width, region.height, region.left, region.top) == (100, 50, 630, 390)
    assert colour(region, 9, 9) == 0 and colour(region, 10, 10) == GREEN
    assert region.on_screen(10, 10) == (640, 400)
    quarter = single(display.view(quadrant=4, active_app_only=False))
    assert (quarter.left, quarter.top, quarter.width, quarter.height) == (640, 400, 640, 400)
    assert colour(quarter, 0, 0) == GREEN
    assert colour(single(display.view(quadrant=1, active_app_only=False)), 639, 399) == 0
    with pytest.raises(ValueError, match="upper left"):
        display.view(quadrant=5)
    with pytest.raises(ValueError, match="not on the screen"):
        display.view(region=[5000, 0, 10, 10])


@pytest.mark.needs("xrandr")
def test_screenshots_of_two_monitors(two_monitors: Desktop, display: Display, canvas: Canvas) -> None:
    canvas.fill(BLUE, 640, 0, 640, 800)
    assert display.size() == (1280, 800) and display.center() == (640, 400)
    assert [monitor["box"] for monitor in display.info()["monitors"]] == [[0, 0, 640, 800], [640, 0, 640, 800]]
    second = single(display.view(screen=1))
    assert (second.width, second.left) == (640, 640) and colour(second, 0, 0) == BLUE
    both = display.view(screen=-1, combine_screens=False)
    assert isinstance(both, list) and [picture.left for picture in both] == [0, 640]
    image = display.screenshot(1)
    assert isinstance(image, Image) and image.size == (640, 800) and image.getpixel((0, 0)) == (0, 0, 255)
    assert Picture.of(image).left == 640, "the position is known when it is passed back"
    assert Picture.of(image.crop((0, 0, 10, 10))).left == 0
    with pytest.raises(ValueError, match="0 to 1"):
        display.view(screen=2)


@pytest.mark.needs("xterm")
def test_the_active_window_or_one_by_title_is_captured(desktop: Desktop, display: Display) -> None:
    first = desktop.start("xterm", "-T", "alpha", "-geometry", "40x10+20+30", title="alpha")
    desktop.start("xterm", "-T", "beta", "-geometry", "40x10+500+300", title="beta")
    info = display.info()
    assert info["active_window"]["title"] == "beta"
    assert [window["title"] for window in info["windows"]] == ["beta", "alpha"]
    active, other = single(display.view()), single(display.view(window="ALPHA"))
    assert [active.left, active.top, active.width, active.height] == info["active_window"]["box"]
    assert single(display.view(window=first.window)).left == other.left == info["windows"][1]["box"][0]
    with pytest.raises(NotFoundOnScreenError, match="'beta', 'alpha'"):
        display.view(window="gamma")


def test_changed_since_returns_the_changed_areas(display: Display, canvas: Canvas) -> None:
    before = single(display.view(screen=-1))
    assert display.changed_since(before) == []
    canvas.fill(RED, 300, 200, 50, 20)
    ((left, top, width, height),) = display.changed_since(before)
    assert left <= 300 and top <= 200 and left + width >= 350 and top + height >= 220
    assert width < 120 and height < 100


def test_without_a_display_the_error_says_what_to_do(display: Display, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(NoDisplayError, match="Xvfb"):
        display.view()
    monkeypatch.setenv("DISPLAY", ":999")
    with pytest.raises(NoDisplayError, match="Can't open"):
        display.size()


def test_importing_the_display_loads_no_heavy_packages() -> None:
    code = "import interpreter.computer_api.screen.display as d, sys; print(*{'numpy', 'cv2', 'PIL', 'mss', 'Xlib', 'rapidocr'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_a_picture_has_a_short_repr() -> None:
    assert len(repr(Picture(b"x" * 5000, 10, 20))) < 100


@pytest.mark.parametrize("region", ["all", [1, 2, 3], 7, [0, 0, "10", 10]])
def test_an_invalid_region_is_an_error(desktop: Desktop, display: Display, region: Any) -> None:
    with pytest.raises(ValueError, match=r"A region is \[left, top, width, height\]"):
        display.view(region=region)
