"""The tools of the computer API: their base class, their list, the names that each offers to code, and their help."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from interpreter.config.settings import ComputerSettings
from interpreter.errors import ComputerError
from interpreter.leaves import leaf_of, leaves, load

if TYPE_CHECKING:
    from PIL.Image import Image

    from interpreter.computer_api.computer import Computer


Method = TypeVar("Method", bound=Callable[..., Any])


class ComputerTool:
    """One tool of the computer, such as its mouse. Code can call its public methods and properties.

    Values are JSON values, pictures, and bytes. Mistakes raise a typed error or a ValueError whose message says what
    to do; nothing prints.
    """

    def __init__(self, computer: Computer) -> None:
        self.computer = computer

    def check_sending(self) -> None:
        """Raise an error if nothing can be sent; called before the user is asked about sending."""

    def without_secrets(self, text: str) -> str:
        """Return the text of a call without its secrets, as it may be recorded."""
        return text

    def terminate(self) -> None:
        """End what the tool has started, because the computer ends."""


Tool = ComputerTool  # its earlier name, which users' tools may import


@dataclass(frozen=True)
class Picture:
    """A PNG picture and the part of the screen that it shows, so that positions in it can be mapped to the screen."""

    png: bytes = field(repr=False)
    width: int
    height: int
    # Where its upper left corner is on the screen, and how many screen pixels one of its pixels is.
    left: float = 0
    top: float = 0
    scale: float = 1
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, image: Image, left: float = 0, top: float = 0, scale: float = 1) -> Picture:
        buffer = BytesIO()
        image.save(buffer, "PNG", compress_level=1)
        region = {"left": left, "top": top, "scale": scale, **getattr(image, "screen_region", {})}
        return cls(buffer.getvalue(), image.width, image.height, **region)

    @property
    def base64(self) -> str:
        return base64.b64encode(self.png).decode("ascii")

    def pil(self) -> Image:
        from PIL import Image

        image = Image.open(BytesIO(self.png))
        image.load()
        image.screen_region = {"left": self.left, "top": self.top, "scale": self.scale, "about": self.about}  # type: ignore[attr-defined]
        return image

    def on_screen(self, x: float, y: float) -> tuple[float, float]:
        """Convert a position in the picture to one on the screen."""
        return self.left + x * self.scale, self.top + y * self.scale

    def _repr_png_(self) -> bytes | None:
        return None if self.about.get("shown") else self.png  # it was shown when it was taken


def sends(method: Method) -> Method:
    """Mark a method that sends something to other people: when a model's code calls it, the user is asked each time."""
    method.__sends__ = True  # type: ignore[attr-defined]
    return method


def acts(method: Method) -> Method:
    """Mark a method that changes the screen or another program."""
    method.__acts__ = True  # type: ignore[attr-defined]
    return method


# In the order of 0.4.3, which scripts rely on.
TOOLS = {
    "mouse": "screen.input:Mouse",
    "keyboard": "screen.input:Keyboard",
    "display": "screen.display:Display",
    "clipboard": "screen.input:Clipboard",
    "mail": "people.mail:Mail",
    "sms": "people.sms:SMS",
    "calendar": "people.calendar:Calendar",
    "contacts": "people.contacts:Contacts",
    "browser": "browser:Browser",
    "os": "screen.desktop:Os",
    "vision": "ai:Vision",
    "skills": "skills:Skills",
    "docs": "files:Docs",
    "ai": "ai:Ai",
    "files": "files:Files",
}


def kind_of(name: str) -> type[ComputerTool]:
    """Return the class of a tool, or a leaf's subclass that adds methods."""
    more = (row.kind for leaf in leaves() for row in leaf.computer if row.tool == name)
    kind_class: type[ComputerTool] = load(next(more, f"interpreter.computer_api.{TOOLS[name]}"))
    return kind_class


def present() -> list[str]:
    """List the tools that this installation has."""
    leaves = {name: leaf_of(f"interpreter.computer_api.{reference}") for name, reference in TOOLS.items()}
    return [name for name, leaf in leaves.items() if leaf is None or leaf.is_present]


