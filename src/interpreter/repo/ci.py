"""Diffs of what a session, or everything since a commit, changed; and the end of a run without a chat."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.host.files import Folder
from interpreter.workspace.diff import lines_for, unified
from interpreter.workspace.tree import Item, repository_of

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.api import OpenInterpreter

_MAX_BYTES = 1_000_000  # of a new file


def end_run(agent: Agent) -> str:
    """Write the diff if a file is named for it; return why a commit was refused, if the last one was."""
    from interpreter.repo.commit import refused

    if agent.settings.diff_file:
        Path(agent.settings.diff_file).expanduser().write_text(session_diff(agent), encoding="utf-8")
    return refused.get(agent, "")


def session_diff(agent: Agent) -> str:
    """Return the changes of a session to the workspace, from before its first block to after the last."""
    record = agent.timeline.files.record()
    first: dict[str, Item | None] = {}
    last: dict[str, Item | None] = {}
    for block in agent.timeline.blocks:
        changes = agent.timeline.changes(block.id)
        for path, (before, after) in (changes.pairs if changes is not None else {}).items():
            if repository_of(path) is None:
                first.setdefault(path, before)
                last[path] = after
    parts = []
    for path in sorted(first):
        sides = first[path], last[path]
        if record is not None and {item.kind for item in sides if item is not None} == {"file"}:
            old, new = ((record.content(item) or b"") if item is not None else None for item in sides)
            parts.append(file_diff("", old, new, path) if (old or b"") != (new or b"") else "")
    return "".join(parts)


def file_diff(form: str, before: bytes | None, after: bytes | None, path: str = "") -> str:
    """Compare two versions of a file, by the form that its name has; None: there was, or is, no such file."""
    path = path or form
    heads = f"a/{path}" if before is not None else "/dev/null", f"b/{path}" if after is not None else "/dev/null"
    try:
        old, new = (lines_for(form, data) if data is not None else [] for data in (before, after))
        if b"\0" in (before or b"") + (after or b""):
            raise ValueError
        return unified(old, new, heads)
    except ValueError:
        return f"Binary files {heads[0]} and {heads[1]} differ\n"


def since(interpreter: OpenInterpreter, revision: str) -> Iterator[str]:
    """Yield the diff of each file of the workspace since a commit, new files included; GitError if there is none."""
    from interpreter.repo.git import UNTRACKED, GitError, Repository

    if interpreter.computer.machine is not None:
        raise GitError("This session works on another machine. Use git there.")
    workspace = os.path.realpath(interpreter.workspace)
    try:
        repository = Repository(workspace)
    except GitError as error:
        raise GitError(f"There is no block {revision}: %rewind lists them. {error}") from None
    folder = os.path.relpath(workspace, os.path.realpath(repository.root))
    folder = "" if folder == "." else folder
    with repository.scratch() as scratch, Folder(repository.root) as place:
        text = scratch.diff_since(scratch.commit_of(revision), folder, repository.settings())
        yield from re.split(r"^(?=diff --git )", text, flags=re.MULTILINE)[1:]
        for path in scratch.listed(*UNTRACKED):
            if path.startswith(f"{folder}/" if folder else ""):
                with suppress(OSError):
                    yield file_diff(path, None, place.read_bytes(path, _MAX_BYTES))
