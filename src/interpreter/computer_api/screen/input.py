"""`computer.mouse`, `computer.keyboard` and `computer.clipboard`: the input device they share, and how to stop it."""

from __future__ import annotations

import difflib
import sys
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from typing import Any

from interpreter.computer_api.computer import Computer
from interpreter.computer_api.screen.platforms import (
    BUTTONS,
    AmbiguousTarget,
    InputDevice,
    NoDisplayError,
    NotFoundOnScreenError,
    StoppedByUser,
    UnknownKey,
    in_corner,
    open_clipboard,
    open_input,
)
from interpreter.computer_api.tool import ComputerTool, Picture, acts
from interpreter.errors import ComputerError

STOP_KEY = ("ctrl", "alt", ".")
_devices: weakref.WeakKeyDictionary[Computer, InputDevice] = weakref.WeakKeyDictionary()


def device_of(computer: Computer) -> InputDevice:
    """Return the input device of a computer, opened on first use."""
    if computer not in _devices:
        device = _devices[computer] = open_input()
        # Also at exit: a modifier that stays down would spoil the user's keyboard.
        weakref.finalize(computer, device.close)
    return _devices[computer]


def release(computer: Computer) -> None:
    """Release the keys and buttons that a computer still holds."""
    if computer in _devices:
        with suppress(NoDisplayError):  # then there is nothing to release
            _devices[computer].release()


class InputTool(ComputerTool):
    """A tool that uses the input device."""

    def terminate(self) -> None:
        if self.computer in _devices:
            release(self.computer)  # unlike `close`, over a new connection if an interrupt has cut off the first one
            _devices.pop(self.computer).close()


@contextmanager
def acting(computer: Computer) -> Iterator[InputDevice]:
    """Do one action with the input device; StoppedByUser if the user moved the pointer to a corner since the last."""
    device = device_of(computer)
    where = device.position()
    if device.left_at not in (None, where) and in_corner(*where, *device.size()):
        raise StoppedByUser()
    try:
        yield device
    finally:
        device.left_at = device.position()


def press_together(device: InputDevice, keys: list[str], interval: float = 0) -> None:
    """Press keys one after the other, and always release them."""
    with ExitStack() as held:
        for number, key in enumerate(keys):
            if number:
                time.sleep(interval)
            held.callback(device.key, key, False)
            device.key(key, True)


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
    **{
        spelling.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t"): line.split()[0]
        for line in _SPELLINGS.split("\n")
        for spelling in line.split()
    },
    **{f"f{number}": f"f{number}" for number in range(1, 25)},
    **{f"num{digit}": f"num{digit}" for digit in range(10)},
    # What is Command on a Mac is Control everywhere else.
    **dict.fromkeys(("cmd", "command", "commandleft"), "cmd" if sys.platform == "darwin" else "ctrl"),
}


def key_name(name: str) -> str:
    """Return the device's name for a key, or a character."""
    if not isinstance(name, str) or not name:
        raise UnknownKey(f"Give a key by its name, such as 'enter' or 'a', not {name!r}.")
    if known_name := _NAMES.get(name) or _NAMES.get(name.strip().lower().replace(" ", "").replace("-", "")):
        return known_name
    if len(name) == 1:
        return "space" if name == " " else name
    near = difflib.get_close_matches(name.lower(), _NAMES, 3, 0.5)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else " Names are like 'enter', 'ctrl', 'f5', 'a'."
    raise UnknownKey(f"There is no key {name!r}.{hint} To type text, use computer.keyboard.write.")


def chords(names: Iterable[str | Iterable[str]]) -> list[list[str]]:
    """Return the keys to press one after the other: names and combinations such as 'ctrl+s', alone or in lists."""
    combinations: list[list[str]] = []
    for name in names:
        if not isinstance(name, str):
            combinations += chords(name)
        elif len(name) > 1 and name.endswith("+"):  # the plus itself, as in 'ctrl++'
            combinations.append([key_name(part) for part in (*name[:-1].rstrip("+").split("+"), "+")])
        elif len(name) > 1 and "+" in name:
            combinations.append([key_name(part.strip()) for part in name.split("+")])
        else:
            combinations.append([key_name(name)])
    if not combinations:
        raise UnknownKey("Name the keys: press('enter'), hotkey('ctrl', 's').")
    return combinations


