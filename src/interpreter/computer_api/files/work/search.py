"""Find files by name and lines by content.

What `.gitignore` files say counts below the folder that is searched, whether or not it is a repository.
"""

from __future__ import annotations

import fnmatch
import os
import re
import time
from contextlib import suppress
from itertools import islice
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Pattern

from .texts import full

MAX_FILE_BYTES = 10 * 1024 * 1024  # a larger file is not searched
MAX_LINE = 300  # characters of a line that are shown
BEFORE = 100  # of them, before the match
SECONDS = 30.0
NARROWER = "give a longer query, a path or a glob, or raise max_results"

Row = Dict[str, Any]
# A pattern of `.gitignore` in parts.
_TOKEN = re.compile(
    r"(?P<folders>(?:\A|(?<=/))\*\*/)|(?P<below>(?:\A|(?<=/))\*\*\Z)|(?P<many>\*)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>.[^\]]*)\]|\\?(?P<plain>.)",
    re.DOTALL,
)
_SPECIAL = {"folders": "(?:.*/)?", "below": ".+", "many": "[^/]*", "one": "[^/]"}


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
) -> List[Row]:
    """Rows with path, line and text: first the files with such a name, whose line is None, then the lines."""
    if not query or "\n" in query:
        raise ValueError("Search for one line or a part of it: the query is empty, or has several lines.")
    root = full(folder, path or ".")
    if not os.path.exists(root):
        raise FileNotFoundError(f"There is no {path!r} in {folder}.")
    if ignore_case is None:
        ignore_case = not any(map(str.isupper, query))
    try:
        pattern = re.compile(query if regex else re.escape(query), re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise ValueError(f"{query!r} is no regular expression: {error}.") from None
    globs = _without_braces(glob) if glob else []
    is_glob = not regex and any(sign in query for sign in "*?[")
    name_pattern = re.compile(r"\A" + fnmatch.translate(query), pattern.flags) if is_glob else pattern
    until = time.monotonic() + SECONDS

    def files() -> Iterator[str]:
        """All files to search, relative to the root; of a root that is a file, an empty name."""
        for relative in _walk(root, "", [], hidden) if os.path.isdir(root) else [""]:
            if time.monotonic() > until:
                raise TimeoutError
            name = os.path.basename(relative)
            if not relative or not globs or any(fnmatch.fnmatchcase(name, each) for each in globs):
                yield relative

    def shown(relative: str) -> str:
        """A path as the session would write it."""
        place = os.path.join(root, relative) if relative else root
        below = os.path.relpath(place, folder)
        return place if below.startswith("..") else below

    def matching_names() -> Iterator[Row]:
        for relative in filter(None, files()):
            part = relative if regex or "/" in query else os.path.basename(relative)
            if name_pattern.search(part):
                yield {"path": shown(relative), "line": None, "text": os.path.basename(relative)}

    def matching_lines() -> Iterator[Row]:
        for relative in files():
            place = os.path.join(root, relative) if relative else root
            for number, line in enumerate(_lines_of(place, None if regex else pattern), 1):
                match = pattern.search(line)
                if match and len(line) > MAX_LINE:
                    begin = max(0, min(match.start() - BEFORE, len(line) - MAX_LINE))
                    end = begin + MAX_LINE
                    line = ("..." if begin else "") + line[begin:end] + ("..." if end < len(line) else "")
                if match:
                    yield {"path": shown(relative), "line": number, "text": line}

    rows: List[Row] = []
    cut = ""
    searches = [("names", matching_names(), max(1, most // 2) if content else most)] if names else []
    searches += [("lines", matching_lines(), most)] if content else []
    for what, found, limit in searches:
        end = len(rows) + max(1, min(limit, most - len(rows)))
        try:
            for row in islice(found, end + 1 - len(rows)):
                rows.append(row)
        except TimeoutError:
            cut = f"The search was ended after {SECONDS:.0f} seconds: {NARROWER}."
        if len(rows) > end:
            cut = f"More {what} match than are shown: {NARROWER}."
        del rows[end:]
    if cut and rows:
        rows[-1]["cut"] = cut
    return rows


def _lines_of(path: str, needed: Optional[Pattern[str]]) -> Iterator[str]:
    """The lines of a text file; none if it is too large, cannot be read, is no text or lacks what is needed."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MAX_FILE_BYTES:  # reading a pipe would wait
            return
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    if encoding == "utf-8" and b"\0" in data:
        return
    text = data.decode(encoding, "replace")
    if needed is None or needed.search(text):
        lines = text.split("\n")
        for line in lines if lines[-1] else lines[:-1]:
            yield line.rstrip("\r").lstrip("\ufeff")


def _without_braces(glob: str) -> List[str]:
    """`*.{py,js}` as `*.py` and `*.js`."""
    if "/" in glob:
        raise ValueError(f"The glob {glob!r} is for the names of files alone: name the folder with `path`.")
    begin, opened, rest = glob.partition("{")
    inner, closed, end = rest.partition("}")
    if not opened or not closed:
        return [glob]
    return [each for part in inner.split(",") for each in _without_braces(begin + part + end)]


# -- files that are not ignored, in the order of their names -------------------------------------------------------


class Rule(NamedTuple):
    """One line of a `.gitignore`; it applies below the folder of that file."""

    folder: str
    pattern: Pattern[str]
    ignores: bool
    only_folders: bool


def _walk(root: str, folder: str, rules: List[Rule], hidden: bool) -> Iterator[str]:
    """The paths of the files below a folder, without links."""
    place = os.path.join(root, folder)
    rules = rules + rules_in(place, folder)
    try:
        with os.scandir(place) as found:
            entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return
    for entry in entries:
        relative, is_folder = os.path.join(folder, entry.name), entry.is_dir(follow_symlinks=False)
        if entry.is_symlink() or entry.name == ".git" or (entry.name.startswith(".") and not hidden):
            continue
        if is_ignored(rules, relative, is_folder):
            continue
        if is_folder:
            yield from _walk(root, relative, rules, hidden)
        elif entry.is_file(follow_symlinks=False):
            yield relative


def is_ignored(rules: List[Rule], relative: str, is_folder: bool) -> bool:
    """Whether the last rule that matches says so."""
    for rule in reversed(rules):
        below = os.path.relpath(relative, rule.folder) if rule.folder else relative
        if (is_folder or not rule.only_folders) and rule.pattern.match(below):
            return rule.ignores
    return False


def rules_in(folder: str, relative: str) -> List[Rule]:
    """What the `.gitignore` of a folder says; `relative` is that folder from where the search began."""
    try:
        with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    rules = []
    for line in (re.sub(r"(?<!\\) +$", "", line) for line in lines):
        ignores = not line.startswith("!")
        pattern = (line if ignores else line[1:]).rstrip("/")
        if not pattern or line.startswith("#"):
            continue
        anywhere = "" if "/" in pattern else "(?:.*/)?"
        with suppress(re.error):  # a pattern that makes no sense
            compiled = re.compile(anywhere + translated(pattern.lstrip("/")) + r"\Z", re.DOTALL)
            rules.append(Rule(relative, compiled, ignores, line.endswith("/")))
    return rules


def translated(pattern: str) -> str:
    """A pattern with `*`, `?`, `[...]` and `**` as a regular expression."""
    found = ""
    for token in _TOKEN.finditer(pattern):
        if token["set"]:
            found += f"[{token['not'] and '^'}{token['set']}]".replace("\\", "\\\\")
        else:
            found += _SPECIAL.get(str(token.lastgroup)) or re.escape(token["plain"])
    return found
