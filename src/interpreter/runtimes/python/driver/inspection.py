"""Answers questions between blocks: which variables exist, what one looks like, and what could be typed next."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
import time
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from . import displays
from .computer import Method
from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

    from .channel import Frame


def answer(
    frame: Frame, namespace: Dict[str, Any], hidden: Dict[str, Any], png: Callable[[Any], Optional[bytes]]
) -> Frame:
    """The answer to one frame."""
    if frame["op"] == "complete":
        return completions(namespace, str(frame["code"]), int(frame["cursor"]))
    if "name" not in frame:
        return listed(namespace, hidden)
    try:
        value = found(namespace, str(frame["name"]))
    except NotAName:
        return {"failed": "this takes a name, or an attribute or element of one, such as df or sizes['small']"}
    page = page_of(value, frame.get("rows", (0, 50)), frame.get("columns", (0, 50)), png)
    return {"type": type_name(value), **page}


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


if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

    Page = Dict[str, Any]

MOST_ROWS, MOST_COLUMNS = 500, 60
LONGEST_CELL = 200
LONGEST_TEXT = 200_000
MOST_ELEMENTS = 2000
PICTURES = ("image/png", "image/jpeg", "image/svg+xml")


class NotAName(Exception):
    """What was asked for is no name, attribute or element."""


def found(namespace: Dict[str, Any], path: str) -> Any:
    """The value of `a`, `a.b` or `a["b"][0]`; nothing is called, and nothing else is evaluated."""
    try:
        tree = ast.parse(path.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise NotAName(path) from None
    return value_of(tree, namespace)


def value_of(node: Any, namespace: Dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        if node.id in namespace:
            return namespace[node.id]
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        raise NameError("name %r is not defined" % node.id)
    if isinstance(node, ast.Attribute):
        return getattr(value_of(node.value, namespace), node.attr)
    if isinstance(node, ast.Subscript):
        key = node.slice
        if key.__class__.__name__ == "Index":
            key = key.value  # type: ignore[attr-defined]  # Python 3.8
        try:
            return value_of(node.value, namespace)[ast.literal_eval(key)]
        except ValueError:
            pass
    raise NotAName


def page_of(value: Any, rows: Sequence[int], columns: Sequence[int], png: Callable[[Any], Optional[bytes]]) -> Page:
    """What is shown of a value; of a table, these rows and columns."""
    shown = table(value)
    if shown is not None:
        return shown.page(within(rows, MOST_ROWS), within(columns, MOST_COLUMNS))
    if not isinstance(value, (str, bytes, type)):
        pictures = displays.bundle_of(value, png) if may_be_picture(value) else {}
        if any(mime in pictures for mime in PICTURES):
            return {"kind": "picture", "data": pictures}
    return {"kind": "text", "text": cut(text_of(value))}


def may_be_picture(value: Any) -> bool:
    methods = ("_repr_png_", "_repr_jpeg_", "_repr_svg_", "_repr_mimebundle_")
    return displays.is_figure(value) or any(hasattr(type(value), method) for method in methods)


def within(asked: Sequence[int], most: int) -> Tuple[int, int]:
    start = max(0, int(asked[0]))
    return start, min(int(asked[1]), start + most)


# -- tables ------------------------------------------------------------------------------------------------------


class Table:
    """Something with rows and columns; `part` gives the labels and the columns' cells of a window of it."""

    def __init__(self, rows: int, columns: int, part: Callable[..., Tuple[List[Any], List[Any], List[List[Any]]]]):
        self._rows, self._columns, self._part = rows, columns, part

    def page(self, rows: Tuple[int, int], columns: Tuple[int, int]) -> Page:
        index, header, cells = self._part(rows[0], min(rows[1], self._rows), columns[0], min(columns[1], self._columns))
        return {
            "kind": "table",
            "rows": self._rows,
            "columns": self._columns,
            "index": [cell(label) for label in index],
            "header": [cell(name) for name in header],
            "numeric": [all(is_number(value) for value in column) for column in cells],
            "cells": [[cell(value) for value in column] for column in cells],
        }


