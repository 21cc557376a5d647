"""Cards of people in vCard text, of all versions in use."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_LINE = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;(?:\"[^\"]*\"|[^:\"])*)?):(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\,;:nN])")


@dataclass
class Card:
    """One person: the name, and numbers and addresses in the order in which they are preferred."""

    name: str = ""
    phones: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([self.name, *self.phones, *self.emails])

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "phones": self.phones, "emails": self.emails}


def cards(text: str) -> list[Card]:
    """The cards of a text; lines that are none are passed over."""
    found, ranked = [], None
    for name, parameters, value in lines(text):
        if (name, value.upper()) == ("BEGIN", "VCARD"):
            ranked = _Ranked()
        elif (name, value.upper()) == ("END", "VCARD") and ranked is not None:
            found.append(ranked.card())
            ranked = None
        elif ranked is not None:
            ranked.add(name, parameters, value)
    return found


class _Ranked:
    def __init__(self) -> None:
        self.full = self.parts = self.organisation = ""
        self.values: dict[str, list[tuple[int, str]]] = {"TEL": [], "EMAIL": []}

    def add(self, name: str, parameters: str, value: str) -> None:
        if name in self.values and (value := unescaped(value).strip().removeprefix("tel:").removeprefix("mailto:")):
            self.values[name].append((rank(parameters), value))
        elif name == "FN":
            self.full = unescaped(value)
        elif name == "N":
            last, first, *_ = [*re.split(r"(?<!\\);", value), "", ""]
            self.parts = unescaped(f"{first} {last}")
        elif name == "ORG":
            self.organisation = unescaped(value).replace(";", " ")

    def card(self) -> Card:
        name = next((" ".join(each.split()) for each in (self.full, self.parts, self.organisation) if each.strip()), "")
        return Card(name, self._sorted("TEL"), self._sorted("EMAIL"))

    def _sorted(self, kind: str) -> list[str]:
        return [value for _, value in sorted(self.values[kind], key=lambda pair: pair[0])]


def rank(parameters: str) -> int:
    """How far down the list a number belongs: preferred ones first, then mobiles, faxes last."""
    words = set(re.split(r"[;=,\"]+", parameters.upper()))
    if "PREF" in words:
        return 0
    return 3 if words & {"FAX", "PAGER"} else 1 if words & {"CELL", "IPHONE", "MOBILE"} else 2


def lines(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, parameters and value of each line; long ones go on in the next."""
    unfolded = re.sub(r"\r?\n[ \t]", "", text.replace("\r\n", "\n"))
    # The oldest version goes on behind a = at the end.
    joined = re.sub(
        r"^([^:\n]*QUOTED-PRINTABLE[^:\n]*:)((?:[^\n]*=\n)+)",
        lambda found: found[1] + found[2].replace("=\n", ""),
        unfolded,
        flags=re.MULTILINE | re.IGNORECASE,
    )
    for line in joined.split("\n"):
        if (found := _LINE.fullmatch(line.rstrip("\r"))) is not None:
            yield found[1].upper(), found[2], plain(found[2], found[3])


def plain(parameters: str, value: str) -> str:
    if "QUOTED-PRINTABLE" not in parameters.upper():
        return value
    named = re.search(r"CHARSET=\"?([\w-]+)", parameters, re.IGNORECASE)
    try:
        return quopri.decodestring(value.encode("utf-8")).decode(named[1] if named else "utf-8", "replace")
    except LookupError:
        return value


def unescaped(value: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)
