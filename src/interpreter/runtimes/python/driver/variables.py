"""The live variables of a session: name, type, shape, size, and what each looks like, in short.

Nothing of the user's runs here but `__repr__`, and that only for what is not of a kind that is known.
"""

from __future__ import annotations

import sys
import time
from types import FunctionType, ModuleType

from .computer import Method
from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

MOST = 500  # variables
SECONDS = 1.5  # after which the rest is only named
LONGEST = 100  # characters of a preview
LONGEST_INT = 256  # bits
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range, memoryview)
# Libraries whose attributes are cheap and without effect.
KNOWN = frozenset({"numpy", "pandas", "polars", "torch", "xarray", "jax", "jaxlib", "scipy", "collections"})


def listed(namespace: Dict[str, Any], hidden: Dict[str, Any]) -> Dict[str, Any]:
    """What the user's code has named, in the order in which it did; `more` counts what is left out."""
    names = [name for name, value in list(namespace.items()) if is_the_users(name, value, hidden)]
    preview = Preview()
    end = time.monotonic() + SECONDS
    rows = []
    for name in names[:MOST]:
        preview.late = preview.late or time.monotonic() > end
        rows.append(described(name, namespace[name], preview))
    return {"variables": rows, "more": max(0, len(names) - MOST)}


def is_the_users(name: str, value: Any, hidden: Dict[str, Any]) -> bool:
    if name.startswith("_") or isinstance(value, (ModuleType, Method)) or (name in hidden and hidden[name] is value):
        return False
    if isinstance(value, (FunctionType, type)):
        return getattr(value, "__module__", None) == "__main__"  # what was imported is known by its module
    return True


def described(name: str, value: Any, preview: Preview) -> Dict[str, Any]:
    row: Dict[str, Any] = {"name": name, "type": type_name(value)}
    shape = shape_of(value)
    if shape:
        row["shape"] = shape
    size = size_of(value)
    if size is not None:
        row["size"] = size
    row["preview"] = preview.of(value)
    return row


def type_name(value: Any) -> str:
    kind = type(value)
    if isinstance(value, type):
        return "class"
    return kind.__name__ if is_known(value) or kind.__module__ in ("builtins", "__main__") else full_name(kind)


def full_name(kind: type) -> str:
    return "%s.%s" % (kind.__module__.partition(".")[0], kind.__name__)


def is_known(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in KNOWN


def shape_of(value: Any) -> str:
    """As `3 × 4` for what has dimensions, as `7` for what has a length; else nothing."""
    try:
        shape = value.shape if is_known(value) else None
        if isinstance(shape, tuple):
            return " × ".join(str(int(side)) for side in shape)
        if isinstance(value, SIZED) or is_known(value):
            return str(len(value))
    except Exception:  # noqa: BLE001 -- no shape to tell
        return ""
    return ""


def size_of(value: Any) -> Optional[int]:
    """Bytes, where that is cheap to say; of a container without what is in it."""
    try:
        if is_known(value):
            return known_size(value)
        return sys.getsizeof(value) if type(value).__module__ == "builtins" else None
    except Exception:  # noqa: BLE001 -- no size to tell
        return None


def known_size(value: Any) -> Optional[int]:
    usage = getattr(value, "memory_usage", None)
    if usage is not None:
        used = usage()
        return int(used.sum() if hasattr(used, "sum") else used)
    if hasattr(value, "element_size"):
        return int(value.element_size() * value.nelement())
    if hasattr(value, "estimated_size"):
        return int(value.estimated_size())
    size = getattr(value, "nbytes", None)
    return int(size) if size is not None else sys.getsizeof(value)


class Preview:
    """A line about a value, made from a few of its elements, however many it has."""

    def __init__(self) -> None:
        short = trusted_import("reprlib").Repr()
        short.maxlevel, short.maxdict, short.maxother, short.maxstring = 3, 4, LONGEST, LONGEST - 20
        for kind in (bytes, bytearray):
            setattr(short, "repr_" + kind.__name__, lambda value, level: repr(value[:40]) + "..." * (len(value) > 40))
        short.repr_int = lambda value, level: whole_number(value)
        short.repr_ndarray = lambda value, level: array_line(value)
        short.repr_DataFrame = lambda value, level: columns_line(value)
        short.repr_Series = lambda value, level: array_line(value)
        self._short = short
        self.late = False  # no time for more

    def of(self, value: Any) -> str:
        if self.late:
            return ""
        try:
            text = signature(value) or self._short.repr(value)
        except KeyboardInterrupt:  # the host has waited long enough
            self.late = True
            text = "<repr() takes too long>"
        except Exception as error:  # noqa: BLE001 -- whatever a user's __repr__ raises
            text = "<repr() raised %s>" % type(error).__name__
        line = " ".join(str(text).split())
        return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def whole_number(value: int) -> str:
    return repr(value) if value.bit_length() <= LONGEST_INT else "<%d bits>" % value.bit_length()


def array_line(value: Any) -> str:
    """The first elements of an array or a series."""
    few: List[Any] = list((value.iloc if hasattr(value, "iloc") else value.flat)[:6])
    more = ", ..." if value.size > len(few) else ""
    return "%s [%s%s]" % (value.dtype, ", ".join(map(element, few)), more)


def element(value: Any) -> str:
    return "%.6g" % value if isinstance(value, float) else str(value)[:40]


def columns_line(frame: Any) -> str:
    names = [str(name) for name in list(frame.columns[:12])]
    return ", ".join(names) + (", ..." if len(frame.columns) > len(names) else "")


def signature(value: Any) -> str:
    """How a function or a class is called."""
    if not isinstance(value, (FunctionType, type)):
        return ""
    try:
        return "%s%s" % (value.__name__, trusted_import("inspect").signature(value))
    except (TypeError, ValueError):
        return value.__name__
