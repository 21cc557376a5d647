"""What the model may touch in a turn: so many actions, and the applications that the user named."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.os_mode.front import Front
from interpreter.errors import LimitReachedError

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.computer_api.answering import Use
    from interpreter.computer_api.os_mode.stopping import Stopping

_DESKTOP = "the desktop"


class Limits:
    """Counts the actions of a turn, and looks whose window each of them is for."""

    def __init__(self, interpreter: OpenInterpreter, stopping: Stopping) -> None:
        self._interpreter = interpreter
        self._stopping = stopping
        self.front = Front(interpreter.computer.display)
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
        self.front.types() if _types(use) else self.front.acts()
        if self._interpreter.os_apps:
            self._check_application(use)
        self.steps += 1
        self._stopping.begins()

    def _check_application(self, use: Use) -> None:
        allowed = self._interpreter.os_apps
        for names in self._touched(use):
            if not any(_fits(name.lower(), pattern.lower()) for name in names for pattern in allowed):
                raise PermissionError(
                    f"{names[0]} is not among the applications that you may use: {', '.join(allowed)}. Ask the user, "
                    "or bring a window of one of them to the front with computer.os.focus."
                )

    def _touched(self, use: Use) -> Iterator[tuple[str, ...]]:
        """The applications that an action is for, each by the names that it has."""
        match use.tool:
            case "mouse":
                given = use.given
                targets = (given["start"], given["end"]) if use.name.endswith(".drag") else (None,)
                for target in targets:
                    yield self._application_at(*self._place(use, target))
            case "display":
                yield self._application_at(*self._place(use, use.given["element"]))
            case "os":
                yield self._named(use)
            case "keyboard" | "clipboard":
                if _types(use):
                    yield self._in_front()
            case tool:
                yield (tool,)

    def _place(self, use: Use, target: Any) -> tuple[int, int]:
        from interpreter.computer_api.input.targets import place

        computer = self._interpreter.computer
        where = {name: use.kwargs[name] for name in ("x", "y", "icon", "text", "screenshot") if name in use.kwargs}
        args = use.args if target is None else (target,)
        if use.name.endswith((".scroll", ".down", ".up")):
            args, where = (), {}
        return place(computer, computer.display.size(), args, **where) or computer.mouse.position()

    def _application_at(self, x: int, y: int) -> tuple[str, ...]:
        there = self._interpreter.computer.display._screens.windows()
        hit = next((window for window in there if window.box.has(x, y)), None)
        if hit is not None and hit.popup:  # a menu: whose it is, its process tells
            owners = (window for window in there if not window.popup and window.pid == hit.pid)
            hit = next(owners, hit)
        return ((hit.application or hit.title) if hit is not None else _DESKTOP,)

    def _in_front(self) -> tuple[str, ...]:
        active = self._interpreter.computer.os.active_window()
        return (str(active["application"] or active["title"]) if active else _DESKTOP,)

    def _named(self, use: Use) -> tuple[str, ...]:
        """The application that a call of `computer.os` names, or whose window it names."""
        meant = next(iter(use.given.values()), "")
        if use.name.endswith(".launch"):
            from interpreter.computer_api.desktop.applications import find, names_of

            return names_of(find(str(meant)), str(meant), self._interpreter.workspace)
        from interpreter.computer_api.desktop.os import one_window
        from interpreter.computer_api.desktop.windows import open_windows

        window = one_window(open_windows(), meant)
        return (window.application or window.title,)


def _types(use: Use) -> bool:
    """Whether it is for the window in front; what is only put on the clipboard, nobody is given yet."""
    return use.tool == "keyboard" or (use.tool == "clipboard" and use.given.get("text") is None)


def _fits(name: str, pattern: str) -> bool:
    """Whether a name is one of the list; a path only fits a pattern that is meant for paths."""
    return ("/" in pattern or not name.startswith("/")) and fnmatchcase(name, pattern)
