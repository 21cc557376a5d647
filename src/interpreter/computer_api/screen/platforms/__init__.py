"""The interface of all platforms to the screen tools: a screen, windows, an input device, a clipboard.

Each platform has its own module, loaded when it is first used; `BACK_ENDS` lists them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from interpreter.errors import ComputerError
from interpreter.host.installation import install_hint

if TYPE_CHECKING:
    from PIL.Image import Image

Result = TypeVar("Result")
PNG = "image/png"
_CORNER = 1  # pixels: a mouse that is flung to a corner ends on the last pixel
BUTTONS = ("left", "middle", "right")

BACK_ENDS = {
    "x11": {
        "screen": "x11.screen:X11Screen",
        "windows": "x11.screen:X11Windows",
        "input": "x11.input:X11Input",
        "stop_key": "x11.input:X11StopKey",
        "clipboard": "x11.clipboard:X11Clipboard",
    },
    "wayland": {
        "screen": "portable:WaylandScreen",
        "input": "portable:WaylandInput",
        "clipboard": "portable:CommandClipboard",
    },
    "macos": {
        "screen": "portable:MacScreen",
        "windows": "portable:MacWindows",
        "input": "portable:PynputInput",
        "stop_key": "portable:PynputStopKey",
        "clipboard": "portable:CommandClipboard",
    },
    "windows": {
        "screen": "portable:WindowsScreen",
        "input": "portable:PynputInput",
        "stop_key": "portable:PynputStopKey",
        "clipboard": "portable:CommandClipboard",
    },
}
MISSING = {
    (
        "wayland",
        "windows",
    ): "Wayland hides other windows from programs. Use the keyboard (alt+tab) instead, or log in with an X11 session.",
    ("wayland", "stop_key"): "Wayland does not let programs watch for a stop key. Use Ctrl-C in the terminal to stop.",
    (
        "windows",
        "windows",
    ): "Controlling windows of other programs is not supported on this system. Use the mouse instead.",
}


class NoDisplayError(ComputerError):
    """There is no screen that can be seen from here."""


class NotFoundOnScreenError(ComputerError):
    """The target is not on the screen."""


class MissingPartError(ComputerError):
    """A package that is needed for the screen is not installed."""


class StoppedByUser(ComputerError):
    """The user moved the pointer to a corner of the screen, or pressed the stop key."""

    def __init__(self, way: str = "moved the pointer to a corner of the screen") -> None:
        super().__init__(f"The user {way}: stop, do nothing more on the screen, and ask what they want.")


class AmbiguousTarget(ComputerError, ValueError):
    """Several things on the screen match the target; the message numbers them."""


class UnknownKey(ComputerError, ValueError):
    """There is no key with that name."""


class Box(NamedTuple):
    """A rectangle in whole screen pixels: its upper left corner and its size."""

    left: int
    top: int
    width: int
    height: int

    @classmethod
    def given(cls, region: Any) -> Box:
        """Convert a region from the caller; ValueError if it is not one."""
        numbers = [] if isinstance(region, str) or not isinstance(region, Iterable) else list(region)
        if len(numbers) != 4 or not all(isinstance(number, int | float) for number in numbers):
            raise ValueError(f"A region is [left, top, width, height] in screen pixels, not {region!r:.80}.")
        return cls(*(round(number) for number in numbers))

    @classmethod
    def between(cls, left: float, top: float, right: float, bottom: float) -> Box:
        return cls(round(left), round(top), max(0, round(right) - round(left)), max(0, round(bottom) - round(top)))

    @property
    def right(self) -> int:
        return self.left + self.width

    @property
    def bottom(self) -> int:
        return self.top + self.height

    @property
    def area(self) -> int:
        return max(0, self.width) * max(0, self.height)

    @property
    def center(self) -> tuple[int, int]:
        return self.left + self.width // 2, self.top + self.height // 2

    def has(self, x: float, y: float) -> bool:
        return self.left <= x < self.right and self.top <= y < self.bottom

    def within(self, other: Box) -> Box:
        """Return the part of it that is inside the other; of no size if they do not overlap."""
        left, top = max(self.left, other.left), max(self.top, other.top)
        return Box.between(left, top, min(self.right, other.right), min(self.bottom, other.bottom))

    def overlaps(self, other: Box) -> bool:
        return self.within(other).area > 0

    def grown(self, across: int, down: int) -> Box:
        return Box(self.left - across, self.top - down, self.width + 2 * across, self.height + 2 * down)

    def moved(self, across: int, down: int) -> Box:
        return Box(self.left + across, self.top + down, self.width, self.height)

    def similarity(self, other: Box) -> float:
        """Return intersection over union: 1 for the same box, 0 for two that do not overlap."""
        shared = self.within(other).area
        covered = self.area + other.area - shared
        return shared / covered if covered else 0.0


def around(boxes: Iterable[Box]) -> Box:
    """Return the smallest box that contains them all."""
    each = [box for box in boxes if box.area]
    if not each:
        return Box(0, 0, 0, 0)
    left, top = min(box.left for box in each), min(box.top for box in each)
    return Box(left, top, max(box.right for box in each) - left, max(box.bottom for box in each) - top)


def merged(boxes: Iterable[Box]) -> list[Box]:
    """Combine overlapping boxes until none overlap."""
    apart: list[Box] = []
    for box in boxes:
        while met := next((other for other in apart if other.overlaps(box)), None):
            apart.remove(met)
            box = around((box, met))
        apart.append(box)
    return apart


@dataclass(frozen=True)
class Monitor:
    """One monitor, and its position on the desktop that all of them make up."""

    name: str
    box: Box
    primary: bool = False


@dataclass(frozen=True)
class Window:
    """A window; `box` includes its frame, `inner` does not."""

    id: int
    title: str
    application: str
    inner: Box
    box: Box
    pid: int | None = None
    # Menus, tips and other windows that no window manager handles.
    popup: bool = False
    active: bool = False
    hidden: bool = False


@dataclass(frozen=True)
class DesktopApplication:
    name: str
    command: tuple[str, ...]


class Screen(Protocol):
    """The screen of one platform. All boxes are in pixels of the desktop, as the mouse counts them."""

    closed: bool = False  # the connection is lost, so the screen has to be opened again

    def monitors(self) -> list[Monitor]:
        """Return all monitors, the primary one first."""

    def windows(self) -> list[Window]:
        """Return the visible windows, the topmost first; empty where the system does not say."""
        return []

    def active_window(self) -> Window | None:
        """Return the window that has the keyboard."""
        return None

    def grab(self, box: Box) -> Image:
        """Return the present pixels of a box."""

    def watch(self) -> AbstractContextManager[Callable[[float], list[Box]]] | None:
        """Watch for changes, where the system reports them: wait up to this many seconds, return the changed boxes."""
        return None

    def desktop(self) -> Box:
        return around(monitor.box for monitor in self.monitors())


class WindowManager(Protocol):
    """The windows of one platform; positions and sizes exclude the window's frame."""

    def all(self) -> list[Window]:
        """Return every window, the oldest first."""

    def focus(self, window: int) -> bool:
        """Bring a window to the front; return whether that worked."""

    def set_geometry(
        self, window: int, x: int | None, y: int | None, width: int | None, height: int | None
    ) -> None: ...

    def close(self, window: int) -> bool:
        """Ask a window to close; return whether it is gone."""

    def launch(self, application: DesktopApplication, args: list[str]) -> Window:
        """Start an application, and return its window once it has appeared."""


