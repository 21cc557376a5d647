"""Run Python as on Windows, within what Linux can simulate: `python pretend_windows.py -m MODULE | SCRIPT [ARGUMENT ...]`.

POSIX-only modules, functions, flags and signals are missing. `select` accepts only sockets, locks are those of
`msvcrt`, and `os.write` needs files opened with `O_BINARY`. Ctrl-C ends a read from the console, however early it
comes. `os.name` and paths stay unchanged, since pathlib depends on them. So do the modules imported here, before the
simulation starts.
"""

from __future__ import annotations

import asyncio
import asyncio.subprocess
import ctypes
import fcntl
import getpass
import importlib.metadata
import multiprocessing
import os
import pathlib
import runpy
import select
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import httpx
import platformdirs

IMPORTED = (asyncio.subprocess, ctypes, getpass, importlib.metadata, multiprocessing, pathlib, shutil, ssl, httpx)
ALSO = (platformdirs, threading, uuid)
MODULES = ("fcntl", "termios", "tty", "pty", "resource", "grp", "pwd", "syslog")
MISSING: dict[Any, str] = {
    os: """
        fork forkpty register_at_fork openpty posix_spawn waitid wait WNOHANG getuid geteuid getgid getegid setsid
        getsid getpgid getpgrp setpgid killpg tcgetpgrp tcsetpgrp ttyname uname statvfs mkfifo mknod chown lchown
        fchown fchmod fchdir pread pwrite memfd_create pidfd_open sched_getaffinity getxattr listxattr setxattr sync
        getloadavg nice O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK O_PATH O_NOCTTY O_SYNC O_TMPFILE
    """,
    signal: """
        SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2
        SIGWINCH pthread_kill pthread_sigmask siginterrupt sigpending sigwait setitimer alarm pause
    """,
    socket: "AF_UNIX MSG_DONTWAIT send_fds recv_fds SO_PEERCRED",
    select: "poll epoll",
}
O_BINARY = 0x8000
POSIX_OPEN, POSIX_WRITE, POSIX_SELECT, POSIX_POPEN = os.open, os.write, select.select, subprocess.Popen.__init__
opened_as_text: dict[int, int] = {}  # descriptors and inodes


def pretend() -> None:
    threading.Thread(target=end_reads_at_ctrl_c, args=[*signals_of_this_process()], daemon=True).start()
    keep_for_imported(os, signal, socket, select)
    for owner, names in MISSING.items():
        for name in names.split():
            if hasattr(owner, name):
                delattr(owner, name)
    for each in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        each.clear()
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    sys.modules["msvcrt"] = msvcrt()
    os.O_BINARY = O_BINARY  # type: ignore[attr-defined]
    os.open, os.write = open_as_text, write_as_text
    tempfile.TemporaryFile = tempfile.NamedTemporaryFile
    socket.socketpair = socketpair
    select.select = select_sockets
    subprocess.Popen.__init__ = start_without_descriptors  # type: ignore[method-assign]
    sys.platform = "win32"
    warnings.filterwarnings("error", category=EncodingWarning, module=r"interpreter\.")


def signals_of_this_process() -> tuple[int, Callable[[], None]]:
    """Return a descriptor to read signal numbers from, and a function that ends a system call of the main thread."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGURG, lambda number, frame: None)
    return reading, partial(signal.pthread_kill, threading.get_ident(), signal.SIGURG)


def end_reads_at_ctrl_c(signals: int, wake: Callable[[], None]) -> None:
    while number := os.read(signals, 1):
        if number[0] == signal.SIGINT:
            time.sleep(0.05)  # by now a handler has run, unless Ctrl-C came just before the read
            wake()


def keep_for_imported(*changed: ModuleType) -> None:
    """Modules imported before the simulation keep what they depend on."""
    for module in changed:
        kept = ModuleType(module.__name__)
        vars(kept).update(vars(module))
        for other in [each for each in sys.modules.values() if each not in (*changed, sys.modules[__name__])]:
            for name in [name for name, value in vars(other).items() if value is module]:
                setattr(other, name, kept)


def msvcrt() -> ModuleType:
    module: Any = ModuleType("msvcrt")
    module.LK_LOCK, module.LK_NBLCK = 1, 2
    module.kbhit = lambda: False

    def locking(descriptor: int, mode: int, size: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (fcntl.LOCK_NB if mode == module.LK_NBLCK else 0))
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    module.locking = locking
    return module  # type: ignore[no-any-return]


def open_as_text(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    descriptor = POSIX_OPEN(path, flags & ~O_BINARY, mode, dir_fd=dir_fd)
    if not flags & O_BINARY:
        opened_as_text[descriptor] = os.fstat(descriptor).st_ino
    return descriptor


def write_as_text(descriptor: int, data: Any) -> int:
    as_text = (
        opened_as_text.get(descriptor) == os.fstat(descriptor).st_ino
    )  # the descriptor may belong to another file by now
    assert not as_text or b"\n" not in bytes(data), "this writes other line endings: open it with O_BINARY"
    return POSIX_WRITE(descriptor, data)


def socketpair(*args: Any) -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        return ours, server.accept()[0]


def select_sockets(*args: Any) -> Any:
    for each in [item for group in args[:3] for item in group]:
        if not stat.S_ISSOCK(os.fstat(each if isinstance(each, int) else each.fileno()).st_mode):
            raise OSError(10038, "An operation was attempted on something that is not a socket")
    return POSIX_SELECT(*args)


def start_without_descriptors(self: Any, *args: Any, **options: Any) -> None:
    if options.get("pass_fds") or options.get("preexec_fn"):
        raise ValueError("pass_fds not supported on Windows.")
    POSIX_POPEN(self, *args, **options)


if __name__ == "__main__":
    del sys.argv[0]
    pretend()
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
