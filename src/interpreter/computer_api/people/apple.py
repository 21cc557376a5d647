"""Mail, Calendar, Contacts and Messages on macOS, spoken to in AppleScript.

Values go into a script only as quoted strings and numbers, and records come back as text with separators.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from interpreter.computer_api.accounts import NotFoundError, NotPermittedError, ServerTimeoutError
from interpreter.errors import ComputerError
from interpreter.host import processes

TIMEOUT = 120
FIELD, RECORD = "\x1f", "\x1e"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
NOT_PERMITTED = ("-1743", "-10004")
NO_ANSWER = "-1712"

# Handlers for every script: a record of texts without our separators, and dates as numbers, which mean the same in
# every system language. The prefixes distinguish our names from the vocabularies of AppleScript and applications.
HANDLERS = """\
on ourText(theValue)
    if theValue is missing value then return ""
    set theOld to AppleScript's text item delimiters
    set AppleScript's text item delimiters to {character id 30, character id 31}
    set theItems to text items of (theValue as text)
    set AppleScript's text item delimiters to " "
    set theResult to theItems as text
    set AppleScript's text item delimiters to theOld
    return theResult
end ourText

on ourRecord(theFields)
    set theResult to ""
    repeat with theField in theFields
        set theResult to theResult & my ourText(contents of theField) & (character id 31)
    end repeat
    return theResult & (character id 30)
end ourRecord

on ourStamp(theDate)
    if theDate is missing value then return ""
    set theResult to ((year of theDate) as text) & " " & ((month of theDate as integer) as text)
    return theResult & " " & ((day of theDate) as text) & " " & ((time of theDate) as text)
end ourStamp

on ourMoment(theYear, theMonth, theDay, theSeconds)
    set theResult to current date
    set day of theResult to 1
    set year of theResult to theYear
    set month of theResult to theMonth
    set day of theResult to theDay
    set time of theResult to theSeconds
    return theResult
end ourMoment

"""


def quoted(value: str) -> str:
    """Write a text as an AppleScript string that nothing in it can end."""
    # Control characters, and lone surrogates.
    if (match := re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", value)) is not None:
        kind = "a control character" if match[0].isascii() else "half a character (a lone surrogate)"
        raise ValueError(f"The text contains {kind}, {match[0]!r}, which can't be passed on.")
    return f'"{value.translate(_ESCAPES)}"'


def listed(values: list[str]) -> str:
    return "{" + ", ".join(map(quoted, values)) + "}"


def moment(when: datetime) -> str:
    """Write a date as an expression, in the local time of this machine."""
    local = when.astimezone()
    seconds = local.hour * 3600 + local.minute * 60 + local.second
    return f"my ourMoment({local.year}, {local.month}, {local.day}, {seconds})"


def parse_timestamp(text: str) -> datetime | None:
    """Parse the output of the handler `ourStamp`."""
    if not text:
        return None
    year, month, day, seconds = (int(float(number)) for number in text.split())
    return (datetime(year, month, day) + timedelta(seconds=seconds)).astimezone()


def program(application: str) -> str:
    """Return the program that runs scripts; ComputerError on another system."""
    path = processes.which("osascript")
    if path is None:
        raise ComputerError(f"{application} is only available on macOS.")
    return path


def run(script: str, application: str) -> str:
    """Run a script that controls an application and return its result."""
    try:
        # On standard input, so that no value is seen in the list of processes.
        done = processes.run([program(application), "-"], stdin=(HANDLERS + script).encode(), timeout=TIMEOUT)
    except TimeoutError:
        raise ServerTimeoutError(f"{application} did not answer within {TIMEOUT} seconds.") from None
    if not done.returncode:
        return done.stdout.decode().removesuffix("\n")
    complaint = done.stderr.decode("utf-8", "replace").strip()
    found = re.search(r"\((-\d+)\)\s*$", complaint)
    code = found[1] if found else ""
    if code in NOT_PERMITTED:
        raise NotPermittedError(
            f"macOS does not let this program control {application}. Allow it in System Settings, Privacy & Security, "
            f"Automation, below the terminal or application that runs it, and try again."
        )
    if code == NO_ANSWER:
        raise ServerTimeoutError(f"{application} did not answer. It may be showing a window that waits for input.")
    raise ComputerError(f"{application} failed: {complaint[-400:] or 'it gave no reason'}")


def records(script: str, application: str) -> list[list[str]]:
    """Run a script that returns records, made with the handler `ourRecord`."""
    return [record.split(FIELD)[:-1] for record in run(script, application).split(RECORD)[:-1]]


# -- Mail --------------------------------------------------------------------------------------------------------------

NEWEST_MAILS = """\
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
FIRST_MAILS = """\
set theLast to count of messages of inbox
    if theLast > {number} then set theLast to {number}
    set theFound to {{}}
    if theLast > 0 then set theFound to messages 1 thru theLast of inbox"""
