"""Live sessions: the driver protocol, and one folder per language."""

from __future__ import annotations

from interpreter.languages.base import BaseLanguage

__all__ = ["BaseLanguage", "built_in_languages"]


def built_in_languages() -> list[type[BaseLanguage]]:
    """The languages that come with the package, most used first."""
    from interpreter.languages.javascript.language import JavaScript
    from interpreter.languages.python.language import Python
    from interpreter.languages.shell import Shell

    return [Python, Shell, JavaScript]
