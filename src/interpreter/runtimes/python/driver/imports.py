"""Imports that the user's files cannot shadow, and callbacks when a module is imported."""

from __future__ import annotations

import _socket
import importlib
import importlib.util
import os
import sys
from types import ModuleType

from .hints import Any, Callable


def trusted_import(name: str) -> Any:
    """Import a module for the driver: never a file of that name in the working directory."""
    if name in sys.modules:
        return importlib.import_module(name)
    kept = sys.path[:]
    sys.path[:] = [entry for entry in kept if entry not in ("", ".")]
    try:
        return importlib.import_module(name)
    finally:
        sys.path[:] = kept


def names_of(value: Any) -> set[tuple[str, str]]:
    """Return the modules and names of a value's classes, which identify libraries without importing them."""
    return {(base.__module__, base.__name__) for base in type(value).__mro__}


class ImportWatch:
    """Calls back once when a module has been imported."""

    def __init__(self) -> None:
        self._actions: dict[str, Callable[[ModuleType], None]] = {}

    def on_import(self, name: str, action: Callable[[ModuleType], None]) -> None:
        if name in sys.modules:
            action(sys.modules[name])
            return
        self._actions[name] = action
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        action = self._actions.pop(name, None)
        if action is None:
            return None
        if not self._actions:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                action(module)

            loader.exec_module = exec_module
        return spec


def avoid_unix_sockets(watch: ImportWatch) -> None:
    """Make multiprocessing use TCP and fork in a sandbox without Unix sockets."""

    def use_tcp(connection: Any) -> None:
        connection.default_family = "AF_INET"

    def use_fork(context: Any) -> None:
        context._default_context = context.DefaultContext(context._concrete_contexts["fork"])

    try:
        _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM).close()
    except OSError:
        watch.on_import("multiprocessing.connection", use_tcp)
        watch.on_import("multiprocessing.context", use_fork)


def use_packages(folder: str) -> None:
    """Find the packages of a virtual environment before those that can be imported already."""
    site: Any = sys.modules.get("site")
    standard = os.path.dirname(os.__file__)
    packages = os.path.join(folder, "lib", os.path.basename(standard), "site-packages")
    if site is None or not os.path.isdir(packages):
        return
    site.PREFIXES[:] = [folder]
    known = sys.path[:]
    site.addsitedir(packages)
    added = [entry for entry in sys.path if entry not in known]
    last = max(
        (at for at, entry in enumerate(known) if entry.startswith(standard) and "-packages" not in entry), default=-1
    )
    sys.path[:] = [*known[: last + 1], *added, *known[last + 1 :]]
