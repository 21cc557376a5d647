"""Finds files by their names and lines by what is in them: with ripgrep where it is, else by looking ourselves."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import time
from itertools import islice
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Pattern, Tuple

from . import ripgrep
from .texts import full
from .walking import files_below

LARGEST = 10 * 1024 * 1024  # a larger file is not looked into
LONGEST = 300  # characters of a line that are shown
BEFORE = 100  # of them, before what was found
SECONDS = 30.0

Row = Dict[str, Any]
Found = Tuple[str, int, str, int]
"""A file, the number of a line, the line, and where in it."""


class Wanted(NamedTuple):
    """What is looked for."""

    query: str
    regex: bool
    ignore_case: bool
    hidden: bool
    globs: List[str]
    """For the names of files; an empty list is all."""

    @property
    def pattern(self) -> Pattern[str]:
        text = self.query if self.regex else re.escape(self.query)
        try:
            return re.compile(text, re.IGNORECASE if self.ignore_case else 0)
        except re.error as error:
            raise ValueError(f"{self.query!r} is no regular expression: {error}.") from None


def search(
    folder: str,
    query: str,
    path: Optional[str],
    most: int,
    names: bool,
    content: bool,
    regex: bool,
    ignore_case: Optional[bool],
    glob: Optional[str],
    hidden: bool,
    use_ripgrep: bool = True,
) -> List[Row]:
    """Rows with path, line and text: first the files with such a name, whose line is None, then the lines."""
    if not query or "\n" in query:
        raise ValueError("Search for one line or a part of it: the query is empty, or has several lines.")
    root = full(folder, path or ".")
    if not os.path.exists(root):
        raise FileNotFoundError(f"There is no {path!r} in {folder}.")
    chosen = ignore_case if ignore_case is not None else not any(map(str.isupper, query))
    wanted = Wanted(query, regex, chosen, hidden, _braces(glob) if glob else [])
    program = shutil.which("rg") if use_ripgrep else None
    search = _Search(folder, root, wanted, program)
    rows: List[Row] = []
    cut = ""
    if names and os.path.isdir(root):
        rows, cut = search.collected(search.names(), max(1, most // 2) if content else most, "names")
    if content:
        lines, more = search.collected(search.lines(), max(1, most - len(rows)), "lines")
        rows, cut = rows + lines, more or cut
    if cut and rows:
        rows[-1]["cut"] = cut
    return rows


class _Search:
    def __init__(self, folder: str, root: str, wanted: Wanted, program: Optional[str]) -> None:
        self.folder, self.root, self.wanted, self.program = folder, root, wanted, program
        self.pattern = wanted.pattern
        self.until = time.monotonic() + SECONDS

    def collected(self, found: Iterator[Row], most: int, what: str) -> Tuple[List[Row], str]:
        rows: List[Row] = []
        narrower = "give a longer query, a path or a glob, or raise max_results"
        try:
            for row in islice(found, most + 1):
                rows.append(row)
        except TimeoutError:
            return rows[:most], f"The search was ended after {SECONDS:.0f} seconds: {narrower}."
        return rows[:most], f"More {what} match than are shown: {narrower}." if len(rows) > most else ""

    def files(self) -> Iterator[str]:
        """All files that are looked at, from the root."""
        if self.program:
            found = ripgrep.files(self.program, self.root, self.wanted.hidden, self.until)
        else:
            found = files_below(self.root, self.wanted.hidden)
        for relative in found:
            self.in_time()
            if self.fits(relative):
                yield relative

    def in_time(self) -> None:
        if time.monotonic() > self.until:
            raise TimeoutError

    def fits(self, relative: str) -> bool:
        name = os.path.basename(relative)
        return not self.wanted.globs or any(fnmatch.fnmatchcase(name, glob) for glob in self.wanted.globs)

    def names(self) -> Iterator[Row]:
        query, fold = self.wanted.query, str.lower if self.wanted.ignore_case else str
        is_glob = not self.wanted.regex and any(sign in query for sign in "*?[")
        for relative in self.files():
            part = relative if self.wanted.regex or "/" in query else os.path.basename(relative)
            matches = fnmatch.fnmatchcase(fold(part), fold(query)) if is_glob else self.pattern.search(part)
            if matches:
                yield {"path": self.shown(relative), "line": None, "text": os.path.basename(relative)}

    def lines(self) -> Iterator[Row]:
        for relative, number, line, at in self.found():
            yield {"path": self.shown(relative), "line": number, "text": _shortened(line, at)}

    def found(self) -> Iterator[Found]:
        if self.program and ripgrep.understands(self.program, self.wanted):
            return ripgrep.lines(self.program, self.root, self.wanted, LARGEST, self.until)
        return self.looked_up()

    def looked_up(self) -> Iterator[Found]:
        for relative in self.files() if os.path.isdir(self.root) else [""]:
            self.in_time()
            for number, line in enumerate(_lines_of(os.path.join(self.root, relative) if relative else self.root), 1):
                match = self.pattern.search(line)
                if match:
                    yield relative, number, line, match.start()

    def shown(self, relative: str) -> str:
        """A path as the session would write it."""
        place = os.path.join(self.root, relative) if relative else self.root
        below = os.path.relpath(place, self.folder)
        return place if below.startswith("..") else below


def _lines_of(path: str) -> Iterator[str]:
    """The lines of a text file; none of one that is too large, cannot be read or is no text."""
    try:
        if os.path.getsize(path) > LARGEST:
            return
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    if encoding == "utf-8" and b"\0" in data:
        return
    lines = data.decode(encoding, "replace").split("\n")
    for line in lines if lines[-1] else lines[:-1]:
        yield ripgrep.bare(line)


def _shortened(line: str, at: int) -> str:
    if len(line) <= LONGEST:
        return line
    start = max(0, min(at - BEFORE, len(line) - LONGEST))
    end = start + LONGEST
    return ("..." if start else "") + line[start:end] + ("..." if end < len(line) else "")


def _braces(glob: str) -> List[str]:
    """`*.{py,js}` as `*.py` and `*.js`."""
    if "/" in glob:
        raise ValueError(f"The glob {glob!r} is for the names of files alone: name the folder with `path`.")
    begin, opened, rest = glob.partition("{")
    inner, closed, end = rest.partition("}")
    if not opened or not closed:
        return [glob]
    return [each for part in inner.split(",") for each in _braces(begin + part + end)]
