"""Mail on macOS."""

from __future__ import annotations

from typing import Any

from interpreter.computer_api.people.apple.script import listed, quoted, read_stamp, records, run
from interpreter.computer_api.people.readable import Attachment

NEWEST = """\
set collected to ""
tell application "Mail"
    set found to (messages of inbox{condition})
    set upper to count of found
    if upper > {number} then set upper to {number}
    repeat with i from 1 to upper
        set m to item i of found
        set theNames to ""
        repeat with a in mail attachments of m
            set theNames to theNames & (name of a) & linefeed
        end repeat
        set thePeople to ""
        repeat with r in to recipients of m
            set thePeople to thePeople & (address of r) & linefeed
        end repeat
        set theText to ""
        try
            set theText to content of m
        end try
        set theHead to {{id of m, sender of m, thePeople, subject of m, my stamp(date received of m)}}
        set collected to collected & my joined(theHead & {{theText, theNames, read status of m}})
    end repeat
end tell
return collected
"""

UNREAD_COUNT = """\
tell application "Mail" to return unread count of inbox
"""

SEND = """\
tell application "Mail"
    set theLetter to make new outgoing message with properties {{subject:{subject}, content:{body}, visible:false}}
    tell theLetter
        repeat with a in {to}
            make new to recipient at end of to recipients with properties {{address:(a as text)}}
        end repeat
        repeat with f in {files}
            set theFile to POSIX file (f as text)
            tell content to make new attachment with properties {{file name:theFile}} at after last paragraph
        end repeat
    end tell
    delay {delay}
    send theLetter
end tell
return ""
"""


def newest(number: int, unread: bool, search: str | None) -> list[dict[str, Any]]:
    """The newest mails of the inbox, newest first; nothing is marked as read."""
    conditions = ["read status is false"] if unread else []
    if search:
        conditions.append(f"(subject contains {quoted(search)} or sender contains {quoted(search)})")
    condition = f" whose {' and '.join(conditions)}" if conditions else ""
    return [letter(fields) for fields in records(run(NEWEST.format(condition=condition, number=number), "Mail"))]


def letter(fields: list[str]) -> dict[str, Any]:
    number, sender, people, subject, received, body, names, read = fields
    when = read_stamp(received)
    return {
        "id": int(number),
        "from": sender,
        "to": ", ".join(people.split("\n")[:-1]),
        "subject": subject,
        "date": when.isoformat() if when else None,
        "body": body.replace("\r", "\n"),
        "attachments": names.split("\n")[:-1],
        "unread": read == "false",
        "truncated": False,
    }


def unread_count() -> int:
    return int(run(UNREAD_COUNT, "Mail"))


def send(to: list[str], subject: str, body: str, files: list[Attachment], delay: float) -> None:
    """Have Mail send it, from the account that it takes by default."""
    paths = listed([file.path for file in files])
    run(SEND.format(subject=quoted(subject), body=quoted(body), to=listed(to), files=paths, delay=delay), "Mail")
