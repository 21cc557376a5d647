"""Moves the variables that can be pickled into a fresh worker: from a snapshot, or into a later run of the session."""

from __future__ import annotations

import json
import marshal
import os
import pickle
import select
import struct
import sys
import time
from signal import SIGKILL
from types import CellType, FunctionType, MappingProxyType, ModuleType

from .descriptors import working_directory
from .hints import Any
from .imports import trusted_import
from .inspection import type_name

STALL_TIMEOUT = 20.0  # seconds per variable: its library may wait for a thread that does not exist here
UNLIMITED = float("inf")
LATE = ", no time left"
MAX_NAMES = 1000  # in the report to the host
VERDICT = struct.Struct("=cQ")  # whether a variable can be pickled, and its size


def pack(
    namespace: dict[str, Any], hidden: dict[str, Any], path: str, most: float = UNLIMITED, seconds: float = UNLIMITED
) -> tuple[list[str], list[str]]:
    """Write the variables that can be pickled to a file. Returns their names, and descriptions of the others.

    With limits, it is for a later run, which has another working directory and environment.
    """
    users = {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_") and not (name in hidden and hidden[name] is value)
    }
    stays = most == UNLIMITED
    place = (working_directory(), dict(os.environ), sys.path) if stays else (None, None, [*sys.path, *module_folders()])
    head = pickle.dumps(place)
    problems = unpicklable(users, most - len(head), seconds)
    good = [name for name in users if name not in problems]
    with open(path, "wb") as file:
        file.write(head)
        ByValue(file, protocol=4).dump({name: users[name] for name in good})
    return good, ["%s (%s%s)" % (name, type_name(users[name]), problems[name]) for name in users if name in problems]


def save(namespace: dict[str, Any], hidden: dict[str, Any], path: str, most: int, seconds: float) -> bytes:
    """Pack in a copy of the worker, and return the report for the host; half of the time is for trying."""
    saved, lost = pack(namespace, hidden, path, most, seconds / 2)
    is_late = any(each.endswith(LATE + ")") for each in lost)
    return json.dumps({"saved": saved[:MAX_NAMES], "lost": lost[:MAX_NAMES], "late": is_late}).encode("utf-8")


def module_folders() -> set[str]:
    """List folders of imported modules that are not on `sys.path`: earlier working directories."""
    known, folders = {os.path.abspath(place) for place in sys.path if place}, set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and "." not in name and name != __name__.partition(".")[0]:
            folder = os.path.dirname(os.path.abspath(file))
            folders.add(os.path.dirname(folder) if os.path.basename(file).startswith("__init__.") else folder)
    return folders - known


class Meter:
    """A file that counts the bytes written to it, and raises OverflowError above a limit."""

    def __init__(self, most: float) -> None:
        self.most, self.size = most, 0

    def write(self, data: Any) -> None:
        self.size += memoryview(data).nbytes
        if self.size > self.most:
            raise OverflowError


def unpicklable(users: dict[str, Any], most: float, seconds: float) -> dict[str, str]:
    """Return the variables to leave out, with the reasons. Pickles in a forked process, which may crash or hang."""
    names = list(users)
    problems: dict[str, str] = {}
    position, end = 0, time.monotonic() + seconds
    while position < len(names):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                for name in names[position:]:
                    meter, verdict = Meter(most), b"+"
                    try:
                        ByValue(meter, protocol=4).dump((name, users[name]))
                        most -= meter.size
                    except BaseException:  # noqa: BLE001 -- a user's __reduce__ may raise anything
                        verdict = b">" if meter.size > meter.most else b"-"
                    os.write(writer, VERDICT.pack(verdict, meter.size if verdict == b"+" else 0))
            finally:
                os._exit(0)
        os.close(writer)
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        left = min(STALL_TIMEOUT, end - time.monotonic())
        while position < len(names) and left > 0 and poll.poll(left * 1000):
            result = os.read(reader, VERDICT.size)
            if not result:
                break  # this variable crashed it
            verdict, size = VERDICT.unpack(result)
            most -= size
            if verdict != b"+":
                problems[names[position]] = ", too large" if verdict == b">" else ""
            position += 1
            left = min(STALL_TIMEOUT, end - time.monotonic())
        if position < len(names):
            problems[names[position]] = ""  # the variable that it got stuck on
        position += 1
        os.close(reader)
        os.kill(pid, SIGKILL)
        os.waitpid(pid, 0)
        if time.monotonic() >= end:
            problems.update((name, LATE) for name in names[position - 1 :])
            break
    return problems


