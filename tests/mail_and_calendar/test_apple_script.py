"""AppleScript on macOS: the scripts passed to `osascript` (replaced by a fake program); no value becomes code."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.computer_api.accounts import NotFoundError, NotPermittedError, ServerTimeoutError
from interpreter.computer_api.computer import Computer
from interpreter.computer_api.people.apple import moment, quoted
from interpreter.errors import ComputerError

FIELD, RECORD = "\x1f", "\x1e"
FAKE = """#!{python} -IS
import json, os, sys
given = {{"argv": sys.argv[1:], "script": sys.stdin.buffer.read().decode("utf-8")}}
with open({record!r}, "a", encoding="utf-8") as file:
    file.write(json.dumps(given) + "\\n")
answer = json.load(open({answer!r}, encoding="utf-8"))
sys.stdout.buffer.write((answer["says"] + "\\n").encode("utf-8"))
sys.stderr.write(answer["complains"])
sys.exit(1 if answer["complains"] else 0)
"""
# Text that would be code if it escaped from its string.
HOSTILE = 'x" & (do shell script "touch /tmp/owned") & "\\" \\\\" \r\n-- ¬ ✓ 漢 {0} %s $(id) `id` «class» "'


class Mac:
    """The calls of the fake `osascript`, and its next answer."""

    def __init__(self, folder: Path) -> None:
        self._record, self._answer = folder / "record", folder / "answer"
        self.will_say("")

    def will_say(self, says: str = "", complains: str = "") -> None:
        self._answer.write_text(json.dumps({"says": says, "complains": complains}), "utf-8")

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._record.read_text("utf-8").splitlines()]

    @property
    def script(self) -> str:
        return str(self.calls[-1]["script"])


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mac:
    folder = tmp_path / "bin"
    folder.mkdir()
    values = {"python": sys.executable, "record": str(folder / "record"), "answer": str(folder / "answer")}
    (folder / "osascript").write_text(FAKE.format(**values))
    (folder / "osascript").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return Mac(folder)


def literals(script: str) -> tuple[list[str], str]:
    """The strings in a script as AppleScript reads them, and the code around them."""
    strings, code, at = [], "", 0
    while at < len(script):
        if script[at] != '"':
            code += script[at]
            at += 1
            continue
        at, value = at + 1, ""
        while script[at] != '"':
            if script[at] == "\\":
                at += 1
                value += {"n": "\n", "r": "\r", "t": "\t"}.get(script[at], script[at])
            else:
                value += script[at]
            at += 1
        strings.append(value)
        code += "“”"
        at += 1
    return strings, code


texts = st.text(st.characters(blacklist_categories=["Cs", "Cc"]) | st.sampled_from('"\\\n\r\t¬'))


@settings(max_examples=100, deadline=None)
@given(texts, texts)
def test_quoted_text_cannot_escape_from_its_string(one: str, other: str) -> None:
    strings, code = literals(f"set a to {quoted(one)} & {quoted(other)}\nbeep")
    assert strings == [one, other]
    assert code == "set a to “” & “”\nbeep"


@pytest.mark.parametrize("value", ["\0", "a\x1eb", "\x1f", "\x7f", "\ud800"])
def test_text_that_a_script_cannot_contain_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="can't be passed on"):
        quoted(value)


def all_calls(computer: Computer, text: str) -> dict[str, Callable[[], Any]]:
    """Every call that takes text."""
    path = Path(computer.context.cwd, 'a "b" \\ & c.txt')
    path.write_text("x")
    return {
        "search": lambda: computer.mail.get(search=text),
        "send mail": lambda: computer.mail.send("a@example.org", text.replace("\r\n", " "), text, [str(path)]),
        "send message": lambda: computer.sms.send("+1 555 0100", text),
        "events": lambda: computer.calendar.get_events("2026-11-16", calendar=text),
        "create": lambda: computer.calendar.create_event(
            text, "2026-11-16 10:00", "2026-11-16 11:00", text, text, calendar=text
        ),
        "contacts": lambda: computer.contacts.get_full_names_from_first_name(text),
    }


def test_values_do_not_change_the_code_of_a_script(mac: Mac, computer: Computer) -> None:
    for name in all_calls(computer, "x"):
        all_calls(computer, "x" if name != "contacts" else "x " * len(HOSTILE.split()))[name]()
        harmless = literals(mac.script)
        all_calls(computer, HOSTILE)[name]()
        hostile = literals(mac.script)
        assert hostile[1] == harmless[1], name
        assert len(hostile[0]) == len(harmless[0]) and hostile[0] != harmless[0], name
    assert not any("touch" in word for call in mac.calls for word in call["argv"])
    assert {tuple(call["argv"]) for call in mac.calls} == {("-",)}


def test_scripts_are_balanced_and_avoid_reserved_names(mac: Mac, computer: Computer) -> None:
    for call in all_calls(computer, "x").values():
        call()
    computer.mail.get()
    mac.will_say("1")
    computer.mail.unread_count()
    mac.will_say("deleted")
    computer.calendar.delete_event("A", "2026-11-16")
    assert len(mac.calls) == 9
    for each in mac.calls:
        _, code = literals(each["script"])
        opened: list[str] = []
        for line in (line.strip() for line in code.splitlines()):
            first = line.split(" ")[0]
            if line.startswith("end "):
                assert opened.pop() == line.split()[1], line
            elif first == "on":
                opened.append(line.split()[1].partition("(")[0])
            elif first in ("repeat", "try") or (first == "tell" and " to " not in line) or line.endswith(" then"):
                opened.append(first)
        assert opened == []
        names = re.findall(r"(?:^|then )\s*set (\w+) to|repeat with (\w+) |on (\w+)\(", code, re.MULTILINE)
        assert all(re.match(r"the[A-Z]|our[A-Z]", name) for found in names for name in found if name)


def test_mails_are_parsed(mac: Mac, computer: Computer) -> None:
    fields = [
        "7",
        "Zoë <z@example.org>",
        "me@example.org\n",
        'A, "b"',
        "2026 11 16 34200",
        "one\rtwo",
        "a.pdf\nb\n",
        "false",
    ]
    mac.will_say("".join(field + FIELD for field in fields) + RECORD)
    (mail,) = computer.mail.get(3, unread=True)
    assert mail == {
        "id": 7,
        "from": "Zoë <z@example.org>",
        "to": "me@example.org",
        "subject": 'A, "b"',
        "date": datetime(2026, 11, 16, 9, 30).astimezone().isoformat(),
        "body": "one\ntwo",
        "attachments": ["a.pdf", "b"],
        "unread": True,
        "truncated": False,
    }
    assert "whose read status is false" in mac.script and "if theCount > 3" in mac.script
    mac.will_say("12")
    assert computer.mail.unread_count() == 12


def test_a_mail_is_sent_with_attachments(mac: Mac, computer: Computer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert computer.mail.send(["a@example.org", "b@example.org"], "Hi", "Hello", "a.txt").startswith(
        "The Mail app is sending it"
    )
    strings, _ = literals(mac.script)
    assert {"a@example.org", "b@example.org", "Hi", "Hello"} <= set(strings)
    (copy,) = (Path(each) for each in strings if each.endswith("a.txt"))
    assert copy.read_text() == "x" and copy.parent.parent.stat().st_mode & 0o077 == 0
    assert computer.mail.format_path_for_applescript('/a "b"') == 'POSIX file "/a \\"b\\""'
    assert computer.mail.calculate_upload_delay(None) == 0


@pytest.mark.usefixtures("berlin")
def test_events_are_parsed_and_recurring_ones_expanded(mac: Mac, computer: Computer) -> None:
    once = ["2026 10 27 50400", "2026 10 27 54000", "false", "Call", "", "", "Work", "u1", "", ""]
    daily = ["2026 10 20 32400", "2026 10 20 34200", "false", "Standup", "Room", "", "Work", "u2"]
    daily += ["FREQ=WEEKLY;INTERVAL=1", "2026 11 3 32400\n"]
    days = ["2026 10 26 0", "2026 10 28 0", "true", "Trip", "", "", "Home", "u3", "", ""]
    mac.will_say("".join("".join(field + FIELD for field in fields) + RECORD for fields in (once, daily, days)))
    found = computer.calendar.get_events("2026-10-26", "2026-11-10")
    assert [(each["title"], each["start"]) for each in found] == [
        ("Trip", "2026-10-26"),
        ("Standup", "2026-10-27T09:00:00+01:00"),
        ("Call", "2026-10-27T14:00:00+01:00"),
        ("Standup", "2026-11-10T09:00:00+01:00"),
    ]
    assert found[0]["end"] == "2026-10-27" and found[0]["all_day"] and found[1]["repeats"]


@pytest.mark.usefixtures("berlin")
def test_dates_are_passed_as_numbers(mac: Mac, computer: Computer) -> None:
    mac.will_say("Work")
    assert "'Work'" in computer.calendar.create_event("A", "2026-11-16 10:00", "2026-11-16T10:00:00Z")
    assert "my ourMoment(2026, 11, 16, 36000)" in mac.script and "my ourMoment(2026, 11, 16, 39600)" in mac.script
    assert moment(datetime(2026, 7, 1, 8).astimezone()) == "my ourMoment(2026, 7, 1, 28800)"


def test_only_a_single_matching_event_is_deleted(mac: Mac, computer: Computer) -> None:
    mac.will_say("deleted")
    computer.calendar.delete_event("A", "2026-11-16")
    for said, words in (("0", "There are 0 events"), ("2", "There are 2 events"), ("series", "That event repeats")):
        mac.will_say(said)
        with pytest.raises(NotFoundError, match=words):
            computer.calendar.delete_event("A", "2026-11-16")


def test_contacts_are_parsed(mac: Mac, computer: Computer) -> None:
    people = [["Zoë Müller", "+49 1\n+49 2\n", ""], ["Ann Smith", "", "ann@example.org\n"]]
    mac.will_say("".join("".join(field + FIELD for field in fields) + RECORD for fields in people))
    assert computer.contacts.get_phone_number("Zoë Müller") == "+49 1"
    assert computer.contacts.get_email_address("ann smith") == "ann@example.org"
    assert computer.contacts.get_full_names_from_first_name("zoë") == ["Zoë Müller"]


@pytest.mark.parametrize(
    ("complains", "kind", "words"),
    [
        ("execution error: Not authorized to send Apple events to Mail. (-1743)", NotPermittedError, "Automation"),
        ("execution error: Mail hat ein Problem: AppleEvent timed out. (-1712)", ServerTimeoutError, "did not answer"),
        ("execution error: Can’t get account. (-1728)", ComputerError, "Mail failed: .*-1728"),
    ],
)
def test_errors_of_macos_are_explained(
    mac: Mac, computer: Computer, complains: str, kind: type[Exception], words: str
) -> None:
    mac.will_say(complains=complains)
    with pytest.raises(kind, match=words):
        computer.mail.unread_count()


def test_an_account_in_the_settings_takes_precedence(mac: Mac, computer: Computer, tmp_path: Path) -> None:
    (tmp_path / "a.vcf").write_text("BEGIN:VCARD\nFN:Ann\nTEL:1\nEND:VCARD\n")
    computer.contacts_account = {"path": str(tmp_path / "a.vcf")}
    mac.will_say(complains="not called")
    assert computer.contacts.get_phone_number("Ann") == "1"
