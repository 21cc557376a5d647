"""An export writes and reads only where the user said, despite links and false paths from code."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from export.conversations import drawn
from interpreter import OpenInterpreter
from interpreter.app import exports, result_of
from interpreter.errors import ExportError
from interpreter.export import write
from interpreter.export.documents import picture
from interpreter.host import exposure
from interpreter.host.files import Folder
from interpreter.messages import Message
from interpreter.script.verify import Verification, copy_files
from sampling import some


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that sandboxed code can write to."""
    monkeypatch.setattr(exposure, "_writable_by_code", set())
    folder = tmp_path / "work"
    folder.mkdir()
    exposure.distrust(folder)
    return folder


def with_conversation(workspace: Path) -> OpenInterpreter:
    interpreter = OpenInterpreter(workspace=str(workspace))
    said: Message = {"role": "user", "type": "message", "content": "Draw it."}
    code: Message = {"role": "assistant", "type": "code", "format": "python", "content": "draw()"}
    interpreter.messages = [said, code, drawn()]
    return interpreter


def attachment(path: str) -> Message:
    return {"role": "user", "type": "image", "format": "path", "content": path}


def test_a_claimed_directory_does_not_move_the_file(workspace: Path, outside: Path) -> None:
    interpreter = with_conversation(workspace)
    interpreter.computer.context.cwd = str(outside)
    for form in ("markdown", "html", "notebook"):
        exported = result_of(exports.export(interpreter, form))
        assert exported is not None and exported.path.parent == workspace
    assert not list(outside.iterdir())


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("path", ["link/notes.md", "link/deep/notes.md", "notes.md"])
def test_links_made_by_code_are_not_followed(workspace: Path, outside: Path, path: str, force: bool) -> None:
    (workspace / "link").symlink_to(outside)
    (workspace / "notes_files").symlink_to(outside)
    (workspace / "notes.md").symlink_to(outside / "notes.md")
    with pytest.raises(ExportError):
        result_of(exports.export(with_conversation(workspace), "markdown", path, force=force))
    assert not list(outside.iterdir())


def test_a_link_at_the_target_is_replaced_not_followed(workspace: Path, outside: Path) -> None:
    (outside / "mine").write_text("mine")
    (workspace / "page.html").symlink_to(outside / "mine")
    result_of(exports.export(with_conversation(workspace), "html", "page.html", force=True))
    assert (outside / "mine").read_text() == "mine" and not (workspace / "page.html").is_symlink()


def test_the_users_links_are_followed(workspace: Path, outside: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(outside)
    result_of(exports.export(with_conversation(workspace), "html", str(tmp_path / "link" / "new" / "page.html")))
    assert (outside / "new" / "page.html").exists()


def test_the_workspace_is_recognized_through_a_link(workspace: Path, outside: Path, tmp_path: Path) -> None:
    (workspace / "link").symlink_to(outside)
    (tmp_path / "other-name").symlink_to(workspace)
    with pytest.raises(ExportError):
        result_of(
            exports.export(with_conversation(workspace), "html", str(tmp_path / "other-name" / "link" / "page.html"))
        )
    assert not list(outside.iterdir())


def test_a_users_link_into_the_workspace_leads_no_further(workspace: Path, outside: Path, tmp_path: Path) -> None:
    (outside / "key.png").write_bytes(b"secret")
    (workspace / "results").symlink_to(outside)
    (workspace / "pic.png").symlink_to(outside / "key.png")
    (tmp_path / "results").symlink_to("work/results")
    (tmp_path / "pic.png").symlink_to(workspace / "pic.png")
    for path in (tmp_path / "pic.png", tmp_path / "results" / "key.png"):
        assert picture(attachment(str(path))) is None
    with pytest.raises(ExportError):
        result_of(exports.export(with_conversation(workspace), "html", str(tmp_path / "results" / "page.html")))
    assert [path.name for path in outside.iterdir()] == ["key.png"]


def test_an_image_replaced_by_a_link_is_not_read(workspace: Path, outside: Path) -> None:
    (outside / "key.png").write_bytes(b"secret")
    (workspace / "attached.png").symlink_to(outside / "key.png")
    (workspace / "folder").symlink_to(outside)
    assert picture(attachment(str(workspace / "attached.png"))) is None
    assert picture(attachment(str(workspace / "folder" / "key.png"))) is None
    (outside / "link.png").symlink_to(outside / "key.png")
    assert picture(attachment(str(outside / "link.png"))) is not None


def test_code_cannot_pass_a_file_as_its_image(workspace: Path, outside: Path) -> None:
    (outside / "key.png").write_bytes(b"secret")
    interpreter = with_conversation(workspace)
    interpreter.messages[-1] = {
        "role": "computer", "type": "image", "format": "path", "content": str(outside / "key.png"),
    }  # fmt: skip
    exported = result_of(exports.export(interpreter, "markdown"))
    assert exported is not None and not list(workspace.glob("*_files"))


def test_a_verified_program_cannot_read_through_links(workspace: Path, outside: Path) -> None:
    (outside / "key").write_text("secret")
    (workspace / "key").symlink_to(outside / "key")
    (workspace / "folder").symlink_to(outside)
    os.mkfifo(workspace / "pipe")
    report = Verification("import os\nprint(os.listdir('.'))", "/usr/bin/python3", workspace).run()
    assert report.output.strip() == "[]"


@pytest.mark.parametrize("name", some(2, ["original-0", "recorded-0", "compare_pictures.py", "figures", "folder"]))
def test_links_left_by_a_verified_program_are_not_followed(workspace: Path, outside: Path, name: str) -> None:
    (outside / "mine").write_text("mine")
    (workspace / "a.png").write_bytes(b"not this")
    target = outside if name in ("figures", "folder") else outside / "mine"
    program = f"""
import os, shutil
open("a.png", "w").write("that")
os.chdir("..")
if os.path.isdir({name!r}):
    os.rename({name!r}, "moved")
elif os.path.exists({name!r}):
    os.unlink({name!r})
os.symlink({str(target)!r}, {name!r})
"""
    try:
        Verification(program, "/usr/bin/python3", workspace, (drawn(),)).run()
    except OSError:
        pass  # its folder was moved
    assert [path.name for path in outside.iterdir()] == ["mine"] and (outside / "mine").read_text() == "mine"


@pytest.mark.full
def test_swapping_folders_and_links_in_a_race_gains_nothing(workspace: Path, outside: Path) -> None:
    """Code keeps swapping the folder and a link while the host writes to it and copies from it."""
    (outside / "key").write_text("secret")
    (workspace / "sub").mkdir()
    (workspace / "sub" / "key").write_text("open")
    (workspace / "link").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for old, new in (("sub", "spare"), ("link", "sub"), ("sub", "link"), ("spare", "sub")):
                with suppress(OSError):  # the host creates missing folders
                    os.rename(workspace / old, workspace / new)

    thread = threading.Thread(target=swap)
    thread.start()
    written = copied = 0
    try:
        for number in range(60):
            with suppress(ExportError):
                write(workspace / "sub" / "a.md", "text", force=True, pictures={"a.png": b"x"})
                written += 1
            target = workspace.parent / f"copy-{number}"
            target.mkdir()
            with Folder(workspace) as source, Folder(target) as copy, suppress(OSError):
                copy_files(source, copy)
            found = [path.read_text() for path in target.rglob("key")]
            assert "secret" not in found
            copied += bool(found)
    finally:
        stop.set()
        thread.join()
    assert [path.name for path in outside.iterdir()] == ["key"]
    assert written and copied
