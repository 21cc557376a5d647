"""Accounts as settings: from a profile or Python, validated, and without passwords."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api.accounts import AccountError, ServerUnreachableError
from interpreter.config.setting import apply
from interpreter.errors import SettingTypeError

VCARD = "BEGIN:VCARD\nFN:Ann\nTEL:1\nEND:VCARD\n"


def test_a_profile_can_set_an_account(tmp_path: Path) -> None:
    (tmp_path / "all.vcf").write_text(VCARD)
    interpreter = OpenInterpreter()
    apply(interpreter, {"computer": {"contacts_account": {"path": str(tmp_path / "all.vcf")}}})
    assert interpreter.computer.contacts.get_phone_number("Ann") == "1"
    apply(interpreter, {"computer.contacts_account": None})
    assert interpreter.computer.contacts_account is None


def test_an_account_must_be_a_dict() -> None:
    with pytest.raises(SettingTypeError, match=r"computer\.mail_account takes dict or None, not 'imap"):
        OpenInterpreter().computer.mail_account = "imap.example.org"


def test_an_account_with_a_password_is_refused() -> None:
    interpreter = OpenInterpreter()
    interpreter.computer.mail_account = {"imap": "localhost", "user": "me", "password": "s3cret"}
    with pytest.raises(AccountError, match="password_variable") as told:
        interpreter.computer.mail.get()
    assert "s3cret" not in str(told.value)


def test_offline_applies_to_accounts_too() -> None:
    interpreter = OpenInterpreter(offline=True)
    interpreter.computer.calendar_account = {"url": "https://dav.example.org"}
    with pytest.raises(ServerUnreachableError, match="`offline` is set"):
        interpreter.computer.calendar.get_events()
