"""Back ends that several platforms share: pixels by mss, mouse and keys by pynput, a clipboard by commands.

Those by pynput and by commands follow the documentation; they have not been tested on macOS and Windows yet.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from shutil import which
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.platforms import (
    Box,
    InputDevice,
    Monitor,
    NoDisplayError,
    Screen,
    SystemClipboard,
    UnknownKey,
    needed,
)
from interpreter.errors import ComputerError

if TYPE_CHECKING:
    from PIL.Image import Image

# Names of keys that differ in pynput.
_PYNPUT_NAMES = {
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
# Names of keys that are no characters, in X11 and for wtype.
_KEYSYMS = {
    "enter": "Return",
    "esc": "Escape",
    "tab": "Tab",
    "space": "space",
    "backspace": "BackSpace",
    "delete": "Delete",
    "insert": "Insert",
    "home": "Home",
    "end": "End",
    "pageup": "Prior",
    "pagedown": "Next",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "capslock": "Caps_Lock",
    "numlock": "Num_Lock",
    "scrolllock": "Scroll_Lock",
    "printscreen": "Print",
    "pause": "Pause",
    "menu": "Menu",
    "ctrl": "Control_L",
    "ctrlright": "Control_R",
    "shift": "Shift_L",
    "shiftright": "Shift_R",
    "alt": "Alt_L",
    "altright": "Alt_R",
    "altgr": "ISO_Level3_Shift",
    "super": "Super_L",
    "superright": "Super_R",
    "add": "KP_Add",
    "subtract": "KP_Subtract",
    "multiply": "KP_Multiply",
    "divide": "KP_Divide",
    "decimal": "KP_Decimal",
    "volumeup": "XF86_AudioRaiseVolume",
    "volumedown": "XF86_AudioLowerVolume",
    "volumemute": "XF86_AudioMute",
    "playpause": "XF86_AudioPlay",
    "nexttrack": "XF86_AudioNext",
    "prevtrack": "XF86_AudioPrev",
    "browserback": "XF86_Back",
    "browserforward": "XF86_Forward",
}
_LONG_TEXT = 500
_COMMAND_LIMIT = 10


class CapturedScreen(Screen):
    """A screen that mss captures; used by one thread at a time."""

    def __init__(self, display: str | None = None) -> None:
        self._lock = threading.Lock()
        module = needed("mss", "Seeing the screen")
        self._error = module.exception.ScreenShotError
        try:
            self._mss: Any = module.MSS(display=display) if display else module.MSS()
        except self._error as error:
            raise NoDisplayError(f"The screen cannot be seen: {error}") from error
        weakref.finalize(self, self._mss.close)

    def grab(self, box: Box) -> Image:
        """The pixels of a box, one for each pixel of the box, also where the screen has more."""
        image = needed("PIL.Image", "Seeing the screen")
        with self._lock:
            try:
                shot = self._mss.grab({"left": box.left, "top": box.top, "width": box.width, "height": box.height})
            except self._error as error:
                self.closed = True
                raise NoDisplayError(f"The screen cannot be seen any more: {error}") from error
        found: Image = image.frombytes("RGB", (shot.width, shot.height), bytes(shot.bgra), "raw", "BGRX")
        return found if found.size == (box.width, box.height) else found.resize((box.width, box.height))

    def monitors(self) -> list[Monitor]:
        with self._lock:
            found = self._mss.monitors[1:]
        return [
            Monitor(f"screen {number}", Box(each["left"], each["top"], each["width"], each["height"]), number == 0)
            for number, each in enumerate(found)
        ]


class PynputInput(InputDevice):
    """Mouse and keyboard of Windows and of macOS, which asks the user once to allow Accessibility."""

    def __init__(self) -> None:
        super().__init__()
        self._mouse = needed("pynput.mouse", "Using mouse and keyboard")
        self._keyboard = needed("pynput.keyboard", "Using mouse and keyboard")
        self._pointer, self._keys = self._mouse.Controller(), self._keyboard.Controller()

    def position(self) -> tuple[int, int]:
        x, y = self._pointer.position
        return round(x), round(y)

    def move(self, x: int, y: int) -> None:
        self._pointer.position = (x, y)

    def button(self, button: str, down: bool) -> None:
        self.held_buttons.add(button) if down else self.held_buttons.discard(button)
        which = getattr(self._mouse.Button, button)
        self._pointer.press(which) if down else self._pointer.release(which)

    def scroll(self, up: int, right: int) -> None:
        self._pointer.scroll(right, up)

    def key(self, key: str, down: bool) -> None:
        self.held_keys.add(key) if down else self.held_keys.discard(key)
        which = self._pynput_key(key)
        self._keys.press(which) if down else self._keys.release(which)

    def type(self, text: str, interval: float) -> None:
        for character in text:
            key = {"\n": "enter", "\r": "enter", "\t": "tab"}.get(character)
            self._keys.tap(self._pynput_key(key) if key else character)
            time.sleep(interval)

    def pastes(self, text: str) -> bool:
        return len(text) > _LONG_TEXT

    def _pynput_key(self, name: str) -> Any:
        if len(name) == 1:
            return name
        if name in _CHARACTERS:
            return _CHARACTERS[name]
        if name.startswith("num") and name[3:].isdigit():
            return name[3:]
        found = getattr(self._keyboard.Key, _PYNPUT_NAMES.get(name, name), None)
        if found is None:
            raise UnknownKey(f"{sys.platform} has no key {name!r}.")
        return found


class PynputStopKey:
    """Waits for the stop key; macOS asks the user once to allow Input Monitoring. Corners are not watched."""

    def __init__(
        self, keys: tuple[str, ...], stopped: Callable[[], None], in_corner: Callable[[], None] | None
    ) -> None:
        keyboard = needed("pynput.keyboard", "The stop key")
        spelled = "+".join(key if len(key) == 1 else f"<{_PYNPUT_NAMES.get(key, key)}>" for key in keys)
        listener = keyboard.GlobalHotKeys({spelled: stopped})
        self.start, self.close = listener.start, listener.stop


class CommandClipboard(SystemClipboard):
    """A clipboard behind the system's commands; a platform fills in those that it has."""

    package: str
    text_command: tuple[str, ...]
    put_text_command: tuple[str, ...]
    image_command: tuple[str, ...] | None = None
    put_image_command: tuple[str, ...] | None = None
    selection_command: tuple[str, ...] | None = None

    def __init__(self) -> None:
        program = self.text_command[0]
        if which(program) is None:
            raise ComputerError(f"The clipboard needs the command {program}, which comes with {self.package}.")

    def text(self) -> str | None:
        found = _output(self.text_command)
        return None if found is None else found.decode("utf-8", "replace")

    def image(self) -> bytes | None:
        return _output(self.image_command)

    def selected_text(self) -> str | None:
        found = _output(self.selection_command)
        return None if found is None else found.decode("utf-8", "replace")

    def put_text(self, text: str) -> None:
        _put(self.put_text_command, text.encode())

    def put_image(self, png: bytes) -> None:
        if self.put_image_command is None:
            raise ComputerError("Pictures cannot be copied on this system yet; save it to a file instead.")
        _put(self.put_image_command, png)

    def changed_by(self, copy: Callable[[], None]) -> bool:
        before = self.text()
        copy()
        return self.text() != before

    def paste_once(self, text: str, paste: Callable[[], None], delay: float) -> bool:
        before = self.text()
        self.put_text(text)
        paste()
        time.sleep(delay)  # nothing tells when the program has pasted
        self.put_text(before or "")
        return True

    def paste_selection(self, text: str, paste: Callable[[], None]) -> bool:
        return False


def _output(command: tuple[str, ...] | None) -> bytes | None:
    if command is None:
        return None
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_LIMIT, check=False)
    return ran.stdout if ran.returncode == 0 else None


def _put(command: tuple[str, ...], data: bytes) -> None:
    """Give data to a command that may keep running to serve it, so that its output is not waited for."""
    quiet = subprocess.DEVNULL
    ran = subprocess.run(command, input=data, stdout=quiet, stderr=quiet, timeout=_COMMAND_LIMIT, check=False)
    if ran.returncode:
        raise ComputerError(f"{command[0]} could not copy: it ended with {ran.returncode}.")


def keysym_name(key: str) -> str:
    """What X11 calls a key that is no character."""
    if key.startswith("num") and key[3:].isdigit():
        return f"KP_{key[3:]}"
    return _KEYSYMS.get(key) or key.upper()
