"""What the computer and its tools have, found by looking at their classes: for help, for calls, for old scripts."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from interpreter.computer_api.tool import TOOLS, Tool, kind_of
from interpreter.config.settings import ComputerSettings

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer

Kind = Literal["part", "method", "value"]
PLAIN = (bool, int, float, str, list, dict, tuple, type(None))  # attributes of other types are a tool's own affair
TOP = ("help", "view", "screenshot")  # what the computer itself offers to code, besides its tools


def names(owner: Any) -> dict[str, Kind]:
    """The public names of the computer or of a tool, and what each is; nothing is called to find out."""
    if not isinstance(owner, Tool):
        return (
            {**dict.fromkeys(TOOLS, "part"), **dict.fromkeys(TOP, "method")}
            if isinstance(owner, ComputerSettings)
            else {}
        )
    own: dict[str, Kind] = {}
    for name, value in vars(owner).items():
        if not name.startswith("_") and isinstance(value, (Tool, *PLAIN)):
            own[name] = "part" if isinstance(value, Tool) else "value"
    return {**of_class(type(owner)), **own}


def of_class(kind: type) -> dict[str, Kind]:
    """What the class of a tool offers to code, in the order of its definition. What every tool has is for the host."""
    found: dict[str, Kind] = {}
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            if not (name.startswith("_") or isinstance(value, type) or hasattr(Tool, name)):
                found[name] = "method" if _is_method(value) else "value"
    return found


def _is_method(value: Any) -> bool:
    if isinstance(value, property | cached_property):
        return False
    return callable(value) or isinstance(value, staticmethod | classmethod)


# -- signatures --------------------------------------------------------------------------------------------------------


def signature(method: Callable[..., Any], whole: bool = False) -> str:
    """Its parameters with their defaults; those that take whatever else there is only if all are wanted."""
    told = []
    for parameter in inspect.signature(method).parameters.values():
        stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        if parameter.name != "self" and (whole or not stars):
            default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
            told.append(stars + parameter.name + default)
    return ", ".join(told)


def description(method: Any) -> str:
    """The first paragraph of its docstring, on one line."""
    first, *_ = (inspect.getdoc(method) or "").split("\n\n")
    return " ".join(first.split())


def info(tool: Any) -> dict[str, Any]:
    """A tool's name, and of each method how it is called and what it does."""
    kind = tool if isinstance(tool, type) else type(tool)
    methods = []
    for name, what in of_class(kind).items():
        if what == "method":
            method = getattr(kind, name)
            called = f"computer.{kind.__name__.lower()}.{name}({signature(method)})"
            methods.append({"signature": called, "description": description(method)})
    return {"signature": kind.__name__, "methods": methods}


def signatures(tool: Any) -> list[str]:
    """A line for each method of a tool."""
    return [f"{method['signature']} # {method['description']}" for method in info(tool)["methods"]]


# -- help --------------------------------------------------------------------------------------------------------------


def help_on(computer: Computer, name: str) -> str:
    """Words about everything, about a tool, or about a method."""
    from interpreter.errors import ComputerError

    path = name.strip().removeprefix("computer").removeprefix(".").partition("(")[0]
    if not path:
        return overview()
    tool, _, method = path.partition(".")
    if tool not in TOOLS:
        raise ComputerError(f"There is no computer.{tool}. There are: {', '.join(TOOLS)}.")
    kind = kind_of(tool)
    if not method:
        return about_tool(kind)
    if method not in of_class(kind):
        raise ComputerError(f"There is no computer.{path}. There are: {', '.join(of_class(kind))}.")
    return about_method(kind, method)


def overview() -> str:
    """A line for each tool."""
    lines = ["computer.help('mouse') tells how a tool is used. There are:"]
    for name in TOOLS:
        kind = kind_of(name)
        methods = ", ".join(of_class(kind))
        lines.append(f"computer.{name}: {methods}")
    return "\n".join(lines)


def about_tool(kind: type) -> str:
    lines = [description(kind)]
    for name, what in of_class(kind).items():
        value = getattr(kind, name)
        called = f"({signature(value, whole=True)})" if what == "method" else ""
        words = description(value) if what == "method" or isinstance(value, property) else ""
        lines.append(f"computer.{kind.__name__.lower()}.{name}{called}{f' # {words}' if words else ''}{_marks(value)}")
    return "\n".join(filter(None, lines))


def about_method(kind: type, name: str) -> str:
    value = getattr(kind, name)
    called = f"({signature(value, whole=True)})" if callable(value) else ""
    words = inspect.getdoc(value) or ""
    return f"computer.{kind.__name__.lower()}.{name}{called}{_marks(value)}\n{words}".rstrip()


def _marks(value: Any) -> str:
    return " (asks the user first)" if getattr(value, "__sends__", False) else ""


# -- as data -----------------------------------------------------------------------------------------------------------


def settings_of(computer: Computer) -> dict[str, Any]:
    """Its settings, those that JSON has a form for."""
    found = {name: getattr(computer, name) for name, row in computer.setting_rows.items() if not row.secret}
    return {name: value for name, value in found.items() if _is_json(value)}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
