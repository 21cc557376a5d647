"""Draw the screenshots in docs/images: the real program on a pseudo-terminal, with a scripted model over HTTP.

    python scripts/screenshot.py [NAME ...] [--png FOLDER]

Each scene plays like the tests in tests/terminal. Then the screen is written as a self-contained SVG file.
`--png` also renders the SVG files with Chromium, for review.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from pexpect import ExceptionPexpect

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from model_server import ModelServer, error, text, tool_call  # noqa: E402  (needs the path above)
from terminal.person import ENTER, Person, someone  # noqa: E402

CARD, APPLY = "Or say what to change:", "Apply these changes?"

# -- drawing -----------------------------------------------------------------------------------------------------

CELL, LINE, MARGIN, BAR = 8.4, 18, 14, 30
INK, PAPER = "#d8dee9", "#1e222a"
NAMED = {
    "black": "#3b4252", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b", "blue": "#61afef",
    "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d8dee9",
    "brightblack": "#7f8899", "brightred": "#ff7b86", "brightgreen": "#b5e890", "brightbrown": "#ffd68a",
    "brightblue": "#82c4ff", "brightmagenta": "#dd8ff0", "brightcyan": "#7fdbe6", "brightwhite": "#ffffff",
}  # fmt: skip
# Each cell of an image is two pixels, which text would draw with gaps.
HALVES = {"▀": 0, "▄": LINE / 2, "█": 0}


FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
WINDOW = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">
<title>{title}</title>
<rect width="{width:g}" height="{height:g}" rx="8" fill="{paper}"/>
<circle cx="18" cy="15" r="5" fill="#e06c75"/>
<circle cx="36" cy="15" r="5" fill="#e5c07b"/>
<circle cx="54" cy="15" r="5" fill="#98c379"/>
<text x="{middle:g}" y="19" fill="#7f8899" text-anchor="middle" font-family="sans-serif" font-size="12">{title}</text>
<g font-family="{font}" font-size="14" transform="translate({margin},{bar})">
{rows}
</g>
</svg>
"""


def svg(screen: Any, title: str) -> str:
    """Draw the screen without empty rows at the end, in a window with a title."""
    rows = [[screen.buffer[y][x] for x in range(screen.columns)] for y in range(screen.lines)]
    while rows and not any(cell.data.strip() or cell.bg != "default" for cell in rows[-1]):
        rows.pop()
    width = screen.columns * CELL + 2 * MARGIN
    drawn = "\n".join(part for y, row in enumerate(rows) for part in _row(row, y * LINE))
    return WINDOW.format(
        width=width,
        height=len(rows) * LINE + BAR + MARGIN,
        middle=width / 2,
        title=escape(title),
        paper=PAPER,
        font=FONT,
        margin=MARGIN,
        bar=BAR,
        rows=drawn,
    )


def _row(row: list[Any], top: float) -> Iterator[str]:
    x = 0
    for (ink, paper, bold, italic, underlined), cells in groupby(row, _look):
        shown = "".join(cell.data for cell in cells)
        left, wide = x * CELL, len(shown) * CELL
        x += len(shown)
        if paper != PAPER:
            yield _rectangle(left, top, wide, LINE, paper)
        if not shown.strip():
            continue
        if set(shown) <= HALVES.keys():
            yield _rectangle(left, top + HALVES[shown[0]], wide, LINE if shown[0] == "█" else LINE / 2, ink)
            continue
        style = ' font-weight="bold"' * bold + ' font-style="italic"' * italic
        style += ' text-decoration="underline"' * underlined
        start = left + (len(shown) - len(shown.lstrip())) * CELL
        shown = shown.strip()
        label = escape(shown).replace(" ", "\u00a0")  # otherwise several spaces collapse
        size = f'textLength="{len(shown) * CELL:g}" lengthAdjust="spacingAndGlyphs"'
        yield f'<text x="{start:g}" y="{top + 13.5:g}" fill="{ink}" {size}{style}>{label}</text>'


def _rectangle(left: float, top: float, wide: float, tall: float, color: str) -> str:
    """Draw a rectangle that is slightly enlarged, so that no gap shows between two."""
    size = f'width="{wide + 0.3:g}" height="{tall + 0.3:g}"'
    return f'<rect x="{left:g}" y="{top:g}" {size} fill="{color}"/>'


def _look(cell: Any) -> tuple[str, str, bool, bool, bool]:
    ink, paper = _color(cell.fg, INK), _color(cell.bg, PAPER)
    if cell.reverse:
        ink, paper = paper, ink
    return ink, paper, cell.bold, cell.italics, cell.underscore


def _color(name: str, default: str) -> str:
    return default if name == "default" else NAMED.get(name, f"#{name}")


# -- scenes ------------------------------------------------------------------------------------------------------

