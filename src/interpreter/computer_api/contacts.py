"""`computer.contacts`: the people the user knows, in Contacts on macOS, on a CardDAV server or in vCard files."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from interpreter.computer_api import apple
from interpreter.computer_api.accounts import Account, NotFoundError
from interpreter.computer_api.dav import ADDRESS_BOOKS, collections
from interpreter.computer_api.tool import Tool

KEYS = {"url": str, "path": str}
EXAMPLE = (
    '{"url": "https://dav.example.org", "user": "me", "password_variable": "DAV_PASSWORD"}'
    ' or {"path": "~/contacts.vcf"}'
)
_LINE = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;(?:\"[^\"]*\"|[^:\"])*)?):(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\,;:nN])")


@dataclass
class Card:
    """One person: the name, and numbers and addresses, preferred ones first."""

    name: str = ""
    phones: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([self.name, *self.phones, *self.emails])


class Contacts(Tool):
    """Looks up the people whom the user knows."""

    def get_phone_number(self, name: str) -> str:
        """The phone number of a person; if nobody is called that, the error names who is meant perhaps."""
        return self._only(name, "phone number", "phones")

    def get_email_address(self, name: str) -> str:
        """The mail address of a person; if nobody is called that, the error names who is meant perhaps."""
        return self._only(name, "mail address", "emails")

    def get_full_names_from_first_name(self, first_name: str) -> list[str]:
        """The full names of everybody with this first name."""
        wanted = first_name.strip().casefold()
        return [card.name for card in self._cards(first_name) if card.name.casefold().split()[:1] == [wanted]]

    def search(self, text: str) -> list[dict[str, Any]]:
        """Everybody whose name, number or address has this in it: dicts of name, phones and emails."""
        return [vars(card) for card in self._cards() if text.casefold() in str(card).casefold()]

    def _only(self, name: str, what: str, attribute: str) -> str:
        """The first value of the one person who is meant by this name."""
        everybody, words = self._cards(name), name.casefold().split()
        people = [card for card in everybody if card.name.casefold().split() == words]
        if not people and words:
            people = [card for card in everybody if set(words) <= set(card.name.casefold().split())]
        having = [card for card in people if getattr(card, attribute)]
        if len({card.name for card in having}) == 1:
            return str(getattr(having[0], attribute)[0])
        if having:
            raise NotFoundError(f"Several people may be meant by {name!r}: {names(having)}. Ask with the full name.")
        if people:
            raise NotFoundError(f"{names(people)} is in the contacts, without a {what}.")
        known = {card.name.casefold(): card.name for card in everybody or self._cards()}
        parts = {word: full for lower, full in known.items() for word in lower.split()}
        close = [known[each] for each in get_close_matches(name.casefold(), known, n=3, cutoff=0.5)]
        for word in words:
            close += [parts[each] for each in get_close_matches(word, parts, n=3, cutoff=0.7)]
        hint = f" Close: {', '.join(dict.fromkeys(close))}." if close else ""
        raise NotFoundError(f"Nobody in the contacts is called {name!r}.{hint}")

    def _cards(self, name: str = "") -> list[Card]:
        """The cards; on macOS, only those of people whose name shares a word with this one."""
        account = Account.of(self.computer, "contacts_account", KEYS, "the user's contacts are", EXAMPLE)
        if account is None:
            return [Card(*each) for each in apple.contacts(name)]
        with collections(account, ADDRESS_BOOKS) as books:
            found = [card for book in books for item in book.items() for card in cards(item.text)]
        return sorted((card for card in found if card.name), key=lambda card: card.name.casefold())


def names(people: list[Card]) -> str:
    listed = list(dict.fromkeys(card.name for card in people))
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if len(listed) > 10 else "")


# -- vCard text, of all versions in use -------------------------------------------------------------------------------


def cards(text: str) -> list[Card]:
    """The cards of a text; lines that make no sense are skipped."""
    found: list[Card] = []
    card: list[tuple[str, str, str]] | None = None
    for line in lines(text):
        name, _, value = line
        if name == "BEGIN" and value.upper() == "VCARD":
            card = []
        elif name == "END" and value.upper() == "VCARD" and card is not None:
            found.append(read_card(card))
            card = None
        elif card is not None:
            card.append(line)
    return found


def read_card(card: list[tuple[str, str, str]]) -> Card:
    """A person from name, parameters and value of each line."""
    names = {"FN": "", "N": "", "ORG": ""}
    values: dict[str, list[tuple[int, str]]] = {"TEL": [], "EMAIL": []}
    for name, parameters, value in card:
        if name == "N":
            last, first, *_ = [*re.split(r"(?<!\\);", value), "", ""]
            value = f"{first} {last}"
        text = _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)
        if name in names:
            names[name] = " ".join(text.replace(";", " ").split() if name == "ORG" else text.split())
        elif name in values and (text := text.strip().removeprefix("tel:").removeprefix("mailto:")):
            words = set(re.split(r"[;=,\"]+", parameters.upper()))
            rank = 3 if words & {"FAX", "PAGER"} else 1 if words & {"CELL", "IPHONE", "MOBILE"} else 2
            # Preferred ones come first, then mobiles; faxes come last.
            values[name].append((0 if "PREF" in words else rank, text))
    phones, emails = ([text for _, text in sorted(values[kind], key=lambda pair: pair[0])] for kind in values)
    return Card(names["FN"] or names["N"] or names["ORG"], phones, emails)


def lines(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, parameters and value of each line; a long one continues in the next."""
    unfolded = re.sub(r"\r?\n[ \t]", "", text.replace("\r\n", "\n"))
    # In the oldest version, a = at the end continues a line.
    joined = re.sub(
        r"^([^:\n]*QUOTED-PRINTABLE[^:\n]*:)((?:[^\n]*=\n)+)",
        lambda found: found[1] + found[2].replace("=\n", ""),
        unfolded,
        flags=re.MULTILINE | re.IGNORECASE,
    )
    for line in joined.split("\n"):
        found = _LINE.fullmatch(line.rstrip("\r"))
        if found is None:
            continue
        name, parameters, value = found[1].upper(), found[2], found[3]
        if "QUOTED-PRINTABLE" in parameters.upper():
            charset = re.search(r"CHARSET=\"?([\w-]+)", parameters, re.IGNORECASE)
            try:
                value = quopri.decodestring(value.encode("utf-8")).decode(charset[1] if charset else "utf-8", "replace")
            except LookupError:
                pass  # an unknown character set: the text as it is
        yield name, parameters, value
