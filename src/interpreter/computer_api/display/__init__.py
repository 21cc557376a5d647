"""Seeing the screen: pictures, windows, text, and the elements of programs."""

from interpreter.computer_api.display.display import Display
from interpreter.computer_api.display.finding import Match
from interpreter.computer_api.platforms import MissingPartError, NoDisplayError, NotFoundOnScreenError

__all__ = ["Display", "Match", "MissingPartError", "NoDisplayError", "NotFoundOnScreenError"]
