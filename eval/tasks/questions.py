"""Questions about a table with one number as the answer, as analysts ask them. The tables are generated."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from eval.outcome import Outcome
from eval.task import Task, write


class Trip(NamedTuple):
    station: str
    month: str
    minutes: float
    km: float
    age: int
    member: str


class House(NamedTuple):
    house: str
    district: str
    rooms: int
    area: float
    price: int


_RANDOM = random.Random(16)
TRIPS = [
    Trip(
        _RANDOM.choice(("Harbour", "Market", "Museum", "Park", "Station")),
        _RANDOM.choice(("May", "June", "July")),
        round(_RANDOM.uniform(4, 57), 1),
        round(_RANDOM.uniform(0.5, 9), 2),
        _RANDOM.randint(18, 70),
        _RANDOM.choice(("yes", "yes", "no")),
    )
    for _ in range(240)
]
HOUSES = [
    House(
        f"H{number:03}",
        _RANDOM.choice(("East", "Hill", "Lake", "Old Town")),
        _RANDOM.randint(1, 6),
        round(_RANDOM.uniform(28, 150), 1),
        _RANDOM.randrange(90_000, 500_000, 50),
    )
    for number in range(1, 121)
]
# Some areas and prices are missing.
_NO_AREA, _NO_PRICE = {n for n in range(120) if n % 17 == 3}, {n for n in range(120) if n % 23 == 5}
KNOWN = [each for n, each in enumerate(HOUSES) if n not in _NO_AREA]
SOLD = [each for n, each in enumerate(HOUSES) if n not in _NO_PRICE]


def trips(folder: Path) -> None:
    rows = (",".join(map(str, trip)) for trip in TRIPS)
    write(folder, "trips.csv", "station,month,minutes,km,age,member", *rows)


def houses(folder: Path) -> None:
    lines = []
    for n, each in enumerate(HOUSES):
        area, price = "" if n in _NO_AREA else f"{each.area:.1f}", "" if n in _NO_PRICE else str(each.price)
        lines.append(f"{each.house};{each.district};{each.rooms};{area};{price}")
    write(folder, "houses.csv", "house;district;rooms;area;price", *lines)


def _minutes(keep: Callable[[Trip], bool] = lambda trip: True) -> list[float]:
    return [trip.minutes for trip in TRIPS if keep(trip)]


def _mean_by(key: Callable[[Trip], str], value: Callable[[Trip], float]) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for trip in TRIPS:
        groups.setdefault(key(trip), []).append(value(trip))
    return {name: statistics.fmean(values) for name, values in groups.items()}


_MEMBERS = _mean_by(lambda trip: trip.member, lambda trip: trip.minutes)
_STATIONS = _mean_by(lambda trip: trip.station, lambda trip: trip.minutes)
_JULY_AT_PARK = [trip.km for trip in TRIPS if (trip.month, trip.station) == ("July", "Park")]
_PRICES = [each.price for each in SOLD]
_FILLED = sum(_PRICES) + len(_NO_PRICE) * statistics.median(_PRICES)
_BOTH = [each.price / each.area for each in KNOWN if each in SOLD]

TABLES = {
    "trips": (trips, ""),
    "houses": (houses, " Its columns are separated by semicolons, and some values are missing."),
}
# Name, table, question, answer, and its number of decimals.
QUESTIONS: tuple[tuple[str, str, str, float, int], ...] = (
    ("mean", "trips", "What is the mean of minutes?", statistics.fmean(_minutes()), 2),
    ("median", "trips", "What is the median of km?", statistics.median(trip.km for trip in TRIPS), 2),
    ("deviation", "trips", "What is the sample standard deviation of minutes?", statistics.stdev(_minutes()), 2),
    ("filtered", "trips", "What is the mean of minutes of the trips whose member is yes?", _MEMBERS["yes"], 2),
    (
        "difference",
        "trips",
        "How far apart are the mean minutes of members and of non-members?",
        abs(_MEMBERS["yes"] - _MEMBERS["no"]),
        2,
    ),
    (
        "share",
        "trips",
        "What percentage of the trips took more than 30 minutes?",
        100 * len(_minutes(lambda trip: trip.minutes > 30)) / len(TRIPS),
        1,
    ),
    (
        "total",
        "trips",
        "How many kilometres (km) were ridden in June altogether?",
        sum(trip.km for trip in TRIPS if trip.month == "June"),
        2,
    ),
    ("best_group", "trips", "What is the highest mean of minutes of any station?", max(_STATIONS.values()), 2),
    (
        "spread_of_groups",
        "trips",
        "Compute the mean of minutes for each station. What is the difference between the highest and the lowest mean?",
        max(_STATIONS.values()) - min(_STATIONS.values()),
        2,
    ),
    (
        "correlation",
        "trips",
        "What is the correlation (Pearson) of age and minutes?",
        statistics.correlation([trip.age for trip in TRIPS], _minutes()),
        3,
    ),
    (
        "quartile",
        "trips",
        "What is the 75th percentile of minutes?",
        statistics.quantiles(_minutes(), n=4, method="inclusive")[2],
        2,
    ),
    (
        "computed",
        "trips",
        "The speed of a trip is km divided by minutes, times 60. What is the mean speed?",
        statistics.fmean(trip.km / trip.minutes * 60 for trip in TRIPS),
        2,
    ),
    (
        "two_filters",
        "trips",
        "What is the mean of km of the trips in July that began at the station Park?",
        statistics.fmean(_JULY_AT_PARK),
        3,
    ),
    (
        "longest",
        "trips",
        "How old is the person who rode the most km in one trip?",
        max(TRIPS, key=lambda trip: trip.km).age,
        0,
    ),
    ("gaps_mean", "houses", "What is the mean of the known areas?", statistics.fmean(each.area for each in KNOWN), 2),
    ("gaps_count", "houses", "How many prices are missing?", len(_NO_PRICE), 0),
    (
        "filled",
        "houses",
        "Replace each missing price with the median of the known prices. What is the mean price then?",
        _FILLED / len(HOUSES),
        2,
    ),
    (
        "group_median",
        "houses",
        "What is the median price in the district Old Town?",
        statistics.median(each.price for each in SOLD if each.district == "Old Town"),
        1,
    ),
    (
        "ratio",
        "houses",
        "Leave out the houses without an area or a price. What is the mean of price divided by area?",
        statistics.fmean(_BOTH),
        2,
    ),
    (
        "z_score",
        "houses",
        "What is the z-score of the highest price among the known prices, with the sample standard deviation?",
        (max(_PRICES) - statistics.fmean(_PRICES)) / statistics.stdev(_PRICES),
        3,
    ),
)


def _task(name: str, table: str, asked: str, answer: float, decimals: int) -> Task:
    prepare, note = TABLES[table]
    request = f"Use the file {table}.csv in the current folder.{note} {asked} Print the number"
    request += f" with {decimals} decimals." if decimals > 1 else "."

    def check(outcome: Outcome) -> None:
        outcome.expect_number(answer, within=0.6 / 10**decimals if decimals else 0.0, what="the answer is")

    return Task(f"questions/{name}", (request,), prepare, check)


TASKS = [_task(*question) for question in QUESTIONS]
