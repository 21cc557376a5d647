"""Contacts on macOS."""

from __future__ import annotations

from interpreter.computer_api.people.apple.script import quoted, records, run
from interpreter.computer_api.people.vcard import Card

CARDS = """\
set collected to ""
tell application "Contacts"
    repeat with p in {people}
        set thePhones to ""
        repeat with n in phones of p
            set thePhones to thePhones & (value of n) & linefeed
        end repeat
        set theEmails to ""
        repeat with n in emails of p
            set theEmails to theEmails & (value of n) & linefeed
        end repeat
        set collected to collected & my joined({{name of p, thePhones, theEmails}})
    end repeat
end tell
return collected
"""


def cards(name: str) -> list[Card]:
    """Everybody in whose name is a word of this one; without a name, everybody."""
    conditions = " or ".join(f"name contains {quoted(word)}" for word in name.split())
    people = f"(every person whose {conditions})" if conditions else "people"
    return [card(fields) for fields in records(run(CARDS.format(people=people), "Contacts")) if fields[0]]


def card(fields: list[str]) -> Card:
    name, phones, emails = fields
    return Card(name, phones.split("\n")[:-1], emails.split("\n")[:-1])