class InputDevice(Protocol):
    """Moves the pointer and presses keys. Positions are pixels of the whole screen, keys are names of `key_name`."""

    held_keys: set[str]
    held_buttons: set[str]
    left_at: tuple[int, int] | None = None  # where the last action left the pointer

    def __init__(self) -> None:
        self.held_keys, self.held_buttons = set(), set()

    def size(self) -> tuple[int, int]:
        box = open_screen().desktop()
        return box.width, box.height

    def position(self) -> tuple[int, int]:
        """Return the position of the pointer."""

    def move(self, x: int, y: int) -> None:
        """Put the pointer somewhere, at once."""

    def button(self, button: str, down: bool) -> None:
        """Press or release one of `BUTTONS`."""

    def scroll(self, up: int, right: int) -> None:
        """Turn the wheel by that many notches."""

    def key(self, key: str, down: bool) -> None:
        """Press or release a key."""

    def type(self, text: str, interval: float) -> None:
        """Type any text, with this many seconds between characters."""

    def pastes(self, text: str) -> bool:
        """Return whether to paste a text: it is long, or has many characters that no key makes."""
        return False

    def in_terminal(self) -> bool:
        """Return whether the window in front is a terminal, where Ctrl+C and Ctrl+V have other meanings."""
        return False

    def settle(self) -> None:
        """Wait until the application in front has handled the input, where that can be known."""

    def release(self) -> None:
        """Release every key and button that is still held, and undo what typing needed."""
        for key in list(self.held_keys):
            self.key(key, False)
        for button in list(self.held_buttons):
            self.button(button, False)

    def close(self) -> None:
        """Release everything, and the device itself."""
        self.release()


