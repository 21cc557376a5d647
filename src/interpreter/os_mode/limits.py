"""What the model may touch in a turn: so many actions, and the applications that the user named."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from interpreter.errors import LimitReachedError

if TYPE_CHECKING:
    from interpreter.computer_api.answering import Use
    from interpreter.core import OpenInterpreter

SCREEN_TOOLS = ("mouse", "keyboard", "clipboard", "os")


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
            self._check_application()

    def _check_application(self) -> None:
        allowed = self._interpreter.os_apps
        active = self._interpreter.computer.os.active_window()
        name = str((active or {}).get("app") or (active or {}).get("title") or "")
        if not any(fnmatchcase(name.lower(), pattern.lower()) for pattern in allowed):
            raise PermissionError(
                f"{name or 'This window'} is not among the applications that you may use: {', '.join(allowed)}. "
                "Ask the user, or focus a window of one of them with computer.os.focus."
            )
