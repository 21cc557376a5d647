"""The browser's own profile: cookies and logins that stay, away from the user's, and one browser at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from interpreter.computer_api.browser.errors import BrowserError

MOST = 16


def folder() -> Path:
    """Where our browsers keep their profiles."""
    from platformdirs import user_data_dir

    return Path(user_data_dir("open-interpreter")) / "browser"


class Profile:
    """A profile that no other browser of ours has as long as we have it."""

    def __init__(self, root: Path | None = None) -> None:
        root = root or folder()
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            root.chmod(0o700)
            self.path, self._lock = next(free(root))
        except StopIteration:
            raise BrowserError(
                f"There are {MOST} browsers open already: close one with computer.browser.quit()."
            ) from None
        except OSError as error:
            raise BrowserError(f"The browser's profile in {root} cannot be made: {error.strerror}.") from error

    @property
    def is_usual(self) -> bool:
        """Whether this is the one with the logins; others are for further browsers at the same time."""
        return self.path.name == "profile"

    def release(self) -> None:
        lock, self._lock = self._lock, -1  # closed twice, it might be somebody else's by then
        if lock != -1:
            os.close(lock)


def free(root: Path) -> Iterator[tuple[Path, int]]:
    """Profiles that nobody uses, each with the lock that we then hold."""
    for number in range(1, MOST + 1):
        path = root / ("profile" if number == 1 else f"profile-{number}")
        path.mkdir(exist_ok=True, mode=0o700)
        lock = os.open(root / f"{path.name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        if locked(lock):
            yield path, lock
        else:
            os.close(lock)


def locked(descriptor: int) -> bool:
    """Whether we have the lock now; the system takes it back when the process ends, however it ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
