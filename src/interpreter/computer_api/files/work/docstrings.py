"""Searches the documentation that is in source code; the code is read and not run."""

from __future__ import annotations

import os
import sys
import time
from importlib.machinery import PathFinder
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from .definitions import Definition, defined_in, defined_without_source
from .ranking import Ranked, words_of
from .texts import full

MOST_FILES = 5_000
LARGEST = 2 * 1024 * 1024
LONGEST = 1_500  # characters of a docstring
SECONDS = 20.0
TESTS = ("tests", "test", "testing", "__pycache__", "node_modules", "site-packages")


def search(
    folder: str, query: str, module: Optional[str], paths: Union[str, List[str], None], most: int
) -> List[Dict[str, Any]]:
    """What is defined in a module, or below these paths, that is most about the query."""
    wanted = words_of(query)
    if not wanted:
        raise ValueError("The query has no words.")
    until = time.monotonic() + SECONDS
    found: List[Definition] = []
    cut = ""
    if module is not None:
        package, sources = _of_module(folder, module)
        if not sources:
            found = defined_without_source(module)
    else:
        package, sources = "", _below(folder, [paths] if isinstance(paths, str) else paths or ["."])
    for source, text in _promising(sources, wanted):
        if time.monotonic() > until:
            cut = "Not all files were looked at: name a smaller module or path."
            break
        found += defined_in(text, source, _dotted(source, sources[source], package))
    rows = [_row(each, folder) for each in Ranked(found, query).best(most)]
    if rows and cut:
        rows[-1]["cut"] = cut
    return rows


def _row(found: Definition, folder: str) -> Dict[str, Any]:
    doc = found.doc if len(found.doc) <= LONGEST else found.doc[:LONGEST] + "..."
    below = os.path.relpath(found.file, folder) if found.file else ""
    file = found.file if below.startswith("..") else below
    return {"name": found.name, "signature": found.signature, "doc": doc, "file": file, "line": found.line}


# -- which files -----------------------------------------------------------------------------------------------------


def _of_module(folder: str, module: str) -> Tuple[str, Dict[str, str]]:
    """The name and the source files of a module, each with the folder that its names begin below; none without source.

    Nothing is imported: a parent package is looked through, not run.
    """
    search: Any = [folder, *sys.path]
    spec = None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, search) if search is not None else None
        if spec is None:
            break
        search = spec.submodule_search_locations
    if spec is None:
        if module in sys.builtin_module_names:
            return module, {}
        raise ValueError(f"The session's Python ({sys.executable}) has no module {module!r}. Is it installed?")
    if search is not None:
        return module, {file: place for place in search for file in _python_files(str(place))}
    origin = str(spec.origin or "")
    if not origin.endswith(".py") and not origin.startswith(_dynamic()):
        raise ValueError(f"{module} has no Python source that could be searched.")
    return module, {origin: ""} if origin.endswith(".py") else {}


def _dynamic() -> str:
    """Where Python has those of its own modules that were written in C and are not built in."""
    return os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "lib-dynload")


def _below(folder: str, paths: List[str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for path in paths:
        place = full(folder, path)
        if not os.path.exists(place):
            raise FileNotFoundError(f"There is no {path!r} in {folder}.")
        if os.path.isdir(place):
            found.update((file, place) for file in _python_files(place))
        else:
            found[place] = os.path.dirname(place)
    return found


def _python_files(root: str) -> Iterator[str]:
    count = 0
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name not in TESTS and not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".py") and not name.startswith("test_") and count < MOST_FILES:
                count += 1
                yield os.path.join(folder, name)


def _promising(sources: Dict[str, str], wanted: List[str]) -> List[Tuple[str, str]]:
    """The files in which any of the words is, those with most of them first."""
    found = []
    for file in sources:
        try:
            if os.path.getsize(file) > LARGEST:
                continue
            with open(file, encoding="utf-8", errors="replace") as opened:
                text = opened.read()
        except OSError:
            continue
        lowered = text.lower()
        count = sum(word in lowered for word in set(wanted))
        if count:
            found.append((-count, file, text))
    return [(file, text) for _, file, text in sorted(found, key=lambda each: each[:2])]


def _dotted(file: str, root: str, package: str) -> str:
    """The name of the module that a file is."""
    if not root:
        return package
    parts = os.path.relpath(file, root)[: -len(".py")].split(os.sep)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(([package] if package else []) + parts)