class Keyboard(InputTool):
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
            for number, chord in enumerate(pressed * presses):
                if number:
                    time.sleep(interval)
                press_together(device, chord)
            device.settle()

    @acts
    def press_and_release(self, *args: str | Iterable[str], presses: int = 1, interval: float = 0.1) -> None:
        """Do the same as `press`."""
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
        """Release a key."""
        with acting(self.computer) as device:
            device.key(key_name(key), False)


# Programs see a drag as a user's: in steps, over a fraction of a second.
_STEP, _MIN_STEPS, _MAX_STEPS, _STEP_TIME = 12, 8, 40, 0.008
_MOVE_PAUSES = (0.0, 0.0, 0.05, 0.2, 0.5)  # seconds before each try to move the pointer
_HOW = "Give a text that is on the screen, an element, or coordinates: click('Save') or click(x=100, y=200)."


class Mouse(InputTool):
    """Moves the pointer and clicks. A target is a text, a description of an icon, an element, or coordinates."""

    @acts
    def scroll(self, clicks: int, sideways: int = 0) -> None:
        """Turn the wheel: up for a positive number, down for a negative one; `sideways` to the right."""
        with acting(self.computer) as device:
            device.scroll(int(clicks), int(sideways))
            device.settle()

    def position(self) -> tuple[int, int]:
        """Return the position of the pointer, in pixels of the screen."""
        return device_of(self.computer).position()

    @acts
    def move(
        self,
        *args: Any,
        x: float | None = None,
        y: float | None = None,
        icon: str | None = None,
        text: str | None = None,
        screenshot: Any = None,
    ) -> tuple[int, int]:
        """Move the pointer to a target: `move("Save")`, `move(x=100, y=200)`."""
        with acting(self.computer) as device:
            return self._move(device, args, x=x, y=y, icon=icon, text=text, screenshot=screenshot)

    @acts
    def click(self, *args: Any, button: str = "left", clicks: int = 1, interval: float = 0.1, **kw: Any) -> None:
        """Click a target, or where the pointer is: `click("Save")`, `click(x=100, y=200, button="right")`."""
        _check_button(button)
        with acting(self.computer) as device:
            self._move(device, args, **kw)
            for click in range(clicks):
                if click:
                    time.sleep(interval)
                device.button(button, True)
                device.button(button, False)
            device.settle()

    @acts
    def double_click(self, *args: Any, button: str = "left", interval: float = 0.1, **kw: Any) -> None:
        """Click a target twice."""
        self.click(*args, button=button, clicks=2, interval=interval, **kw)

    @acts
    def triple_click(self, *args: Any, button: str = "left", interval: float = 0.1, **kw: Any) -> None:
        """Click a target three times, which marks a line or a paragraph."""
        self.click(*args, button=button, clicks=3, interval=interval, **kw)

    @acts
    def right_click(self, *args: Any, **kw: Any) -> None:
        """Click a target with the right button."""
        self.click(*args, **({"button": "right"} | kw))

    @acts
    def down(self, button: str = "left") -> None:
        """Press a button and hold it."""
        _check_button(button)
        with acting(self.computer) as device:
            device.button(button, True)

    @acts
    def up(self, button: str = "left") -> None:
        """Release a button."""
        _check_button(button)
        with acting(self.computer) as device:
            device.button(button, False)

    @acts
    def drag(self, start: Any, end: Any, button: str = "left") -> None:
        """Press on one target, move to another, and let go: `drag((10, 20), (90, 20))`."""
        _check_button(button)
        with acting(self.computer) as device:
            begin, goal = (
                find_target(self.computer, device.size(), (target,)) or device.position() for target in (start, end)
            )
            _put(device, *begin)
            device.button(button, True)
            try:
                across, down = goal[0] - begin[0], goal[1] - begin[1]
                steps = min(max(max(abs(across), abs(down)) // _STEP, _MIN_STEPS), _MAX_STEPS)
                for step in range(1, steps):
                    device.move(round(begin[0] + across * step / steps), round(begin[1] + down * step / steps))
                    time.sleep(_STEP_TIME)
                _put(device, *goal)
            finally:
                device.button(button, False)
            device.settle()

    def _move(self, device: InputDevice, args: tuple[Any, ...], **kw: Any) -> tuple[int, int]:
        """Move to a target; where none is named, stay."""
        x, y = find_target(self.computer, device.size(), args, **kw) or device.position()
        if (x, y) != device.position():
            _put(device, x, y)
        return x, y


def _check_button(button: str) -> None:
    if button not in BUTTONS:
        raise ValueError(f"There is no mouse button {button!r}. Use {', '.join(BUTTONS)}.")


def _put(device: InputDevice, x: int, y: int) -> None:
    """Move, and make sure of it: the user may be moving the mouse, and a window manager holds it during a click."""
    for pause in _MOVE_PAUSES:
        time.sleep(pause)
        device.move(x, y)
        if device.position() == (x, y):
            return
    raise ComputerError(
        f"The pointer is at {device.position()}, not at {(x, y)}. The user is moving it, or a program is holding it."
    )


def find_target(
    computer: Computer,
    size: tuple[int, int],
    args: tuple[Any, ...],
    x: float | None = None,
    y: float | None = None,
    icon: str | None = None,
    text: str | None = None,
    screenshot: Any = None,
    **others: Any,
) -> tuple[int, int] | None:
    """Return the pixel of a target; None where none is named. `size` is the screen's."""
    if others:
        raise TypeError(f"A target doesn't take {', '.join(map(repr, others))}. {_HOW}")
    if len(args) == 2 and all(isinstance(value, int | float) for value in args):
        x, y = args
    elif len(args) > 1:
        raise ValueError(f"One target at a time, not {len(args)}. {_HOW}")
    if args == (None,):
        raise ValueError(f"The target is None. {_HOW}")  # a search that found nothing must not lead to a click
    target = next((value for value in (*args, text, icon) if value is not None), None)
    if x is not None or y is not None:
        target = (x, y)
    if isinstance(target, Mapping) and "ref" not in target:  # an element with a ref may have moved since
        target = (target.get("x"), target.get("y")) if "x" in target else target.get("coordinates")
        if target is None:
            raise ValueError(f"That has no position. {_HOW}")
    if target is None:
        return None
    if not isinstance(target, list | tuple):
        return _locate(computer, target, screenshot)
    if len(target) != 2 or not all(isinstance(value, int | float) for value in target):
        raise ValueError(f"{target!r} is not a place on the screen. {_HOW}")
    across, down = target
    if hasattr(screenshot, "on_screen"):
        across, down = screenshot.on_screen(across, down)
    elif isinstance(across, float) and isinstance(down, float) and 0 <= across <= 1 and 0 <= down <= 1:
        # As `display.find` returns places: parts of the screen's width and height.
        across, down = across * (size[0] - 1), down * (size[1] - 1)
    across, down = round(across), round(down)
    if not (0 <= across < size[0] and 0 <= down < size[1]):
        raise ValueError(f"({across}, {down}) is outside of the screen, which is {size[0]} x {size[1]}.")
    return across, down


def _locate(computer: Computer, target: Any, screenshot: Any) -> tuple[int, int]:
    matches = computer.display.locate(target, screenshot)
    if not matches:
        near: list[str] = []
        if isinstance(target, str):
            lines = [" ".join(line_words) for line_words in computer.display.get_text_as_list_of_lists()]
            texts = [element["name"] for element in computer.display.elements() if element["name"]] + lines
            by_fold = {text.casefold(): text for text in texts}
            near = [repr(by_fold[text]) for text in difflib.get_close_matches(target.casefold(), by_fold, 5, 0.4)]
        raise NotFoundOnScreenError(
            f"Nothing on the screen is {target!r}. "
            + (f"The nearest are: {', '.join(near)}. " if near else "")
            + "Look with computer.display.view(), scroll, or wait for it."
        )
    if len(matches) > 1:
        computer.show(computer.display.numbered(matches))
        listed = []
        for number, match in enumerate(matches, 1):
            what = " ".join(filter(None, [repr(match.text) if match.text else "", match.role]))
            listed.append(f"{number}. x={match.x}, y={match.y}" + (f" ({what})" if what else ""))
        raise AmbiguousTarget(
            f"{len(matches)} things on the screen are {target!r}. Say which one by its coordinates:\n"
            + "\n".join(listed)
        )
    return matches[0].x, matches[0].y


class Clipboard(InputTool):
    """The copied text or picture."""

    def __init__(self, computer: Computer) -> None:
        super().__init__(computer)
        self.modifier_key = "command" if sys.platform == "darwin" else "ctrl"

    def view(self) -> str | Picture:
        """Return the content of the clipboard: a text, or a picture; an empty text if it has neither."""
        clipboard = open_clipboard()
        text = clipboard.text()
        if not text and (png := clipboard.image()):
            return _picture(png)
        return text or ""

    @acts
    def copy(self, text: Any = None) -> str | Picture:
        """Put a text or a picture on the clipboard; without one, copy the selection on the screen. Returns it."""
        clipboard = open_clipboard()
        if isinstance(text, str):
            clipboard.put_text(text)
            return text
        if text is not None:
            picture = _picture(text)
            clipboard.put_image(picture.png)
            return picture
        with acting(self.computer) as device:
            if device.in_terminal():
                clipboard.put_text(clipboard.selected_text() or "")
            elif not clipboard.changed_by(lambda: _press(device, self.modifier_key, "c")):
                raise ComputerError(
                    "Nothing was copied. Select something in the front window first, by dragging or with ctrl+a."
                )
        return self.view()

    @acts
    def paste(self) -> None:
        """Paste the content of the clipboard into the window that has the keyboard."""
        with acting(self.computer) as device:
            if device.in_terminal():
                _paste_in_terminal(device, open_clipboard().text() or "")
            else:
                _press(device, self.modifier_key, "v")


def paste_text(clipboard: Clipboard, device: InputDevice, text: str, delay: float) -> bool:
    """Paste a text and restore the clipboard; returns whether a program accepted it."""
    if device.in_terminal():
        return _paste_in_terminal(device, text)
    return open_clipboard().paste_once(text, lambda: _press(device, clipboard.modifier_key, "v"), delay)


def _paste_in_terminal(device: InputDevice, text: str) -> bool:
    """Paste with Shift+Insert, as terminals do; line breaks at the end are pressed as keys, so that they count."""
    line = text.rstrip("\n")
    if line and not open_clipboard().paste_selection(line, lambda: _press(device, "shift", "insert")):
        return False
    for _ in range(len(text) - len(line)):
        _press(device, "enter")
    return True


def _press(device: InputDevice, *keys: str) -> None:
    """Press keys together, and wait until the program has handled them."""
    press_together(device, ["cmd" if key == "command" else key for key in keys])
    device.settle()


def _picture(image: Any) -> Picture:
    """Convert a Picture, PNG bytes or a PIL image to a Picture."""
    if isinstance(image, Picture):
        return image
    if hasattr(image, "save") and hasattr(image, "mode"):
        return Picture.of(image)
    png = image if isinstance(image, bytes) else getattr(image, "png", None)
    if png is None:
        raise ValueError(f"Only text or an image can be copied, not {type(image).__name__}.")
    from PIL import Image

    with Image.open(BytesIO(png)) as opened:
        return Picture(bytes(png), opened.width, opened.height)
