"""Our folders in the user's home are private, and existing ones are made private."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from interpreter.config import profiles
from interpreter.config.homes import make_folder, our_folder
from interpreter.llm.providers import save_key
from interpreter.runtimes.block import outputs_folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "make",
    [
        lambda: save_key("OPENAI_API_KEY", "k"),
        profiles.make_default,
        lambda: make_folder(our_folder("cache") / "outputs"),
        lambda: make_folder(our_folder("data") / "browser"),
    ],
)
def test_new_folders_are_private(home: Path, make: object) -> None:
    make()  # type: ignore[operator]
    made = [path for path in home.rglob("*") if path.is_dir()]
    assert made
    assert {mode(path) for path in made} == {0o700}


@pytest.mark.parametrize("use", [our_folder, outputs_folder, profiles.folder, lambda: our_folder("data")])
def test_existing_folders_are_made_private(home: Path, use: object) -> None:
    for kind in ("config", "cache", "data"):
        folder = our_folder(kind)  # type: ignore[arg-type]
        folder.mkdir(parents=True)
        folder.chmod(0o755)
    use()  # type: ignore[operator]
    assert 0o700 in {mode(path) for path in home.rglob("open-interpreter")}


def test_looking_up_a_folder_does_not_create_it(home: Path) -> None:
    assert not our_folder().exists()
