"""A view of the file system in which a dry run can write without changing anything: overlays, all else read-only.

The host sends what to mount over a separate connection, and receives the descriptor that reports system calls.
"""

from __future__ import annotations

import _socket
import array
import ctypes
import errno
import fcntl
import json
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interpreter.runtimes.python.driver.descriptors import (
        A_PATH,
        by_number,
        each_open,
        replace,
        working_directory,
    )
    from interpreter.runtimes.python.driver.hints import Any, Collection, Iterator
else:  # a module of the driver's package, which has these
    from .descriptors import A_PATH, by_number, each_open, replace, working_directory
    from .hints import Any, Collection, Iterator

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
DELETED = " (deleted)"
READ, WRITE, EXECUTE = 1, 2, 4
PRIVATE, FIXED, ANONYMOUS = 0x02, 0x10, 0x20
CHUNK = 1024 * 1024
MAX_NAMES, MAX_LAYERS = 1000, 250  # per folder that is covered in parts, and in total
OURS = "interpreter-view-"  # prefix of the folders with layers
MAX_SHARED_BYTES = 1024 * 1024 * 1024

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class View:
    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._mounted: list[str] = []
        self._closed: list[str] = []
        self.layers: dict[str, str] = {}  # by folder, where its writes go
        self.lost: list[str] = []
        self._read_only: list[str] = []  # mounts and other paths inside folders with layers
        self._inside: list[str] = []  # mounts inside the folders to cover
        self._is_user_namespace = False
        self._outside: dict[str, int] = {}  # folders and files as they were before they are covered
        self._resolve: Any = _socket.getaddrinfo
        self._hosts: list[str] = []  # hosts that a block tried to resolve

    def enter(self, ours: Collection[int]) -> int | None:
        """Enter the view. Returns the descriptor that reports system calls to the host, unless there is one already."""
        roots, shared = self._plan["roots"], self._plan["shared"]
        folder, opened = working_directory() or "/", open_paths(ours)
        before = capabilities()[0]
        self._is_user_namespace = unshare_mounts()
        self._closed = writable_mounts()
        folders = [root["path"] for root in roots if not root["mount"]]
        folders += [*shared, *(base for root in roots for base in root["bases"])]
        outside = self._outside = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in folders}
        self._inside = [root["path"] for root in roots if root["mount"]]
        for path in self._inside:
            try:
                outside[path] = os.open(path, os.O_PATH)
            except OSError:
                continue  # below another mount, or not accessible
        try:
            for root in roots:
                if root["path"] in outside:
                    self._cover(root)
            for path in shared:
                mount(by_number(outside[path]), path, None, BIND)
                self._mounted.append(path)
        finally:
            for fd in outside.values():
                os.close(fd)
        set_writable("/", False, below=True)
        for path in self._mounted:
            set_writable(path, True)
        self.lost = isolate(opened, self._has_layer)
        os.chdir(folder)
        listener = install_filter(bytes.fromhex(self._plan["filter"]), self._plan["machine"])
        _socket.getaddrinfo = self._note_host
        # In our own user namespace we have all capabilities: they stay permitted for later, but not in effect.
        set_capabilities(0 if self._is_user_namespace else before, capabilities()[1])
        return listener

    def _cover(self, root: dict[str, Any]) -> None:
        """Put a layer over a folder, in the first place that can hold one."""
        failure: OSError | None = None
        path = root["path"]
        in_parts = self._is_user_namespace and any(is_below(each, path) for each in self._inside if each != path)
        for base in root["bases"]:
            try:
                if in_parts:
                    self._cover_in_parts(path, self._outside[path], base, root["name"])
                else:
                    self._add_layer(path, self._outside[path], base, root["name"])
            except OSError as error:
                failure = error
                continue
            return
        if root["mount"]:
            self._close(path, by_number(self._outside[path]))
        if root["needed"]:
            raise failure or OSError(errno.ENOSPC, "there is no place to write to", path)

    def _add_layer(self, path: str, folder: int, base: str, name: str, copy: int | None = None) -> None:
        """Mount an overlay whose lower layer is the folder, or a copy of it."""
        fds: list[int] = []
        try:
            fds = make_layer(self._outside[base], name, os.fstat(folder))
            options = "lowerdir=%s,upperdir=%s,workdir=%s,userxattr,volatile"
            options %= tuple(by_number(fd) for fd in (folder if copy is None else copy, *fds))
            mount("overlay", path, "overlay", 0, options)
        finally:
            for fd in fds:
                os.close(fd)
        self._mounted.append(path)
        self.layers[path] = os.path.join(base, name, "upper")

    def _cover_in_parts(self, path: str, folder: int, base: str, name: str) -> None:
        """Cover a folder with mounts in it, which the kernel lets only root cover as a whole.

        A layer goes over a copy of its files, in which each of its folders gets a separate layer.
        """
        below = by_number(folder)
        parts: list[str] = []
        names = [each for each in os.listdir(below) if not each.startswith(OURS)]
        if len(names) > MAX_NAMES:
            raise OSError(errno.E2BIG, "too many files", path)
        os.mkdir(name + ".copy", dir_fd=self._outside[base])
        copy = os.open(name + ".copy", os.O_PATH | os.O_DIRECTORY, dir_fd=self._outside[base])
        try:
            for each in names:
                try:
                    if not copy_entry(os.path.join(below, each), os.path.join(by_number(copy), each)):
                        parts.append(each)
                except FileNotFoundError:
                    continue  # another program has deleted it
            self._add_layer(path, folder, base, name, copy)
        finally:
            os.close(copy)
        for number, each in enumerate(parts):
            inner = os.path.join(path, each)
            if inner not in self._inside:
                self._cover_part(inner, os.path.join(below, each), base, "%s.%d" % (name, number))

    def _cover_part(self, path: str, source: str, base: str, name: str) -> None:
        try:
            fd = os.open(source, os.O_PATH)
        except OSError:
            return  # another program has deleted it
        try:
            if any(is_below(each, path) for each in self._inside):
                self._cover_in_parts(path, fd, base, name)
            elif os.path.isdir(source) and os.access(source, os.W_OK | os.X_OK) and len(self.layers) < MAX_LAYERS:
                self._add_layer(path, fd, base, name)
            else:
                self._close(path, by_number(fd))
        except OSError:
            self._close(path, by_number(fd))
        finally:
            os.close(fd)

    def _close(self, path: str, source: str) -> None:
        """Show a path's outside content; everything without a layer becomes read-only."""
        mount(source, path, None, BIND | RECURSIVE)
        self._read_only.append(path)

    def _has_layer(self, path: str) -> bool:
        """Check whether writes to a file go to a layer, and not to a mount inside the folder that has one."""
        mounted = [each for each in (*self.layers, *self._read_only) if is_below(path, each)]
        return bool(mounted) and max(mounted, key=len) in self.layers

    def leave(self) -> list[str]:
        """Return to the real file system, where the host has applied the changes.

        Returns descriptions of what is lost.
        """
        folder = working_directory() or "/"
        opened = {fd: path for fd, path in open_paths(()).items() if path is not None and self._has_layer(path)}
        lost = ["the memory-mapped file %s" % path for _, _, _, path in shared_memory() if self._has_layer(path)]
        _socket.getaddrinfo = self._resolve
        before = raise_capabilities()
        try:
            for path in reversed(self._mounted):
                checked(libc.umount2(os.fsencode(path), DETACH), "unmount " + path)
            for path in self._closed:
                try:
                    set_writable(path, True)
                except OSError:
                    continue  # under another mount or gone, so it cannot be reached
        finally:
            set_capabilities(before, capabilities()[1])
        for fd, path in opened.items():
            try:
                replace(fd, path, fcntl.fcntl(fd, fcntl.F_GETFL))
            except OSError:
                lost.append("the open file %s" % path)
        try:
            os.chdir(folder)
        except OSError:
            os.chdir("/")
            lost.append("the working directory %s" % folder)
        return self.lost + lost

    def _note_host(self, host: Any, port: Any, *more: Any, **named: Any) -> Any:
        """Replace _socket.getaddrinfo, which has no network now, and note the host."""
        name = host.decode("utf-8", "replace") if isinstance(host, bytes) else str(host)
        self._hosts.append("%s:%s" % (name, port) if port else name)
        return self._resolve(host, port, *more, **named)

    def denied_in(self, error: BaseException | None) -> dict[str, list[str]]:
        """Return what a block that ended with this error tried to write and to reach, if known."""
        from .execution import error_chain  # type: ignore[import-not-found]

        hosts, self._hosts = list(dict.fromkeys(self._hosts)), []
        paths = [
            os.path.abspath(os.fsdecode(each.filename))
            for each in error_chain(error)
            if isinstance(each, OSError) and each.errno == errno.EROFS and each.filename is not None
        ]
        return {"paths": paths, "hosts": hosts}


