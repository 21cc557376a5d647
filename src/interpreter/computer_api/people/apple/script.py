"""AppleScript: values that stay values, scripts that are run, and records that come back."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import datetime, timedelta

from interpreter.computer_api.people.errors import NotPermittedError, ServerTimeoutError
from interpreter.errors import ComputerError

TIMEOUT = 120
FIELD, RECORD = "\x1f", "\x1e"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CODE = re.compile(r"\((-\d+)\)\s*$")
NOT_PERMITTED = ("-1743", "-10004")
NO_ANSWER = "-1712"

# What every script may use: a record of texts without our separators, and moments in numbers, which mean the same in
# every language of the system. Names begin so that no word of AppleScript or of an application is among them.
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


def has_apple_script() -> bool:
    """Whether this is macOS, as far as it matters here."""
    return shutil.which("osascript") is not None


def quoted(value: str) -> str:
    """A text as an AppleScript string that it cannot leave."""
    if (control := _CONTROL.search(value)) is not None:
        raise ValueError(f"The text has the control character {control[0]!r} in it, which cannot be handed on.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("The text has half a character in it (a lone surrogate), which cannot be handed on.") from None
    return f'"{value.translate(_ESCAPES)}"'


def listed(values: list[str]) -> str:
    return "{" + ", ".join(map(quoted, values)) + "}"


def moment(when: datetime) -> str:
    """A moment as an expression, in the local time of this machine."""
    local = when.astimezone()
    seconds = local.hour * 3600 + local.minute * 60 + local.second
    return f"my ourMoment({local.year}, {local.month}, {local.day}, {seconds})"


def read_stamp(text: str) -> datetime | None:
    """What the handler `ourStamp` wrote."""
    if not text:
        return None
    year, month, day, seconds = (int(float(number)) for number in text.split())
    return (datetime(year, month, day) + timedelta(seconds=seconds)).astimezone()


def program(application: str) -> str:
    """What runs scripts; an error on another system."""
    found = shutil.which("osascript")
    if found is None:
        raise ComputerError(f"{application} is an application of macOS, and this is another system.")
    return found


def run(script: str, application: str) -> str:
    """Run a script that speaks to an application; what it returns, as text."""
    try:
        # On standard input, so that no value is seen in the list of processes.
        done = subprocess.run(
            [program(application), "-"], input=HANDLERS + script, capture_output=True, encoding="utf-8", timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise ServerTimeoutError(f"{application} did not answer within {TIMEOUT} seconds.") from None
    if done.returncode:
        raise failure(application, done.stderr.strip())
    return done.stdout.removesuffix("\n")


def records(text: str) -> list[list[str]]:
    """What a script wrote with a separator behind each field and each record."""
    return [[*record.split(FIELD)[:-1]] for record in text.split(RECORD)[:-1]]


def failure(application: str, said: str) -> ComputerError:
    code = _CODE.search(said)
    if code is not None and code[1] in NOT_PERMITTED:
        return NotPermittedError(
            f"macOS does not let this program control {application}. Allow it in System Settings, Privacy & Security, "
            f"Automation, below the terminal or application that runs it, and try again."
        )
    if code is not None and code[1] == NO_ANSWER:
        return ServerTimeoutError(f"{application} did not answer. Is a window of it waiting for somebody?")
    return ComputerError(f"{application} could not do it: {said[-400:] or 'it did not say why'}")
