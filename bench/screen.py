"""The cost of capturing and reading the screen, on a display in memory."""

from __future__ import annotations

import shutil
from typing import Any

from bench.subject import ROOT, ProbeFailure, Subject, once, probe
from bench.table import Measurement


@once
def screen(subject: Subject) -> dict[str, Any]:
    if subject.is_original:
        raise ProbeFailure("sends it to a server")
    if shutil.which("Xvfb") is None:
        raise ProbeFailure("needs Xvfb")
    return probe(subject.python, "seeing", tests=str(ROOT / "tests"))


@once
def acting(subject: Subject) -> dict[str, Any]:
    if subject.is_original:
        raise ProbeFailure("sends it to a server")
    return on_a_desktop(subject, "acting")


@once
def os_tokens(subject: Subject) -> dict[str, Any]:
    if subject.is_original:
        raise ProbeFailure("needs its own server")
    return on_a_desktop(subject, "os_tokens")


def on_a_desktop(subject: Subject, name: str) -> dict[str, Any]:
    for program in ("Xvfb", "openbox", "dbus-daemon", "mousepad"):
        if shutil.which(program) is None:
            raise ProbeFailure(f"needs {program}")
    return probe(subject.python, name, tests=str(ROOT / "tests"))


def spent(task: str, what: str, budget: float) -> Measurement:
    return Measurement(f"OS mode: {what}", "tokens", lambda it: float(os_tokens(it)[task]["tokens"]), budget=budget)


def row(what: str, unit: str, key: str, budget: float | None = None) -> Measurement:
    return Measurement(f"screen: {what}", unit, lambda it: float(screen(it)[key]), budget=budget)


MEASUREMENTS = [
    row("capture of 1280 x 800 pixels", "s", "grab", budget=0.02),
    row("screenshot for a model", "s", "view", budget=0.15),
    row("loading the OCR engine", "s", "load"),
    row("find text among 124 words of 9-14 px, first time", "s", "first", budget=6),
    row("find another text on an unchanged screen", "s", "again", budget=0.2),
    row("find text after one line changed", "s", "changed", budget=0.6),
    Measurement(
        "screen: from an action in an editor to the next screenshot, with a still screen",
        "s",
        lambda it: float(acting(it)["next"]),
        budget=1.0,
    ),
    row("missed words out of 124", "words", "missed", budget=9),
    spent("letter", "write six lines, one by one, and save: total of all requests", 70_000),
    spent("menus", "open four menus and close them: total of all requests", 90_000),
    spent("moves", "14 mouse moves without effect: total of all requests", 35_000),
]