def enter(line: int, plan: dict[str, Any], ours: Collection[int]) -> View | None:
    """Enter the view of this plan, and report to the host. None if it does not want it, or knows why it failed."""
    socket = _socket.socket(fileno=line)
    view = View(plan)
    try:
        try:
            listener = view.enter({*ours, line})
        except OSError as error:
            reason = "%s (%s)" % (error.strerror, error.filename)
            if error.filename == "namespaces":
                reason = "this system does not allow user namespaces (%s)" % error.strerror
            socket.sendall(json.dumps({"event": "entered", "failed": reason}).encode() + b"\n")
            return None
        namespace = os.stat("/proc/self/ns/mnt").st_ino
        entered = {"event": "entered", "layers": view.layers, "namespace": namespace, "lost": view.lost}
        answer = json.dumps(entered).encode() + b"\n"
        if listener is None:
            socket.sendall(answer)
        else:
            socket.sendmsg([answer], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [listener]))])
            os.close(listener)
        return view if socket.recv(1) else None
    finally:
        socket.close()


def make_layer(base: int, name: str, like: os.stat_result) -> list[int]:
    """Make the two folders that a layer needs; the first gets the owner and mode of the folder below it."""
    os.mkdir(name, dir_fd=base)
    folder = os.open(name, os.O_PATH | os.O_DIRECTORY, dir_fd=base)
    try:
        for part in ("upper", "work"):
            os.mkdir(part, dir_fd=folder)
        try:
            os.chown("upper", like.st_uid, like.st_gid, dir_fd=folder)
        except OSError:
            pass  # only root may set the owner
        os.chmod("upper", stat.S_IMODE(like.st_mode), dir_fd=folder)
        return [os.open(part, os.O_PATH | os.O_DIRECTORY, dir_fd=folder) for part in ("upper", "work")]
    finally:
        os.close(folder)


