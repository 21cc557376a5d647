"""Code that would send something asks the user first, even if all other code runs without approval."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_replies import text, tool_call
from model_server import ModelServer
from terminal.person import CTRL_C, someone

CODE = (
    "try:\n    computer.mail.send('ann@example.com', 'Lunch', 'At one?\\nBy the lake.')\n"
    "except PermissionError as error:\n    print('Not sent' + ':', error)"
)

ACCOUNT = """\
computer:
  mail_account: {smtp: smtp.example.org, user: me@example.org, password_variable: MAIL_PASSWORD}
"""


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A profile with an account: without one, there would be no question."""
    monkeypatch.setenv("MAIL_PASSWORD", "word")
    (tmp_path / "account.yaml").write_text(ACCOUNT)
    return str(tmp_path / "account.yaml")


def test_declining_sends_nothing_and_raises_an_error_in_the_code(profile: str) -> None:
    with (
        ModelServer([tool_call("python", CODE), text("I see.")]) as server,
        someone("-y", "-p", profile, server=server) as person,
    ):
        person.says("write to Ann")
        person.sees("to: 'ann@example.com'")
        person.answers("Send it? (y/n)", "n")
        person.sees("Not sent: computer.mail.send sent nothing: the user said no.")
        person.sees("I see.")
        assert "subject: 'Lunch'" in person.screen
        assert r"body: 'At one?\nBy the lake.'" in person.screen
        assert person.leaves() == 0


def test_ctrl_c_instead_of_an_answer_ends_the_turn(profile: str) -> None:
    with (
        ModelServer([tool_call("python", CODE), text("Next.")]) as server,
        someone("-y", "-p", profile, server=server) as person,
    ):
        person.says("write to Ann")
        person.sees("Send it? (y/n)")
        person.types(CTRL_C)
        person.sees("Interrupted")
        person.says("another thing")
        person.sees("Next.")
        assert len(server.requests) == 2
        assert "another thing" in str(server.requests[1])
        assert person.leaves() == 0
