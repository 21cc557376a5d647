"""Finding elements in real programs: by accessibility, by OCR, or by an image."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api.screen.display import Display, Match, NotFoundOnScreenError
from interpreter.computer_api.screen.display.accessibility import (
    _ROOT,
    STATES,
    AccessibilityBus,
    AccessibilityError,
    Key,
)
from interpreter.computer_api.screen.display.finding import SAME_LETTERS, ScreenView, named
from interpreter.computer_api.screen.display.pictures import ScreenText
from interpreter.computer_api.screen.platforms import Box
from interpreter.computer_api.tool import Picture
from sampling import some
from screen.desktop import Application, Desktop


@pytest.fixture
def display() -> Display:
    made: Display = OpenInterpreter().computer.display
    return made


def move_order_window(desktop: Desktop, display: Display, application: Application, left: int, top: int) -> None:
    """Move the order dialog's window, and wait until its program reports the new position."""

    def offset() -> tuple[int, int]:
        window, button = Box(*display.info()["active_window"]["box"]), in_tree(display, "Save order")[0]
        return button.x - window.left, button.y - window.top

    wait_for_element(desktop, display, "Save order")
    before = offset()
    window = desktop.x.create_resource_object("window", application.window)
    window.configure(x=left, y=top)
    root = desktop.x.screen().root
    desktop.until(lambda: abs(root.translate_coords(window, 0, 0).x - left) < 40, "the window to have moved")
    desktop.until(lambda: offset() == before, "the program to know")


def in_tree(display: Display, name: str) -> list[Match]:
    """Matches in the accessibility tree, without OCR."""
    return named(ScreenView(display._screen, ScreenText()), name, SAME_LETTERS)


def wait_for_element(desktop: Desktop, display: Display, name: str) -> None:
    """Wait for an element: programs publish their elements a moment after the window opens."""
    desktop.until(lambda: in_tree(display, name), f"{name} to be in the tree")


def only(matches: list[Match]) -> Match:
    assert len(matches) == 1, matches
    return matches[0]


@pytest.mark.needs("mousepad")
def test_menus_of_a_gtk_program_are_listed_when_open(desktop: Desktop, display: Display, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear reader\n")
    desktop.editor(file)
    wait_for_element(desktop, display, "File")
    found = only(display.locate("File"))
    assert (found.source, found.role, found.similarity) == ("accessibility", "menu", 1.0)
    assert Box(*display.info()["active_window"]["box"]).has(found.x, found.y)
    assert in_tree(display, "Save As...") == []
    display.activate(found)
    desktop.until(lambda: in_tree(display, "Save As..."), "the menu to be open")
    display.wait_until_still(timeout=60)
    item = only(display.locate("Save As..."))
    assert item.role == "menu item" and item.y > found.y
    # In screen order, without the space for shortcuts; the rest of the menu bar is still listed.
    names = [element["name"] for element in display.elements() if "menu" in element["role"]]
    assert names[:3] == ["File", "New", "New Window"] and names.index("Save") + 1 == names.index("Save As...")
    assert names[-1] == "Help"
    picture = display.view()
    assert isinstance(picture, Picture) and picture.height > item.y - picture.top


@pytest.mark.needs("mousepad")
def test_text_elements_can_be_read_and_written(desktop: Desktop, display: Display, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear reader\n")
    desktop.editor(file)
    focused = lambda: any("focused" in element.get("states", ()) for element in display.elements())  # noqa: E731
    desktop.until(focused, "the text to have the focus")
    elements = display.elements()
    names = [element["name"] for element in elements]
    assert names[:2] == ["File", "Edit"]
    text = next(element for element in elements if element["role"] == "text")
    assert text["value"] == "Dear reader\n" and "focused" in text["states"]
    assert display.get_text(text["ref"]) == "Dear reader\n"
    assert display.set_text(text, "Zoë é ✓ 漢")
    assert display.get_text(text) == "Zoë é ✓ 漢"
    assert only(display.locate(text)).y == text["y"]
    summary = display.summary()
    assert "letter.txt" in summary.splitlines()[0] and f'{elements[0]["ref"]} menu "File"' in summary
    with pytest.raises(NotFoundOnScreenError, match="Call elements"):
        display.get_text("e9999")


def test_elements_of_a_qt_program_can_be_used(desktop: Desktop, display: Display, tmp_path: Path) -> None:
    result = tmp_path / "order.json"
    desktop.qt_dialog(result)
    wait_for_element(desktop, display, "Save order")
    # A label and its field have the same name: the field is meant.
    field = only(display.locate("Customer"))
    assert (field.source, field.role) == ("accessibility", "text")
    assert display.set_text(field, "Ana") and display.get_text(field) == "Ana"
    assert only(display.locate("the save order button")).text == "Save order"
    assert in_tree(display, "Medium") == [], "the list is closed"
    display.activate("Save order")
    desktop.until(result.exists, "the dialog to write its file")


@pytest.mark.full
def test_all_equal_matches_are_found_and_numbered(desktop: Desktop, display: Display, tmp_path: Path) -> None:
    desktop.tk_form(tmp_path / "guest.json")
    desktop.until(lambda: len(display.locate("Choose")) == 3, "the buttons to be painted")
    matches = display.locate("Choose")
    assert len(matches) == 3 and {match.source for match in matches} == {"ocr"}
    assert len({match.y for match in matches}) == 1 or max(m.y for m in matches) - min(m.y for m in matches) < 5
    plain = display.view(screen=-1)
    assert isinstance(plain, Picture)
    marked = display.numbered(matches, plain)
    assert (marked.width, marked.left, marked.scale) == (plain.width, plain.left, plain.scale)
    for match in matches:
        assert marked.pil().getpixel((match.box.left - 2, match.box.center[1])) == (220, 20, 60)
    assert display.find("Sign")[0]["text"] == "Sign"
    assert display.locate("Nowhere to be seen") == []


@pytest.mark.needs("xterm")
def test_covered_elements_are_not_found(desktop: Desktop, display: Display, tmp_path: Path) -> None:
    dialog = desktop.qt_dialog(tmp_path / "order.json")
    move_order_window(desktop, display, dialog, 100, 100)
    whole = only(display.locate("Save order"))
    options = ("-T", "cover", "-geometry", f"60x20+{whole.box.left + 30}+{whole.box.top - 40}")
    desktop.start("xterm", *options, title="cover")
    part = only(display.locate("Save order"))
    cover = Box(*display.info()["active_window"]["box"])
    assert not cover.has(part.x, part.y) and whole.box.has(part.x, part.y)
    assert in_tree(display, "Forget it") == []


@pytest.mark.needs("xrandr")
def test_elements_on_the_second_monitor_are_found(two_monitors: Desktop, display: Display, tmp_path: Path) -> None:
    dialog = two_monitors.qt_dialog(tmp_path / "order.json")
    move_order_window(two_monitors, display, dialog, 760, 300)
    box = Box(*display.info()["active_window"]["box"])
    assert box.left >= 640
    button = only(display.locate("Save order"))
    assert box.has(button.x, button.y)
    element = next(each for each in display.elements() if each["name"] == "Save order")
    assert (element["x"], element["y"]) == (button.x, button.y)


@pytest.mark.needs("mousepad")
def test_an_icon_is_found_by_its_image(desktop: Desktop, display: Display, tmp_path: Path) -> None:
    desktop.editor()
    assert display.wait_until_still(timeout=60), "the frame is drawn"
    left, top, width, _ = display.info()["active_window"]["box"]
    # The window manager's close button.
    corner = (left + width - 20, top + 2, 16, 16)
    icon = display.view(region=corner)
    assert isinstance(icon, Picture)
    found = only(display.locate(icon))
    assert found.source == "icon" and found.similarity > 0.99 and found.box == Box(*corner)
    file = tmp_path / "close.png"
    icon.pil().resize((24, 24)).save(file)
    larger = display.locate(str(file))
    assert any(abs(match.x - found.x) < 4 and abs(match.y - found.y) < 4 for match in larger)


@pytest.mark.parametrize("bus", some(1, ["none", "gone", "silent"]))
def test_without_the_accessibility_bus_ocr_is_used(
    bus: str, desktop: Desktop, display: Display, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop.qt_dialog(tmp_path / "order.json")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "bus"))
        if bus == "silent":
            silent.listen()
        if bus == "none":
            monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
        else:
            monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path / 'bus'}")
        display.wait_until_still(timeout=60)
        assert only(display.locate("Save order")).source == "ocr"
        assert "Customer" in display.summary()
    assert not [thread for thread in threading.enumerate() if thread.name == "accessibility"]


