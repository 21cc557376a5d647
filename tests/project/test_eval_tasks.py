"""Checks of the evaluation tasks: a correct solution passes, an untouched folder and a near miss fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from eval.outcome import Missed, Outcome, numbers
from eval.task import Task
from eval.tasks import TASKS

from project import first_hour_solutions

SHELL = "#!shell\n"

# One block each, in Python or shell; its output is what the user sees.
SOLUTIONS = {
    **first_hour_solutions.SOLUTIONS,
    "files/rename": """
from pathlib import Path
for path in Path('.').glob('*.txt'):
    path.rename(path.with_suffix('.md'))
""",
    "files/largest": """
import os
name = max(os.listdir(), key=os.path.getsize)
print(f'{name}: {os.path.getsize(name):,} bytes')
""",
    "files/by_extension": SHELL + "for type in csv txt log; do mkdir $type; mv *.$type $type/; done",
    "files/empty": SHELL + "find inbox -type f -empty -delete",
    "files/count": SHELL + "find project -name '*.py' | wc -l",
    "files/zip": """
import glob, zipfile
with zipfile.ZipFile('backup.zip', 'w') as archive:
    for name in glob.glob('*.csv'):
        archive.write(name)
""",
    "text/frequent": """
import re
from collections import Counter
print(Counter(re.findall(r'[a-z]+', open('speech.txt').read().lower())).most_common(1))
""",
    "text/emails": """
import re
found = re.findall(r'[\\w.]+@[\\w.]+\\w', open('contacts.txt').read())
print(*sorted(set(found)), sep='\\n', file=open('emails.txt', 'w'))
""",
    "text/replace": SHELL + "sed -i s/colour/color/g letter.txt",
    "text/errors": SHELL + "grep ERROR app.log > errors.txt; wc -l < errors.txt",
    "csv/average": """
import csv
prices = [float(row['price']) for row in csv.DictReader(open('products.csv'))]
print(f'The average is {sum(prices) / len(prices):.2f}')
""",
    "csv/by_region": SHELL + "awk -F, 'NR > 1 {t[$1] += $2} END {for (r in t) print r, t[r]}' sales.csv",
    "csv/filter": SHELL + "awk -F, 'NR == 1 || $3 > 250' orders.csv > big_orders.csv",
    "csv/best_customer": """
import csv
from collections import Counter
totals = Counter()
for row in csv.DictReader(open('orders.csv')):
    totals[row['customer']] += int(row['amount'])
print(dict(totals))
print(totals.most_common(1)[0][0], file=open('/dev/stderr', 'w'))
""",
    "csv/missing": """
import csv
rows = list(csv.DictReader(open('survey.csv')))
for name in rows[0]:
    print(name, sum(not row[name] for row in rows))
""",
    "csv/new_column": """
import csv
with open('items_with_total.csv', 'w') as file:
    print('item,quantity,unit_price,total', file=file)
    for row in csv.DictReader(open('items.csv')):
        print(*row.values(), int(row['quantity']) * float(row['unit_price']), sep=',', file=file)
""",
    "csv/join": """
import csv
from collections import Counter
totals = Counter()
for row in csv.DictReader(open('orders.csv')):
    totals[row['customer_id']] += float(row['amount'])
with open('totals.csv', 'w') as file:
    print('name,total', file=file)
    for row in csv.DictReader(open('customers.csv')):
        print(row['name'], totals[row['customer_id']], sep=',', file=file)
""",
    "csv/currency": """
