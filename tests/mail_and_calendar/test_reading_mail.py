"""Reading mail from a real IMAP server."""

from __future__ import annotations

import imaplib
import ssl
import uuid
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from interpreter.computer_api.accounts import (
    AccountError,
    CertificateError,
    LoginRefusedError,
    NotConfiguredError,
    NotFoundError,
    ServerRefusedError,
    ServerTimeoutError,
    ServerUnreachableError,
)
from interpreter.computer_api.computer import Computer
from interpreter.errors import ComputerError, SandboxUnavailableError
from interpreter.sandbox.containment import Containment
from interpreter.sandbox.sandbox import Sandbox
from mail_and_calendar.mail_servers import TOKEN, Certificate, Dovecot, silent_server
from ports import closed_port


def mail(subject: str, body: str = "Hello.", sender: str = "Ann <ann@example.org>") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, "me@example.org", subject
    message["Date"] = "Mon, 16 Nov 2026 09:30:00 +0100"
    message.set_content(body)
    return message


@pytest.fixture
def user() -> str:
    return f"user{uuid.uuid4().hex[:8]}"


@pytest.fixture
def reading(computer: Computer, dovecot: Dovecot, certificate: Certificate, user: str) -> Computer:
    """A computer with its own mailbox."""
    computer.mail_account = account(dovecot.port, certificate, user)
    return computer


def account(port: int, certificate: Certificate, user: str = "me", **more: Any) -> dict[str, Any]:
    server = {"imap": f"imaps://localhost:{port}", "certificate": str(certificate.cert)}
    return {**server, "user": user, "password_variable": "MAIL_PASSWORD", **more}


def test_the_newest_mails_come_first(reading: Computer, dovecot: Dovecot, user: str) -> None:
    for number in range(7):
        dovecot.deliver(user, mail(f"Number {number}"), seen=number % 2 == 0)
    found = reading.mail.get()
    assert [each["subject"] for each in found] == [f"Number {number}" for number in (6, 5, 4, 3, 2)]
    assert [each["unread"] for each in found] == [False, True, False, True, False]
    newest = found[0]
    assert newest["from"] == "Ann <ann@example.org>" and newest["to"] == "me@example.org"
    assert newest["date"] == "2026-11-16T09:30:00+01:00" and newest["body"] == "Hello."
    assert newest["attachments"] == [] and newest["truncated"] is False


def test_unread_mails_are_counted_and_reading_leaves_them_unread(
    reading: Computer, dovecot: Dovecot, user: str
) -> None:
    for number in range(4):
        dovecot.deliver(user, mail(f"Number {number}"), seen=number < 1)
    assert reading.mail.unread_count() == 3
    assert [each["subject"] for each in reading.mail.get(2, unread=True)] == ["Number 3", "Number 2"]
    assert reading.mail.unread_count() == 3
    assert dovecot.flags(user).count("S") == 1


def test_an_empty_inbox_has_no_mails(reading: Computer) -> None:
    assert reading.mail.get() == [] and reading.mail.get(unread=True) == [] and reading.mail.unread_count() == 0


def test_search_works_in_any_alphabet(reading: Computer, dovecot: Dovecot, user: str) -> None:
    dovecot.deliver(user, mail("Rechnung für März", "42 €"))
    dovecot.deliver(user, mail("Lunch"))
    assert [each["subject"] for each in reading.mail.get(search="März")] == ["Rechnung für März"]
    assert [each["subject"] for each in reading.mail.get(search='"lunch')] == []
    assert [each["subject"] for each in reading.mail.get(search="lunch")] == ["Lunch"]


def test_a_search_cannot_inject_a_command(reading: Computer, dovecot: Dovecot, user: str) -> None:
    dovecot.deliver(user, mail("Stays"))
    assert reading.mail.get(search='x"\r\nA1 DELETE INBOX\r\n') == []
    assert [each["subject"] for each in reading.mail.get()] == ["Stays"]


def test_at_most_fifty_mails_are_returned(reading: Computer, dovecot: Dovecot, user: str) -> None:
    for number in range(53):
        dovecot.deliver(user, mail(f"Number {number}"))
    assert len(reading.mail.get(1000)) == 50
    with pytest.raises(ValueError, match="at least 1"):
        reading.mail.get(0)


