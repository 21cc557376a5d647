"""Contacts on macOS."""

from __future__ import annotations

from interpreter.computer_api.people.apple.script import quoted, records, run
from interpreter.computer_api.people.vcard import Card

CARDS = """\
set theRecords to ""
tell application "Contacts"
    repeat with thePerson in {people}
        set thePhones to ""
        repeat with theEntry in phones of thePerson
            set thePhones to thePhones & (value of theEntry) & linefeed
        end repeat
        set theEmails to ""
        repeat with theEntry in emails of thePerson
            set theEmails to theEmails & (value of theEntry) & linefeed
        end repeat
        set theRecords to theRecords & my ourRecord({{name of thePerson, thePhones, theEmails}})
    end repeat
end tell
return theRecords
"""


def cards(name: str) -> list[Card]:
    """Everybody in whose name is a word of this one; without a name, everybody."""
    conditions = " or ".join(f"name contains {quoted(word)}" for word in name.split())
    people = f"(every person whose {conditions})" if conditions else "people"
    return [card(fields) for fields in records(run(CARDS.format(people=people), "Contacts")) if fields[0]]


def card(fields: list[str]) -> Card:
    name, phones, emails = fields
    return Card(name, phones.split("\n")[:-1], emails.split("\n")[:-1])
