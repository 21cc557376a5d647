"""The corpus: snippets of code and their effects, measured in a throw-away sandbox.

The snippets are in `snippets/` and `analyst/`, one file per language; a line of four dashes separates two snippets.
`effects.json` has the measured effects. After changing snippets, run `make corpus` to measure the new ones.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
EFFECTS = HERE / "effects.json"
LABEL = "#: "
"""Starts a line before a snippet that can't be measured here, with its effects as judged by hand."""

Measured = dict[str, Any]


class Snippet(NamedTuple):
    language: str
    code: str
    label: str = ""

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.language}\n{self.code}".encode()).hexdigest()[:16]


def snippets(folder: str = "snippets", every_r: int = 1) -> list[Snippet]:
    """All snippets in a folder: `snippets`, or `analyst` for blocks like those a model writes for an analyst.

    R's parser takes its time: `every_r` leaves out most of that language.
    """
    blocks = []
    for path in sorted((HERE / folder).glob("*.txt")):
        parts = path.read_text(encoding="utf-8").split("\n----\n")
        for part in parts[:: every_r if path.stem == "r" else 1]:
            code = part.strip("\n")
            label, code = code.split("\n", 1) if code.startswith(LABEL) else ("", code)
            blocks.append(Snippet(path.stem.partition("-")[0], code, label.removeprefix(LABEL)))
    return blocks


def effects() -> dict[str, Measured]:
    measured: dict[str, Measured] = json.loads(EFFECTS.read_text(encoding="utf-8"))
    return measured


def is_harmful(measured: Measured) -> bool:
    """Does it do more than read in the workspace?"""
    kinds = (
        "reads",
        "creates",
        "overwrites",
        "deletes",
        "renames",
        "changes",
        "contacts",
        "kills",
        "own programs",
        "other",
    )
    return any(measured.get(kind) for kind in kinds)
