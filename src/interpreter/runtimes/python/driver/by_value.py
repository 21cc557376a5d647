"""Pickles what blocks have defined by value: another process has no such functions and classes in its `__main__`."""

from __future__ import annotations

import marshal
import pickle
import sys
from types import CellType, FunctionType, MappingProxyType, ModuleType

from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Tuple

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
