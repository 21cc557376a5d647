"""The files that docs/architecture.md and CONTRIBUTING.md name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "interpreter"
NAMED = re.compile(r"`([\w./-]+(?:\.(?:py|cjs|md|json|yaml|toml)|/))`")


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_named_file_exists(page: str) -> None:
    files = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*") if "__pycache__" not in path.parts}
    known = files | {f"{path}/" for path in files}
    text = (ROOT / page).read_text("utf-8")
    named = {name.removeprefix("src/interpreter/") for name in NAMED.findall(text)}
    assert len(named) > 10
    missing = [
        name
        for name in sorted(named)
        if not any(path == name or path.endswith(f"/{name}") for path in known)
        and not (ROOT / name).exists()
        and not (ROOT / "docs" / name).exists()
    ]
    assert missing == []
