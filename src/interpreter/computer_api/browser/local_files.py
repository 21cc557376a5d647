"""The files that go up and come down, and whether a sandbox lets the code have them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.computer_api.browser.errors import NotReachableError

if TYPE_CHECKING:
    from interpreter.runtimes.containment import Containment


MOST_BYTES = 50_000_000  # of a file that is read ahead


@dataclass(frozen=True)
class LocalFiles:
    """Files as the code sees them: relative to its directory, and no more than a sandbox shows it."""

    workspace: str
    cwd: str
    containment: Containment | None = None

    def to_upload(self, paths: list[str]) -> list[Upload]:
        """The files behind these paths; FileNotFoundError, or NotReachableError."""
        return [self._readable(path) for path in paths]

    def for_downloads(self) -> Path:
        """The folder that downloads are saved in."""
        folder = Path(self.workspace)
        if self.containment is not None and not self.containment.may_write(folder):
            raise NotReachableError("Downloads are saved in the workspace, and the sandbox is read-only.")
        return folder

    def _readable(self, path: str) -> Upload:
        full = Path(os.path.realpath(os.path.join(self.cwd, os.path.expanduser(path))))
        if self.containment is None:
            if not full.is_file():
                raise FileNotFoundError(f"There is no file {full} to upload.")
            return Upload(full.name, path=full)
        if not self.containment.may_read(full):
            raise NotReachableError(
                f"{full} cannot be uploaded: the code is in a sandbox, which shows it the workspace and sandbox_paths."
            )
        return Upload(full.name, content=content_of(full))


@dataclass(frozen=True)
class Upload:
    """A file that goes up: by its path, or as it was when it was judged."""

    name: str
    path: Path | None = None
    content: bytes = b""


def content_of(path: Path) -> bytes:
    """The file at a path that has no links in it; one that somebody puts there meanwhile is not followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise FileNotFoundError(f"{path} cannot be read: {error.strerror}.") from error
    with open(descriptor, "rb") as file:
        opened = f"/proc/self/fd/{descriptor}"
        if os.path.exists(opened) and os.path.realpath(opened) != str(path):
            raise NotReachableError(f"{path} has changed its place meanwhile.")
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or os.fstat(descriptor).st_size > MOST_BYTES:
            raise NotReachableError(f"{path} is no file, or is larger than {MOST_BYTES // 1_000_000} MB.")
        return file.read()
