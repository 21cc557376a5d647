"""From what a call names to a place on the screen: coordinates, an element, a text, a description of an icon."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.display.failures import NotFoundOnScreenError
from interpreter.computer_api.input.errors import AmbiguousTarget

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer

_HOW = "Give a text that is on the screen, an element, or coordinates: click('Save') or click(x=100, y=200)."


def place(
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
    """The pixel that is meant, None where nothing is named. `size` is the screen's."""
    if others:
        raise TypeError(f"A target has no {', '.join(map(repr, others))}. {_HOW}")
    if len(args) == 2 and all(isinstance(value, int | float) for value in args):
        x, y = args
    elif len(args) > 1:
        raise ValueError(f"One target at a time, not {len(args)}. {_HOW}")
    if args == (None,):
        raise ValueError(f"The target is None. {_HOW}")  # what was looked for and not found: no click anywhere
    target = next((value for value in (*args, text, icon) if value is not None), None) if x is None else None
    if x is not None or y is not None:
        target = (x, y)
    if target is None:
        return None
    found = _coordinates(target)
    if found is None:
        return _located(computer, target, screenshot)
    return _within(_pixel(*found, size, screenshot), size)


def _coordinates(target: Any) -> tuple[float, float] | None:
    """A pair, or what carries one and is no element that may have moved since."""
    if isinstance(target, Mapping) and "ref" not in target:
        target = (target.get("x"), target.get("y")) if "x" in target else target.get("coordinates")
        if target is None:
            raise ValueError(f"There is no place in that. {_HOW}")
    if isinstance(target, list | tuple):
        if len(target) == 2 and all(isinstance(value, int | float) for value in target):
            return target[0], target[1]
        raise ValueError(f"{target!r} is no place on the screen. {_HOW}")
    return None


def _pixel(x: float, y: float, size: tuple[int, int], screenshot: Any) -> tuple[float, float]:
    if hasattr(screenshot, "on_screen"):
        mapped: tuple[float, float] = screenshot.on_screen(x, y)
        return mapped
    # As `display.find` tells places: parts of the screen's width and height.
    if isinstance(x, float) and isinstance(y, float) and 0 <= x <= 1 and 0 <= y <= 1:
        return x * (size[0] - 1), y * (size[1] - 1)
    return x, y


def _within(found: tuple[float, float], size: tuple[int, int]) -> tuple[int, int]:
    x, y = round(found[0]), round(found[1])
    if not (0 <= x < size[0] and 0 <= y < size[1]):
        raise ValueError(f"({x}, {y}) is outside of the screen, which is {size[0]} x {size[1]}.")
    return x, y


def _located(computer: Computer, target: Any, screenshot: Any) -> tuple[int, int]:
    matches = computer.display.locate(target, screenshot)
    if not matches:
        raise NotFoundOnScreenError(f"Nothing on the screen is {target!r}. {_nearest(computer, target)}")
    if len(matches) > 1:
        computer.show(computer.display.numbered(matches))
        listed = [f"{number}. {_told(match)}" for number, match in enumerate(matches, 1)]
        raise AmbiguousTarget(
            f"{len(matches)} things on the screen are {target!r}. Say which one by its coordinates:\n"
            + "\n".join(listed)
        )
    return round(matches[0].x), round(matches[0].y)


def _nearest(computer: Computer, target: Any) -> str:
    """What is there instead."""
    look = "Look with computer.display.view(), scroll, or wait for it."
    if not isinstance(target, str):
        return look
    lines = [" ".join(words) for words in computer.display.get_text_as_list_of_lists()]
    texts = dict.fromkeys([element["name"] for element in computer.display.elements() if element["name"]] + lines)
    by_fold = {text.casefold(): text for text in texts}
    near = difflib.get_close_matches(target.casefold(), by_fold, 5, 0.4)
    return (f"The nearest are: {', '.join(repr(by_fold[text]) for text in near)}. " if near else "") + look


def _told(match: Any) -> str:
    what = " ".join(filter(None, [repr(match.text) if match.text else "", match.role]))
    return f"x={round(match.x)}, y={round(match.y)}" + (f" ({what})" if what else "")
