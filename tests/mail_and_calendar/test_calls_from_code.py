"""Code in a block reads mail and calendars, and sends after an approval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from call_answers import allowing_calls
from interpreter import OpenInterpreter
from mail_and_calendar.mail_servers import Certificate, PostOffice
from sampling import some

SEND = 'print(computer.mail.send("zoe@example.org", "Hi ✓", "The whole text.", attachments=["note.txt"]))'


@pytest.fixture
def interpreter(
    post_office: PostOffice, certificate: Certificate, password: str, tmp_path: Path
) -> Iterator[OpenInterpreter]:
    made = OpenInterpreter(auto_run=True, workspace=str(tmp_path))
    made.computer.context.cwd = str(tmp_path)
    (tmp_path / "note.txt").write_text("a note")
    made.computer.mail_account = {
        "smtp": f"localhost:{post_office.port}",
        "user": "me@example.org",
        "password_variable": "MAIL_PASSWORD",
        "certificate": str(certificate.cert),
    }
    made.computer.calendar_account = {"path": str(tmp_path)}
    yield made
    made.computer.terminate()


def printed(interpreter: OpenInterpreter, code: str) -> str:
    return "".join(
        str(each["content"]) for each in interpreter.computer.run("python", code) if each["type"] == "console"
    )


def test_every_mail_asks_and_shows_its_full_content(interpreter: OpenInterpreter, post_office: PostOffice) -> None:
    questions: list[str] = []
    answers = iter([False, True, False])

    def allow(words: str) -> bool:
        questions.append(words)
        return next(answers)

    with allowing_calls(interpreter, allow):
        assert "PermissionError" in printed(interpreter, SEND) and post_office.mails == []
        assert "Sent to zoe@example.org." in printed(interpreter, SEND) and len(post_office.mails) == 1
        assert "PermissionError" in printed(interpreter, SEND) and len(post_office.mails) == 1
    assert len(questions) == 3
    for words in ("zoe@example.org", "Hi ✓", "The whole text.", "note.txt"):
        assert words in questions[0]


def test_unattended_sending_is_refused(interpreter: OpenInterpreter, post_office: PostOffice) -> None:
    assert "PermissionError" in printed(interpreter, SEND) and post_office.mails == []


@pytest.mark.parametrize(
    ("code", "account", "words"),
    some(
        2,
        [
            ("mail.send('a@b.org', 'Hi', 'x')", None, "interpreter.computer.mail_account ="),
            (
                "mail.send('a@b.org', 'Hi', 'x')",
                {"imap": "localhost", "user": "me"},
                'computer.mail_account needs "smtp"',
            ),
            ("mail.send('a@b.org', 'Hi', 'x')", {"smtp": "localhost", "user": "me"}, 'needs "password_variable"'),
            ("calendar.create_event('A', '2026-11-16', '2026-11-16')", None, "interpreter.computer.calendar_account ="),
            ("calendar.delete_event('A', '2026-11-16')", {"path": "/nowhere"}, "which does not exist"),
            ("calendar.delete_event('A', '2026-11-16')", {"user": "me"}, 'computer.calendar_account needs "url"'),
            ("sms.send('+15550100', 'Hi')", None, "Messages is only available on macOS"),
        ],
    ),
)
def test_without_an_account_the_error_names_the_setting_without_asking(
    interpreter: OpenInterpreter, code: str, account: dict[str, str] | None, words: str
) -> None:
    questions: list[str] = []
    interpreter.computer.mail_account = interpreter.computer.calendar_account = account
    with allowing_calls(interpreter, lambda words: bool(questions.append(words))):
        assert words in printed(interpreter, f"computer.{code}") and questions == []


def test_python_dates_are_accepted(interpreter: OpenInterpreter) -> None:
    code = """
from datetime import date, datetime
computer.calendar.create_event("Lunch", datetime(2026, 11, 16, 12), datetime(2026, 11, 16, 13))
for event in computer.calendar.get_events(date(2026, 11, 16)):
    print(event["title"], event["start"][:16])
try:
    computer.calendar.get_events("someday")
except ValueError as error:
    print(error)
"""
    with allowing_calls(interpreter, lambda words: True):
        text = printed(interpreter, code)
    assert "Lunch 2026-11-16T12:00\n" in text and "'someday' is not a date" in text
