"""Notices that a model has begun to say the same thing over and over, while it is still saying it."""

from __future__ import annotations

_EVERY = 200  # characters between two looks, so that the work grows with the text and no faster
_LOOKS_BACK = 4000
_TIMES = 6  # a stretch that comes so often in a row ...
_LEAST = 600  # ... and makes up so many characters is no list or table that somebody wants
_PROBE = 40
_DULL = 3  # stretches of so few characters are rules and rows of zeros, and must be longer


class Repetition:
    """Fed with all that a model says."""

    def __init__(self) -> None:
        self._tail = ""
        self._unseen = 0

    def feed(self, text: str) -> bool:
        """Whether the end of what was said repeats itself."""
        self._tail = (self._tail + text)[-_LOOKS_BACK:] if len(text) < _LOOKS_BACK else text[-_LOOKS_BACK:]
        self._unseen += len(text)
        if self._unseen < _EVERY:
            return False
        self._unseen = 0
        return repeats(self._tail)


def repeats(text: str) -> bool:
    """Whether a text ends in one stretch, again and again."""
    end = text[-_PROBE:]
    before = text.rfind(end, 0, len(text) - 1)
    if before < 0:
        return False
    stretch = len(text) - len(end) - before
    needed = _needed(stretch)
    return len(text) >= needed and text[-needed:-stretch] == text[stretch - needed :]


def _needed(stretch: int) -> int:
    """How long a repetition of such a stretch has to be."""
    return max(_LEAST, _TIMES * stretch) if stretch > _DULL else 2 * _LEAST
