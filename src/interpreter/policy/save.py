"""Adding a rule to the user's file: whole or not at all, for the user alone, and nothing else in it changes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.errors import PolicyError
from interpreter.policy.files import user_file

if TYPE_CHECKING:
    from interpreter.policy.read import PolicyFile
    from interpreter.policy.rules import Rule

_HEADER = "# What may run without asking, what is asked, and what never runs. See docs/policy.md.\n"


def rule_text(rule: Rule) -> str:
    """A rule as a file has it."""
    import yaml

    fields: dict[str, Any] = {"decision": rule.decision}
    for name, value in rule.conditions.items():
        fields[name] = value[0] if len(value) == 1 else list(value)
    fields |= {name: value for name in ("reason", "name") if (value := getattr(rule, name))}
    return yaml.safe_dump([fields], sort_keys=False, allow_unicode=True, width=100)


def save_rule(rule: Rule, workspace: str) -> Path:
    """Add a rule to the user's file; returns where that is."""
    wanted = replace(rule, match=(), no_match=())
    return save_item("rules", rule_text(rule), workspace, lambda file: replace(file, rules=(*file.rules, wanted)))


def save_item(key: str, text: str, workspace: str, expected: Callable[[PolicyFile], PolicyFile]) -> Path:
    """Add an item to a list of the user's file, which must then say what is expected; returns where that is."""
    path = Path(os.path.realpath(user_file()))  # it may be a link into somebody's collection of such files
    with _alone(path.parent):
        _save(path, key, text, workspace, expected)
    return path


def _save(path: Path, key: str, text: str, workspace: str, expected: Callable[[PolicyFile], PolicyFile]) -> None:
    from interpreter.policy.read import read_text

    try:
        old = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        old = ""
    before = read_text(old, str(path), workspace, check=False)
    new = _added(old, text, key)
    after = read_text(new, str(path), workspace, check=False) if new else before
    if after != expected(before):
        raise PolicyError(str(path), 0, f"nothing can be added to `{key}` in this file", f"Add it by hand:\n{text}")
    write_whole(path, new)


def _added(old: str, rule: str, key: str) -> str:
    """The text with the item at the end of its list; empty if there is no place for it."""
    import yaml

    old = old if not old or old.endswith("\n") else f"{old}\n"
    root = yaml.compose(old, Loader=yaml.SafeLoader)
    if root is None:
        return f"{old or _HEADER}{key}:\n{rule}"
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        return ""
    rules = next((value for name, value in root.value if name.value == key), None)
    if rules is None:
        return f"{old.rstrip()}\n\n{key}:\n{rule}"
    if not rules.value or (isinstance(rules, yaml.ScalarNode) and rules.value == "null"):
        return _in_place(old, rules.start_mark.index, rules.end_mark.index, rule)
    if not isinstance(rules, yaml.SequenceNode) or rules.flow_style:
        return ""
    # The mark before each item is its dash; the last item ends where its last line with something in it ends.
    indent = " " * max(rules.start_mark.column, 0)
    lines = old.split("\n")
    at = rules.end_mark.line if rules.end_mark.line < len(lines) else len(lines)
    while at > 0 and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("#")):
        at -= 1
    added = [indent + line if line else line for line in rule.rstrip("\n").split("\n")]
    return "\n".join([*lines[:at], *added, *(lines[at:] if any(lines[at:]) else [""])])


def _in_place(old: str, start: int, end: int, rule: str) -> str:
    """The rule instead of `[]` or nothing; a comment behind it stays where it is."""
    comment, newline, rest = old[end:].partition("\n")
    return f"{old[:start].rstrip()}{comment}\n{rule}{rest}" if newline else ""


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two sessions may save at the same moment."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_whole(path: Path, text: str) -> None:
    """Replace a file; only its owner can read it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