def table(value: Any) -> Optional[Table]:
    """The value as a table, if it is one; a library is recognised by name, and never imported to find out."""
    root, name = type(value).__module__.partition(".")[0], type(value).__name__
    if (root, name) == ("pandas", "DataFrame"):
        return Table(len(value), len(value.columns), lambda *window: pandas_part(value, *window))
    if (root, name) == ("pandas", "Series"):
        return table(value.to_frame())
    if (root, name) == ("polars", "DataFrame"):
        return Table(value.height, value.width, lambda *window: polars_part(value, *window))
    if root == "numpy" and name in ("ndarray", "matrix") and value.ndim in (1, 2) and value.size > 1:
        grid = value.reshape(-1, 1) if value.ndim == 1 else value
        return Table(grid.shape[0], grid.shape[1], lambda *window: numpy_part(grid, *window))
    if isinstance(value, list) and len(value) > 1 and all(isinstance(row, dict) and row for row in value[:50]):
        return records(value)
    return None


def pandas_part(frame: Any, top: int, bottom: int, left: int, right: int) -> Tuple[List[Any], List[Any], List[Any]]:
    part = frame.iloc[top:bottom, left:right]
    cells = [part.iloc[:, column].tolist() for column in range(part.shape[1])]
    return list(part.index), list(part.columns), cells


def polars_part(frame: Any, top: int, bottom: int, left: int, right: int) -> Tuple[List[Any], List[Any], List[Any]]:
    names = frame.columns[left:right]
    part = frame.slice(top, max(0, bottom - top)).select(names)
    return list(range(top, bottom)), names, [part[name].to_list() for name in names]


def numpy_part(grid: Any, top: int, bottom: int, left: int, right: int) -> Tuple[List[Any], List[Any], List[Any]]:
    part = grid[top:bottom, left:right]
    return list(range(top, bottom)), list(range(left, right)), part.T.tolist()


def records(value: List[Any]) -> Table:
    names: Dict[str, None] = {}
    for row in value[:200]:
        names.update(dict.fromkeys(row))

    def part(top: int, bottom: int, left: int, right: int) -> Tuple[List[Any], List[Any], List[Any]]:
        header = list(names)[left:right]
        rows = [row if isinstance(row, dict) else {} for row in value[top:bottom]]
        return list(range(top, bottom)), header, [[row.get(name, "") for row in rows] for name in header]

    return Table(len(value), len(names), part)


def is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float, complex)) and not isinstance(value, bool))


def cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float):
        return "%.6g" % value
    text = value if isinstance(value, str) else displays.plain(value) if isinstance(value, (list, dict)) else str(value)
    line = " ".join(text[: LONGEST_CELL * 2].split())
    return line if len(line) <= LONGEST_CELL else line[: LONGEST_CELL - 3] + "..."


# -- text --------------------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (FunctionType, type, ModuleType)):
        return source_of(value)
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        return elements_of(value)
    return displays.plain(value)


def source_of(value: Any) -> str:
    inspect = trusted_import("inspect")
    try:
        return str(inspect.getsource(value))
    except (OSError, TypeError):
        about = inspect.getdoc(value) or ""
        return "%s\n\n%s" % (displays.plain(value), about) if about else displays.plain(value)


def elements_of(value: Any) -> str:
    """Pretty-printed; of very many elements only the first."""
    pretty = trusted_import("pprint").pformat
    if len(value) <= MOST_ELEMENTS:
        return str(pretty(value, width=100, compact=True))
    few = list(islice(value.items() if isinstance(value, dict) else value, MOST_ELEMENTS))
    shown = pretty(dict(few) if isinstance(value, dict) else few, width=100, compact=True)
    return "%s\n... and %d more" % (shown, len(value) - MOST_ELEMENTS)


def cut(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return "%s\n... and %d characters more" % (text[:LONGEST_TEXT], len(text) - LONGEST_TEXT)


MOST_COMPLETIONS = 200
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
    return {"start": cursor - len(part), "matches": matches[:MOST_COMPLETIONS]}


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
    return [(name, kind_of(static(owner, name))) for name in shown[: MOST_COMPLETIONS * 2]]


def keys(namespace: Dict[str, Any], match: Any) -> Dict[str, Any]:
    """The keys of a mapping or the columns of a table, after an opening quote."""
    owner = resolved(namespace, match["path"].split("."))
    columns = getattr(owner, "columns", ()) if type(owner).__module__.startswith(("pandas", "polars")) else ()
    offered = list(owner)[:2000] if isinstance(owner, dict) else list(columns)[:2000]
    texts = [key for key in offered if isinstance(key, str) and key.startswith(match["part"])]
    plain = [key for key in texts if key.isprintable() and match["quote"] not in key and "\\" not in key]
    return {"start": match.start("part"), "matches": [[key, "key"] for key in plain[:MOST_COMPLETIONS]]}


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
