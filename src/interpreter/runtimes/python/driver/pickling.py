"""Carries the variables that can be pickled from a snapshot that cannot go on into a fresh worker."""

from __future__ import annotations

import marshal
import os
import pickle
import select
import sys
from signal import SIGKILL
from types import CellType, FunctionType, MappingProxyType, ModuleType

from .imports import trusted_import
from .inspection import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple


STALLED = 20.0  # seconds for one variable: its library may wait for a thread that is not there


class Nowhere:
    """A file for those who only want to know whether it works."""

    def write(self, data: Any) -> int:
        return len(data)


def pack(namespace: Dict[str, Any], hidden: Dict[str, Any], path: str) -> List[str]:
    """Put into a file what can be; the names of what cannot."""
    users = {name: value for name, value in namespace.items() if is_carried(name, value, hidden)}
    good = picklable(users)
    with open(path, "wb") as file:
        pickle.dump((place(), dict(os.environ), sys.path), file)
        ByValue(file, protocol=4).dump({name: users[name] for name in good})
    return ["%s (%s)" % (name, type_name(value)) for name, value in users.items() if name not in good]


def place() -> Optional[str]:
    try:
        return os.getcwd()
    except OSError:
        return None  # somebody removed it


def is_carried(name: str, value: Any, hidden: Dict[str, Any]) -> bool:
    return not name.startswith("_") and not (name in hidden and hidden[name] is value)


def picklable(users: Dict[str, Any]) -> List[str]:
    """Which of them can be pickled, found out in another process, since a try may never come back."""
    names, good = list(users), []
    position = 0
    while position < len(names):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            try_all([users[name] for name in names[position:]], writer)
        os.close(writer)
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        while position < len(names) and poll.poll(STALLED * 1000):
            verdict = os.read(reader, 1)
            if not verdict:
                break  # it died of this one
            good += [names[position]] if verdict == b"+" else []
            position += 1
        position += 1  # the one that it got stuck with
        os.close(reader)
        os.kill(pid, SIGKILL)
        os.waitpid(pid, 0)
    return good


def try_all(values: List[Any], writer: int) -> None:
    """In the other process: a sign for each."""
    for value in values:
        try:
            ByValue(Nowhere(), protocol=4).dump(value)
            os.write(writer, b"+")
        except BaseException:  # noqa: BLE001 -- whatever a user's __reduce__ raises
            os.write(writer, b"-")
    os._exit(0)


def unpack(namespace: Dict[str, Any], path: str) -> List[str]:
    """Take from a file what is there; what is lost: nothing more."""
    try:
        with open(path, "rb") as file:
            folder, environ, sys.path[:] = pickle.load(file)
            try:
                os.chdir(folder or ".")
            except OSError:
                pass  # a sandbox does not show it
            os.environ.clear()
            os.environ.update(environ)
            namespace.update(pickle.load(file))
    finally:
        os.unlink(path)
    return []


MADE_ANEW = ("__dict__", "__weakref__", "_abc_impl", "__slotnames__")
FUNCTION_STATE = ("__defaults__", "__kwdefaults__", "__dict__", "__doc__", "__name__", "__qualname__", "__module__")


class ByValue(pickle.Pickler):
    """As pickle does it, but for functions and classes of `__main__`, and modules."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, FunctionType) and is_of_main(value):
            return function_parts(value)
        if isinstance(value, type) and value.__module__ == "__main__":
            return class_parts(value)
        if isinstance(value, ModuleType):
            return trusted_import, (value.__name__,)
        if isinstance(value, MappingProxyType):
            return read_only, (dict(value),)
        if type(value).__module__ == "dataclasses" and not isinstance(value, type):
            return constant_of_dataclasses(value)
        return NotImplemented


def is_of_main(function: FunctionType) -> bool:
    """Whether a block defined it, or a decorator made it there."""
    return function.__globals__ is sys.modules["__main__"].__dict__ or function.__module__ == "__main__"


def function_parts(function: FunctionType) -> Tuple[Any, ...]:
    cells = function.__closure__ or ()
    state: Dict[str, Any] = {name: getattr(function, name) for name in FUNCTION_STATE}
    state["cells"] = [contents(cell) for cell in cells]
    home = "__main__" if function.__globals__ is sys.modules["__main__"].__dict__ else function.__globals__["__name__"]
    return make_function, (marshal.dumps(function.__code__), len(cells), home), state, None, None, set_function


def contents(cell: CellType) -> List[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:
        return []  # nothing was put there yet


def make_function(code: bytes, cells: int, home: str) -> FunctionType:
    empty = tuple(CellType() for _ in range(cells))
    return FunctionType(marshal.loads(code), trusted_import(home).__dict__, None, None, empty)


def set_function(function: FunctionType, state: Dict[str, Any]) -> None:
    for cell, content in zip(function.__closure__ or (), state.pop("cells")):
        if content:
            cell.cell_contents = content[0]
    function.__dict__.update(state.pop("__dict__"))
    for name, value in state.items():
        setattr(function, name, value)


def class_parts(kind: type) -> Tuple[Any, ...]:
    enum = sys.modules.get("enum")
    if enum is not None and isinstance(kind, enum.EnumMeta):
        members = [(member.name, member.value) for member in kind.__members__.values()]
        return make_enum, (kind.__bases__, kind.__name__, members)
    slots = kind.__dict__.get("__slots__", ())
    made_anew = {*MADE_ANEW, *([slots] if isinstance(slots, str) else slots)}
    state = {name: value for name, value in kind.__dict__.items() if name not in made_anew}
    first = {"__slots__": slots} if "__slots__" in kind.__dict__ else {}
    return make_class, (type(kind), kind.__name__, kind.__bases__, first), state, None, None, set_class


def make_class(meta: Any, name: str, bases: Tuple[type, ...], first: Dict[str, Any]) -> Any:
    return meta(name, bases, {"__module__": "__main__", **first})


def make_enum(bases: Tuple[Any, ...], name: str, members: List[Any]) -> Any:
    return bases[-1](name, members, module="__main__", type=bases[0] if len(bases) > 1 else None)


def set_class(kind: type, state: Dict[str, Any]) -> None:
    for name, value in state.items():
        if name != "__slots__":
            setattr(kind, name, value)


def read_only(values: Dict[Any, Any]) -> Any:
    return MappingProxyType(values)  # which has no name that pickle could find it by


def constant_of_dataclasses(value: Any) -> Any:
    """Some are known by being the very object, not by their value."""
    module = sys.modules["dataclasses"]
    for name in ("MISSING", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR", "KW_ONLY"):
        if getattr(module, name, None) is value:
            return getattr, (module, name)
    return NotImplemented
