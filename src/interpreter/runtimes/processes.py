"""A session's processes on the host's side: start them, in a sandbox or not, and end them."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from interpreter.errors import SessionStartError
from interpreter.runtimes.block import Block, Channel
from interpreter.runtimes.clock import KILL_AFTER
from interpreter.runtimes.containment import Start
from interpreter.runtimes.frames import Frame, encode
from interpreter.runtimes.launch import Launch
from interpreter.runtimes.lines import (
    Control,
    Data,
    Startup,
)
from interpreter.runtimes.reader import Reader
from interpreter.runtimes.snapshots import Snapshots
from interpreter.runtimes.split_off import SplitOff
from interpreter.runtimes.surroundings import nearest_folder

SUPERVISOR = Path(__file__).with_name("supervisor.py")
ENDING = 5.0  # seconds for all processes of a session to end
SOCKET_BUFFER = 1024 * 1024

Lines = tuple[Data, Startup, "Frame | None", "int | None"]


class Processes:
    """A worker under a supervisor of its own, and the lines to both."""

    snapshots: Snapshots

    def __init__(self, launch: Launch, name: str) -> None:
        self.launch, self.name = launch, name
        self.ready: Frame | None = None  # what the worker said of itself when it was ready
        self.exit_code: int | None = None  # of the last worker that ended
        self.pid: int | None = None
        self.block: Block | None = None  # the newest one
        self._blocks: OrderedDict[int, Block] = OrderedDict()
        self._alive = False
        self._folder: Path | None = None
        self._terminal: Channel | None = None
        self._ending = threading.Lock()  # held by who notices the worker's end, and by who begins a block
        self.ended = threading.Event()  # the worker has
        self._writing = threading.Lock()
        self.inherits = False  # it began with the variables of another one
        self._first: Processes | None = None  # that this one split off from
        self.parts: set[SplitOff] = set()  # what split off from this one
        self._process: subprocess.Popen[bytes] | SplitOff | None = None
        self._staying: subprocess.Popen[bytes] | SplitOff | None = None  # it has ended, and waits for those
        self._refusal: IO[bytes] | None = None  # what a sandbox says that cannot be made

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the supervisor and a worker; returns before the worker is ready."""
        ours, theirs = socket.socketpair()
        argv = [self.launch.python, str(SUPERVISOR), str(theirs.fileno()), *self.launch.worker]
        cwd = nearest_folder(self.launch.cwd) if self.launch.cwd is not None else None
        plain = Start(argv, self.launch.env, cwd, [theirs.fileno()])
        with self._or_nothing(ours) as started, theirs, self._contained(plain) as begin:
            try:
                self._process = subprocess.Popen(
                    begin.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._refusal or subprocess.DEVNULL,
                    pass_fds=begin.fds,
                    env=begin.env,
                    cwd=begin.cwd,
                    start_new_session=True,
                )
            except OSError as error:
                raise SessionStartError(self.name, f"{argv[0]}: {error.strerror}") from error
            started.pop_all()
        self._listen_to(ours)
        self.spawn()

    def _contained(self, start: Start) -> contextlib.AbstractContextManager[Start]:
        """The same start in a sandbox, if there is one; what is to be seen inside has to be there before."""
        if self.launch.containment is None:
            return contextlib.nullcontext(start)
        self._folder = self._folder or new_folder()
        self._forget_refusal()
        self._refusal = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the start has failed
        return self.launch.containment.wrap(start, self._folder)

    def _or_nothing(self, ours: socket.socket) -> contextlib.ExitStack:
        """What is to be put away unless the start goes well."""
        stack = contextlib.ExitStack()
        stack.callback(self._not_started, ours)
        return stack

    def _not_started(self, ours: socket.socket) -> None:
        ours.close()
        self._forget_refusal()
        if self._folder is not None and not self._blocks:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _forget_refusal(self) -> None:
        if self._refusal is not None:
            self._refusal.close()

    def _refused(self) -> str:
        if self._refusal is None:
            return ""
        self._refusal.seek(0)
        return self._refusal.read(4096).decode("utf-8", "replace")

    def start_from(self, origin: Processes, command: str) -> None:
        """Have another session's supervisor begin this one from a snapshot."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._listen_to(ours)
            self._first, self.inherits = origin.first, True
            self._process = SplitOff(self.control, self._first)
            self.spawn(command, origin.control, [theirs.fileno()])

    def _listen_to(self, supervisor: socket.socket) -> None:
        self.control = Control(self, supervisor)
        self._reader = Reader(f"{self.name} session", self.tend)
        self._reader.watch(self.control)
        if self._folder is not None:
            self.control.say(f"folder {self._folder}")

    def spawn(self, command: str = "spawn", by: Control | None = None, more: Sequence[int] = ()) -> None:
        """Have the supervisor fork a worker with a fresh data socket, or give the socket to a snapshot."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER)
        self._alive, self.ready, self.exit_code, self.pid = True, None, None, None
        self.ended.clear()
        self._data = Data(self, ours)
        self._startup = Startup(self)
        self._reader.watch(self._data)
        self._reader.watch(self._startup)
        null = os.open(os.devnull, os.O_RDWR)
        fds = [theirs.fileno(), null, self._startup.writer, self._startup.writer]
        try:
            (by or self.control).say(command, [*more, *fds])
        finally:
            theirs.close()
            os.close(null)
            os.close(self._startup.writer)
        if self.launch.dialect:
            self._write(self.launch.dialect.greet(self.folder))
        if self.control.lost:
            self.worker_gone(-9)  # the supervisor's end may have been noticed when there was no worker

    def lines(self) -> Lines:
        """The lines to the present worker, and what it is."""
        return self._data, self._startup, self.ready, self.pid

    def take_back(self, lines: Lines | None) -> None:
        """There is no new worker after all: there is still the one that was, if any."""
        self._alive = lines is not None and not self.control.lost
        if lines is not None:
            self._data, self._startup, self.ready, self.pid = lines

    @property
    def alive(self) -> bool:
        """Whether a worker is there, as far as is known."""
        return self._alive

    @property
    def has_begun(self) -> bool:
        """Whether there is what a block has left, here or in the session that this one began with."""
        return self.block is not None or self.inherits

    @property
    def folder(self) -> Path:
        """A private folder that goes when the session does."""
        if self._folder is None:
            self._folder = new_folder()
            self.control.say(f"folder {self._folder}")
        return self._folder

    def close(self) -> None:
        """End the worker and every process that came from it."""
        if self._process is None:
            return
        process, self._process = self._process, None
        for block in self._blocks.values():
            block.let_go()
        self.control.shut()
        if not self.control.over.wait(ENDING):
            process.kill()  # something cannot be killed, such as a program running as another user
        if self.control.stays:
            self._staying = process
        else:
            process.wait()
        self._reader.stop()
        self._alive = False
        self._forget_refusal()
        for block in self._blocks.values():
            block.finished = True
            block.release_held()
            block.spool.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _wait_for_end(self) -> None:
        """The line to the supervisor is closed: it ends by itself, or is not ours any more."""
        assert self._process is not None
        try:
            self._process.wait(ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    @property
    def first(self) -> Processes:
        """The session that this one, and maybe others before it, split off from; or itself."""
        return self._first or self

    def part_ended(self, part: SplitOff) -> None:
        """A session that split off from this one is over; with the last one, a supervisor that stayed for them is."""
        self.parts.discard(part)
        if self._staying is not None and not self.parts:
            self._staying.wait()
            self._staying = None

    # -- the line to the worker ------------------------------------------------------------------------------------

    def send(self, frame: Frame, fds: list[int] | None = None) -> None:
        """Send a frame to the driver; a worker that is gone is noticed by its exit, not here."""
        dialect = self.launch.dialect
        self._write(dialect.encode(frame, self.folder) if dialect else encode(frame), fds)

    def _write(self, data: bytes, fds: list[int] | None = None) -> None:
        with self._writing, contextlib.suppress(OSError):
            sent = socket.send_fds(self._data.socket, [data], fds) if fds else 0
            self._data.socket.sendall(data[sent:])

    # -- the controlling terminal --------------------------------------------------------------------------------

    def take_terminal(self, theirs: int, ours: Channel) -> None:
        """Give the next worker a controlling terminal; what appears there belongs to the block that runs."""
        self._terminal = ours
        self._reader.watch(ours)
        self.control.command("terminal 1", [theirs])

    def leave_terminal(self) -> None:
        """Take it away again: nothing can ask anybody any more."""
        self._terminal = None
        self.control.command("terminal 0")

    def retire(self, farewell: bytes) -> None:
        """Have the worker end by itself, at a word that it understands; the next block gets a new one."""
        self._write(farewell)
        if not self.ended.wait(KILL_AFTER):
            self.control.say("kill")
            self.ended.wait()

    # -- what the reader's thread calls ------------------------------------------------------------------------

    def tend(self) -> float | None:
        """Do what is due. Returns the seconds until more is due, or None."""
        raise NotImplementedError

    def received(self, frame: Frame) -> None:
        """The worker says something."""
        raise NotImplementedError

    def worker_exited(self, code: int) -> None:
        """It has ended: take its last words."""
        raise NotImplementedError

    def worker_gone(self, code: int) -> None:
        """It has ended, and there are no more words."""
        raise NotImplementedError


def new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="interpreter-", dir=memory_folder()))


def memory_folder() -> str | None:
    """Where files are held in memory and for this user, so that a session's state touches no disk; or None."""
    for path in (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm"):
        if path and os.access(path, os.W_OK | os.X_OK):
            return path
    return None
