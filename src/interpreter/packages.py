"""What other packages add: languages, tools, front ends and magic commands, by entry points.

Only packages in our own installation count, never those of a session's environment, which code could have put there.
They are read when something asks for them. Finding them takes a while, so the list is cached until the installation
changes. A package that fails is left out; `interpreter --doctor` names it with its error.
"""

from __future__ import annotations

import json
import os
import site
from collections.abc import Iterator
from contextlib import suppress
from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple

from interpreter.config.homes import make_folder, our_folder
from interpreter.host.files import read_bytes, write_bytes

Group = Literal["languages", "tools", "front_ends", "magics"]
PREFIX = "open_interpreter."


class EntryPoint(NamedTuple):
    group: str  # without the prefix
    name: str
    value: str  # `module:attribute`
    package: str  # its name and version


_listed: dict[tuple[tuple[str, int], ...], list[EntryPoint]] = {}
_broken: dict[EntryPoint, str] = {}


def entry_points(group: Group) -> list[EntryPoint]:
    """List what packages add to a group, without importing it."""
    folders = set(site.getsitepackages())
    if __file__.startswith(site.getuserbase() + os.sep):
        folders.add(site.getusersitepackages())
    installed = tuple((folder, os.stat(folder).st_mtime_ns) for folder in sorted(folders) if os.path.isdir(folder))
    if installed not in _listed:
        _listed[installed] = _read(installed)
    return [each for each in _listed[installed] if each.group == group]


def loaded(group: Group) -> Iterator[tuple[EntryPoint, Any]]:
    """Import what packages add to a group, and yield what can be imported."""
    for each in entry_points(group):
        with suppress(Exception):
            yield each, load(each)


def load(entry_point: EntryPoint) -> Any:
    """Import what an entry point names; an error is remembered for `broken`."""
    try:
        value = resolve_name(entry_point.value)
        if not callable(value) and entry_point.group != "tools":
            raise TypeError(f"{entry_point.value} is neither a class nor a function")
    except Exception as error:
        report(entry_point, error)
        raise
    return value


def report(entry_point: EntryPoint, error: Exception) -> None:
    """Remember that an entry point can't be used."""
    _broken[entry_point] = f"{type(error).__name__}: {error}"


def broken() -> dict[EntryPoint, str]:
    """Return the entry points that could not be used so far, with their errors."""
    return dict(_broken)


def _read(installed: tuple[tuple[str, int], ...]) -> list[EntryPoint]:
    cache = our_folder("cache") / "packages.json"
    key = [list(each) for each in installed]
    with suppress(OSError, ValueError, TypeError, KeyError):
        known = json.loads(read_bytes(cache))
        if known["installed"] == key:
            return [EntryPoint(*each) for each in known["entry_points"]]
    found = list(_scan([folder for folder, _ in installed]))
    with suppress(OSError):  # without a cache, the next start searches again
        make_folder(cache.parent)
        write_bytes(cache, json.dumps({"installed": key, "entry_points": found}).encode())
    return found


def _scan(folders: list[str]) -> Iterator[EntryPoint]:
    from importlib.metadata import distributions

    for distribution in distributions(path=folders):
        for each in distribution.entry_points:
            if each.group.startswith(PREFIX):
                package = f"{distribution.metadata['Name']} {distribution.version}"
                yield EntryPoint(each.group.removeprefix(PREFIX), each.name, each.value, package)
