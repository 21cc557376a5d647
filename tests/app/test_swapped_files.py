"""Files that the host reads and writes for the user, where sandboxed code has put links and pipes instead."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.app import conversations, own_blocks, result_of
from interpreter.errors import ConversationFileError, UsageError
from interpreter.frontends.pictures.images import Pictures
from interpreter.frontends.terminal.render.plain import PlainDisplay
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.host import exposure
from interpreter.llm.file_preview import beginning
from interpreter.llm.request import image_url

SECRET = "the user's secret"
LINK_OR_PIPE = pytest.mark.parametrize(
    "make", [lambda path, outside: path.symlink_to(outside), lambda path, _: os.mkfifo(path)], ids=["link", "pipe"]
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    file = tmp_path / "outside" / "secret.json"
    file.parent.mkdir()
    file.write_text(json.dumps([{"role": "user", "content": SECRET}]))
    return file


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenInterpreter:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.setattr(exposure, "_writable_by_code", {os.path.realpath(workspace)})
    made = OpenInterpreter(workspace=str(workspace))
    made.messages = [{"role": "user", "type": "message", "content": "hello"}]
    return made


def test_saving_messages_replaces_a_link_and_not_its_target(interpreter: OpenInterpreter, outside: Path) -> None:
    link = Path(interpreter.workspace, "messages.json")
    link.symlink_to(outside)
    conversations.save_messages(interpreter)
    assert SECRET in outside.read_text()
    assert not link.is_symlink()
    assert "hello" in link.read_text()


def test_saving_messages_does_not_follow_a_linked_folder(interpreter: OpenInterpreter, outside: Path) -> None:
    Path(interpreter.workspace, "notes").symlink_to(outside.parent)
    with pytest.raises(ConversationFileError):
        conversations.save_messages(interpreter, "notes/new.json")
    assert not (outside.parent / "new.json").exists()


def test_loading_messages_does_not_follow_a_link(interpreter: OpenInterpreter, outside: Path) -> None:
    Path(interpreter.workspace, "messages.json").symlink_to(outside)
    with pytest.raises(ConversationFileError):
        result_of(conversations.load_messages(interpreter))
    assert SECRET not in str(interpreter.messages)


@LINK_OR_PIPE
def test_running_a_file_does_not_read_a_link_or_pipe(
    interpreter: OpenInterpreter, outside: Path, make: Callable[[Path, Path], object]
) -> None:
    make(Path(interpreter.workspace, "job.py"), outside)
    with pytest.raises(UsageError, match="Could not read"):
        result_of(own_blocks.run_file(interpreter, "job.py"))


@LINK_OR_PIPE
def test_showing_an_image_does_not_read_a_link_or_pipe(
    interpreter: OpenInterpreter, outside: Path, make: Callable[[Path, Path], object]
) -> None:
    path = Path(interpreter.workspace, "figure.png")
    make(path, outside)
    pictures = Pictures(environ={"TERM": "xterm-256color"})
    pictures.prepare()
    assert pictures.rows(str(path), 80, 24, "caption", Theme()) == ["caption"]
    written: list[str] = []
    PlainDisplay(written.append).show({"role": "computer", "type": "image", "format": "path", "content": str(path)})
    assert SECRET not in "".join(written)
    assert beginning("figure.png", path) == ""
    assert image_url({"role": "user", "type": "image", "format": "path", "content": str(path)}) is None


def test_the_users_links_still_work_where_code_cannot_write(tmp_path: Path, outside: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(outside)
    assert SECRET in beginning("link.json", link)
    made = OpenInterpreter(workspace=str(tmp_path))
    result_of(conversations.load_messages(made, "link"))
    assert SECRET in str(made.messages)
    conversations.save_messages(made, "link")
    assert link.is_symlink()
