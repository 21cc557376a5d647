"""The host's side of a live session: start it, run blocks in it, interrupt it, end it."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from interpreter.errors import SessionStartError
from interpreter.languages.block import Block, Channel, Channels
from interpreter.languages.calls import Calls
from interpreter.languages.clock import KILL_AFTER, Clock
from interpreter.languages.containment import HELD, Containment, Start, path_of
from interpreter.languages.frames import Frame, encode
from interpreter.languages.lines import Control, Data, Startup
from interpreter.languages.questions import Questions
from interpreter.languages.reader import Reader
from interpreter.languages.snapshots import Snapshots
from interpreter.languages.split_off import SplitOff
from interpreter.languages.spool import Spool, outputs_folder

SUPERVISOR = Path(__file__).with_name("supervisor.py")
SIGINT = 2
PRESS_GAP = 0.03  # seconds between two signals: a program that gets nothing but signals does nothing else
ENDING = 5.0  # seconds for all processes of a session to end
REMEMBERED_BLOCKS = 32  # finished blocks whose late output still finds its place
SOCKET_BUFFER = 1024 * 1024


class Dialect(Protocol):
    """How to talk to a worker that does not read JSON; its own frames are JSON lines all the same."""

    def greet(self, folder: Path) -> bytes:
        """The first words to a new worker."""

    def encode(self, frame: Frame, folder: Path) -> bytes:
        """A frame in the worker's own words; the folder is the session's, for files that go along."""


Lines = tuple[Data, Startup, "Frame | None", "int | None"]


@dataclass(frozen=True)
class Launch:
    """How a session's processes are started."""

    # ["driver", path]: a file run in the supervisor's Python; ["exec", program, ...]: a program that gets the data
    # socket's number for {data}; ["stdin", program, ...]: a program whose standard input is the data socket
    worker: list[str]
    dialect: Dialect | None = None
    interrupt_frames: bool = False  # for a driver that cannot notice a signal while it is busy
    python: str = sys.executable  # runs the supervisor
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: str | None = None
    containment: Containment | None = None

    def outputs(self) -> Path:
        """Where long outputs are kept."""
        return self.containment.outputs if self.containment else outputs_folder()


