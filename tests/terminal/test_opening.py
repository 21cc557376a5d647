"""`%open`: files open only when the user asks for it, and in the user's own program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interpreter.errors import UsageError
from interpreter.frontends.terminal.render.saved import open_in_viewer, save_text, shown_path
from model_server import ModelServer
from terminal.person import someone


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's browser: a program that records what it should open."""
    record = tmp_path / "record"
    browser = tmp_path / "browser"
    browser.write_text(f"#!{sys.executable}\nimport sys\nopen({str(record)!r}, 'a').write(sys.argv[1] + '\\n')\n")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    return record


def test_the_last_and_earlier_files_can_be_opened(opened: Path) -> None:
    first, second = save_text("<b>1</b>", "html"), save_text("<b>2</b>", "html")
    assert (shown_path(), shown_path("2"), shown_path(first)) == (second, first, first)
    open_in_viewer(second)
    assert opened.read_text().split() == [Path(second).as_uri()]


def test_paths_are_relative_to_the_sessions_folder(tmp_path: Path) -> None:
    (tmp_path / "chart.png").write_bytes(b"")
    assert shown_path("chart.png", str(tmp_path)) == str(tmp_path / "chart.png")


@pytest.mark.skipif(sys.platform != "linux", reason="xdg-open")
def test_the_system_viewer_is_preferred(opened: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "browser").rename(tmp_path / "xdg-open")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DISPLAY", ":77")
    path = save_text("<b>1</b>", "html")
    open_in_viewer(path)
    assert opened.read_text().split() == [path]


@pytest.mark.skipif(sys.platform != "linux", reason="displays are detected by variables")
def test_without_a_display_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=r"without a display\. The file is /tmp/x\.png"):
        open_in_viewer("/tmp/x.png")


def test_saving_a_file_does_not_open_it(opened: Path) -> None:
    save_text("<b>1</b>", "html")
    assert not opened.exists()


@pytest.mark.parametrize("which", ["0", "99999", "/no/such/file"])
def test_missing_files_raise_an_error(which: str, opened: Path) -> None:
    with pytest.raises(UsageError):
        shown_path(which)


def test_opening_a_blocks_file_needs_approval_in_a_sandbox(
    opened: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "project"
    work.mkdir()
    monkeypatch.chdir(work)
    with ModelServer([]) as server, someone(server=server) as person:
        person.says(">>> _ = [open(name, 'w').write('x') for name in ('a.csv', 'run.desktop')]")
        person.sees("files: created")
        person.says("%open")
        person.sees("/project/a.csv.")
        person.says("%sandbox workspace")
        person.says("%open a.csv")
        person.answers("would open outside it. Open it?", "n")
        person.sees("Nothing was opened.")
        assert person.leaves() == 0
    assert opened.read_text().split() == [(work / "a.csv").as_uri()]