PAGE = """<title>Fruit shop</title><h1>Fruit shop</h1><a href="#x">Log in</a> <label>Name <input></label>
<button>Order now</button><button aria-label="Settings gear">&#9881;</button><p>Only ripe ones.</p>
<script>for (let n = 1; n <= CONTROLS; n++) document.write(`<button>Row ${n}</button> `)</script>"""


class LargeProgram(AccessibilityBus):
    """A program that gives its elements one by one: a window with a table of 2,000 cells, and a dialog."""

    inside: ClassVar[dict[str, list[str]]] = {
        _ROOT: ["/program"],
        "/program": ["/window", "/dialog"],
        "/window": ["/table"],
        "/table": [f"/row{row}" for row in range(200)],
        **{f"/row{row}": [f"/row{row}/cell{column}" for column in range(10)] for row in range(200)},
        "/dialog": ["/panel"],
        "/panel": ["/yes"],
    }

    def __init__(self) -> None:
        super().__init__(None)

    async def call(self, key: Key, interface: str, member: str, signature: str = "", body: Iterable[Any] = ()) -> Any:
        match member:
            case "GetItems":
                raise AccessibilityError("There is no cache.")
            case "GetChildren":
                return [[(":1.1", path) for path in self.inside.get(key[1], ())]]
            case "GetState":
                return [[2**32 - 1 & ~(1 << STATES.index("defunct")), 0]]
            case "GetInterfaces":
                return [[]]
        return [1]

    async def property(self, key: Key, interface: str, name: str) -> Any:
        return key[1]


def test_a_dialog_is_found_beside_a_large_window_of_its_program() -> None:
    tree = asyncio.run(LargeProgram().tree(frozenset()))
    assert "/yes" in {element.name for element in tree.elements.values()}
    assert len(tree.elements) < 1100


@pytest.mark.full
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("controls", [400, pytest.param(4000, marks=pytest.mark.full)])
def test_elements_of_a_large_web_page_are_found(
    controls: int, desktop: Desktop, display: Display, tmp_path: Path
) -> None:
    page = tmp_path / "shop.html"
    page.write_text(PAGE.replace("CONTROLS", str(controls)))
    desktop.browser(page.as_uri(), "Fruit shop")
    desktop.until(lambda: in_tree(display, "Row 3"), "the page to be in the tree")
    link, field = only(display.locate("Log in")), only(display.locate("Name"))
    assert (link.role, field.role) == ("link", "entry") and field.x > link.x
    assert only(display.locate("gear icon")).text == "Settings gear"
    assert in_tree(display, f"Row {controls - 1}") == [], "it is far below the visible part"
    elements = display.elements(limit=60)
    assert 30 < len(elements) <= 60 and "Only ripe ones." in [element["name"] for element in elements]
    assert "more; elements(limit=...)" in display.summary(limit=20)
