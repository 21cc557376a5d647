"""Which files git is told to ignore: the `.gitignore` files of a folder and of those below it."""

from __future__ import annotations

import os
import re
from typing import List, NamedTuple, Optional, Pattern


class Rule(NamedTuple):
    """One line of such a file; it is about what is below the folder that the file is in."""

    folder: str
    pattern: Pattern[str]
    ignores: bool
    only_folders: bool


def rules_in(folder: str, relative: str) -> List[Rule]:
    """What the `.gitignore` of a folder says; `relative` is that folder from where the search began."""
    try:
        with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    return [rule for line in lines for rule in [_rule(line, relative)] if rule is not None]


def is_ignored(rules: List[Rule], relative: str, is_folder: bool) -> bool:
    """Whether the last rule that is about it says so."""
    for rule in reversed(rules):
        below = os.path.relpath(relative, rule.folder) if rule.folder else relative
        if (is_folder or not rule.only_folders) and rule.pattern.match(below):
            return rule.ignores
    return False


def _rule(line: str, folder: str) -> Optional[Rule]:
    line = re.sub(r"(?<!\\) +$", "", line)
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    pattern = line if ignores else line[1:]
    only_folders = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    if not pattern:
        return None
    anywhere = "/" not in pattern
    return Rule(folder, _compiled(pattern.lstrip("/"), anywhere), ignores, only_folders)


def _compiled(pattern: str, anywhere: bool) -> Pattern[str]:
    begin = "(?:.*/)?" if anywhere else ""
    return re.compile(begin + translated(pattern) + r"\Z", re.DOTALL)


def translated(pattern: str) -> str:
    """A pattern with `*`, `?`, `[...]` and `**` as a regular expression."""
    found, at = "", 0
    while at < len(pattern):
        rest = pattern[at:]
        at_begin = at == 0 or pattern[at - 1] == "/"
        if at_begin and rest.startswith("**/"):
            found, at = found + "(?:.*/)?", at + 3
        elif at_begin and rest == "**":
            found, at = found + ".+", at + 2
        elif rest[0] == "*":
            found, at = found + "[^/]*", at + 1
        elif rest[0] == "?":
            found, at = found + "[^/]", at + 1
        elif rest[0] == "[" and "]" in rest[2:]:
            end = rest.index("]", 2)
            inner = rest[1:end].replace("\\", "\\\\")
            found += f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]"
            at += end + 1
        else:
            escaped = rest[0] == "\\" and len(rest) > 1
            found, at = found + re.escape(rest[1] if escaped else rest[0]), at + 1 + escaped
    return found
