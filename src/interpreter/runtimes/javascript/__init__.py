"""Live JavaScript sessions in Node."""

from interpreter.runtimes.javascript.language import JavaScript

__all__ = ["JavaScript"]
