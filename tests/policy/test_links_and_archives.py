"""Static analysis of what is written through links and from archives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interpreter.policy.analysis import analyze
from policy.analyzed_effects import WORKSPACE


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "import os\nos.link('/outside/x', 'a'); open('a', 'w')"),
        ("python", "import os\nos.symlink('/outside/x', 'a'); open('a', 'w')"),
        ("python", "import os\nos.symlink('/outside', 'a'); os.rename('a', 'b'); open('b/x', 'w')"),
        ("python", "import os, shutil\nos.symlink('/outside/x', 'a'); shutil.copy('a', 'b', follow_symlinks=False); open('b', 'w')"),
        ("python", "from pathlib import Path\nPath('a').hardlink_to('/outside/x'); Path('a').write_text('')"),
        ("shell", "ln /outside/x a; echo > a"),
        ("shell", "ln -s /outside/x; echo > x"),
        ("shell", "cp -l /outside/x a; echo > a"),
        ("shell", "ln -s /outside/x a; mv a b; echo > b"),
        ("shell", "tar xf a.tar; echo > d/x"),
        ("shell", "unzip a.zip; echo > d/x"),
        ("javascript", "fs.symlinkSync('/outside', 'd'); fs.writeFileSync('d/x', '')"),
        ("javascript", "fs.linkSync('/outside/x', 'a'); fs.writeFileSync('a', '')"),
    ],
)  # fmt: skip
def test_writing_through_a_link_is_not_writing_in_this_folder(language: str, code: str) -> None:
    *_, last = analyze(language, code, WORKSPACE).of("write")
    assert last.place in ("outside", "unknown")


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "import os\nos.symlink('b', 'a'); open('a', 'w')"),
        ("python", "import os\nos.symlink('/outside/x', 'a'); os.remove('a')"),
        ("shell", "ln -s src d; echo > d/x"),
    ],
)
def test_links_inside_this_folder_stay_inside(language: str, code: str) -> None:
    assert {effect.place for effect in analyze(language, code, WORKSPACE).of("write", "delete")} == {"workspace"}


@pytest.mark.parametrize(
    ("code", "unknown"),
    [
        ("import tarfile\ntarfile.open(f).extractall()", True),
        ("import tarfile\ntarfile.open(f).extractall('out', filter='data')", False),
        ("import zipfile\nzipfile.ZipFile(f).extractall()", True),
        ("import shutil\nshutil.unpack_archive(f)", True),
    ],
)
def test_an_archive_may_write_anywhere_unless_it_is_filtered(code: str, unknown: bool) -> None:
    found = analyze("python", code, WORKSPACE)
    assert found.unknown is unknown and found.of("write")


def test_a_file_with_another_name_is_not_only_in_this_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    (tmp_path / "work").mkdir()
    os.link(tmp_path / "x", tmp_path / "work" / "a")
    (effect,) = analyze("python", "open('a', 'w')", tmp_path / "work").of("write")
    assert effect.place == "unknown"


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("%save /outside/f 1", "/outside/f.py"),
        ("%save -f note 1-3", "note.py"),
        ("%logstart log.txt append", "log.txt"),
    ],
)
def test_saving_commands_name_the_file(code: str, path: str) -> None:
    assert [effect.what for effect in analyze("python", code, WORKSPACE).of("write")] == [path]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("git reflog delete HEAD@{1}", "write"),
        ("git reflog expire --all", "write"),
        ("git remote show origin", "network"),
        ("git remote prune origin", "network"),
        ("git remote update", "network"),
        ("git reflog", ""),
        ("git remote show -n origin", ""),
        ("git remote -v", ""),
    ],
)
def test_git_commands_with_two_faces(code: str, kind: str) -> None:
    kinds = {effect.kind for effect in analyze("shell", code, WORKSPACE).of("write", "network", "unknown")}
    assert kinds >= {kind} if kind else not kinds
