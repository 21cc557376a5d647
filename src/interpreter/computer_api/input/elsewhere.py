"""Pointer and keys where pynput moves them: macOS and Windows. Written to its documentation, not tried on them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from interpreter.computer_api.display.failures import needed
from interpreter.computer_api.display.screens import desktop_size
from interpreter.computer_api.input.errors import UnknownKey

_USING = "Using mouse and keyboard"
# What pynput calls a key by another name than we do.
_NAMES = {
    "pageup": "page_up",
    "pagedown": "page_down",
    "capslock": "caps_lock",
    "numlock": "num_lock",
    "scrolllock": "scroll_lock",
    "printscreen": "print_screen",
    "ctrlright": "ctrl_r",
    "shiftright": "shift_r",
    "altright": "alt_r",
    "altgr": "alt_gr",
    "super": "cmd",
    "superright": "cmd_r",
    "volumeup": "media_volume_up",
    "volumedown": "media_volume_down",
    "volumemute": "media_volume_mute",
    "playpause": "media_play_pause",
    "nexttrack": "media_next",
    "prevtrack": "media_previous",
}
_CHARACTERS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "decimal": "."}
_LONG = 500


class PynputHands:
    """The devices of macOS, which asks the user to allow Accessibility once, and of Windows."""

    is_lost = False

    def __init__(self) -> None:
        self._mouse = needed("pynput.mouse", _USING)
        self._keyboard = needed("pynput.keyboard", _USING)
        self._pointer, self._keys = self._mouse.Controller(), self._keyboard.Controller()
        self._held: set[str] = set()
        self._buttons: set[str] = set()

    def size(self) -> tuple[int, int]:
        return desktop_size()

    def position(self) -> tuple[int, int]:
        x, y = self._pointer.position
        return round(x), round(y)

    def move(self, x: int, y: int) -> None:
        self._pointer.position = (x, y)

    def button(self, button: str, down: bool) -> None:
        self._buttons.add(button) if down else self._buttons.discard(button)
        which = getattr(self._mouse.Button, button)
        self._pointer.press(which) if down else self._pointer.release(which)

    def scroll(self, up: int, right: int) -> None:
        self._pointer.scroll(right, up)

    def key(self, key: str, down: bool) -> None:
        self._held.add(key) if down else self._held.discard(key)
        which = pynput_key(self._keyboard, key)
        self._keys.press(which) if down else self._keys.release(which)

    def type(self, text: str, interval: float) -> None:
        import time

        for character in text:
            key = {"\n": "enter", "\r": "enter", "\t": "tab"}.get(character)
            self._keys.tap(pynput_key(self._keyboard, key) if key else character)
            time.sleep(interval)

    def pastes(self, text: str) -> bool:
        return len(text) > _LONG

    def in_terminal(self) -> bool:
        # Their terminals copy and paste with the keys that all programs have.
        return False

    def settle(self) -> None:
        """Programs give no sign here."""

    def release(self) -> None:
        for key in list(self._held):
            self.key(key, False)
        for button in list(self._buttons):
            self.button(button, False)

    def close(self) -> None:
        self.release()


class PynputStopKey:
    """Waits for the stop key; macOS asks the user to allow Input Monitoring once."""

    def __init__(self, keys: tuple[str, ...], stopped: Callable[[], None]) -> None:
        keyboard = needed("pynput.keyboard", "The stop key")
        spelled = "+".join(key if len(key) == 1 else f"<{_NAMES.get(key, key)}>" for key in keys)
        self._listener = keyboard.GlobalHotKeys({spelled: stopped})

    def start(self) -> None:
        self._listener.start()

    def close(self) -> None:
        self._listener.stop()


def pynput_key(keyboard: Any, name: str) -> Any:
    """Pynput's key for a name of ours."""
    if len(name) == 1:
        return name
    if name in _CHARACTERS:
        return _CHARACTERS[name]
    if name.startswith("num") and name[3:].isdigit():
        return name[3:]
    found = getattr(keyboard.Key, _NAMES.get(name, name), None)
    if found is None:
        raise UnknownKey(f"{sys.platform} has no key {name!r}.")
    return found
