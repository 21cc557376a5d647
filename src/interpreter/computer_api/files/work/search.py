"""Find files by name and lines by content.

`.gitignore` files in the searched folder apply, whether or not it is a repository.
"""

from __future__ import annotations

import fnmatch
import os
import re
import time
from contextlib import suppress
from itertools import islice
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Pattern, Tuple

from .texts import decoded, full, shown

MAX_FILE_BYTES = 10 * 1024 * 1024  # a larger file is not searched
MAX_LINE_LENGTH = 300  # characters of a line that are shown
BEFORE = 100  # characters of that line before the match
TIMEOUT = 30.0
SPREAD_TIMEOUT = 0.5  # seconds to search more files, once there are enough results
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
    """Return rows of path, line and text: first files with such a name, whose line is None, then matching lines."""
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
        raise ValueError(f"{query!r} is not a valid regular expression: {error}.") from None
    globs = _expand_braces(glob) if glob else []
    is_glob = not regex and any(sign in query for sign in "*?[")
    name_pattern = re.compile(r"\A" + fnmatch.translate(query), pattern.flags) if is_glob else pattern
    until = time.monotonic() + TIMEOUT
    share = max(1, most // 10)
    named: List[Row] = []
    lines: List[Tuple[int, int, Row]] = []  # file and number of each; of a file no more than its share
    more: List[Tuple[int, int, Row]] = []  # lines beyond the share, in case too few files match
    enough = late = False
    for order, relative in enumerate(_walk(root, "", [], hidden) if os.path.isdir(root) else [""]):
        late = time.monotonic() > until
        wants_names, wants_lines = names and len(named) <= most, content and len(lines) <= most
        if late or not (wants_names or wants_lines):
            break
        name, file = os.path.basename(relative), os.path.join(root, relative) if relative else root
        if relative and globs and not any(fnmatch.fnmatchcase(name, each) for each in globs):
            continue
        if wants_names and relative and name_pattern.search(relative if regex or "/" in query else name):
            named.append({"path": shown(folder, file), "line": None, "text": name})
        matches = _matches(_text_of(file), pattern, regex) if wants_lines else iter(())
        for count, (number, line) in enumerate(islice(matches, most + 1)):
            row = {"path": shown(folder, file), "line": number, "text": line}
            (lines if count < share else more).append((order, number, row))
        del more[most + 1 :]
        if not enough and len(named) + len(lines) + len(more) > most:
            enough, until = True, min(until, time.monotonic() + SPREAD_TIMEOUT)
    if late and not named and not lines:
        raise OSError(f"Found nothing within {TIMEOUT:.0f} seconds. Not all files were searched: {NARROWER}.")
    lines += more
    rows = named[: max(1, most // 2, most - len(lines))]
    chosen = sorted(lines[: most - len(rows)], key=lambda each: each[:2])
    what = "lines" if len(lines) > len(chosen) else "names"
    rows += [row for _, _, row in chosen]
    if enough:
        rows[-1]["cut"] = f"More {what} match than are shown: {NARROWER}."
    elif late:
        rows[-1]["cut"] = f"The search was stopped after {TIMEOUT:.0f} seconds: {NARROWER}."
    return rows


def _text_of(path: str) -> str:
    """Return a file's text in its own encoding; empty if it is too large, cannot be read or is not text."""
    with suppress(OSError, ValueError):
        if os.path.isfile(path) and os.path.getsize(path) <= MAX_FILE_BYTES:  # reading a pipe would wait
            with open(path, "rb") as file:
                return decoded(file.read(), path)[0]
    return ""


def _matches(text: str, pattern: Pattern[str], is_regex: bool) -> Iterator[Tuple[int, str]]:
    """Yield the numbers and the texts of the lines that match."""
    if not text:
        return
    if is_regex:  # it must not match beyond the end of its line
        for number, line in enumerate((text[:-1] if text.endswith("\n") else text).split("\n"), 1):
            line = line.rstrip("\r")
            match = pattern.search(line)
            if match:
                yield number, _excerpt(line, match.start())
        return
    begin, number = 0, 1
    while True:
        match = pattern.search(text, begin)
        if match is None:
            return
        number += text.count("\n", begin, match.start())
        begin = max(begin, text.rfind("\n", begin, match.start()) + 1)
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        yield number, _excerpt(text[begin:end].rstrip("\r"), match.start() - begin)
        begin, number = end + 1, number + 1


def _excerpt(line: str, match: int) -> str:
    """Return a line, or the part of a long one around the match."""
    begin = max(0, min(match - BEFORE, len(line) - MAX_LINE_LENGTH))
    end = begin + MAX_LINE_LENGTH
    return ("..." if begin else "") + line[begin:end] + ("..." if end < len(line) else "")


def _expand_braces(glob: str) -> List[str]:
    """Expand `*.{py,js}` to `*.py` and `*.js`."""
    if "/" in glob:
        raise ValueError(f"The glob {glob!r} only matches file names. Use `path` for the folder.")
    begin, opened, rest = glob.partition("{")
    inner, closed, end = rest.partition("}")
    if not opened or not closed:
        return [glob]
    return [each for part in inner.split(",") for each in _expand_braces(begin + part + end)]


# -- files that are not ignored, in the order of their names -------------------------------------------------------


class IgnoreRule(NamedTuple):
    """One line of a `.gitignore`; it applies below the folder of that file."""

    folder: str
    pattern: Pattern[str]
    ignores: bool
    only_folders: bool


def _walk(root: str, folder: str, rules: List[IgnoreRule], hidden: bool) -> Iterator[str]:
    """Yield the paths of the files below a folder, without links."""
    full_folder = os.path.join(root, folder)
    rules = rules + rules_in(full_folder, folder)
    try:
        with os.scandir(full_folder) as scanned:
            entries = sorted(scanned, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return
    for entry in entries:
        relative, is_folder = os.path.join(folder, entry.name), entry.is_dir(follow_symlinks=False)
        is_hidden = entry.name == ".git" or (entry.name.startswith(".") and not hidden)
        if entry.is_symlink() or is_hidden or is_ignored(rules, relative, is_folder):
            continue
        if is_folder:
            yield from _walk(root, relative, rules, hidden)
        elif entry.is_file(follow_symlinks=False):
            yield relative


def is_ignored(rules: List[IgnoreRule], relative: str, is_folder: bool) -> bool:
    """Return whether the last rule that matches the path ignores it."""
    for rule in reversed(rules):
        below = os.path.relpath(relative, rule.folder) if rule.folder else relative
        if (is_folder or not rule.only_folders) and rule.pattern.match(below):
            return rule.ignores
    return False


def rules_in(folder: str, relative: str) -> List[IgnoreRule]:
    """Read the rules in a folder's `.gitignore`; `relative` is that folder from where the search began."""
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
            rules.append(IgnoreRule(relative, compiled, ignores, line.endswith("/")))
    return rules


def translated(pattern: str) -> str:
    """Translate a pattern with `*`, `?`, `[...]` and `**` to a regular expression."""
    expression = ""
    for token in _TOKEN.finditer(pattern):
        if token["set"]:
            expression += f"[{token['not'] and '^'}{token['set']}]".replace("\\", "\\\\")
        else:
            expression += _SPECIAL.get(str(token.lastgroup)) or re.escape(token["plain"])
    return expression
