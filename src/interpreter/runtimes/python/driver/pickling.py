"""Moves the variables that can be pickled from a snapshot that cannot resume into a fresh worker."""

from __future__ import annotations

import marshal
import os
import pickle
import select
import sys
from signal import SIGKILL
from types import CellType, FunctionType, MappingProxyType, ModuleType

from .descriptors import working_directory
from .imports import trusted_import
from .inspection import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STALLED = 20.0  # seconds for one variable: its library may wait for a thread that does not exist here


def pack(namespace: dict[str, Any], hidden: dict[str, Any], path: str) -> list[str]:
    """Write the variables that can be pickled to a file; the names of the others."""
    users = {
        name: value
        for name, value in namespace.items()
        if not name.startswith("_") and not (name in hidden and hidden[name] is value)
    }
    good = picklable(users)
    with open(path, "wb") as file:
        pickle.dump((working_directory(), dict(os.environ), sys.path), file)
        ByValue(file, protocol=4).dump({name: users[name] for name in good})
    return ["%s (%s)" % (name, type_name(value)) for name, value in users.items() if name not in good]


def picklable(users: dict[str, Any]) -> list[str]:
    """The variables that can be pickled. Another process tries, since an attempt may crash or never return."""
    names, good = list(users), []
    position = 0
    while position < len(names):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            sink = open(os.devnull, "wb")  # noqa: SIM115 -- for the life of this process
            for name in names[position:]:
                try:
                    ByValue(sink, protocol=4).dump(users[name])
                    os.write(writer, b"+")
                except BaseException:  # noqa: BLE001 -- whatever a user's __reduce__ raises
                    os.write(writer, b"-")
            os._exit(0)
        os.close(writer)
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        while position < len(names) and poll.poll(STALLED * 1000):
            verdict = os.read(reader, 1)
            if not verdict:
                break  # this variable crashed it
            good += [names[position]] if verdict == b"+" else []
            position += 1
        position += 1  # the one that it got stuck with
        os.close(reader)
        os.kill(pid, SIGKILL)
        os.waitpid(pid, 0)
    return good


def unpack(namespace: dict[str, Any], path: str) -> None:
    """Take the variables from a file, and remove it."""
    try:
        with open(path, "rb") as file:
            folder, environ, sys.path[:] = pickle.load(file)
            try:
                os.chdir(folder or ".")
            except OSError:
                pass  # not visible in a sandbox
            os.environ.clear()
            os.environ.update(environ)
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
            return function_parts(value)  # a block defined it, or a decorator made it there
        if isinstance(value, type) and value.__module__ == "__main__":
            return class_parts(value)
        if isinstance(value, ModuleType):
            return trusted_import, (value.__name__,)
        if isinstance(value, MappingProxyType):
            return read_only, (dict(value),)
        if type(value).__module__ == "dataclasses" and not isinstance(value, type):
            for name in DATACLASS_CONSTANTS:
                if getattr(sys.modules["dataclasses"], name, None) is value:
                    return getattr, (sys.modules["dataclasses"], name)
        return NotImplemented


def function_parts(function: FunctionType) -> tuple[Any, ...]:
    cells = function.__closure__ or ()
    state: dict[str, Any] = {name: getattr(function, name) for name in FUNCTION_STATE}
    state["cells"] = [contents(cell) for cell in cells]
    home = "__main__" if function.__globals__ is sys.modules["__main__"].__dict__ else function.__globals__["__name__"]
    return make_function, (marshal.dumps(function.__code__), len(cells), home), state, None, None, set_function


def contents(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []  # not assigned yet


def make_function(code: bytes, cells: int, home: str) -> FunctionType:
    empty = tuple(CellType() for _ in range(cells))
    return FunctionType(marshal.loads(code), trusted_import(home).__dict__, None, None, empty)


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
    slots = kind.__dict__.get("__slots__", ())
    made_anew = {*MADE_ANEW, *([slots] if isinstance(slots, str) else slots)}
    state = {name: value for name, value in kind.__dict__.items() if name not in made_anew}
    first = {"__slots__": slots} if "__slots__" in kind.__dict__ else {}
    return make_class, (type(kind), kind.__name__, kind.__bases__, first), state, None, None, set_class


def make_class(meta: Any, name: str, bases: tuple[type, ...], first: dict[str, Any]) -> Any:
    return meta(name, bases, {"__module__": "__main__", **first})


def make_enum(bases: tuple[Any, ...], name: str, members: list[Any]) -> Any:
    return bases[-1](name, members, module="__main__", type=bases[0] if len(bases) > 1 else None)


def set_class(kind: type, state: dict[str, Any]) -> None:
    for name, value in state.items():
        if name != "__slots__":
            setattr(kind, name, value)


def read_only(values: dict[Any, Any]) -> Any:
    return MappingProxyType(values)  # pickle cannot find that type by its name
