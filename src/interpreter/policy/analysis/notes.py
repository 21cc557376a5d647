"""Where a look writes down what it finds, step by step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from interpreter.policy.analysis.effects import (
    Effect,
    Kind,
    Step,
)
from interpreter.policy.analysis.places import (
    HOLE,
    Places,
    is_secret,
)

_DEEPEST = 5
_LONGEST_TEXT = 500


class Notes:
    """The steps found so far, and the folder that the code is in."""

    def __init__(self, places: Places, language: str = "") -> None:
        self.places = places
        self.language = language
        """The block's own."""
        self.steps: list[Doing] = []
        self.depth = 0
        """How many looks are inside each other: `bash -c "python -c ..."`."""

    @property
    def too_deep(self) -> bool:
        return self.depth >= _DEEPEST

    def step(self, language: str, text: str, line: int, words: Sequence[str] = ()) -> Doing:
        doing = Doing(self.places, language, text, line, words)
        self.steps.append(doing)
        return doing

    def not_known(self, language: str, why: str, line: int, how: str = "") -> None:
        self.step(language, why, line).note("unknown", why, known=False, how=how)


class Doing:
    """A step as it is looked at."""

    def __init__(self, places: Places, language: str, text: str, line: int, words: Sequence[str]) -> None:
        self.places, self.language, self.line = places, language, line
        self.text = text[:_LONGEST_TEXT].replace(HOLE, "*")
        self.words = words
        self.effects: list[Effect] = []
        self.dropped = False
        """True: what it starts is what counts, or it does nothing."""

    def done(self) -> Step:
        words = tuple(word.replace(HOLE, "*") for word in self.words)
        fixed = not any(HOLE in word for word in self.words)
        return Step(self.language, self.text, self.line, words, tuple(dict.fromkeys(self.effects)), fixed)

    def path(self, kind: Kind, text: str, how: str = "") -> None:
        spot = self.places.spot(text)
        if spot is None:
            return
        self.effects.append(Effect(kind, spot.shown, self.line, spot.place, spot.full, spot.known, how))
        if kind == "read" and how != "names" and is_secret(spot.full):
            self.effects.append(Effect("secret", spot.shown, self.line, spot.place, spot.full, spot.known))

    def read(self, *paths: str) -> None:
        for path in paths:
            self.path("read", path)

    def write(self, *paths: str, how: str = "") -> None:
        for path in paths:
            self.path("write", path, how)

    def delete(self, *paths: str, tree: bool = False) -> None:
        for path in paths:
            self.path("delete", path, "tree" if tree else "")

    def program(self, name: str, known: bool = True) -> None:
        self.note("program", name, known=known and HOLE not in name)

    def network(self, address: str, how: str) -> None:
        host = host_of(address)
        self.note("network", host or "network", known=bool(host), how=how)

    def unknown(self, why: str) -> None:
        self.note("unknown", why, known=False)

    def note(self, kind: Kind, what: str, known: bool = True, how: str = "") -> None:
        self.effects.append(Effect(kind, what.replace(HOLE, "*"), self.line, known=known, how=how))


def host_of(address: str) -> str:
    """The host of a URL, of `user@host:path` or of a bare name; empty if the text does not tell it."""
    try:
        if "://" in address:
            host = urlsplit(address).hostname or ""
        else:
            found = re.match(r"(?:[^@/\s]+@)?(\[[0-9a-f:]+\]|[\w.\0-]+)(?=[:/]|$)", address, re.ASCII | re.IGNORECASE)
            host = found[1] if found else ""
    except ValueError:
        return ""
    return "" if HOLE in host or not re.search(r"[.:]|^localhost$|^[\w-]+$", host) else host.lower().rstrip(".")
