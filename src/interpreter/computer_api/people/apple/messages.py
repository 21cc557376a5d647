"""Messages on macOS: sending by script, reading from its database, which is never written to."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from interpreter.computer_api.people.apple.script import has_apple_script, quoted, run
from interpreter.errors import ComputerError

LOOKED_AT = 200_000
SEND = """\
tell application "Messages"
    set theService to 1st account whose service type = iMessage
    send {message} to participant {to} of theService
end tell
return ""
"""
QUERY = f"""\
SELECT message.date, message.is_from_me, handle.id, message.text, message.attributedBody
FROM message LEFT JOIN handle ON handle.ROWID = message.handle_id
ORDER BY message.date DESC LIMIT {LOOKED_AT}
"""
EPOCH = datetime(2001, 1, 1, tzinfo=UTC)
NANOSECONDS = 10**12  # a date above this is not in seconds
DIGITS = 9  # of a number that have to be the same: the rest is how one dials it
PANE = "x-apple.systempreferences:com.apple.preference.security?Privacy_AllFiles"


def send(to: str, message: str) -> None:
    run(SEND.format(message=quoted(message), to=quoted(to)), "Messages")


def newest(path: str, handles: list[str], limit: int, substring: str | None) -> list[dict[str, Any]]:
    """The newest messages with these people, or with anybody, that have a text in them."""
    wanted = {normal(handle) for handle in handles}
    found: list[dict[str, Any]] = []
    with opened(path) as database:
        for when, mine, handle, text, body in database.execute(QUERY):
            if len(found) >= limit:
                break
            words = text or spoken(body)
            if not words or (wanted and normal(handle or "") not in wanted):
                continue
            if substring and substring.casefold() not in words.casefold():
                continue
            found.append({"date": date_of(when), "from": "me" if mine else handle or "unknown", "text": words})
    return found


def is_readable(path: str) -> bool:
    try:
        with opened(path) as database:
            database.execute("SELECT 1 FROM message LIMIT 1").fetchall()
    except ComputerError:
        return False
    return True


@contextmanager
def opened(path: str) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True, timeout=10)) as database:
            yield database
    except sqlite3.Error as error:
        raise ComputerError(f"The messages in {path} cannot be read: {error}") from None


def normal(handle: str) -> str:
    """A number or an address, so that two ways to write it are the same."""
    if "@" in handle:
        return handle.strip().casefold()
    return "".join(sign for sign in handle if sign.isdigit())[-DIGITS:]


def date_of(when: int) -> str:
    seconds = when / 1e9 if when > NANOSECONDS else when
    return (EPOCH + timedelta(seconds=int(seconds))).astimezone().isoformat()


def spoken(body: bytes | None) -> str:
    """The text in an archived attributed string, in which newer versions of macOS keep it."""
    _, found, rest = (body or b"").partition(b"NSString")
    start = rest.find(b"+")  # the sign of a string of bytes; its length is next, in one byte, two or four
    if not found or start < 0 or start + 1 >= len(rest):
        return ""
    size = rest[start + 1]
    width = {0x81: 2, 0x82: 4}.get(size, 0)
    begin = start + 2 + width
    length = int.from_bytes(rest[start + 2 : begin], "little") if width else size
    return rest[begin : begin + length].decode("utf-8", "replace")


def open_settings() -> None:
    if not has_apple_script():
        raise ComputerError("Full Disk Access is a setting of macOS, and this is another system.")
    try:
        subprocess.run(["open", PANE], check=True, capture_output=True, timeout=30)
    except (OSError, subprocess.SubprocessError) as error:
        raise ComputerError(f"The settings of macOS cannot be opened: {error}") from None
