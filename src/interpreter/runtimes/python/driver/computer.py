"""`computer` in the user's code: its tools are the host's, and each use of one is a call to there.

It is found like a builtin, and can be imported; a variable or a module of the user's own of that name comes first.
"""

from __future__ import annotations

import builtins
import linecache
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional

    Ask = Callable[[Dict[str, Any]], Any]
    """Has the host do something: what `Report.call` does."""

NAME = "computer"


class Part(ModuleType):
    """The computer, or one of its tools: what it has is known to the host."""

    def __init__(self, ask: Ask, path: str) -> None:
        super().__init__("%s.%s" % (NAME, path) if path else NAME)
        self.__dict__.update(_ask=ask, _path=path, _names=None)
        if not path:
            self.__dict__["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "ComputerError" and not self._path:
            from .parcels import ComputerError

            return ComputerError
        kind = self._known().get(name)
        path = self._below(name)
        if kind is None:
            raise AttributeError(self._missing(name))
        if kind == "part":
            return self._tool(name)
        if kind == "method":
            method = self.__dict__[name] = here(self._ask, path) or Method(self._ask, path)
            return method
        value = self._ask({"how": "get", "path": path})
        from .parcels import PART

        return Part(self._ask, path) if value is PART else value

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):  # what an import says of its module
            self.__dict__[name] = value
            return
        known = self._known().get(name)
        if known == "part":
            if isinstance(value, Part):  # what an import does
                self.__dict__[name] = value
                return
            raise AttributeError("%r.%s cannot be replaced." % (self, name))
        if known is None:
            raise AttributeError(self._missing(name))
        self._ask({"how": "set", "path": self._below(name), "args": [value]})

    def __dir__(self) -> List[str]:
        return sorted(self._known())

    def __repr__(self) -> str:
        return NAME + ("." + self._path if self._path else "")

    def _tool(self, name: str) -> Part:
        """The tool of that name, whether or not there is one."""
        if name not in self.__dict__:
            self.__dict__[name] = Part(self._ask, self._below(name))
        found: Part = self.__dict__[name]
        return found

    def _below(self, name: str) -> str:
        return "%s.%s" % (self._path, name) if self._path else name

    def _known(self) -> Dict[str, str]:
        """The names that are there, and what each is; asked for once."""
        if self._names is None:
            self.__dict__["_names"] = self._ask({"how": "names", "path": self._path})
        names: Dict[str, str] = self._names
        return names

    def _missing(self, name: str) -> str:
        from difflib import get_close_matches

        known = self._known()
        close = get_close_matches(name, list(known), 3, 0.8) or get_close_matches(name, list(known), 3, 0.5)
        there = " or ".join("%r.%s" % (self, each) for each in close) if close else ", ".join(sorted(known))
        advice = "Did you mean %s?" % there if close else "There are: %s." % there
        return "There is no %r.%s. %s" % (self, name, advice)


class Method:
    """A method of a tool."""

    def __init__(self, ask: Ask, path: str) -> None:
        self._ask, self._path = ask, path
        self.__name__ = path.rpartition(".")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ask({"how": "call", "path": self._path, "args": list(args), "kwargs": kwargs})

    def __repr__(self) -> str:
        return "%s.%s" % (NAME, self._path)

    def __reduce__(self) -> Any:
        return found_again, (self._path,)


class Finder:
    """Finds `computer` and its tools for import, after everybody else has looked."""

    def __init__(self, computer: Part) -> None:
        self._computer = computer

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        if name == NAME:
            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        is_ours = name.startswith(NAME + ".") and sys.modules.get(NAME) is self._computer
        if is_ours and self._may_be_there(name[len(NAME) + 1 :]):
            return ModuleSpec(name, self)  # type: ignore[arg-type]
        return None

    def _may_be_there(self, name: str) -> bool:
        from .parcels import ComputerError

        try:
            return self._computer._known().get(name) == "part"
        except ComputerError:
            return name.isidentifier()  # variables are being unpacked, and the host cannot be asked

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._computer if spec.name == NAME else self._computer._tool(spec.name.rpartition(".")[2])

    def exec_module(self, module: Any) -> None:
        """There is nothing to run."""


def here(ask: Ask, path: str) -> Any:
    """The method, if it runs in this process; else None."""
    if not path.startswith("skills."):
        return None
    from functools import partial

    return partial(HERE[path], ask) if path in HERE else None


def found_again(path: str) -> Any:
    """For pickle: the method of another process's computer."""
    return Method(builtins.computer._ask, path)  # type: ignore[attr-defined]


def install(ask: Ask) -> None:
    """Have it where the user's code finds it."""
    computer = Part(ask, "")
    builtins.computer = computer  # type: ignore[attr-defined]
    sys.meta_path.append(Finder(computer))


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
