"""Patterns of paths: `*` within a name, `**` over folders; relative to the workspace."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple


class Folders(NamedTuple):
    """What stands for `{workspace}`, `{config}` and `~` in a pattern; links are resolved."""

    workspace: str
    config: str
    home: str
    account_home: str = ""  # where it is another one: what is forbidden in the one is so in the other


def matches_path(path: str, pattern: str, folders: Folders, above_too: bool = False, in_both: bool = False) -> bool:
    """Is the path one that the pattern means, in both homes if asked, or, if asked, a folder above one?"""
    if in_both and folders.account_home and pattern.startswith("~"):
        other = folders._replace(home=folders.account_home)
        if matches_path(path, pattern, other, above_too):
            return True
    whole = _whole(pattern, folders)
    if _compiled(whole).fullmatch(path):
        return True
    fixed = re.split(r"[*?\[]", whole, maxsplit=1)[0]
    return above_too and above(path.removesuffix("/*"), os.path.dirname(fixed) if fixed != whole else fixed)


def may_be(path: str, pattern: str, folders: Folders, above_too: bool = False) -> bool:
    """Could a path with stars in it be one that the pattern means, or, if asked, a folder above one?"""
    if not re.search(r"[*?\[]", path):
        return False
    if folders.account_home and pattern.startswith("~"):
        other = Folders(folders.workspace, folders.config, folders.account_home)
        if may_be(path, pattern, other, above_too):
            return True
    given, wanted = path.split("/"), _whole(pattern, folders).split("/")
    for name, meant in zip(given, wanted, strict=False):
        if meant == "**":
            return True
        if not (fnmatchcase(meant, name) or fnmatchcase(name, meant)):
            return False
    return len(given) == len(wanted) or (above_too and len(given) < len(wanted))


def above(folder: str, path: str) -> bool:
    """Is the path in the folder, or the folder itself?"""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@lru_cache(maxsize=1024)
def _whole(pattern: str, folders: Folders) -> str:
    text = pattern.replace("{workspace}", folders.workspace).replace("{config}", folders.config)
    if text == "~" or text.startswith("~/"):
        text = folders.home.rstrip("/") + text[1:]
    if not text.startswith("/") and not text.startswith("**"):
        text = f"{folders.workspace.rstrip('/')}/{text.removeprefix('./')}"
    return text.rstrip("/") or "/"


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(/\*\*$|\*\*/|\*\*|\*|\?|\[[^\]/]+\])", pattern)
    return re.compile("".join(map(_piece, parts)), re.DOTALL)


def _piece(part: str) -> str:
    match part:
        case "/**":
            return "(/.*)?"  # the folder itself, and all that is in it
        case "**/":
            return "(.*/)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
    if part.startswith("[") and part.endswith("]"):
        inner = part[1:-1].replace("\\", r"\\")
        return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
    return re.escape(part)
