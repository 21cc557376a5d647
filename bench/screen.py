"""What it costs to see the screen and to read it, on a display in memory."""

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
    for program in ("Xvfb", "openbox", "dbus-daemon", "mousepad"):
        if shutil.which(program) is None:
            raise ProbeFailure(f"needs {program}")
    return probe(subject.python, "acting", tests=str(ROOT / "tests"))


def row(what: str, unit: str, key: str, budget: float | None = None) -> Measurement:
    return Measurement(f"screen: {what}", unit, lambda it: float(screen(it)[key]), budget=budget)


MEASUREMENTS = [
    row("pixels of 1280 x 800", "s", "grab", budget=0.02),
    row("a picture of them for a model", "s", "view", budget=0.15),
    row("the reader, loaded on first need", "s", "load"),
    row("find a text among 124 words of 9-14 px, never read before", "s", "first", budget=6),
    row("find another one, nothing changed", "s", "again", budget=0.2),
    row("find one after a line has changed", "s", "changed", budget=0.6),
    Measurement(
        "screen: from an action in an editor to the next picture, with the screen at rest",
        "s",
        lambda it: float(acting(it)["next"]),
        budget=1.0,
    ),
    row("words of the 124 that were missed", "words", "missed", budget=9),
]
