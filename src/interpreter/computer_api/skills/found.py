"""Where skills are: functions in a folder of the user's, and folders with instructions as other programs keep them."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from interpreter.computer_api.files.work.definitions import defined_in

LARGEST = 1024 * 1024
SHARED = Path(".agents", "skills")  # in the home folder, and in a project
INSTRUCTIONS = "SKILL.md"

Read = Callable[[Path], str]


@dataclass(frozen=True)
class Skill:
    """One skill: a Python function, or instructions to read."""

    name: str
    kind: Literal["function", "instructions"]
    description: str
    path: Path
    signature: str = ""

    @property
    def told(self) -> str:
        return f"{self.name}()" if self.kind == "function" else self.name


def names_in(folder: Path) -> list[str]:
    """The names of the skills that are Python files; none is read for it."""
    names = sorted(file.stem for file in folder.glob("*.py"))
    return [name for name in names if name.isidentifier() and not name.startswith("_")]


def functions_in(folder: Path, read: Read) -> Iterator[Skill]:
    """The skills that are Python files, each by the name of its file."""
    for name in names_in(folder):
        file = folder / f"{name}.py"
        if (text := _text(file, read)) is not None:
            defined = {each.name: each for each in defined_in(text, str(file), "")}
            own = defined.get(name)
            about = dict.fromkeys(filter(None, (_first(_docstring(text)), _first(own.doc) if own else "")))
            yield Skill(name, "function", " ".join(about), file, own.signature if own else "")


def instructions_in(folder: Path, read: Read) -> Iterator[Skill]:
    """The skills that are folders with a SKILL.md."""
    for file in sorted(folder.glob(f"*/{INSTRUCTIONS}")):
        if (text := _text(file, read)) is not None:
            head = front_matter(text)
            name = str(head.get("name") or file.parent.name)
            yield Skill(name, "instructions", _first(str(head.get("description") or "")), file)


def front_matter(text: str) -> dict[str, Any]:
    """What stands between the two lines of dashes at the beginning; nothing if that is not readable."""
    import yaml

    lines = text.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in map(str.strip, lines[1:]):
        return {}
    end = next(at for at, line in enumerate(lines[1:], 1) if line.strip() == "---")
    try:
        found = yaml.safe_load("\n".join(lines[1:end]))
    except yaml.YAMLError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(file: Path, read: Read) -> str | None:
    """What is in it; None if it is too large or cannot be read, so that one bad file does not hide the others."""
    try:
        return read(file) if os.path.getsize(file) <= LARGEST else None
    except (OSError, ValueError):
        return None


def _docstring(text: str) -> str:
    try:
        return ast.get_docstring(ast.parse(text)) or ""
    except (SyntaxError, ValueError):
        return ""


def _first(text: str) -> str:
    """The first paragraph, on one line."""
    return " ".join(text.strip().split("\n\n")[0].split())[:300]
