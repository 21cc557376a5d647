"""The test desktop itself: real applications start on it and close."""

from __future__ import annotations

from pathlib import Path

import pytest

from screen.desktop import Desktop


@pytest.mark.needs("mousepad", "xterm")
def test_applications_open_windows_and_close(desktop: Desktop, tmp_path: Path, no_strays: None) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Dear reader\n")
    editor, terminal = desktop.editor(file), desktop.terminal()
    assert set(desktop.windows()) == {editor.window, terminal.window}
    assert "letter.txt" in editor.title and desktop.active_window() == terminal.window
    desktop.close_applications()
    desktop.until(lambda: not desktop.windows(), "the windows to close")


@pytest.mark.needs("xrandr")
def test_the_desktop_can_have_two_monitors(two_monitors: Desktop) -> None:
    from Xlib.ext import randr

    monitors = randr.get_monitors(two_monitors.x.screen().root).monitors
    assert [(m.x, m.width_in_pixels) for m in monitors] == [(0, 640), (640, 640)]
