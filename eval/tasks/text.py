"""Plain text."""

from __future__ import annotations

from pathlib import Path
from random import Random

from eval.outcome import Outcome, expect
from eval.task import Task, write

COUNTS = {"river": 19, "stone": 14, "garden": 12, "cloud": 11, "bridge": 9, "winter": 6}
EMAILS = ["anna.berg@example.com", "b.chen@mail.example.org", "office@example.net", "zoe_k@example.com"]
LETTER = [
    "Dear Sir,",
    "The colour of the door is wrong. We ordered another colour.",
    "Could you send a colour chart? The frame is discoloured, too.",
    "Colours aside, all is well.",
]
LEVELS = ["INFO"] * 60 + ["WARNING"] * 22 + ["ERROR"] * 37


def _speech(folder: Path) -> None:
    spoken = [each for each, count in COUNTS.items() for _ in range(count)]
    Random(7).shuffle(spoken)
    spoken = [word.capitalize() if number % 3 == 0 else word for number, word in enumerate(spoken)]
    write(folder, "speech.txt", *(" ".join(spoken[start : start + 10]) + "." for start in range(0, len(spoken), 10)))


def _frequent(outcome: Outcome) -> None:
    outcome.expect_pick("river", COUNTS)


def _contacts(folder: Path) -> None:
    write(
        folder,
        "contacts.txt",
        f"Anna Berg ({EMAILS[0]}), phone 555-0101",
        f"For billing write to {EMAILS[2]} or call. Mr Chen: {EMAILS[1]};",
        f"Zoe: {EMAILS[3]}. Anna again: {EMAILS[0]}",
        "No address for Tom @ the moment.",
    )


def _extracted(outcome: Outcome) -> None:
    addresses = outcome.lines("emails.txt")
    expect(sorted(addresses) == sorted(EMAILS), f"emails.txt has {len(addresses)} lines: {', '.join(addresses)[:60]}")


def _letter(folder: Path) -> None:
    write(folder, "letter.txt", *LETTER)


def _replaced(outcome: Outcome) -> None:
    # The task doesn't say whether Colours counts.
    wanted = [[line.replace("colour", "color") for line in LETTER]]
    wanted.append([line.replace("Colour", "Color") for line in wanted[0]])
    expect(outcome.lines("letter.txt") in wanted, "letter.txt does not read as it should")


def _log(folder: Path) -> None:
    levels = LEVELS[:]
    Random(3).shuffle(levels)
    lines = (f"2024-05-0{1 + number // 30} {level} worker: job {level.lower()}" for number, level in enumerate(levels))
    write(folder, "app.log", *lines)


def _errors(outcome: Outcome) -> None:
    wanted = [line for line in outcome.lines("app.log") if "ERROR" in line]
    expect(len(wanted) == 37, "app.log was changed")
    errors = outcome.lines("errors.txt")
    expect(errors == wanted, f"errors.txt has {len(errors)} lines, or not the right ones")
    outcome.expect_number(37, what="there are")


TASKS = [
    Task(
        "text/frequent",
        ("What is the most common word in speech.txt? Upper and lower case don't matter.",),
        _speech,
        _frequent,
    ),
    Task(
        "text/emails",
        (
            "Pull all the e-mail addresses out of contacts.txt and put them into emails.txt, one per line, "
            "each of them only once.",
        ),
        _contacts,
        _extracted,
    ),
    Task(
        "text/replace",
        ("Change 'colour' to 'color' everywhere in letter.txt. Leave the rest of the text alone.",),
        _letter,
        _replaced,
    ),
    Task(
        "text/errors",
        ("Copy the lines with ERROR from app.log into a new file errors.txt, and tell me how many there are.",),
        _log,
        _errors,
    ),
]
