"""Find files by name and lines by content: with ripgrep where it is installed, else in Python.

What `.gitignore` files say counts below the folder that is searched, whether or not it is a repository.
"""

from __future__ import annotations

import base64
import fnmatch
import json
import os
import re
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager
from itertools import islice
from typing import IO, Any, Dict, Iterator, List, NamedTuple, Optional, Pattern, Tuple

from .texts import full

MAX_FILE_BYTES = 10 * 1024 * 1024  # a larger file is not searched
MAX_LINE = 300  # characters of a line that are shown
BEFORE = 100  # of them, before the match
SECONDS = 30.0

Row = Dict[str, Any]
Match = Tuple[str, int, str, int]
"""A file, the number of a line, the line, and where in it."""


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
    if ignore_case is None:
        ignore_case = not any(map(str.isupper, query))
    try:
        pattern = re.compile(query if regex else re.escape(query), re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise ValueError(f"{query!r} is no regular expression: {error}.") from None
    program = shutil.which("rg") if use_ripgrep else None
    globs = _without_braces(glob) if glob else []
    search = _Search(folder, root, query, regex, ignore_case, hidden, globs, pattern, program)
    rows: List[Row] = []
    cut = ""
    if names and os.path.isdir(root):
        rows, cut = search.collect(search.names(), max(1, most // 2) if content else most, "names")
    if content:
        lines, more = search.collect(search.lines(), max(1, most - len(rows)), "lines")
        rows, cut = rows + lines, more or cut
    if cut and rows:
        rows[-1]["cut"] = cut
    return rows


class _Search:
    def __init__(
        self,
        folder: str,
        root: str,
        query: str,
        regex: bool,
        ignore_case: bool,
        hidden: bool,
        globs: List[str],
        pattern: Pattern[str],
        ripgrep: Optional[str],
    ) -> None:
        self.folder, self.root = folder, root
        self.query, self.regex, self.ignore_case, self.hidden = query, regex, ignore_case, hidden
        self.globs = globs  # for the names of files; an empty list means all
        self.pattern, self.ripgrep = pattern, ripgrep
        self.until = time.monotonic() + SECONDS

    def collect(self, found: Iterator[Row], most: int, what: str) -> Tuple[List[Row], str]:
        rows: List[Row] = []
        narrower = "give a longer query, a path or a glob, or raise max_results"
        try:
            for row in islice(found, most + 1):
                rows.append(row)
        except TimeoutError:
            return rows[:most], f"The search was ended after {SECONDS:.0f} seconds: {narrower}."
        return rows[:most], f"More {what} match than are shown: {narrower}." if len(rows) > most else ""

    def names(self) -> Iterator[Row]:
        query, fold = self.query, str.lower if self.ignore_case else str
        is_glob = not self.regex and any(sign in query for sign in "*?[")
        for relative in self.files():
            part = relative if self.regex or "/" in query else os.path.basename(relative)
            matches = fnmatch.fnmatchcase(fold(part), fold(query)) if is_glob else self.pattern.search(part)
            if matches:
                yield {"path": self.shown(relative), "line": None, "text": os.path.basename(relative)}

    def lines(self) -> Iterator[Row]:
        understood = self.ripgrep and (not self.regex or _ripgrep_understands(self.ripgrep, self.query))
        for relative, number, line, at in self.ripgrep_matches() if understood else self.matches():
            if len(line) > MAX_LINE:
                start = max(0, min(at - BEFORE, len(line) - MAX_LINE))
                end = start + MAX_LINE
                line = ("..." if start else "") + line[start:end] + ("..." if end < len(line) else "")
            yield {"path": self.shown(relative), "line": number, "text": line}

    def files(self) -> Iterator[str]:
        """All files to search, relative to the root."""
        for relative in self.ripgrep_files() if self.ripgrep else _walk(self.root, "", [], self.hidden):
            self.check_time()
            name = os.path.basename(relative)
            if not self.globs or any(fnmatch.fnmatchcase(name, glob) for glob in self.globs):
                yield relative

    def matches(self) -> Iterator[Match]:
        for relative in self.files() if os.path.isdir(self.root) else [""]:
            self.check_time()
            for number, line in enumerate(_lines_of(os.path.join(self.root, relative) if relative else self.root), 1):
                match = self.pattern.search(line)
                if match:
                    yield relative, number, line, match.start()

    def check_time(self) -> None:
        if time.monotonic() > self.until:
            raise TimeoutError

    def shown(self, relative: str) -> str:
        """A path as the session would write it."""
        place = os.path.join(self.root, relative) if relative else self.root
        below = os.path.relpath(place, self.folder)
        return place if below.startswith("..") else below

    # -- with ripgrep ----------------------------------------------------------------------------------------------

    @contextmanager
    def ripgrep_output(self, *options: str) -> Iterator[IO[bytes]]:
        command = [str(self.ripgrep), *RIPGREP, *(["--hidden"] if self.hidden else []), *options, "--", self.root]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        late = threading.Timer(max(0.0, self.until - time.monotonic()), process.kill)
        late.daemon = True
        late.start()
        try:
            assert process.stdout is not None
            with process.stdout:
                yield process.stdout
            process.wait()
            if late.finished.is_set():
                raise TimeoutError
        finally:
            late.cancel()
            process.kill()
            process.wait()

    def ripgrep_files(self) -> Iterator[str]:
        with self.ripgrep_output("--files", "--null") as output:
            rest = b""
            for piece in iter(lambda: output.read1(65536), b""):  # type: ignore[attr-defined]
                *names, rest = (rest + piece).split(b"\0")
                for name in names:
                    yield os.path.relpath(os.fsdecode(name), self.root)

    def ripgrep_matches(self) -> Iterator[Match]:
        options = ["--json", "--max-filesize", str(MAX_FILE_BYTES), "-i" if self.ignore_case else "-s"]
        options += [] if self.regex else ["--fixed-strings"]
        for glob in self.globs:
            options += ["--type-add", f"wanted:{glob}"]
        options += ["--type", "wanted"] if self.globs else []
        with self.ripgrep_output(*options, "-e", self.query) as output:
            kept: List[Match] = []
            for line in output:
                if not line.endswith(b"\n"):
                    return  # it was ended in the middle
                event = json.loads(line)
                data = event["data"]
                if event["type"] == "match":
                    kept.append(self._ripgrep_match(data))
                elif event["type"] == "end":
                    if data["binary_offset"] is None:
                        yield from kept
                    kept = []

    def _ripgrep_match(self, data: Dict[str, Any]) -> Match:
        def read(given: Dict[str, str]) -> bytes:  # what is not UTF-8 is written as base64
            return given["text"].encode("utf-8") if "text" in given else base64.b64decode(given["bytes"])

        line, path = read(data["lines"]), os.fsdecode(read(data["path"]))
        begin = data["submatches"][0]["start"] if data["submatches"] else 0
        relative = "" if path == self.root else os.path.relpath(path, self.root)
        before = line[:begin].decode("utf-8", "replace")
        return relative, data["line_number"], _bare(line.decode("utf-8", "replace")), len(before)


RIPGREP = (
    *("--no-config", "--no-messages", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"),
    *("--no-ignore-parent", "--no-require-git", "--sort", "path", "--glob", "!.git"),
)


def _ripgrep_understands(program: str, query: str) -> bool:
    """Whether a regular expression is one for ripgrep too."""
    command = [program, "--no-config", "--quiet", "-e", query, "--", os.devnull]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode != 2


def _lines_of(path: str) -> Iterator[str]:
    """The lines of a text file; none of one that is too large, cannot be read or is no text."""
    try:
        if os.path.getsize(path) > MAX_FILE_BYTES:
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
        yield _bare(line)


def _bare(line: str) -> str:
    """A line without its end, and without the mark at the beginning of a file."""
    return line.rstrip("\r\n").lstrip("\ufeff")


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
        compiled = re.compile(anywhere + translated(pattern.lstrip("/")) + r"\Z", re.DOTALL)
        rules.append(Rule(relative, compiled, ignores, line.endswith("/")))
    return rules


def translated(pattern: str) -> str:
    """A pattern with `*`, `?`, `[...]` and `**` as a regular expression."""
    found, at = "", 0
    while at < len(pattern):
        rest = pattern[at:]
        at_begin = at == 0 or pattern[at - 1] == "/"
        if at_begin and rest.startswith("**/"):
            found, at = found + "(?:.*/)?", at + 3
        elif at_begin and rest == "**":
            found, at = found + ".+", at + 2
        elif rest[0] == "*":
            found, at = found + "[^/]*", at + 1
        elif rest[0] == "?":
            found, at = found + "[^/]", at + 1
        elif rest[0] == "[" and "]" in rest[2:]:
            end = rest.index("]", 2)
            inner = rest[1:end].replace("\\", "\\\\")
            found += f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]"
            at += end + 1
        else:
            escaped = rest[0] == "\\" and len(rest) > 1
            found, at = found + re.escape(rest[1] if escaped else rest[0]), at + 1 + escaped
    return found
