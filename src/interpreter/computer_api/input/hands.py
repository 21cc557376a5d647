"""What moves the pointer and presses the keys of this machine; one for each computer."""

from __future__ import annotations

import os
import sys
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from interpreter.computer_api.display.failures import NoDisplayError
from interpreter.computer_api.input.errors import HandsLost

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer

BUTTONS = ("left", "middle", "right")
TERMINALS = ("term", "konsole", "alacritty", "kitty", "tilix", "urxvt", "foot", "yakuake", "guake")


class Hands(Protocol):
    """The devices of one kind of screen. Places are pixels of the whole screen, keys are names of `keys.key`."""

    @property
    def is_lost(self) -> bool:
        """Whether they do nothing any more, and others have to be opened."""

    def size(self) -> tuple[int, int]:
        """Width and height of the whole screen."""

    def position(self) -> tuple[int, int]:
        """Where the pointer is."""

    def move(self, x: int, y: int) -> None:
        """Put the pointer somewhere, at once."""

    def button(self, button: str, down: bool) -> None:
        """Hold or let go one of `BUTTONS`."""

    def scroll(self, up: int, right: int) -> None:
        """Turn the wheel by so many notches."""

    def key(self, key: str, down: bool) -> None:
        """Hold or let go a key."""

    def type(self, text: str, interval: float) -> None:
        """Type any text, with so many seconds between characters."""

    def pastes(self, text: str) -> bool:
        """Whether a text had better go through the clipboard: it is long, or of many characters that no key makes."""

    def in_terminal(self) -> bool:
        """Whether the window in front is a terminal, in which Ctrl+C and Ctrl+V mean something else."""

    def settle(self) -> None:
        """Wait until the application in front has taken in what was done, where that can be known."""

    def release(self) -> None:
        """Let go of every key and button that is still held, and undo what typing needed."""

    def close(self) -> None:
        """Let go of everything, the devices too."""


_hands: weakref.WeakKeyDictionary[Computer, Hands] = weakref.WeakKeyDictionary()
_ends: weakref.WeakKeyDictionary[Computer, weakref.finalize[[], Computer]] = weakref.WeakKeyDictionary()


def hands_of(computer: Computer) -> Hands:
    """The devices that a computer's mouse and keyboard share; opened on first use."""
    before = _hands.get(computer)
    if before is None or before.is_lost:
        made = _hands[computer] = open_hands()
        # Also at exit: a modifier that stays down would spoil the user's keyboard.
        _ends[computer] = weakref.finalize(computer, made.close)
        if before is not None:
            made.release()
    return _hands[computer]


def position_of(computer: Computer) -> tuple[int, int]:
    """Where the pointer is, also when an interrupt in another thread has taken the devices away meanwhile."""
    try:
        return hands_of(computer).position()
    except HandsLost:
        return hands_of(computer).position()


def release(computer: Computer) -> None:
    """Let go of what a computer still holds down."""
    if computer not in _hands:
        return
    with suppress(NoDisplayError):  # then there is nothing that could be held
        hands = hands_of(computer)
        hands.release()
        if hands.is_lost:  # an interrupt cut it off meanwhile, and what was down is down
            hands_of(computer).release()


def let_go(computer: Computer) -> None:
    """Close the devices of a computer, if it has any open."""
    release(computer)
    if _hands.pop(computer, None) is not None:
        _ends.pop(computer)()


def kind_of_screen() -> str:
    """What carries the screen: "x11", "wayland", "macos" or "windows"."""
    if sys.platform == "darwin":
        return "macos"
    if sys.platform == "win32":
        return "windows"
    wayland = os.environ.get("WAYLAND_DISPLAY") and os.environ.get("XDG_SESSION_TYPE") != "x11"
    return "wayland" if wayland else "x11"


def is_terminal(kind: str) -> bool:
    """Whether the class of a window is that of a terminal."""
    return any(name in kind.lower() for name in TERMINALS)


def open_hands() -> Hands:
    match kind_of_screen():
        case "x11":
            from interpreter.computer_api.input.x11.hands import X11Hands

            return X11Hands()
        case "wayland":
            from interpreter.computer_api.input.wayland import WaylandHands

            return WaylandHands()
        case _:
            from interpreter.computer_api.input.elsewhere import PynputHands

            return PynputHands()


def press(hands: Hands, together: list[str], interval: float = 0) -> None:
    """Keys down one after the other, and up again whatever happens."""
    held: list[str] = []
    try:
        for name in together:
            if held and interval:
                time.sleep(interval)
            held.append(name)
            hands.key(name, True)
    finally:
        for name in reversed(held):
            hands.key(name, False)
