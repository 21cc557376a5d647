"""Contacts on a real CardDAV server, and in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.computer_api.accounts import NotConfiguredError, NotFoundError
from interpreter.computer_api.computer import Computer
from interpreter.computer_api.people.contacts import Contacts, cards
from mail_and_calendar.dav_server import BOOK, DavServer


def card(*lines: str, version: str = "3.0") -> str:
    return "".join(f"{line}\r\n" for line in ("BEGIN:VCARD", f"VERSION:{version}", *lines, "END:VCARD"))


CARDS = {
    "zoe": card(
        *("UID:zoe", "FN:Zoë Müller", "N:Müller;Zoë;;;", "TEL;TYPE=HOME:030 1", "TEL;TYPE=CELL:+49 170 2"),
        *("EMAIL;TYPE=INTERNET:zoe@example.org", "EMAIL;TYPE=PREF:zoe@work.example"),
    ),
    "ann": card("UID:ann", "FN:Ann Smith", "N:Smith;Ann;;;", "item1.TEL:555-0100", "item1.X-ABLabel:_$!<Mobile>!$_"),
    "anna": card("UID:anna", "FN:Ann Jones", "N:Jones;Ann;;;", "EMAIL:ann@jones.example"),
    "bob": card("UID:bob", "FN:Bob Stone", "N:Stone;Bob;;;"),
}


def on_a_server(computer: Computer, dav: DavServer, _: Path) -> Contacts:
    account = dav.account()
    dav.make(account, "people", BOOK.format(name="People"))
    for name, text in CARDS.items():
        dav.put(account, f"people/{name}.vcf", text)
    computer.contacts_account = account
    return computer.contacts


def in_a_folder(computer: Computer, _: DavServer, folder: Path) -> Contacts:
    for name, text in CARDS.items():
        (folder / f"{name}.vcf").write_text(text, "utf-8", newline="")
    computer.contacts_account = {"path": str(folder)}
    return computer.contacts


def in_a_file(computer: Computer, _: DavServer, folder: Path) -> Contacts:
    (folder / "all.vcf").write_text("\ufeff" + "".join(CARDS.values()), "utf-8", newline="")
    computer.contacts_account = {"path": str(folder / "all.vcf")}
    return computer.contacts


@pytest.fixture(params=[on_a_server, in_a_folder, in_a_file], ids=["server", "folder", "file"])
def contacts(request: pytest.FixtureRequest, computer: Computer, dav: DavServer, tmp_path: Path) -> Contacts:
    where: Callable[[Computer, DavServer, Path], Contacts] = request.param
    return where(computer, dav, tmp_path)


def test_contacts_are_found_by_name(contacts: Contacts) -> None:
    assert contacts.get_phone_number("Zoë Müller") == "+49 170 2"
    assert contacts.get_phone_number(" ann  SMITH") == "555-0100"
    assert contacts.get_email_address("Zoë Müller") == "zoe@work.example"
    assert contacts.get_email_address("zoë") == "zoe@work.example"
    assert contacts.get_full_names_from_first_name("ann") == ["Ann Jones", "Ann Smith"]
    assert contacts.get_full_names_from_first_name("Jones") == []
    assert contacts.search("0100") == [{"name": "Ann Smith", "phones": ["555-0100"], "emails": []}]

    assert contacts.get_email_address("Ann") == "ann@jones.example"  # the only Ann with an address
    with pytest.raises(NotFoundError, match="Bob Stone is in the contacts but has no phone number"):
        contacts.get_phone_number("Bob Stone")
    with pytest.raises(NotFoundError, match=r"No contact is called 'Zoe Muller'\. Close: Zoë Müller"):
        contacts.get_phone_number("Zoe Muller")
    with pytest.raises(NotFoundError, match="Close: Ann Smith"):
        contacts.get_phone_number("An Smiht")


def test_an_ambiguous_name_lists_the_matches(computer: Computer, tmp_path: Path) -> None:
    (tmp_path / "all.vcf").write_text(card("FN:Ann A", "TEL:1") + card("FN:Ann B", "TEL:2"))
    computer.contacts_account = {"path": str(tmp_path)}
    with pytest.raises(NotFoundError, match=r"Several people match 'Ann': Ann A, Ann B"):
        computer.contacts.get_phone_number("Ann")


def test_without_an_account_the_error_names_the_setting(computer: Computer) -> None:
    with pytest.raises(NotConfiguredError, match=r"interpreter\.computer\.contacts_account = "):
        computer.contacts.get_phone_number("Ann")


def test_every_vcard_version_is_read() -> None:
    oldest = card(
        "N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;Zo=C3=AB",
        "TEL;WORK;FAX:1",
        "TEL;PREF;CELL:2",
        "NOTE;ENCODING=QUOTED-PRINTABLE:a=\r\nTEL:9=\r\nb",
        version="2.1",
    )
    newest = card("FN:Zo\r\n ë \\, the\\nfirst", 'TEL;VALUE=uri;TYPE="voice,cell":tel:+1-2', version="4.0")
    first, second = cards(oldest + "nonsense\r\n" + newest)
    assert (first.name, first.phones) == ("Zoë Müller", ["2", "1"])
    assert (second.name, second.phones) == ("Zoë , the first", ["+1-2"])
    assert cards(card("ORG:Acme;Sales", "EMAIL:a@b"))[0].name == "Acme Sales"


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_any_text_can_be_parsed(text: str) -> None:
    for each in cards(text) + cards(card(text)):
        assert isinstance(each.name, str)
