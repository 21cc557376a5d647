"""Messages don't name classes that users don't know."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from strings import class_names  # noqa: E402  (a script, not a package)

CLASSES = "class ResolvedCall: ...\nclass Answer: ...\nclass OpenInterpreter: ...\n"


@pytest.mark.full  # `make check` does the same
def test_no_message_names_a_class_that_users_do_not_know() -> None:
    assert list(class_names()) == []


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ('raise ValueError("ResolvedCall wait() or cancel() first.")', "ResolvedCall"),
        ('raise ValueError(f"{count} calls are open. Use ResolvedCall for them.")', "ResolvedCall"),
        ('MESSAGES = {"busy": "Wait for the Answer of that question."}', "Answer"),
    ],
)
def test_a_class_name_in_a_message_is_found(tmp_path: Path, code: str, name: str) -> None:
    (tmp_path / "classes.py").write_text(CLASSES)
    (tmp_path / "messages.py").write_text(code)
    [row] = class_names(tmp_path)
    assert row.startswith(f"messages.py:1: {name} in ")


@pytest.mark.parametrize(
    "code",
    [
        'raise ValueError("Answer this question first.")',
        'raise ValueError("Not run. Answer this question first.")',
        'raise ValueError("This is a use of another OpenInterpreter object.")',
        'raise ValueError(f"The tool {ResolvedCall.name} is busy.")',
        'def close() -> None:\n    """Close the ResolvedCall that waits."""',
    ],
)
def test_other_texts_are_not_reported(tmp_path: Path, code: str) -> None:
    (tmp_path / "classes.py").write_text(CLASSES)
    (tmp_path / "messages.py").write_text(code)
    assert list(class_names(tmp_path)) == []
