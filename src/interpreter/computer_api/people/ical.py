"""Events in iCalendar text: the single dates of what repeats, a new event, one less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.people.moments import beginning
from interpreter.errors import ComputerError

if TYPE_CHECKING:
    from icalendar import Calendar, Component

MISSING = "Calendars need two packages: pip install 'open-interpreter[people]'"
EMPTY = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Open Interpreter//EN\r\nEND:VCALENDAR\r\n"
MANY_MINUTES = 12  # in one hour; a rule with more is no appointment, and its dates would never end


@dataclass(frozen=True)
class Event:
    """One date of an event; `key` is what it is called within a series that repeats."""

    title: str
    start: date | datetime
    end: date | datetime  # the last day itself, if it has no times
    location: str = ""
    notes: str = ""
    uid: str = ""
    key: date | datetime | None = None
    repeats: bool = False

    def as_dict(self, calendar: str) -> dict[str, Any]:
        return {
            "title": self.title,
            "start": self.start.isoformat(),
            "end": self.end.isoformat(),
            "all_day": not isinstance(self.start, datetime),
            "location": self.location,
            "notes": self.notes,
            "calendar": calendar,
            "repeats": self.repeats,
        }


def events(text: str, start: datetime, end: datetime, place: str) -> list[Event]:
    """What happens between two times; `place` is where the text is from, for what cannot be read."""
    calendar = parsed(text, place)
    repeating = {str(each.get("UID", "")) for each in calendar.walk("VEVENT") if repeats(each)}
    for each in calendar.walk("VEVENT"):
        if too_often(each.get("RRULE")):
            del each["RRULE"]
    try:
        import recurring_ical_events

        found = recurring_ical_events.of(calendar).between(start, end)
    except ImportError:
        raise ComputerError(MISSING) from None
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise ComputerError(f"An event in {place} has dates that cannot be understood: {error}") from None
    return [read(each, repeating) for each in found]


def read(component: Component, repeating: set[str]) -> Event:
    start = local(component["DTSTART"].dt)
    end = local(component["DTEND"].dt) if "DTEND" in component else start
    if not isinstance(end, datetime) and end > start:
        end -= timedelta(days=1)  # in the file it is the day after
    uid = str(component.get("UID", ""))
    key = component["RECURRENCE-ID"].dt if "RECURRENCE-ID" in component else component["DTSTART"].dt
    words = (str(component.get(name, "")) for name in ("SUMMARY", "LOCATION", "DESCRIPTION"))
    title, location, notes = words
    return Event(title, start, end, location, notes, uid, key, uid in repeating)


def local(when: date | datetime) -> date | datetime:
    """In the zone of this machine; a time without a zone is meant there."""
    return when.astimezone() if isinstance(when, datetime) else when


def repeats(component: Component) -> bool:
    return "RRULE" in component or "RDATE" in component


def too_often(rule: Any) -> bool:
    if rule is None:
        return False
    rules = rule if isinstance(rule, list) else [rule]
    return any(
        {"SECONDLY", "MINUTELY"} & {str(each).upper() for each in one.get("FREQ", [])}
        or "BYSECOND" in one
        or len(one.get("BYMINUTE", [])) > MANY_MINUTES
        for one in rules
    )


def parsed(text: str, place: str) -> Calendar:
    try:
        from icalendar import Calendar
    except ImportError:
        raise ComputerError(MISSING) from None
    try:
        found = Calendar.from_ical(text)
    except (ValueError, KeyError, IndexError) as error:
        raise ComputerError(f"{place} is no calendar that can be read: {error}") from None
    return found


def written(calendar: Calendar) -> str:
    return str(calendar.to_ical().decode("utf-8"))


def events_of_rule(event: Event, rule: str, left_out: list[datetime], start: datetime, end: datetime) -> list[Event]:
    """The dates of an event that repeats by this rule, except those that are left out."""
    calendar = parsed(EMPTY, event.title)
    series = component(event, floating)
    try:
        from icalendar import vRecur

        series.add("rrule", vRecur.from_ical(rule))
    except ValueError as error:
        raise ComputerError(f"{event.title!r} repeats in a way that cannot be understood: {error}") from None
    for when in left_out:
        series.add("exdate", floating(when if isinstance(event.start, datetime) else when.date()))
    calendar.add_component(series)
    return events(written(calendar), start, end, event.title)


def with_event(text: str | None, event: Event, place: str) -> str:
    """A calendar with one event more; of its own, if there is no text yet."""
    calendar = parsed(text or EMPTY, place)
    calendar.add_component(component(event, in_file))
    return written(calendar)


def component(event: Event, as_written: Callable[[date | datetime], date | datetime]) -> Component:
    from icalendar import Event as Component

    made = Component()
    made.add("uid", event.uid)
    made.add("dtstamp", in_file(datetime.now().astimezone()))
    made.add("summary", event.title)
    made.add("dtstart", as_written(event.start))
    made.add("dtend", as_written(event.end if isinstance(event.end, datetime) else event.end + timedelta(days=1)))
    for name, words in (("location", event.location), ("description", event.notes)):
        if words:
            made.add(name, words)
    return made


def floating(when: date | datetime) -> date | datetime:
    """Without a zone: nine o'clock stays nine o'clock when the clocks change."""
    return when.astimezone().replace(tzinfo=None) if isinstance(when, datetime) else when


def in_file(when: date | datetime) -> date | datetime:
    """In UTC: right everywhere, without the rules of a zone beside it."""
    return when.astimezone(UTC) if isinstance(when, datetime) else when


def without_event(text: str, event: Event, place: str) -> str | None:
    """The calendar without this date; None if no event is left in it."""
    calendar = parsed(text, place)
    same = [each for each in calendar.walk("VEVENT") if str(each.get("UID", "")) == event.uid]
    series = [each for each in same if repeats(each) and not too_often(each.get("RRULE"))]
    for each in same:
        if not series or is_date(each, event):
            calendar.subcomponents.remove(each)
    for each in series:
        each.add("exdate", event.key)
    return written(calendar) if calendar.walk("VEVENT") else None


def is_date(component: Component, event: Event) -> bool:
    """Whether the component stands for this one date of a series."""
    assert event.key is not None
    return "RECURRENCE-ID" in component and beginning(component["RECURRENCE-ID"].dt) == beginning(event.key)
