"""Exports contain no secrets, and say how many were left out."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from export.conversations import ran, run_conversation, user
from export.test_commands import TerminalSession
from interpreter.export import secrets_notice, texts_of, without_secrets
from interpreter.session.journal.reader import RecordedBlock, Shown

KEY = "sk-proj-" + "a1b2c3d4e5" * 5
TOKEN = "ghp_" + "A1b2C3d4E5" * 4
PASSWORD = "correct-horse-battery"
FORMS = {"jupyter": "ipynb", "markdown": "md", "html": "html", "script --all": "py"}


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TerminalSession]:
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    blocks = (
        ("python", f"key = {KEY!r}\nopen('used.txt', 'w').write('x')\nprint(len(key))"),
        ("python", f"import os\nprint({TOKEN[:9]!r} + {TOKEN[9:]!r}, os.environ['DB_PASSWORD'])"),
    )
    interpreter = run_conversation(str(tmp_path), f"Use {KEY} please", *blocks)
    yield TerminalSession(interpreter)
    interpreter.computer.terminate()
    interpreter.journal.close()


def test_no_export_contains_secrets(session: TerminalSession, tmp_path: Path) -> None:
    for command, ending in FORMS.items():
        name, _, flags = command.partition(" ")
        shown = session.run(f"%{name} out.{ending} {flags}")
        written = (tmp_path / f"out.{ending}").read_text()
        assert not any(secret in written for secret in (KEY, TOKEN, PASSWORD)), command
        assert "[redacted: OpenAI key]" in written
        assert ("secrets were left out" if ending != "py" else "left out") in shown, shown
    ast.parse((tmp_path / "out.py").read_text())
    json.loads((tmp_path / "out.ipynb").read_text())
    # Twice the key (words and code), the token, the password.
    assert "4 secrets were left out" in session.run("%markdown again.md")
    assert KEY[:20] not in session.run("%html")  # nor in the file name


def test_a_flag_keeps_secrets(session: TerminalSession, tmp_path: Path) -> None:
    for command, ending in FORMS.items():
        name, _, flags = command.partition(" ")
        shown = session.run(f"%{name} kept.{ending} --keep-secrets {flags}")
        written = (tmp_path / f"kept.{ending}").read_text()
        assert KEY in written and "[redacted" not in written and "left out" not in shown
    # Printed secrets are kept in memory, though not in the journal.
    assert TOKEN in (tmp_path / "kept.md").read_text()


def test_file_paths_are_redacted_but_images_are_not() -> None:
    picture = Shown({"role": "user", "type": "image", "format": "base64.png", "content": TOKEN})
    named = Shown({"role": "user", "type": "file", "format": "path", "content": f"/tmp/{PASSWORD}x {TOKEN}"})
    clean = without_secrets([user("hello"), picture, named, ran("x = 1")], {})
    assert clean[1] == picture and TOKEN not in str(clean[2])
    assert isinstance(clean[3], RecordedBlock) and clean[3].code == "x = 1"
    assert secrets_notice(texts_of(clean))[0].startswith("1 secret was left out")
    assert secrets_notice("nothing") == []
