"""Days and times as people and programs write them, always in the time of this machine."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

Given = str | date | datetime


def moment(given: Given) -> date | datetime:
    """A day, or a time with its zone; a time without one is local."""
    if isinstance(given, str):
        text = given.strip()
        try:
            given = date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{text!r:.60} is no date; write '2026-11-16' or '2026-11-16 14:30'.") from None
    return given.astimezone() if isinstance(given, datetime) else given


def beginning(when: date | datetime) -> datetime:
    """When it begins: a day at midnight."""
    if isinstance(when, datetime):
        return when.astimezone()
    return datetime.combine(when, time()).astimezone()


def span(start: Given | None, end: Given | None) -> tuple[datetime, datetime]:
    """From when to when: today without a start, that day alone without an end; a day as end belongs to it."""
    first = moment(start) if start is not None else date.today()
    last = moment(end) if end is not None else day_of(first)
    until = last if isinstance(last, datetime) else beginning(last + timedelta(days=1))
    if until <= beginning(first):
        raise ValueError(f"The end, {last}, has to be after the start, {first}.")
    return beginning(first), until


def day_of(when: date | datetime) -> date:
    return when.date() if isinstance(when, datetime) else when
