"""Sending mail through a real SMTP server."""

from __future__ import annotations

import email
import email.policy
import os
from pathlib import Path
from typing import Any

import pytest

from interpreter.computer_api.accounts import (
    AccountError,
    CertificateError,
    LoginRefusedError,
    ServerRefusedError,
    ServerTimeoutError,
    ServerUnreachableError,
)
from interpreter.computer_api.computer import Computer
from interpreter.computer_api.people.mail import Mail
from interpreter.errors import ComputerError, SandboxUnavailableError
from interpreter.sandbox.containment import Containment
from interpreter.sandbox.sandbox import Sandbox
from mail_and_calendar.mail_servers import TOKEN, Certificate, PostOffice, silent_server
from ports import closed_port


def account(port: int, certificate: Certificate, **more: Any) -> dict[str, Any]:
    server = {"smtp": f"localhost:{port}", "certificate": str(certificate.cert)}
    return {**server, "user": "me@example.org", "password_variable": "MAIL_PASSWORD", **more}


@pytest.fixture
def sending(computer: Computer, post_office: PostOffice, certificate: Certificate) -> Computer:
    computer.mail_account = account(post_office.port, certificate)
    return computer


def received_mail(office: PostOffice) -> tuple[list[str], Any]:
    ((to, raw),) = office.mails
    return to, email.message_from_bytes(raw, policy=email.policy.default)


def test_a_mail_arrives_as_it_was_written(sending: Computer, post_office: PostOffice) -> None:
    body = "Liebe Zoë,\n\n✓ 漢\n.\n..\nFrom here on\n" + "x" * 3000
    subject = 'Grüße: «a"b\\c» ✓ ' + "lang " * 40
    told = sending.mail.send("Zoë Müller <zoe@example.org>", subject.strip(), body)
    to, message = received_mail(post_office)
    assert told == "Sent to zoe@example.org." and to == ["zoe@example.org"]
    assert message["Subject"] == subject.strip() and message["From"] == "me@example.org"
    assert message["To"] == "Zoë Müller <zoe@example.org>"
    assert message.get_content().replace("\r\n", "\n").rstrip("\n") == body
    assert message["Date"] and message["Message-ID"].endswith("@example.org>")


def test_a_mail_can_have_several_recipients(sending: Computer, post_office: PostOffice) -> None:
    sending.mail.send(["a@example.org", "b@example.org, c@bücher.example"], "Hi", "Hello")
    assert received_mail(post_office)[0] == ["a@example.org", "b@example.org", "c@xn--bcher-kva.example"]


def test_the_sender_can_have_a_name(computer: Computer, post_office: PostOffice, certificate: Certificate) -> None:
    computer.mail_account = account(post_office.port, certificate, **{"from": "Zoë <zoe@example.org>"})
    computer.mail.send("a@example.org", "Hi", "Hello")
    assert received_mail(post_office)[1]["From"] == "Zoë <zoe@example.org>"


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")  # which here means STARTTLS
def test_smtps_uses_tls_from_the_first_byte(computer: Computer, certificate: Certificate) -> None:
    office = PostOffice(certificate, encrypted=True)
    try:
        computer.mail_account = {**account(0, certificate), "smtp": f"smtps://localhost:{office.port}"}
        computer.mail.send("a@example.org", "Hi", "Hello")
        assert len(office.mails) == 1
    finally:
        office.close()


def test_send_is_marked_as_sending() -> None:
    assert Mail.send.__sends__ is True  # type: ignore[attr-defined]
    assert not hasattr(Mail.get, "__sends__")


# -- attachments -------------------------------------------------------------------------------------------------------


def test_attachments_are_sent(sending: Computer, post_office: PostOffice, tmp_path: Path) -> None:
    (tmp_path / "Übersicht.pdf").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "notes.txt").write_bytes(b"caf\xe9\n")
    sending.mail.send("a@example.org", "Files", "See.", ["Übersicht.pdf", str(tmp_path / "notes.txt")])
    first, second = received_mail(post_office)[1].iter_attachments()
    assert first.get_filename() == "Übersicht.pdf" and first.get_content_type() == "application/pdf"
    assert first.get_content() == bytes(range(256)) * 100
    assert second.get_filename() == "notes.txt" and second.get_content() == b"caf\xe9\n"


