"""What code in this very process finds as `computer`: the same object, but calls of its tools are judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.listing import TOP, names
from interpreter.computer_api.tool import Tool
from interpreter.computer_api.tools import TOOLS

if TYPE_CHECKING:
    from interpreter.computer_api.answering import Answering
    from interpreter.computer_api.computer import Computer

MakeCall = Callable[[str, str], Any]


class StandIn:
    """The computer; what is no tool of it is the computer's own."""

    def __init__(self, computer: Computer, answering: Answering, call: MakeCall) -> None:
        self.__dict__.update(_computer=computer, _answering=answering, _call=call)

    def __getattr__(self, name: str) -> Any:
        if name in TOOLS:
            return ToolStandIn(self._answering, self._call, name, getattr(self._computer, name))
        if name in TOP:
            return used(self._answering, self._call, name, "call")
        return getattr(self._computer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._computer, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._computer), *TOOLS})

    def __repr__(self) -> str:
        return "computer"


class ToolStandIn:
    """A tool."""

    def __init__(self, answering: Answering, call: MakeCall, path: str, tool: Any) -> None:
        self.__dict__.update(_answering=answering, _call=call, _path=path, _tool=tool)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        path = f"{self._path}.{name}"
        if names(self._tool).get(name) == "method":
            return used(self._answering, self._call, path, "call")
        value = used(self._answering, self._call, path, "get")()
        return ToolStandIn(self._answering, self._call, path, value) if isinstance(value, Tool) else value

    def __setattr__(self, name: str, value: Any) -> None:
        used(self._answering, self._call, f"{self._path}.{name}", "set")(value)

    def __dir__(self) -> list[str]:
        return sorted(names(self._tool))

    def __repr__(self) -> str:
        return f"computer.{self._path}"


def used(answering: Answering, call: MakeCall, path: str, how: str) -> Callable[..., Any]:
    """Uses it, with the values as they are."""

    def use(*args: Any, **kwargs: Any) -> Any:
        return answering.use(call(path, how), list(args), kwargs)

    return use
