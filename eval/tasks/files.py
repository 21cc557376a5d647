"""Files and folders."""

from __future__ import annotations

import zipfile
from pathlib import Path

from eval.outcome import Outcome, expect
from eval.task import Task, write

NOTES = {"agenda": "Budget\nHiring", "ideas": "Solar roof", "minutes": "All agreed.", "todo": "Call the bank"}
SIZES = {"archive.bin": 48213, "draft.txt": 9120, "logo.bmp": 31007, "movie.dat": 47990, "readme.txt": 412}
MIXED = ["budget.csv", "clients.csv", "letter.txt", "memo.txt", "plan.txt", "server.log", "backup.log"]
INBOX = {"amy.txt": "Hello", "bob.txt": "", "carl.txt": "See you", "dora.txt": "", "eve.txt": "", "fay.txt": "Bye"}
MODULES = ["main", "setup", "app/routes", "app/forms", "app/models", "app/mail/send", "app/mail/queue"]
MODULES += ["tools/clean", "tools/load", "tools/dump", "tests/test_app", "tests/test_mail", "tests/deep/er/test_all"]
QUARTERS = {f"{name}.csv": f"month,amount\n{name},100\n" for name in ("spring", "summer", "autumn")}


def _notes(folder: Path) -> None:
    for name, content in NOTES.items():
        write(folder, f"{name}.txt", content)
    write(folder, "figures.csv", "a,b", "1,2")


def _renamed(outcome: Outcome) -> None:
    for name, content in NOTES.items():
        expect(outcome.text(f"{name}.md").strip() == content, f"{name}.md has another content")
        expect(not (outcome.folder / f"{name}.txt").exists(), f"{name}.txt is still there")
    expect((outcome.folder / "figures.csv").exists(), "figures.csv is gone")


def _sizes(folder: Path) -> None:
    for name, size in SIZES.items():
        (folder / name).write_bytes(b"x" * size)


def _largest(outcome: Outcome) -> None:
    outcome.expect_pick("archive.bin", SIZES)
    outcome.expect_number(SIZES["archive.bin"], what="the size is")


def _mixed(folder: Path) -> None:
    for name in MIXED:
        write(folder, name, f"This is {name}")


def _sorted(outcome: Outcome) -> None:
    for name in MIXED:
        place = f"{name.rpartition('.')[2]}/{name}"
        expect(outcome.text(place).strip() == f"This is {name}", f"{place} has another content")
        expect(not (outcome.folder / name).exists(), f"{name} is still where it was")


def _inbox(folder: Path) -> None:
    for name, content in INBOX.items():
        (folder / "inbox").mkdir(exist_ok=True)
        (folder / "inbox" / name).write_text(content, encoding="utf-8")


def _no_empty_ones(outcome: Outcome) -> None:
    left = {path.name: path.read_text(encoding="utf-8") for path in (outcome.folder / "inbox").glob("*")}
    wanted = {name: content for name, content in INBOX.items() if content}
    expect(left == wanted, f"in inbox are {', '.join(sorted(left)) or 'no files'}")


def _modules(folder: Path) -> None:
    for name in MODULES:
        write(folder, f"project/{name}.py", "pass")
    for name in ("README.md", "app/style.css", "tests/data.json", "notes.txt"):
        write(folder, f"project/{name}", "...")


def _counted(outcome: Outcome) -> None:
    outcome.expect_number(len(MODULES), what="there are")


def _quarters(folder: Path) -> None:
    for name, content in QUARTERS.items():
        write(folder, name, content.strip())
    write(folder, "notes.txt", "not for the archive")


def _zipped(outcome: Outcome) -> None:
    path = outcome.folder / "backup.zip"
    expect(zipfile.is_zipfile(path), "backup.zip is no zip archive")
    with zipfile.ZipFile(path) as archive:
        held = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if not name.endswith("/")}
    expect(held == QUARTERS, f"backup.zip holds {', '.join(sorted(held)) or 'nothing'}")


TASKS = [
    Task(
        "files/rename",
        ("Please rename all the .txt files in this folder so that they end in .md instead.",),
        _notes,
        _renamed,
    ),
    Task(
        "files/largest",
        ("Which of the files in this folder is the biggest, and how many bytes does it have?",),
        _sizes,
        _largest,
    ),
    Task(
        "files/by_extension",
        ("Sort the files in here into subfolders named after their extensions: csv, txt and log.",),
        _mixed,
        _sorted,
    ),
    Task(
        "files/empty",
        ("Some of the files in the inbox folder are empty. Delete those and keep the rest.",),
        _inbox,
        _no_empty_ones,
    ),
    Task(
        "files/count",
        ("How many Python files are there in the folder project? Count the ones in its subfolders too.",),
        _modules,
        _counted,
    ),
    Task("files/zip", ("Pack all the CSV files here into one archive called backup.zip.",), _quarters, _zipped),
]