class Session:
    """A worker process that keeps its state from block to block, under a supervisor of its own."""

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
        self.ended = threading.Event()  # the worker has
        self._writing = threading.Lock()
        self.questions = Questions(self)
        self.calls = Calls(self)
        self.snapshots = Snapshots(self)
        self.inherits = False  # it began with the variables of another one
        self._first: Session | None = None  # that this one split off from
        self.parts: set[SplitOff] = set()  # what split off from this one
        self._process: subprocess.Popen[bytes] | SplitOff | None = None
        self._staying: subprocess.Popen[bytes] | SplitOff | None = None  # it has ended, and waits for those
        self._refusal: IO[bytes] | None = None  # what a sandbox says that cannot be made

    # -- life ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the supervisor and a worker; returns before the worker is ready."""
        ours, theirs = socket.socketpair()
        argv = [self.launch.python, str(SUPERVISOR), str(theirs.fileno()), *self.launch.worker]
        plain = Start(argv, self.launch.env, nearest_folder(self.launch.cwd), [theirs.fileno()])
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

    def start_from(self, origin: Session, command: str) -> None:
        """Have another session's supervisor begin this one from a snapshot."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._listen_to(ours)
            self._first, self.inherits = origin.first, True
            self._process = SplitOff(self.control, self._first)
            self.spawn(command, origin.control, [theirs.fileno()])

    def _listen_to(self, supervisor: socket.socket) -> None:
        self.control = Control(self, supervisor)
        self._reader = Reader(f"{self.name} session")
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

    def lines(self) -> Lines:
        """The lines to the present worker, and what it is."""
        return self._data, self._startup, self.ready, self.pid

    def take_back(self, lines: Lines | None) -> None:
        """There is no new worker after all: there is still the one that was, if any."""
        self._alive = lines is not None
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
        self.calls.nobody_there()
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

    @property
    def first(self) -> Session:
        """The session that this one, and maybe others before it, split off from; or itself."""
        return self._first or self

    def part_ended(self, part: SplitOff) -> None:
        """A session that split off from this one is over; with the last one, a supervisor that stayed for them is."""
        self.parts.discard(part)
        if self._staying is not None and not self.parts:
            self._staying.wait()
            self._staying = None

    # -- blocks ----------------------------------------------------------------------------------------------

    def run(
        self,
        code: str,
        channels: Channels | None = None,
        fields: Frame | None = None,
        timeout: float | None = None,
        stopped: Callable[[], bool] = lambda: False,
        snapshot: tuple[int, int] | None = None,
    ) -> Iterator[Frame]:
        """Run a block and yield its events; the last one is `done`, `exited` or `detached`.

        With `snapshot`, the number of the present state and how many to keep, that state can be returned to.

        Leaving the iteration early interrupts the block and waits until it has ended. After an interrupt by
        KeyboardInterrupt in this thread the remaining events still come, then KeyboardInterrupt is raised.
        `stopped` tells whether somebody said stop before there was a block to interrupt.
        """
        self._settle(self.block)
        block = self._begin(code, channels or Channels(), fields or {}, snapshot)
        if stopped():
            self.interrupt()
        try:
            yield from self._events(block, timeout)
        finally:
            self._settle(block)
            if block.finished:
                block.let_go()  # late output is for the spool: nobody takes it from the queue

    def have_worker(self) -> None:
        """Start what is not there, or not any more."""
        if self._process is not None and (self.control.lost or self._process.poll() is not None):
            self._process.wait()
            self._process = None
            self._reader.stop()
            self.snapshots.states.clear()
        if self._process is None:
            self.start()
        elif not self._alive:
            self.spawn()

    def _begin(self, code: str, channels: Channels, fields: Frame, snapshot: tuple[int, int] | None) -> Block:
        self.have_worker()
        number = self.block.number + 1 if self.block else 1
        block = Block(number, code, Spool(self.launch.outputs()))
        self.block = self._blocks[number] = block
        self._lend_terminal(channels)
        self.control.wait()  # an interrupt on its way is for the block before
        if self._terminal:
            self._terminal.block = block
        while len(self._blocks) > REMEMBERED_BLOCKS:
            self._forget_oldest()
        block.held = channels.held
        for fd, name in channels.reads:
            channel = Channel(block, fd, name)
            channel.before = self._terminal  # the echo of a key before what it led to
            block.channels.append(channel)
            self._reader.watch(channel)
        frame = {"op": "run", "block": number, "code": code, **channels.fields, **fields}
        sends = channels.sends
        if snapshot is not None:
            sends = [*sends, self.snapshots.expect(*snapshot)]
            frame["snapshot"] = True
        try:
            self.send(frame, sends)
        finally:
            for fd in sends:
                os.close(fd)
        return block

    def _lend_terminal(self, channels: Channels) -> None:
        """In a sandbox the terminals of this machine are not seen: the supervisor holds the block's own for it."""
        if self.launch.containment is not None and "tty" in channels.fields:
            self.control.command("hold", channels.held)
            channels.fields["tty"] = path_of(HELD)

    def _forget_oldest(self) -> None:
        oldest = next((block for block in self._blocks.values() if not block.running), None)
        if oldest is None:
            oldest = next(iter(self._blocks.values()))
        del self._blocks[oldest.number]
        oldest.spool.close()

    def _events(self, block: Block, timeout: float | None) -> Iterator[Frame]:
        clock = Clock(timeout)
        raised = False
        while True:
            if clock.remaining() == 0:  # also while there is always something to read
                self._escalate(block, clock)
            try:
                event = block.get(clock.remaining())
            except queue.Empty:
                continue
            except KeyboardInterrupt:
                raised = True
                self.interrupt()
                continue
            match event["event"]:
                case "interrupt":
                    clock.interrupted()
                    continue
                case "done" | "exited" | "detached":
                    yield {**event, "why": clock.why}
                    break
            yield event
        if raised:
            raise KeyboardInterrupt

    def _escalate(self, block: Block, clock: Clock) -> None:
        stage = "finished" if block.finished else clock.stage  # its last words may still be on their way
        match stage:
            case "running":
                clock.why = "timed_out"
                self.interrupt()
            case "asked" if self.ready is None and self.launch.dialect is None and clock.is_patient():
                return  # it is still starting: a busy machine is no stuck code
            case "asked":
                self.control.say(f"sweep {block.started}")
                self._signal(block)
            case "swept":
                self._signal(block)
            case "pressed":
                clock.why = clock.why if clock.why == "timed_out" else "killed"
                self.control.say("kill")
        clock.advance()

    def _settle(self, block: Block | None) -> None:
        """See to it that a block has ended, whether or not anybody still listens."""
        if block is None or block.finished or not block.attached:
            return
        self.interrupt()
        with contextlib.suppress(KeyboardInterrupt):
            for _ in self._events(block, None):
                pass  # its output is in the spool

    def interrupt(self) -> None:
        """Ask the running block to end, as Ctrl-C does; from any thread."""
        block = self.block
        if block is not None and not block.finished and block.attached and block.may_be_pressed(PRESS_GAP):
            self._signal(block)
            block.nudge({"event": "interrupt"})

    def _signal(self, block: Block) -> None:
        if self.launch.interrupt_frames:
            self.send({"op": "interrupt", "block": block.number})
            if self.ready is None:
                return  # it could not catch a signal yet
        self.control.command(f"signal {SIGINT}")

    def detach(self) -> None:
        """Leave the running block to itself: its output goes to its spool from now on."""
        block = self.block
        if block is not None and not block.finished and block.attached:
            block.let_go()
            self.calls.nobody_there()
            block.nudge({"event": "detached"})

    # -- between blocks --------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a block is running, or the worker is not ready for any."""
        return self.ready is None or not self._alive or (self.block is not None and not self.block.finished)

    def query(self, frame: Frame, patience: float) -> Frame | None:
        """What the driver says to a question; None if it is busy, or does not answer in time."""
        return self.questions.put(frame, patience)

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

    def received(self, frame: Frame) -> None:
        match frame["event"]:
            case "ready":
                self.ready = frame
                self.snapshots.worker_ready(frame)
                return
            case "answer":
                self.questions.answered(frame)
                return
            case "sync":
                if self.block:
                    self.block.drain_channels()
                self.send({"op": "synced"})
                return
            case "turn":
                self.send({"op": "turn"})
                return
            case "call":
                self.calls.made(frame, self._blocks.get(frame.get("block", 0)))
                return
            case "call_off":
                self.calls.called_off(frame["call"])
                return
        block = self._blocks.get(frame.get("block", 0))
        if block is None or (block.finished and frame["event"] != "stream"):
            return
        if frame["event"] == "done":
            self._finish(block, frame)
        else:
            block.put(frame)

    def _finish(self, block: Block, frame: Frame) -> None:
        if self._terminal:
            self._terminal.drain()
        block.drain_channels()
        self.calls.block_over(block)
        block.finished = True
        block.release_held()
        if self.launch.containment is not None and self.launch.dialect is not None:
            self.control.say("drop")  # or the block's terminal would never be at its end
        block.put(frame)

    def worker_exited(self, code: int) -> None:
        self._data.drain()
        self._startup.drain()
        self._alive, self.exit_code = False, code
        block = self.block
        if block is not None and not block.finished:
            startup = "" if self.ready else self._startup.text() or self._refused()
            self._finish(block, {"event": "exited", "code": code, "startup": startup})
        self.snapshots.worker_exited()
        self.ended.set()


def new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="interpreter-", dir=memory_folder()))


def memory_folder() -> str | None:
    """Where files are held in memory and for this user, so that a session's state touches no disk; or None."""
    for path in (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm"):
        if path and os.access(path, os.W_OK | os.X_OK):
            return path
    return None


def nearest_folder(path: str | None) -> str | None:
    """The folder itself, or what is left above it when it was deleted."""
    while path is not None and not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path
