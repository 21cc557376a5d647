"""A web browser that code can use: pages as text, elements to click and fill, files up and down."""

from interpreter.computer_api.browser.browser import Browser
from interpreter.computer_api.browser.errors import (
    BrowserError,
    BrowserMissingError,
    BrowserTimeoutError,
    ElementError,
    NotReachableError,
)

__all__ = [
    "Browser",
    "BrowserError",
    "BrowserMissingError",
    "BrowserTimeoutError",
    "ElementError",
    "NotReachableError",
]
