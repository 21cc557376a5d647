"""The end of a run without a chat: the session's changes as a diff, and whether a commit was refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.repo.commit import refused
from interpreter.workspace.diff import lines_for, unified
from interpreter.workspace.tree import Item, repository_of

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent


def end_run(agent: Agent) -> str:
    """Write the diff if a file is named for it; return why a commit was refused, if the last one was."""
    if agent.settings.diff_file:
        Path(agent.settings.diff_file).expanduser().write_text(session_diff(agent), encoding="utf-8")
    return refused.get(agent, "")


def session_diff(agent: Agent) -> str:
    """Return what the blocks of a session changed in the workspace, from before the first to after the last."""
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
        kinds = {item.kind for item in sides if item is not None}
        contents = [record.content(item) if item is not None and record is not None else b"" for item in sides]
        if kinds != {"file"} or contents[0] == contents[1]:
            continue
        heads = f"a/{path}" if sides[0] else "/dev/null", f"b/{path}" if sides[1] else "/dev/null"
        try:
            old, new = (lines_for("", content or b"") for content in contents)
            parts.append(unified(old, new, heads))
        except ValueError:
            parts.append(f"Binary files {heads[0]} and {heads[1]} differ\n")
    return "".join(parts)