UNREAD_MAILS = 'tell application "Mail" to return unread count of inbox\n'
SEND_MAIL = """\
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


def newest_mails(number: int, unread: bool, search: str | None) -> list[dict[str, Any]]:
    """Read the newest mails of the inbox, newest first, without marking any as read."""
    conditions = ["read status is false"] if unread else []
    if search:
        conditions.append(f"(subject contains {quoted(search)} or sender contains {quoted(search)})")
    matching = f"set theFound to (messages of inbox whose {' and '.join(conditions)})"
    find = matching if conditions else FIRST_MAILS.format(number=number)
    mails = []
    for fields in records(NEWEST_MAILS.format(find=find, number=number), "Mail"):
        uid, sender, recipients, subject, received, body, names, read = fields
        when = parse_timestamp(received)
        mails.append(
            {
                "id": int(uid),
                "from": sender,
                "to": ", ".join(recipients.split("\n")[:-1]),
                "subject": subject,
                "date": when.isoformat() if when else None,
                "body": body.replace("\r", "\n"),
                "attachments": names.split("\n")[:-1],
                "unread": read == "false",
                "truncated": False,
            }
        )
    return mails


def send_mail(to: list[str], subject: str, body: str, files: Sequence[tuple[str, bytes]], delay: float) -> None:
    """Send a mail through Mail, from its default account, with files of these names and contents."""
    paths = []
    if files:
        # Copies, since Mail reads them later, when the original may have changed.
        folder = tempfile.mkdtemp(prefix="mail-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for number, (name, content) in enumerate(files):
            path = Path(folder, str(number), name)
            path.parent.mkdir()
            path.write_bytes(content)
            paths.append(str(path))
    values = {"subject": quoted(subject), "body": quoted(body), "to": listed(to), "files": listed(paths)}
    run(SEND_MAIL.format(**values, delay=delay), "Mail")


# -- Calendar ----------------------------------------------------------------------------------------------------------

EVENTS = """\
on ourEvent(theEvent, theName)
    tell application "Calendar"
        set theRule to recurrence of theEvent
        if theRule is missing value then set theRule to ""
        set theGaps to ""
        if theRule is not "" then
            repeat with theGap in (excluded dates of theEvent)
                set theGaps to theGaps & my ourStamp(contents of theGap) & linefeed
            end repeat
        end if
        set theStamps to {{my ourStamp(start date of theEvent), my ourStamp(end date of theEvent)}}
        set theWords to {{allday event of theEvent, summary of theEvent, location of theEvent, description of theEvent}}
        return my ourRecord(theStamps & theWords & {{theName, uid of theEvent, theRule, theGaps}})
    end tell
end ourEvent

set theRecords to ""
set theStart to {start}
set theEnd to {end}
tell application "Calendar"
    repeat with theCalendar in {calendars}
        set theName to name of theCalendar
        repeat with theEvent in (every event of theCalendar whose start date < theEnd and end date > theStart)
            set theRecords to theRecords & my ourEvent(contents of theEvent, theName)
        end repeat
        -- What repeats may have begun long ago; its dates are worked out by us.
        set theRules to recurrence of (every event of theCalendar whose end date <= theStart)
        set theUids to uid of (every event of theCalendar whose end date <= theStart)
        repeat with theIndex from 1 to count of theRules
            if item theIndex of theRules is not missing value and item theIndex of theRules is not "" then
                set theUid to item theIndex of theUids
                set theEvent to first event of theCalendar whose uid is theUid
                set theRecords to theRecords & my ourEvent(theEvent, theName)
            end if
        end repeat
    end repeat
