"""A language class that is not part of the package, as a user would add it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interpreter import BaseLanguage
from interpreter.messages import Chunk
from interpreter.policy.analysis.notes import Notes
from interpreter.policy.scan import Finding
from interpreter.scanners.scanner import ScannerTool

CODE = "local total = 1\nprint(total)"
PROFILE = """\
from interpreter import interpreter
from runtimes.example_language import Moonlight

interpreter.computer.languages.append(Moonlight)
"""


class Moonlight(BaseLanguage):
    """Looks like Lua, and prints its code backwards."""

    name = "Moonlight"
    aliases = ("moon",)
    file_extension = "moon"
    lexer = "lua"
    comment = "--"

    def run(self, code: str) -> Iterator[Chunk]:
        yield {"type": "console", "format": "output", "content": code[::-1] + "\n"}


class Plain(BaseLanguage):
    """A language with only a name and `run`."""

    name = "Plainly"

    def run(self, code: str) -> Iterator[Chunk]:
        yield {"type": "console", "format": "output", "content": code + "\n"}


class Thorough(Moonlight):
    """A language with an analysis, scanners and a notebook magic."""

    definitions = r"^function (\w+)"
    analysis = "runtimes.example_language:analyze"
    scanners = ("runtimes.example_language:MOONCHECK",)
    cell_magic = "%%script moon"


class Failing(Moonlight):
    """A language whose analysis fails."""

    analysis = "runtimes.example_language:fail"


def analyze(code: str, notes: Notes, known: Any) -> dict[str, Any]:
    for number, line in enumerate(code.splitlines(), 1):
        if line.startswith("remove "):
            notes.step("moonlight", line, number, line.split()).delete(line.split()[1])
    return {}


def fail(code: str, notes: Notes, known: Any) -> dict[str, Any]:
    raise ValueError("no idea")


def _commands(program: str, file: Path, kind: str) -> list[list[str]]:
    return [[sys.executable, "-c", "import sys; print(sys.argv[1])", file.name]]


def _read(text: str) -> list[Finding]:
    return [Finding("python3", "M1", 1, "high", text.strip())]


MOONCHECK = ScannerTool("python3", _commands, _read)
