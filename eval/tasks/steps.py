"""Tasks with several steps: follow-ups, initial errors, sequences."""

from __future__ import annotations

import sqlite3
import statistics
from contextlib import closing
from pathlib import Path

from eval.outcome import Outcome, expect
from eval.task import Task, nothing, write

AMOUNTS = [20 + number * 53 % 397 + 0.5 * (number % 2) for number in range(88)]
READINGS = ["12.5", "n/a", "7.25", "103", "", "n/a", "88.75", "9", "41.5", "n/a", "66"]
COSTS = [("Büro", 412.5), ("Möbel", 1250.0), ("Strom", 318.75), ("Löhne", 5400.25), ("Wärme", 207.0)]
SHOP = [(number, 15 + number * 29 % 113) for number in range(1, 58)]
PRIMES = [number for number in range(2, 200) if all(number % each for each in range(2, number))]
FAHRENHEIT = {98.6: 37.0, 71.3: 21.8, -12.5: -24.7}


def _deliveries(folder: Path) -> None:
    write(folder, "deliveries.csv", "delivery,amount", *(f"D{1000 + n},{each}" for n, each in enumerate(AMOUNTS)))


def _rows_and_median(outcome: Outcome) -> None:
    outcome.expect_number(len(AMOUNTS), what="the rows are")
    outcome.expect_number(statistics.median(AMOUNTS), within=0.006, what="the median is")


def _celsius(outcome: Outcome) -> None:
    for fahrenheit, celsius in FAHRENHEIT.items():
        outcome.expect_number(celsius, within=0.051, what=f"{fahrenheit} F is")


def _readings(folder: Path) -> None:
    write(folder, "readings.txt", *READINGS)


def _readings_added(outcome: Outcome) -> None:
    total = sum(float(each) for each in READINGS if each not in ("", "n/a"))
    outcome.expect_number(total, within=0.006, what="the sum is")


def _costs(folder: Path) -> None:
    lines = ["Posten;Betrag", *(f"{what};{cost}" for what, cost in COSTS)]
    (folder / "kosten.csv").write_bytes("".join(f"{line}\r\n" for line in lines).encode("latin-1"))


def _costs_added(outcome: Outcome) -> None:
    outcome.expect_number(sum(cost for _, cost in COSTS), within=0.006, what="the sum is")


def _shop(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as database, database:
        database.execute("create table orders (id integer primary key, amount real)")
        database.executemany("insert into orders values (?, ?)", SHOP)


def _shop_known(outcome: Outcome) -> None:
    outcome.expect_number(len(SHOP), what="the rows are")
    outcome.expect_number(sum(amount for _, amount in SHOP), what="the sum is")


def _primes(outcome: Outcome) -> None:
    primes = outcome.lines("primes.txt")
    expect(primes == [str(prime) for prime in PRIMES], f"primes.txt has {len(primes)} lines, or not the right ones")
    outcome.expect_number(sum(PRIMES), what="the sum is")


TASKS = [
    Task(
        "steps/dataframe",
        (
            "Load deliveries.csv into a pandas dataframe called df and tell me how many rows it has.",
            "And what's the median of the amount column of df?",
        ),
        _deliveries,
        _rows_and_median,
    ),
    Task(
        "steps/function",
        (
            "Write a Python function to_celsius that turns Fahrenheit into Celsius, rounded to one decimal.",
            "Now use to_celsius for 98.6, 71.3 and -12.5 and print the results.",
        ),
        nothing,
        _celsius,
    ),
    Task("steps/bad_lines", ("Add up the numbers in readings.txt.",), _readings, _readings_added),
    Task(
        "steps/encoding",
        ("kosten.csv comes from an old German system, with semicolons. What do the amounts (Betrag) add up to?",),
        _costs,
        _costs_added,
    ),
    Task(
        "steps/database",
        ("shop.db is an SQLite database. How many rows does its table orders have, and what's the sum of amount?",),
        _shop,
        _shop_known,
    ),
    Task(
        "steps/primes",
        (
            "Write all prime numbers below 200 to primes.txt, one per line.",
            "Read primes.txt again and tell me the sum of the numbers in it.",
        ),
        nothing,
        _primes,
    ),
]
