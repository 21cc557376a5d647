"""`computer` and `tools` in the user's code, and the user's skills: each use of a tool is a call to the host.

`computer` and `tools` are found like builtins, and `computer` can be imported; the user's variables and modules of
these names take precedence. The code of a skill comes from the host and runs here, in the worker.
"""

from __future__ import annotations

import builtins
import linecache
import sys
from functools import partial
from importlib.machinery import ModuleSpec
from keyword import iskeyword
from types import ModuleType

from .hints import Any, Callable, CallHost, Iterable

NAME = "computer"
REGISTERED = "tools"  # the first part of the paths of registered tools
SKILL_MODULE = "skill_"  # the prefix of a skill's module name
HOST_MODULE = "interpreter_"  # and of one that the host defines


def full_name(path: str) -> str:
    """Write a path the way that code does."""
    if path == REGISTERED or path.startswith(REGISTERED + "."):
        return path
    return "%s.%s" % (NAME, path) if path else NAME


class Part(ModuleType):
    """The computer, or one of its tools; the host knows its attributes."""

    def __init__(self, ask: CallHost, path: str) -> None:
        super().__init__(full_name(path))
        self.__dict__.update(_ask=ask, _path=path, _names=None)
        if not path:
            self.__dict__["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        from . import parcels

        if name == "ComputerError" and not self._path:
            return parcels.ComputerError
        kind = self._known().get(name)
        path = self._below(name)
        if kind is None and self._path.startswith(REGISTERED):  # it may have been registered since
            self.__dict__["_names"] = None
            kind = self._known().get(name)
        if kind is None:
            raise AttributeError(self._missing(name))
        if kind == "part":
            return self._tool(name)
        if kind == "method":
            local = LOCAL_METHODS.get(path)
            method = self.__dict__[name] = partial(local, self._ask) if local else method_at(self._ask, path)
            return method
        value = self._ask({"how": "get", "path": path})
        return Part(self._ask, path) if value is parcels.PART else value

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):  # imports set these on a module
            self.__dict__[name] = value
            return
        kind = self._known().get(name)
        if kind is None:
            raise AttributeError(self._missing(name))
        if kind != "part":
            self._ask({"how": "set", "path": self._below(name), "args": [value]})
        elif isinstance(value, Part):  # imports do this
            self.__dict__[name] = value
        else:
            raise AttributeError("%r.%s can't be replaced." % (self, name))

    def __dir__(self) -> list[str]:
        if self._path.startswith(REGISTERED):
            self.__dict__["_names"] = None
        return sorted(self._known())

    def __repr__(self) -> str:
        return full_name(self._path)

    def _tool(self, name: str) -> Any:
        """Return the tool with that name, without asking the host whether it exists."""
        return self.__dict__.setdefault(name, Part(self._ask, self._below(name)))

    def _below(self, name: str) -> str:
        return "%s.%s" % (self._path, name) if self._path else name

    def _known(self) -> Any:
        """Map each attribute to its kind; the host is asked once."""
        if self._names is None:
            self.__dict__["_names"] = self._ask({"how": "names", "path": self._path})
        return self._names

    def _missing(self, name: str) -> str:
        from difflib import get_close_matches

        known = self._known()
        close = get_close_matches(name, list(known), 3, 0.8) or get_close_matches(name, list(known), 3, 0.5)
        there = " or ".join("%r.%s" % (self, each) for each in close) if close else ", ".join(sorted(known))
        advice = "Did you mean %s?" % there if close else "Available: %s." % there
        return "There is no %r.%s. %s" % (self, name, advice)


class Method:
    def __init__(self, ask: CallHost, path: str) -> None:
        self._ask, self._path = ask, path
        self.__name__ = self.__qualname__ = path.rpartition(".")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ask({"how": "call", "path": self._path, "args": list(args), "kwargs": kwargs})

    def __repr__(self) -> str:
        return full_name(self._path)

    def __reduce__(self) -> Any:
        return found_again, (self._path,)


class RegisteredMethod(Method):
    """A registered tool, with the signature and the description that the host knows."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return awaitable(self._ask, {"how": "call", "path": self._path, "args": list(args), "kwargs": kwargs})

    def __get__(self, owner: Any, kind: Any = None) -> RegisteredMethod:
        """Be a routine for `help`, which otherwise describes the class."""
        return self

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return self._ask({"how": "describe", "path": self._path})["doc"]

    @property
    def __signature__(self) -> Any:
        return signature_of(self._ask({"how": "describe", "path": self._path})["parameters"])


KINDS = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


def signature_of(parameters: Any) -> Any:
    """Make the signature of a registered tool; what can't be the name of a parameter in Python is left out."""
    from inspect import Parameter, Signature

    return Signature(
        [
            Parameter(
                name,
                Parameter.POSITIONAL_OR_KEYWORD,
                default=Parameter.empty if is_required else None,
                annotation=KINDS.get(kind, kind),
            )
            for name, is_required, kind in parameters
            if name.isidentifier() and not iskeyword(name)
        ]
    )


def method_at(ask: CallHost, path: str) -> Method:
    return (RegisteredMethod if path.startswith(REGISTERED + ".") else Method)(ask, path)


def found_again(path: str) -> Any:
    """Look up a method on this process's computer, for pickle."""
    return method_at(builtins.computer._ask, path)  # type: ignore[attr-defined]


