"""Which keys make which characters on an X display, and spare keys for characters that no key makes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# The state bits that hold the active layout of a keyboard with several.
_GROUP_SHIFT, _GROUP_BITS = 13, 3


@dataclass(frozen=True)
class Stroke:
    """A key, and whether Shift goes with it."""

    code: int
    shift: bool = False


def keysym_of(character: str) -> int:
    """X11's number for a character: Latin-1 as it is, anything else by its Unicode number."""
    number = ord(character)
    return number if 0x20 <= number <= 0x7E or 0xA0 <= number <= 0xFF else 0x01000000 | number


class Keymap:
    """The display's keymap as it is now; characters that it lacks are put on its spare keys."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._first = display.display.info.min_keycode
        self._last = display.display.info.max_keycode
        self._borrowed: dict[int, int] = {}
        self.read()

    def read(self) -> None:
        """Take in the keymap anew: the user may have changed the layout."""
        codes = range(self._first, self._last + 1)
        rows = self._display.get_keyboard_mapping(self._first, len(codes))
        self._rows = {code: list(row) for code, row in zip(codes, rows, strict=False)}
        self._borrowed = {sym: code for sym, code in self._borrowed.items() if sym in self._rows[code]}
        for code in self._borrowed.values():
            self._rows[code] = [0] * len(self._rows[code])
        group = self._display.screen().root.query_pointer().mask >> _GROUP_SHIFT & _GROUP_BITS
        self._strokes = self._of_group(group)
        # The highest first: the low ones are likelier to be on a keyboard.
        free = [code for code, row in self._rows.items() if not any(row)][::-1]
        self.room = len(free)
        self._spare = [code for code in free if code not in self._borrowed.values()]

    def _of_group(self, group: int) -> dict[int, Stroke]:
        found: dict[int, Stroke] = {}
        for columns in ([2 * group, 2 * group + 1], [0, 1]):
            for code, row in self._rows.items():
                for level, column in enumerate(columns):
                    keysym = row[column] if column < len(row) else 0
                    if keysym:
                        found.setdefault(keysym, Stroke(code, level == 1))
                        if level == 0 and (column + 1 >= len(row) or not row[column + 1]):
                            # A letter alone on its key: Shift makes it a capital.
                            found.setdefault(_capital(keysym), Stroke(code, True))
        return found

    def stroke(self, keysym: int) -> Stroke | None:
        """How to make a keysym, if a key makes it."""
        if keysym in self._borrowed:
            return Stroke(self._borrowed[keysym])
        return self._strokes.get(keysym)

    def rare(self, keysym: int) -> bool:
        """Whether only a spare key can make it; `room` tells how many of those there are."""
        return keysym not in self._strokes

    def borrow(self, keysyms: Iterable[int]) -> bool:
        """Put those that no key makes on spare keys, if they are not; there must be room for all of them together."""
        wanted = [keysym for keysym in dict.fromkeys(keysyms) if self.rare(keysym)]
        if sum(keysym not in self._borrowed for keysym in wanted) > len(self._spare):
            self.give_back()
        new = [keysym for keysym in wanted if keysym not in self._borrowed]
        for keysym in new:
            code = self._borrowed[keysym] = self._spare.pop(0)
            # The same on every level and layout, so that no modifier changes it.
            self._display.change_keyboard_mapping(code, [[keysym] * len(self._rows[code])])
        self._display.sync()
        return bool(new)

    def give_back(self) -> None:
        """Leave the spare keys as they were."""
        for code in self._borrowed.values():
            self._display.change_keyboard_mapping(code, [self._rows[code]])
            self._spare.append(code)
        self._borrowed.clear()
        self._display.sync()


def _capital(keysym: int) -> int:
    character = chr(keysym & 0xFFFFFF)
    capital = character.upper()
    return keysym_of(capital) if len(capital) == 1 else keysym
