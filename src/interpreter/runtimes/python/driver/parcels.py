"""How values travel between code and the tools of the computer: JSON, pictures, bytes, times, and errors.

A value that JSON cannot represent is an object with one key that begins with a dollar sign.
"""

from __future__ import annotations

import base64
import builtins
import io
import math
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

MAX_DEPTH = 100
PART = object()  # stands for an object of the host that can be used from here
SIMPLE: dict[str, Callable[[Any], Any]] = {"$bytes": base64.b64decode, "$float": float, "$part": lambda content: PART}
PLACE = ("width", "height", "left", "top", "scale", "about")  # the attributes of a picture


class Picture:
    """A picture from the computer: PNG, and its place on the screen."""

    def __init__(
        self,
        png: bytes,
        width: int,
        height: int,
        left: float = 0,
        top: float = 0,
        scale: float = 1,
        about: dict[str, Any] | None = None,
    ) -> None:
        self.png, self.width, self.height = png, width, height
        self.left, self.top, self.scale, self.about = left, top, scale, about or {}

    @property
    def base64(self) -> str:
        return base64.b64encode(self.png).decode("ascii")

    @property
    def size(self) -> tuple:  # type: ignore[type-arg]
        return self.width, self.height

    def on_screen(self, x: float, y: float) -> tuple:  # type: ignore[type-arg]
        """Return the place on the screen of a place in the picture."""
        return self.left + x * self.scale, self.top + y * self.scale

    def pil(self) -> Any:
        """Return a Pillow image, if Pillow is installed."""
        from PIL import Image

        image = Image.open(io.BytesIO(self.png))
        image.load()
        return image

    def __getattr__(self, name: str) -> Any:
        """Offer what a Pillow image has, as in 0.4.3: `crop`, `resize`, `getpixel` ..."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.pil(), name)

    def save(self, path: Any) -> None:
        """Write the picture to a file: as PNG, or with Pillow in the format of the file name."""
        name = os.fspath(path)
        if not str(name).lower().endswith(".png") and "." in os.path.basename(str(name)):
            self.pil().convert("RGB").save(name)
            return
        with open(name, "wb") as file:
            file.write(self.png)

    def _repr_png_(self) -> bytes | None:
        """Return the PNG, or None if it was shown when it was taken, so that it is not displayed twice."""
        return None if self.about.get("shown") else self.png

    def __repr__(self) -> str:
        return "<Picture %d x %d>" % (self.width, self.height)


class Kept:
    """A tool's value that keeps the original data as `raw`."""

    raw: Any = None

    def table(self) -> Any:
        """Return a pandas DataFrame from a list, from the first list in a dict, or else with one row."""
        import pandas  # type: ignore[import-untyped]

        rows: Any = self
        if isinstance(self, dict):
            rows = next((each for each in self.values() if isinstance(each, list)), [self])
        return pandas.DataFrame(list(rows))


class KeptDict(Kept, dict):  # type: ignore[type-arg]
    pass


class KeptList(Kept, list):  # type: ignore[type-arg]
    pass


class KeptText(Kept, str):
    pass


class Link(KeptDict):
    """A resource that a server names, which `read` gets."""

    uri = property(lambda self: self.get("uri"))
    name = property(lambda self: self.get("name"))
    mimeType = property(lambda self: self.get("mimeType"))
    server = ""

    def read(self) -> Any:
        return getattr(builtins.tools, self.server).read(self["uri"])  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        kind = " (%s)" % self.mimeType if self.mimeType else ""
        return "<Link %s: %s%s, .read() gets it>" % (self.uri, self.name, kind)


def link_to(fields: dict[str, Any], server: str) -> Link:
    link = Link(fields)
    link.server = server
    return link


KEPT: dict[type, Any] = {dict: KeptDict, list: KeptList, str: KeptText}


def with_raw(value: Any, raw: Any) -> Any:
    """Return the value with an attribute `raw`, if it is a dict, a list or a text."""
    kept = KEPT[type(value)](value) if type(value) in KEPT else value
    if not isinstance(kept, Kept):
        return value
    kept.raw = raw
    return kept


def packed_result(value: Any) -> Any:
    """Convert a result of a tool to JSON, with its `raw`, which arguments leave out."""
    raw = value.raw if isinstance(value, Kept) else None
    return packed(value) if raw is None else {"$kept": [packed(value), packed(raw)]}


