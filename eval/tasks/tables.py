"""CSV files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from eval.outcome import Outcome, expect, numbers
from eval.task import Task, write

PRICES = [12.5, 7.99, 103.2, 45.0, 19.95, 64.3, 88.88, 5.49, 31.0]
REGIONS = ("North", "South", "East", "West")
SALES = [(REGIONS[number * 7 % 4], 40 + number * number * 13 % 191) for number in range(1, 31)]
CUSTOMERS = ("Adams", "Baker", "Clark", "Dixon", "Evans")
ORDERS = [(number, CUSTOMERS[number * 7 % 11 % 5], 20 + number * 97 % 461) for number in range(1, 41)]
GAPS = {"age": 14, "income": 23, "city": 9}
ITEMS = [("bolt", 120, 0.25), ("hinge", 14, 3.4), ("lamp", 6, 21.95), ("screw", 400, 0.05), ("shelf", 3, 54.5)]
CLIENTS = {101: "Lena", 102: "Marco", 103: "Nadia", 104: "Oskar"}
PURCHASES = [(101, 45), (103, 120), (101, 60), (102, 15), (104, 99), (103, 35), (102, 70), (101, 8)]
LABELS = ["$1,234.50", "$89.99", "$12,000.00", "$450.25", "$7.10", "$3,316.75"]


def sales(folder: Path) -> None:
    write(folder, "sales.csv", "region,amount", *(f"{region},{amount}" for region, amount in SALES))


def totals_by_region() -> Counter[str]:
    totals: Counter[str] = Counter()
    for region, amount in SALES:
        totals[region] += amount
    return totals


def _products(folder: Path) -> None:
    write(folder, "products.csv", "name,price", *(f"item {chr(97 + n)},{price}" for n, price in enumerate(PRICES)))


def _average(outcome: Outcome) -> None:
    outcome.expect_number(sum(PRICES) / len(PRICES), within=0.006, what="the average is")


def _by_region(outcome: Outcome) -> None:
    for region, total in totals_by_region().items():
        outcome.expect_beside(region, total)


def _orders(folder: Path) -> None:
    lines = (f"{number},{customer},{amount}" for number, customer, amount in ORDERS)
    write(folder, "orders.csv", "order,customer,amount", *lines)


def _filtered(outcome: Outcome) -> None:
    wanted = [(number, amount) for number, _, amount in ORDERS if amount > 250]
    big = list(zip(*(outcome.amounts("big_orders.csv", name) for name in ("order", "amount")), strict=True))
    expect(sorted(big) == wanted, f"big_orders.csv has {len(big)} rows, or not the right ones")
    expect(set(outcome.column("big_orders.csv", "customer")) <= set(CUSTOMERS), "the customers are not right")


def _best_customer(outcome: Outcome) -> None:
    totals: Counter[str] = Counter()
    for _, customer, amount in ORDERS:
        totals[customer] += amount
    outcome.expect_pick(max(totals, key=totals.__getitem__), CUSTOMERS)


def _survey(folder: Path) -> None:
    rows = []
    for number in range(60):
        age = "" if number % 4 == 1 and number < 4 * GAPS["age"] else str(20 + number % 47)
        income = "" if number < GAPS["income"] else str(1800 + number * 31)
        city = "" if number >= 60 - GAPS["city"] else ("Oslo", "Rome", "Lima")[number % 3]
        rows.append(f"{1000 + number},{age},{income},{city}")
    write(folder, "survey.csv", "person,age,income,city", *rows)


def _gaps(outcome: Outcome) -> None:
    for name, count in GAPS.items():
        outcome.expect_beside(name, count)


def _items(folder: Path) -> None:
    lines = (f"{name},{quantity},{price}" for name, quantity, price in ITEMS)
    write(folder, "items.csv", "item,quantity,unit_price", *lines)


def _with_total(outcome: Outcome) -> None:
    expect(outcome.column("items_with_total.csv", "item") == [name for name, _, _ in ITEMS], "the items changed")
    totals = outcome.amounts("items_with_total.csv", "total")
    right = all(abs(total - row[1] * row[2]) < 0.006 for total, row in zip(totals, ITEMS, strict=True))
    expect(right, "the totals are not right")


def _clients(folder: Path) -> None:
    write(folder, "customers.csv", "customer_id,name", *(f"{number},{name}" for number, name in CLIENTS.items()))
    write(folder, "orders.csv", "customer_id,amount", *(f"{number},{amount}" for number, amount in PURCHASES))


def _joined(outcome: Outcome) -> None:
    wanted: Counter[str] = Counter()
    for number, amount in PURCHASES:
        wanted[CLIENTS[number]] += amount
    names = outcome.column("totals.csv", "name")
    totals = dict(zip(names, outcome.amounts("totals.csv", "total"), strict=True))
    expect(totals == wanted and len(names) == len(totals), "the totals are not right")


def _labels(folder: Path) -> None:
    write(folder, "prices.csv", "item,price", *(f'item {chr(97 + n)},"{label}"' for n, label in enumerate(LABELS)))


def _sum_of_labels(outcome: Outcome) -> None:
    outcome.expect_number(sum(max(numbers(label)) for label in LABELS), within=0.006, what="the sum is")


TASKS = [
    Task("csv/average", ("What's the average price in products.csv?",), _products, _average),
    Task("csv/by_region", ("Using sales.csv, what is the total amount for each region?",), sales, _by_region),
    Task(
        "csv/filter",
        ("Take the rows of orders.csv with an amount above 250 and save them as big_orders.csv.",),
        _orders,
        _filtered,
    ),
    Task(
        "csv/best_customer",
        ("Which customer spent the most in total, according to orders.csv?",),
        _orders,
        _best_customer,
    ),
    Task(
        "csv/missing",
        ("There are gaps in survey.csv. How many values are missing in each column?",),
        _survey,
        _gaps,
    ),
    Task(
        "csv/new_column",
        (
            "items.csv has a quantity and a unit_price. Add a column called total, the product of the two, "
            "and save the result as items_with_total.csv.",
        ),
        _items,
        _with_total,
    ),
    Task(
        "csv/join",
        (
            "customers.csv and orders.csv have customer_id in common. Work out the total amount per customer and "
            "save it as totals.csv with two columns, name and total.",
        ),
        _clients,
        _joined,
    ),
    Task(
        "csv/currency",
        ("The prices in prices.csv are written like $1,234.50. Can you add them all up?",),
        _labels,
        _sum_of_labels,
    ),
]
