"""Python: in a live runtime, or in the caller's own process."""

from interpreter.runtimes.python.language import Python

__all__ = ["Python"]