def test_other_alphabets_and_folded_headers_are_decoded(reading: Computer, dovecot: Dovecot, user: str) -> None:
    subject = "Grüße aus 東京 ✓ " + "und noch viel mehr Wörter " * 6
    dovecot.deliver(user, mail(subject.strip(), "Zoë é ✓ 漢", "Zoë Müller <zoe@example.org>"))
    raw = b"From: a@b\nSubject: one\n two\n\tthree\nContent-Type: text/plain; charset=iso-8859-1\n\ncaf\xe9\n"
    dovecot.deliver(user, raw)
    folded, encoded = reading.mail.get(2)
    assert encoded["subject"] == subject.strip() and encoded["body"] == "Zoë é ✓ 漢"
    assert encoded["from"] == "Zoë Müller <zoe@example.org>"
    assert folded["subject"] == "one two\tthree" and folded["body"] == "café" and folded["date"] is None


@pytest.mark.parametrize(
    ("kind", "data", "text"),
    [
        ("", "Café, 5 €: “naïve”".encode("cp1252"), "Café, 5 €: “naïve”"),
        ("", b"caf\xe9", "café"),
        ("", "Grüße ✓".encode(), "Grüße ✓"),
        ("", "Grüße ✓".encode()[:-1], "Grüße \ufffd"),  # truncated
        ("text/plain; charset=us-ascii", b"caf\xe9 cr\xe8me", "café crème"),
        ("text/plain; charset=utf-8", b"caf\xe9 cr\xe8me", "café crème"),
        ("text/plain; charset=iso-8859-1", b"5 \x80", "5 €"),
        ("text/plain; charset=koi8-r", "Привет".encode("koi8-r"), "Привет"),
        ("text/plain; charset=no-such-thing", b"caf\xe9", "café"),
        ("text/html", b"<p>caf\xe9</p>", "café"),
    ],
)
def test_undeclared_character_sets_are_guessed(
    reading: Computer, dovecot: Dovecot, user: str, kind: str, data: bytes, text: str
) -> None:
    head = f"Content-Type: {kind}\n".encode() if kind else b""
    dovecot.deliver(user, b"From: a@b\nContent-Transfer-Encoding: 8bit\n" + head + b"\n" + data)
    assert reading.mail.get()[0]["body"] == text


def test_latin_1_headers_are_decoded(reading: Computer, dovecot: Dovecot, user: str) -> None:
    raw = (
        b"From: Zo\xeb M\xfcller <zoe@example.org>\nSubject: Caf\xe9\n cr\xe8me =?utf-8?q?=E2=9C=93?=\n"
        b'Content-Type: application/pdf; name="r\xe9sum\xe9.pdf"\n'
        b'Content-Disposition: attachment; filename="r\xe9sum\xe9.pdf"\n\nx'
    )
    dovecot.deliver(user, raw)
    dovecot.deliver(user, "From: Zoë Müller <zoe@example.org>\nSubject: Grüße ✓\n\nx".encode())
    raw_utf8, latin = reading.mail.get(2)
    assert latin["from"] == raw_utf8["from"] == "Zoë Müller <zoe@example.org>"
    assert latin["subject"] == "Café crème ✓" and raw_utf8["subject"] == "Grüße ✓"
    assert latin["attachments"] == ["résumé.pdf"]


def test_an_html_mail_is_converted_to_text(reading: Computer, dovecot: Dovecot, user: str) -> None:
    message = mail("News")
    html = (
        "<html><head><style>p {}</style></head><body><p>Hello&nbsp;<b>you</b>,</p><script>alert(1)</script>"
        "<ul><li>one<li>two</ul><a href='https://example.org/x'>here</a></body></html>"
    )
    message.set_content(html, subtype="html")
    dovecot.deliver(user, message)
    assert reading.mail.get()[0]["body"].split() == "Hello you, one two here (https://example.org/x)".split()


def test_attachments_are_listed_and_not_part_of_the_body(reading: Computer, dovecot: Dovecot, user: str) -> None:
    message = mail("With files", "See the files.")
    message.add_attachment(b"a,b\n1,2\n", maintype="application", subtype="csv", filename="Übersicht.csv")
    message.add_attachment("not the body", filename="note.txt")
    message.add_attachment(mail("Inner"))
    dovecot.deliver(user, message)
    found = reading.mail.get()[0]
    assert found["body"] == "See the files."
    assert found["attachments"] == ["Übersicht.csv", "note.txt", "unnamed"]


