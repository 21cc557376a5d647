"""A web browser that code can use: pages as text, elements to click and fill, files up and down."""

from interpreter.computer_api.browser.boundary import (
    BrowserError,
    BrowserMissingError,
    BrowserTimeoutError,
    ElementError,
    NotReachableError,
)
from interpreter.computer_api.browser.browser import Browser

__all__ = [
    "Browser",
    "BrowserError",
    "BrowserMissingError",
    "BrowserTimeoutError",
    "ElementError",
    "NotReachableError",
]
