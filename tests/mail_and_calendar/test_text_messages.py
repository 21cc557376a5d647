"""Text messages, read from a database in the format of macOS."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from interpreter.computer_api.computer import Computer
from interpreter.computer_api.people.sms import SMS
from interpreter.errors import ComputerError

SCHEMA = """
CREATE TABLE handle (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, country TEXT, service TEXT NOT NULL);
CREATE TABLE message (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL, text TEXT, handle_id INTEGER,
    attributedBody BLOB, date INTEGER, is_from_me INTEGER DEFAULT 0, is_read INTEGER DEFAULT 0, cache_roomnames TEXT);
"""
FIRST = int((datetime(2026, 11, 16, 8, tzinfo=UTC) - datetime(2001, 1, 1, tzinfo=UTC)).total_seconds())


def archived(text: str) -> bytes:
    """A text as an archived attributed string, the format of newer versions."""
    raw = text.encode()
    size = bytes([len(raw)]) if len(raw) < 0x80 else b"\x81" + len(raw).to_bytes(2, "little")
    head = b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84\x84\x84\x12NSAttributedString\x00\x84\x84\x08NSObject\x00"
    return head + b"\x85\x92\x84\x84\x84\x08NSString\x01\x94\x84\x01+" + size + raw + b"\x86\x84\x02iI\x01"


@pytest.fixture
def database(home: Path) -> Path:
    path = home / "Library" / "Messages" / "chat.db"
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.executemany(
        "INSERT INTO handle (id, service) VALUES (?, 'iMessage')", [("+15550100",), ("zoe@example.org",)]
    )
    rows = [
        ("Lunch?", None, 1, FIRST * 10**9, 0),
        (None, archived("Grüße ✓ " + "x" * 200), 2, (FIRST + 60) * 10**9, 0),
        ("At noon.", None, 1, (FIRST + 120) * 10**9, 1),
        (None, None, 1, (FIRST + 180) * 10**9, 0),
        (None, b"\x04\x0bstreamtyped NSString", 1, (FIRST + 200) * 10**9, 0),
        ("Old", None, 0, FIRST - 10**6, 0),
    ]
    for number, row in enumerate(rows):
        values = (str(number), *row)
        connection.execute(
            "INSERT INTO message (guid, text, attributedBody, handle_id, date, is_from_me) VALUES (?,?,?,?,?,?)", values
        )
    connection.commit()
    connection.close()
    return path


def test_the_newest_messages_come_first(database: Path, computer: Computer) -> None:
    before = database.read_bytes()
    assert computer.sms.can_access_database() and computer.sms.resolve_database_path() == str(database)
    found = computer.sms.get()
    assert [each["from"] for each in found] == ["me", "zoe@example.org", "+15550100", "unknown"]
    assert [each["text"] for each in found] == ["At noon.", "Grüße ✓ " + "x" * 200, "Lunch?", "Old"]
    assert datetime.fromisoformat(found[2]["date"]) == datetime(2026, 11, 16, 8, tzinfo=UTC)
    assert [each["text"] for each in computer.sms.get(limit=1)] == ["At noon."]
    assert database.read_bytes() == before and os.listdir(database.parent) == ["chat.db"]


def test_messages_are_filtered_by_person_or_text(database: Path, computer: Computer, tmp_path: Path) -> None:
    assert [each["text"] for each in computer.sms.get("(555) 0100")] == []  # too few digits to match
    assert [each["text"] for each in computer.sms.get("+1 555 0100")] == ["At noon.", "Lunch?"]
    assert [each["text"] for each in computer.sms.get(substring="LUNCH")] == ["Lunch?"]
    assert [each["from"] for each in computer.sms.get("Zoe@Example.org")] == ["zoe@example.org"]
    (tmp_path / "all.vcf").write_text("BEGIN:VCARD\nFN:Ann Smith\nTEL:+1 555-0100\nEND:VCARD\n")
    computer.contacts_account = {"path": str(tmp_path / "all.vcf")}
    assert [each["text"] for each in computer.sms.get("Ann", 1)] == ["At noon."]
    with pytest.raises(ComputerError, match="No contact is called 'Bert'"):
        computer.sms.get("Bert")


def test_text_messages_need_macos(computer: Computer, home: Path) -> None:
    assert computer.sms.can_access_database() is False
    with pytest.raises(ComputerError, match="read from the Messages app on macOS"):
        computer.sms.get()
    with pytest.raises(ComputerError, match="Messages is only available on macOS"):
        computer.sms.send("+1 555 0100", "Hello")
    with pytest.raises(ComputerError, match="only available on macOS"):
        computer.sms.prompt_full_disk_access()


def test_an_unreadable_database_is_an_error(computer: Computer, home: Path) -> None:
    path = home / "Library" / "Messages" / "chat.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database, or not to be read")
    with pytest.raises(ComputerError, match="Full Disk Access"):
        computer.sms.get()


def test_a_name_is_not_accepted_as_a_number(computer: Computer) -> None:
    for to in ("Ann", "", "  "):
        with pytest.raises(ValueError, match="get_phone_number"):
            computer.sms.send(to, "Hello")
    assert SMS.send.__sends__ is True  # type: ignore[attr-defined]
