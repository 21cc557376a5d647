"""The rows, how they run, and the recorded results of 0.4.3."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROWS = HERE / "rows"
ORIGINAL_RESULTS = HERE / "original.json"
EXCEPTIONS = HERE / "exceptions.toml"

# Seconds for one row. 0.4.3 needs four for each start of its program, and two for its first Python block.
ORIGINAL_LIMIT = 45.0
OUR_LIMIT = 30.0


@dataclass(frozen=True)
class Row:
    """A small script like those users wrote for 0.4.3; it passes if it ends without an error."""

    section: str
    title: str
    source: str
    line: int

    @property
    def name(self) -> str:
        return f"{self.section}: {self.title}"

    @property
    def digest(self) -> str:
        """Changes with the row's code, not with its formatting."""
        return hashlib.sha256(ast.dump(ast.parse(self.source)).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Result:
    """How a row ended; `why` is one line, `output` the end of its output."""

    name: str
    passes: bool
    why: str
    output: str
    seconds: float


def all_rows() -> list[Row]:
    """Every row, in the order of the files; `# row: TITLE` starts a row."""
    return [row for file in sorted(ROWS.glob("*.py")) for row in rows_of(file)]


def rows_of(file: Path) -> Iterator[Row]:
    head, *parts = re.split(r"(?m)^# row: ", file.read_text(encoding="utf-8"))
    line = head.count("\n") + 1
    for part in parts:
        title, _, source = part.partition("\n")
        yield Row(file.stem, title.strip(), source, line + 1)
        line += part.count("\n")


def run_rows(python: Path, rows: Sequence[Row], limit: float, source: Path | None = None) -> Iterator[Result]:
    """Run rows with this Python, one after the other; `source` is the folder to import `interpreter` from."""
    asked = [{"name": row.name, "file": f"{row.section}.py", "line": row.line, "source": row.source} for row in rows]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"PYTHONPATH": str(source)} if source else {}
    command = [str(python), str(HERE / "runner.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdin and process.stdout
        json.dump({"rows": asked, "limit": limit}, process.stdin)
        process.stdin.close()
        for line in process.stdout:
            yield Result(**json.loads(line))


def original_results() -> dict[str, dict[str, str]]:
    """Read the recorded results of 0.4.3: row -> `digest`, and `fails` with the reason if it failed."""
    results: dict[str, dict[str, str]] = json.loads(ORIGINAL_RESULTS.read_text(encoding="utf-8"))
    return results


def record(row: Row, result: Result) -> None:
    """Record the result of 0.4.3 for this row, and drop removed rows."""
    known = original_results() if ORIGINAL_RESULTS.exists() else {}
    known[row.name] = {"digest": row.digest} | ({} if result.passes else {"fails": result.why})
    ordered = {row.name: known[row.name] for row in all_rows() if row.name in known}
    ORIGINAL_RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def exceptions() -> dict[str, str]:
    """Rows that 0.4.3 passes and ours doesn't, on purpose: row -> the reason as in docs/migrating.md."""
    differences: dict[str, str] = tomllib.loads(EXCEPTIONS.read_text(encoding="utf-8"))["differences"]
    return differences
