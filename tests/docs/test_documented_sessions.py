"""The sessions shown in the documentation match real sessions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from model_server import ModelServer
from terminal.person import Person, someone

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^```session\n(.*?)^```", re.MULTILINE | re.DOTALL)


def sessions() -> list[Any]:
    return [
        pytest.param(session, id=f"{page.name}-{number}")
        for page in sorted((ROOT / "docs").glob("*.md"))
        for number, session in enumerate(FENCE.findall(page.read_text("utf-8")), 1)
    ]


@pytest.mark.usefixtures("no_strays")
@pytest.mark.parametrize("session", sessions())
def test_the_documented_session_matches(session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ModelServer() as server, someone(server=server, columns=100) as person:
        for exchange in re.split(r"^> ", session, flags=re.MULTILINE)[1:]:
            typed, *shown = exchange.rstrip("\n").split("\n")
            person.says(typed)
            for line in shown:
                sees_line(person, line)
        assert person.leaves() == 0


def sees_line(person: Person, line: str) -> None:
    """Wait for a line with this beginning, ignoring column widths."""
    wanted = line.split()
    person.wait_until(lambda: any(row.split()[: len(wanted)] == wanted for row in person.rows), line)
