"""What can go wrong with the browser."""

from __future__ import annotations

from interpreter.errors import ComputerError


class BrowserError(ComputerError):
    """The browser could not do what was asked."""


class BrowserMissingError(BrowserError):
    """There is no browser, or nothing to drive it with; the words say how to get it."""


class BrowserTimeoutError(BrowserError):
    """It took longer than a call may take."""


class ElementError(BrowserError):
    """No element of that name, or several, or one that has gone."""


class NotReachableError(BrowserError):
    """An address that the settings keep the browser from."""
