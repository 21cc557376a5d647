"""Replaces text in a file: everywhere it is found, or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from typing import Any, Dict, Tuple

from .closest import get_close_matches_in_text
from .texts import Text, content_of, full

NOT_FOUND = "Original text not found."


def edit(folder: str, path: str, original_text: str, replacement_text: str) -> Dict[str, Any]:
    """How many places were changed; ValueError with what is close if there are none."""
    if not original_text:
        raise ValueError("The original text is empty: name the text that is to be replaced.")
    text = Text(content_of(folder, path), path)
    original, replacement = _with_line_ends(text.content, original_text, replacement_text)
    count = text.content.count(original)
    if count == 0:
        raise ValueError(_advice(path, original_text, text.content))
    changed = text.content.replace(original, replacement)
    if changed != text.content:
        _write(full(folder, path), text.encoded(changed, path), path)
    return {"path": path, "replaced": count}


def _with_line_ends(content: str, original: str, replacement: str) -> Tuple[str, str]:
    """Both texts with the line ends that the file has."""
    if "\r\n" not in content or "\r\n" in original:
        return original, replacement
    if "\n" in original and original in content:
        return original, replacement  # a file that has both
    if "\n" not in original and content.count("\r\n") < content.count("\n"):
        return original, replacement
    return original.replace("\n", "\r\n"), replacement.replace("\r\n", "\n").replace("\n", "\r\n")


def _advice(path: str, original: str, content: str) -> str:
    close = get_close_matches_in_text(original, content)
    if close:
        return f"{NOT_FOUND} Did you mean one of these? {', '.join(close)}"
    return f"{NOT_FOUND} Nothing in {path} is like it. Look first: computer.files.read({path!r})"


def _write(path: str, data: bytes, name: str) -> None:
    """The file is the old one or the new one, never a part; a link stays a link."""
    place = os.path.realpath(path)
    try:
        before = os.stat(place)
        if not os.access(place, os.W_OK):
            raise PermissionError(13, "it is write-protected here")
        if before.st_nlink > 1:
            with open(place, "r+b") as file:  # its other names are to see the change
                file.write(data)
                file.truncate()
            return
        _replace(place, data, before)
    except OSError as error:
        raise PermissionError(f"{name} cannot be changed: {error.strerror}. It is as it was.") from None


def _replace(place: str, data: bytes, before: os.stat_result) -> None:
    descriptor, passing = tempfile.mkstemp(prefix=".edit-", dir=os.path.dirname(place))
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(place, passing)
        now = os.stat(passing)
        if hasattr(os, "chown") and (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
            os.chown(passing, before.st_uid, before.st_gid)
            os.chmod(passing, stat.S_IMODE(before.st_mode))  # giving a file away takes bits from its mode
        os.replace(passing, place)
    except BaseException:
        os.unlink(passing)
        raise
