"""What analysts ask in their first hour: 40 requests about tables, charts, Excel, logs, JSON, dates, PDFs and text."""

from __future__ import annotations

import json
import random
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

from eval.outcome import Missed, Outcome, expect, numbers
from eval.task import Task, nothing, write


class Sale(NamedTuple):
    day: date
    region: str
    product: str
    units: int
    price: float

    @property
    def revenue(self) -> float:
        return self.units * self.price


class Person(NamedTuple):
    name: str
    department: str
    salary: int
    joined: date


class Request(NamedTuple):
    address: str
    hour: int
    path: str
    status: int


_RANDOM = random.Random(27)
REGIONS = ("Coast", "Hills", "Plains", "Valley")
PRICES = {"Kettle": 34.5, "Lamp": 19.9, "Stool": 48.0, "Tray": 12.25}
SALES = [
    Sale(
        date(2024, 1, 1) + timedelta(days=_RANDOM.randrange(182)),
        _RANDOM.choice(REGIONS),
        product := _RANDOM.choice(list(PRICES)),
        _RANDOM.randint(1, 40),
        PRICES[product],
    )
    for _ in range(160)
]
DEPARTMENTS = ("Design", "Finance", "Sales", "Support")
PEOPLE = [
    Person(
        f"{first} {last}",
        _RANDOM.choice(DEPARTMENTS),
        _RANDOM.randrange(31_000, 96_000, 250),
        date(2012, 1, 1) + timedelta(days=_RANDOM.randrange(4200)),
    )
    for first, last in zip(
        "Ada Ben Cora Dan Elif Finn Gaia Hugo Iris Jon Kira Leo Mona Nils Olga Pia Quin Rosa Sven Tara".split(),
        "Abel Bauer Costa Diaz Engel Funk Groot Hahn Ito Jung Klein Lind Mo Sato Novak Ortiz Paul Roth Ude Wu".split(),
        strict=True,
    )
]
REQUESTS = [
    Request(
        _RANDOM.choice(("10.1.0.4", "10.1.0.9", "10.1.0.9", "10.1.7.21")),
        _RANDOM.choice((8, 9, 9, 10, 11, 11, 11, 14)),
        _RANDOM.choice(("/", "/cart", "/login", "/search")),
        _RANDOM.choice((200, 200, 200, 200, 301, 404, 404, 500)),
    )
    for _ in range(240)
]
LEVELS = {"INFO": 131, "WARNING": 37, "ERROR": 23}
TEMPERATURES = [round(4 + 0.11 * day + _RANDOM.uniform(-3, 3), 1) for day in range(60)]
HEIGHTS = [(round(_RANDOM.uniform(150, 195), 1), round(_RANDOM.uniform(-9, 9), 1)) for _ in range(50)]
BODIES = [(height, round(0.9 * height - 88 + noise, 1)) for height, noise in HEIGHTS]
INVOICES = [
    (f"R-{400 + n}", date(2024, 3, 1) + timedelta(days=n * 5 % 61), 80 + n * 37 % 410, n % 3 == 0) for n in range(24)
]
TODAY = date(2024, 4, 1)
BUYERS = [
    ("Ava", "Lyon"),
    ("Bo", "Turin"),
    ("Cy", "Lyon"),
    ("Di", "Graz"),
    ("Ed", "Turin"),
    ("Flo", "Lyon"),
    ("Gil", "Graz"),
]
ORDERS = [
    {
        "id": 900 + n,
        "customer": {"name": name, "city": city},
        "items": [{"sku": f"S{k}", "qty": k, "price": 2.5 * k} for k in range(1, 2 + n % 3)],
        "status": ("paid", "open", "paid", "cancelled")[n % 4],
    }
    for n, (name, city) in enumerate(BUYERS)
]
PHONES = ["(030) 555-0134", "030/555 0172", "030 555-0190", "030-5550111"]
CITIES = [" Lyon", "lyon", "TURIN ", "Turin", "Graz", "graz", " Lyon ", "Turin"]
NOTES = {
    "monday.txt": "Call the bank. TODO: renew the permit.\nThe harvest was good this year.\n",
    "tuesday.txt": "Nothing to report.\n",
    "wednesday.txt": "TODO: order seeds\nWater the beds\nTODO: fix the pump\n",
}
PAGES = [
    ["Delivery note 7731", "Pallets: 14", "Weight: 2,310 kg"],
    ["Total due: EUR 1,846.20", "Payable by 2024-08-30"],
]


