"""What a block did to files, in words for a small model: it does not look itself, and takes what it wrote for right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interpreter.llm.file_preview import beginning

_ASKS_FOR_FILES = re.compile(
    r"\b(sav|writ|stor|creat|chang|replac|renam|mov|delet|remov|updat|convert|append|insert|fix)\w*\b|\b(put|set)\b",
    re.IGNORECASE,
)
UNDONE = "No file was changed: what was asked is not done yet."
_SHOWN = 3
_NAMED = 10
_VERBS = {"created": "Created", "changed": "Changed", "deleted": "Deleted", "renamed": "Renamed", "mode": "Changed"}


def aftermath(changed: Mapping[str, Any] | None, folder: str) -> str:
    """What became of the files; empty if nothing did."""
    listed = _listed(changed)
    lines = [_told(each, folder, number < _SHOWN) for number, each in enumerate(listed[:_NAMED])]
    more = len(listed) - _NAMED
    return "\n".join([*lines, *([f"And {more} more."] if more > 0 else [])])


def is_undone(words: str, changed: Mapping[str, Any] | None) -> bool:
    """Whether somebody's words ask for a change of files, and there was none."""
    is_known = changed is None or not (changed.get("off") or changed.get("not_covered"))
    return is_known and not _listed(changed) and bool(_ASKS_FOR_FILES.search(words))


def _listed(changed: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    return [each for each in (changed or {}).get("changed", ()) if each["what"] in _VERBS]


def _told(change: Mapping[str, Any], folder: str, is_shown: bool) -> str:
    name = str(change["path"])
    done = f"{_VERBS[change['what']]} {change.get('from') or name}"
    if change["what"] == "renamed":
        return f"{done} to {name}."
    path = Path(folder, name)
    if not is_shown or change["what"] in ("deleted", "mode") or not path.is_file():
        return f"{done}."
    return f"{done}. {beginning(name, path)}".rstrip()
