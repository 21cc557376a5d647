"""`computer.display`: seeing the screen and finding things on it, on this machine alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from interpreter.computer_api.at_session import called_from_sandbox
from interpreter.computer_api.display.atspi import AccessibilityError, Asking, look
from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.elements import Element, Key
from interpreter.computer_api.display.failures import NotFoundOnScreenError
from interpreter.computer_api.display.finding import Match, equally_good, icon_matches, read_matches, text_on_screen
from interpreter.computer_api.display.ocr import Line, in_reading_order
from interpreter.computer_api.display.outline import as_text, outline
from interpreter.computer_api.display.pictures import LONGEST_NAME, Sight, pixels_of, sight_of
from interpreter.computer_api.display.reading import read
from interpreter.computer_api.display.screens import Window, desktop_box
from interpreter.computer_api.display.seeing import Seeing
from interpreter.computer_api.display.wording import unquoted
from interpreter.computer_api.tool import acts

Result = TypeVar("Result")
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


class Display(Seeing):
    """The screen: pictures of it, the text on it, and the elements that programs tell of."""

    def __init__(self, computer: Any) -> None:
        super().__init__(computer)
        self._refs: dict[str, tuple[Element, Box]] = {}

    # -- finding ---------------------------------------------------------------------------------------------------

    def find(self, description: Any, screenshot: Any = None) -> list[dict[str, Any]]:
        """Where a text, a described element ("Save button") or an icon (a picture of it) is."""
        return [self._relative(match, screenshot) for match in self.locate(description, screenshot)]

    def find_text(self, text: str, screenshot: Any = None) -> list[dict[str, Any]]:
        """Where a text can be read on the screen or in a picture, the best match first."""
        wanted = unquoted(text)[0]
        if screenshot is not None:
            sight = sight_of(self._read(screenshot))
            matches = read_matches(read(sight.pixels), wanted, sight)
        else:
            view = self._view()
            matches = read_matches(view.lines(view.desktop), wanted)
        return [self._relative(match, screenshot) for match in matches]

    def get_text_as_list_of_lists(self, screenshot: Any = None) -> list[list[str]]:
        """The text on the screen or in a picture: lines from top to bottom, each a list of words."""
        return [[word.text for word in line.words] for line in self._lines(screenshot)]

    def locate(self, target: Any, screenshot: Any = None) -> list[Match]:
        """All places that are equally good for a text, a description, an element, or the picture of an icon."""
        return sorted(self._located(target, screenshot), key=lambda match: (match.y, match.x))

    def _located(self, target: Any, screenshot: Any) -> list[Match]:
        if isinstance(target, Match):
            return [target]
        if isinstance(target, dict):
            return [self._element(target)]
        if isinstance(target, str) and target.strip() in self._refs:
            return [self._element({"ref": target.strip()})]
        if not isinstance(target, str) or self._is_image_file(target):
            return icon_matches(self._sight(screenshot), sight_of(self._read(target)))
        if not target.strip():
            raise ValueError("Name what to look for: a text on the screen, an element, or the picture of an icon.")
        if screenshot is not None:
            sight = sight_of(self._read(screenshot))
            return equally_good(read_matches(read(sight.pixels), unquoted(target)[0], sight))
        return text_on_screen(self._view(), target)

    def _is_image_file(self, target: str) -> bool:
        if not target.lower().endswith(_IMAGES):
            return False
        return called_from_sandbox() or os.path.isfile(os.path.expanduser(target))

    def _read(self, picture: Any) -> Any:
        """A picture as it was given; for code in a sandbox, a file is read there and not by us."""
        is_name = isinstance(picture, str) and len(picture) < LONGEST_NAME and not picture.startswith("data:")
        return self.computer.files._bytes(picture) if is_name and called_from_sandbox() else picture

    def _sight(self, screenshot: Any) -> Sight:
        if screenshot is not None:
            return sight_of(self._read(screenshot))
        whole = desktop_box(self._screens)
        return Sight(pixels_of(self._screens.grab(whole)), whole.left, whole.top)

    def _lines(self, screenshot: Any) -> list[Line]:
        if screenshot is not None:
            return in_reading_order(read(sight_of(self._read(screenshot)).pixels))
        view = self._view()
        return view.lines(view.desktop)

    def _relative(self, match: Match, screenshot: Any) -> dict[str, Any]:
        """A match with its place as parts of the picture's size, as 0.4.3 had it; of the desktop's if there is none."""
        if screenshot is not None:
            sight = sight_of(self._read(screenshot))
            high, wide = sight.pixels.shape[:2]
            whole = sight.on_screen(Box(0, 0, wide, high))
        else:
            whole = desktop_box(self._screens)
        relative = ((match.x - whole.left) / max(1, whole.width), (match.y - whole.top) / max(1, whole.height))
        return {"coordinates": relative, **match.told()}

    # -- elements --------------------------------------------------------------------------------------------------

    def elements(self, window: str | int | None = None, limit: int = 200) -> list[dict[str, Any]]:
        """The elements of the active window (or another): ref, role, name, value, states, x, y, box of each."""
        return self._outline(window, limit)[0]

    def summary(self, window: str | int | None = None, limit: int = 80, read: bool = True) -> str:
        """The elements of the active window in words, or (`read`) the text on it where the program tells of none."""
        told, left, found = self._outline(window, limit)
        title = found.title if found else ""
        if told or not read:
            return as_text(told, title, left)
        view = self._view()
        lines = view.lines(found.box.within(view.desktop) if found else view.desktop)[:limit]
        texts = [f'text "{line.text}" at {line.box.center[0]},{line.box.center[1]}' for line in lines]
        return "\n".join([f"Window: {title}", *texts] if title else texts)

    def get_text(self, element: Any) -> str:
        """What is written in an element that elements() or find() gave."""
        key = self._key(element)
        return _asked(lambda asking: asking.text(key))

    @acts
    def set_text(self, element: Any, text: str) -> bool:
        """Write a text into an element, instead of what is there; whether the program took it."""
        key = self._key(element)
        return _asked(lambda asking: asking.write(key, text))

    @acts
    def activate(self, element: Any, action: str | None = None) -> bool:
        """Have an element do its action (its first, such as click or press, or the one named) without the mouse."""
        key = self._key(element)
        return _asked(lambda asking: asking.act(key, action))

    def _outline(self, window: str | int | None, limit: int) -> tuple[list[dict[str, Any]], int, Window | None]:
        view = self._view()
        found = self._window(window) if window is not None else view.active
        placed, left = outline(view, found, limit)
        self._refs = {f"e{number}": each for number, each in enumerate(placed, 1)}
        return [replace(element, box=box).told(ref) for ref, (element, box) in self._refs.items()], left, found

    def _element(self, told: dict[str, Any]) -> Match:
        """The element where it is now; where it was, if the program cannot be asked."""
        known = self._refs.get(str(told.get("ref")))
        if known is None:
            if {"x", "y"} <= told.keys():
                box = Box(*told["box"]) if told.get("box") else Box(int(told["x"]), int(told["y"]), 1, 1)
                text, role = told.get("name") or told.get("text") or "", told.get("role", "")
                return Match(int(told["x"]), int(told["y"]), box, text, "accessibility", role)
            raise NotFoundOnScreenError(f"There is no element {told!r}: call elements() anew and take one from there.")
        element, box = known
        try:
            box = look(lambda asking: asking.box(element.key)) or box
        except AccessibilityError:
            pass
        return Match.at(box, element.name, "accessibility", element.role, 1.0, element.key)

    def _key(self, element: Any) -> Key:
        ref = element.get("ref") if isinstance(element, dict) else element
        if isinstance(element, Match) and element.key is not None:
            return element.key
        if isinstance(ref, str) and ref in self._refs:
            return self._refs[ref][0].key
        if isinstance(element, str):
            found = [match for match in self.locate(element) if match.key is not None]
            if len(found) == 1 and found[0].key is not None:
                return found[0].key
        raise NotFoundOnScreenError(f"{element!r} is not one element: call elements() and take its ref from there.")


def _asked(question: Callable[[Asking], Coroutine[Any, Any, Result]]) -> Result:
    try:
        return look(question)
    except AccessibilityError as error:
        raise NotFoundOnScreenError(f"{error} Use the mouse and the keyboard instead.") from error