def unpack(namespace: dict[str, Any], path: str) -> None:
    """Load the variables from a file, and delete it."""
    try:
        with open(path, "rb") as file:
            folder, environ, places = pickle.load(file)
            if environ is None:  # from an earlier run
                sys.path += [place for place in places if place not in sys.path]
            else:
                sys.path[:] = places
                os.environ.clear()
                os.environ.update(environ)
            try:
                os.chdir(folder or ".")
            except OSError:
                pass  # not visible in a sandbox
            namespace.update(pickle.load(file))
    finally:
        os.unlink(path)


MADE_ANEW = ("__dict__", "__weakref__", "_abc_impl", "__slotnames__")
DATACLASS_CONSTANTS = ("MISSING", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR", "KW_ONLY")  # compared by identity
FUNCTION_STATE = ("__defaults__", "__kwdefaults__", "__dict__", "__doc__", "__name__", "__qualname__", "__module__")


class ByValue(pickle.Pickler):
    """Pickles functions and classes of `__main__` by value, and modules by name; the rest as usual."""

    def reducer_override(self, value: Any) -> Any:
        main = sys.modules["__main__"].__dict__
        if isinstance(value, FunctionType) and (value.__globals__ is main or value.__module__ == "__main__"):
            # a block defined it, or a decorator made it there
            cells = value.__closure__ or ()
            state: dict[str, Any] = {name: getattr(value, name) for name in FUNCTION_STATE}
            state["cells"] = [contents(cell) for cell in cells]
            home = "__main__" if value.__globals__ is main else value.__globals__["__name__"]
            code = marshal.dumps(value.__code__), tuple(sys.version_info[:2])
            return make_function, (code, len(cells), home), state, None, None, set_function
        if isinstance(value, type) and value.__module__ == "__main__":
            return class_parts(value)
        if isinstance(value, ModuleType):
            return module_named, (value.__name__,)
        if isinstance(value, MappingProxyType):
            return read_only, (dict(value),)
        if type(value).__module__ == "dataclasses" and not isinstance(value, type):
            for name in DATACLASS_CONSTANTS:
                if getattr(sys.modules["dataclasses"], name, None) is value:
                    return getattr, (sys.modules["dataclasses"], name)
        return NotImplemented


def module_named(name: str) -> Any:
    try:
        return trusted_import(name)
    except ImportError:
        __import__(name)  # a module of the user's in the working directory
        return sys.modules[name]


def contents(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []  # not assigned yet


def make_function(code: tuple[bytes, tuple[int, ...]], cells: int, home: str) -> FunctionType:
    compiled, version = code
    if version != tuple(sys.version_info[:2]):
        raise RuntimeError("functions of Python %d.%d do not run in this one" % version)
    empty = tuple(CellType() for _ in range(cells))
    return FunctionType(marshal.loads(compiled), module_named(home).__dict__, None, None, empty)


def set_function(function: FunctionType, state: dict[str, Any]) -> None:
    for cell, content in zip(function.__closure__ or (), state.pop("cells")):
        if content:
            cell.cell_contents = content[0]
    function.__dict__.update(state.pop("__dict__"))
    for name, value in state.items():
        setattr(function, name, value)


def class_parts(kind: type) -> tuple[Any, ...]:
    enum = sys.modules.get("enum")
    if enum is not None and isinstance(kind, enum.EnumMeta):
        members = [(member.name, member.value) for member in kind.__members__.values()]
        return make_enum, (kind.__bases__, kind.__name__, members)
    if kind.__bases__ == (tuple,) and hasattr(kind, "_field_defaults"):
        parts = kind.__name__, kind._fields, tuple(kind._field_defaults.values())  # type: ignore[attr-defined]
        own = {name: value for name, value in kind.__dict__.items() if name not in make_namedtuple(*parts).__dict__}
        return make_namedtuple, parts, own, None, None, set_class
    slots = kind.__dict__.get("__slots__", ())
    made_anew = {*MADE_ANEW, *([slots] if isinstance(slots, str) else slots)}
    state = {name: value for name, value in kind.__dict__.items() if name not in made_anew}
    first = {"__slots__": slots} if "__slots__" in kind.__dict__ else {}
    return make_class, (type(kind), kind.__name__, kind.__bases__, first), state, None, None, set_class


def make_class(meta: Any, name: str, bases: tuple[type, ...], first: dict[str, Any]) -> Any:
    return meta(name, bases, {"__module__": "__main__", **first})


def make_enum(bases: tuple[Any, ...], name: str, members: list[Any]) -> Any:
    return bases[-1](name, members, module="__main__", type=bases[0] if len(bases) > 1 else None)


def make_namedtuple(name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]) -> Any:
    return trusted_import("collections").namedtuple(name, fields, defaults=defaults, module="__main__")


def set_class(kind: type, state: dict[str, Any]) -> None:
    for name, value in state.items():
        if name != "__slots__":
            setattr(kind, name, value)


def read_only(values: dict[Any, Any]) -> Any:
    return MappingProxyType(values)  # pickle cannot find that type by its name
