"""Read and edit text files, in the encoding and with the line ends that they have."""

from __future__ import annotations

import base64
import codecs
import difflib
import os
import re
import stat
import tempfile
from contextlib import suppress
from heapq import nlargest
from itertools import accumulate
from typing import Any, Dict, List, Optional, Set, Tuple

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_LENGTH = 100_000  # characters
NAMES = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}
KINDS = (  # by how they begin
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x7fELF", "a program"),
)
CUTOFF = 0.6  # as in difflib
MAX_CANDIDATES = 60  # phrases that are compared letter by letter
MAX_COMPARED_LENGTH = 2_000  # characters of them that are compared
SHOWN_LENGTH = 400
NOT_FOUND = "Original text not found."


# -- reading ---------------------------------------------------------------------------------------------------------


def read(folder: str, path: str, start: Optional[int], end: Optional[int], numbers: bool) -> str:
    """Return lines `start` to `end`, 1-based and inclusive. If some are left out, the last line says which."""
    content = whole(folder, path).replace("\r\n", "\n")
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    count = len(lines)
    first = 1 if start is None else start if start > 0 else max(1, count + 1 + start)
    last = count if end is None else min(end if end >= 0 else count + 1 + end, count)
    if start == 0 or first > max(count, 1) or last < first - 1:
        raise ValueError(f"{path} has lines 1 to {count}, so start={start}, end={end} is out of range.")
    width = len(str(last))
    text = ""
    for number, line in enumerate(lines[first - 1 : last], first):
        if text and len(text) + len(line) + 1 > MAX_LENGTH:
            left_out = f"Lines {number} to {last} of {count} are left out"
            return f"{text}[{left_out}. Continue with read({path!r}, start={number}).]\n"
        text += f"{number:>{width}}  {line}\n" if numbers else f"{line}\n"
    is_whole = start is None and end is None and not numbers
    return content if is_whole else text  # the whole also without an end of line at its end


def content(folder: str, path: str) -> str:
    """Return all bytes of a file, as base64."""
    return base64.b64encode(content_of(folder, path)).decode("ascii")


def whole(folder: str, path: str) -> str:
    return decoded(content_of(folder, path), path)[0]


# -- editing ---------------------------------------------------------------------------------------------------------


def edit(folder: str, path: str, original_text: str, replacement_text: str) -> Dict[str, Any]:
    """Replace a text everywhere and count the places; the ValueError for a missing text lists close matches."""
    if not original_text:
        raise ValueError("The original text is empty. Give the text to replace.")
    text, mark, encoding = decoded(content_of(folder, path), path)
    original, replacement = original_text, replacement_text
    has_both = original in text if "\n" in original else text.count("\r\n") < text.count("\n")
    if "\r\n" in text and "\r\n" not in original and not has_both:  # the line ends that the file has
        original, replacement = (each.replace("\r\n", "\n").replace("\n", "\r\n") for each in (original, replacement))
    count = text.count(original)
    if count == 0:
        close = get_close_matches_in_text(original_text, text)
        advice = f"Nothing in {path} is similar. Read it first: computer.files.read({path!r})"
        raise ValueError(f"{NOT_FOUND} " + (f"Did you mean one of these? {', '.join(close)}" if close else advice))
    changed = text.replace(original, replacement)
    data = encoded(changed, mark, encoding, path)
    if changed != text:
        write(full(folder, path), data, path)
    return {"path": path, "replaced": count}


def encoded(text: str, mark: bytes, encoding: str, name: str) -> bytes:
    """Return what `decoded` came from; ValueError if the encoding lacks a character."""
    try:
        return mark + text.encode(encoding, "surrogatepass")
    except UnicodeEncodeError as error:
        odd, kind = text[error.start], NAMES.get(encoding, encoding)
        raise ValueError(f"{name} is encoded in {kind}, which has no {odd!r}. Convert the file first.") from None


