"""Helps small models: recognises what a request asks for, and reports changes of files, which they don't check."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from interpreter.agent.grounding import FILE_NAME
from interpreter.host.files import read_bytes
from interpreter.llm.file_preview import beginning

NOTHING_CHANGED = (
    "No file was changed: the code printed the result and did not save it. Add the lines that save it to the file."
)
_COLUMNS = re.compile(r"\b(?:with|and) (?:\w+ )?columns[,:]? (\w+(?:, \w+)*,? and \w+|\w+(?:, \w+)+)", re.I)
# A request for a change of files: a verb that begins a clause, and what behind it says that it is about files.
_FILE, _TABLE = r"[\w*~/-]*\.[a-z]\w{0,4}\b", r"\.(csv|tsv|xlsx?|parquet|json|jsonl|db)\b"
_FOLDER = r"(folders?|director(y|ies)|archive|zip)\b"
_FORMAT = r"(a |an )?(new )?(csv|tsv|json|excel|xlsx|parquet|html|pdf|png|markdown|yaml|text|utf-?8|zip)\b"
_NEW = r".*\b(a|an|the|new|empty|\d+) (\w+ ){0,3}(file|script)s?\b"
_NO_VARIABLE = r"(?!.*\bvariable)"
_CHANGES_ASKED = (
    (r"save|export", _NO_VARIABLE),
    (r"write|store|output|dump|put|print", rf"{_NO_VARIABLE}.*\b(to|into|in|as)\b.*({_FILE}|\bfiles?\b|{_FORMAT})"),
    (r"write", rf"{_NEW}|.*\b{_FILE}"),
    (r"create|make|generate|produce|build|draw|plot|touch", rf"(?!.*\blist of)(.*\b{_FOLDER}|{_NEW}| (the )?{_FILE})"),
    (
        r"create|make|generate|produce|build|draw|plot|give me|i(?: need|'d like| want| would like)",
        rf".*\b(called|named|as|to|into) {_FILE}",
    ),
    (r"zip|unzip|compress|pack|unpack|archive", ""),
    (r"rename|move|copy|duplicate|delete", rf".*(\bfiles?\b|{_FILE}|{_FOLDER}|\b(them|those)\b)"),
    (r"convert|translate|turn", rf".*\b(to|into|as) ({_FORMAT}|{_FILE})"),
    (r"add|append|insert", rf"(?! up\b).*\b(to|into|in|at)\b.*({_FILE}|\bfile\b)"),
    (r"remove|change|replace|update|fix|set|edit|modify|sort|split|merge|combine", rf".*({_FILE}|\bfiles?\b)"),
)
_BEGINS = r"(?:^|[,:;]\s+|\b(?:and|then|please|also|you|(?<!how )to|just)\s+)"
_ASKS = [re.compile(rf"{_BEGINS}(?:{verbs})\b(?: it| them)?(?:{rest})", re.I) for verbs, rest in _CHANGES_ASKED]
_ANSWER = re.compile(
    r"\b(what|how (many|much)|which|print|show|tell|report|count|compute|calculate|find|answer)\b", re.I
)
_CHART = re.compile(
    r"^(?!.*\b(?:ascii|text|mermaid)\b)(?:(?:.*(?:[.,;!]|\bthen|\band|\byou|\bplease))?\s*(?:plot|visuali[sz]e)\b"
    r"|.*\b(?:draw|plot|show|make|create|generate|produce|give|add|display|need|want)\b[^.?!]*"
    r"\b(?:chart|plot|graph|histogram|heat ?map|diagram|pie)\b(?!\.\w))",
    re.IGNORECASE | re.DOTALL,
)
_COPIES = re.compile(r"\b(cop(y|ies)|duplicates?|back ?up|merge|append)\b", re.IGNORECASE)
_MAX_COMPARED_BYTES = 1_000_000
_SHOWN = 3
_NAMED = 10
_VERBS = {"created": "Created", "changed": "Changed", "deleted": "Deleted", "renamed": "Renamed", "mode": "Changed"}


def file_change_note(changes: Sequence[Mapping[str, Any]], folder: str) -> str:
    """Return the files that a block changed, with the beginning of the first ones; empty if it changed none."""
    listed = _listed(changes)
    lines = []
    for number, change in enumerate(listed[:_NAMED]):
        name = str(change["path"])
        done = f"{_VERBS[change['what']]} {change.get('from') or name}"
        path = Path(folder, name)
        if change["what"] == "renamed":
            lines.append(f"{done} to {name}.")
        elif number >= _SHOWN or change["what"] in ("deleted", "mode") or not path.is_file():
            lines.append(f"{done}.")
        else:
            lines.append(f"{done}. {beginning(name, path)}".rstrip())
    if len(listed) > _NAMED:
        lines.append(f"And {len(listed) - _NAMED} more.")
    return "\n".join(lines)


def missing_content(request: str, changes: Sequence[Mapping[str, Any]], folder: str) -> str:
    """Say what a new table lacks: columns that the request lists, or any difference from a file it names."""
    found = _COLUMNS.search(request)
    asked = re.split(r",? and |, ", found[1]) if found else []
    for change in _listed(changes):
        path = change["path"]
        if not (path.lower().endswith((".csv", ".tsv")) and path in request):
            continue
        header = re.findall(r"\w+", beginning("", Path(folder, path)).partition("\n")[2].partition("\n")[0])
        missing = [name for name in asked if name.lower() not in map(str.lower, header)]
        if 0 < len(missing) < len(asked):  # if all are missing, the request may mean other things
            return f"{path} has no column {' and no column '.join(missing)}."
        if missing and any(map(str.isdigit, header)):
            return f"The first line of {path} has to name the columns: {', '.join(asked)}."
        lines = [] if _COPIES.search(request) else _lines(folder, path)
        for name in FILE_NAME.findall(request):
            if lines and name != path and _lines(folder, name) == lines:
                return f"{path} is the same as {name}: the code changed nothing in it."
    return ""


def _lines(folder: str, name: str) -> list[bytes]:
    """Return the lines of a file; none if it is too large to compare, or not there."""
    data = b""
    with suppress(OSError):
        data = read_bytes(Path(folder, name), _MAX_COMPARED_BYTES + 1)
    return data.splitlines() if len(data) <= _MAX_COMPARED_BYTES else []


# What stands before the name of a file that is to be changed, and of one that is to be made.
_WRITES = r"\b(?:save|write|export|store|output|dump|put|append|add|insert|convert|turn|rename|copy"
_CHANGED_FILE = re.compile(rf"{_WRITES})\b.* (?:as|to|into) (?:the |file )*$", re.IGNORECASE)
_NEW_FILE = re.compile(
    rf"{_WRITES}|create|make|generate|produce|build|draw|plot|zip|merge|combine|split)\b"
    r".* (?:as|to|into|in|called|named) (?:an? |the |new |file )*$"
    r"|[, ]as (?:an? |the |new |file )*$"
    r"|\b(?:write|create|make|generate|produce|build|touch|save)(?:(?! of| from| in| with) \w+){0,4} $",
    re.IGNORECASE,
)


def requested_files(request: str, folder: str) -> dict[str, tuple[int, int] | None]:
    """Return the files that a request wants written, each with its present state; None if it doesn't exist yet."""
    stamps = {}
    for found in FILE_NAME.finditer(request) if asks_for_change(request) else ():
        stamp, before = stamp_of(found[0], folder), re.split(r"[.!?]\s", request[: found.start()])[-1]
        if (_CHANGED_FILE if stamp else _NEW_FILE).search(before.rstrip("\"'`")):
            stamps[found[0]] = stamp
    return stamps


