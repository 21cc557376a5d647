"""A session's processes on the host's side: start them, in a sandbox or not, and end them."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import socket
import subprocess
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from interpreter.errors import SessionStartError
from interpreter.runtimes.block import KILL_AFTER, Block, Channel, Channels, Clock, Spool
from interpreter.runtimes.calls import Calls
from interpreter.runtimes.context import nearest_folder
from interpreter.runtimes.launch import HELD, Launch, Start, path_of
from interpreter.runtimes.protocol import (
    Control,
    Data,
    Frame,
    Reader,
    Startup,
    encode,
)
from interpreter.runtimes.snapshots import Snapshots

if TYPE_CHECKING:
    from interpreter.runtimes.protocol import Control


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


SIGINT = 2
ASKING = ("input_request", "call_asks")
PRESS_GAP = 0.03  # seconds between two signals: a program that gets nothing but signals does nothing else
REMEMBERED_BLOCKS = 32  # finished blocks whose late output still finds its place


class Runtime(Processes):
    """A worker process that keeps its state from block to block."""

    def __init__(self, launch: Launch, name: str) -> None:
        super().__init__(launch, name)
        self.questions = Questions(self)
        self.calls = Calls(self)
        self.snapshots = Snapshots(self)

    # -- blocks ----------------------------------------------------------------------------------------------

    def run(
        self,
        code: str,
        channels: Channels | None = None,
        fields: Frame | None = None,
        timeout: float | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Iterator[Frame]:
        """Run a block and yield its events; the last one is `done`, `exited` or `detached`.

        Leaving the iteration early interrupts the block and waits until it has ended. `stopped` says whether to
        interrupt the block as soon as it has begun.
        """
        self.settle(self.block)
        block = self.begin(code, channels or Channels(), fields or {}, timeout)
        if stopped():
            self.interrupt()
        try:
            yield from self.events(block)
        finally:
            self.leave(block)

    def have_worker(self) -> None:
        """Start what is not there, or not any more."""
        if self._process is not None and (self.control.lost or self._process.poll() is not None):
            self._wait_for_end()
            self._reader.stop()
            self.snapshots.states.clear()
        if self._process is None:
            self.start()
        elif not self._alive:
            self.spawn()

    def begin(
        self,
        code: str,
        channels: Channels,
        fields: Frame,
        timeout: float | None = None,
        snapshot: tuple[int, int] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> Block:
        """Start a block. The one before must have ended.

        `snapshot` is the number of the present state and how many states to keep; that state can then be restored.
        `on_end` is called once, in the thread that ends the block or moves it to the background. It must not wait.
        """
        self.have_worker()
        number = self.block.number + 1 if self.block else 1
        block = Block(number, code, Spool(self.launch.outputs), Clock(timeout, self._pid_here))
        block.tend, block.on_end = self.tend, on_end
        with self._ending:
            self.block = self._blocks[number] = block
            is_gone = not self._alive  # since just now: whoever noticed that knew nothing of this block
        self._lend_terminal(channels)
        self.control.wait()  # an interrupt on its way is for the block before
        if self._terminal:
            self._terminal.block = block
        while len(self._blocks) > REMEMBERED_BLOCKS:
            self._forget_oldest()
        block.held = channels.held
        for fd, name in channels.reads:
            channel = Channel(block, fd, name, channels.plain)
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
        if is_gone:
            self.ended.wait()
            self._tell_exit(block)
        if timeout is not None:
            self._reader.wake()
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

    def events(self, block: Block) -> Iterator[Frame]:
        """The events of a block, while it runs or later. The last one is `done`, `exited` or `detached`.

        On KeyboardInterrupt the block is interrupted, the remaining events still come, and then it is raised again.
        """
        struck = False
        handled: Frame | None = None
        while True:
            try:
                if handled is not None:
                    block.advance(handled)
                event = block.peek()
            except KeyboardInterrupt:
                struck = True
                self.interrupt()
                continue
            if event is block.last:
                break
            if block.last is None or event["event"] not in ASKING:  # a block that has ended needs no answers
                yield event
            handled = event
        yield event
        if struck:
            raise KeyboardInterrupt

    def _escalate(self, block: Block, clock: Clock) -> None:
        match clock.stage:
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
            case "pressed" if clock.is_merciful():
                self._signal(block)
                return
            case "pressed":
                clock.why = clock.why if clock.why == "timed_out" else "killed"
                self.control.say("kill")
        clock.advance()

    def _pid_here(self) -> int | None:
        """The worker's number; in a sandbox, processes have others."""
        return self.pid if self.launch.containment is None else None

    def settle(self, block: Block | None) -> None:
        """Interrupt a block that still runs, and wait for its end. Its consumer can still read all its events."""
        if block is None or block.finished or not block.attached:
            return
        block.stop_waiting()
        self.interrupt()
        if not self.is_reading:
            block.ended.wait()

    @property
    def is_reading(self) -> bool:
        """Whether this is the reader thread. It can finalise an abandoned generator, but not wait for itself."""
        return self._reader.is_current

    def leave(self, block: Block) -> None:
        """The consumer leaves: end the block and drop its events."""
        self.settle(block)
        if block.finished:
            block.forget_events()  # late output goes to the spool

    def interrupt(self) -> None:
        """Ask the running block to end, as Ctrl-C does; from any thread."""
        block = self.block
        if block is not None and not block.finished and block.attached:
            block.interrupt()
            self._reader.wake()
            if block.may_be_pressed(PRESS_GAP):
                self._signal(block)

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
            block.end({"event": "detached", "why": block.clock.why})

    def close(self) -> None:
        """End the worker and every process that came from it; nobody answers its calls any more."""
        self.calls.nobody_there()
        super().close()
        if self.block is not None:  # tell its consumer
            self.block.end({"event": "exited", "code": -9, "startup": "", "why": self.block.clock.why})

    # -- between blocks --------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a block is running, or the worker is not ready for any."""
        return self.ready is None or not self._alive or (self.block is not None and not self.block.finished)

    def query(self, frame: Frame, patience: float) -> Frame | None:
        """What the driver says to a question; None if it is busy, or does not answer in time."""
        return self.questions.put(frame, patience)

    # -- what the reader's thread calls ------------------------------------------------------------------------

    def tend(self) -> float | None:
        """Climb the ladder of `Clock` for a block that must end. This does not depend on its consumer."""
        block = self.block
        if block is None or block.finished or not block.attached:
            return None
        clock = block.clock
        if block.interrupted:
            clock.interrupted()
        while (left := clock.remaining()) == 0:
            self._escalate(block, clock)
        return left

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
        why = block.clock.why or ("interrupted" if block.interrupted else None)
        block.end({**frame, "why": why})

    def worker_exited(self, code: int) -> None:
        self._data.drain()
        self._startup.drain()
        self.worker_gone(code)

    def worker_gone(self, code: int) -> None:
        with self._ending:
            if not self._alive:
                return  # its end has been noticed already
            self._alive, self.exit_code = False, code
            block = self.block
        if block is not None and not block.finished:
            self._tell_exit(block)
        self.snapshots.worker_exited()
        self.questions.give_up()
        self.ended.set()

    def _tell_exit(self, block: Block) -> None:
        startup = "" if self.ready else self._startup.text() or self._refused()
        self._finish(block, {"event": "exited", "code": self.exit_code, "startup": startup})


