"""JSON files."""

from __future__ import annotations

import json
from pathlib import Path

from eval.outcome import Outcome, expect
from eval.task import Task, write

AGES = {"Ivo": 34, "Petra": 71, "Samir": 68, "Tove": 25, "Ugo": 70}
CONFIG = {
    "name": "shop",
    "debug": False,
    "database": {"host": "db.example.com", "port": 5432, "user": "shop"},
    "cache": {"host": "localhost", "port": 6379},
    "languages": ["en", "de"],
}
BOOKS = [
    {"title": "Dust and Light", "author": {"first": "Mia", "last": "Holm"}, "year": 1998, "pages": 210},
    {"title": "Rain, Again", "author": {"first": "Tariq", "last": "Aziz"}, "year": 2011, "pages": 340},
    {"title": "The Ninth Door", "author": {"first": "Jo", "last": "March"}, "year": 2020, "pages": 155},
]
BASKET = [("keyboard", 49.9, 2), ("monitor", 189.0, 3), ("cable", 7.25, 12), ("desk", 320.5, 1)]
EVENTS = {"login": 41, "search": 27, "purchase": 13, "logout": 38}


def _people(folder: Path) -> None:
    people = [{"name": name, "age": age, "email": f"{name.lower()}@example.com"} for name, age in AGES.items()]
    write(folder, "people.json", json.dumps(people, indent=2))


def _oldest(outcome: Outcome) -> None:
    outcome.expect_pick("Petra", AGES)


def _config(folder: Path) -> None:
    write(folder, "config.json", json.dumps(CONFIG, indent=2))


def _port_changed(outcome: Outcome) -> None:
    wanted = json.loads(json.dumps(CONFIG))
    wanted["database"]["port"] = 5433
    expect(outcome.data("config.json") == wanted, "config.json does not hold what it should")


def _books(folder: Path) -> None:
    write(folder, "books.json", json.dumps({"books": BOOKS}, indent=2))


def _book_rows(outcome: Outcome) -> None:
    rows = [(row.get("title"), row.get("author_last_name"), row.get("year")) for row in outcome.rows("books.csv")]
    wanted = [(book["title"], book["author"]["last"], str(book["year"])) for book in BOOKS]  # type: ignore[index]
    expect(rows == wanted, f"books.csv has {rows[:1] or 'no rows'}")


def _basket(folder: Path) -> None:
    items = [{"product": name, "price": price, "quantity": count} for name, price, count in BASKET]
    write(folder, "order.json", json.dumps({"order": "A-1", "customer": {"name": "Kim"}, "items": items}, indent=2))


def _basket_total(outcome: Outcome) -> None:
    outcome.expect_number(sum(price * count for _, price, count in BASKET), within=0.006, what="the order costs")


def _events(folder: Path) -> None:
    total = sum(EVENTS.values())
    kinds = [kind for kind, count in EVENTS.items() for _ in range(count)]
    lines = (json.dumps({"id": 500 + n, "type": kinds[n * 50 % total], "ok": True}) for n in range(total))
    write(folder, "events.jsonl", *lines)


def _event_counts(outcome: Outcome) -> None:
    counts = outcome.data("counts.json")
    expect(counts == EVENTS, f"counts.json holds {json.dumps(counts)[:60]}")


TASKS = [
    Task("json/oldest", ("Who is the oldest person in people.json?",), _people, _oldest),
    Task(
        "json/set_port",
        ("In config.json, change the port of the database to 5433. Leave everything else as it is.",),
        _config,
        _port_changed,
    ),
    Task(
        "json/to_csv",
        (
            "books.json has a list called books; each book has a title, a year and an author with a first and a last "
            "name. Write them to books.csv with the columns title, author_last_name and year.",
        ),
        _books,
        _book_rows,
    ),
    Task(
        "json/total",
        ("order.json lists items with a price and a quantity. What does the whole order cost?",),
        _basket,
        _basket_total,
    ),
    Task(
        "json/lines",
        (
            "Every line of events.jsonl is a JSON object with a type. Count how often each type occurs and save "
            "the counts in counts.json, as an object with the types as keys.",
        ),
        _events,
        _event_counts,
    ),
]
