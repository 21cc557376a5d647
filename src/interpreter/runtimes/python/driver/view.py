"""A view of the file system in which this process can write, and nothing is written: overlays, all else read-only.

The host says on a line of its own what to mount, and gets the descriptor at which it is asked what may be done.
"""

from __future__ import annotations

import _socket
import array
import ctypes
import fcntl
import json
import os
import stat

from .descriptors import A_PATH, OPEN_FLAGS, open_descriptors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, Iterator, List, Optional, Tuple


READ_SIZE = 65536
READ_ONLY_SYSTEM = 30


class NoView(Exception):
    """The view cannot be had; in words for the user."""


class View:
    """The view that this process is in, and the way out of it."""

    def __init__(self, plan: Dict[str, Any]) -> None:
        self._plan = plan
        self._mounted: List[str] = []
        self._closed: List[str] = []
        self.layers: Dict[str, str] = {}  # by the path of each folder, where what is written in it goes
        self.lost: List[str] = []
        self._resolve: Any = _socket.getaddrinfo
        self._hosts: List[str] = []  # that a block wanted to know the addresses of

    def enter(self, ours: Collection[int]) -> Optional[int]:
        """Go in; the descriptor at which the host is asked, if there is none yet."""
        here, opened = current_folder(), names(ours)
        before = capabilities()[0]
        user = own_mounts()
        writable = writable_mounts()
        opened_now = {
            path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in self._folders()
        }  # as they are outside
        try:
            for root in self._plan["roots"]:
                self._overlay(root, opened_now)
            for path in self._plan["shared"]:
                mount(by_number(opened_now[path]), path, None, BIND)
                self._mounted.append(path)
        finally:
            for fd in opened_now.values():
                os.close(fd)
        set_writable("/", False, below=True)
        self._closed = writable
        for path in self._mounted:
            set_writable(path, True)
        self.lost = isolate(opened, list(self.layers))
        os.chdir(here)
        listener = install_filter(bytes.fromhex(self._plan["filter"]), self._plan["machine"])
        _socket.getaddrinfo = self._note_host
        # In a user namespace of our own we have all capabilities: they are kept for later, and not in effect.
        set_capabilities(0 if user else before, capabilities()[1])
        return listener

    def _folders(self) -> List[str]:
        bases = [base for root in self._plan["roots"] for base in root["bases"]]
        return [*(root["path"] for root in self._plan["roots"]), *self._plan["shared"], *bases]

    def _overlay(self, root: Dict[str, Any], outside: Dict[str, int]) -> None:
        """Lay a layer over a folder, in the first place that can hold one."""
        failure: Optional[OSError] = None
        for base in root["bases"]:
            fds: List[int] = []
            try:
                fds = made(outside[base], root["name"], os.fstat(outside[root["path"]]))
                options = "lowerdir=%s,upperdir=%s,workdir=%s,userxattr,volatile"
                options %= tuple(by_number(fd) for fd in (outside[root["path"]], *fds))
                mount("overlay", root["path"], "overlay", 0, options)
            except OSError as error:
                failure = error
                continue
            finally:
                for fd in fds:
                    os.close(fd)
            self._mounted.append(root["path"])
            self.layers[root["path"]] = os.path.join(base, root["name"], "upper")
            return
        if root["needed"]:
            raise failure or NoView("there is no place for what is written")

    def leave(self) -> List[str]:
        """Be in the real file system again, where the host has written what was written here; what is lost."""
        here = current_folder()
        opened, mapped = below(list(self.layers))
        _socket.getaddrinfo = self._resolve
        before = raise_capabilities()
        try:
            for path in reversed(self._mounted):
                unmount(path)
            for path in self._closed:
                try:
                    set_writable(path, True)
                except OSError:
                    continue  # under another mount, or gone: then nobody can reach it
        finally:
            set_capabilities(before, capabilities()[1])
        lost = open_for_real(opened) + ["the memory map of %s" % path for path in mapped]
        try:
            os.chdir(here)
        except OSError:
            os.chdir("/")
            lost.append("the working directory %s" % here)
        return self.lost + lost

    def _note_host(self, host: Any, port: Any, *more: Any, **named: Any) -> Any:
        """As _socket.getaddrinfo, which has no way to ask anybody now."""
        name = host.decode("utf-8", "replace") if isinstance(host, bytes) else str(host)
        self._hosts.append("%s:%s" % (name, port) if port else name)
        return self._resolve(host, port, *more, **named)

    def denied_in(self, error: Optional[BaseException]) -> Dict[str, List[str]]:
        """What a block with this end wanted to write and to reach, as far as it is known."""
        hosts, self._hosts = list(dict.fromkeys(self._hosts)), []
        return {"paths": self._closed_paths(error), "hosts": hosts}

    def _closed_paths(self, error: Optional[BaseException]) -> List[str]:
        seen: List[BaseException] = []
        denied: List[str] = []
        while error is not None and error not in seen:
            seen.append(error)
            if isinstance(error, OSError) and error.errno == READ_ONLY_SYSTEM and error.filename is not None:
                denied.append(os.path.abspath(os.fsdecode(error.filename)))
            error = error.__cause__ or error.__context__
        return denied


def enter(line: int, ours: Collection[int]) -> Optional[View]:
    """Go into the view that the host describes; None if that is not to be, and the host knows why."""
    socket = _socket.socket(fileno=line)
    socket.setblocking(True)
    try:
        view = View(json.loads(received(socket)))
        try:
            listener = view.enter({*ours, line})
        except (OSError, NoView) as error:
            answer(socket, {"failed": said(error)}, None)
            return None
        place = os.stat("/proc/self/ns/mnt").st_ino
        answer(socket, {"layers": view.layers, "place": place, "lost": view.lost}, listener)
        if listener is not None:
            os.close(listener)
        return view if socket.recv(1) else None
    finally:
        socket.close()


