"""Dates."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from eval.outcome import Outcome, expect
from eval.task import Task, nothing, write

WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
VISITS = {"Hugo": "28/01/2024", "Iris": "11/03/2024", "Jana": "30/11/2023", "Karl": "05/02/2024", "Lou": "31/12/2023"}
MONTHS = [17, 23, 9, 31, 14, 26]


def _days_between(outcome: Outcome) -> None:
    outcome.expect_number((date(2024, 11, 2) - date(2021, 3, 14)).days, what="the days are")


def _weekday(outcome: Outcome) -> None:
    outcome.expect_pick(WEEKDAYS[date(2031, 8, 19).weekday()], WEEKDAYS)


def _visits(folder: Path) -> None:
    write(folder, "visits.csv", "name,date", *(f"{name},{day}" for name, day in VISITS.items()))


def _latest(outcome: Outcome) -> None:
    outcome.expect_pick("Iris", VISITS)


def _bookings(folder: Path) -> None:
    days = [f"2024-{month:02}-{1 + n % 28:02}" for month, count in enumerate(MONTHS, 1) for n in range(count)]
    days = days[::2] + days[1::2]
    write(folder, "bookings.csv", "booking,date", *(f"B{1000 + n},{day}" for n, day in enumerate(days)))


def _per_month(outcome: Outcome) -> None:
    """In the order of months, with any column names and month formats."""
    rows = [list(row.values()) for row in outcome.rows("monthly.csv")]
    counts = [cells[-1].removesuffix(".0") for cells in rows]
    expect(counts == [str(count) for count in MONTHS], f"monthly.csv has the counts {', '.join(counts)[:60]}")


TASKS = [
    Task("dates/between", ("How many days are there from 14 March 2021 to 2 November 2024?",), nothing, _days_between),
    Task("dates/weekday", ("What day of the week will 19 August 2031 be?",), nothing, _weekday),
    Task(
        "dates/latest",
        ("The dates in visits.csv are written day/month/year. Whose visit was the most recent one?",),
        _visits,
        _latest,
    ),
    Task(
        "dates/per_month",
        (
            "How many bookings were there in each month? The dates are in bookings.csv. "
            "Save month and count to monthly.csv, the earliest month first.",
        ),
        _bookings,
        _per_month,
    ),
]
