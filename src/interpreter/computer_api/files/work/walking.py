"""The files below a folder, in the order of their names: without what git ignores, hidden files and links."""

from __future__ import annotations

import os
from typing import Iterator, List

from .ignoring import Rule, is_ignored, rules_in


def files_below(root: str, hidden: bool) -> Iterator[str]:
    """Their paths from the root."""
    yield from _walk(root, "", [], hidden)


def _walk(root: str, folder: str, rules: List[Rule], hidden: bool) -> Iterator[str]:
    place = os.path.join(root, folder)
    rules = rules + rules_in(place, folder)
    for entry in _entries(place):
        relative = os.path.join(folder, entry.name)
        if _is_left_out(entry, hidden) or is_ignored(rules, relative, entry.is_dir(follow_symlinks=False)):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, relative, rules, hidden)
        elif entry.is_file(follow_symlinks=False):
            yield relative


def _entries(folder: str) -> "List[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return []


def _is_left_out(entry: "os.DirEntry[str]", hidden: bool) -> bool:
    return entry.is_symlink() or entry.name == ".git" or (entry.name.startswith(".") and not hidden)
