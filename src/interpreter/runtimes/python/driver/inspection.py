"""Answers questions between blocks: which variables exist, what a value looks like, and how code can be completed."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
import time
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from . import displays, tables
from .computer import Method
from .hints import Any, Callable, Frame
from .imports import trusted_import

MAX_VARIABLES = 500
PREVIEW_TIMEOUT = 1.5  # after this, variables are listed without a preview
MAX_PREVIEW_LENGTH = 100  # characters of a preview
MAX_INT_BITS = 256  # bits
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range, memoryview)
# Libraries whose attributes are cheap to read and have no side effects.
KNOWN = frozenset({"numpy", "pandas", "polars", "torch", "xarray", "jax", "jaxlib", "scipy", "collections"})
MAX_TEXT_LENGTH = 200_000
MAX_ELEMENTS = 2000
PICTURE_METHODS = ("_repr_png_", "_repr_jpeg_", "_repr_svg_", "_repr_mimebundle_")
MAX_COMPLETIONS = 200
NAME = r"(?P<path>(?:[^\W\d]\w*\s*\.\s*)*)(?P<part>(?:[^\W\d]\w*)?)\Z"
KEY = r"(?P<path>[^\W\d]\w*(?:\.[^\W\d]\w*)*)\[(?P<quote>['\"])(?P<part>[^'\"\\\n]*)\Z"
KINDS: Any = (((FunctionType, BuiltinFunctionType, MethodType), "function"), (type, "class"), (ModuleType, "module"))
MISSING = object()
NOT_A_NAME = "this takes a name, or an attribute or element of one, such as df or sizes['small']"


def answer(
    frame: Frame, namespace: dict[str, Any], hidden: dict[str, Any], png: Callable[[Any], bytes | None]
) -> Frame:
    if frame["op"] == "complete":
        return completions(namespace, str(frame["code"]), int(frame["cursor"]))
    if "modules" in frame:
        return {"missing": [name for name in frame["modules"] if not can_import(name)]}
    if "name" not in frame:
        return listed(namespace, hidden)
    try:
        value = value_of(str(frame["name"]), namespace)
        page = tables.answer(value, frame) or page_of(value, png)
    except tables.ViewError as error:
        return {"failed": str(error)}
    return {"type": type_name(value), **page}


def can_import(name: str) -> bool:
    machinery = trusted_import("importlib.util")
    trusted_import("importlib").invalidate_caches()
    try:
        return machinery.find_spec(name) is not None
    except (ImportError, AttributeError, ValueError):  # such as a module without a spec
        return True


# -- the list of variables ------------------------------------------------------------------------------------------


def listed(namespace: dict[str, Any], hidden: dict[str, Any]) -> dict[str, Any]:
    """List the user's variables, in the order in which they were defined."""
    names = [name for name, value in list(namespace.items()) if is_the_users(name, value, hidden)]
    preview = ValuePreview()
    end = time.monotonic() + PREVIEW_TIMEOUT
    rows = []
    for name in names[:MAX_VARIABLES]:
        value = namespace[name]
        preview.late = preview.late or time.monotonic() > end
        about = {"shape": shape_of(value), "size": size_of(value), "preview": preview.of(value)}
        rows.append({"name": name, "type": type_name(value), **about})
    return {"variables": rows}


def is_the_users(name: str, value: Any, hidden: dict[str, Any]) -> bool:
    if name.startswith("_") or isinstance(value, (ModuleType, Method)) or (name in hidden and hidden[name] is value):
        return False
    if isinstance(value, (FunctionType, type)):
        return getattr(value, "__module__", None) == "__main__"  # other functions and classes are imported
    return True


def type_name(value: Any) -> str:
    kind = type(value)
    if isinstance(value, type):
        return "class"
    if is_known(value) or kind.__module__ in ("builtins", "__main__"):
        return kind.__name__
    return "%s.%s" % (kind.__module__.partition(".")[0], kind.__name__)


