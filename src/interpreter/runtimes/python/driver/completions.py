"""What could be typed next: names, attributes, keys. Properties are not read to find out."""

from __future__ import annotations

import builtins
import keyword
import re
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Tuple

MOST = 200
NAME = r"(?P<path>(?:[^\W\d]\w*\s*\.\s*)*)(?P<part>(?:[^\W\d]\w*)?)\Z"
KEY = r"(?P<path>[^\W\d]\w*(?:\.[^\W\d]\w*)*)\[(?P<quote>['\"])(?P<part>[^'\"\\\n]*)\Z"
MISSING = object()
LAZY = ("pandas",)  # its columns are attributes that only getattr() finds, without effect


def completions(namespace: Dict[str, Any], code: str, cursor: int) -> Dict[str, Any]:
    """Where the word begins that could be completed, and with what: (text, kind)."""
    before = code[:cursor]
    key = re.search(KEY, before)
    if key is not None:
        return keys(namespace, key)
    match = re.search(NAME, before)
    if match is None or before[: match.start()].endswith((".", "'", '"')):
        return {"start": cursor, "matches": []}
    part, path = match["part"], match["path"]
    if path:
        owner = resolved(namespace, [name.strip() for name in path.split(".")[:-1]])
        found: Iterable[Tuple[str, str]] = [] if owner is MISSING else attributes(owner, part)
    else:
        found = names(namespace, part)
    matches = [[text, kind] for text, kind in found if text.startswith(part)]
    matches.sort(key=lambda match: (match[0].startswith("_"), match[0].startswith("__"), match[0].lower()))
    return {"start": cursor - len(part), "matches": matches[:MOST]}


def names(namespace: Dict[str, Any], part: str) -> List[Tuple[str, str]]:
    found = dict.fromkeys(keyword.kwlist, "keyword") if part else {}
    if part:
        found.update((name, kind_of(value)) for name, value in vars(builtins).items())
    found.update((name, kind_of(value)) for name, value in list(namespace.items()) if part or name[:1] != "_")
    return [(name, kind) for name, kind in found.items() if name.startswith(part)]


def attributes(owner: Any, part: str) -> List[Tuple[str, str]]:
    try:
        listed = [name for name in dir(owner) if isinstance(name, str) and name.isidentifier()]
    except Exception:  # noqa: BLE001 -- whatever a user's __dir__ raises
        return []
    shown = [name for name in listed if name.startswith(part) and (part or name[0] != "_")]
    return [(name, kind_of(static(owner, name))) for name in shown[: MOST * 2]]


def keys(namespace: Dict[str, Any], match: Any) -> Dict[str, Any]:
    """The keys of a mapping or the columns of a table, after an opening quote."""
    owner = resolved(namespace, match["path"].split("."))
    columns = getattr(owner, "columns", ()) if type(owner).__module__.startswith(("pandas", "polars")) else ()
    offered = list(owner)[:2000] if isinstance(owner, dict) else list(columns)[:2000]
    texts = [key for key in offered if isinstance(key, str) and key.startswith(match["part"])]
    plain = [key for key in texts if key.isprintable() and match["quote"] not in key and "\\" not in key]
    return {"start": match.start("part"), "matches": [[key, "key"] for key in plain[:MOST]]}


def resolved(namespace: Dict[str, Any], path: List[str]) -> Any:
    """The value at the end of a dotted path; MISSING if finding it would run code."""
    value = namespace.get(path[0], getattr(builtins, path[0], MISSING))
    for name in path[1:]:
        if value is MISSING:
            break
        value = harmless(value, name)
    return value


def harmless(owner: Any, name: str) -> Any:
    if isinstance(owner, ModuleType):
        return vars(owner).get(name, MISSING)
    found = static(owner, name)
    lazy = found is MISSING and type(owner).__module__.startswith(LAZY)
    if lazy or (found is not MISSING and not isinstance(found, property) and not has_getter(found)):
        try:
            return getattr(owner, name)
        except Exception:  # noqa: BLE001 -- whatever it raises, there is nothing to offer
            return MISSING
    return MISSING


def static(owner: Any, name: str) -> Any:
    return trusted_import("inspect").getattr_static(owner, name, MISSING)


def has_getter(found: Any) -> bool:
    """Whether reading the attribute would call something that the user has written."""
    get = getattr(type(found), "__get__", None)
    return isinstance(get, FunctionType)


def kind_of(value: Any) -> str:
    if isinstance(value, (FunctionType, BuiltinFunctionType, MethodType)):
        return "function"
    if isinstance(value, type):
        return "class"
    if isinstance(value, ModuleType):
        return "module"
    return "" if value is MISSING else type(value).__name__