def received(socket: _socket.socket) -> bytes:
    """One line."""
    data = b""
    while not data.endswith(b"\n"):
        more = socket.recv(READ_SIZE)
        if not more:
            break
        data += more
    return data


def answer(socket: _socket.socket, words: Dict[str, Any], listener: Optional[int]) -> None:
    rights: List[Tuple[int, int, Any]] = []
    if listener is not None:
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [listener]))]
    socket.sendmsg([json.dumps(words).encode() + b"\n"], rights)


def said(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename == "namespaces":
        return "this system lets no user have namespaces of their own (%s)" % error.strerror
    if isinstance(error, OSError):
        return "%s (%s)" % (error.strerror, error.filename)
    return str(error)


def made(base: int, name: str, like: os.stat_result) -> List[int]:
    """The two folders that a layer needs; the first is what the folder below it will appear to be."""
    os.mkdir(name, dir_fd=base)
    place = os.open(name, os.O_PATH | os.O_DIRECTORY, dir_fd=base)
    try:
        for part in ("upper", "work"):
            os.mkdir(part, dir_fd=place)
        try:
            os.chown("upper", like.st_uid, like.st_gid, dir_fd=place)
        except OSError:
            pass  # only root may
        os.chmod("upper", stat.S_IMODE(like.st_mode), dir_fd=place)
        return [os.open(part, os.O_PATH | os.O_DIRECTORY, dir_fd=place) for part in ("upper", "work")]
    finally:
        os.close(place)


def by_number(fd: int) -> str:
    """A path to what is open: it leads there whatever is mounted over the name."""
    return "/proc/self/fd/%d" % fd


def current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"  # somebody removed it


def writable_mounts() -> List[str]:
    """Where a file system is mounted that can be written."""
    found: List[str] = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.split()
            if "ro" not in fields[5].split(","):
                found.append(plain(fields[4]))
    return found


def plain(path: str) -> str:
    """A path as the kernel writes it in its tables, where blanks are numbers."""
    for number in ("011", "012", "040", "134"):
        path = path.replace("\\" + number, chr(int(number, 8)))
    return path


NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
SLAVE, BIND, RECURSIVE = 1 << 19, 1 << 12, 1 << 14
DETACH = 2
HERE, ALL_BELOW = -100, 0x8000
MOUNT_SETATTR = 442  # the same on every machine
READ_ONLY = 1
CAP_SYS_ADMIN = 21
CAPABILITY_VERSION = 0x20080522
SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_MODE_FILTER, NEW_LISTENER = 1, 1 << 3

libc = ctypes.CDLL(None, use_errno=True)


class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace")]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def mount(source: str, target: str, kind: Optional[str], flags: int, options: Optional[str] = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, options)]
    checked(libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), "mount " + target)


def unmount(target: str) -> None:
    checked(libc.umount2(os.fsencode(target), DETACH), "unmount " + target)


def set_writable(target: str, writable: bool, below: bool = False) -> None:
    """Close a mount to writing, or open it again."""
    attributes = Attributes(0 if writable else READ_ONLY, READ_ONLY if writable else 0, 0, 0)
    flags, size = ALL_BELOW if below else 0, ctypes.c_size_t(ctypes.sizeof(attributes))
    path = os.fsencode(target)
    checked(libc.syscall(MOUNT_SETATTR, HERE, path, flags, ctypes.byref(attributes), size), "remount " + target)


def own_mounts() -> bool:
    """Have mounts of our own from here on; True if that took a user namespace, which lasts."""
    permitted = capabilities()[1]
    user = not permitted >> CAP_SYS_ADMIN & 1
    uid, gid = os.geteuid(), os.getegid()
    if not user:
        raise_capabilities()
    checked(libc.unshare(NEW_MOUNTS | (NEW_USER if user else 0)), "namespaces")
    if user:
        for name, words in (
            ("setgroups", "deny"),
            ("uid_map", "%d %d 1" % (uid, uid)),
            ("gid_map", "%d %d 1" % (gid, gid)),
        ):
            with open("/proc/self/" + name, "w") as file:
                file.write(words)
    mount("none", "/", None, SLAVE | RECURSIVE)  # what we do is not seen outside; a new disk is seen here
    return user


def install_filter(code: bytes, machine: str) -> Optional[int]:
    """Have these system calls asked about at the descriptor that is given; None if an earlier filter does that."""
    buffer = ctypes.create_string_buffer(code, len(code))
    program = Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    result = libc.syscall(SECCOMP[machine], SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program))
    if result < 0 and ctypes.get_errno() == 16:
        return None
    return checked(result, "seccomp")


# -- capabilities -----------------------------------------------------------------------------------------------------


def capabilities() -> Tuple[int, int]:
    """Those in effect, and those that can be put into effect."""
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    checked(libc.capget(header, data), "capget")
    return data[0] | data[3] << 32, data[1] | data[4] << 32


def set_capabilities(effective: int, permitted: int) -> None:
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    for half in (0, 1):
        data[3 * half] = effective >> 32 * half & 0xFFFFFFFF
        data[3 * half + 1] = permitted >> 32 * half & 0xFFFFFFFF
    checked(libc.capset(header, data), "capset")


def raise_capabilities() -> int:
    """Put into effect all that can be; what was before."""
    effective, permitted = capabilities()
    if effective != permitted:
        set_capabilities(permitted, permitted)
    return effective


DELETED = " (deleted)"
READ, WRITE, EXECUTE = 1, 2, 4
PRIVATE, FIXED, ANONYMOUS = 0x02, 0x10, 0x20
PIECE = 1024 * 1024
MOST_SHARED = 1024 * 1024 * 1024

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