import csv
print(sum(float(row['price'].replace('$', '').replace(',', '')) for row in csv.DictReader(open('prices.csv'))))
""",
    **{
        f"questions/{name}": "import pandas as pd\nt = pd.read_csv('trips.csv')\n" + code
        for name, code in {
            "mean": "print(round(t.minutes.mean(), 2))",
            "median": "print(t.km.median())",
            "deviation": "print(round(t.minutes.std(), 2))",
            "filtered": "print(round(t[t.member == 'yes'].minutes.mean(), 2))",
            "difference": "m = t.groupby('member').minutes.mean(); print(round(abs(m['yes'] - m['no']), 2))",
            "share": "print(round((t.minutes > 30).mean() * 100, 1), '%')",
            "total": "print(round(t[t.month == 'June'].km.sum(), 2))",
            "best_group": "print(round(t.groupby('station').minutes.mean().max(), 2))",
            "spread_of_groups": "m = t.groupby('station').minutes.mean(); print(round(m.max() - m.min(), 2))",
            "correlation": "print(round(t.age.corr(t.minutes), 3))",
            "quartile": "print(round(t.minutes.quantile(0.75), 2))",
            "computed": "print(round((t.km / t.minutes * 60).mean(), 2))",
            "two_filters": "print(round(t[(t.month == 'July') & (t.station == 'Park')].km.mean(), 3))",
            "longest": "print(t.loc[t.km.idxmax(), 'age'])",
        }.items()
    },
    **{
        f"questions/{name}": "import pandas as pd\nh = pd.read_csv('houses.csv', sep=';')\n" + code
        for name, code in {
            "gaps_mean": "print(round(h.area.mean(), 2))",
            "gaps_count": "print(h.price.isna().sum())",
            "filled": "print(round(h.price.fillna(h.price.median()).mean(), 2))",
            "group_median": "print(h[h.district == 'Old Town'].price.median())",
            "ratio": "k = h.dropna(); print(round((k.price / k.area).mean(), 2))",
            "z_score": "print(round((h.price.max() - h.price.mean()) / h.price.std(), 3))",
        }.items()
    },
    "json/oldest": """
import json
print(max(json.load(open('people.json')), key=lambda person: person['age'])['name'])
""",
    "json/set_port": """
import json
config = json.load(open('config.json'))
config['database']['port'] = 5433
json.dump(config, open('config.json', 'w'))
""",
    "json/to_csv": """
import csv, json
with open('books.csv', 'w', newline='') as file:
    writer = csv.writer(file)
    writer.writerow(['title', 'author_last_name', 'year'])
    for book in json.load(open('books.json'))['books']:
        writer.writerow([book['title'], book['author']['last'], book['year']])
""",
    "json/total": """
import json
print(sum(item['price'] * item['quantity'] for item in json.load(open('order.json'))['items']))
""",
    "json/lines": """
import json
from collections import Counter
json.dump(Counter(json.loads(line)['type'] for line in open('events.jsonl')), open('counts.json', 'w'))
""",
    "dates/between": """
from datetime import date
print((date(2024, 11, 2) - date(2021, 3, 14)).days, 'days')
""",
    "dates/weekday": SHELL + "LC_ALL=C date -d 2031-08-19 +%A",
    "dates/latest": """
import csv
print(max(csv.DictReader(open('visits.csv')), key=lambda row: row['date'].split('/')[::-1]))
""",
    "dates/per_month": """
import csv
from collections import Counter
counts = Counter(row['date'][:7] for row in csv.DictReader(open('bookings.csv')))
print('month,count', *(f'{month},{counts[month]}' for month in sorted(counts)), sep='\\n', file=open('monthly.csv', 'w'))
""",
    "plots/line": """
import csv
from matplotlib import pyplot
rows = list(csv.DictReader(open('weather.csv')))
pyplot.plot([row['day'] for row in rows], [float(row['temperature']) for row in rows])
pyplot.savefig('weather.png')
""",
    "plots/bars": """
import csv
from matplotlib import pyplot
rows = list(csv.DictReader(open('sales.csv')))
regions = sorted({row['region'] for row in rows})
pyplot.bar(regions, [sum(int(row['amount']) for row in rows if row['region'] == region) for region in regions])
pyplot.savefig('regions.png')
""",
    "plots/histogram": """
import csv
from matplotlib import pyplot
pyplot.hist([int(row['score']) for row in csv.DictReader(open('scores.csv'))], bins=10)
pyplot.savefig('scores.png')
""",
    "plots/curve": """
import numpy
from matplotlib import pyplot
x = numpy.linspace(0, 10, 200)
pyplot.figure(figsize=(8, 6), dpi=100)
pyplot.plot(x, numpy.sin(x))
pyplot.savefig('sine.png')
""",
    "shell/script": SHELL + "chmod +x greet.sh && ./greet.sh",
    "shell/tree": SHELL + "mkdir -p project/src project/tests project/docs && touch project/README.md",
    "shell/addresses": SHELL + "cut -d' ' -f1 access.log | sort -u | wc -l",
    "steps/dataframe": """