def test_a_huge_mail_is_marked_as_truncated(reading: Computer, dovecot: Dovecot, user: str) -> None:
    message = mail("Huge", "The text comes first.")
    message.add_attachment(bytes(6_000_000), maintype="application", subtype="zip", filename="huge.zip")
    dovecot.deliver(user, message)
    found = reading.mail.get()[0]
    assert found["truncated"] is True and found["body"] == "The text comes first."
    assert found["attachments"] == ["huge.zip"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n\n\n",
        b"From: =?utf-8?q?=FF?= <<<>,,;\nTo: @@\nSubject: =?xx?y?z?=\nDate: 99 Foo 1\n\nbody",
        b"Content-Type: text/plain; charset=no-such-thing\n\n\xff\xfe",
        b"Content-Type: multipart/mixed; boundary=\n\n--\n--\n",
        b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n!!!not base64",
        b"Subject: \xff\xfe raw bytes\n\nbody",
    ],
)
def test_malformed_mails_are_still_returned(reading: Computer, dovecot: Dovecot, user: str, raw: bytes) -> None:
    dovecot.deliver(user, raw)
    (found,) = reading.mail.get()
    assert all(isinstance(found[key], str) for key in ("from", "to", "subject", "body"))


def test_plain_connections_use_starttls(
    computer: Computer, dovecot: Dovecot, certificate: Certificate, user: str
) -> None:
    dovecot.deliver(user, mail("Hello"))
    computer.mail_account = {
        **account(dovecot.port, certificate, user),
        "imap": f"imap://localhost:{dovecot.plain_port}",
    }
    assert computer.mail.get()[0]["subject"] == "Hello"


# -- folders and attachments -----------------------------------------------------------------------------------------


@pytest.fixture
def folders(reading: Computer, dovecot: Dovecot, certificate: Certificate, password: str, user: str) -> list[str]:
    """Folders, each with a mail whose subject is the folder's name."""
    names = ["Archive", "Entwürfe & Ideen", "日本.語", 'a "quoted\\ name']
    wire = ["Archive", "Entw&APw-rfe &- Ideen", "&ZeVnLA-.&ip4-", 'a \\"quoted\\\\ name']
    context = ssl.create_default_context(cafile=str(certificate.cert))
    with imaplib.IMAP4_SSL("localhost", dovecot.port, ssl_context=context) as imap:
        imap.authenticate("PLAIN", lambda _: f"\0{user}\0{password}".encode())
        for name, encoded in zip(names, wire, strict=True):
            assert imap.create(f'"{encoded}"')[0] == "OK"
            assert imap.append(f'"{encoded}"', "", "", mail(name).as_bytes())[0] == "OK"
    return names


def test_folders_can_be_listed_and_selected(reading: Computer, folders: list[str], user: str, dovecot: Dovecot) -> None:
    dovecot.deliver(user, mail("In the inbox"))
    assert sorted(reading.mail.folders()) == sorted(["INBOX", *folders])
    for folder in folders:
        assert [each["subject"] for each in reading.mail.get(folder=folder)] == [folder]
        assert reading.mail.unread_count(folder=folder) == 1
    assert [each["subject"] for each in reading.mail.get(search="inbox", folder="Archive")] == []
    assert reading.mail.unread_count() == 1


@pytest.mark.parametrize("folder", ["Nowhere", 'INBOX" "Archive', ""])
def test_a_missing_folder_lists_the_existing_ones(reading: Computer, folders: list[str], folder: str) -> None:
    with pytest.raises(NotFoundError, match="'Archive'"):
        reading.mail.get(folder=folder)
    with pytest.raises(ServerRefusedError):
        reading.mail.unread_count(folder=folder)


def test_a_folder_name_cannot_inject_a_command(reading: Computer, folders: list[str]) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a folder"):
        reading.mail.get(folder='INBOX"\r\nA1 DELETE "Archive')
    assert "Archive" in reading.mail.folders()


def with_files(*named: str | None) -> EmailMessage:
    message = mail("Files")
    for number, name in enumerate(named):
        more = {"filename": name} if name else {}
        message.add_attachment(b"%d" % number * 3, maintype="application", subtype="pdf", **more)
    return message


