"""The generated pages match the settings table."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from make_docs import settings_page, stale  # noqa: E402  (a script, not a package)

from interpreter.config.settings import SETTINGS  # noqa: E402


def test_generated_pages_are_up_to_date() -> None:
    assert stale() == [], "run `make docs`"


def test_every_setting_has_its_entry() -> None:
    page = settings_page()
    for row in SETTINGS:
        assert page.count(f"### `{row.name}`\n") == 1
