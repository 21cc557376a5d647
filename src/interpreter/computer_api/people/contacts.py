"""`computer.contacts`: the people whom the user knows."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from interpreter.computer_api.people.account import Account, not_configured
from interpreter.computer_api.people.apple import contacts as apple_contacts
from interpreter.computer_api.people.apple.script import has_apple_script
from interpreter.computer_api.people.collection import local_collections
from interpreter.computer_api.people.dav import ADDRESS_BOOKS, remote_collections
from interpreter.computer_api.people.errors import NotFoundError
from interpreter.computer_api.people.vcard import Card, cards
from interpreter.computer_api.tool import Tool

KEYS = {"url": str, "path": str}
EXAMPLE = (
    '{"url": "https://dav.example.org", "user": "me", "password_variable": "DAV_PASSWORD"}'
    ' or {"path": "~/contacts.vcf"}'
)


class Contacts(Tool):
    """Looks up the people whom the user knows."""

    def get_phone_number(self, name: str) -> str:
        """The phone number of a person; if nobody is called that, the error names who is meant perhaps."""
        return self._only(name, "phone number", lambda card: card.phones)

    def get_email_address(self, name: str) -> str:
        """The mail address of a person; if nobody is called that, the error names who is meant perhaps."""
        return self._only(name, "mail address", lambda card: card.emails)

    def get_full_names_from_first_name(self, first_name: str) -> list[str]:
        """The full names of everybody with this first name."""
        wanted = first_name.strip().casefold()
        return [card.name for card in self._cards(first_name) if card.name.casefold().split()[:1] == [wanted]]

    def search(self, text: str) -> list[dict[str, Any]]:
        """Everybody whose name, number or address has this in it: dicts of name, phones and emails."""
        wanted = text.casefold()
        found = [card for card in self._cards() if wanted in str(card).casefold()]
        return [card.as_dict() for card in found]

    def _only(self, name: str, what: str, values: Callable[[Card], list[str]]) -> str:
        everybody = self._cards(name)
        people = meant(everybody, name)
        having = [card for card in people if values(card)]
        if len(having) == 1 or len({card.name for card in having}) == 1:
            return values(having[0])[0]
        if having:
            raise NotFoundError(f"Several people may be meant by {name!r}: {names(having)}. Ask with the full name.")
        if people:
            raise NotFoundError(f"{names(people)} is in the contacts, without a {what}.")
        close = near(everybody or self._cards(), name)
        raise NotFoundError(f"Nobody in the contacts is called {name!r}." + (f" Close: {close}." if close else ""))

    def _cards(self, name: str = "") -> list[Card]:
        """The cards; on macOS, of those with a word of the name in theirs."""
        account = Account.of(self.computer, "contacts_account", KEYS)
        if account is None:
            if not has_apple_script():
                raise not_configured("the user's contacts are", "contacts_account", EXAMPLE)
            return apple_contacts.cards(name)
        if account.values.get("path"):
            items = [item for each in local_collections(account, ".vcf") for item in each.items()]
        else:
            with remote_collections(account, ADDRESS_BOOKS) as books:
                items = [item for book in books for item in book.items()]
        found = [card for item in items for card in cards(item.text)]
        return sorted((card for card in found if card.name), key=lambda card: card.name.casefold())


def meant(everybody: list[Card], name: str) -> list[Card]:
    """Those of exactly this name, else those in whose names all its words are."""
    wanted = name.casefold().split()
    same = [card for card in everybody if card.name.casefold().split() == wanted]
    return same or [card for card in everybody if wanted and set(wanted) <= set(card.name.casefold().split())]


def near(everybody: list[Card], name: str) -> str:
    """The names that are written much like this one."""
    known = {card.name.casefold(): card.name for card in everybody}
    words = {word: full for lower, full in known.items() for word in lower.split()}
    close = [known[each] for each in get_close_matches(name.casefold(), known, n=3, cutoff=0.5)]
    for word in name.casefold().split():
        close += [words[each] for each in get_close_matches(word, words, n=3, cutoff=0.7)]
    return ", ".join(dict.fromkeys(close))


def names(people: list[Card]) -> str:
    listed = list(dict.fromkeys(card.name for card in people))
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10} more" if len(listed) > 10 else "")
