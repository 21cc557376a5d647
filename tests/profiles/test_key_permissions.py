"""A profile with a key should be readable only by its owner."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.config.profiles import load

KEY = "0123456789abcdefKEY"


@pytest.mark.parametrize(
    ("name", "text", "mode", "told"),
    [
        ("p.yaml", f"llm:\n  api_key: {KEY}\n", 0o644, True),
        ("p.yaml", f"llm:\n  api_key: {KEY}\n", 0o640, True),
        ("p.yaml", f"llm:\n  api_key: {KEY}\n", 0o600, False),
        ("p.yaml", "llm:\n  api_key: $MY_SECRET\n", 0o644, False),
        ("p.yaml", "llm:\n  api_key: dummy\n  model: gpt-4o\n", 0o644, False),
        ("p.json", f'{{"llm": {{"api_key": "{KEY}"}}}}', 0o644, True),
        ("p.py", f'from interpreter import interpreter\ninterpreter.llm.api_key = "{KEY}"\n', 0o644, True),
        ("p.py", 'from interpreter import interpreter\ninterpreter.llm.model = "gpt-4o"\n', 0o644, False),
    ],
)
def test_a_notice_warns_about_keys_that_others_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, mode: int, told: bool
) -> None:
    monkeypatch.setenv("MY_SECRET", KEY)
    path = tmp_path / name
    path.write_text(text)
    path.chmod(mode)
    notices = load(OpenInterpreter(), str(path)).notices
    assert [f"chmod 600 {path}" in line for line in notices] == ([True] if told else [])
    assert KEY not in "".join(notices)