SALES = """\
import pandas as pd

sales = pd.read_csv("sales.csv")
totals = sales.groupby("region")["amount"].agg(["count", "sum", "mean"]).round(1)
totals.to_csv("totals.csv")
totals"""
CLEAN = """\
import pandas as pd

sales = pd.read_csv("sales.csv")
sales = sales.dropna(subset=["amount"])
sales["amount"] = sales["amount"].abs()
sales["month"] = pd.to_datetime(sales["date"]).dt.month
sales.to_csv("sales.csv", index=False)"""
CHART = """\
import matplotlib.pyplot as plt
import pandas as pd

sales = pd.read_csv("sales.csv")
sales["month"] = pd.to_datetime(sales["date"]).dt.month
sales.groupby("month")["amount"].sum().plot.bar(title="Sales by month", figsize=(7, 3))
plt.show()"""

ORDER = """\
prices = {"lamp": 40, "desk": 210}

def total(order):
    return sum(prices[item] for item in order)

total(["lamp", "chair"])"""

Scene = Callable[[Person], None]
SCENES: dict[str, tuple[Scene, list[Any], dict[str, Any]]] = {}


def scene(*replies: Any, **options: Any) -> Callable[[Scene], Scene]:
    """Declare a scene: the model's replies, and `lines`, `columns` or other options of the terminal."""

    def declare(play: Scene) -> Scene:
        SCENES[play.__name__.replace("_", "-")] = (play, list(replies), options)
        return play

    return declare


def code(source: str, words: str = "") -> Any:
    call = tool_call("python", source)
    return text(words).then(call) if words else call


@scene(
    code(SALES, "I'll add up `amount` for each region and save the result."),
    text("**South** sells the most. The totals are in `totals.csv`."),
    lines=40,
)
def readme(person: Person) -> None:
    person.says("Which region sells the most? Save the totals as totals.csv")
    person.answers(CARD, "y")
    person.sees("The totals are in")
    person.at_prompt()


@scene()
def first_run(person: Person) -> None:
    person.at_prompt()


@scene(code("import shutil\nshutil.rmtree('cache')\nopen('log.txt', 'a').write('cleaned\\n')"))
def approval(person: Person) -> None:
    person.says("Clean up the cache folder")
    person.sees(CARD)


@scene(code(CLEAN, "I'll drop rows without an amount, fix the signs, and add a month."))
def overwrite(person: Person) -> None:
    person.says("Clean sales.csv")
    person.sees(CARD)


@scene(code(CLEAN), lines=34)
def preview(person: Person) -> None:
    person.says("Clean sales.csv")
    person.answers(CARD, "p")
    person.sees(APPLY)


@scene()
def show(person: Person) -> None:
    person.says('>>> import pandas as pd; sales = pd.read_csv("sales.csv")')
    person.says("%show sales")
    person.sees("rows ")
    person.types("\x1b[C\x1b[Css")
    person.sees("▼")


@scene(
    code(ORDER),
    text("There is no price for `chair` yet."),
    lines=40,
)
def traceback(person: Person) -> None:
    person.says("What do a lamp and a chair cost?")
    person.answers(CARD, "y")
    person.sees("There is no price")
    person.at_prompt()


@scene(error(401, "Incorrect API key provided."))
def model_error(person: Person) -> None:
    person.says("Hello")
    person.at_prompt()


@scene()
def help_menu(person: Person) -> None:
    person.at_prompt()
    person.types("/")
    person.sees("undo")


@scene(lines=44)
def help_screen(person: Person) -> None:
    person.says("%help")
    person.sees("%undo")
    person.at_prompt()


@scene(code(CHART), text("March is the strongest month."), lines=48, env={"COLORTERM": "truecolor"})
def figure(person: Person) -> None:
    person.says("Plot the sales by month")
    person.answers(CARD, "y")
    person.sees("March is")
    person.at_prompt()


@scene(code(SALES), text("Done: totals.csv has one row per region."), lines=40)
def undo(person: Person) -> None:
    person.says("Save the totals per region as totals.csv")
    person.answers(CARD, "y")
    person.sees("one row per region")
    person.says("%undo")
    person.sees("[y/N]")
    person.types("y" + ENTER)
    person.at_prompt()


@scene(code(SALES), text("Done: totals.csv has one row per region."), columns=48, lines=36)
def narrow(person: Person) -> None:
    person.says("Totals per region")
    person.sees(CARD)


@scene(code(SALES), text("South sells the most."), lines=40, then=["--continue"])
def resume(person: Person) -> None:
    person.says("Which region sells the most? Save the totals as totals.csv")
    person.answers(CARD, "y")
    person.sees("South sells the most.")
    person.leaves()