def stamp_of(name: str, folder: str) -> tuple[int, int] | None:
    """Return a file's modification time and size; None if there is no such file."""
    try:
        status = Path(folder, name).expanduser().stat()
    except (OSError, ValueError, RuntimeError):
        return None
    return status.st_mtime_ns, status.st_size


def asks_for_chart(request: str) -> bool:
    return bool(_CHART.search(request))


def asks_for_answer(request: str) -> bool:
    return bool(_ANSWER.search(request) or "?" in request) and not asks_for_change(request)


def asks_for_change(request: str) -> bool:
    """Check whether a request clearly asks to write, change or delete files; a question does not."""
    for sentence in re.split(r"(?<=[.!?])\s+|\n", request):
        is_question = sentence.rstrip().endswith("?") and not re.match(
            r"\s*(can|could|would|will) you\b", sentence, re.I
        )
        words = re.sub(r"^\s*in (\S+), (.*?)[.!]?\s*$", r"\2 in \1", sentence, flags=re.I)
        found = [] if is_question else [number for number, asks in enumerate(_ASKS) if asks.search(words.strip())]
        # "Remove the duplicates in a.csv and print the mean": the table stays as it is, the answer counts.
        computes = re.search(_TABLE, sentence, re.I) and _ANSWER.search(request)
        if any(number < len(_ASKS) - 1 or not computes for number in found):
            return True
    return False


# What llama.cpp and llamafile write where they were started: the block did not.
_OF_SERVERS = frozenset({"llama.log", "llama-server.log", "llamafile.log", "main.log"})


def _listed(changes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in changes if each["what"] in _VERBS and Path(each["path"]).name not in _OF_SERVERS]
