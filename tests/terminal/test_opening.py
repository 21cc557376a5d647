"""Opening what was shown: only when the user says so, and in their own program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interpreter.errors import UsageError
from interpreter.frontends.terminal.render.saved import open_shown, save_text


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A browser of the user's: a program that writes down what it was told to open."""
    told = tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(f"#!{sys.executable}\nimport sys\nopen({str(told)!r}, 'a').write(sys.argv[1] + '\\n')\n")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    return told


def test_the_last_one_and_the_ones_before(opened: Path) -> None:
    first, second = save_text("<b>1</b>", "html"), save_text("<b>2</b>", "html")
    assert open_shown() == second
    assert open_shown("2") == first
    assert open_shown(first) == first
    assert opened.read_text().split() == [Path(path).as_uri() for path in (second, first, first)]


def test_nothing_opens_by_itself(opened: Path) -> None:
    save_text("<b>1</b>", "html")
    assert not opened.exists()


@pytest.mark.parametrize("which", ["0", "99999", "/no/such/file"])
def test_what_is_not_there(which: str, opened: Path) -> None:
    with pytest.raises(UsageError):
        open_shown(which)
