"""Files below a folder that code can write to: nothing done here leaves that folder, even if code swaps files.

A path is checked and used in two steps, and between them code can replace a folder by a link to another place. A
`Folder` therefore holds the folder open and resolves each name from there, without following any link.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from interpreter.host.exposure import exposed_folder

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

# Whether this system can confine file work to a folder. On Windows it cannot: there, links are checked just before.
CONFINED = os.open in os.supports_dir_fd
BINARY = getattr(os, "O_BINARY", 0)  # without it, `os.open` on Windows changes line endings
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW
_ITSELF = getattr(os, "O_PATH", 0) | _NO_FOLLOW
_PLACE = getattr(os, "O_PATH", 0) | _FOLDER  # a folder that names are resolved in; it needs no read permission
_FILE = getattr(os, "O_NONBLOCK", 0) | BINARY | _NO_FOLLOW  # a pipe must not block us
Result = TypeVar("Result")
_MODES = {
    "rb": os.O_RDONLY,
    "r+b": os.O_RDWR,
    "wb": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "ab": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "xb": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "x+b": os.O_RDWR | os.O_CREAT | os.O_EXCL,
}


class Folder(AbstractContextManager["Folder"]):
    """An open folder. Every name is relative to it, with `/` between its parts; the empty name is the folder itself.

    The path that the folder is opened by is trusted, and links in it are followed. Below it, no link is followed: a
    name that has one on the way raises OSError (ELOOP or ENOTDIR), as does one with `..` in it (EXDEV), and a link at
    the end is the link itself, not its target. Only regular files are opened, so a pipe or a device cannot block.

    Each call resolves its name and keeps no descriptor. If code moves a folder out of the tree during a call, that
    call still works in the folder that was in the tree: code can only move it to where it can write itself, so this
    gives it nothing.
    """

    _fd: int | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        if CONFINED:
            self._fd = os.open(self.path, _PLACE & ~getattr(os, "O_NOFOLLOW", 0))

    def fileno(self) -> int:
        if self._fd is None:
            raise OSError(errno.EBADF, "the folder is closed", self.path)
        return self._fd

    def close(self) -> None:
        """Close the folder; calling this twice is harmless."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    # -- contents ------------------------------------------------------------------------------------------------

    def open(self, name: str, mode: str = "rb", permissions: int = 0o666, buffering: int = -1) -> BinaryIO:
        """Open a regular file: `rb`, `r+b`, `wb`, `ab`, `xb` or `x+b`."""
        with self._at(name) as (last, place):
            descriptor = os.open(last, _MODES[mode] | _FILE, permissions, dir_fd=place)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", name)
            return open(descriptor, mode.replace("x+", "w+").replace("x", "w"), buffering)  # type: ignore[return-value]
        except BaseException:
            os.close(descriptor)
            raise

    def read_bytes(self, name: str, limit: int = -1) -> bytes:
        with self.open(name) as file:
            return file.read(limit)

    def write_bytes(self, name: str, data: bytes, permissions: int | None = None) -> None:
        """Create or replace a file atomically.

        An existing file keeps its permissions; a link is replaced, not its target.
        """
        head = name.rpartition("/")[0]
        temporary = f"{head}/.{os.urandom(8).hex()}" if head else f".{os.urandom(8).hex()}"
        try:
            old_mode = self.stat(name).st_mode
            mode = stat.S_IMODE(old_mode) if permissions is None and stat.S_ISREG(old_mode) else permissions
        except FileNotFoundError:
            mode = permissions
        try:
            with self.open(temporary, "xb", permissions or 0o666) as file:
                file.write(data)
            if mode is not None:
                self.chmod(temporary, mode)
            self.replace(temporary, name)
        except BaseException:
            self.unlink(temporary, missing_ok=True)
            raise

    # -- looking -------------------------------------------------------------------------------------------------

    def stat(self, name: str = "") -> os.stat_result:
        """Return the stat result of a name; a link is not followed."""
        if not name and self._fd is not None:
            return os.fstat(self._fd)
        return self._call(os.stat, name, follow_symlinks=False)

    def exists(self, name: str) -> bool:
        """Check whether a name exists and can be reached without following a link."""
        try:
            self.stat(name)
        except OSError:
            return False
        return True

    def is_dir(self, name: str = "") -> bool:
        """Check whether a name is a folder that can be reached without following a link."""
        try:
            return stat.S_ISDIR(self.stat(name).st_mode)
        except OSError:
            return False

    def readlink(self, name: str) -> str:
        return str(self._call(os.readlink, name))

    def listdir(self, name: str = "") -> list[str]:
        with self.opened(name) as place:
            return os.listdir(place)

    @contextmanager
    def opened(self, name: str = "") -> Iterator[Any]:
        """Open a folder below this one for the length of the block.

        Yields a descriptor, or a path on systems without them.
        """
        if not CONFINED:
            yield self._checked(name)
        else:
            here = self.fileno()
            descriptor = _resolve(here, name, _FOLDER) if name else os.open(".", _FOLDER, dir_fd=here)
            try:
                yield descriptor
            finally:
                os.close(descriptor)

    # -- changes -------------------------------------------------------------------------------------------------

    def mkdir(self, name: str, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        try:
            self._call(os.mkdir, name, mode)
        except FileNotFoundError:
            above = name.split("/")[:-1]
            if not parents or not above:
                raise
            for folder in accumulate(above, "{}/{}".format):
                self.mkdir(folder, exist_ok=True)
            self.mkdir(name, mode, exist_ok=exist_ok)
        except FileExistsError:
            if not exist_ok or not self.is_dir(name):
                raise

    def symlink(self, target: str, name: str) -> None:
        with self._at(name) as (last, place):
            os.symlink(target, last, dir_fd=place)

    def mkfifo(self, name: str) -> None:
        self._call(os.mkfifo, name)

    def link(self, source: str, name: str) -> None:
        self._both(os.link, source, name, follow_symlinks=False)

    def replace(self, source: str, name: str) -> None:
        self._both(os.replace, source, name)

    def unlink(self, name: str, missing_ok: bool = False) -> None:
        try:
            self._call(os.unlink, name)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rmdir(self, name: str) -> None:
        self._call(os.rmdir, name)

    def chmod(self, name: str, mode: int) -> None:
        """Set the permissions of a file or a folder; a link raises OSError."""
        with self._at(name) as (last, place):
            if os.chmod in os.supports_follow_symlinks or place is None:
                os.chmod(last, mode, dir_fd=place, follow_symlinks=place is None)
                return
            # Linux has no `chmod` that does not follow links, so the file itself is opened, which needs no permission.
            descriptor = os.open(last, _ITSELF, dir_fd=place) if name else os.dup(place)
        try:
            if stat.S_ISLNK(os.fstat(descriptor).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
            os.chmod(f"/proc/self/fd/{descriptor}", mode)
        finally:
            os.close(descriptor)

    def chown(self, name: str, user: int, group: int) -> None:
        self._call(os.chown, name, user, group, follow_symlinks=False)

    def utime(self, name: str, ns: tuple[int, int]) -> None:
        self._call(os.utime, name, ns=ns, follow_symlinks=False)

    # -- names ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _at(self, name: str) -> Iterator[tuple[str, int | None]]:
        """Split off the last part of a name, and open the folder that it is in."""
        head, _, last = name.rpartition("/")
        if not CONFINED:
            yield os.path.join(self._checked(head), last), None
        elif last in ("..", ".") or name.startswith("/"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
        elif not head:
            yield last or ".", self.fileno()
        else:
            place = _resolve(self.fileno(), head, _PLACE)
            try:
                yield last, place
            finally:
                os.close(place)

    def _call(self, call: Callable[..., Result], name: str, *more: int, **options: Any) -> Result:
        """Make a system call on a name, relative to the open folder that it is in."""
        with self._at(name) as (last, place):
            return call(last, *more, dir_fd=place, **options)

    def _both(self, call: Callable[..., None], source: str, name: str, **more: bool) -> None:
        with self._at(source) as (old, old_place), self._at(name) as (new, new_place):
            call(old, new, src_dir_fd=old_place, dst_dir_fd=new_place, **more)

    def _checked(self, name: str) -> str:
        """Return the full path of a folder, on systems without descriptors.

        Raises OSError if there is a link on the way.
        """
        full = os.path.join(os.path.realpath(self.path), *name.split("/"))
        if os.path.realpath(full) != os.path.normpath(full):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        return full


def beneath(root: str | os.PathLike[str], path: str | os.PathLike[str]) -> tuple[Folder, str]:
    """Open a folder and return it with the name of a path in it, links resolved.

    Raises OSError (EXDEV) if the path leads out of the folder. A link that appears later raises OSError when the name
    is used.
    """
    base, full = os.path.realpath(root), os.path.realpath(os.path.join(root, path))
    name = os.path.relpath(full, base)
    if name == ".." or name.startswith(f"..{os.sep}") or os.path.isabs(name):
        raise OSError(errno.EXDEV, f"it is outside {base}", os.fspath(path))
    return Folder(base), "" if name == "." else name.replace(os.sep, "/")


def confined(path: str | os.PathLike[str]) -> tuple[Folder, str]:
    """Open the folder to resolve a path from, and return it with the path's name in it, which need not exist.

    If sandboxed code can write to a folder on the way, that folder is opened: links before it are the user's own and
    are followed, links below it are not. Elsewhere all links are followed.
    """
    if place := exposed_folder(os.fspath(path)):
        return Folder(place[0]), place[1]
    full = os.path.realpath(path)
    base = os.path.dirname(full)
    while not os.path.isdir(base):
        base = os.path.dirname(base)
    return Folder(base), os.path.relpath(full, base).replace(os.sep, "/")


def read_bytes(path: str | os.PathLike[str], limit: int = -1) -> bytes:
    """Read a regular file without following a link that code could have made."""
    folder, name = confined(path)
    with folder:
        return folder.read_bytes(name, limit)


def write_bytes(path: str | os.PathLike[str], data: bytes, permissions: int | None = None) -> None:
    """Replace a file atomically, without following a link that code could have made."""
    folder, name = confined(path)
    with folder:
        folder.write_bytes(name, data, permissions)


def remove(path: str | os.PathLike[str]) -> None:
    """Delete a folder with everything in it that can be deleted, at any depth and with any permissions."""
    import shutil

    with suppress(OSError, RecursionError):
        shutil.rmtree(path)
        return
    above, name = os.path.split(os.path.abspath(path))
    with suppress(OSError), Folder(above) as folder:
        pending = [name]
        for place in pending:
            with suppress(OSError):
                folder.chmod(place, 0o700)
                for inside in (f"{place}/{each}" for each in folder.listdir(place)):
                    with suppress(OSError):
                        if not folder.is_dir(inside):
                            folder.unlink(inside)
                            continue
                        folder.chmod(inside, 0o700)
                        moved = f"{name}/.{os.urandom(8).hex()}"  # moved to the top, where its path is not too long
                        folder.replace(inside, moved)
                        pending.append(moved)
        for place in reversed(pending):
            with suppress(OSError):
                folder.rmdir(place)


# -- locks -------------------------------------------------------------------------------------------------------

_LOCKED_BYTE = 2**31 - 2  # on Windows a locked byte is unreadable, so lock one beyond the content


def left_behind(folder: Path, prefix: str) -> Iterator[Path]:
    """Yield the paths named `prefix` plus the id of a process that has ended."""
    for path in folder.glob(f"{prefix}*"):
        try:
            os.kill(int(path.name.removeprefix(prefix).partition("-")[0]), 0)
        except ProcessLookupError:
            yield path
        except (ValueError, OverflowError, OSError):
            continue  # not named like this, or another user's process is alive


def lock(descriptor: int, *, wait: bool = False, shared: bool = False) -> None:
    """Lock an open file until it is closed. BlockingIOError if it is locked already. On Windows never shared."""
    if sys.platform == "win32":
        import msvcrt

        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(errno.EAGAIN, "another program has locked it") from error
        finally:
            os.lseek(descriptor, place, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


# -- resolving ---------------------------------------------------------------------------------------------------


def _resolve(folder: int, name: str, flags: int) -> int:
    parts = name.split("/")
    if ".." in parts or "." in parts or not all(parts) or "\0" in name:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    opened = -errno.ENOSYS
    if len(parts) > 1 and (openat2 := _openat2()) is not None:
        opened = openat2(folder, os.fsencode(name), flags)
    if opened >= 0:
        return opened
    if opened not in (-errno.ENOSYS, -errno.EPERM, -errno.EAGAIN):
        raise OSError(-opened, os.strerror(-opened), name)
    place = folder
    for index, part in enumerate(parts):
        try:
            following = os.open(part, flags if index == len(parts) - 1 else _PLACE, dir_fd=place)
        finally:
            if place != folder:
                os.close(place)
        place = following
    return place


@cache
def _openat2() -> Callable[[int, bytes, int], int] | None:
    """Return a wrapper of Linux's openat2, which resolves a whole name without following links; None on other systems.

    The wrapper returns a descriptor, or a negative error number.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    number, size = 437, 24
    resolve = 0x02 | 0x04 | 0x08  # no magic links, no links, beneath
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype, open_how = ctypes.c_long, ctypes.c_uint64 * 3

    def openat2(folder: int, name: bytes, flags: int) -> int:
        wanted = open_how(flags, 0, resolve)
        opened: int = syscall(number, ctypes.c_long(folder), name, ctypes.byref(wanted), ctypes.c_size_t(size))
        return opened if opened >= 0 else -ctypes.get_errno()

    return openat2