class Questions:
    """What a session's worker is asked."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._asking = threading.Lock()
        self._number = 0  # of the newest one
        self._answer: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()  # to that one

    def put(self, frame: Frame, patience: float, fds: list[int] | None = None) -> Frame | None:
        """What the driver says; None if it is busy, does not answer in time, or is gone."""
        runtime = self._runtime
        with self._asking:
            if runtime.busy:
                return None
            answer = self._send(frame, fds)
            with contextlib.suppress(queue.Empty):
                return answer.get(timeout=patience)
            if not runtime.busy and runtime.launch.dialect is None and not runtime.launch.interrupt_frames:
                runtime.control.command(f"nudge {SIGINT}")  # it is caught in some __repr__ of the user's
            with contextlib.suppress(queue.Empty):
                return answer.get(timeout=patience / 3)
            return None

    def put_early(self, frame: Frame, patience: float) -> Frame | None:
        """The same to a worker that may still be starting."""
        with self._asking, contextlib.suppress(queue.Empty):
            return self._send(frame).get(timeout=patience)
        return None

    def _send(self, frame: Frame, fds: list[int] | None = None) -> queue.SimpleQueue[Frame | None]:
        self._number += 1
        self._answer = answer = queue.SimpleQueue[Frame | None]()
        self._runtime.send({**frame, "query": self._number}, fds)
        if not self._runtime.alive:  # since before there was this question to give up
            answer.put(None)
        return answer

    def answered(self, frame: Frame) -> None:
        """For the reader's thread: an answer, maybe to a question that nobody waits for any more."""
        if frame.get("query") == self._number:
            self._answer.put(frame)

    def give_up(self) -> None:
        """For the reader's thread: the worker is gone, and nobody need wait for it."""
        self._answer.put(None)


class SplitOff:
    """Stands where a process would: it is no child of ours, so its line says whether it is there."""

    def __init__(self, control: Control, origin: Processes) -> None:
        self._control, self._origin = control, origin
        origin.parts.add(self)

    def poll(self) -> int | None:
        return 0 if self._control.lost else None

    def wait(self, timeout: float | None = None) -> int:
        self._control.over.wait()
        self._origin.part_ended(self)
        return 0

    def kill(self) -> None:
        """It ends by itself as soon as what it waits for does."""
        self._control.over.set()
