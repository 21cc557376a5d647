"""The mouse."""

from __future__ import annotations

import time
from typing import Any

from interpreter.computer_api.input.errors import PointerElsewhere
from interpreter.computer_api.input.hands import BUTTONS, Hands, let_go, position_of
from interpreter.computer_api.input.stop import acting
from interpreter.computer_api.input.targets import place
from interpreter.computer_api.tool import Tool, acts

# A drag is seen by programs as a hand's: in steps, over a fraction of a second.
_STEP, _STEPS, _STEP_TIME = 12, (8, 40), 0.008


class Mouse(Tool):
    """Moves the pointer and clicks. A target is a text, a description of an icon, an element, or coordinates."""

    @acts
    def scroll(self, clicks: int, sideways: int = 0) -> None:
        """Turn the wheel: up for a positive number, down for a negative one; `sideways` to the right."""
        with acting(self.computer) as hands:
            hands.scroll(int(clicks), int(sideways))
            hands.settle()

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
        with acting(self.computer) as hands:
            return self._to(hands, args, x=x, y=y, icon=icon, text=text, screenshot=screenshot)

    @acts
    def click(self, *args: Any, button: str = "left", clicks: int = 1, interval: float = 0.1, **kw: Any) -> None:
        """Click a target, or where the pointer is: `click("Save")`, `click(x=100, y=200, button="right")`."""
        _checked(button)
        with acting(self.computer) as hands:
            self._to(hands, args, **kw)
            for click in range(clicks):
                if click:
                    time.sleep(interval)
                hands.button(button, True)
                hands.button(button, False)
            hands.settle()

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
        with acting(self.computer) as hands:
            hands.button(_checked(button), True)

    @acts
    def up(self, button: str = "left") -> None:
        """Let go of a button."""
        with acting(self.computer) as hands:
            hands.button(_checked(button), False)

    @acts
    def drag(self, start: Any, end: Any, button: str = "left") -> None:
        """Press on one target, move to another, and let go: `drag((10, 20), (90, 20))`."""
        _checked(button)
        with acting(self.computer) as hands:
            begin, goal = (self._found(hands, (target,)) for target in (start, end))
            self._put(hands, *begin)
            hands.button(button, True)
            try:
                for x, y in _between(begin, goal):
                    hands.move(x, y)
                    time.sleep(_STEP_TIME)
                self._put(hands, *goal)
            finally:
                hands.button(button, False)
            hands.settle()

    # Inside

    def _found(self, hands: Hands, args: tuple[Any, ...], **kw: Any) -> tuple[int, int]:
        return place(self.computer, hands.size(), args, **kw) or hands.position()

    def _to(self, hands: Hands, args: tuple[Any, ...], **kw: Any) -> tuple[int, int]:
        x, y = self._found(hands, args, **kw)
        if (x, y) != hands.position():
            self._put(hands, x, y)
        return x, y

    def _put(self, hands: Hands, x: int, y: int) -> None:
        """Move, and make sure of it: somebody may be moving the mouse as well."""
        for _ in range(2):
            hands.move(x, y)
            if hands.position() == (x, y):
                return
        raise PointerElsewhere(
            f"The pointer is at {hands.position()} and not at {(x, y)}: somebody else moves it, or a program holds it."
        )

    def _terminate(self) -> None:
        let_go(self.computer)


def _checked(button: str) -> str:
    if button not in BUTTONS:
        raise ValueError(f"There is no mouse button {button!r}; there are {', '.join(BUTTONS)}.")
    return button


def _between(begin: tuple[int, int], goal: tuple[int, int]) -> list[tuple[int, int]]:
    """The places on the way of a drag."""
    far = max(abs(goal[0] - begin[0]), abs(goal[1] - begin[1]))
    steps = min(max(far // _STEP, _STEPS[0]), _STEPS[1])
    across, down = (goal[0] - begin[0]) / steps, (goal[1] - begin[1]) / steps
    return [(round(begin[0] + across * n), round(begin[1] + down * n)) for n in range(1, steps)]
