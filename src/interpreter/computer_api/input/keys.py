"""The names of keys, as pyautogui and people spell them, and what X11 calls them."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator

from interpreter.computer_api.input.errors import UnknownKey

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
_X11 = {
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


def _names() -> Iterator[tuple[str, str]]:
    for line in _SPELLINGS.split("\n"):
        for spelling in line.split():
            yield spelling.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t"), line.split()[0]
    for number in range(1, 25):
        yield f"f{number}", f"f{number}"
    for digit in range(10):
        yield f"num{digit}", f"num{digit}"
    # What is Command on a Mac is Control everywhere else.
    command = "cmd" if sys.platform == "darwin" else "ctrl"
    yield from ((name, command) for name in ("cmd", "command", "commandleft"))


NAMES = dict(_names())


def key(name: str) -> str:
    """The key that a name means: one of `NAMES`' values, or a character."""
    if not isinstance(name, str) or not name:
        raise UnknownKey(f"A key is told by its name, such as 'enter' or 'a', not by {name!r}.")
    if found := NAMES.get(name) or NAMES.get(name.strip().lower().replace(" ", "").replace("-", "")):
        return found
    if len(name) == 1:
        return "space" if name == " " else name
    near = difflib.get_close_matches(name.lower(), NAMES, 3, 0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else " Names are like 'enter', 'ctrl', 'f5', 'a'."
    raise UnknownKey(f"There is no key {name!r}.{hint} To type text, use computer.keyboard.write.")


def chord(name: str) -> list[str]:
    """The keys of a name or of a combination such as 'ctrl+s'."""
    if isinstance(name, str) and len(name) > 1 and "+" in name:
        return [key(part) for part in _parts(name)]
    return [key(name)]


def chords(names: Iterable[str | Iterable[str]]) -> list[list[str]]:
    """What is pressed one after the other: names and combinations, alone or in lists."""
    found: list[list[str]] = []
    for name in names:
        found += [chord(name)] if isinstance(name, str) else chords(name)
    if not found:
        raise UnknownKey("Name the keys: press('enter'), hotkey('ctrl', 's').")
    return found


def _parts(combination: str) -> list[str]:
    """'ctrl+s' in its parts; the last may be the plus itself, as in 'ctrl++'."""
    if combination.endswith("+"):
        return [*combination[:-1].rstrip("+").split("+"), "+"]
    return [part.strip() for part in combination.split("+")]


def keysym_name(name: str) -> str:
    """What X11 calls a key that is no character."""
    if name.startswith("num") and name[3:].isdigit():
        return f"KP_{name[3:]}"
    return _X11.get(name) or name.upper()
