"""The keyboard: any text arrives in any application, and no key stays down."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interpreter.computer_api.screen.platforms import UnknownKey
from sampling import some
from screen.desktop import Desktop

TEXT = "Zoë é ✓ 漢 Hello, World! a@b.c ~{}|\\ «ß» 😀"
# More characters without a key than there are spare keys.
MANY = "".join(chr(0x4E00 + number) for number in random.Random(7).sample(range(3000), 60))


@pytest.mark.needs("mousepad")
@pytest.mark.parametrize(
    "text", some(2, [TEXT, MANY, "def f(x):\n\treturn x\n" * 3, "word " * 500]), ids=["any", "many", "lines", "long"]
)
def test_text_arrives_in_a_gtk_editor(desktop: Desktop, computer: Any, tmp_path: Path, text: str) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("")
    desktop.editor(file)
    computer.keyboard.write(text)
    computer.keyboard.hotkey("ctrl", "s")
    desktop.until(lambda: file.read_text().rstrip("\n") == text.rstrip("\n"), "the text to be saved")


@pytest.mark.parametrize("text", [TEXT, MANY], ids=["any", "many"])
def test_text_arrives_in_a_qt_form(desktop: Desktop, computer: Any, tmp_path: Path, text: str) -> None:
    desktop.qt_dialog(tmp_path / "order.json")
    computer.keyboard.write(text)
    computer.keyboard.press("enter")
    assert saved_form(desktop, tmp_path / "order.json")["name"] == text


@pytest.mark.parametrize("text", [TEXT, MANY], ids=["any", "many"])
def test_text_arrives_in_a_tk_form(desktop: Desktop, computer: Any, tmp_path: Path, text: str) -> None:
    desktop.tk_form(tmp_path / "guest.json")
    computer.keyboard.write(text)
    computer.keyboard.press("ctrl+s")
    assert saved_form(desktop, tmp_path / "guest.json")["name"] == text


@pytest.mark.needs("xterm")
@pytest.mark.parametrize("text", [TEXT, MANY], ids=["any", "many"])
def test_text_arrives_in_a_terminal(desktop: Desktop, computer: Any, tmp_path: Path, text: str) -> None:
    written = tmp_path / "written.txt"
    desktop.terminal("sh", "-c", f"head -n 1 > {written}.part; mv {written}.part {written}; cat")
    computer.keyboard.write(text + "\n")
    desktop.until(written.exists, "the line to be read")
    assert written.read_text() == text + "\n"


@pytest.mark.needs("chromium")
def test_text_arrives_in_a_browser(desktop: Desktop, computer: Any, page: Callable[[str], str]) -> None:
    says = "document.title = 'has ' + this.value"
    # The browser drops input before its first paint.
    drawn = "requestAnimationFrame(() => requestAnimationFrame(() => { document.title = 'has ' }))"
    desktop.browser(page(f'<title>page</title>Words <input autofocus onfocus="{drawn}" oninput="{says}">'), "has ")
    computer.keyboard.write(TEXT)
    desktop.until(lambda: any(title.startswith(f"has {TEXT}") for title in desktop.windows().values()), "the text")
    computer.keyboard.press("ctrl+a")
    computer.keyboard.write(MANY)
    desktop.until(lambda: any(title.startswith(f"has {MANY}") for title in desktop.windows().values()), "the paste")


@pytest.mark.needs("mousepad")
def test_capitals_are_correct_with_caps_lock_on(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("")
    desktop.editor(file)
    computer.keyboard.press("capslock")
    computer.keyboard.write("Hello World")
    computer.keyboard.press("capslock")
    computer.keyboard.press("ctrl+s")
    desktop.until(lambda: file.read_text().rstrip() == "Hello World", "the text to be saved")


def test_an_unknown_key_suggests_similar_ones(desktop: Desktop, computer: Any) -> None:
    with pytest.raises(UnknownKey, match=r"'entr'.*'enter'"):
        computer.keyboard.press("entr")
    with pytest.raises(UnknownKey, match="write"):
        computer.keyboard.hotkey("ctrl", "hello")
    with pytest.raises(UnknownKey, match="Name the keys"):
        computer.keyboard.press()
    with pytest.raises(TypeError, match=r"write takes a text, not 5"):
        computer.keyboard.write(5)
    assert not pressed(desktop)


def test_no_key_stays_down(desktop: Desktop, computer: Any) -> None:
    from interpreter.computer_api.screen.input import device_of

    computer.keyboard.down("shift")
    computer.mouse.down()
    assert pressed(desktop)
    device_of(computer).release()
    assert not pressed(desktop) and not desktop.x.screen().root.query_pointer().mask
    computer.keyboard.down("shift")
    assert pressed(desktop)
    computer.terminate()
    desktop.until(lambda: not pressed(desktop), "the key to be released")
    computer.keyboard.press("shift")  # with a new device
    assert not pressed(desktop)


@pytest.mark.parametrize("ends", [False, True], ids=["released", "terminated"])
def test_no_key_stays_down_after_a_lost_connection(desktop: Desktop, computer: Any, ends: bool) -> None:
    from interpreter.computer_api.screen.input import device_of, release

    computer.keyboard.down("shift")
    computer.mouse.down()
    device: Any = device_of(computer)
    device._x.display.display.close_internal("interrupted")
    assert pressed(desktop)
    computer.terminate() if ends else release(computer)
    desktop.until(lambda: not pressed(desktop), "the key to be released")
    assert not desktop.x.screen().root.query_pointer().mask


@pytest.mark.needs("mousepad")
def test_all_kinds_of_keys_can_be_pressed(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("")
    desktop.editor(file)
    computer.keyboard.press("a", "b", "enter", "C", "+", "space", "d", interval=0)
    computer.keyboard.press("left", presses=2, interval=0)
    computer.keyboard.press("backspace")
    computer.keyboard.press("end")
    computer.keyboard.hotkey("cmd", "s")
    desktop.until(lambda: file.read_text().rstrip() == "ab\nC d", "the text to be saved")


def saved_form(desktop: Desktop, file: Path) -> dict[str, Any]:
    desktop.until(lambda: file.exists() and file.read_text().endswith("}"), "the form to be saved")
    return dict(json.loads(file.read_text()))


def pressed(desktop: Desktop) -> bool:
    return any(desktop.x.query_keymap())