def is_known(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in KNOWN


def shape_of(value: Any) -> str:
    """Return `3 × 4` for a value with dimensions, `7` for one with a length, otherwise an empty string."""
    try:
        shape = value.shape if is_known(value) else None
        if isinstance(shape, tuple):
            return " × ".join(str(int(side)) for side in shape)
        if isinstance(value, SIZED) or is_known(value):
            return str(len(value))
    except Exception:  # noqa: BLE001 -- it has no shape
        return ""
    return ""


def size_of(value: Any) -> int | None:
    """Return the bytes that a value takes, if that is cheap to find out; for a container, without its elements."""
    try:
        if not is_known(value):
            return sys.getsizeof(value) if type(value).__module__ == "builtins" else None
        if getattr(value, "memory_usage", None) is not None:
            used = value.memory_usage()
            return int(used.sum() if hasattr(used, "sum") else used)
        if hasattr(value, "element_size"):
            return int(value.element_size() * value.nelement())
        if hasattr(value, "estimated_size"):
            return int(value.estimated_size())
        size = getattr(value, "nbytes", None)
        return int(size) if size is not None else sys.getsizeof(value)
    except Exception:  # noqa: BLE001 -- it has no size
        return None


class ValuePreview:
    def __init__(self) -> None:
        short = trusted_import("reprlib").Repr()
        short.maxlevel, short.maxdict, short.maxother, short.maxstring = (
            3,
            4,
            MAX_PREVIEW_LENGTH,
            MAX_PREVIEW_LENGTH - 20,
        )
        short.repr_bytes = short.repr_bytearray = bytes_line
        short.repr_int = int_line
        short.repr_ndarray = short.repr_Series = array_line
        short.repr_DataFrame = columns_line
        self._short = short
        self.late = False  # there is no time for more previews

    def of(self, value: Any) -> str:
        if self.late:
            return ""
        try:
            text = signature(value) or self._short.repr(value)
        except KeyboardInterrupt:  # the host does not wait any longer
            self.late = True
            text = "<repr() takes too long>"
        except Exception as error:  # noqa: BLE001 -- a user's __repr__ may raise anything
            text = "<repr() raised %s>" % type(error).__name__
        line = " ".join(str(text).split())
        return line if len(line) <= MAX_PREVIEW_LENGTH else line[: MAX_PREVIEW_LENGTH - 3] + "..."


def bytes_line(value: bytes, level: int) -> str:
    return repr(value[:40]) + "..." * (len(value) > 40)


def int_line(value: int, level: int) -> str:
    return repr(value) if value.bit_length() <= MAX_INT_BITS else "<%d bits>" % value.bit_length()


def array_line(value: Any, level: int) -> str:
    few: list[Any] = list((value.iloc if hasattr(value, "iloc") else value.flat)[:6])
    more = ", ..." if value.size > len(few) else ""
    elements = ["%.6g" % each if isinstance(each, float) else str(each)[:40] for each in few]
    return "%s [%s%s]" % (value.dtype, ", ".join(elements), more)


def columns_line(frame: Any, level: int) -> str:
    names = [str(name) for name in list(frame.columns[:12])]
    return ", ".join(names) + (", ..." if len(frame.columns) > len(names) else "")


def signature(value: Any) -> str:
    if not isinstance(value, (FunctionType, type)):
        return ""
    try:
        return "%s%s" % (value.__name__, trusted_import("inspect").signature(value))
    except (TypeError, ValueError):
        return value.__name__


# -- one variable ---------------------------------------------------------------------------------------------------


def value_of(node: Any, namespace: dict[str, Any]) -> Any:
    """Return the value of `a`, `a.b` or `a["b"][0]`; nothing is called, and nothing else is evaluated."""
    if isinstance(node, str):
        try:
            node = ast.parse(node.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            raise tables.ViewError(NOT_A_NAME) from None
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
    raise tables.ViewError(NOT_A_NAME)


def page_of(value: Any, png: Callable[[Any], bytes | None]) -> Frame:
    """Describe how to show a value that is no table: as a picture or as text."""
    is_picture = displays.is_figure(value) or any(hasattr(type(value), method) for method in PICTURE_METHODS)
    if is_picture and not isinstance(value, (str, bytes, type)):
        pictures = displays.bundle_of(value, png)
        if any(mime in pictures for mime in ("image/png", "image/jpeg", "image/svg+xml")):
            return {"kind": "picture", "data": pictures}
    text = text_of(value)
    if len(text) > MAX_TEXT_LENGTH:
        text = "%s\n... and %d characters more" % (text[:MAX_TEXT_LENGTH], len(text) - MAX_TEXT_LENGTH)
    return {"kind": "text", "text": text}


def text_of(value: Any) -> str:
    """Return the source of a function, class or module, or pretty-print a container; a large one is cut."""
    if isinstance(value, str):
        return value
    if isinstance(value, (FunctionType, type, ModuleType)):
        inspect = trusted_import("inspect")
        try:
            return str(inspect.getsource(value))
        except (OSError, TypeError):
            about = inspect.getdoc(value) or ""
            return "%s\n\n%s" % (displays.plain(value), about) if about else displays.plain(value)
    if not isinstance(value, (list, tuple, set, frozenset, dict)):
        return displays.plain(value)
    pretty = trusted_import("pprint").pformat
    if len(value) <= MAX_ELEMENTS:
        return str(pretty(value, width=100, compact=True))
    few = list(islice(value.items() if isinstance(value, dict) else value, MAX_ELEMENTS))
    shown = pretty(dict(few) if isinstance(value, dict) else few, width=100, compact=True)
    return "%s\n... and %d more" % (shown, len(value) - MAX_ELEMENTS)


# -- completions ----------------------------------------------------------------------------------------------------


def completions(namespace: dict[str, Any], code: str, cursor: int) -> dict[str, Any]:
    """Return where the word at the cursor begins, and its completions as (text, kind)."""
    before = code[:cursor]
    key = re.search(KEY, before)
    if key is not None:
        return keys(namespace, key)
    match = re.search(NAME, before)
    if match is None or before[: match.start()].endswith((".", "'", '"')):
        return {"start": cursor, "matches": []}
    part, path = match["part"], match["path"]
    names: dict[str, str] = {}
    if path:
        owner = resolved(namespace, [name.strip() for name in path.split(".")[:-1]])
        names = {} if owner is MISSING else attributes(owner, part)
    else:
        if part:
            names.update(dict.fromkeys(keyword.kwlist, "keyword"))
            names.update((name, kind_of(value)) for name, value in vars(builtins).items())
        names.update((name, kind_of(value)) for name, value in list(namespace.items()) if part or name[:1] != "_")
    matches = [[text, kind] for text, kind in names.items() if text.startswith(part)]
    matches.sort(key=lambda match: (match[0].startswith("_"), match[0].startswith("__"), match[0].lower()))
    return {"start": cursor - len(part), "matches": matches[:MAX_COMPLETIONS]}


def attributes(owner: Any, part: str) -> dict[str, str]:
    try:
        names = [name for name in dir(owner) if isinstance(name, str) and name.isidentifier()]
    except Exception:  # noqa: BLE001 -- a user's __dir__ may raise anything
        return {}
    shown = [name for name in names if name.startswith(part) and (part or name[0] != "_")]
    return {name: kind_of(static(owner, name)) for name in shown[: MAX_COMPLETIONS * 2]}


def keys(namespace: dict[str, Any], match: Any) -> dict[str, Any]:
    """Complete the keys of a mapping or the columns of a table, after an opening quote."""
    owner = resolved(namespace, match["path"].split("."))
    columns = getattr(owner, "columns", ()) if type(owner).__module__.startswith(("pandas", "polars")) else ()
    offered = list(owner)[:2000] if isinstance(owner, dict) else list(columns)[:2000]
    texts = [key for key in offered if isinstance(key, str) and key.startswith(match["part"])]
    plain = [key for key in texts if key.isprintable() and match["quote"] not in key and "\\" not in key]
    return {"start": match.start("part"), "matches": [[key, "key"] for key in plain[:MAX_COMPLETIONS]]}


def resolved(namespace: dict[str, Any], path: list[str]) -> Any:
    """Resolve a dotted path. MISSING if that would run code that the user wrote."""
    value = namespace.get(path[0], getattr(builtins, path[0], MISSING))
    for name in path[1:]:
        if value is MISSING:
            break
        if isinstance(value, ModuleType):
            value = vars(value).get(name, MISSING)
            continue
        attribute = static(value, name)
        runs_code = isinstance(attribute, property) or isinstance(
            getattr(type(attribute), "__get__", None), FunctionType
        )
        is_pandas = type(value).__module__.startswith("pandas")  # only getattr() finds its columns
        if runs_code or (attribute is MISSING and not is_pandas):
            return MISSING
        try:
            value = getattr(value, name)
        except Exception:  # noqa: BLE001 -- after any error, there is nothing to offer
            return MISSING
    return value


def static(owner: Any, name: str) -> Any:
    return trusted_import("inspect").getattr_static(owner, name, MISSING)


def kind_of(value: Any) -> str:
    for kinds, name in KINDS:
        if isinstance(value, kinds):
            return str(name)
    return "" if value is MISSING else type(value).__name__
