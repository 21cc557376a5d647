"""Live runtimes: the driver protocol, and the languages that every session needs.

A language's class says everything that other parts know about it (`base.py`); a registry finds the class by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from interpreter.leaves import exists
from interpreter.leaves import load as resolve
from interpreter.runtimes.base import DISPLAYED, BaseLanguage
from interpreter.runtimes.built_in import ROWS

__all__ = ["BUILT_IN", "BaseLanguage", "Registry", "built_in_languages", "resolve"]

Language = type[BaseLanguage]


def built_in_languages() -> list[Language]:
    return [row for row in ROWS if exists(row.implementation)]


def _built_in() -> tuple[Language, ...]:
    return (*ROWS, *DISPLAYED)


class Registry:
    """Finds languages by name: those of one session, or by default those that come with the package."""

    def __init__(self, languages: Callable[[], Sequence[Language]] = _built_in) -> None:
        self._languages = languages

    def find(self, name: str) -> Language | None:
        wanted = name.strip().lower()
        for language in self._languages():
            if any(wanted == known.lower() for known in (language.name, *language.aliases)):
                return language
        return None

    def describe(self, name: str) -> Language:
        """Find a language. If the session does not have it, return the package's class or one with the defaults."""
        language = self.find(name) or BUILT_IN.find(name)
        return language or type("Unknown", (BaseLanguage,), {"name": name.strip()})

    def canonical(self, name: str) -> str:
        """Return one name for each language, in lower case."""
        return self.describe(name).name.lower()


BUILT_IN = Registry()
