"""Environment variables in the values of a profile: `$NAME`, `${NAME}`, `${NAME:-otherwise}`, `$$` for a dollar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<bare>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::-(?P<otherwise>[^}]*))?\})", re.ASCII
)


class UnsetVariable(Exception):
    """A variable that the environment does not have."""


def names_in(text: str) -> Iterator[str]:
    """The variables that a text asks for."""
    for found in _VARIABLE.finditer(text):
        if name := found["bare"] or found["braced"]:
            yield name


def expand(text: str, environ: Mapping[str, str], lenient: bool = False) -> str:
    """The text with its variables filled in; lenient leaves those that are not set as they stand."""

    def fill(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        name = found["bare"] or found["braced"]
        value = environ.get(name) or found["otherwise"]
        if value is None and not lenient:
            raise UnsetVariable(name)
        return found[0] if value is None else value

    return _VARIABLE.sub(fill, text)
