"""What a desktop can do with windows, whichever system it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from interpreter.computer_api.desktop.applications import Application
from interpreter.computer_api.input.hands import kind_of_screen
from interpreter.errors import ComputerError


@dataclass(frozen=True)
class Window:
    """A window; its place and size are those of its content, in pixels of the screen."""

    id: int
    title: str
    application: str
    x: int
    y: int
    width: int
    height: int
    active: bool = False
    hidden: bool = False
    pid: int | None = None

    def told(self) -> dict[str, Any]:
        return asdict(self)


class Windows(Protocol):
    """The windows of one system."""

    def all(self) -> list[Window]:
        """Every window, the oldest first."""

    def focus(self, window: int) -> bool:
        """Whether it came to the front."""

    def place(self, window: int, x: int | None, y: int | None, width: int | None, height: int | None) -> None: ...

    def close(self, window: int) -> bool:
        """Whether it is gone."""

    def launch(self, application: Application, args: list[str]) -> Window:
        """Start an application, and its window when it is there."""


def open_windows() -> Windows:
    match kind_of_screen():
        case "x11":
            from interpreter.computer_api.desktop.x11 import X11Windows

            return X11Windows()
        case "macos":
            from interpreter.computer_api.desktop.macos import MacWindows

            return MacWindows()
        case "wayland":
            raise ComputerError(
                "Wayland tells programs nothing of other windows. Use the keyboard (alt+tab) instead, or log in with "
                "an X11 session."
            )
        case _:
            raise ComputerError(
                "Windows of other programs cannot be handled on this system yet; use the mouse instead."
            )
