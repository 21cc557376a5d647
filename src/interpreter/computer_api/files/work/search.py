"""Which files git is told to ignore: the `.gitignore` files of a folder and of those below it."""

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


class Rule(NamedTuple):
    """One line of such a file; it is about what is below the folder that the file is in."""

    folder: str
    pattern: Pattern[str]
    ignores: bool
    only_folders: bool


def rules_in(folder: str, relative: str) -> List[Rule]:
    """What the `.gitignore` of a folder says; `relative` is that folder from where the search began."""
    try:
        with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    return [rule for line in lines for rule in [_rule(line, relative)] if rule is not None]


def is_ignored(rules: List[Rule], relative: str, is_folder: bool) -> bool:
    """Whether the last rule that is about it says so."""
    for rule in reversed(rules):
        below = os.path.relpath(relative, rule.folder) if rule.folder else relative
        if (is_folder or not rule.only_folders) and rule.pattern.match(below):
            return rule.ignores
    return False


def _rule(line: str, folder: str) -> Optional[Rule]:
    line = re.sub(r"(?<!\\) +$", "", line)
    if not line or line.startswith("#"):
        return None
    ignores = not line.startswith("!")
    pattern = line if ignores else line[1:]
    only_folders = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    if not pattern:
        return None
    anywhere = "/" not in pattern
    return Rule(folder, _compiled(pattern.lstrip("/"), anywhere), ignores, only_folders)


def _compiled(pattern: str, anywhere: bool) -> Pattern[str]:
    begin = "(?:.*/)?" if anywhere else ""
    return re.compile(begin + translated(pattern) + r"\Z", re.DOTALL)


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


def files_below(root: str, hidden: bool) -> Iterator[str]:
    """Their paths from the root."""
    yield from _walk(root, "", [], hidden)


def _walk(root: str, folder: str, rules: List[Rule], hidden: bool) -> Iterator[str]:
    place = os.path.join(root, folder)
    rules = rules + rules_in(place, folder)
    for entry in _entries(place):
        relative = os.path.join(folder, entry.name)
        if _is_left_out(entry, hidden) or is_ignored(rules, relative, entry.is_dir(follow_symlinks=False)):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, relative, rules, hidden)
        elif entry.is_file(follow_symlinks=False):
            yield relative


def _entries(folder: str) -> "List[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return []


def _is_left_out(entry: "os.DirEntry[str]", hidden: bool) -> bool:
    return entry.is_symlink() or entry.name == ".git" or (entry.name.startswith(".") and not hidden)


# What git is told to ignore counts below the folder that is searched, whether or not it is a repository.
SAME = (
    *("--no-config", "--no-messages", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"),
    *("--no-ignore-parent", "--no-require-git", "--sort", "path", "--glob", "!.git"),
)


def ripgrep_understands(program: str, wanted: Wanted) -> bool:
    """Whether the regular expression is one for ripgrep too."""
    if not wanted.regex:
        return True
    asked = [program, "--no-config", "--quiet", "-e", wanted.query, "--", os.devnull]
    return subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True).returncode != 2


def ripgrep_files(program: str, root: str, hidden: bool, until: float) -> Iterator[str]:
    """The files below the root, from there."""
    options = [*SAME, "--files", "--null", *(["--hidden"] if hidden else [])]
    with _running([program, *options, "--", root], until) as output:
        rest = b""
        for piece in iter(lambda: output.read1(65536), b""):  # type: ignore[attr-defined]
            *names, rest = (rest + piece).split(b"\0")
            for name in names:
                yield os.path.relpath(os.fsdecode(name), root)


def ripgrep_lines(
    program: str, root: str, wanted: Wanted, largest: int, until: float
) -> Iterator[Tuple[str, int, str, int]]:
    """The lines that match, each with its file from the root, its number and where in it that begins."""
    options = [*SAME, "--json", "--max-filesize", str(largest), "-i" if wanted.ignore_case else "-s"]
    options += ["--hidden"] if wanted.hidden else []
    options += [] if wanted.regex else ["--fixed-strings"]
    for glob in wanted.globs:
        options += ["--type-add", f"wanted:{glob}"]
    options += ["--type", "wanted"] if wanted.globs else []
    with _running([program, *options, "-e", wanted.query, "--", root], until) as output:
        yield from _told(output, root)


def _told(output: IO[bytes], root: str) -> Iterator[Tuple[str, int, str, int]]:
    kept: List[Tuple[str, int, str, int]] = []
    for line in output:
        if not line.endswith(b"\n"):
            return  # it was ended in the middle
        event = json.loads(line)
        data = event["data"]
        if event["type"] == "match":
            kept.append(_match(data, root))
        elif event["type"] == "end":
            if data["binary_offset"] is None:
                yield from kept
            kept = []


def _match(data: Dict[str, Any], root: str) -> Tuple[str, int, str, int]:
    line = _bytes(data["lines"])
    begin = data["submatches"][0]["start"] if data["submatches"] else 0
    path = os.fsdecode(_bytes(data["path"]))
    relative = "" if path == root else os.path.relpath(path, root)
    before = line[:begin].decode("utf-8", "replace")
    return relative, data["line_number"], bare(line.decode("utf-8", "replace")), len(before)


def bare(line: str) -> str:
    """A line without what marks its end, or the beginning of the file."""
    return line.rstrip("\r\n").lstrip("\ufeff")


def _bytes(told: Dict[str, str]) -> bytes:
    """ripgrep writes what is not UTF-8 as base64."""
    return told["text"].encode("utf-8") if "text" in told else base64.b64decode(told["bytes"])


@contextmanager
def _running(command: List[str], until: float) -> Iterator[IO[bytes]]:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    late = threading.Timer(max(0.0, until - time.monotonic()), process.kill)
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
            found = ripgrep_files(self.program, self.root, self.wanted.hidden, self.until)
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
        if self.program and ripgrep_understands(self.program, self.wanted):
            return ripgrep_lines(self.program, self.root, self.wanted, LARGEST, self.until)
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
        yield bare(line)


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