def test_attachments_are_saved(reading: Computer, dovecot: Dovecot, user: str, tmp_path: Path) -> None:
    message = with_files("Übersicht.pdf", "b.pdf", None)
    message.add_attachment(mail("Inner"))
    dovecot.deliver(user, message)
    (found,) = reading.mail.get()
    saved = reading.mail.save_attachments(found["id"], "into/here")
    assert [(row["name"], row["path"], row["size"]) for row in saved[:3]] == [
        ("Übersicht.pdf", "into/here/Übersicht.pdf", 3),
        ("b.pdf", "into/here/b.pdf", 3),
        ("unnamed", "into/here/unnamed.pdf", 3),
    ]
    assert (tmp_path / "into/here/b.pdf").read_bytes() == b"111"
    assert b"Subject: Inner" in (tmp_path / saved[3]["path"]).read_bytes() and saved[3]["path"].endswith("unnamed.eml")
    assert [row["path"] for row in reading.mail.save_attachments(found["id"], names="b.pdf")] == ["b.pdf"]
    with pytest.raises(NotFoundError, match=r"no attachment 'c\.pdf'; there is 'Übersicht\.pdf', 'b\.pdf'"):
        reading.mail.save_attachments(found["id"], names=["b.pdf", "c.pdf"])
    with pytest.raises(NotFoundError, match="no mail with the id 999"):
        reading.mail.save_attachments(999)
    assert reading.mail.unread_count() == 1


def test_attachment_names_are_sanitized(reading: Computer, dovecot: Dovecot, user: str, tmp_path: Path) -> None:
    names = ["../../up.sh", "/etc/passwd", "..\\..\\w.exe", ".bashrc", "..", "a\u202efdp.exe", "x" * 400 + ".pdf"]
    names += ["-rf", "NUL.txt", 'a<b>:"c|d?e*.txt', "~", "link.txt", "same.txt", "same.txt"]
    dovecot.deliver(user, with_files(*names))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "passwd").write_text("mine")
    (tmp_path / "in" / "link.txt").symlink_to(tmp_path / "outside.txt")
    saved = reading.mail.save_attachments(reading.mail.get()[0]["id"], "in")
    assert [Path(row["path"]).name for row in saved] == [
        *("up.sh", "passwd (1)", "w.exe", "bashrc", "unnamed", "afdp.exe", "x" * 196 + ".pdf", "rf", "_NUL.txt"),
        *("a_b___c_d_e_.txt", "unnamed (1)", "link (1).txt", "same.txt", "same (1).txt"),
    ]
    assert {Path(row["path"]).parent.as_posix() for row in saved} == {"in"}
    assert (tmp_path / "in" / "passwd").read_text() == "mine" and not (tmp_path / "outside.txt").exists()
    assert len(list((tmp_path / "in").iterdir())) == len(names) + 2


@pytest.mark.parametrize("kind", ["workspace", "read-only"])
def test_with_a_sandbox_attachments_are_saved_inside(
    reading: Computer, dovecot: Dovecot, user: str, tmp_path: Path, home: Path, kind: str
) -> None:
    dovecot.deliver(user, with_files("a.pdf"))
    mail_id = reading.mail.get()[0]["id"]
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to(home)
    try:
        reading.context.containment = Containment(Sandbox(kind, str(work)))
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    reading.context.cwd = str(work)
    with suppress(OSError):  # in the sandbox, the home folder is empty and temporary
        reading.mail.save_attachments(mail_id, "link")
    assert list(home.rglob("a.pdf")) == []
    if kind == "workspace":
        reading.mail.save_attachments(mail_id)
        assert (work / "a.pdf").read_bytes() == b"000"
    else:
        with pytest.raises(OSError, match="Read-only"):
            reading.mail.save_attachments(mail_id)


