"""Servers for mail, calendars and contacts, and a computer to connect to them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter.computer_api.computer import Computer
from mail_and_calendar.dav_server import DavServer
from mail_and_calendar.mail_servers import PASSWORD, PROGRAM, Certificate, Dovecot, PostOffice, make_certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: apt-get install openssl")
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def dovecot(certificate: Certificate) -> Iterator[Dovecot]:
    if PROGRAM is None:
        pytest.skip("dovecot is not installed: apt-get install dovecot-imapd")
    # Dovecot's users need access to its folder, and pytest's folders are closed to them.
    with tempfile.TemporaryDirectory(prefix="dovecot-") as name:
        Path(name).chmod(0o755)
        server = Dovecot(Path(name), certificate)
        yield server
        server.close()


@pytest.fixture
def post_office(certificate: Certificate) -> Iterator[PostOffice]:
    office = PostOffice(certificate, encrypted=False)
    yield office
    office.close()


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    return PASSWORD


@pytest.fixture
def computer(password: str, tmp_path: Path) -> Iterator[Computer]:
    """Make a computer without accounts, with its own working folder."""
    made = Computer()
    made.context.cwd = str(tmp_path)
    yield made
    made.terminate()


@pytest.fixture(scope="session")
def dav(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[DavServer]:
    server = DavServer(tmp_path_factory.mktemp("dav"), certificate)
    yield server
    server.close()


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time zone to Berlin, where summer time ends on 25 October 2026."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