# -- files -----------------------------------------------------------------------------------------------------------


def sales(folder: Path) -> None:
    rows = (f"{s.day},{s.region},{s.product},{s.units},{s.price}" for s in SALES)
    write(folder, "sales.csv", "date,region,product,units,price", *rows)


def _people(folder: Path) -> None:
    rows = (f"{p.name},{p.department},{p.salary},{p.joined:%d/%m/%Y}" for p in PEOPLE)
    write(folder, "people.csv", "name,department,salary,joined", *rows)


def _with_gaps(folder: Path) -> None:
    """People with three salaries missing and two rows twice."""
    rows = [f"{p.name},{p.department},{'' if n in (3, 8, 15) else p.salary}" for n, p in enumerate(PEOPLE)]
    write(folder, "staff.csv", "name,department,salary", *rows, rows[2], rows[11])


def _catalogue(folder: Path) -> None:
    sales(folder)
    suppliers = {"Kettle": "Norda", "Lamp": "Lumo", "Stool": "Norda", "Tray": "Vela"}
    write(folder, "suppliers.csv", "product,supplier", *(f"{product},{name}" for product, name in suppliers.items()))


def _access(folder: Path) -> None:
    lines = (
        f'{r.address} - - [05/Mar/2024:{r.hour:02}:{n % 60:02}:07 +0000] "GET {r.path} HTTP/1.1" {r.status} 512'
        for n, r in enumerate(REQUESTS)
    )
    write(folder, "access.log", *lines)


def _service(folder: Path) -> None:
    levels = [level for level, count in LEVELS.items() for _ in range(count)]
    random.Random(3).shuffle(levels)
    write(
        folder,
        "service.log",
        *(f"2024-05-0{1 + n % 9} 10:{n % 60:02}:00 {level} worker {n % 5}: step {n}" for n, level in enumerate(levels)),
    )


def _weather(folder: Path) -> None:
    days = (f"{date(2024, 2, 1) + timedelta(days=n)},{degrees}" for n, degrees in enumerate(TEMPERATURES))
    write(folder, "weather.csv", "day,temperature", *days)


def _bodies(folder: Path) -> None:
    write(folder, "bodies.csv", "height,weight", *(f"{height},{weight}" for height, weight in BODIES))


def _invoices(folder: Path) -> None:
    rows = (f"{number};{due:%d.%m.%Y};{amount},50;{'yes' if paid else 'no'}" for number, due, amount, paid in INVOICES)
    write(folder, "invoices.csv", "invoice;due;amount;paid", *rows)


def _orders(folder: Path) -> None:
    (folder / "orders.json").write_text(json.dumps(ORDERS, indent=1), encoding="utf-8")


def _contacts(folder: Path) -> None:
    write(
        folder, "contacts.csv", "name,phone", *(f"{name},{phone}" for name, phone in zip("ABCD", PHONES, strict=True))
    )


def _visits(folder: Path) -> None:
    write(folder, "visits.csv", "visit,city", *(f"{n},{city}" for n, city in enumerate(CITIES, 1)))


def _notes(folder: Path) -> None:
    for name, text in NOTES.items():
        (folder / "notes").mkdir(exist_ok=True)
        (folder / "notes" / name).write_text(text, encoding="utf-8")


def _workbook(folder: Path) -> None:
    """Two sheets: the sales of the first quarter by month, and the targets."""
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for month in (1, 2, 3):
        sheet = book.create_sheet(f"{date(2024, month, 1):%B}")
        for row in [("region", "units"), *((s.region, s.units) for s in SALES if s.day.month == month)]:
            sheet.append(row)
    book.save(folder / "quarter.xlsx")