class SystemClipboard(Protocol):
    """The clipboard of one platform."""

    def text(self) -> str | None:
        """Return the copied text, None if there is no text."""

    def image(self) -> bytes | None:
        """Return the copied picture as PNG, None if there is none."""

    def selected_text(self) -> str | None:
        """Return the text that is selected but not copied, where the system knows it."""

    def put_text(self, text: str) -> None: ...

    def put_image(self, png: bytes) -> None: ...

    def changed_by(self, copy: Callable[[], None]) -> bool:
        """Run `copy`; return whether a program has put something on the clipboard."""
        before = self.text()
        copy()
        return self.text() != before

    def paste_once(self, text: str, paste: Callable[[], None], delay: float) -> bool:
        """Put a text there for one paste, then restore the content; return whether a program fetched it."""
        before = self.text()
        self.put_text(text)
        paste()
        time.sleep(delay)  # no event reports that the program has pasted
        self.put_text(before or "")
        return True

    def paste_selection(self, text: str, paste: Callable[[], None]) -> bool:
        """Make a text the selected one, for a terminal to paste; return whether it fetched it."""
        return False


class ControlFrame:
    """A frame around the screen that shows that the model has the mouse, where it can be drawn."""

    def show(self) -> bool:
        """Draw the frame above all windows; return whether that worked."""
        return False

    def hide(self) -> None: ...


def platform_name() -> str:
    """Return the platform of the screen: "x11", "wayland", "macos" or "windows"."""
    if sys.platform == "darwin":
        return "macos"
    if sys.platform == "win32":
        return "windows"
    wayland = os.environ.get("WAYLAND_DISPLAY") and os.environ.get("XDG_SESSION_TYPE") != "x11"
    return "wayland" if wayland else "x11"


def _back_end(part: str) -> Callable[..., Any]:
    name = platform_name()
    if (name, part) in MISSING:
        raise ComputerError(MISSING[name, part])
    if name == "x11" and not os.environ.get("DISPLAY"):
        raise NoDisplayError(
            "There is no display here: neither DISPLAY nor WAYLAND_DISPLAY is set. Start one and set it, for example "
            "`Xvfb :99 -screen 0 1280x800x24 &` and DISPLAY=:99 in the environment, or run this in a desktop session."
        )
    module, _, kind = BACK_ENDS[name][part].partition(":")
    return cast("Callable[..., Any]", getattr(needed(f"{__name__}.{module}", "Seeing the screen"), kind))


def open_screen() -> Screen:
    """Open the screen of this system; NoDisplayError says why there is none."""
    return cast(Screen, _back_end("screen")())


def open_windows() -> WindowManager:
    return cast(WindowManager, _back_end("windows")())


def open_input() -> InputDevice:
    return cast(InputDevice, _back_end("input")())


def open_clipboard() -> SystemClipboard:
    return cast(SystemClipboard, _back_end("clipboard")())


def open_stop_key(
    keys: tuple[str, ...], stopped: Callable[[], None], in_corner: Callable[[int, int], None] | None = None
) -> Callable[[], None]:
    """Call `stopped` on the keys, and `in_corner` (X11 only) when the pointer is in a corner, from a thread.

    Returns a function that stops watching.
    """
    return cast("Callable[[], None]", _back_end("stop_key")(keys, stopped, in_corner).close)


def open_control_frame() -> ControlFrame:
    if sys.platform not in ("darwin", "win32") and os.environ.get("DISPLAY"):  # also with XWayland
        with suppress(ImportError):
            from interpreter.computer_api.screen.platforms.x11.screen import X11ControlFrame

            return X11ControlFrame()
    return ControlFrame()


def needed(module: str, what: str) -> Any:
    """Import a module of the `os` extra, or one of ours that uses it; MissingPartError says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = (error.name or module).partition(".")[0]
        raise MissingPartError(
            f"{what} needs the package {package}, which is not installed. To install it: {install_hint('os')}"
        ) from error


def in_corner(x: int, y: int, width: int, height: int) -> bool:
    """Return whether a position is in a corner of a screen of that size."""
    return min(x, width - 1 - x) <= _CORNER and min(y, height - 1 - y) <= _CORNER


def is_terminal(kind: str) -> bool:
    """Return whether the class of a window is that of a terminal."""
    return any(
        name in kind.lower()
        for name in ("term", "konsole", "alacritty", "kitty", "tilix", "urxvt", "foot", "yakuake", "guake")
    )


def run_async(work: Callable[[], Coroutine[Any, Any, Result]], limit: float) -> Result:
    """Run a coroutine in its own thread, since the caller may have an event loop; end it after `limit` seconds."""
    import asyncio
    from concurrent.futures import Future

    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(asyncio.run(asyncio.wait_for(work(), limit)))
        except BaseException as error:  # noqa: BLE001 - raised in the calling thread
            future.set_exception(error)

    threading.Thread(target=run, name="screen", daemon=True).start()
    return future.result(limit + 1)
