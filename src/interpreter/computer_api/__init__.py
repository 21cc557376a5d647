"""The computer that code runs on: its live runtimes, and the tools that code can call."""

from interpreter.computer_api.computer import Computer

__all__ = ["Computer"]
