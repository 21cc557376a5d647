"""A file while it is not whole: on a disk that may be full, and with nobody else who writes it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from interpreter.errors import DownloadError
from interpreter.llm.local.weights import Weights

try:
    import fcntl
except ImportError:  # Windows, untested: two downloads at once are then not kept apart
    fcntl = None  # type: ignore[assignment]

_PIECE = 1024 * 1024
_SPARE = 64 * _PIECE  # what is left free on the disk
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


class Unfinished:
    """The file while it is not whole, and the sum of what it holds."""

    def __init__(self, target: Path, weights: Weights) -> None:
        self.target, self.weights = target, weights
        self.path = target.with_name(target.name + ".part")

    def __enter__(self) -> Unfinished:
        with disk_errors(self.path.parent, self.weights.size):
            # Unbuffered: closing would try again to write what the disk did not take, and fail again.
            self._file = open(self.path, "ab+", buffering=0)
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._file.close()
                raise DownloadError(f"{self.target.name} is being downloaded by another program.") from error
        try:
            self._check_room()
        except BaseException:
            self._file.close()
            raise
        self._sum: hashlib._Hash | None = None
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()
        with contextlib.suppress(OSError):
            if self.path.stat().st_size == 0:
                self.path.unlink()

    @property
    def size(self) -> int:
        return self._file.seek(0, os.SEEK_END)

    def write(self, data: bytes) -> None:
        self._digest().update(data)
        with disk_errors(self.path.parent, self.weights.size - self.size):
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]

    def clear(self) -> None:
        self._file.truncate(0)
        self._sum = None

    def is_right(self) -> bool:
        return self.size == self.weights.size and self._digest().hexdigest() == self.weights.sha256

    def finish(self) -> None:
        with disk_errors(self.path.parent, 0):
            os.fsync(self._file.fileno())
            os.replace(self.path, self.target)

    def _digest(self) -> hashlib._Hash:
        """The sum so far; of what an earlier download left, it is taken once."""
        if self._sum is None:
            self._sum = hashlib.sha256()
            self._file.seek(0)
            while piece := self._file.read(_PIECE):
                self._sum.update(piece)
        return self._sum

    def _check_room(self) -> None:
        free = shutil.disk_usage(self.path.parent).free
        missing = self.weights.size - self.size
        if missing + _SPARE > free:
            raise _no_room(self.path.parent, missing + _SPARE, free)


@contextlib.contextmanager
def disk_errors(folder: Path, missing: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise _no_room(folder, missing, shutil.disk_usage(folder).free) from error
        raise DownloadError(f"{folder} cannot be written: {error.strerror}.") from error


def _no_room(folder: Path, missing: int, free: int) -> DownloadError:
    error = DownloadError(
        f"There is not enough room in {folder}: {missing / 1e6:,.0f} MB are needed and {free / 1e6:,.0f} MB "
        "are free. Make room and try again; what has come is kept."
    )
    error.can_resume = True
    return error
