"""Skills of the user's: their code comes from the host and runs here, in the session."""

from __future__ import annotations

import builtins
import linecache
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, List

    Ask = Callable[[Dict[str, Any]], Any]

MODULE = "skill_"  # the beginning of the name of a skill's module


class Skill:
    """A function by its name; its code is fetched when it is called."""

    def __init__(self, ask: Ask, name: str) -> None:
        self._ask, self.__name__ = ask, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return run(self._ask, self.__name__, *args, **kwargs)

    def __repr__(self) -> str:
        return "<skill %s>" % self.__name__

    def __reduce__(self) -> Any:
        return getattr, (builtins, self.__name__)


def run(ask: Ask, skill: str, *args: Any, **kwargs: Any) -> Any:
    """Call a skill with what is in reach here; instructions are given back."""
    told = ask({"how": "call", "path": "skills.code", "args": [skill], "kwargs": {}})
    if told["kind"] != "function":
        return told["text"]
    return function(str(told["name"]), str(told["text"]))(*args, **kwargs)


def function(name: str, text: str) -> Any:
    """What the text defines under that name; it is run again only if it has changed."""
    module = sys.modules.get(MODULE + name)
    if module is None or getattr(module, "__text__", None) != text:
        module = ModuleType(MODULE + name)
        file = "<skill %s>" % name
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        module.__dict__.update(__text__=text, __file__=file)
        exec(compile(text, file, "exec"), module.__dict__)
        sys.modules[MODULE + name] = module
    if not hasattr(module, name):
        raise AttributeError("The skill %s defines no function of that name." % name)
    return getattr(module, name)


def have(ask: Ask, names: Iterable[str]) -> List[str]:
    """Have skills like builtins: what is defined under such a name comes first."""
    known = [name for name, value in vars(builtins).items() if isinstance(value, Skill)]
    wanted = [name for name in names if name in known or not hasattr(builtins, name)]
    for name in set(known) - set(wanted):
        delattr(builtins, name)
    for name in wanted:
        setattr(builtins, name, Skill(ask, name))
    return wanted


def import_skills(ask: Ask) -> List[str]:
    """Have all there are; their names."""
    return have(ask, ask({"how": "call", "path": "skills.import_skills", "args": [], "kwargs": {}}))


# Of what the host has, this runs here.
HERE: "Dict[str, Callable[..., Any]]" = {"skills.run": run, "skills.import_skills": import_skills}
