"""What can go wrong with the hands, in words that say what to do."""

from __future__ import annotations

from interpreter.errors import ComputerError


class StoppedByUser(ComputerError):
    """The user took the pointer to a corner of the screen, or pressed the stop key."""

    def __init__(self, how: str = "moved the pointer to a corner of the screen") -> None:
        super().__init__(f"The user {how}: stop, do nothing more on the screen, and ask what they want.")


class AmbiguousTarget(ComputerError, ValueError):
    """Several things on the screen are what was asked for; the message numbers them."""


class UnknownKey(ComputerError, ValueError):
    """A name that no key has."""


class HandsLost(ComputerError):
    """The connection to mouse and keyboard has ended: an interrupt cut it off, or the display is gone."""


class NotTyped(ComputerError):
    """Text or keys that no application can have received."""


class PointerElsewhere(ComputerError):
    """The pointer is not where it was put."""
