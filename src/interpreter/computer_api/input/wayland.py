"""Pointer and keys under Wayland, through the commands ydotool and wtype. Written to their documentation, not tried."""

from __future__ import annotations

import subprocess
import time
from shutil import which

from interpreter.computer_api.display.screens import desktop_size
from interpreter.computer_api.input.keys import keysym_name
from interpreter.errors import ComputerError

_BUTTONS = {"left": 0, "right": 1, "middle": 2}
_DOWN, _UP = 0x40, 0x80
_MODIFIERS = {"ctrl": "ctrl", "shift": "shift", "alt": "alt", "super": "logo", "altgr": "altgr"}
_LIMIT = 30


class WaylandHands:
    """What Wayland lets a program do: type with wtype, move and click with ydotool."""

    is_lost = False

    def __init__(self) -> None:
        if which("wtype") is None and which("ydotool") is None:
            raise ComputerError(
                "Under Wayland the keyboard needs the program wtype, and the mouse ydotool with its daemon ydotoold "
                "running: install them, or log in with an X11 session."
            )
        self._at: tuple[int, int] | None = None
        self._held: set[str] = set()
        self._buttons: set[str] = set()

    def size(self) -> tuple[int, int]:
        return desktop_size()

    def position(self) -> tuple[int, int]:
        """Where we put it: nothing else can be known."""
        return self._at or (-1, -1)

    def move(self, x: int, y: int) -> None:
        _run("ydotool", "mousemove", "--absolute", "-x", str(x), "-y", str(y))
        self._at = (x, y)

    def button(self, button: str, down: bool) -> None:
        self._buttons.add(button) if down else self._buttons.discard(button)
        _run("ydotool", "click", hex(_BUTTONS[button] | (_DOWN if down else _UP)))

    def scroll(self, up: int, right: int) -> None:
        _run("ydotool", "mousemove", "--wheel", "-x", str(right), "-y", str(up))

    def key(self, key: str, down: bool) -> None:
        self._held.add(key) if down else self._held.discard(key)
        if key in _MODIFIERS:
            _run("wtype", "-M" if down else "-m", _MODIFIERS[key])
        else:
            _run("wtype", "-P" if down else "-p", key if len(key) == 1 else keysym_name(key))

    def type(self, text: str, interval: float) -> None:
        _run("wtype", "-d", str(round(interval * 1000)), "--", text)

    def pastes(self, text: str) -> bool:
        return False

    def in_terminal(self) -> bool:
        return False

    def settle(self) -> None:
        # Programs give no sign here, so they get a moment.
        time.sleep(0.15)

    def release(self) -> None:
        for key in list(self._held):
            self.key(key, False)
        for button in list(self._buttons):
            self.button(button, False)

    def close(self) -> None:
        self.release()


def _run(program: str, *options: str) -> None:
    if which(program) is None:
        raise ComputerError(
            f"Under Wayland this needs the program {program}: install it, or log in with an X11 session."
        )
    ran = subprocess.run(
        [program, *options], stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT, check=False
    )
    if ran.returncode:
        raise ComputerError(f"{program} could not do it: {ran.stderr.decode(errors='replace').strip()}")
