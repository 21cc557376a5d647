"""What code runs on: the computer, its languages, and later what code can call."""

from interpreter.computer_api.computer import Computer

__all__ = ["Computer"]
