"""What a process has open when it goes into a view or comes out of it: opened anew, by its name.

A descriptor knows the mount that it was opened on: one from outside would write past the view.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import stat

from .descriptors import (
    A_PATH,
    OPEN_FLAGS,
    open_descriptors,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Collection, Dict, Iterator, List, Optional, Tuple

DELETED = " (deleted)"
READ, WRITE, EXECUTE = 1, 2, 4
PRIVATE, FIXED, ANONYMOUS = 0x02, 0x10, 0x20
PIECE = 1024 * 1024
MOST_SHARED = 1024 * 1024 * 1024

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def names(ours: Collection[int]) -> Dict[int, Optional[str]]:
    """The open files and folders with their paths; None for one that has no name any more."""
    found: Dict[int, Optional[str]] = {}
    for fd in open_descriptors():
        try:
            facts = os.fstat(fd)
        except OSError:
            continue  # the folder's own, gone by now
        if fd not in ours and stat.S_IFMT(facts.st_mode) in (stat.S_IFREG, stat.S_IFDIR):
            path = os.readlink("/proc/self/fd/%d" % fd)
            try:
                named = os.path.samestat(os.stat(path), facts)
            except OSError:
                named = False
            found[fd] = path if named else None
    return found


def isolate(opened: Dict[int, Optional[str]], roots: List[str]) -> List[str]:
    """In a view: let nothing that was open before reach what is outside; what will not be as it was."""
    lost: List[str] = []
    for fd, path in opened.items():
        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        if path is None:
            if not (A_PATH and flags & A_PATH) and stat.S_ISREG(os.fstat(fd).st_mode):
                copy_into_memory(fd, flags)
            continue
        if stat.S_ISREG(os.fstat(fd).st_mode) and not is_below(path, roots):
            if flags & os.O_ACCMODE != os.O_RDONLY:
                lost.append("the open file %s, for writing" % path)
            flags &= ~(os.O_ACCMODE | os.O_APPEND)
        replace(fd, path, flags)
    return lost + make_memory_private()


def below(roots: List[str]) -> Tuple[Dict[int, str], List[str]]:
    """In a view: the files that are open in these folders, and those that are mapped into memory."""
    opened = {fd: path for fd, path in names(()).items() if path is not None and is_below(path, roots)}
    return opened, [path for _, _, _, path in shared_memory() if is_below(path, roots)]


def open_for_real(opened: Dict[int, str]) -> List[str]:
    """Out of a view: open by their names the files that were open in it; what cannot be."""
    lost: List[str] = []
    for fd, path in opened.items():
        try:
            replace(fd, path, fcntl.fcntl(fd, fcntl.F_GETFL))
        except OSError:
            lost.append("the open file %s" % path)
    return lost


def replace(fd: int, path: str, flags: int) -> None:
    """Put the file of that name in the place of a descriptor, at the same position."""
    own = os.open(path, flags & (OPEN_FLAGS | A_PATH | os.O_DIRECTORY) | os.O_CLOEXEC)
    try:
        if stat.S_ISREG(os.fstat(own).st_mode) and not (A_PATH and flags & A_PATH):
            os.lseek(own, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
        os.dup2(own, fd, os.get_inheritable(fd))
    finally:
        os.close(own)


def copy_into_memory(fd: int, flags: int) -> None:
    """A file without a name is shared with the process that we were copied from: have one of our own."""
    own = os.memfd_create("copy")
    position, size = os.lseek(fd, 0, os.SEEK_CUR), os.fstat(fd).st_size
    source = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY | os.O_CLOEXEC)
    for start in range(0, size, PIECE):
        os.pwrite(own, os.pread(source, PIECE, start), start)
    os.close(source)
    os.lseek(own, position, os.SEEK_SET)
    fcntl.fcntl(own, fcntl.F_SETFL, flags & (os.O_APPEND | os.O_NONBLOCK))
    os.dup2(own, fd, os.get_inheritable(fd))
    os.close(own)


def is_below(path: str, roots: List[str]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


# -- memory -----------------------------------------------------------------------------------------------------------


def shared_memory() -> Iterator[Tuple[int, int, int, str]]:
    """The stretches of memory that are a file's: where they begin and end, how they are protected, of which file."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        lines = file.readlines()
    for line in lines:
        fields = line.rstrip("\n").split(None, 5)
        if len(fields) < 6 or fields[1][3] != "s" or fields[1][1] != "w" or is_device(fields[5]):
            continue
        start, end = (int(number, 16) for number in fields[0].split("-"))
        kind = READ * (fields[1][0] == "r") | WRITE | EXECUTE * (fields[1][2] == "x")
        yield start, end, kind, fields[5]


def is_device(path: str) -> bool:
    """Not a file's but a device's or the kernel's own: nothing that could be copied."""
    if not path.startswith("/") or path == "/dev/zero" + DELETED:
        return not path.startswith("/")
    try:
        return not stat.S_ISREG(os.stat(path.split(DELETED)[0]).st_mode)
    except OSError:
        return False


def make_memory_private() -> List[str]:
    """Replace memory that other processes or files would see by a copy of our own."""
    found = list(shared_memory())
    if sum(end - start for start, end, _, _ in found) > MOST_SHARED:
        raise OSError(12, "the session shares too much memory with others", "memory")
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for start, end, kind, _ in found:
            content = [(at, piece) for at in range(start, end, PIECE) for piece in [read(memory.fileno(), at, end)]]
            libc.mmap(start, end - start, kind | READ | WRITE, PRIVATE | FIXED | ANONYMOUS, -1, 0)
            for at, piece in content:
                ctypes.memmove(at, piece, len(piece))
    return ["the memory map of %s" % path for _, _, _, path in found]


def read(memory: int, at: int, end: int) -> bytes:
    try:
        return os.pread(memory, min(PIECE, end - at), at)
    except OSError:
        return b""  # beyond the end of the file