def helper(body: dict[str, Any]) -> Any:
    """What a sub-agent's model says, by its task."""
    last, asked = body["messages"][-1], str(body["messages"])
    if "why did" in asked:
        return code("import time\nprint('west: 41 orders in April, 12 in May', flush=True)\ntime.sleep(600)")
    if last["role"] == "tool":
        return text("Done: every date is written as YYYY-MM-DD." if "dates" in asked else "No order is there twice.")
    write = "open('sales.csv', 'a').write('')" if "twice" in asked else "open('sales.csv', 'a').write('\\n')"
    return code(write)


@scene(*[helper] * 20, lines=16, columns=110)
def sub_agents(person: Person) -> None:
    person.says("%mode auto")
    person.at_prompt()
    for task in ("is any order in sales.csv twice?", "write the dates in sales.csv the same way"):
        person.says(f"%agent --background {task}")
        person.at_prompt()
    person.says("%agent why did the west sell less in May?")
    person.sees("west: 41")


def by_model(body: dict[str, Any]) -> Any:
    if body["messages"][-1]["role"] != "tool":
        count = 'print(pd.read_csv("sales.csv").region.value_counts())'
        total = 'sales = pd.read_csv("sales.csv")\nprint(sales.groupby("region").amount.sum().round())'
        return code(f"import pandas as pd\n\n{total if body['model'] == 'demo-model' else count}")
    return text("South sells the most: 235,037." if body["model"] == "demo-model" else "South, with the most orders.")


@scene(*[by_model] * 4, lines=30)
def retry(person: Person) -> None:
    person.says("%mode auto")
    person.at_prompt()
    person.says("Which region sells the most?")
    person.sees("235,037.")
    person.at_prompt()
    person.says("%retry 1 --model other-model")
    person.sees("Keep 1 or 2?")


# -- running -----------------------------------------------------------------------------------------------------


@contextmanager
def clean_home() -> Iterator[Path]:
    """Make a home folder with a workspace of sales figures, without the current user's settings and keys."""
    with tempfile.TemporaryDirectory(prefix="shop-") as folder:
        home = Path(folder)
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
        os.environ.clear()
        os.environ.update({"LANG": "C.UTF-8", **kept, "HOME": folder})
        os.environ.update({"PYTHONPATH": str(ROOT / "src"), "INTERPRETER_THEME": "dark"})
        workspace = home / "shop"
        workspace.mkdir()
        (workspace / "cache").mkdir()
        (workspace / "cache" / "page.html").write_text("old")
        (workspace / "log.txt").write_text("started\n")
        (workspace / "sales.csv").write_text("".join(_sales()))
        os.chdir(workspace)
        yield workspace
        os.chdir(ROOT)


def _sales() -> Iterator[str]:
    chance = random.Random(7)
    yield "id,date,region,product,amount\n"
    for number in range(1, 2001):
        day = f"2026-{chance.randint(1, 9):02}-{chance.randint(1, 28):02}"
        amount = "" if number % 200 == 0 else f"{chance.choice([-1] + [1] * 90) * chance.gauss(240, 60):.2f}"
        region, product = chance.choice(["north", "south", "south", "west"]), chance.choice(["lamp", "desk", "chair"])
        yield f"{number},{day},{region},{product},{amount}\n"


def draw(name: str) -> str:
    play, replies, options = SCENES[name]
    size = {"columns": 96, "lines": 30, **options}
    again = size.pop("then", None)  # flags of a second start in the same folder, which is drawn
    with clean_home(), ModelServer(replies) as server:
        drawn = _played([], play, server, size)
        return _played(again, _sees_the_question, server, size) if again else drawn


def _sees_the_question(person: Person) -> None:
    person.sees("Restore them?")


def _played(flags: list[str], play: Scene, server: ModelServer, size: dict[str, Any]) -> str:
    drawn, arguments = "", ["--model", "demo-model", *flags]
    # On a busy machine the killed program may take a moment to end.
    with suppress(ExceptionPexpect), someone(*arguments, server=server, **size) as person:
        play(person)
        drawn = svg(person.emulator.screen, " ".join(["interpreter", *flags]))
    return drawn


def pictures(files: list[Path], folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 900}, device_scale_factor=1.5)
        for file in files:
            page.goto(file.as_uri())
            page.locator("svg").screenshot(path=folder / f"{file.stem}.png")
        browser.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones (all): {', '.join(SCENES)}")
    parser.add_argument("--png", type=Path, metavar="FOLDER", help="also write PNG files into this folder")
    wanted = parser.parse_args()
    environment = dict(os.environ)
    files = []
    for name in wanted.names or SCENES:
        files.append(ROOT / "docs" / "images" / f"{name}.svg")
        files[-1].write_text(draw(name), encoding="utf-8")
        print(f"wrote {files[-1].relative_to(ROOT)}")
    os.environ.update(environment)
    if wanted.png:
        pictures(files, wanted.png.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
