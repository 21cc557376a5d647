"""Seeing the screen: pictures, windows, text, and the elements of programs."""

from interpreter.computer_api.screen.display.display import Display
from interpreter.computer_api.screen.display.finding import Match
from interpreter.computer_api.screen.platforms import MissingPartError, NoDisplayError, NotFoundOnScreenError

__all__ = ["Display", "Match", "MissingPartError", "NoDisplayError", "NotFoundOnScreenError"]