import csv, statistics
amounts = [float(row['amount']) for row in csv.DictReader(open('deliveries.csv'))]
print(len(amounts), 'rows, median', statistics.median(amounts))
""",
    "steps/function": """
print([round((degrees - 32) * 5 / 9, 1) for degrees in (98.6, 71.3, -12.5)])
""",
    "steps/bad_lines": """
print(sum(float(line) for line in open('readings.txt') if line.strip() not in ('', 'n/a')))
""",
    "steps/encoding": """
import csv
rows = csv.DictReader(open('kosten.csv', encoding='latin-1'), delimiter=';')
print(f"{sum(float(row['Betrag']) for row in rows):,.2f} EUR")
""",
    "steps/database": """
import sqlite3
print(sqlite3.connect('shop.db').execute('select count(*), sum(amount) from orders').fetchone())
""",
    "steps/primes": """
primes = [n for n in range(2, 200) if all(n % d for d in range(2, n))]
print(*primes, sep='\\n', file=open('primes.txt', 'w'))
print(sum(primes))
""",
}

# Almost correct solutions.
NEAR_MISSES = {
    **first_hour_solutions.NEAR_MISSES,
    "files/rename": SHELL + "for name in *.txt; do cp $name ${name%.txt}.md; done",
    "files/largest": SHELL + "ls -l",
    "files/empty": SHELL + "rm -r inbox; mkdir inbox",
    "files/count": SHELL + "ls project/*.py | wc -l",
    "files/zip": SHELL + "touch backup.zip",
    "text/frequent": SHELL + "tr -d . < speech.txt | tr A-Z a-z | tr ' ' '\\n' | sort | uniq -c | sort -n",
    "text/emails": SHELL + "grep -o '[^ ]*@[^ ]*' contacts.txt > emails.txt",
    "text/replace": "open('letter.txt', 'w').write('color')",
    "text/errors": SHELL + "grep ERROR app.log > errors.txt; echo done",
    "csv/average": SHELL + "cat products.csv",
    "csv/by_region": SHELL + "cat sales.csv",
    "csv/filter": SHELL + "awk -F, 'NR == 1 || $3 >= 200' orders.csv > big_orders.csv",
    "csv/best_customer": SHELL + "cat orders.csv",
    "csv/missing": SHELL + "cat survey.csv",
    "csv/new_column": SHELL + "cp items.csv items_with_total.csv",
    "csv/join": SHELL + "echo name,total > totals.csv; echo Lena,45 >> totals.csv",
    "csv/currency": SHELL + "cat prices.csv",
    **dict.fromkeys(
        [f"questions/{name}" for name in ("mean", "filtered", "correlation", "quartile", "ratio")],
        SHELL + "cat *.csv; awk -F'[,;]' 'NR > 1 {s += $3; n++} END {print s, n, s / (n + 1)}' *.csv",
    ),
    "json/oldest": SHELL + "cat people.json",
    "json/set_port": SHELL + 'sed -i \'s/"port": .*/"port": 5433/\' config.json',
    "json/to_csv": SHELL + "echo title,author_last_name,year > books.csv",
    "json/total": "print(49.9 + 189.0 + 7.25 + 320.5)",
    "json/lines": "import json; json.dump(['login', 'search'], open('counts.json', 'w'))",
    "dates/between": "print(3 * 365)",
    "dates/weekday": "print('Monday, Tuesday, Wednesday, Thursday, Friday')",
    "dates/latest": SHELL + "tail -n +2 visits.csv | sort -t, -k2 | tail -1",
    "dates/per_month": SHELL + "cut -d, -f2 bookings.csv | cut -c1-7 | sort | uniq -c > monthly.csv",
    "plots/line": "from matplotlib import pyplot; pyplot.figure().savefig('weather.png')",
    "plots/bars": "from matplotlib import pyplot; pyplot.axes(); pyplot.savefig('regions.png')",
    "plots/histogram": "open('scores.png', 'w').write('a histogram')",
    "plots/curve": "from matplotlib import pyplot; pyplot.plot([0, 1]); pyplot.savefig('sine.png', dpi=50)",
    "shell/script": SHELL + "chmod +x greet.sh; cat greet.sh",
    "shell/tree": SHELL + "mkdir -p project/src project/tests project/docs; echo '# Project' > project/README.md",
    "shell/addresses": SHELL + "cut -d' ' -f1 access.log | sort | uniq -c",
    "steps/dataframe": SHELL + "cat deliveries.csv",
    "steps/function": "print('def to_celsius(degrees): return round((degrees - 32) * 5 / 9, 1)')",
    "steps/bad_lines": SHELL + "cat readings.txt",
    "steps/encoding": SHELL + "cat kosten.csv",
    "steps/database": SHELL + "sqlite3 shop.db .tables || file shop.db",
    "steps/primes": "print(*range(2, 200), sep='\\n', file=open('primes.txt', 'w')); print(4227)",
}


def run_solution(code: str, folder: Path) -> Outcome:
    """Run the code in the folder. Returns the outcome as the messages of a conversation."""
    command = ["bash", "-c", code] if code.startswith(SHELL) else [sys.executable, "-c", code]
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "MPLBACKEND": "agg"}
    ran = subprocess.run(command, cwd=folder, capture_output=True, env=env, timeout=60)
    block = {"role": "assistant", "type": "code", "format": "python", "content": code}
    output = {"role": "computer", "type": "console", "format": "output", "content": ran.stdout.decode(errors="replace")}
    said = {"role": "assistant", "type": "message", "content": ran.stderr.decode(errors="replace")}
    return Outcome(folder, [block, output, said])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


def in_order(tasks: list[Task]) -> list[object]:
    """Parameters with one task of each kind; `make test-full` runs all."""
    first = {task.kind: task.name for task in reversed(TASKS)}.values()
    marks = {task.name: [] if task.name in first else [pytest.mark.full] for task in tasks}
    return [pytest.param(task, id=task.name, marks=marks[task.name]) for task in tasks]


def test_there_are_a_hundred_tasks_with_unique_names() -> None:
    assert len(TASKS) == 100
    assert len({task.name for task in TASKS}) == 100
    assert len({task.kind for task in TASKS}) == 10
    assert sum(task.kind == "first_hour" for task in TASKS) == 40
    assert sum(task.kind == "questions" for task in TASKS) == 20
    assert sum(len(task.words) > 1 for task in TASKS) >= 3


@pytest.mark.parametrize("task", in_order(TASKS))
def test_a_correct_solution_passes(task: Task, folder: Path) -> None:
    task.prepare(folder)
    assert task.verdict(run_solution(SOLUTIONS[task.name], folder)) == ""


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_an_untouched_folder_fails(task: Task, folder: Path) -> None:
    task.prepare(folder)
    assert task.verdict(Outcome(folder, []))


@pytest.mark.full
@pytest.mark.parametrize("task", in_order([task for task in TASKS if task.name in NEAR_MISSES]))
def test_a_near_miss_fails(task: Task, folder: Path) -> None:
    task.prepare(folder)
    assert task.verdict(run_solution(NEAR_MISSES[task.name], folder))


def test_numbers_are_found_in_any_format() -> None:
    assert {1234.5, -7.0, 3000.0, 42.0} <= numbers("1,234.50 or -7, then 3 000 and (42)")
    assert 0.42 in numbers("42 is 4.2e-1 of 100")
    assert 1234.0 not in numbers("1 23 4")


def test_the_last_message_decides_a_pick(folder: Path) -> None:
    listing = {"role": "computer", "type": "console", "content": "Anna 3\nBob 9"}
    answer = {"role": "assistant", "type": "message", "content": "It is Bob."}
    Outcome(folder, [listing, answer]).expect_pick("Bob", ["Anna", "Bob"])
    with pytest.raises(Missed):
        Outcome(folder, [listing]).expect_pick("Bob", ["Anna", "Bob"])
    with pytest.raises(Missed):
        Outcome(folder, [listing, answer]).expect_pick("Anna", ["Anna", "Bob"])