end tell
return theRecords
"""

CREATE_EVENT = """\
set theStart to {start}
set theEnd to {end}
tell application "Calendar"
    set theCalendar to {calendar}
    set theDates to {{start date:theStart, end date:theEnd, allday event:{all_day}}}
    set theWords to {{summary:{title}, location:{location}, description:{notes}}}
    tell theCalendar to make new event with properties (theDates & theWords)
    return name of theCalendar
end tell
"""

DELETE_EVENT = """\
set theStart to {start}
set theEnd to {end}
set theTitle to {title}
tell application "Calendar"
    set theFound to {{}}
    repeat with theCalendar in {calendars}
        set theSame to (every event of theCalendar whose summary is theTitle and start date >= theStart)
        repeat with theEvent in theSame
            if start date of theEvent < theEnd then set end of theFound to (contents of theEvent)
        end repeat
    end repeat
    if (count of theFound) is not 1 then return (count of theFound) as text
    set theRule to recurrence of item 1 of theFound
    if theRule is not missing value and theRule is not "" then return "series"
    delete item 1 of theFound
    return "deleted"
end tell
"""
WRITABLE = "first calendar whose writable is true"
FIRST_CALENDAR = f'tell application "Calendar" to return name of {WRITABLE}\n'


def events(start: datetime, end: datetime, calendar: str | None) -> list[list[str]]:
    """Return the events between two times, and every series that began before, as Calendar reports them.

    Each row has begin and end as stamps, "true" for whole days, title, location, notes, calendar and uid, the rule of
    a series, and the stamps of the dates that the series leaves out.
    """
    return records(EVENTS.format(start=moment(start), end=moment(end), calendars=_calendars(calendar)), "Calendar")


def create_event(
    title: str, start: datetime, end: datetime, all_day: bool, location: str, notes: str, calendar: str | None
) -> str:
    """Make an event and return the name of the calendar that it is in."""
    script = CREATE_EVENT.format(
        title=quoted(title),
        location=quoted(location),
        notes=quoted(notes),
        start=moment(start),
        end=moment(end),
        all_day=str(all_day).lower(),
        calendar=f"first calendar whose name is {quoted(calendar)}" if calendar else WRITABLE,
    )
    return run(script, "Calendar")


def delete_event(title: str, start: datetime, end: datetime, calendar: str | None) -> None:
    """Delete the one event with this title that starts between two times."""
    outcome = run(
        DELETE_EVENT.format(start=moment(start), end=moment(end), title=quoted(title), calendars=_calendars(calendar)),
        "Calendar",
    )
    if outcome == "series":
        raise NotFoundError(
            "That event repeats. Delete this one date in the Calendar app, because a script would delete all of them."
        )
    if outcome != "deleted":
        raise NotFoundError(
            f"There are {outcome} events with that name at that time. Give the exact title, time and calendar."
        )


def _calendars(name: str | None) -> str:
    return f"(every calendar whose name is {quoted(name)})" if name else "calendars"


# -- Contacts and Messages ---------------------------------------------------------------------------------------------

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
SEND_MESSAGE = """\
tell application "Messages"
    set theService to 1st account whose service type = iMessage
    send {message} to participant {to} of theService
end tell
return ""
"""


def contacts(name: str) -> list[tuple[str, list[str], list[str]]]:
    """Return name, numbers and mail addresses of people whose name shares a word; of everyone without a name."""
    conditions = " or ".join(f"name contains {quoted(word)}" for word in name.split())
    people = f"(every person whose {conditions})" if conditions else "people"
    return [
        (full, phones.split("\n")[:-1], emails.split("\n")[:-1])
        for full, phones, emails in records(CARDS.format(people=people), "Contacts")
        if full
    ]
