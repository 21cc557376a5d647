"""Live JavaScript sessions in Node."""

from interpreter.languages.javascript.language import JavaScript

__all__ = ["JavaScript"]
