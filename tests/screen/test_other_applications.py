"""Other real applications: their menus, popups and drawn text, at any scale."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from interpreter.computer_api.screen.display import NotFoundOnScreenError
from interpreter.errors import ComputerError
from sampling import some
from screen.desktop import PROGRAMS, SYSTEM_PYTHON, Application, Desktop

LONG_NAME = "a long name of a report.txt"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def names(computer: Any) -> Any:
    """`names()` lists the element names of the active window and its popups."""
    return lambda **how: [each["name"] for each in computer.display.elements(**how)]


def start_and_wait(desktop: Desktop, computer: Any, name: str, *argv: str, title: str, **env: str) -> Application:
    """Start a program, and wait until an element is listed and its window is still."""
    started = desktop.start(*argv, title=title, env=env)
    desktop.until(lambda: name in [each["name"] for each in computer.display.elements()], f"{name} to be listed")
    computer.display.wait_until_still(timeout=60)
    return started


# -- scales ------------------------------------------------------------------------------------------------------------


@pytest.mark.needs("featherpad")
@pytest.mark.parametrize("scale", some(1, ["1.5", "2"]))
def test_the_named_menu_opens_in_a_scaled_qt_program(desktop: Desktop, computer: Any, names: Any, scale: str) -> None:
    start_and_wait(desktop, computer, "Edit", "featherpad", "--standalone", title="Untitled", QT_SCALE_FACTOR=scale)
    computer.mouse.click("Edit")
    desktop.until(lambda: "Select All" in names(), "the menu Edit to be open")
    computer.keyboard.press("esc")
    desktop.until(lambda: "Select All" not in names(), "the menu to be closed")
    help_menu = next(each for each in computer.display.elements() if each["name"] == "Help")
    computer.mouse.click(help_menu["ref"])  # its position is looked up again
    desktop.until(lambda: "About" in names(), "the menu Help to be open")


@pytest.mark.full
@pytest.mark.needs("galculator")
def test_windows_with_different_scales_can_be_used(desktop: Desktop, computer: Any, names: Any) -> None:
    """As with monitors of different scales: each window has its own scale."""
    for number, scale in enumerate(("1", "2")):
        window = start_and_wait(desktop, computer, "7", "galculator", title="galculator", GDK_SCALE=scale).window
        computer.os.move_window(window, x=20 + 400 * number, y=60)
    small, large = (each["id"] for each in computer.os.windows())
    for window, keys in ((small, "789"), (large, "456")):
        computer.os.focus(window)
        computer.display.wait_until_still(timeout=60)
        for key in keys:
            computer.mouse.click(key)
        desktop.until(partial(_displays, computer, keys), f"{keys} to be on the display of the calculator")


def _displays(computer: Any, keys: str) -> bool:
    return keys in [each.get("value") for each in computer.display.elements()]


# -- popups and drawn text -----------------------------------------------------------------------------------------------


@pytest.mark.needs("mousepad")
@pytest.mark.parametrize("scale", some(1, ["1", "2"]))
def test_a_context_menu_is_listed(desktop: Desktop, computer: Any, names: Any, scale: str) -> None:
    start_and_wait(desktop, computer, "File", "mousepad", "--disable-server", title="Untitled", GDK_SCALE=scale)
    computer.keyboard.write("some words")
    computer.mouse.right_click(next(each for each in computer.display.elements() if each["role"] == "text"))
    desktop.until(lambda: "Select All" in names(), "the context menu to be listed")
    computer.display.wait_until_still(timeout=60)
    lines = computer.display.summary(read=False).splitlines()
    item = next(line for line in lines if 'menu item "Select All"' in line)
    assert lines.index("In front, a menu or popup:") < lines.index(item) < lines.index("Behind it:")
    computer.mouse.click("Select All")
    desktop.until(lambda: computer.os.get_selected_text() == "some words", "all to be marked")


@pytest.mark.full
@pytest.mark.needs("featherpad")
def test_a_context_menu_missing_from_the_tree_is_read_by_ocr(desktop: Desktop, computer: Any) -> None:
    start_and_wait(desktop, computer, "Edit", "featherpad", "--standalone", title="Untitled")
    computer.mouse.right_click(x=640, y=420)
    desktop.until(lambda: 'text "Select All' in computer.display.summary(), "the menu to be read")
    assert 'menu item "Edit"' in computer.display.summary(), "the window is still listed"


@pytest.mark.full
@pytest.mark.needs("thunar")
def test_drawn_file_names_are_read_by_ocr(desktop: Desktop, computer: Any, names: Any) -> None:
    folder = desktop.folder_with("notes.txt", LONG_NAME)
    start_and_wait(desktop, computer, "Home", "thunar", str(folder), title="Thunar")
    desktop.until(lambda: 'text "notes.txt"' in computer.display.summary(), "the files to be drawn")
    told = computer.display.summary()
    assert 'button "Home"' in told and told.count('"Home"') == 1, "elements in the tree are not read again"
    assert {"role": "read", "name": "notes.txt"}.items() <= next(
        each for each in computer.display.elements(read=True) if each["name"] == "notes.txt"
    ).items()
    computer.mouse.click(LONG_NAME)  # wrapped into three lines below its icon
    desktop.until(lambda: LONG_NAME in " ".join(names(read=True)), "the file to be chosen, as the status bar says")
    for description in ("back arrow", "reload icon"):
        found = [match["text"] for match in computer.display.find(description)]
        assert found == (["Back"] if "back" in description else []), description


@pytest.mark.full
@pytest.mark.needs("pcmanfm")
def test_a_gtk_2_dialog_is_read_by_ocr(desktop: Desktop, computer: Any) -> None:
    folder = desktop.folder_with("notes.txt")
    desktop.start("pcmanfm", "--no-desktop", str(folder), title=folder.name)
    desktop.until(lambda: computer.display.find("notes.txt"), "the file to be drawn")
    computer.mouse.click("notes.txt")
    computer.keyboard.press("f2")
    desktop.until(lambda: len(desktop.windows()) == 2, "the dialog")
    computer.display.wait_until_still(timeout=60)
    computer.keyboard.press("ctrl+a")
    computer.keyboard.write("letter.txt")
    computer.mouse.click("OK")
    desktop.until(lambda: (folder / "letter.txt").exists(), "the file to be renamed")


@pytest.mark.full
@pytest.mark.needs("dillo")
def test_an_icon_is_found_by_its_label(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<title>Before</title><p>Nothing much.</p>")
    desktop.start("dillo", str(page), title="Before")
    computer.display.wait_until_still(timeout=60)
    page.write_text("<title>After</title><p>Nothing much.</p>")
    computer.mouse.click("reload icon")
    desktop.until(lambda: any("After" in title for title in desktop.windows().values()), "the page to be loaded again")


@pytest.mark.needs("lxterminal")
def test_the_summary_shows_a_terminals_last_lines(desktop: Desktop, computer: Any) -> None:
    command = "seq -f 'line %g' 1 200; exec cat"
    desktop.start("lxterminal", "-e", f'sh -c "{command}"', title="sh -c")
    desktop.until(lambda: "line 200" in computer.display.summary(read=False), "the last line")
    assert "line 190\\nline 191" in computer.display.summary(read=False)


# -- which window ------------------------------------------------------------------------------------------------------


@pytest.mark.needs("xterm")
def test_a_covered_window_does_not_include_the_text_above_it(desktop: Desktop, computer: Any) -> None:
    below = ("sh", "-c", "echo; echo; echo; echo; echo; echo; echo; echo; echo basement; exec cat")
    desktop.start("xterm", "-T", "below", "-geometry", "60x20+100+100", "-e", *below, title="below")
    above = ("sh", "-c", "echo; echo ceiling; exec cat")
    desktop.start("xterm", "-T", "above", "-geometry", "60x5+100+100", "-e", *above, title="above")
    desktop.until(lambda: "ceiling" in computer.display.summary(), "the words to be drawn")
    told = computer.display.summary(window="below")
    assert "basement" in told and "ceiling" not in told


@pytest.mark.needs("mousepad")
def test_a_minimised_window_has_no_position(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    for file in (first, second):
        file.write_text("")
    window = desktop.editor(first).window
    desktop.editor(second)
    minimise(window)
    desktop.until(lambda: computer.os.windows()[0]["hidden"], "it to be hidden")
    hidden, other = computer.os.windows()
    assert (hidden["x"], hidden["y"]) == (None, None) and isinstance(other["x"], int)
    with pytest.raises(ValueError, match="not a place on the screen"):
        computer.mouse.click(hidden)
    with pytest.raises(NotFoundOnScreenError, match=r"computer.os.focus\(...\) brings one back"):
        computer.display.summary(window="first.txt")
    assert computer.os.focus("first.txt")["hidden"] is False


def minimise(window: int) -> None:
    from interpreter.computer_api.screen.platforms.x11 import X11Connection

    with X11Connection() as x:
        x.tell_window_manager(window, "WM_CHANGE_STATE", 3)
        x.display.sync()


def test_launching_a_program_without_a_window_is_an_error(desktop: Desktop, computer: Any, stopped: None) -> None:
    with pytest.raises(ComputerError, match=r"hasn't opened a window. It is still running"):
        computer.os.launch("sleep", "47")
    with pytest.raises(ComputerError, match=r"hasn't opened a window. It has ended"):
        computer.os.launch("true")


@pytest.fixture
def stopped() -> Iterator[None]:
    """End the launched program without a window after the test."""
    import psutil

    yield
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] and process.info["cmdline"][1:] == ["47"]:
            process.kill()


def test_a_text_that_a_program_only_draws_is_read_from_the_picture(
    desktop: Desktop, computer: Any, tmp_path: Path
) -> None:
    from PIL import Image, ImageDraw, ImageFont

    if subprocess.run([SYSTEM_PYTHON, "-c", "import gi; gi.require_version('Gtk', '3.0')"], check=False).returncode:
        pytest.skip("python3-gi is not installed: apt-get install python3-gi gir1.2-gtk-3.0")
    picture = Image.new("RGB", (260, 60), "white")
    ImageDraw.Draw(picture).text((20, 10), "1024", "black", ImageFont.load_default(32))
    picture.save(tmp_path / "display.png")
    program = [SYSTEM_PYTHON, str(PROGRAMS / "drawn_display.py"), str(tmp_path / "display.png")]
    start_and_wait(desktop, computer, "Clear", *program, title="Counter")
    assert [each["value"] for each in computer.display.elements() if each["role"] == "text"] == ["1024"]
    told = computer.display.summary()
    assert "text = '1024'" in told and told.count("1024") == 1


# -- windows that hide something -----------------------------------------------------------------------------------------


def test_hidden_text_in_a_window_is_left_out_or_marked(desktop: Desktop, computer: Any) -> None:
    start_and_wait(desktop, computer, "Choose a colour", SYSTEM_PYTHON, str(PROGRAMS / "hostile.py"), title="Shop")
    told = computer.display.summary()
    for words in ("white orders on white", "clear orders", "faded orders", "typed orders"):
        marked = next(line for line in told.splitlines() if words in line)
        assert "not visible: nothing is drawn there" in marked
    assert not any(words in told for words in ("hidden orders", "far away", "tiny orders", "in a tip"))
    assert "(described orders)" in told, "descriptions are in brackets"
    for words in ("Choose a colour", "Any amount"):
        assert "not visible" not in next(line for line in told.splitlines() if words in line)
    # Neither the title nor a name can forge lines, and invisible characters are shown escaped.
    assert not [line for line in told.splitlines() if line.startswith(("e98", "e99"))]
    assert "\U000e0064" not in told and "\u202e" not in told and "U+E0064" in told
    assert told.splitlines()[0].startswith("Window: Shop")
