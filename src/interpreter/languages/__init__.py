"""Live sessions: the driver protocol, and one folder per language."""

from __future__ import annotations

from interpreter.languages.base import BaseLanguage

__all__ = ["BaseLanguage", "built_in_languages"]


def built_in_languages() -> list[type[BaseLanguage]]:
    """The languages that come with the package, most used first."""
    from interpreter.languages.python.language import Python
    out = [Python]
    try:
        from interpreter.languages.shell.language import Shell
        out.append(Shell)
    except ImportError: pass
    try:
        from interpreter.languages.javascript.language import JavaScript
        out.append(JavaScript)
    except ImportError: pass
    return out
