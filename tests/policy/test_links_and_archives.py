"""Static analysis of what is written through links and from archives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interpreter.policy.analysis import Kind, analyze
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
        # links to links, and links in the middle of a path
        ("python", "import os\nos.symlink('b', 'a'); os.symlink('/outside', 'b'); open('a/x', 'w')"),
        ("python", "import os\nos.symlink('..', 'd/up'); open('d/up/../x', 'w')"),
        # a target that is a link to a folder
        ("shell", "ln -s /outside d; mv a d"),
        ("python", "import os, shutil\nos.symlink('/outside', 'd'); shutil.move('a', 'd/')"),
        # folders with links in them
        ("python", "import os\nos.symlink('/outside', 't/d'); os.rename('t', 'u'); open('u/d/x', 'w')"),
        ("shell", "ln -s /outside t/d; cp -a t u; echo > u/d/x"),
        ("javascript", "fs.symlinkSync('/outside', 'd'); fs.cpSync('d', 'e', {recursive: true}); fs.writeFileSync('e/x', '')"),
        # what runs later, or once more
        ("python", "import os\ndef later(): open('d/x', 'w')\nos.symlink('/outside', 'd')\nlater()"),
        ("shell", "while true; do echo > d/x; ln -s /outside d; done"),
        ("javascript", "const later = () => fs.writeFileSync('d/x', ''); fs.symlinkSync('/outside', 'd'); later()"),
        ("shell", "rsync -a link/ t; ln -s /outside link/d; echo > t/d/x"),
        ("shell", "for each in $names; do ln -s /outside $each; done; echo > d/x"),
    ],
)  # fmt: skip
def test_writing_through_a_link_is_not_writing_in_this_folder(language: str, code: str) -> None:
    assert not {"outside", "unknown"}.isdisjoint(
        effect.place for effect in analyze(language, code, WORKSPACE).of("write")
    )


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "import os\nos.symlink('b', 'a'); open('a', 'w')"),
        ("python", "import os\nos.symlink('/outside/x', 'a'); os.remove('a')"),
        ("shell", "ln -s src d; echo > d/x"),
        ("shell", "cp -r src d; echo > d/x; mv d e; echo > e/x"),
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
    "code",
    [
        "cp -a link b; echo > b/x",
        "mv link b; echo > b/x",
        "mv folder b; echo > b/link/x",
        "for each in *; do echo > $each/x; done",
        "ln hard b; echo > b",
    ],
)
def test_links_that_are_there_lead_out_under_other_names_too(code: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").write_text("")
    (tmp_path / "work" / "folder").mkdir(parents=True)
    os.symlink(tmp_path / "out", tmp_path / "work" / "link")
    os.symlink(tmp_path / "out", tmp_path / "work" / "folder" / "link")
    os.link(tmp_path / "out" / "x", tmp_path / "work" / "hard")
    *_, last = analyze("shell", code, tmp_path / "work").of("write")
    assert last.place in ("outside", "unknown")


def test_a_function_of_an_earlier_block_writes_through_a_later_link(tmp_path: Path) -> None:
    first = analyze("python", "def f(): open('a/x', 'w')", tmp_path / "work")
    (tmp_path / "work").mkdir()
    os.symlink(tmp_path, tmp_path / "work" / "a")
    (effect,) = analyze("python", "f()", tmp_path / "work", known=first.defines).of("write")
    assert effect.place == "outside"


@pytest.mark.parametrize(
    ("code", "kind", "place"),
    [
        ("df.to_csv('file:///outside/x')", "write", "outside"),
        ("df.to_csv('file:x')", "write", "workspace"),
        ("df.to_csv('simplecache::/outside/x')", "write", "outside"),
        ("pd.read_csv('file:///outside/x')", "read", "outside"),
        ("import urllib.request\nurllib.request.urlopen('file:///outside/x')", "read", "outside"),
    ],
)
def test_addresses_of_files_are_paths(code: str, kind: Kind, place: str) -> None:
    found = analyze("python", code, WORKSPACE)
    assert [effect.place for effect in found.of(kind)] == [place] and not found.of("network")


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ('%save "/outside/a file" 1', "/outside/a file.py"),
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
        ("git remote -v update", "network"),
        ("git remote -v show origin", "network"),
        ("git reflog", ""),
        ("git remote show -n origin", ""),
        ("git remote -v", ""),
    ],
)
def test_git_commands_with_two_faces(code: str, kind: str) -> None:
    kinds = {effect.kind for effect in analyze("shell", code, WORKSPACE).of("write", "network", "unknown")}
    assert kinds >= {kind} if kind else not kinds


@pytest.mark.parametrize("command", ["git pull", "git merge a", "git stash pop", "git apply a.patch", "git checkout a"])
def test_git_changes_files_and_its_own(command: str) -> None:
    assert {effect.what for effect in analyze("shell", command, WORKSPACE).of("write")} >= {".", ".git"}


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("find -H /outside -delete", "outside"),
        ("find -O3 /outside -delete", "outside"),
        ("find -L . -delete", "unknown"),
        ("find . -follow -delete", "unknown"),
        ("fd -H a /outside -X rm", "unknown"),
        ("find . -delete", "workspace"),
    ],
)
def test_find_deletes_below_its_folders(command: str, place: str) -> None:
    assert {effect.place for effect in analyze("shell", command, WORKSPACE).of("delete")} == {place}


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.remove('x', dir_fd=fd)",
        "import os\nos.rename('a', 'b', dst_dir_fd=os.open('/outside', 0))",
        "open('x', 'w', opener=f)",
        "from pathlib import Path\nfor each in Path('.').glob('../*'): each.unlink()",
        "import glob, os\nfor each in glob.glob('*', root_dir='/outside'): os.remove(each)",
        "import os\nfor folder, _, names in os.walk('.', followlinks=True):\n    for name in names: open(os.path.join(folder, name), 'w')",
    ],
)  # fmt: skip
def test_paths_that_count_from_another_folder_are_unknown(code: str) -> None:
    found = analyze("python", code, WORKSPACE)
    assert found.unknown or {effect.place for effect in found.of("write", "delete")} == {"unknown"}
