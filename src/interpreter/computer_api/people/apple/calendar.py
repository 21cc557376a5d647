"""Calendar on macOS."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from interpreter.computer_api.people.apple.script import moment, quoted, read_stamp, records, run
from interpreter.computer_api.people.errors import NotFoundError
from interpreter.computer_api.people.ical import Event, events_of_rule
from interpreter.computer_api.people.moments import beginning, day_of, span

EVENTS = """\
on ourEvent(theEvent, theName)
    tell application "Calendar"
        set theRule to recurrence of theEvent
        if theRule is missing value then set theRule to ""
        set theGaps to ""
        if theRule is not "" then
            repeat with theGap in (excluded dates of theEvent)
                set theGaps to theGaps & my ourStamp(contents of theGap) & linefeed
            end repeat
        end if
        set theStamps to {{my ourStamp(start date of theEvent), my ourStamp(end date of theEvent)}}
        set theWords to {{allday event of theEvent, summary of theEvent, location of theEvent, description of theEvent}}
        return my ourRecord(theStamps & theWords & {{theName, uid of theEvent, theRule, theGaps}})
    end tell
end ourEvent

set theRecords to ""
set theStart to {start}
set theEnd to {end}
tell application "Calendar"
    repeat with theCalendar in {calendars}
        set theName to name of theCalendar
        repeat with theEvent in (every event of theCalendar whose start date < theEnd and end date > theStart)
            set theRecords to theRecords & my ourEvent(contents of theEvent, theName)
        end repeat
        -- What repeats may have begun long ago; its dates are worked out by us.
        set theRules to recurrence of (every event of theCalendar whose end date <= theStart)
        set theUids to uid of (every event of theCalendar whose end date <= theStart)
        repeat with theIndex from 1 to count of theRules
            if item theIndex of theRules is not missing value and item theIndex of theRules is not "" then
                set theUid to item theIndex of theUids
                set theEvent to first event of theCalendar whose uid is theUid
                set theRecords to theRecords & my ourEvent(theEvent, theName)
            end if
        end repeat
    end repeat
end tell
return theRecords
"""

CREATE = """\
set theStart to {start}
set theEnd to {end}
tell application "Calendar"
    set theCalendar to {calendar}
    set theDates to {{start date:theStart, end date:theEnd, allday event:{all_day}}}
    set theWords to {{summary:{title}, location:{location}, description:{notes}}}
    tell theCalendar to make new event with properties (theDates & theWords)
    return name of theCalendar
end tell
"""

DELETE = """\
set theStart to {start}
set theEnd to {end}
set theTitle to {title}
tell application "Calendar"
    set theFound to {{}}
    repeat with theCalendar in {calendars}
        set theSame to (every event of theCalendar whose summary is theTitle and start date >= theStart)
        repeat with theEvent in theSame
            if start date of theEvent < theEnd then set end of theFound to (contents of theEvent)
        end repeat
    end repeat
    if (count of theFound) is not 1 then return (count of theFound) as text
    set theRule to recurrence of item 1 of theFound
    if theRule is not missing value and theRule is not "" then return "series"
    delete item 1 of theFound
    return "deleted"
end tell
"""

FIRST = 'tell application "Calendar" to return name of first calendar whose writable is true\n'


def events(start: datetime, end: datetime, calendar: str | None) -> list[dict[str, Any]]:
    script = EVENTS.format(start=moment(start), end=moment(end), calendars=calendars(calendar))
    found = [each for fields in records(run(script, "Calendar")) for each in dates(fields, start, end)]
    found.sort(key=lambda each: (beginning(each[0].start), each[0].title))
    return [event.as_dict(name) for event, name in found]


def dates(fields: list[str], start: datetime, end: datetime) -> list[tuple[Event, str]]:
    """The dates of one event; of a series, all of them."""
    begins, ends, all_day, title, location, notes, name, uid, rule, excluded = fields
    first, last = read_stamp(begins), read_stamp(ends)
    if first is None or last is None:
        return []
    whole = (first.date(), (last - timedelta(seconds=1)).date()) if all_day == "true" else (first, last)
    event = Event(title, *whole, location, notes, uid, repeats=bool(rule))
    left_out = [when for line in excluded.split("\n") if (when := read_stamp(line)) is not None]
    found = events_of_rule(event, rule, left_out, start, end) if rule else [event]
    return [(each, name) for each in found]


def create(
    title: str, start: date | datetime, end: date | datetime, location: str, notes: str, calendar: str | None
) -> str:
    """Make an event; the name of the calendar that it is in."""
    all_day = not isinstance(start, datetime)
    until = beginning(day_of(end) + timedelta(days=1)) if all_day else beginning(end)
    values = {"title": quoted(title), "location": quoted(location), "notes": quoted(notes)}
    values |= {"start": moment(beginning(start)), "end": moment(until), "all_day": str(all_day).lower()}
    into = f"first calendar whose name is {quoted(calendar)}" if calendar else "first calendar whose writable is true"
    return run(CREATE.format(**values, calendar=into), "Calendar")


def delete(title: str, when: date | datetime, calendar: str | None) -> None:
    start, end = span(when, None) if not isinstance(when, datetime) else (when, when + timedelta(minutes=1))
    values = {"start": moment(start), "end": moment(end), "title": quoted(title)}
    said = run(DELETE.format(**values, calendars=calendars(calendar)), "Calendar")
    if said == "series":
        raise NotFoundError("That event repeats. Delete its one date in Calendar itself: a script would delete all.")
    if said != "deleted":
        raise NotFoundError(f"There are {said} events of that name then. Name the exact title, time and calendar.")


def first() -> str:
    return run(FIRST, "Calendar")


def calendars(name: str | None) -> str:
    return f"(every calendar whose name is {quoted(name)})" if name else "calendars"
