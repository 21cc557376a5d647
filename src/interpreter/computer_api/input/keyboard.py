"""`computer.keyboard`, and the names of keys as pyautogui and people spell them."""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Iterable
from typing import Any

from interpreter.computer_api.input import acting, close_device, press_together
from interpreter.computer_api.input.clipboard import paste_text
from interpreter.computer_api.platforms import UnknownKey
from interpreter.computer_api.tool import Tool, acts

# Spellings of the same key; the first of each line is the name that the devices know.
_SPELLINGS = """
enter return \\n \\r
esc escape
tab \\t
space spacebar
backspace back
delete del
insert ins
home
end
pageup pgup page_up
pagedown pgdn page_down
up arrowup uparrow
down arrowdown downarrow
left arrowleft leftarrow
right arrowright rightarrow
capslock caps_lock
numlock num_lock
scrolllock scroll_lock
printscreen print prtsc prtscr prntscrn print_screen
pause break
menu apps contextmenu
ctrl control ctrlleft controlleft lctrl
ctrlright controlright rctrl
shift shiftleft lshift
shiftright rshift
alt altleft lalt option optionleft
altright ralt optionright
altgr
super win windows winleft meta lsuper
superright winright
add
subtract
multiply
divide
decimal
volumeup
volumedown
volumemute mute
playpause
nexttrack
prevtrack
browserback
browserforward
"""
_NAMES = {
    spelling.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t"): line.split()[0]
    for line in _SPELLINGS.split("\n")
    for spelling in line.split()
}
_NAMES |= {name: name for name in [f"f{number}" for number in range(1, 25)] + [f"num{digit}" for digit in range(10)]}
# What is Command on a Mac is Control everywhere else.
_NAMES |= dict.fromkeys(("cmd", "command", "commandleft"), "cmd" if sys.platform == "darwin" else "ctrl")


def key_name(name: str) -> str:
    """The key that a name means: the device's name for it, or a character."""
    if not isinstance(name, str) or not name:
        raise UnknownKey(f"A key is told by its name, such as 'enter' or 'a', not by {name!r}.")
    if found := _NAMES.get(name) or _NAMES.get(name.strip().lower().replace(" ", "").replace("-", "")):
        return found
    if len(name) == 1:
        return "space" if name == " " else name
    near = difflib.get_close_matches(name.lower(), _NAMES, 3, 0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else " Names are like 'enter', 'ctrl', 'f5', 'a'."
    raise UnknownKey(f"There is no key {name!r}.{hint} To type text, use computer.keyboard.write.")


def chords(names: Iterable[str | Iterable[str]]) -> list[list[str]]:
    """The keys to press one after the other: names and combinations such as 'ctrl+s', alone or in lists."""
    found: list[list[str]] = []
    for name in names:
        if not isinstance(name, str):
            found += chords(name)
        elif len(name) > 1 and name.endswith("+"):  # the plus itself, as in 'ctrl++'
            found.append([key_name(part) for part in (*name[:-1].rstrip("+").split("+"), "+")])
        elif len(name) > 1 and "+" in name:
            found.append([key_name(part.strip()) for part in name.split("+")])
        else:
            found.append([key_name(name)])
    if not found:
        raise UnknownKey("Name the keys: press('enter'), hotkey('ctrl', 's').")
    return found


class Keyboard(Tool):
    """Types text and presses keys, in the window that has the keyboard."""

    @acts
    def write(self, text: str, interval: float | None = None, delay: float = 0.30, **kw: Any) -> None:
        """Type any text; a line break presses Enter. `interval`: seconds between characters."""
        if not isinstance(text, str):
            raise TypeError(f"write takes a text, not {text!r:.60}: write(str(...)).")
        with acting(self.computer) as device:
            # A long text is pasted; `delay` is how long the program has until the clipboard is restored.
            if interval or not device.pastes(text) or not paste_text(self.computer.clipboard, device, text, delay):
                device.type(text, interval or 0)

    @acts
    def press(self, *args: str | Iterable[str], presses: int = 1, interval: float = 0.1) -> None:
        """Press keys one after the other: `press("enter")`, `press("ctrl+s")`, `press("down", presses=3)`."""
        pressed = chords(args)
        with acting(self.computer) as device:
            for number in range(presses):
                for chord in pressed:
                    if number or chord is not pressed[0]:
                        time.sleep(interval)
                    press_together(device, chord)
            device.settle()

    @acts
    def press_and_release(self, *args: str | Iterable[str], presses: int = 1, interval: float = 0.1) -> None:
        """The same as `press`."""
        self.press(*args, presses=presses, interval=interval)

    @acts
    def hotkey(self, *args: str | Iterable[str], interval: float = 0.1) -> None:
        """Press keys together: `hotkey("ctrl", "shift", "t")`."""
        together = [key for chord in chords(args) for key in chord]
        with acting(self.computer) as device:
            press_together(device, together, interval)
            device.settle()

    @acts
    def down(self, key: str) -> None:
        """Press a key and hold it until `up`."""
        with acting(self.computer) as device:
            device.key(key_name(key), True)

    @acts
    def up(self, key: str) -> None:
        """Let go of a key."""
        with acting(self.computer) as device:
            device.key(key_name(key), False)

    def terminate(self) -> None:
        close_device(self.computer)