def packed(value: Any, depth: int = 0) -> Any:
    """Convert a value to JSON. Raises TypeError if it cannot be represented."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if depth > MAX_DEPTH:
        raise TypeError("The value is nested too deeply to pass to or from the computer.")
    if isinstance(value, Link) and value.server:
        return {"$link": [packed(dict(value), depth + 1), value.server]}
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {str(key): packed(each, depth + 1) for key, each in value.items()}
        return {"$dict": [[packed(key, depth + 1), packed(each, depth + 1)] for key, each in value.items()]}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [packed(each, depth + 1) for each in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$bytes": base64.b64encode(bytes(value)).decode("ascii")}
    # Other types are recognised by their attributes, since none is imported for it.
    if isinstance(getattr(value, "png", None), bytes) and hasattr(value, "width") and hasattr(value, "height"):
        about = {name: packed(getattr(value, name), depth + 1) for name in PLACE if hasattr(value, name)}
        return {"$picture": {"png": base64.b64encode(value.png).decode("ascii"), **about}}
    if type(value).__module__.partition(".")[0] == "PIL" and hasattr(value, "getbands"):
        buffer = io.BytesIO()
        value.save(buffer, "PNG", compress_level=1)
        png = base64.b64encode(buffer.getvalue()).decode("ascii")
        place = getattr(value, "place", {})  # of a screenshot
        return {"$picture": {"png": png, "width": value.width, "height": value.height, **place}}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if type(value).__module__ == "datetime" and hasattr(value, "isoformat"):
        return {"$" + type(value).__name__: value.isoformat()}
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return packed(value.tolist(), depth + 1)
    if hasattr(type(value), "__dataclass_fields__"):
        return packed({name: getattr(value, name) for name in type(value).__dataclass_fields__}, depth + 1)
    if hasattr(value, "__next__"):
        return [packed(each, depth + 1) for each in value]
    raise TypeError(
        "Can't pass a %s to or from the computer. Use numbers, strings, lists, dicts, bytes or images."
        % type(value).__name__
    )


def unpacked(value: Any, picture: Callable[..., Any] = Picture) -> Any:
    """Convert packed JSON back to a value; pictures are made with `picture`."""
    if isinstance(value, list):
        return [unpacked(each, picture) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1 or not next(iter(value)).startswith("$"):
        return {key: unpacked(each, picture) for key, each in value.items()}
    (key, content), *_ = value.items()
    if key == "$picture":
        about = {name: unpacked(content[name], picture) for name in PLACE if name in content}
        if not all(isinstance(about.get(name, 0), (int, float)) for name in PLACE[:-1]):
            raise TypeError("This is not an image: its size and position must be numbers.")
        return picture(png=base64.b64decode(content["png"]), **about)
    if key in SIMPLE:
        return SIMPLE[key](content)
    if key == "$kept":
        return with_raw(unpacked(content[0], picture), unpacked(content[1], picture))
    if key == "$link":
        return link_to(unpacked(content[0], picture), content[1])
    if key == "$dict":
        return {hashable(unpacked(name, picture)): unpacked(each, picture) for name, each in content}
    if key in ("$datetime", "$date", "$time"):
        import datetime

        return getattr(datetime, key[1:]).fromisoformat(content)
    raise TypeError("Unknown value type %s. It may be newer than this session." % key)


def hashable(key: Any) -> Any:
    """Convert lists to tuples, because a key that was a tuple arrives as a list."""
    return tuple(map(hashable, key)) if isinstance(key, list) else key


# -- errors ------------------------------------------------------------------------------------------------------------


class ComputerError(Exception):
    """The computer could not do what the code asked for."""

    __module__ = "computer"  # where code finds it


def packed_error(error: BaseException) -> dict[str, str]:
    kind = next(each.__name__ for each in type(error).__mro__ if getattr(builtins, each.__name__, None) is each)
    message = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return {"type": kind, "name": type(error).__name__, "words": message or type(error).__name__}


def unpacked_error(error: dict[str, str]) -> Exception:
    """Recreate an error of that type if a text is enough to make one, else return a ComputerError."""
    kind = getattr(builtins, str(error.get("type")), None)
    message = str(error.get("words"))
    if isinstance(kind, type) and issubclass(kind, Exception) and kind is not Exception:
        try:
            return kind(message)
        except TypeError:
            return ComputerError(message)
    return ComputerError(message)
