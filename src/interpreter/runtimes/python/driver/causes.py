"""What the system said no to, when an error ended a block: the numbers, for a host that knows why."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Set

MOST = 8


def causes(error: Optional[BaseException]) -> Dict[str, Any]:
    """The refusals among an error and those that led to it."""
    found: List[Dict[str, Any]] = []
    todo: List[Any] = [error]
    seen: Set[int] = set()
    while todo and len(seen) < 64:
        current = todo.pop(0)
        if not isinstance(current, BaseException) or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, OSError) and isinstance(current.errno, int):
            found += [refusal(current, path) for path in paths(current)]
        todo += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]
        todo += [current.__dict__.get("reason")]  # of a URLError
    return {"errors": found[:MOST]} if found else {}


def refusal(error: OSError, path: str) -> Dict[str, Any]:
    return {"number": error.errno, "path": path, "kind": type(error).__name__}


def paths(error: OSError) -> List[str]:
    names = [name for name in (error.filename, error.filename2) if isinstance(name, (str, bytes, os.PathLike))]
    return [os.path.abspath(os.fsdecode(name)) for name in names] or [""]
