"""Errors between us and a CalDAV server, and their messages."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from interpreter.computer_api.accounts import (
    AccountError,
    CertificateError,
    LoginRefusedError,
    NotFoundError,
    ServerRefusedError,
    ServerTimeoutError,
    ServerUnreachableError,
)
from interpreter.computer_api.computer import Computer
from interpreter.computer_api.people.dav import is_related
from interpreter.errors import ComputerError
from mail_and_calendar.dav_server import CALENDAR, DavServer
from mail_and_calendar.mail_servers import silent_server
from ports import closed_port

DAY = "2026-11-16"


def test_a_wrong_password_is_an_error(computer: Computer, dav: DavServer, monkeypatch: pytest.MonkeyPatch) -> None:
    computer.calendar_account = dav.account()
    monkeypatch.setenv("MAIL_PASSWORD", "mistaken")
    with pytest.raises(LoginRefusedError, match=r"rejected the login of user\d+") as told:
        computer.calendar.get_events(DAY)
    assert "mistaken" not in str(told.value)


def test_an_untrusted_certificate_is_refused(computer: Computer, dav: DavServer) -> None:
    computer.calendar_account = {**dav.account(), "certificate": ""}
    with pytest.raises(CertificateError, match="cannot be trusted"):
        computer.calendar.get_events(DAY)


def test_an_account_without_calendars_is_an_error(computer: Computer, dav: DavServer) -> None:
    computer.calendar_account = dav.account()
    with pytest.raises(NotFoundError, match="There is no calendar at"):
        computer.calendar.get_events(DAY)


def test_an_unreachable_server_is_an_error(computer: Computer) -> None:
    with closed_port() as port:
        computer.calendar_account = {"url": f"http://127.0.0.1:{port}/"}
        with pytest.raises(ServerUnreachableError, match=f"Can't reach .*127.0.0.1:{port}"):
            computer.calendar.get_events(DAY)


def test_a_hanging_server_times_out(computer: Computer) -> None:
    with silent_server() as port:
        computer.calendar_account = {"url": f"http://127.0.0.1:{port}/", "timeout": 0.3}
        with pytest.raises(ServerTimeoutError, match=r"did not answer within 0\.3 seconds"):
            computer.calendar.get_events(DAY)


class Scripted(BaseHTTPRequestHandler):
    """Gives every request the same answer."""

    status, body, location = 200, b"", ""

    def do_PROPFIND(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.mark.parametrize(
    ("status", "body", "location", "kind", "words"),
    [
        (500, b"oh", "", ServerRefusedError, "500"),
        (207, b"<html><br></html>", "", ServerRefusedError, "Can't read"),
        (200, b"hello", "", ServerRefusedError, "200"),
        (302, b"", "/", ServerRefusedError, "Too many redirects"),
        (302, b"", "http://example.org/", AccountError, "needs https"),
        (302, b"", "file:///etc/passwd", AccountError, "must be an https URL"),
        (302, b"", "https://elsewhere.example/", ServerRefusedError, "your password is not sent there"),
    ],
)
def test_unusable_answers_are_errors(
    computer: Computer, status: int, body: bytes, location: str, kind: type[Exception], words: str
) -> None:
    handler = type("Handler", (Scripted,), {"status": status, "body": body, "location": location})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            computer.calendar_account = {"url": f"http://127.0.0.1:{server.server_port}/"}
            with pytest.raises(kind, match=words):
                computer.calendar.get_events(DAY)
        finally:
            server.shutdown()
            thread.join(60)


def test_the_password_is_sent_within_the_same_domain() -> None:
    assert is_related("dav.example.org", "example.org")
    assert is_related("dav.example.co.uk", "example.co.uk")
    assert is_related("example.org", "www.example.org")
    assert is_related("p42-caldav.icloud.com", "caldav.icloud.com")


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("dav.example.org.evil.net", "dav.example.org"),
        ("evil-example.org", "example.org"),
        ("evil.co.uk", "example.co.uk"),
        ("evil.github.io", "me.github.io"),
        ("evil.duckdns.org", "dav.duckdns.org"),
        ("example.org", "dav.example.org"),
        ("caldav.icloud.com.evil.net", "caldav.icloud.com"),
        ("caldav.evil-icloud.com", "caldav.icloud.com"),
        ("caldav.icloud.com", "caldav.evil-icloud.com"),
        ("evil.nas", "nas"),
        ("10.0.0.2", "10.0.0.1"),
        ("1.10.0.0.1", "10.0.0.1"),
    ],
)
def test_the_password_is_not_sent_to_other_domains(host: str, own: str) -> None:
    assert not is_related(host, own)


@pytest.mark.parametrize(
    ("account", "words"),
    [
        ({"url": "http://dav.example.org/"}, "needs https"),
        ({"url": "https://me:secret@dav.example.org/"}, "must not contain a password"),
        ({"url": "dav.example.org"}, "must be an https URL"),
        ({"urls": "https://dav.example.org"}, 'has no "urls"'),
        ({"user": "me"}, 'needs "url"'),
    ],
)
def test_errors_in_the_account_are_explained(computer: Computer, account: dict[str, Any], words: str) -> None:
    computer.calendar_account = account
    with pytest.raises(AccountError, match=words) as told:
        computer.calendar.get_events(DAY)
    assert "secret" not in str(told.value)


def test_offline_contacts_only_this_machine(computer: Computer, dav: DavServer) -> None:
    account = dav.account()
    dav.make(account, "work", CALENDAR.format(name="Work"))
    computer.offline = True
    computer.calendar_account = account
    assert computer.calendar.get_events(DAY) == []
    computer.calendar_account = {"url": "https://dav.example.org/"}
    with pytest.raises(ServerUnreachableError, match="`offline` is set"):
        computer.calendar.get_events(DAY)


def test_concurrent_changes_are_not_overwritten(computer: Computer, dav: DavServer) -> None:
    from interpreter.computer_api.accounts import Account
    from interpreter.computer_api.people.dav import CALENDARS, collections

    account = dav.account()
    dav.make(account, "work", CALENDAR.format(name="Work"))
    computer.calendar_account = account
    computer.calendar.create_event("A", "2026-11-16 10:00", "2026-11-16 11:00")
    known = Account.of(computer, "calendar_account")
    assert known is not None
    with collections(known, CALENDARS) as (work,):
        (item,) = work.items()
        work.replace(item, item.text.replace("SUMMARY:A", "SUMMARY:B"))
        with pytest.raises(ComputerError, match="changed in the meantime"):
            work.replace(item, item.text.replace("SUMMARY:A", "SUMMARY:C"))
        with pytest.raises(ComputerError, match="changed in the meantime"):
            work.replace(item, None)
    assert [each["title"] for each in computer.calendar.get_events(DAY)] == ["B"]
