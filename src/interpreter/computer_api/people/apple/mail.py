"""Mail on macOS."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

from interpreter.computer_api.people.apple.script import listed, quoted, read_stamp, records, run
from interpreter.computer_api.people.readable import Attachment

NEWEST = """\
set theRecords to ""
tell application "Mail"
    {find}
    set theCount to count of theFound
    if theCount > {number} then set theCount to {number}
    repeat with theIndex from 1 to theCount
        set theMail to item theIndex of theFound
        set theNames to ""
        repeat with theFile in mail attachments of theMail
            set theNames to theNames & (name of theFile) & linefeed
        end repeat
        set thePeople to ""
        repeat with thePerson in to recipients of theMail
            set thePeople to thePeople & (address of thePerson) & linefeed
        end repeat
        set theText to ""
        try
            set theText to content of theMail
        end try
        set theHead to {{id of theMail, sender of theMail, thePeople, subject of theMail}}
        set theRest to {{my ourStamp(date received of theMail), theText, theNames, read status of theMail}}
        set theRecords to theRecords & my ourRecord(theHead & theRest)
    end repeat
end tell
return theRecords
"""
SOME = "set theFound to (messages of inbox whose {condition})"
FIRST = """\
set theLast to count of messages of inbox
    if theLast > {number} then set theLast to {number}
    set theFound to {{}}
    if theLast > 0 then set theFound to messages 1 thru theLast of inbox"""

UNREAD_COUNT = """\
tell application "Mail" to return unread count of inbox
"""

SEND = """\
set theFiles to {{}}
repeat with thePath in {files}
    set end of theFiles to (POSIX file (contents of thePath) as alias)
end repeat
tell application "Mail"
    set theLetter to make new outgoing message with properties {{subject:{subject}, content:{body}, visible:false}}
    tell theLetter
        repeat with theAddress in {to}
            make new to recipient at end of to recipients with properties {{address:(contents of theAddress)}}
        end repeat
        repeat with theFile in theFiles
            set theName to contents of theFile
            tell content to make new attachment with properties {{file name:theName}} at after last paragraph
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
    find = SOME.format(condition=" and ".join(conditions)) if conditions else FIRST.format(number=number)
    return [letter(fields) for fields in records(run(NEWEST.format(find=find, number=number), "Mail"))]


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
    paths = listed(copies(files))
    run(SEND.format(subject=quoted(subject), body=quoted(body), to=listed(to), files=paths, delay=delay), "Mail")


def copies(files: list[Attachment]) -> list[str]:
    """The files as they were when they were looked at; Mail reads them later, when others may be in their place."""
    if not files:
        return []
    folder = tempfile.mkdtemp(prefix="mail-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = [Path(folder, str(number), file.name) for number, file in enumerate(files)]
    for path, file in zip(made, files, strict=True):
        path.parent.mkdir()
        path.write_bytes(file.content)
    return list(map(str, made))
