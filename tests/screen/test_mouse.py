"""The mouse: clicking by text, element or coordinates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interpreter.computer_api.screen.platforms import AmbiguousTarget, NotFoundOnScreenError, StoppedByUser
from interpreter.computer_api.tool import Picture
from screen.desktop import Desktop
from screen.test_keyboard import saved_form


def test_move_puts_the_pointer_at_the_target(desktop: Desktop, computer: Any) -> None:
    assert computer.mouse.move(x=100, y=200) == (100, 200) == desktop.pointer()
    computer.mouse.move(31, 32)
    assert computer.mouse.position() == (31, 32) == desktop.pointer()
    computer.mouse.move((700, 5))
    computer.mouse.move({"x": 701, "y": 6})
    assert desktop.pointer() == (701, 6)
    computer.mouse.move({"coordinates": (0.5, 0.25)})
    assert desktop.pointer() == (640, 200)
    computer.mouse.move(x=10, y=20, screenshot=Picture(b"", 100, 100, left=50, top=60, scale=2))
    assert desktop.pointer() == (70, 100)


def test_a_connection_lost_to_an_interrupt_is_reopened(desktop: Desktop, computer: Any) -> None:
    from interpreter.computer_api.screen.input import device_of

    computer.mouse.move(x=300, y=200)
    device: Any = device_of(computer)
    device._x.display.display.close_internal("interrupted")
    assert computer.mouse.position() == (300, 200) and not device._x.is_lost
    computer.keyboard.down("shift")
    device._x.display.display.close_internal("interrupted")
    computer.mouse.move(x=310, y=210)
    assert desktop.pointer() == (310, 210) and not any(desktop.x.query_keymap()), "no key stays down"


def test_invalid_targets_are_errors(desktop: Desktop, computer: Any) -> None:
    with pytest.raises(ValueError, match="outside of the screen, which is 1280 x 800"):
        computer.mouse.click(x=5000, y=5)
    with pytest.raises(ValueError, match="One target"):
        computer.mouse.click("Save", "Cancel")
    with pytest.raises(ValueError, match=r"The target is None"):
        computer.mouse.click(None)
    with pytest.raises(TypeError, match=r"A target doesn't take 'place'\. Give a text"):
        computer.mouse.click(place="Save")
    with pytest.raises(ValueError, match="no mouse button 'big'"):
        computer.mouse.click(1, 2, button="big")


def element(desktop: Desktop, computer: Any, key: str, value: str) -> dict[str, Any]:
    """Wait for an element with this value: programs publish elements a moment after the window opens."""
    found: list[dict[str, Any]] = []

    def is_listed() -> bool:
        found[:] = [each for each in computer.display.elements() if each.get(key) == value]
        return bool(found)

    desktop.until(is_listed, f"an element whose {key} is {value}")
    return found[0]


def test_a_button_is_clicked_by_its_text(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    desktop.qt_dialog(tmp_path / "order.json")
    computer.keyboard.write("Ada")
    computer.mouse.click("Wrap it as a gift")
    computer.mouse.click("Save order")
    assert saved_form(desktop, tmp_path / "order.json") == {"name": "Ada", "notes": "", "size": "Small", "gift": True}


def test_an_element_of_the_accessibility_tree_can_be_clicked(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    desktop.qt_dialog(tmp_path / "order.json")
    computer.mouse.click(element(desktop, computer, "name", "Wrap it as a gift"))
    computer.mouse.click(text="Save order")
    assert saved_form(desktop, tmp_path / "order.json")["gift"]


def test_a_missing_target_lists_similar_ones(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    desktop.qt_dialog(tmp_path / "order.json")
    element(desktop, computer, "name", "Save order")
    with pytest.raises(NotFoundOnScreenError, match=r"'Sovi ardir'.*'Save order'"):
        computer.mouse.click("Sovi ardir")


@pytest.mark.needs("chromium")
def test_equal_buttons_are_numbered(
    desktop: Desktop, computer: Any, page: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Picture] = []
    monkeypatch.setattr(type(computer), "show", lambda self, picture: shown.append(picture), raising=False)
    buttons = "".join(f"<p><button onclick=\"document.title='chose {n}'\">Choose</button>" for n in (1, 2, 3))
    desktop.browser(page(f"<title>three</title>{buttons}<body onload=\"document.title='loaded'\">"), "loaded")
    named = lambda: [element["name"] for element in computer.display.elements()]  # noqa: E731
    desktop.until(lambda: named().count("Choose") == 3, "the buttons to be listed")
    with pytest.raises(AmbiguousTarget, match="3 things") as raised:
        computer.mouse.click("Choose")
    second = next(line for line in str(raised.value).splitlines() if line.startswith("2. x="))
    x, y = (int(part.split("=")[1]) for part in second[3:].split(" (")[0].split(", "))
    computer.mouse.click(x=x, y=y)
    desktop.until(lambda: "chose 2" in str(desktop.windows()), "the second button")
    assert len(shown) == 1 and shown[0].png.startswith(b"\x89PNG")


def test_dragging_selects_text(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    desktop.qt_dialog(tmp_path / "order.json")
    computer.keyboard.write("carry me over")
    left, top, width, height = element(desktop, computer, "value", "carry me over")["box"]
    middle = top + height // 2
    computer.mouse.drag((left + width - 4, middle), (left + 2, middle))
    desktop.until(lambda: computer.os.get_selected_text() == "carry me over", "the text to be marked")
    computer.mouse.click(left + width - 4, middle)
    computer.mouse.double_click(left + 12, middle)
    desktop.until(lambda: computer.os.get_selected_text() == "carry", "the word to be marked")


@pytest.mark.needs("chromium")
def test_mouse_buttons_and_wheel_work(desktop: Desktop, computer: Any, page: Callable[[str], str]) -> None:
    script = """<title>page</title><body style="height: 5000px"><script>
    addEventListener('load', () => requestAnimationFrame(() => requestAnimationFrame(() => document.title = 'loaded')))
    for (const kind of ['click', 'dblclick', 'contextmenu'])
      addEventListener(kind, event => { document.title += ' ' + kind + event.detail; event.preventDefault() })
    addEventListener('scroll', () => { document.title = scrollY > 0 ? 'scrolled' : 'top' })
    </script>"""
    desktop.browser(page(script), "loaded")
    says = lambda text: lambda: any(text in title for title in desktop.windows().values())  # noqa: E731
    computer.mouse.double_click(450, 400)
    desktop.until(says("loaded click1 click2 dblclick2"), "a double click")
    computer.mouse.right_click()
    desktop.until(says("contextmenu"), "a right click")
    computer.mouse.scroll(-5)
    desktop.until(says("scrolled"), "the page to scroll")
    computer.mouse.scroll(20)
    desktop.until(says("top"), "the page to scroll back")


def test_moving_the_pointer_to_a_corner_stops_input(desktop: Desktop, computer: Any) -> None:
    computer.mouse.move(0, 0)
    computer.mouse.move(50, 50)
    move_by_hand(desktop, 1279, 799)
    for act in (lambda: computer.mouse.click(5, 5), lambda: computer.keyboard.press("a")):
        with pytest.raises(StoppedByUser, match="corner"):
            act()
    assert desktop.pointer() == (1279, 799)
    move_by_hand(desktop, 600, 300)
    computer.mouse.move(5, 5)


@pytest.mark.needs("xrandr")
def test_the_pointer_reaches_the_second_monitor(two_monitors: Desktop, computer: Any) -> None:
    computer.mouse.move(x=1200, y=700)
    assert two_monitors.pointer() == (1200, 700)


def move_by_hand(desktop: Desktop, x: int, y: int) -> None:
    """Move the pointer as the user would."""
    desktop.x.screen().root.warp_pointer(x, y)
    desktop.x.sync()