def copy_entry(source: str, target: str) -> bool:
    """Copy a link or a small file. Of a folder or another file, only make an empty one, and return False."""
    import shutil

    facts = os.lstat(source)
    kind = stat.S_IFMT(facts.st_mode)
    if kind == stat.S_IFDIR:
        os.mkdir(target)
    elif kind == stat.S_IFREG and (facts.st_size > CHUNK or not os.access(source, os.R_OK)):
        open(target, "x").close()
    else:
        if kind in (stat.S_IFREG, stat.S_IFLNK):
            shutil.copy2(source, target, follow_symlinks=False)
        return True
    return False


def writable_mounts() -> list[str]:
    paths: list[str] = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            path, options = line.split()[4:6]
            for number in ("011", "012", "040", "134"):  # the kernel writes blanks as numbers
                path = path.replace("\\" + number, chr(int(number, 8)))
            if "ro" not in options.split(","):
                paths.append(path)
    return paths


def checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    checked(libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), "mount " + target)


def set_writable(target: str, writable: bool, below: bool = False) -> None:
    """Make a mount read-only, or writable again."""
    to_set, to_clear = (0, READ_ONLY) if writable else (READ_ONLY, 0)
    attributes = (ctypes.c_uint64 * 4)(to_set, to_clear, 0, 0)  # and propagation, and a user namespace
    flags, size = ALL_BELOW if below else 0, ctypes.c_size_t(ctypes.sizeof(attributes))
    path = os.fsencode(target)
    checked(libc.syscall(MOUNT_SETATTR, HERE, path, flags, ctypes.byref(attributes), size), "remount " + target)


def unshare_mounts() -> bool:
    """Separate our mounts from those of other processes. Returns True if that took a user namespace, which lasts."""
    user = not capabilities()[1] >> CAP_SYS_ADMIN & 1
    uid, gid = os.geteuid(), os.getegid()
    if not user:
        raise_capabilities()
    checked(libc.unshare(NEW_MOUNTS | (NEW_USER if user else 0)), "namespaces")
    if user:
        for name, content in (
            ("setgroups", "deny"),
            ("uid_map", "%d %d 1" % (uid, uid)),
            ("gid_map", "%d %d 1" % (gid, gid)),
        ):
            with open("/proc/self/" + name, "w") as file:
                file.write(content)
    mount("none", "/", None, SLAVE | RECURSIVE)  # our changes stay here, but new disks show up
    return user