def awaitable(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that waits; where an event loop runs, return a future of it, so that the loop keeps running."""
    asyncio = sys.modules.get("asyncio")
    try:
        loop = asyncio.get_running_loop() if asyncio is not None else None
    except RuntimeError:
        loop = None
    if loop is None:
        return function(*args)
    import contextvars

    return loop.run_in_executor(None, contextvars.copy_context().run, function, *args)


class Finder:
    """Finds `computer` and its tools for import, after all other finders."""

    def __init__(self, computer: Part) -> None:
        self._computer = computer

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == NAME:
            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        if not name.startswith(NAME + ".") or sys.modules.get(NAME) is not self._computer:
            return None
        from .parcels import ComputerError

        tool = name[len(NAME) + 1 :]
        try:
            is_tool = self._computer._known().get(tool) == "part"
        except ComputerError:
            is_tool = tool.isidentifier()  # while variables are unpacked, the host cannot be asked
        return ModuleSpec(name, self) if is_tool else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._computer if spec.name == NAME else self._computer._tool(spec.name.rpartition(".")[2])

    def exec_module(self, module: Any) -> None:
        """Do nothing: there is no code to execute."""


def install(ask: CallHost) -> None:
    computer = Part(ask, "")
    builtins.computer = computer  # type: ignore[attr-defined]
    builtins.tools = Part(ask, REGISTERED)  # type: ignore[attr-defined]
    sys.meta_path.append(Finder(computer))


class HostName:
    """A name whose code comes from the host when it is first used, and runs here."""

    def __init__(self, ask: CallHost, name: str) -> None:
        self._ask, self.__name__, self._made = ask, name, None

    def _defined(self) -> Any:
        if self._made is None:
            from .parcels import ComputerError

            text = str(self._ask({"how": "code", "path": self.__name__}))
            given = {"host": self._call, "awaitable": awaitable, "ComputerError": ComputerError}
            self._made = defined_in(HOST_MODULE, self.__name__, text, **given)
        return self._made

    def _call(self, path: str, **arguments: Any) -> Any:
        """Call one of its tools."""
        return self._ask({"how": "call", "path": "%s.%s" % (self.__name__, path), "args": [], "kwargs": arguments})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._defined()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._defined(), name)

    def __repr__(self) -> str:
        return "<%s of Open Interpreter>" % self.__name__

    def __reduce__(self) -> Any:
        return getattr, (builtins, self.__name__)


def define_names(ask: CallHost, names: Iterable[str]) -> None:
    """Make names of the host available like builtins, except for those that are taken."""
    for name in names:
        if not hasattr(builtins, name):
            setattr(builtins, name, HostName(ask, name))


class Skill:
    """Looks up a skill by name; its code is fetched when it is called."""

    def __init__(self, ask: CallHost, name: str) -> None:
        self._ask, self.__name__ = ask, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return run_skill(self._ask, self.__name__, *args, **kwargs)

    def __repr__(self) -> str:
        return "<skill %s>" % self.__name__

    def __reduce__(self) -> Any:
        return getattr, (builtins, self.__name__)


def run_skill(ask: CallHost, skill: str, *args: Any, **kwargs: Any) -> Any:
    """Call a skill in this process; a skill that is instructions returns its text."""
    skill_code = ask({"how": "call", "path": "skills.code", "args": [skill], "kwargs": {}})
    if skill_code["kind"] != "function":
        return skill_code["text"]
    return skill_function(str(skill_code["name"]), str(skill_code["text"]))(*args, **kwargs)


def skill_function(name: str, text: str) -> Any:
    """Return the function that the text defines under that name; the text runs again only if it has changed."""
    return defined_in(SKILL_MODULE, name, text)


def defined_in(prefix: str, name: str, text: str, **given: Any) -> Any:
    """Return what a text of ours or of a skill defines under a name."""
    module = sys.modules.get(prefix + name)
    if module is None or getattr(module, "__text__", None) != text:
        module = ModuleType(prefix + name)
        file = "<%s %s>" % (prefix.rstrip("_"), name)
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        module.__dict__.update(__text__=text, __file__=file, **given)
        exec(compile(text, file, "exec"), module.__dict__)
        sys.modules[prefix + name] = module
    if not hasattr(module, name):
        raise AttributeError("The skill %s does not define a function with that name." % name)
    return getattr(module, name)


def define_skills(ask: CallHost, names: Iterable[str]) -> list[str]:
    """Make skills available like builtins, except for names that are taken. Returns the names that are available."""
    known = [name for name, value in vars(builtins).items() if isinstance(value, Skill)]
    wanted = [name for name in names if name in known or not hasattr(builtins, name)]
    for name in set(known) - set(wanted):
        delattr(builtins, name)
    for name in wanted:
        setattr(builtins, name, Skill(ask, name))
    return wanted


def import_skills(ask: CallHost) -> list[str]:
    """Define all existing skills, and return their names."""
    return define_skills(ask, ask({"how": "call", "path": "skills.import_skills", "args": [], "kwargs": {}}))


# Methods that run in this process.
LOCAL_METHODS: dict[str, Callable[..., Any]] = {"skills.run": run_skill, "skills.import_skills": import_skills}