def _pdf(folder: Path) -> None:
    """Write a delivery note of two pages."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for lines in PAGES:
        drawn = "BT /F1 14 Tf 72 720 Td " + " 0 -24 Td ".join(f"({line}) Tj" for line in lines) + " ET"
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {len(objects)} 0 R >>"
        )
    objects[1] = (
        f"<< /Type /Pages /Count {len(PAGES)} /Kids [{' '.join(f'{5 + 2 * n} 0 R' for n in range(len(PAGES)))}] >>"
    )
    text, starts = "%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        starts.append(len(text))
        text += f"{number} 0 obj\n{each}\nendobj\n"
    table = "".join(f"{start:010} 00000 n \n" for start in starts)
    text += (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n"
    )
    (folder / "delivery.pdf").write_text(f"{text}startxref\n{text.index('xref')}\n%%EOF\n", encoding="latin-1")


# -- results ---------------------------------------------------------------------------------------------------------


def _sums(key: Callable[[Any], Any], value: Callable[[Any], float], rows: Iterable[Any] = SALES) -> dict[Any, float]:
    sums: dict[Any, float] = defaultdict(float)
    for row in rows:
        sums[key(row)] += value(row)
    return dict(sums)


def _expect_table(outcome: Outcome, name: str, values: dict[str, float], within: float = 0.006) -> None:
    """Expect one row for each key in the CSV file, with the value in another column."""
    rows = outcome.rows(name)
    expect(len(rows) == len(values), f"{name} has {len(rows)} rows, not {len(values)}")
    for key, value in values.items():
        row = next((row for row in rows if key.lower() in {cell.lower() for cell in row.values()}), None)
        expect(row is not None, f"{name} has no row for {key}")
        cells = [float(cell) for cell in (row or {}).values() if re.fullmatch(r"-?\d+(\.\d+)?", cell)]
        expect(any(abs(cell - value) <= within for cell in cells), f"{name} does not say {value:g} for {key}")


def _sheets(outcome: Outcome, name: str) -> dict[str, list[tuple[Any, ...]]]:
    """Read the rows of each sheet of a workbook."""
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    expect((outcome.folder / name).is_file(), f"there is no {name}")
    try:
        book = load_workbook(outcome.folder / name, data_only=True)
    except (InvalidFileException, BadZipFile, OSError, KeyError, ValueError):
        raise Missed(f"{name} is no Excel file") from None
    return {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets}


def _beside(values: dict[str, float], within: float = 0.006) -> Callable[[Outcome], None]:
    def check(outcome: Outcome) -> None:
        for name, value in values.items():
            outcome.expect_beside(name, value, within)

    return check


def _number(value: float, within: float = 0.006) -> Callable[[Outcome], None]:
    return lambda outcome: outcome.expect_number(value, within)


def _table(name: str, values: dict[str, float]) -> Callable[[Outcome], None]:
    return lambda outcome: _expect_table(outcome, name, values)


def _picture(name: str) -> Callable[[Outcome], None]:
    return lambda outcome: outcome.expect_picture(name)


def _pick(right: str, others: Iterable[str], value: float | None = None) -> Callable[[Outcome], None]:
    def check(outcome: Outcome) -> None:
        outcome.expect_pick(right, others)
        if value is not None:
            outcome.expect_number(value, within=0.006)

    return check


UNITS = _sums(lambda s: s.region, lambda s: s.units)
REVENUE = _sums(lambda s: s.product, lambda s: s.revenue)
MONTHS = _sums(lambda s: f"{s.day:%Y-%m}", lambda s: s.revenue)
TOTAL = sum(s.revenue for s in SALES)
SALARIES = {d: statistics.median([p.salary for p in PEOPLE if p.department == d]) for d in DEPARTMENTS}
STATUS = Counter(str(r.status) for r in REQUESTS)
HOURS = Counter(r.hour for r in REQUESTS)
ADDRESSES = Counter(r.address for r in REQUESTS)
OVERDUE = [amount + 0.5 for _, due, amount, paid in INVOICES if due < TODAY and not paid]
PAID = [order for order in ORDERS if order["status"] == "paid"]
_SUPPLIERS = _sums(lambda s: {"Lamp": "Lumo", "Tray": "Vela"}.get(s.product, "Norda"), lambda s: s.units)


def _value(order: dict[str, Any]) -> float:
    return sum(item["qty"] * item["price"] for item in order["items"])


_LINE = statistics.linear_regression([height for height, _ in BODIES], [weight for _, weight in BODIES])


def _growth(outcome: Outcome) -> None:
    """Expect the change; a fall by 5 percent may be written as -5 or as 5."""
    change = 100 * (MONTHS["2024-02"] / MONTHS["2024-01"] - 1)
    expect(
        any(abs(abs(each) - abs(change)) < 0.06 for each in numbers(outcome.shown)),
        f"nothing says {change:.1f} percent",
    )


def _paid(outcome: Outcome) -> None:
    outcome.expect_number(len(PAID), what="the paid orders are")
    outcome.expect_number(sum(map(_value, PAID)), within=0.006, what="they are worth")


def _pivot(outcome: Outcome) -> None:
    cells = _sums(lambda s: (s.region, s.product), lambda s: s.units)
    rows = {next(iter(row.values())): row for row in outcome.rows("pivot.csv")}
    for (region, product), units in cells.items():
        expect(region in rows and product.lower() in rows[region], f"pivot.csv has nothing for {region} and {product}")
        expect(
            float(rows[region][product.lower()] or 0) == units, f"{region} and {product} is not {units:g} in pivot.csv"
        )


def _without_duplicates(outcome: Outcome) -> None:
    rows = outcome.rows("clean.csv")
    expect(len(rows) == len(PEOPLE), f"clean.csv has {len(rows)} rows, not {len(PEOPLE)}")
    expect({row.get("name") for row in rows} == {p.name for p in PEOPLE}, "clean.csv has other names")


def _filled(outcome: Outcome) -> None:
    known = [p.salary for n, p in enumerate(PEOPLE) if n not in (3, 8, 15)]
    median = statistics.median([*known, PEOPLE[2].salary, PEOPLE[11].salary])
    amounts = outcome.amounts("filled.csv", "salary")
    expect(len(amounts) == len(PEOPLE) + 2, f"filled.csv has {len(amounts)} rows")
    expect(all(abs(amounts[n] - median) < 1 for n in (3, 8, 15)), f"the missing salaries are not {median:g}")


def _excel_by_region(outcome: Outcome) -> None:
    rows = [row for sheet in _sheets(outcome, "regions.xlsx").values() for row in sheet]
    for region, units in UNITS.items():
        expect(any(region in row and units in row for row in rows), f"regions.xlsx has no {units:g} for {region}")


def _excel_sheets(outcome: Outcome) -> None:
    sheets = _sheets(outcome, "by_region.xlsx")
    expect(set(REGIONS) <= set(sheets), f"by_region.xlsx has the sheets {', '.join(sheets)}")
    for region in REGIONS:
        count = sum(s.region == region for s in SALES)
        expect(len(sheets[region]) == count + 1, f"the sheet {region} has {len(sheets[region]) - 1} rows, not {count}")


def _excel_to_csv(outcome: Outcome) -> None:
    for month in ("January", "February", "March"):
        name = next(
            (each for each in (f"{month}.csv", f"{month.lower()}.csv") if (outcome.folder / each).is_file()),
            f"{month}.csv",
        )
        count = sum(f"{s.day:%B}" == month for s in SALES)
        expect(len(outcome.rows(name)) == count, f"{name} has {len(outcome.rows(name))} rows, not {count}")


def _iso_dates(outcome: Outcome) -> None:
    column = outcome.column("people_iso.csv", "joined")
    expect(
        [cell[:10] for cell in column] == [f"{p.joined}" for p in PEOPLE], "the dates in people_iso.csv are not right"
    )


def _phones(outcome: Outcome) -> None:
    digits = outcome.column("phones.csv", "phone")
    wanted = [re.sub(r"\D", "", phone) for phone in PHONES]
    expect(digits == wanted, f"the phones are {', '.join(digits)}"[:80])


def _cities(outcome: Outcome) -> None:
    for city, count in Counter(city.strip().title() for city in CITIES).items():
        outcome.expect_beside(city, count)


def _flat_orders(outcome: Outcome) -> None:
    _expect_table(
        outcome, "orders.csv", {order["customer"]["name"]: float(len(order["items"])) for order in ORDERS}, 1e9
    )
    cities = outcome.column("orders.csv", "city")
    expect(cities == [order["customer"]["city"] for order in ORDERS], "the cities in orders.csv are not right")


def _todo(outcome: Outcome) -> None:
    lines = "\n".join(outcome.lines("todo.txt"))
    for task in ("renew the permit", "order seeds", "fix the pump"):
        expect(task in lines, f"todo.txt has no {task}")
    expect("Water" not in lines and "harvest" not in lines, "todo.txt has more than the tasks")


def _delivery(outcome: Outcome) -> None:
    outcome.expect_number(1846.20, what="the total is")
    expect(re.search(r"2024-08-30|August 30|30 August|30\.08\.2024", outcome.shown), "nothing says 2024-08-30")


def _running(outcome: Outcome) -> None:
    column = [float(row) for row in outcome.column("weather_7.csv", "average") if row not in ("", "nan")]
    means = [statistics.fmean(TEMPERATURES[n - 6 : n + 1]) for n in range(6, len(TEMPERATURES))]
    expect(len(column) >= len(means), f"weather_7.csv has {len(column)} averages")
    close = all(abs(one - other) < 0.06 for one, other in zip(column[-len(means) :], means, strict=True))
    expect(close, "the averages in weather_7.csv are not right")


_LONGEST = max(PEOPLE, key=lambda p: (TODAY - p.joined).days)

# Name, request, files, check.
REQUESTED: tuple[tuple[str, str, Callable[[Path], None], Callable[[Outcome], None]], ...] = (
    ("units", "total units per region in sales.csv", sales, _beside(UNITS)),
    ("revenue", "What is the total revenue (units times price) in sales.csv?", sales, _number(TOTAL, 0.06)),
    (
        "best_product",
        "Which product in sales.csv brought the most revenue (units * price), and how much?",
        sales,
        _pick(max(REVENUE, key=lambda p: REVENUE[p]), PRICES, max(REVENUE.values())),
    ),
    (
        "monthly",
        "Sum up the revenue (units * price) per month in sales.csv and save it as monthly.csv "
        "with the columns month and revenue, the month as 2024-01.",
        sales,
        _table("monthly.csv", MONTHS),
    ),
    (
        "share",
        "What percentage of all units in sales.csv was sold in the region Coast?",
        sales,
        _number(100 * UNITS["Coast"] / sum(UNITS.values()), 0.06),
    ),
    (
        "growth",
        "By how many percent did the revenue (units * price) in sales.csv change from January to February 2024?",
        sales,
        _growth,
    ),
    (
        "pivot",
        "Make a pivot table of the units in sales.csv, with regions as rows and products as "
        "columns, and save it as pivot.csv.",
        sales,
        _pivot,
    ),
    (
        "salaries",
        "What is the median salary in each department? The data is in people.csv.",
        _people,
        _beside(SALARIES),
    ),
    (
        "highest",
        "Who earns the most in people.csv?",
        _people,
        _pick(max(PEOPLE, key=lambda p: p.salary).name, [p.name for p in PEOPLE]),
    ),
    (
        "join",
        "suppliers.csv says which supplier each product comes from. How many units of each "
        "supplier's products are in sales.csv?",
        _catalogue,
        _beside(_SUPPLIERS),
    ),
    (
        "bar_chart",
        "Draw a bar chart of the total units per region in sales.csv and save it as units.png.",
        sales,
        _picture("units.png"),
    ),
    (
        "line_chart",
        "Plot the revenue per month (units * price) from sales.csv as a line and save it to revenue.png",
        sales,
        _picture("revenue.png"),
    ),
    (
        "scatter",
        "Make a scatter plot of height and weight in bodies.csv. Save it as bodies.png.",
        _bodies,
        _picture("bodies.png"),
    ),
    (
        "pie",
        "I need a pie chart with the share of each product in the units of sales.csv, as products.png.",
        sales,
        _picture("products.png"),
    ),
    (
        "histogram",
        "Create a histogram of the salaries in people.csv and save it as salaries.png.",
        _people,
        _picture("salaries.png"),
    ),
    (
        "box_plot",
        "Draw a box plot of the salaries by department from people.csv and save it to departments.png.",
        _people,
        _picture("departments.png"),
    ),
    (
        "temperature",
        "Plot the temperature in weather.csv together with its 7-day moving average, and save the "
        "picture as weather.png.",
        _weather,
        _picture("weather.png"),
    ),
    (
        "excel_sum",
        "quarter.xlsx has a sheet for each month. How many units are in all the sheets together?",
        _workbook,
        _number(sum(s.units for s in SALES if s.day.month <= 3), 0),
    ),
    (
        "excel_out",
        "Write the total units per region from sales.csv to an Excel file called regions.xlsx.",
        sales,
        _excel_by_region,
    ),
    (
        "excel_sheets",
        "Save the rows of sales.csv to by_region.xlsx, with one sheet per region that has the region's name.",
        sales,
        _excel_sheets,
    ),
    (
        "excel_to_csv",
        "Convert each sheet of quarter.xlsx into a CSV file with the sheet's name.",
        _workbook,
        _excel_to_csv,
    ),
    (
        "log_levels",
        "How many lines of each level (INFO, WARNING, ERROR) are in service.log?",
        _service,
        _beside({k: float(v) for k, v in LEVELS.items()}),
    ),
    (
        "log_address",
        "Which IP address made the most requests in access.log, and how many?",
        _access,
        _pick(ADDRESSES.most_common(1)[0][0], ADDRESSES, ADDRESSES.most_common(1)[0][1]),
    ),
    (
        "log_status",
        "Count the requests in access.log by HTTP status code.",
        _access,
        _beside({k: float(v) for k, v in STATUS.items()}),
    ),
    (
        "log_hour",
        "In which hour were the most requests in access.log, and how many were there?",
        _access,
        _number(max(HOURS.values()), 0),
    ),
    (
        "json_total",
        "What is the total value of all orders in orders.json? An item's value is qty times price.",
        _orders,
        _number(sum(map(_value, ORDERS))),
    ),
    (
        "json_paid",
        "How many orders in orders.json are paid, and what are they worth together (qty * price of their items)?",
        _orders,
        _paid,
    ),
    (
        "json_to_csv",
        "Turn orders.json into orders.csv with one row per order and the columns id, name, city and status.",
        _orders,
        _flat_orders,
    ),
    (
        "overdue",
        "The invoices in invoices.csv use semicolons and German dates and decimals. How much is "
        "unpaid and was due before 1 April 2024?",
        _invoices,
        _number(sum(OVERDUE)),
    ),
    (
        "longest",
        "Who in people.csv joined first? The dates are day/month/year.",
        _people,
        _pick(_LONGEST.name, [p.name for p in PEOPLE]),
    ),
    (
        "days",
        "How many days are there from 14 February 2024 to 3 November 2025?",
        nothing,
        _number((date(2025, 11, 3) - date(2024, 2, 14)).days, 0),
    ),
    (
        "iso_dates",
        "Change the dates in the column joined of people.csv from day/month/year to YYYY-MM-DD "
        "and save the table as people_iso.csv.",
        _people,
        _iso_dates,
    ),
    (
        "duplicates",
        "Remove the duplicate rows from staff.csv and save the rest as clean.csv.",
        _with_gaps,
        _without_duplicates,
    ),
    (
        "gaps",
        "Fill the missing salaries in staff.csv with the median salary and save the table as filled.csv.",
        _with_gaps,
        _filled,
    ),
    (
        "phones",
        "Clean the phone numbers in contacts.csv so that only digits are left, and save the table as phones.csv.",
        _contacts,
        _phones,
    ),
    ("cities", "How often does each city occur in visits.csv? Ignore spaces and upper case.", _visits, _cities),
    (
        "regression",
        "Fit a straight line to weight over height in bodies.csv. What is its slope?",
        _bodies,
        _number(_LINE.slope),
    ),
    (
        "moving_average",
        "Compute the 7-day moving average of the temperature in weather.csv and save it as "
        "weather_7.csv with the columns day and average.",
        _weather,
        _running,
    ),
    ("pdf", "What is the total due in delivery.pdf, and by when is it payable?", _pdf, _delivery),
    (
        "todo",
        "Collect all lines that start with TODO or contain it, from the text files in the folder notes, in todo.txt.",
        _notes,
        _todo,
    ),
)
TASKS = [Task(f"first_hour/{name}", (words,), prepare, check) for name, words, prepare, check in REQUESTED]
