"""Getting a file that is known by its size and its sum, from the first source that gives it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from interpreter.errors import DownloadError
from interpreter.llm.local.pieces import Broken, SourceFailed, pieces_of
from interpreter.llm.local.unfinished import Unfinished, disk_errors
from interpreter.llm.local.weights import Part, Source, Weights

_STEP = 256 * 1024  # from one report to the next
_TRIES = 4  # in a row that brought nothing new
_FIRST_WAIT = 0.5


@dataclass(frozen=True)
class Progress:
    """How far a download is; `source` is who gives the file just now."""

    done: int
    total: int
    source: str
    step: str = "downloading"  # or "checking", or "waiting" before another try


def download(weights: Weights, folder: Path, cancelled: threading.Event | None = None) -> Iterator[Progress]:
    """Put the file into the folder, going on where an earlier download stopped; tells how far it is.

    The file has its name only when it is whole and its sum is right. Leaving the iteration, or `cancelled`,
    stops the download and keeps what has come.
    """
    target = folder / weights.file
    if target.is_file() and target.stat().st_size == weights.size:
        return
    with disk_errors(folder, weights.size):
        folder.mkdir(parents=True, exist_ok=True)
    with Unfinished(target, weights) as partial:
        reasons: list[str] = []
        for source in weights.sources:
            fetch = _Fetch(partial, source, cancelled or threading.Event())
            try:
                yield from fetch.run()
                partial.finish()
                return
            except SourceFailed as reason:
                reasons.append(f"{source.name}: {reason}")
            if fetch.cancelled.is_set():
                return
        error = DownloadError(
            f"{weights.file} could not be downloaded.\n"
            + "\n".join(reasons)
            + "\nCheck the network and try again"
            + ("; it goes on where it stopped." if partial.size else ".")
        )
        error.can_resume = bool(partial.size)
        raise error


class _Fetch:
    """One source's turn."""

    def __init__(self, partial: Unfinished, source: Source, cancelled: threading.Event) -> None:
        self.partial, self.source, self.cancelled = partial, source, cancelled
        self.total = partial.weights.size

    def run(self) -> Iterator[Progress]:
        """Get all that is missing; a wrong sum is tried once more if an old part may be to blame."""
        began_with = self.partial.size
        yield from self._get_all()
        if self.cancelled.is_set():
            raise SourceFailed("cancelled")
        yield self._progress("checking")
        if self.partial.is_right():
            return
        self.partial.clear()
        if not began_with:
            raise SourceFailed("the file is not the right one (its SHA-256 is another)")
        yield from self.run()

    def _get_all(self) -> Iterator[Progress]:
        tries, wait = 0, _FIRST_WAIT
        yield self._progress()
        while self.partial.size < self.total and not self.cancelled.is_set():
            before = self.partial.size
            try:
                yield from self._get(*self._next_part())
                continue
            except Broken as reason:
                tries = tries + 1 if self.partial.size == before else 0
                wait = wait * 2 if tries else _FIRST_WAIT
                if tries >= _TRIES:
                    raise SourceFailed(str(reason)) from reason
            yield self._progress("waiting")
            self.cancelled.wait(wait)

    def _next_part(self) -> tuple[Part, int]:
        """The part that the next missing byte is in, and its place there."""
        offset = self.partial.size
        for part in self.source.parts:
            if offset < part.size:
                return part, offset
            offset -= part.size
        raise SourceFailed("it has only a part of the file")

    def _get(self, part: Part, offset: int) -> Iterator[Progress]:
        with contextlib.closing(pieces_of(part, offset, self.partial.path.parent)) as pieces:
            told = self.partial.size
            for piece in pieces:
                self.partial.write(piece)
                if self.partial.size - told >= _STEP or self.cancelled.is_set():
                    told = self.partial.size
                    yield self._progress()
                if self.cancelled.is_set():
                    return

    def _progress(self, step: str = "downloading") -> Progress:
        return Progress(self.partial.size, self.total, self.source.name, step)
