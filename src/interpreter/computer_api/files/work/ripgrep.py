"""Asks ripgrep, so that it looks at the same files as we would ourselves."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Dict, Iterator, List, Tuple

if TYPE_CHECKING:
    from .searching import Wanted

# What git is told to ignore counts below the folder that is searched, whether or not it is a repository.
SAME = (
    *("--no-config", "--no-messages", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"),
    *("--no-ignore-parent", "--no-require-git", "--sort", "path", "--glob", "!.git"),
)


def understands(program: str, wanted: Wanted) -> bool:
    """Whether the regular expression is one for ripgrep too."""
    if not wanted.regex:
        return True
    asked = [program, "--no-config", "--quiet", "-e", wanted.query, "--", os.devnull]
    return subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True).returncode != 2


def files(program: str, root: str, hidden: bool, until: float) -> Iterator[str]:
    """The files below the root, from there."""
    options = [*SAME, "--files", "--null", *(["--hidden"] if hidden else [])]
    with _running([program, *options, "--", root], until) as output:
        rest = b""
        for piece in iter(lambda: output.read1(65536), b""):  # type: ignore[attr-defined]
            *names, rest = (rest + piece).split(b"\0")
            for name in names:
                yield os.path.relpath(os.fsdecode(name), root)


def lines(program: str, root: str, wanted: Wanted, largest: int, until: float) -> Iterator[Tuple[str, int, str, int]]:
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