def test_attachments_that_are_too_large_are_not_saved(
    reading: Computer, dovecot: Dovecot, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpreter.computer_api.people.mail.MAX_ATTACHED_BYTES", 1 << 20)
    message = mail("Huge")
    message.add_attachment(bytes(2 << 20), maintype="application", subtype="zip", filename="huge.zip")
    dovecot.deliver(user, message)
    with pytest.raises(ComputerError, match="more than 1 MB"):
        reading.mail.save_attachments(reading.mail.get()[0]["id"])
    assert list(tmp_path.glob("*.zip")) == []


# -- errors ----------------------------------------------------------------------------------------------------------


def test_without_an_account_the_error_names_the_setting(computer: Computer) -> None:
    with pytest.raises(NotConfiguredError, match=r"interpreter\.computer\.mail_account = \{\"imap\""):
        computer.mail.get()


def test_a_wrong_password_is_an_error(reading: Computer, monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "wrong")
    with pytest.raises(LoginRefusedError, match=f"rejected the login of {user}") as told:
        reading.mail.get()
    assert "wrong" not in str(told.value)


def test_an_untrusted_certificate_is_refused(computer: Computer, dovecot: Dovecot, certificate: Certificate) -> None:
    given = account(dovecot.port, certificate)
    del given["certificate"]
    computer.mail_account = given
    with pytest.raises(CertificateError, match="cannot be trusted"):
        computer.mail.get()
    computer.mail_account = {**given, "imap": f"imap://localhost:{dovecot.plain_port}"}
    with pytest.raises(CertificateError, match="cannot be trusted"):
        computer.mail.get()


def test_a_certificate_for_another_name_is_not_trusted(
    computer: Computer, dovecot: Dovecot, certificate: Certificate
) -> None:
    computer.mail_account = {**account(0, certificate), "imap": f"imaps://127.0.0.2:{dovecot.port}"}
    with pytest.raises((CertificateError, ServerUnreachableError)):
        computer.mail.get()


def test_an_unreachable_server_is_an_error(computer: Computer, certificate: Certificate) -> None:
    with closed_port() as port:
        computer.mail_account = account(port, certificate)
        with pytest.raises(ServerUnreachableError, match=f"Can't reach .*localhost:{port}"):
            computer.mail.get()


@pytest.mark.parametrize("scheme", ["imap", "imaps"])
def test_a_hanging_server_times_out(computer: Computer, certificate: Certificate, scheme: str) -> None:
    with silent_server() as port:
        computer.mail_account = {
            **account(port, certificate, timeout=0.3),
            "imap": f"{scheme}://localhost:{port}",
        }
        with pytest.raises(ServerTimeoutError, match=r"did not answer within 0\.3 seconds"):
            computer.mail.get()


def test_a_port_without_tls_is_an_error(computer: Computer, dovecot: Dovecot, certificate: Certificate) -> None:
    computer.mail_account = account(dovecot.plain_port, certificate)
    with pytest.raises(ServerUnreachableError, match="Check the port"):
        computer.mail.get()


def test_offline_contacts_only_this_machine(reading: Computer, dovecot: Dovecot, certificate: Certificate) -> None:
    reading.offline = True
    assert reading.mail.get() == []
    reading.mail_account = {**account(0, certificate), "imap": "imap.example.org"}
    with pytest.raises(ServerUnreachableError, match="`offline` is set"):
        reading.mail.get()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"password": "secret"}, "must not contain a password"),
        ({"imapp": "x"}, 'has no "imapp"'),
        ({"imap": 5}, "cannot be 5"),
        ({"imap": "https://example.org/x"}, "takes a host or host:port"),
        ({"password_variable": "NO_SUCH_VARIABLE"}, "NO_SUCH_VARIABLE, which is not set"),
        ({"password_variable": "", "password_command": "false"}, "exited with code 1"),
        ({"password_variable": "", "password_command": "no-such-program"}, "can't be run"),
        ({"password_variable": ""}, 'needs "password_variable" or "password_command"'),
        ({"user": ""}, 'needs "user"'),
        ({"certificate": "/no/such.pem"}, "cannot be used"),
    ],
)
def test_errors_in_the_account_are_explained(
    computer: Computer, dovecot: Dovecot, certificate: Certificate, change: dict[str, Any], words: str
) -> None:
    computer.mail_account = {**account(dovecot.port, certificate), **change}
    with pytest.raises(AccountError, match=words) as told:
        computer.mail.get()
    assert "secret" not in str(told.value)


def test_the_password_can_come_from_a_program(
    computer: Computer, dovecot: Dovecot, certificate: Certificate, password: str, user: str
) -> None:
    given = account(dovecot.port, certificate, user)
    del given["password_variable"]
    computer.mail_account = {**given, "password_command": ["printf", "%s\n", password]}
    assert computer.mail.get() == []


def test_an_oauth_token_logs_in(
    computer: Computer, dovecot: Dovecot, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    dovecot.deliver("oauth-user", mail("By token"))
    server = {"imap": f"imaps://localhost:{dovecot.port}", "certificate": str(certificate.cert), "user": "oauth-user"}
    monkeypatch.setenv("MAIL_TOKEN", TOKEN)
    for how in ({"token_variable": "MAIL_TOKEN"}, {"token_command": ["printf", "%s\n", TOKEN]}):
        computer.mail_account = {**server, **how}
        assert computer.mail.get()[0]["subject"] == "By token"
    computer.mail_account = {**server, "token_command": "echo expired-token"}
    with pytest.raises(LoginRefusedError, match=r"rejected the login of oauth-user: .* It may have expired") as told:
        computer.mail.get()
    assert "expired-token" not in str(told.value)
