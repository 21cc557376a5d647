"""The clipboard: text and images, copied and pasted with real programs."""

from __future__ import annotations

import io
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from interpreter.computer_api.tool import Picture
from interpreter.errors import ComputerError
from screen.desktop import Desktop

pytestmark = pytest.mark.needs("xclip")


def xclip(desktop: Desktop, *options: str, given: bytes | None = None) -> bytes:
    """An independent program's view of the clipboard."""
    command = ["xclip", "-selection", "clipboard", *options]
    if given is not None:
        # xclip keeps running to serve the clipboard, so its output is not read.
        subprocess.run(command, env=desktop.env, input=given, stdout=subprocess.DEVNULL, check=True, timeout=60)
        # It doesn't wait until it owns the clipboard.
        asked = lambda: subprocess.run([*command, "-o"], env=desktop.env, capture_output=True, timeout=60)  # noqa: E731
        desktop.until(lambda: asked().stdout == given, "xclip to have the clipboard")
        return b""
    return subprocess.run([*command, "-o"], env=desktop.env, stdout=subprocess.PIPE, check=True, timeout=60).stdout


def noise(side: int) -> Image.Image:
    return Image.frombytes("RGB", (side, side), random.Random(3).randbytes(side * side * 3))


def test_text_can_be_copied_and_viewed(desktop: Desktop, computer: Any) -> None:
    assert computer.clipboard.copy("Zoë ✓\n漢") == "Zoë ✓\n漢"
    assert xclip(desktop).decode() == "Zoë ✓\n漢" == computer.clipboard.view()
    xclip(desktop, given="from xclip é".encode())
    assert computer.clipboard.view() == "from xclip é"
    long = "0123456789" * 60_000
    xclip(desktop, given=long.encode())
    assert computer.clipboard.view() == long


def test_images_can_be_copied_and_viewed(desktop: Desktop, computer: Any) -> None:
    # Too long for one X server message.
    large = Picture.of(noise(600))
    assert len(large.png) > 300_000
    computer.clipboard.copy(large)
    assert xclip(desktop, "-t", "image/png") == large.png
    buffer = io.BytesIO()
    noise(40).save(buffer, "PNG")
    xclip(desktop, "-t", "image/png", given=buffer.getvalue())
    seen = computer.clipboard.view()
    assert isinstance(seen, Picture) and (seen.png, seen.width) == (buffer.getvalue(), 40)


@pytest.mark.needs("mousepad")
def test_copy_and_paste_work_between_programs(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    source, goal = tmp_path / "source.txt", tmp_path / "goal.txt"
    source.write_text("carry this ✓")
    goal.write_text("")
    desktop.editor(source)
    computer.clipboard.copy("before")
    with pytest.raises(ComputerError, match="Select something"):
        computer.clipboard.copy()
    computer.keyboard.press("ctrl+a")
    assert computer.clipboard.copy() == "carry this ✓"
    desktop.editor(goal)
    computer.clipboard.paste()
    desktop.until(lambda: any(name.startswith("*") for name in desktop.windows().values()), "the paste to arrive")
    computer.keyboard.press("ctrl+s")
    desktop.until(lambda: goal.read_text().rstrip() == "carry this ✓", "the paste to be saved")


@pytest.mark.needs("xterm")
def test_paste_works_in_a_terminal(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    written = tmp_path / "written.txt"
    desktop.terminal("sh", "-c", f"head -n 1 > {written}.part; mv {written}.part {written}; cat")
    computer.clipboard.copy("pasted ✓\n")
    computer.clipboard.paste()
    desktop.until(written.exists, "the line to be read")
    assert written.read_text() == "pasted ✓\n"


@pytest.mark.full
@pytest.mark.needs("mousepad")
def test_typing_long_text_keeps_the_clipboard(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("")
    xclip(desktop, "-t", "text/html", given=b"<b>precious</b>")
    desktop.editor(file)
    computer.keyboard.write("long " * 400)
    computer.keyboard.press("ctrl+s")
    desktop.until(lambda: file.read_text().rstrip("\n") == "long " * 400, "the text to be saved")
    assert xclip(desktop, "-t", "text/html") == b"<b>precious</b>"


def test_copy_does_not_import_modules_from_the_workspace(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    """The clipboard process belongs to the host, and the current folder may be the workspace."""
    for name in ("base64", "json", "Xlib"):
        Path(f"{name}.py").write_text(f"open({str(tmp_path / 'escaped')!r}, 'w')\n")
    computer.clipboard.copy("harmless")
    assert computer.clipboard.view() == "harmless"
    assert not (tmp_path / "escaped").exists()
