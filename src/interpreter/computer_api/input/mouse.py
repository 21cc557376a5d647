"""`computer.mouse`, and how a target becomes a place: coordinates, an element, a text, the description of an icon."""

from __future__ import annotations

import difflib
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.input import acting, close_device, position_of
from interpreter.computer_api.platforms import (
    BUTTONS,
    AmbiguousTarget,
    InputDevice,
    NotFoundOnScreenError,
    PointerElsewhere,
)
from interpreter.computer_api.tool import Tool, acts

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer

# Programs see a drag as a user's: in steps, over a fraction of a second.
_STEP, _FEWEST_STEPS, _MOST_STEPS, _STEP_TIME = 12, 8, 40, 0.008
_HOW = "Give a text that is on the screen, an element, or coordinates: click('Save') or click(x=100, y=200)."


class Mouse(Tool):
    """Moves the pointer and clicks. A target is a text, a description of an icon, an element, or coordinates."""

    @acts
    def scroll(self, clicks: int, sideways: int = 0) -> None:
        """Turn the wheel: up for a positive number, down for a negative one; `sideways` to the right."""
        with acting(self.computer) as device:
            device.scroll(int(clicks), int(sideways))
            device.settle()

    def position(self) -> tuple[int, int]:
        """Where the pointer is, in pixels of the screen."""
        return position_of(self.computer)

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
        """Let go of a button."""
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
                steps = min(max(max(abs(across), abs(down)) // _STEP, _FEWEST_STEPS), _MOST_STEPS)
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

    def terminate(self) -> None:
        close_device(self.computer)


def _check_button(button: str) -> None:
    if button not in BUTTONS:
        raise ValueError(f"There is no mouse button {button!r}; there are {', '.join(BUTTONS)}.")


def _put(device: InputDevice, x: int, y: int) -> None:
    """Move, and make sure of it: the user may be moving the mouse as well."""
    for _ in range(2):
        device.move(x, y)
        if device.position() == (x, y):
            return
    raise PointerElsewhere(
        f"The pointer is at {device.position()} and not at {(x, y)}: somebody else moves it, or a program holds it."
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
    """The pixel of a target, None where none is named. `size` is the screen's."""
    if others:
        raise TypeError(f"A target has no {', '.join(map(repr, others))}. {_HOW}")
    if len(args) == 2 and all(isinstance(value, int | float) for value in args):
        x, y = args
    elif len(args) > 1:
        raise ValueError(f"One target at a time, not {len(args)}. {_HOW}")
    if args == (None,):
        raise ValueError(f"The target is None. {_HOW}")  # the result of a search that found nothing: no click anywhere
    target = next((value for value in (*args, text, icon) if value is not None), None)
    if x is not None or y is not None:
        target = (x, y)
    if isinstance(target, Mapping) and "ref" not in target:  # an element with a ref may have moved since
        target = (target.get("x"), target.get("y")) if "x" in target else target.get("coordinates")
        if target is None:
            raise ValueError(f"There is no place in that. {_HOW}")
    if target is None:
        return None
    if not isinstance(target, list | tuple):
        return _locate(computer, target, screenshot)
    if len(target) != 2 or not all(isinstance(value, int | float) for value in target):
        raise ValueError(f"{target!r} is no place on the screen. {_HOW}")
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
        raise NotFoundOnScreenError(f"Nothing on the screen is {target!r}. {_nearest(computer, target)}")
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


def _nearest(computer: Computer, target: Any) -> str:
    """What is there instead."""
    advice = "Look with computer.display.view(), scroll, or wait for it."
    if not isinstance(target, str):
        return advice
    lines = [" ".join(words) for words in computer.display.get_text_as_list_of_lists()]
    texts = dict.fromkeys([element["name"] for element in computer.display.elements() if element["name"]] + lines)
    by_fold = {text.casefold(): text for text in texts}
    near = difflib.get_close_matches(target.casefold(), by_fold, 5, 0.4)
    return (f"The nearest are: {', '.join(repr(by_fold[text]) for text in near)}. " if near else "") + advice
