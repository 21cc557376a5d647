"""`computer.contacts`: the people the user knows, in Contacts on macOS, on a CardDAV server or in vCard files."""

from __future__ import annotations

import quopri
import re
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from interpreter.computer_api.accounts import Account, NotFoundError
from interpreter.computer_api.people import apple
from interpreter.computer_api.people.dav import ADDRESS_BOOKS, collections
from interpreter.computer_api.tool import ComputerTool

_CARD = re.compile(r"^BEGIN:VCARD\r*((?:\n(?!BEGIN:VCARD\r*$).*)*?)\nEND:VCARD\r*$", re.MULTILINE | re.IGNORECASE)
_LINE = re.compile(r"^(?:[\w-]+\.)?([\w-]+)((?:;(?:\"[^\"\n]*\"|[^:\"\n])*)?):(.*)$", re.MULTILINE)
_ESCAPED = re.compile(r"\\([\\,;:nN])")


@dataclass
class Card:
    """One person: the name, and numbers and addresses, preferred ones first."""

    name: str = ""
    phones: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)


class Contacts(ComputerTool):
    """Looks up the people whom the user knows."""

    def get_phone_number(self, name: str) -> str:
        """Return the phone number of a person; if there is no match, the error suggests similar names."""
        return self._only(name, "phone number", "phones")

    def get_email_address(self, name: str) -> str:
        """Return the mail address of a person; if there is no match, the error suggests similar names."""
        return self._only(name, "mail address", "emails")

    def get_full_names_from_first_name(self, first_name: str) -> list[str]:
        """Return the full names of all contacts with this first name."""
        wanted = first_name.strip().casefold()
        return [card.name for card in self._cards(first_name) if card.name.casefold().split()[:1] == [wanted]]

    def search(self, text: str) -> list[dict[str, Any]]:
        """Return contacts whose name, number or address contains this: dicts of name, phones and emails."""
        wanted = text.casefold()
        return [
            vars(card)
            for card in self._cards()
            if any(wanted in each.casefold() for each in (card.name, *card.phones, *card.emails))
        ]

    def _only(self, name: str, what: str, attribute: str) -> str:
        """Return the first value of the one person that this name matches."""
        everybody, name_parts = self._cards(name), name.casefold().split()
        people = [card for card in everybody if card.name.casefold().split() == name_parts]
        if not people and name_parts:
            people = [card for card in everybody if set(name_parts) <= set(card.name.casefold().split())]
        having = [card for card in people if getattr(card, attribute)]
        if len({card.name for card in having}) == 1:
            return str(getattr(having[0], attribute)[0])
        if having:
            raise NotFoundError(f"Several people match {name!r}: {names(having)}. Use the full name.")
        if people:
            raise NotFoundError(f"{names(people)} is in the contacts but has no {what}.")
        known = {card.name.casefold(): card.name for card in everybody or self._cards()}
        parts = {word: full for lower, full in known.items() for word in lower.split()}
        close = [known[each] for each in get_close_matches(name.casefold(), known, n=3, cutoff=0.5)]
        for word in name_parts:
            close += [parts[each] for each in get_close_matches(word, parts, n=3, cutoff=0.7)]
        hint = f" Close: {', '.join(dict.fromkeys(close))}." if close else ""
        raise NotFoundError(f"No contact is called {name!r}.{hint}")

    def _cards(self, name: str = "") -> list[Card]:
        """Return the cards; on macOS, only those of people whose name shares a word with this one."""
        account = Account.of(self.computer, "contacts_account")
        if account is None:
            return [Card(*each) for each in apple.contacts(name)]
        with collections(account, ADDRESS_BOOKS) as books:
            all_cards = [card for book in books for item in book.items() for card in cards(item.text)]
        return sorted((card for card in all_cards if card.name), key=lambda card: card.name.casefold())


def names(people: list[Card]) -> str:
    listed = list(dict.fromkeys(card.name for card in people))
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if len(listed) > 10 else "")


# -- vCard text, of all versions in use -------------------------------------------------------------------------------


def cards(text: str) -> list[Card]:
    """Parse the cards of a text; lines that make no sense are skipped."""
    unfolded = re.sub(r"\r?\n[ \t]", "", text.replace("\r\n", "\n"))  # a long line continues in the next
    # In the oldest version, a = at the end continues a line.
    joined = re.sub(
        r"^([^:\n]*QUOTED-PRINTABLE[^:\n]*:)((?:[^\n]*=\n)+)",
        lambda match: match[1] + match[2].replace("=\n", ""),
        unfolded,
        flags=re.MULTILINE | re.IGNORECASE,
    )
    return [read_card(card) for card in _CARD.findall(joined)]


def read_card(card: str) -> Card:
    names = {"FN": "", "N": "", "ORG": ""}
    values: dict[str, list[tuple[int, str]]] = {"TEL": [], "EMAIL": []}
    for line in _LINE.finditer(card):
        name, parameters, value = line[1].upper(), line[2], line[3]
        if "QUOTED-PRINTABLE" in parameters.upper():
            charset = re.search(r"CHARSET=\"?([\w-]+)", parameters, re.IGNORECASE)
            with suppress(LookupError):  # an unknown character set: the text as it is
                value = quopri.decodestring(value.encode("utf-8")).decode(charset[1] if charset else "utf-8", "replace")
        if name == "N":
            last, first, *_ = [*re.split(r"(?<!\\);", value), "", ""]
            value = f"{first} {last}"
        text = _ESCAPED.sub(lambda escape: "\n" if escape[1] in "nN" else escape[1], value)
        if name in names:
            names[name] = " ".join(text.replace(";", " ").split() if name == "ORG" else text.split())
        elif name in values and (text := text.strip().removeprefix("tel:").removeprefix("mailto:")):
            types = set(re.split(r"[;=,\"]+", parameters.upper()))
            rank = 3 if types & {"FAX", "PAGER"} else 1 if types & {"CELL", "IPHONE", "MOBILE"} else 2
            # Preferred ones come first, then mobiles; faxes come last.
            values[name].append((0 if "PREF" in types else rank, text))
    phones, emails = ([text for _, text in sorted(values[kind], key=lambda pair: pair[0])] for kind in values)
    return Card(names["FN"] or names["N"] or names["ORG"], phones, emails)
