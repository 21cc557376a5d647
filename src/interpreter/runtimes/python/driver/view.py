"""A view of the file system in which this process can write, and nothing is written: overlays, all else read-only.

The host says on a line of its own what to mount, and gets the descriptor at which it is asked what may be done.
"""

from __future__ import annotations

import _socket
import array
import json
import os
import stat

from . import namespaces, reopening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, List, Optional, Tuple

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
        here, opened = current_folder(), reopening.names(ours)
        before = namespaces.capabilities()[0]
        user = namespaces.own_mounts()
        writable = writable_mounts()
        opened_now = {
            path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in self._folders()
        }  # as they are outside
        try:
            for root in self._plan["roots"]:
                self._overlay(root, opened_now)
            for path in self._plan["shared"]:
                namespaces.mount(by_number(opened_now[path]), path, None, namespaces.BIND)
                self._mounted.append(path)
        finally:
            for fd in opened_now.values():
                os.close(fd)
        namespaces.set_writable("/", False, below=True)
        self._closed = writable
        for path in self._mounted:
            namespaces.set_writable(path, True)
        self.lost = reopening.isolate(opened, list(self.layers))
        os.chdir(here)
        listener = namespaces.install_filter(bytes.fromhex(self._plan["filter"]), self._plan["machine"])
        _socket.getaddrinfo = self._note_host
        # In a user namespace of our own we have all capabilities: they are kept for later, and not in effect.
        namespaces.set_capabilities(0 if user else before, namespaces.capabilities()[1])
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
                namespaces.mount("overlay", root["path"], "overlay", 0, options)
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
        opened, mapped = reopening.below(list(self.layers))
        _socket.getaddrinfo = self._resolve
        before = namespaces.raise_capabilities()
        try:
            for path in reversed(self._mounted):
                namespaces.unmount(path)
            for path in self._closed:
                try:
                    namespaces.set_writable(path, True)
                except OSError:
                    continue  # under another mount, or gone: then nobody can reach it
        finally:
            namespaces.set_capabilities(before, namespaces.capabilities()[1])
        lost = reopening.open_for_real(opened) + ["the memory map of %s" % path for path in mapped]
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
