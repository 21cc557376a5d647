"""Calendars on a real CalDAV server and in files behave the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from interpreter.computer_api.accounts import NotConfiguredError, NotFoundError
from interpreter.computer_api.computer import Computer
from interpreter.computer_api.people.calendar import Calendar
from interpreter.errors import ComputerError
from interpreter.host.installation import install_hint
from mail_and_calendar.dav_server import CALENDAR, TASKS, DavServer

pytestmark = pytest.mark.usefixtures("berlin")

HEAD = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n"


def calendar(*events: str) -> str:
    return (
        HEAD
        + "".join(f"BEGIN:VEVENT\r\nDTSTAMP:20260101T000000Z\r\n{each}END:VEVENT\r\n" for each in events)
        + "END:VCALENDAR\r\n"
    )


def event(title: str, start: str, end: str, *more: str, uid: str = "") -> str:
    return "".join(
        f"{line}\r\n"
        for line in (
            f"UID:{uid or title}",
            "SUMMARY:" + title.replace(",", "\\,"),
            f"DTSTART{start}",
            f"DTEND{end}",
            *more,
        )
    )


STANDUP = event(
    "Standup", ";TZID=Europe/Berlin:20261020T090000", ";TZID=Europe/Berlin:20261020T093000", "RRULE:FREQ=WEEKLY;COUNT=5"
)
MOVED = event(
    "Standup, later",
    ";TZID=Europe/Berlin:20261103T110000",
    ";TZID=Europe/Berlin:20261103T113000",
    "RECURRENCE-ID;TZID=Europe/Berlin:20261103T090000",
    uid="Standup",
)
LUNCH = event("Lunch", ":20261116T110000Z", ":20261116T120000Z", "LOCATION:Café\\, 2nd floor", "DESCRIPTION:a\\nb")
TRIP = event("Trip", ";VALUE=DATE:20261114", ";VALUE=DATE:20261118")
NEW_YORK = event("Call", ";TZID=America/New_York:20261027T090000", ";TZID=America/New_York:20261027T093000")
FLOATING = event("Tea", ":20261116T160000", ":20261116T163000")
ALL = {"standup.ics": calendar(STANDUP, MOVED), "lunch.ics": calendar(LUNCH), "trip.ics": calendar(TRIP)}
ALL |= {"call.ics": calendar(NEW_YORK), "tea.ics": calendar(FLOATING)}


class CalendarPlace:
    """A place for calendars: the tool that reads them, and their raw texts."""

    def __init__(self, computer: Computer, texts: Callable[[], list[str]]) -> None:
        self.calendar: Calendar = computer.calendar
        self.texts = texts

    def titles(self, *days: Any, **more: Any) -> list[tuple[str, str]]:
        return [(each["title"], each["start"]) for each in self.calendar.get_events(*days, **more)]


def on_a_server(computer: Computer, dav: DavServer, _: Path, files: dict[str, str]) -> CalendarPlace:
    account = dav.account()
    dav.make(account, "work", CALENDAR.format(name="Work"))
    dav.make(account, "tasks", TASKS.format(name="Tasks"))
    for name, text in files.items():
        dav.put(account, f"work/{name}", text)
    computer.calendar_account = account
    return CalendarPlace(computer, lambda: [dav.get(account, "work/").replace("\r\n ", "")])


def in_a_folder(computer: Computer, _: DavServer, folder: Path, files: dict[str, str]) -> CalendarPlace:
    (folder / "Work").mkdir()
    for name, text in files.items():
        (folder / "Work" / name).write_text(text, "utf-8", newline="")
    computer.calendar_account = {"path": str(folder)}
    return CalendarPlace(computer, lambda: [file.read_text("utf-8") for file in (folder / "Work").glob("*.ics")])


def in_a_file(computer: Computer, _: DavServer, folder: Path, files: dict[str, str]) -> CalendarPlace:
    events = [part for text in files.values() for part in re.findall(r"BEGIN:VEVENT.*?END:VEVENT\r\n", text, re.DOTALL)]
    (folder / "Work.ics").write_text(HEAD + "".join(events) + "END:VCALENDAR\r\n", "utf-8", newline="")
    computer.calendar_account = {"path": str(folder / "Work.ics")}
    return CalendarPlace(computer, lambda: [(folder / "Work.ics").read_text("utf-8")])


@pytest.fixture(params=[on_a_server, in_a_folder, in_a_file], ids=["server", "folder", "file"])
def make(
    request: pytest.FixtureRequest, computer: Computer, dav: DavServer, tmp_path: Path
) -> Callable[..., CalendarPlace]:
    """`make(files)` creates a place with these files."""
    (tmp_path / "calendars").mkdir()
    return lambda files: request.param(computer, dav, tmp_path / "calendars", files)


def test_get_events_returns_the_events_of_a_day(make: Callable[..., CalendarPlace]) -> None:
    found = make(ALL).calendar.get_events("2026-11-16")
    assert [each["title"] for each in found] == ["Trip", "Lunch", "Tea"]
    trip, lunch, tea = found
    assert lunch == {
        "title": "Lunch",
        "start": "2026-11-16T12:00:00+01:00",
        "end": "2026-11-16T13:00:00+01:00",
        "all_day": False,
        "location": "Café, 2nd floor",
        "notes": "a\nb",
        "calendar": "Work",
        "repeats": False,
    }
    assert (trip["start"], trip["end"], trip["all_day"]) == ("2026-11-14", "2026-11-17", True)
    assert tea["start"] == "2026-11-16T16:00:00+01:00"


def test_recurring_events_are_expanded(make: Callable[..., CalendarPlace]) -> None:
    found = make(ALL).calendar.get_events("2026-10-01", "2026-12-01")
    standups = [(each["title"], each["start"]) for each in found if each["repeats"]]
    assert standups == [
        ("Standup", "2026-10-20T09:00:00+02:00"),
        ("Standup", "2026-10-27T09:00:00+01:00"),  # after summer time, still at nine
        ("Standup, later", "2026-11-03T11:00:00+01:00"),
        ("Standup", "2026-11-10T09:00:00+01:00"),
        ("Standup", "2026-11-17T09:00:00+01:00"),
    ]


def test_time_zone_names_of_windows_and_evolution_are_known(make: Callable[..., CalendarPlace]) -> None:
    zones = {
        "Tokyo Standard Time": "01:00:00+01:00",
        "W. Europe Standard Time": "09:00:00+01:00",
        "/freeassociation.sourceforge.net/Europe/London": "10:00:00+01:00",
        "Eastern Standard Time": "15:00:00+01:00",
    }
    files = {
        f"{number}.ics": calendar(event(zone, f";TZID={zone}:20261116T090000", f";TZID={zone}:20261116T093000"))
        for number, zone in enumerate(zones)
    }
    assert make(files).titles("2026-11-16") == [(zone, f"2026-11-16T{start}") for zone, start in zones.items()]


@pytest.mark.parametrize(
    ("zone", "in_november"),
    [("America/New_York", "15:00"), ("Eastern Standard Time", "15:00"), ("Mars Standard Time", "14:00")],
)
def test_a_calendars_time_zone_can_have_a_windows_name(
    computer: Computer, tmp_path: Path, zone: str, in_november: str
) -> None:
    text = calendar(event("Call", ":20261020T130000Z", ":20261020T133000Z", "RRULE:FREQ=WEEKLY;COUNT=3"))
    (tmp_path / "a.ics").write_text(text.replace("BEGIN:VEVENT", f"X-WR-TIMEZONE:{zone}\r\nBEGIN:VEVENT"), newline="")
    computer.calendar_account = {"path": str(tmp_path / "a.ics")}
    place = CalendarPlace(computer, list)
    # Nine o'clock in New York, where summer time ends on 1 November.
    assert place.titles("2026-10-27") == [("Call", "2026-10-27T14:00:00+01:00")]
    assert place.titles("2026-11-03") == [("Call", f"2026-11-03T{in_november}:00+01:00")]


def test_other_time_zones_are_converted_to_local_time(make: Callable[..., CalendarPlace]) -> None:
    # Summer time ends a week later in New York.
    assert make(ALL).titles("2026-10-27") == [
        ("Standup", "2026-10-27T09:00:00+01:00"),
        ("Call", "2026-10-27T14:00:00+01:00"),
    ]


def test_times_can_limit_the_range(make: Callable[..., CalendarPlace]) -> None:
    place = make({"lunch.ics": ALL["lunch.ics"], "tea.ics": ALL["tea.ics"]})
    assert [title for title, _ in place.titles("2026-11-16 14:00")] == ["Tea"]
    assert [title for title, _ in place.titles(datetime(2026, 11, 16, 11), "2026-11-16T12:30")] == ["Lunch"]
    assert [title for title, _ in place.titles(date(2026, 11, 16), date(2026, 11, 16))] == ["Lunch", "Tea"]


def test_a_created_event_is_found_again(make: Callable[..., CalendarPlace]) -> None:
    place = make(ALL)
    title = 'Grüße; "a, b"\\ ✓\nEND:VEVENT'
    told = place.calendar.create_event(title, "2026-12-24 18:00", "2026-12-24 19:30", "Zoë's, 3rd", "one\ntwo")
    assert "'Work'" in told
    (found,) = place.calendar.get_events("2026-12-24")
    assert (found["title"], found["location"], found["notes"]) == (title, "Zoë's, 3rd", "one\ntwo")
    assert (found["start"], found["end"]) == ("2026-12-24T18:00:00+01:00", "2026-12-24T19:30:00+01:00")
    assert any("DTSTART:20261224T170000Z" in text for text in place.texts())


def test_all_day_events_include_the_last_day(make: Callable[..., CalendarPlace]) -> None:
    place = make(ALL)
    place.calendar.create_event("Fair", "2026-12-01", "2026-12-03")
    (found,) = place.calendar.get_events("2026-12-03")
    assert (found["start"], found["end"], found["all_day"]) == ("2026-12-01", "2026-12-03", True)
    assert place.calendar.get_events("2026-12-04") == []


def test_deleting_an_event_keeps_the_others(make: Callable[..., CalendarPlace]) -> None:
    place = make(ALL)
    place.calendar.delete_event("lunch", "2026-11-16")
    assert [title for title, _ in place.titles("2026-11-16")] == ["Trip", "Tea"]
    place.calendar.delete_event("Tea", "2026-11-16 16:00")
    assert [title for title, _ in place.titles("2026-11-16")] == ["Trip"]
    assert len(place.titles("2026-10-01", "2026-12-01")) == 7


@pytest.mark.parametrize("day", ["2026-10-27", "2026-11-03", "2026-10-20"])
def test_one_date_of_a_series_can_be_deleted(make: Callable[..., CalendarPlace], day: str) -> None:
    place = make({"standup.ics": ALL["standup.ics"]})
    before = place.titles("2026-10-01", "2026-12-01")
    title = next(title for title, start in before if start.startswith(day))
    place.calendar.delete_event(title, day)
    assert place.titles("2026-10-01", "2026-12-01") == [each for each in before if not each[1].startswith(day)]


def test_one_date_of_an_all_day_series_can_be_deleted(make: Callable[..., CalendarPlace]) -> None:
    shift = event("Shift", ";VALUE=DATE:20261102", ";VALUE=DATE:20261103", "RRULE:FREQ=WEEKLY;UNTIL=20261123")
    place = make({"shift.ics": calendar(shift)})
    place.calendar.delete_event("Shift", "2026-11-09")
    assert place.titles("2026-10-01", "2026-12-31") == [
        ("Shift", "2026-11-02"),
        ("Shift", "2026-11-16"),
        ("Shift", "2026-11-23"),
    ]


def test_an_emptied_calendar_accepts_new_events(make: Callable[..., CalendarPlace]) -> None:
    place = make({"lunch.ics": ALL["lunch.ics"]})
    place.calendar.delete_event("Lunch", "2026-11-16")
    assert place.titles("2026-11-16") == []
    place.calendar.create_event("Dinner", "2026-11-16 19:00", "2026-11-16 20:00")
    assert [title for title, _ in place.titles("2026-11-16")] == ["Dinner"]


def test_deleting_a_missing_or_ambiguous_event_is_an_error(make: Callable[..., CalendarPlace]) -> None:
    place = make(ALL)
    with pytest.raises(NotFoundError, match=r"no such event\. On that day: .*'Lunch' at 2026-11-16 12:00"):
        place.calendar.delete_event("Luncheon", "2026-11-16")
    with pytest.raises(NotFoundError):
        place.calendar.delete_event("Lunch", "2026-11-16 12:30")
    place.calendar.create_event("Lunch", "2026-11-16 13:00", "2026-11-16 14:00")
    with pytest.raises(NotFoundError, match="Several events have that name"):
        place.calendar.delete_event("Lunch", "2026-11-16")
    assert [title for title, _ in place.titles("2026-11-16")].count("Lunch") == 2


def test_calendars_are_selected_by_name(make: Callable[..., CalendarPlace]) -> None:
    place = make(ALL)
    assert place.calendar.get_first_calendar() == "Work"
    assert len(place.titles("2026-11-16", calendar="work")) == 3
    with pytest.raises(NotFoundError, match=r"no calendar 'Home'\. Available: 'Work'"):
        place.calendar.get_events("2026-11-16", calendar="Home")


def test_an_excessive_recurrence_rule_is_limited(make: Callable[..., CalendarPlace]) -> None:
    bomb = event("Bomb", ":20260101T000000Z", ":20260101T000001Z", "RRULE:FREQ=SECONDLY")
    place = make({"bomb.ics": calendar(bomb), "lunch.ics": ALL["lunch.ics"]})
    assert [title for title, _ in place.titles("2026-01-01", "2027-12-31")] == ["Bomb", "Lunch"]


def test_a_new_event_goes_into_the_named_calendar(computer: Computer, dav: DavServer) -> None:
    account = dav.account(calendar="Second")
    for name in ("first", "second"):
        dav.make(account, name, CALENDAR.format(name=name.title()))
    computer.calendar_account = account
    assert computer.calendar.get_first_calendar() == "Second"
    computer.calendar.create_event("A", "2026-11-16 10:00", "2026-11-16 11:00")
    computer.calendar.create_event("B", "2026-11-16 11:00", "2026-11-16 12:00", calendar="First")
    assert [(each["title"], each["calendar"]) for each in computer.calendar.get_events("2026-11-16")] == [
        ("A", "Second"),
        ("B", "First"),
    ]


def test_the_address_of_a_single_calendar_is_enough(computer: Computer, dav: DavServer) -> None:
    account = dav.account()
    dav.make(account, "one", CALENDAR.format(name="One"))
    dav.make(account, "two", CALENDAR.format(name="Two"))
    computer.calendar_account = {**account, "url": f"{dav.url}{account['user']}/two"}
    assert computer.calendar.get_first_calendar() == "Two"


# -- errors ----------------------------------------------------------------------------------------------------------


def test_changing_a_calendar_needs_approval() -> None:
    assert Calendar.create_event.__sends__ and Calendar.delete_event.__sends__  # type: ignore[attr-defined]
    assert not hasattr(Calendar.get_events, "__sends__")


def test_without_an_account_the_error_names_the_setting(computer: Computer) -> None:
    with pytest.raises(NotConfiguredError, match=r"interpreter\.computer\.calendar_account = "):
        computer.calendar.get_events()


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("tomorrow", "2026-11-16"),
        ("2026-11-16 12:00", "2026-11-16 11:00"),
        ("2026-11-16 12:00", "2026-11-16 12:00"),
        ("2026-11-16", "2026-11-16 12:00"),
        ("2026-11-16", "2026-11-15"),
        ("2026-11-16 12:00", "2036-11-16 12:00"),
    ],
)
def test_invalid_dates_are_errors(computer: Computer, tmp_path: Path, start: str, end: str) -> None:
    computer.calendar_account = {"path": str(tmp_path)}
    with pytest.raises(ValueError, match=r"is not a date|must be after|both as days|longer than a year"):
        computer.calendar.create_event("A", start, end)
    assert list(tmp_path.iterdir()) == []


def test_the_error_names_a_file_that_cannot_be_read(computer: Computer, tmp_path: Path) -> None:
    computer.calendar_account = {"path": str(tmp_path / "none")}
    with pytest.raises(ComputerError, match="which does not exist"):
        computer.calendar.get_events()
    (tmp_path / "bad.ics").write_text("hello")
    computer.calendar_account = {"path": str(tmp_path)}
    with pytest.raises(ComputerError, match=r"bad\.ics is not a valid calendar"):
        computer.calendar.get_events()


def test_the_error_names_the_missing_extra(computer: Computer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "icalendar", None)
    (tmp_path / "lunch.ics").write_text(calendar(LUNCH))
    computer.calendar_account = {"path": str(tmp_path)}
    with pytest.raises(ComputerError, match=re.escape(install_hint("calendar"))):
        computer.calendar.get_events("2026-11-16")