def test_unreadable_attachments_are_errors(sending: Computer, post_office: PostOffice, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, words in (("none.txt", "There is no file"), (".", "is a folder"), ("fifo", "not a regular file")):
        with pytest.raises(ComputerError, match=words):
            sending.mail.send("a@example.org", "Files", "See.", path)
    assert post_office.mails == []


def test_files_hidden_by_the_sandbox_cannot_be_attached(
    sending: Computer, post_office: PostOffice, tmp_path: Path, home: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (home / "key").write_text("private")
    (work / "report.txt").write_text("mine")
    (work / "link").symlink_to(home / "key")
    (tmp_path / "beside").write_text("not shown")
    try:
        containment = Containment(Sandbox("workspace", str(work)))
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    sending.context.containment = containment
    sending.context.cwd = str(work)
    for path in ("link", str(home / "key"), "../beside", "/etc/shadow"):
        with pytest.raises(ComputerError, match="the sandbox has no access to it"):
            sending.mail.send("a@example.org", "Files", "See.", path)
    assert post_office.mails == []
    sending.mail.send("a@example.org", "Files", "See.", "report.txt")
    assert len(post_office.mails) == 1


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("Bob", r"get_email_address"),
        ("", "not a mail address"),
        ([], "no recipient"),
        ("a@example.org\nBcc: b@example.org", "not a mail address"),
        ("a@example.org>\r\nRCPT TO:<b@example.org", "not a mail address"),
        ("zoë@example.org", "only ASCII characters"),
    ],
)
def test_an_invalid_address_is_an_error(sending: Computer, post_office: PostOffice, to: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sending.mail.send(to, "Hi", "Hello")
    assert post_office.mails == []


def test_a_subject_cannot_inject_a_header(sending: Computer, post_office: PostOffice) -> None:
    with pytest.raises(ValueError, match="a single line"):
        sending.mail.send("a@example.org", "Hi\nBcc: b@example.org", "Hello")
    assert post_office.mails == []


def test_refused_recipients_are_reported(sending: Computer, post_office: PostOffice) -> None:
    post_office.refused["gone@example.org"] = "550 no such user"
    told = sending.mail.send(["a@example.org", "gone@example.org"], "Hi", "Hello")
    assert told == "Sent to a@example.org. The server refused gone@example.org: 550 no such user."
    with pytest.raises(ServerRefusedError, match=r"nothing was sent\. gone@example.org: 550 no such user"):
        sending.mail.send("gone@example.org", "Hi", "Hello")


def test_a_wrong_password_is_an_error(sending: Computer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "mistaken")
    with pytest.raises(LoginRefusedError, match=r"rejected the login of me@example\.org") as told:
        sending.mail.send("a@example.org", "Hi", "Hello")
    assert "mistaken" not in str(told.value)


def test_an_oauth_token_logs_in(
    computer: Computer, post_office: PostOffice, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = account(post_office.port, certificate, token_variable="MAIL_TOKEN")
    del given["password_variable"]
    computer.mail_account = given
    monkeypatch.setenv("MAIL_TOKEN", TOKEN)
    assert computer.mail.send("a@example.org", "Hi", "Hello") == "Sent to a@example.org."
    monkeypatch.setenv("MAIL_TOKEN", "expired-token")
    with pytest.raises(
        LoginRefusedError, match=r"rejected the login of me@example\.org: 535 .* It may have expired"
    ) as told:
        computer.mail.send("a@example.org", "Hi", "Hello")
    assert "expired-token" not in str(told.value) and len(post_office.mails) == 1
    monkeypatch.delenv("MAIL_TOKEN")
    with pytest.raises(AccountError, match="reads its token from the variable MAIL_TOKEN, which is not set"):
        computer.mail.check_sending()


def test_an_untrusted_certificate_is_refused(
    computer: Computer, post_office: PostOffice, certificate: Certificate
) -> None:
    given = account(post_office.port, certificate)
    del given["certificate"]
    computer.mail_account = given
    with pytest.raises(CertificateError):
        computer.mail.send("a@example.org", "Hi", "Hello")


def test_an_unreachable_server_is_an_error(computer: Computer, certificate: Certificate) -> None:
    with closed_port() as port:
        computer.mail_account = account(port, certificate)
        with pytest.raises(ServerUnreachableError, match="Can't reach"):
            computer.mail.send("a@example.org", "Hi", "Hello")


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_hanging_server_times_out(computer: Computer, certificate: Certificate, scheme: str) -> None:
    with silent_server() as port:
        computer.mail_account = account(0, certificate, smtp=f"{scheme}://localhost:{port}", timeout=0.3)
        with pytest.raises(ServerTimeoutError, match="did not answer within"):
            computer.mail.send("a@example.org", "Hi", "Hello")


def test_offline_sends_only_to_this_machine(sending: Computer, certificate: Certificate) -> None:
    sending.offline = True
    sending.mail.send("a@example.org", "Hi", "Hello")
    sending.mail_account = account(0, certificate, smtp="smtp.example.org")
    with pytest.raises(ServerUnreachableError, match="`offline` is set"):
        sending.mail.send("a@example.org", "Hi", "Hello")
