"""Open Interpreter: a language model writes code, and it runs on your computer.

Public names are resolved on first use, so importing this package is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from interpreter.api import OpenInterpreter
    from interpreter.computer_api import Computer
    from interpreter.runtimes.base import BaseLanguage
    from interpreter.version import __version__

    interpreter: OpenInterpreter
    computer: Computer
    AsyncInterpreter: type[OpenInterpreter]
    connect: Callable[..., Any]

__all__ = ["BaseLanguage", "OpenInterpreter", "__version__", "computer", "connect", "interpreter"]


def __getattr__(name: str) -> Any:
    value = _make(name)
    globals()[name] = value
    return value


def _make(name: str) -> Any:
    match name:
        case "OpenInterpreter":
            from interpreter.api import OpenInterpreter

            return OpenInterpreter
        case "BaseLanguage":
            from interpreter.runtimes.base import BaseLanguage

            return BaseLanguage
        case "__version__":
            from interpreter.version import __version__

            return __version__
        case "interpreter":
            from interpreter.api import OpenInterpreter

            return OpenInterpreter()
        case "computer":
            return (globals().get("interpreter") or __getattr__("interpreter")).computer
        case _ if not name.startswith("_"):
            from interpreter.leaves import load, public_names

            if reference := public_names().get(name):
                return load(reference)
    raise AttributeError(f"module 'interpreter' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
