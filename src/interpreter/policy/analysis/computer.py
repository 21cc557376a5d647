"""Calls to the computer's tools that code names: which there are, and what they say of themselves."""

from __future__ import annotations

import os
from typing import Literal

from interpreter.policy.analysis.notes import Doing, Notes
from interpreter.policy.analysis.python_table import calls

How = Literal["looks", "acts", "sends", "unknown"]
_TELLING = frozenset({"help", "view", "screenshot"})


def how_of(name: str) -> How:
    """What a call named like `computer.mouse.click` does to the world; not to be told for a name that is not there."""
    from interpreter.computer_api.tool import TOOLS, kind_of

    _, tool, *rest = [*name.split("."), ""]
    if tool in _TELLING:
        return "looks"
    if tool not in TOOLS or name in calls():  # what the call is given decides
        return "unknown"
    try:
        found: object = kind_of(tool)
    except (ImportError, AttributeError):
        return "unknown"
    for part in filter(None, rest):
        found = getattr(found, part, None)
    if found is None or isinstance(found, property):
        return "unknown"
    return "sends" if getattr(found, "__sends__", False) else "acts" if getattr(found, "__acts__", False) else "looks"


def is_call(name: str) -> bool:
    """Whether a dotted name may be one of the computer's."""
    return name.startswith("computer.") and "()" not in name


def note(doing: Doing, name: str) -> None:
    """Write down that the code calls it."""
    how = how_of(name)
    doing.note("computer", name, known=how != "unknown", how=how)


def is_shadowed(notes: Notes) -> bool:
    """Whether a file of the project's own has the name, and so comes first."""
    return any(os.path.exists(os.path.join(notes.places.workspace, name)) for name in ("computer.py", "computer"))
