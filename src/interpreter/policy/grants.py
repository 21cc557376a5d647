"""What sandboxes are given for good: items of the user's file, added when somebody says "always"."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from interpreter.policy.files import project_file, user_file
from interpreter.policy.rules import above

if TYPE_CHECKING:
    from interpreter.policy.policy import Policy
    from interpreter.sandbox.sandbox import Widening

GIVEN = ("host", "read", "write", "env")


class Grant(NamedTuple):
    """One thing, and the workspace in which it is given."""

    kind: str
    value: str
    folder: str = ""

    def holds_in(self, workspace: str) -> bool:
        return not self.folder or above(os.path.realpath(os.path.expanduser(self.folder)), workspace)


_known: dict[tuple[str, str], tuple[object, tuple[Widening, ...]]] = {}  # what files said, and when that was


def given_always(workspace: str) -> tuple[Widening, ...]:
    """What sandboxes have in this workspace beyond the settings; not what a rule denies."""
    from interpreter.policy.policy import Policy

    path = user_file()
    stamp = stamped(path), stamped(project_file(workspace))
    if stamp[0] is None:
        return ()
    key = (str(path), workspace)
    if key not in _known or _known[key][0] != stamp:
        _known[key] = stamp, allowed(Policy.load(workspace))
    return _known[key][1]


def allowed(policy: Policy) -> tuple[Widening, ...]:
    from interpreter.policy.widening import refusal
    from interpreter.sandbox.sandbox import Widening, full

    plain = {"read": lambda value: str(full(value)), "write": lambda value: str(full(value))}
    given = [Widening(kind, plain.get(kind, str)(value)) for kind, value, _ in policy.grants]  # type: ignore[arg-type]
    return tuple(each for each in given if not refusal(policy, each))


def stamped(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def grant_text(wanted: Widening, workspace: str) -> str:
    """A grant as a file has it."""
    import yaml

    return yaml.safe_dump([{wanted.kind: wanted.value, "folder": workspace}], sort_keys=False, allow_unicode=True)


def save_grant(wanted: Widening, workspace: str) -> Path:
    """Add it to the user's file; returns where that is."""
    from interpreter.policy.policy_file import save_item

    grant = Grant(wanted.kind, wanted.value, workspace)
    text = grant_text(wanted, workspace)
    return save_item("sandbox", text, workspace, lambda file: replace(file, grants=(*file.grants, grant)))
