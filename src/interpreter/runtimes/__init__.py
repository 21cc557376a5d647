"""Live runtimes: the driver protocol, and one folder per language.

A language's class says everything that other parts know about it (`base.py`); a registry finds the class by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from interpreter.runtimes.base import DISPLAYED, BaseLanguage

__all__ = ["BUILT_IN", "BaseLanguage", "Registry", "built_in_languages", "resolve"]

Language = type[BaseLanguage]


def built_in_languages() -> list[Language]:
    """List the languages that come with the package, most used first: those that the packages in this folder export."""
    from pkgutil import iter_modules

    packages = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__) if module.ispkg]
    exported = [getattr(package, name) for package in packages for name in getattr(package, "__all__", ())]
    classes = [each for each in exported if isinstance(each, type) and issubclass(each, BaseLanguage)]
    return sorted(classes, key=lambda language: (language.order, language.name))


@cache
def _built_in() -> tuple[Language, ...]:
    return (*built_in_languages(), *DISPLAYED)


class Registry:
    """Finds languages by name: those of one session, or by default those that come with the package."""

    def __init__(self, languages: Callable[[], Sequence[Language]] = _built_in) -> None:
        self._languages = languages

    def find(self, name: str) -> Language | None:
        """Find the language with that name or alias, ignoring case."""
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


def resolve(reference: str) -> Any:
    """Resolve a reference such as `package.module:name`."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