Kind = Literal["part", "method", "value"]
PLAIN = (bool, int, float, str, list, dict, tuple, type(None))  # attributes of other types stay private to a tool
TOP = ("help", "view", "screenshot")  # names that the computer itself offers to code, besides its tools


def names(owner: Any) -> dict[str, Kind]:
    """Return the public names of the computer or of a tool, and what each is, without calling anything."""
    if not isinstance(owner, ComputerTool):
        return (
            {**dict.fromkeys(present(), "part"), **dict.fromkeys(TOP, "method")}
            if isinstance(owner, ComputerSettings)
            else {}
        )
    own: dict[str, Kind] = {}
    for name, value in vars(owner).items():
        if not name.startswith("_") and isinstance(value, (ComputerTool, *PLAIN)):
            own[name] = "part" if isinstance(value, ComputerTool) else "value"
    return {**of_class(type(owner)), **own}


def of_class(kind: type) -> dict[str, Kind]:
    """Return the names that a tool's class offers to code, in order; those that every tool has are for the host."""
    names_by_kind: dict[str, Kind] = {}
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            if not (name.startswith("_") or isinstance(value, type) or hasattr(ComputerTool, name)):
                is_method = callable(value) or isinstance(value, staticmethod | classmethod)
                names_by_kind[name] = "method" if is_method else "value"
    return names_by_kind


# -- signatures --------------------------------------------------------------------------------------------------------


def signature(method: Callable[..., Any], whole: bool = False) -> str:
    """Write the parameters with their defaults; `*args` and `**kwargs` only if `whole` is set."""
    parameters = []
    for parameter in inspect.signature(method).parameters.values():
        stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        if parameter.name != "self" and (whole or not stars):
            default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
            parameters.append(stars + parameter.name + default)
    return ", ".join(parameters)


def description(method: Any) -> str:
    """Return the first paragraph of its docstring, on one line."""
    first, *_ = (inspect.getdoc(method) or "").split("\n\n")
    return " ".join(first.split())


def info(tool: Any) -> dict[str, Any]:
    """Describe a tool: its name, and for each method its signature and description."""
    kind = tool if isinstance(tool, type) else type(tool)
    methods = []
    for name, what in of_class(kind).items():
        if what == "method":
            method = getattr(kind, name)
            called = f"computer.{kind.__name__.lower()}.{name}({signature(method)})"
            methods.append({"signature": called, "description": description(method)})
    return {"signature": kind.__name__, "methods": methods}


# -- help --------------------------------------------------------------------------------------------------------------


def help_on(name: str) -> str:
    """Describe all tools, or with a name one tool or method."""
    path = name.strip().removeprefix("computer").removeprefix(".").partition("(")[0]
    if not path:
        lines = [f"computer.{each}: {', '.join(of_class(kind_of(each)))}" for each in TOOLS]
        return "\n".join(["computer.help('mouse') shows how to use a tool. Available tools:", *lines])
    tool, _, method = path.partition(".")
    if tool not in TOOLS:
        raise ComputerError(f"There is no computer.{tool}. Available: {', '.join(TOOLS)}.")
    kind, lines = kind_of(tool), []
    if method and method not in of_class(kind):
        raise ComputerError(f"There is no computer.{path}. Available: {', '.join(of_class(kind))}.")
    for each in [method] if method else of_class(kind):
        value = getattr(kind, each)
        called = f"({signature(value, whole=True)})" if callable(value) else ""
        summary = description(value) if not method and (callable(value) or isinstance(value, property)) else ""
        marks = " (asks the user first)" if getattr(value, "__sends__", False) else ""
        lines.append(f"computer.{kind.__name__.lower()}.{each}{called}{f' # {summary}' if summary else ''}{marks}")
    described = [*lines, inspect.getdoc(value) or ""] if method else [description(kind), *lines]
    return "\n".join(filter(None, described))
