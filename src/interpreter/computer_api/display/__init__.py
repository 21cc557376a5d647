"""Seeing the screen: pictures, windows, text, and what programs tell of their windows."""

from interpreter.computer_api.display.display import Display
from interpreter.computer_api.display.failures import MissingPartError, NoDisplayError, NotFoundOnScreenError
from interpreter.computer_api.display.finding import Match

__all__ = ["Display", "Match", "MissingPartError", "NoDisplayError", "NotFoundOnScreenError"]
