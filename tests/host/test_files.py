"""Access to files below a folder: no link, `..` or swapped folder leads outside."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from host.folder_swapper import swapper
from interpreter.host import files
from interpreter.host.files import Folder, beneath, remove


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "b" / "file").write_text("inside")
    (tmp_path / "outside" / "b").mkdir(parents=True)
    (tmp_path / "outside" / "b" / "file").write_text("secret")
    return tmp_path / "root"


@pytest.fixture(params=["openat2", "component by component"])
def folder(root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Folder:
    if request.param != "openat2":
        monkeypatch.setattr(files, "_openat2", lambda: None)
    return Folder(root)


def test_a_file_is_written_whole_and_keeps_its_permissions(folder: Folder, root: Path) -> None:
    os.chmod(root / "a" / "b" / "file", 0o640)
    folder.write_bytes("a/b/file", b"new")
    folder.write_bytes("a/b/other", b"first")
    assert folder.read_bytes("a/b/file") == b"new"
    assert folder.read_bytes("a/b/file", 2) == b"ne"
    assert folder.stat("a/b/file").st_mode & 0o777 == 0o640
    assert sorted(folder.listdir("a/b")) == ["file", "other"]


def test_folders_and_links_can_be_created_moved_and_removed(folder: Folder, root: Path) -> None:
    folder.mkdir("x/y/z", parents=True)
    folder.mkdir("x/y/z", exist_ok=True)
    folder.symlink("nowhere", "x/link")
    assert folder.readlink("x/link") == "nowhere"
    folder.link("a/b/file", "x/second")
    folder.replace("x/second", "x/y/third")
    folder.utime("x/y/third", (1, 2))
    assert folder.stat("x/y/third").st_mtime_ns == 2
    folder.unlink("x/link")
    folder.unlink("x/link", missing_ok=True)
    folder.rmdir("x/y/z")
    folder.unlink("x/y/third")
    folder.rmdir("x/y")
    folder.rmdir("x")
    assert not folder.exists("x") and folder.is_dir("a") and folder.is_dir()
    assert folder.listdir() == ["a"]


OPERATIONS: dict[str, Callable[[Folder, str], object]] = {
    "read": lambda folder, name: folder.read_bytes(name),
    "write": lambda folder, name: folder.write_bytes(name, b"attack"),
    "stat": lambda folder, name: folder.stat(name),
    "chmod": lambda folder, name: folder.chmod(name, 0o777),
    "utime": lambda folder, name: folder.utime(name, (0, 0)),
    "unlink": lambda folder, name: folder.unlink(name),
    "rename": lambda folder, name: folder.replace("a/b/file", name),
    "rename away": lambda folder, name: folder.replace(name, "stolen"),
    "link": lambda folder, name: folder.link(name, "stolen"),
    "symlink": lambda folder, name: folder.symlink("x", name),
    "mkdir": lambda folder, name: folder.mkdir(name, parents=True, exist_ok=True),
    "list": lambda folder, name: folder.listdir(name),
}


@pytest.mark.parametrize("name", ["out/b/file", "out/b", "out/new", "../outside/b/file", "a/../../outside/b", "/etc"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_operation_reaches_outside_the_folder(folder: Folder, root: Path, operation: str, name: str) -> None:
    (root / "out").symlink_to(root.parent / "outside")
    with pytest.raises(OSError, match="Errno"):
        OPERATIONS[operation](folder, name)
    outside = root.parent / "outside"
    assert sorted(str(path.relative_to(outside)) for path in outside.rglob("*")) == ["b", "b/file"]
    assert (outside / "b" / "file").read_text() == "secret"
    assert not (root / "stolen").exists()


def test_a_symlink_at_the_end_of_a_path_is_not_followed(folder: Folder, root: Path) -> None:
    secret = root.parent / "outside" / "b" / "file"
    (root / "link").symlink_to(secret)
    mode = secret.stat().st_mode
    with pytest.raises(OSError, match="Errno"):
        folder.read_bytes("link")
    with pytest.raises(OSError, match="Errno"):
        folder.chmod("link", 0o777)
    folder.write_bytes("link", b"mine")
    assert (root / "link").read_text() == "mine" and not (root / "link").is_symlink()
    assert secret.read_text() == "secret" and secret.stat().st_mode == mode


def test_only_regular_files_are_opened(folder: Folder, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(root / "socket"))
    for name in ("pipe", "socket", "a"):
        with pytest.raises(OSError, match="Errno"):
            folder.read_bytes(name)
    with pytest.raises(OSError, match="Errno"):
        folder.open("pipe", "wb")


def test_beneath_only_resolves_paths_inside_the_root(root: Path) -> None:
    (root / "shortcut").symlink_to("a/b")
    (root / "out").symlink_to(root.parent / "outside")
    for path in ("a/b/file", root / "shortcut" / "file", "shortcut/../b/file"):
        folder, name = beneath(root, path)
        with folder:
            assert (name, folder.read_bytes(name)) == ("a/b/file", b"inside")
    assert beneath(root, root)[1] == ""
    for path in ("out/b/file", "../outside", "/etc/passwd", root.parent):
        with pytest.raises(OSError, match="Errno") as error:
            beneath(root, path)
        assert error.value.errno == errno.EXDEV


def _race_against_swapper(folder: Folder, root: Path, rounds: int) -> int:
    outside = root.parent / "outside"
    held = 0
    with swapper(root / "a", outside):
        for number in range(rounds):
            for do in (
                lambda number=number: folder.write_bytes(f"a/b/{number}", b"attack"),
                lambda: folder.read_bytes("a/b/file"),
                lambda number=number: folder.mkdir(f"a/new/{number}", parents=True, exist_ok=True),
                lambda: folder.chmod("a/b/file", 0o666),
                lambda number=number: folder.unlink(f"a/b/{number}"),
            ):
                try:
                    found = do()
                except OSError:
                    held += 1
                else:
                    assert found in (None, b"inside")
    assert sorted(path.name for path in outside.rglob("*")) == ["b", "file"]
    assert (outside / "b" / "file").stat().st_mode & 0o022 == 0
    return held


@pytest.mark.skipif(sys.platform != "linux", reason="the swapper uses renameat2")
@pytest.mark.parametrize("rounds", [1500, pytest.param(100_000, marks=pytest.mark.full)])
def test_a_swapped_folder_is_never_followed(folder: Folder, root: Path, rounds: int) -> None:
    assert _race_against_swapper(folder, root, rounds) > 0


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_openat2_opens_folders_if_the_kernel_has_it(root: Path) -> None:
    openat2 = files._openat2()
    assert openat2 is not None
    with Folder(root) as folder:
        opened = openat2(folder.fileno(), b"a/b", os.O_RDONLY | os.O_DIRECTORY)
    if opened in (-errno.ENOSYS, -errno.EPERM):
        pytest.skip("this kernel has no openat2")
    assert opened >= 0
    os.close(opened)


@pytest.mark.parametrize(
    "use", [Folder.listdir, Folder.stat, lambda folder: folder.read_bytes("file")], ids=["listdir", "stat", "read"]
)
def test_using_a_closed_folder_raises(tmp_path: Path, use: Callable[[Folder], object]) -> None:
    (tmp_path / "file").write_text("text")
    folder = Folder(tmp_path)
    folder.close()
    with pytest.raises(OSError, match="closed"):
        use(folder)


def _nest(top: Path, depth: int) -> None:
    place = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=place)
        place, above = os.open("d", os.O_RDONLY, dir_fd=place), place
        os.close(above)
    os.close(place)


def test_deeply_nested_folders_do_not_exhaust_the_stack(folder: Folder, root: Path) -> None:
    name = "/".join("d" * 1100)
    folder.mkdir(name, parents=True)
    assert folder.is_dir(name)
    remove(root)  # pytest can't remove such a deep folder


@pytest.mark.skipif(not files.CONFINED, reason="paths can't be that long here")
@pytest.mark.parametrize("depth", [1, 3000])
def test_remove_handles_deep_and_unreadable_folders_and_follows_no_link(root: Path, tmp_path: Path, depth: int) -> None:
    (root / "a" / "link").symlink_to(tmp_path / "outside")
    _nest(root / "a" / "b", depth)
    os.mkfifo(root / "a" / "b" / "pipe")
    os.chmod(root / "a" / "b", 0)
    (tmp_path / "outside").chmod(0o750)
    (tmp_path / "name").symlink_to(tmp_path / "outside")
    remove(root)
    remove(tmp_path / "name")
    remove(tmp_path / "nothing")
    assert not root.exists()
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "outside" / "b" / "file").read_text() == "secret"