def write(path: str, data: bytes, name: str) -> None:
    """Write a file so that it is the old one or the new one, never a part; a link stays a link."""
    target = os.path.realpath(path)
    try:
        before = os.stat(target)
        if not os.access(target, os.W_OK):
            raise PermissionError(13, "it is write-protected here")
        if before.st_nlink > 1:
            with open(target, "r+b") as file:  # hard links keep sharing the content
                file.write(data)
                file.truncate()
            return
        descriptor, passing = tempfile.mkstemp(prefix=".edit-", dir=os.path.dirname(target))
        try:
            with open(descriptor, "wb") as made:
                made.write(data)
                made.flush()
                os.fsync(made.fileno())
            now = os.stat(passing)
            if hasattr(os, "chown") and (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
                os.chown(passing, before.st_uid, before.st_gid)
            os.chmod(passing, stat.S_IMODE(before.st_mode))  # after giving it away, which takes bits from its mode
            os.replace(passing, target)
        except BaseException:
            os.unlink(passing)
            raise
    except OSError as error:
        raise PermissionError(f"Can't change {name}: {error.strerror}.") from None


def save(folder: str, path: str, files: List[Tuple[str, str]]) -> List[Dict[str, Any]]:
    """Write new files, given as (name, base64 content), into a directory. If a name is taken, add a number to it."""
    target_folder = full(folder, path)
    os.makedirs(target_folder, exist_ok=True)
    rows = []
    for name, content in files:
        stem, ending = os.path.splitext(name)
        for count in range(10_000):
            target = os.path.join(target_folder, f"{stem} ({count}){ending}" if count else name)
            with suppress(FileExistsError), open(target, "xb") as file:  # follows no link
                file.write(base64.b64decode(content))
                rows.append({"path": shown(folder, target), "size": file.tell()})
                break
    return rows


# -- what is most like a text that was not found ---------------------------------------------------------------------


def get_close_matches_in_text(original_text: str, filedata: str, n: int = 3) -> List[str]:
    """Return the `n` phrases in a text that are most similar to another one, best first, as written."""
    wanted = _pairs(original_text)
    word_matches = list(re.finditer(r"\S+", filedata))
    size = min(len(original_text.split()), len(word_matches))
    if not size:
        return []
    # Only phrases that share the most pairs of letters with the sought text are compared letter by letter.
    worth = {
        word: len(word) * len(_pairs(word) & wanted) / len(_pairs(word)) for word in {w.group() for w in word_matches}
    }
    sums = [0.0, *accumulate(worth[word.group()] for word in word_matches)]
    scores = ((sums[at + size] - sums[at], -at) for at in range(len(word_matches) - size + 1))
    phrases: Dict[str, int] = {}  # the same phrase again and again is one, so more are taken than are compared
    for score, at in nlargest(MAX_CANDIDATES * 4, scores):
        if score > 0:
            phrases.setdefault(filedata[word_matches[-at].start() : word_matches[size - at - 1].end()], -at)
    sought = original_text.strip()[:MAX_COMPARED_LENGTH]
    scored = []
    for phrase, at in list(phrases.items())[:MAX_CANDIDATES]:
        matcher = difflib.SequenceMatcher(None, phrase[:MAX_COMPARED_LENGTH], sought, autojunk=False)
        if matcher.quick_ratio() >= CUTOFF and matcher.ratio() >= CUTOFF:
            scored.append((-matcher.ratio(), at, phrase))
    chosen: Dict[int, str] = {}
    for _, at, phrase in sorted(scored):
        if len(chosen) < n and all(abs(at - other) >= size for other in chosen):
            chosen[at] = phrase if len(phrase) <= SHOWN_LENGTH else phrase[:SHOWN_LENGTH] + "..."
    return list(chosen.values())


def _pairs(text: str) -> Set[str]:
    """Return the pairs of letters in its words, the ends of each word included."""
    padded = f" {' '.join(text.lower().split())} "
    return {padded[at : at + 2] for at in range(len(padded) - 1)}


# -- files as text ---------------------------------------------------------------------------------------------------


def full(folder: str, path: str) -> str:
    """Return the absolute path; a relative one starts in the session's folder."""
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path)))


def shown(folder: str, path: str) -> str:
    """Return a path as the session would write it."""
    below = os.path.relpath(path, folder)
    return path if below.startswith("..") else below


def content_of(folder: str, path: str) -> bytes:
    """Return the content of a file; the errors suggest similar names."""
    full_path = full(folder, path)
    if os.path.isdir(full_path):
        raise IsADirectoryError(f"{path} is a folder. To list it: computer.files.search('*', {path!r})")
    if not os.path.exists(full_path):
        try:
            close = difflib.get_close_matches(os.path.basename(full_path), os.listdir(os.path.dirname(full_path)), 3)
        except OSError:
            close = []
        meant = f" Did you mean one of these? {', '.join(close)}" if close else ""
        raise FileNotFoundError(f"There is no file {path!r} in {folder}.{meant}")
    if not os.path.isfile(full_path):
        raise ValueError(f"{path} is not a regular file.")
    if os.path.getsize(full_path) > MAX_FILE_BYTES:
        size = os.path.getsize(full_path)
        raise ValueError(f"{path} has {size:,} bytes; the limit is {MAX_FILE_BYTES:,}. Read it in parts with code.")
    try:
        with open(full_path, "rb") as file:
            return file.read()
    except OSError as error:
        raise PermissionError(f"{path} cannot be read: {error.strerror}.") from None


def decoded(data: bytes, name: str) -> Tuple[str, bytes, str]:
    """Return the text, its byte order mark and its encoding; ValueError if it is not text."""
    # The longer marks first: UTF-32's begins like UTF-16's.
    for mark, encoding in (
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "surrogatepass"), mark, encoding
    if b"\0" in data:
        kind = next((kind for begin, kind in KINDS if data.startswith(begin)), "binary data")
        raise ValueError(f"{name} is not text ({kind}, {len(data):,} bytes). Open it with a suitable library.")
    for encoding in ("utf-8", "cp1252"):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding), b"", encoding
    return data.decode("latin-1"), b"", "latin-1"  # has a character for every byte