def install_filter(code: bytes, machine: str) -> int | None:
    """Install a filter for system calls.

    Returns the descriptor that reports them; None if an earlier filter has one.
    """
    buffer = ctypes.create_string_buffer(code, len(code))
    program = (ctypes.c_uint64 * 2)(len(code) // 8, ctypes.addressof(buffer))
    result = libc.syscall(SECCOMP[machine], SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program))
    if result < 0 and ctypes.get_errno() == errno.EBUSY:
        return None
    return checked(result, "seccomp")


# -- capabilities -----------------------------------------------------------------------------------------------------


def capabilities() -> tuple[int, int]:
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
    """Put all permitted capabilities into effect, and return those in effect before."""
    effective, permitted = capabilities()
    if effective != permitted:
        set_capabilities(permitted, permitted)
    return effective


# -- open files -------------------------------------------------------------------------------------------------------


def open_paths(ours: Collection[int]) -> dict[int, str | None]:
    paths: dict[int, str | None] = {}
    for fd, kind, facts in each_open(ours):
        if kind in (stat.S_IFREG, stat.S_IFDIR):
            path = os.readlink(by_number(fd))
            try:
                paths[fd] = path if os.path.samestat(os.stat(path), facts) else None
            except OSError:
                paths[fd] = None
    return paths


def isolate(opened: dict[int, str | None], has_layer: Any) -> list[str]:
    """Separate files that were open before the view from the outside. Returns descriptions of what that changes."""
    lost: list[str] = []
    for fd, path in opened.items():
        flags, is_file = fcntl.fcntl(fd, fcntl.F_GETFL), stat.S_ISREG(os.fstat(fd).st_mode)
        if path is None:
            if is_file and not (A_PATH and flags & A_PATH):
                copy_into_memory(fd, flags)
            continue
        if is_file and not has_layer(path):
            if flags & os.O_ACCMODE != os.O_RDONLY:
                lost.append("the open file %s, for writing" % path)
            flags &= ~(os.O_ACCMODE | os.O_APPEND)
        replace(fd, path, flags)
    return lost + make_memory_private()


def copy_into_memory(fd: int, flags: int) -> None:
    """Replace a file without a name, which is shared with the process that we were forked from, by a copy."""
    own = os.memfd_create("copy")
    position, size = os.lseek(fd, 0, os.SEEK_CUR), os.fstat(fd).st_size
    source = os.open(by_number(fd), os.O_RDONLY | os.O_CLOEXEC)
    for start in range(0, size, CHUNK):
        os.pwrite(own, os.pread(source, CHUNK, start), start)
    os.close(source)
    os.lseek(own, position, os.SEEK_SET)
    fcntl.fcntl(own, fcntl.F_SETFL, flags & (os.O_APPEND | os.O_NONBLOCK))
    os.dup2(own, fd, os.get_inheritable(fd))
    os.close(own)


def is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


# -- memory -----------------------------------------------------------------------------------------------------------


def shared_memory() -> Iterator[tuple[int, int, int, str]]:
    """Yield writable memory that is shared through a file: its start and end, its protection, and the file."""
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
    """Check whether a file belongs to a device or to the kernel, and cannot be copied."""
    if not path.startswith("/") or path == "/dev/zero" + DELETED:
        return not path.startswith("/")
    try:
        return not stat.S_ISREG(os.stat(path.split(DELETED)[0]).st_mode)
    except OSError:
        return False


def make_memory_private() -> list[str]:
    """Replace memory that other processes or files would see by a copy."""
    shared = list(shared_memory())
    if sum(end - start for start, end, _, _ in shared) > MAX_SHARED_BYTES:
        raise OSError(errno.ENOMEM, "the session shares too much memory with others", "memory")
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for start, end, kind, _ in shared:
            pieces: dict[int, bytes] = {}
            for at in range(start, end, CHUNK):
                try:
                    pieces[at] = os.pread(memory.fileno(), min(CHUNK, end - at), at)
                except OSError:
                    continue  # beyond the end of the file
            libc.mmap(start, end - start, kind | READ | WRITE, PRIVATE | FIXED | ANONYMOUS, -1, 0)
            for at, piece in pieces.items():
                ctypes.memmove(at, piece, len(piece))
    # Semaphores belong to locks of libraries, which no one would miss.
    return ["the memory-mapped file %s" % path for _, _, _, path in shared if not path.startswith("/dev/shm/sem.")]
