"""In OS mode: so many actions, and only in the applications that the user named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interpreter.computer_api.answering import Use
from interpreter.errors import LimitReachedError
from interpreter.os_mode.limits import Limits
from screen.desktop import Desktop


def use(computer: Any, name: str, *args: Any) -> Use:
    tool, method = name.split(".")
    return Use(f"computer.{name}", "call", getattr(getattr(computer, tool), method), args, {}, acts=True)


@pytest.mark.needs("xterm", "mousepad")
def test_other_applications_are_left_alone(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("")
    desktop.editor(file)
    terminal = desktop.terminal()
    computer._interpreter.os_apps = ["mousepad"]
    limits = Limits(computer._interpreter)
    refused = [
        ("keyboard.write", "rm -r x\n"),
        ("os.focus", terminal.window),
        ("os.close_window", terminal.window),
        ("os.launch", "xterm"),
    ]
    for name, argument in refused:
        with pytest.raises(PermissionError, match="not among the applications that you may use: mousepad"):
            limits.check(use(computer, name, argument))
    limits.check(use(computer, "os.launch", "mousepad"))
    limits.check(use(computer, "os.focus", "letter.txt"))
    computer.os.focus("letter.txt")
    limits.check(use(computer, "keyboard.write", "Dear Ann"))
    computer._interpreter.os_max_steps = limits.steps
    with pytest.raises(LimitReachedError, match="os_max_steps"):
        limits.check(use(computer, "keyboard.write", "Dear Ann"))
