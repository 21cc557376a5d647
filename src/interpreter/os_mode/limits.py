"""What the model may touch in a turn: so many actions, and the applications that the user named."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from interpreter.errors import LimitReachedError

if TYPE_CHECKING:
    from interpreter.computer_api.answering import Use
    from interpreter.core import OpenInterpreter

SCREEN_TOOLS = ("mouse", "keyboard", "clipboard", "display", "os")
WINDOWS = ("focus", "move_window", "close_window")  # of `computer.os`: what they are for is named


class Limits:
    """Counts the actions of a turn, and looks whose window each of them is for."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self.steps = 0

    def check(self, use: Use) -> None:
        """An error in words, if this action may not be."""
        if not use.acts:
            return
        most = self._interpreter.os_max_steps
        if most is not None and self.steps >= most:
            raise LimitReachedError(
                f"There have been {most} actions in this turn, the limit (`os_max_steps`). Say how far you got."
            )
        self.steps += 1
        if use.tool in SCREEN_TOOLS and self._interpreter.os_apps:
            self._check_application(use)

    def _check_application(self, use: Use) -> None:
        allowed = self._interpreter.os_apps
        name = self._application(use)
        if not any(fnmatchcase(name.lower(), pattern.lower()) for pattern in allowed):
            raise PermissionError(
                f"{name or 'This window'} is not among the applications that you may use: {', '.join(allowed)}. "
                "Ask the user, or focus a window of one of them with computer.os.focus."
            )

    def _application(self, use: Use) -> str:
        """Whose window it is for: the one that is named, else the one that has the keyboard."""
        desktop = self._interpreter.computer.os
        method = use.name.rpartition(".")[2] if use.tool == "os" else ""
        if method == "launch":
            return str(use.given["name"]).strip()
        window = desktop._one(use.given["window"]) if method in WINDOWS else desktop.active_window()
        return str(window["application"]) if window else ""
