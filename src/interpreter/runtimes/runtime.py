"""The host's side of one live language process: start it, run and interrupt blocks, query it between them, end it."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from interpreter.errors import RuntimeStartError
from interpreter.host.files import remove
from interpreter.runtimes.block import KILL_AFTER, Channels, Clock, OutputChannel, RunningBlock, Spool, clock_ticks
from interpreter.runtimes.calls import HARMLESS, Calls
from interpreter.runtimes.launch import HELD, Launch, Start, WarmParent, nearest_folder, path_of, warm_parent
from interpreter.runtimes.protocol import BadFrame, Control, Data, Frame, OutputReader, encode
from interpreter.runtimes.snapshots import Snapshots

SUPERVISOR = Path(__file__).with_name("supervisor.py")
END_TIMEOUT = 5.0  # seconds for all processes of a runtime to end
SOCKET_BUFFER = 1024 * 1024
SEND_TIMEOUT = 5  # seconds that a worker may leave sent data unread
SIGINT = int(signal.SIGINT)
PRESS_GAP = 0.03  # seconds between two signals: a program under constant signals makes no progress
REMEMBERED_BLOCKS = 32  # finished blocks that can still get late output

# The connections to a worker, its ready frame, and its pid.
Worker = tuple[Data, OutputChannel, "Frame | None", "int | None"]


class SplitOff:
    """A supervisor that another process forked, in place of a `subprocess.Popen`.

    Its runtime began as a copy of another one, or came from a warm parent.

    It is not our child process, so its connection shows whether it is alive.
    """

    def __init__(self, control: Control, origin: Runtime | None = None) -> None:
        self._control, self._origin = control, origin
        if origin is not None:
            origin.parts.add(self)

    def poll(self) -> int | None:
        return 0 if self._control.lost else None

    def wait(self, timeout: float | None = None) -> int:
        self._control.over.wait()
        if self._origin is not None:
            self._origin.part_ended(self)
        return 0

    def kill(self) -> None:
        """Kill nothing: the process ends together with the runtime that it waits for."""
        self._control.over.set()


class Runtime:
    """A worker process under its own supervisor, which keeps its state from block to block."""

    def __init__(self, launch: Launch, name: str) -> None:
        self.launch, self.name, self.host = launch, name, os.getpid()
        self._has_worker = False  # by the last report of the supervisor
        self.ready: Frame | None = None  # the worker's `ready` frame
        self.pid: int | None = None
        self.exit_code: int | None = None  # the exit code of the last worker that ended
        self.ended = threading.Event()  # set when the worker has ended
        self.block: RunningBlock | None = None  # the newest block
        self.inherits = False  # whether it began with the variables of another one
        self.first: Runtime = self  # the origin of the chain that it split off from; or itself
        self.parts: set[SplitOff] = set()  # runtimes that split off from this one
        self.next_number = 1 + random_number(2)  # the next block's number, which code of earlier blocks cannot guess
        self.calls = Calls(name, launch.containment, self.send)
        self.snapshots = Snapshots(self)
        self._blocks: OrderedDict[int, RunningBlock] = OrderedDict()
        self._ending = threading.Lock()  # held to record that the worker is ready or has ended, and to begin a block
        self._writing = threading.Lock()
        self._folder: Path | None = None
        self._terminal: OutputChannel | None = None
        self._process: subprocess.Popen[bytes] | SplitOff | None = None
        self._staying: subprocess.Popen[bytes] | SplitOff | None = None  # closed, but split-off runtimes need it
        self._refusal: IO[bytes] | None = None  # the errors of a sandbox that could not be made
        self._parent: WarmParent | None = None  # the process that forked the supervisor
        self._rejection = ""  # why the worker's messages were rejected, if it was ended for that
        self._querying = threading.Lock()
        self._query = 0  # the number of the newest query
        self._answer: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()  # the answer to that query

    # -- processes -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the supervisor and a worker. Returns before the worker is ready."""
        ours, theirs = socket.socketpair()
        cwd = nearest_folder(self.launch.cwd) if self.launch.cwd is not None else None
        self._parent = warm_parent(self.launch)
        if self._parent is not None and self._parent.fork(self.launch, cwd, theirs.fileno()):
            theirs.close()
            self._listen_to(ours)
            self._process = SplitOff(self.control)
            self.spawn()
            return
        argv = [self.launch.python, str(SUPERVISOR), str(theirs.fileno()), *self.launch.worker]
        start = Start(argv, self.launch.env, cwd, [theirs.fileno()])
        try:
            with theirs, contextlib.ExitStack() as sandbox:
                if self.launch.containment is not None:
                    self._folder = self._folder or new_folder()  # what is visible inside must exist first
                    self._forget_refusal()
                    self._refusal = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the start has failed
                    start = sandbox.enter_context(self.launch.containment.wrap(start, self._folder))
                try:
                    self._process = subprocess.Popen(
                        start.argv,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=self._refusal or subprocess.DEVNULL,
                        pass_fds=start.fds,
                        env=start.env,
                        cwd=start.cwd,
                        start_new_session=True,
                    )
                except OSError as error:
                    raise RuntimeStartError(self.name, f"{self.launch.python}: {error.strerror}") from error
        except BaseException:
            ours.close()
            self._forget_refusal()
            if self._folder is not None and not self._blocks:
                remove(self._folder)
                self._folder = None
            raise
        self._listen_to(ours)
        self.spawn()

    def _forget_refusal(self) -> None:
        if self._refusal is not None:
            self._refusal.close()

    def start_from(self, origin: Runtime, command: str) -> None:
        """Start this runtime from a snapshot, by another runtime's supervisor."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._listen_to(ours)
            self.first, self.inherits = origin.first, True
            self._process = SplitOff(self.control, self.first)
            self.spawn(command, origin.control, [theirs.fileno()])

    def _listen_to(self, supervisor: socket.socket) -> None:
        self.control = Control(supervisor, self._supervisor_said, self._supervisor_ended)
        self.reader = OutputReader(f"{self.name} session", self.tend)
        self.reader.watch(self.control)
        if self._folder is not None:
            self.control.say(f"folder {self._folder}")

    def spawn(self, command: str = "spawn", by: Control | None = None, more: Sequence[int] = ()) -> None:
        """Fork a worker with a fresh data socket in the supervisor, or give the socket to a snapshot."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER)
        self._has_worker, self.ready, self.exit_code, self.pid, self._rejection = True, None, None, None, ""
        self.ended.clear()
        self._data = Data(ours, self._received, self._reject)
        startup, writer = os.pipe()
        # The worker's own output: before it is ready, the reason why it cannot start; then it belongs to the block.
        self._startup = OutputChannel(None, startup, "stderr")
        self.reader.watch(self._data)
        self.reader.watch(self._startup)
        null = os.open(os.devnull, os.O_RDWR)
        try:
            (by or self.control).say(command, [*more, theirs.fileno(), null, writer, writer])
        finally:
            theirs.close()
            os.close(null)
            os.close(writer)
        if self.launch.dialect:
            self._write(self.launch.dialect.greet(self.folder))
        if self.control.lost:
            self._worker_gone(-9)  # the supervisor may have ended before there was a worker

    def worker(self) -> Worker:
        """Return the present worker, for `restore_worker`."""
        return self._data, self._startup, self.ready, self.pid

    def restore_worker(self, worker: Worker | None) -> None:
        """Continue with the previous worker, if any, because no new one started."""
        self._has_worker = worker is not None and not self.control.lost
        if worker is not None:
            self._data, self._startup, self.ready, self.pid = worker

    def have_worker(self) -> None:
        process = self._process
        if process is not None and (self.control.lost or process.poll() is not None):
            try:
                process.wait(END_TIMEOUT)  # the connection is closed, so it ends, or it is no longer ours
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._process = None
            self.reader.stop()
            self.snapshots.states.clear()
        if self._process is None:
            self.start()
        elif not self.alive:
            self.spawn()

    @property
    def alive(self) -> bool:
        """Check whether a worker is running, by the last report of the supervisor, with which it ends."""
        return self._has_worker and not self.control.lost

    @property
    def is_open(self) -> bool:
        return self._process is not None

    @property
    def folder(self) -> Path:
        """Return a private folder that is deleted with the runtime."""
        if self._folder is None:
            self._folder = new_folder()
            self.control.say(f"folder {self._folder}")
        return self._folder

    def close(self) -> None:
        """End the worker and all its descendants; its calls get no answers."""
        self.calls.abandon()
        if self._process is not None:
            process, self._process = self._process, None
            for block in self._blocks.values():
                block.detach()
            with contextlib.suppress(OSError):
                self.control.socket.shutdown(socket.SHUT_WR)
            if not self.control.over.wait(END_TIMEOUT):
                process.kill()  # a process could not be killed, such as one running as another user
            if self.control.stays:
                self._staying = process
            else:
                process.wait()
            self.reader.stop()
            self._has_worker = False
            self._forget_refusal()
            for block in self._blocks.values():
                block.finished = True
                block.release_held()
                block.spool.close()
            if self._folder is not None:
                remove(self._folder)
        if self.block is not None:  # so that its consumer learns of it
            self.block.end(
                {"event": "exited", "code": -9, "how": how_it_ended(-9), "startup": "", "why": self.block.clock.why}
            )

    def part_ended(self, part: SplitOff) -> None:
        """Remove a runtime that split off and has ended. The last one also ends a supervisor that stayed for them."""
        self.parts.discard(part)
        if self._staying is not None and not self.parts:
            self._staying.wait()
            self._staying = None

    def send(self, frame: Frame, fds: list[int] | None = None) -> None:
        """Send a frame to the driver. A missing worker is detected by its exit, not here."""
        dialect = self.launch.dialect
        self._write(dialect.encode(frame, self.folder) if dialect else encode(frame), fds)

    def _write(self, data: bytes, fds: list[int] | None = None) -> None:
        with self._writing, contextlib.suppress(OSError):
            try:
                sent = socket.send_fds(self._data.socket, [data], fds) if fds else 0
                self._data.socket.sendall(data[sent:])
            except BlockingIOError:
                self._reject(self._data, "more than it reads")

    def set_terminal(self, ours: OutputChannel | None, theirs: list[int]) -> None:
        """Give the next worker a controlling terminal, or none; output there belongs to the running block."""
        self._terminal = ours
        if ours is not None:
            self.reader.watch(ours)
        self.control.command(f"terminal {len(theirs)}", theirs)

    def retire(self, farewell: bytes) -> None:
        """End a worker with a message; the next block gets a new one."""
        if self.alive:
            self._write(farewell)
            if not self.ended.wait(KILL_AFTER):
                self.control.say("kill")
                self.ended.wait()

    # -- blocks --------------------------------------------------------------------------------------------------

    def begin(
        self,
        code: str,
        channels: Channels,
        fields: Frame,
        timeout: float | None = None,
        snapshot: tuple[int, int] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> RunningBlock:
        """Start a block. The one before must have ended.

        `snapshot` is the number of the present state and how many states to keep; that state can then be restored.
        `on_end` is called once, in the thread that ends the block or moves it to the background. It must not wait.
        """
        self.have_worker()
        contained = self.launch.containment is not None
        with self._ending:
            # Inside a sandbox, processes have other numbers.
            block = self._add_block(code, Clock(timeout, lambda: None if contained else self.pid))
            block.tend, block.on_end = self.tend, on_end
            if self.ready is not None:
                self._startup.block = block
            is_gone = not self._has_worker  # it ended just now, and that did not end the new block
        if contained and "tty" in channels.fields:  # a sandbox hides the terminals of this machine
            self.control.command("hold", channels.held)
            channels.fields["tty"] = path_of(HELD)
        self.control.wait()  # a pending interrupt is for the previous block
        if self._terminal:
            self._terminal.block = block
        while len(self._blocks) > REMEMBERED_BLOCKS:
            ended = (number for number, each in self._blocks.items() if not each.running)
            self._blocks.pop(next(ended, next(iter(self._blocks)))).spool.close()
        block.held = channels.held
        for fd, name in channels.reads:
            channel = OutputChannel(block, fd, name, channels.plain)
            channel.before = self._terminal  # show the echo of a key before its effect
            block.channels.append(channel)
            self.reader.watch(channel)
        frame = {"op": "run", "block": block.number, "code": code, **channels.fields, **fields}
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
            self._report_exit(block)
        if timeout is not None:
            self.reader.wake()
        return block

    def _add_block(self, code: str, clock: Clock | None = None) -> RunningBlock:
        block = RunningBlock(self.next_number, code, Spool(self.launch.outputs), clock)
        self.next_number += 1 + random_number(2)
        self.block = self._blocks[block.number] = block
        return block

    def add_finished(self, code: str) -> RunningBlock:
        """Register a block that ran elsewhere as this runtime's newest."""
        block = self._add_block(code)
        block.finished = True
        block.detach()
        return block

    @property
    def has_finished_block(self) -> bool:
        return self.block is not None and (self.block.finished or len(self._blocks) > 1)

    @property
    def is_running_block(self) -> bool:
        """Check whether a block is running, attached or not."""
        return self.block is not None and not self.block.finished

    def _attached(self) -> RunningBlock | None:
        """Return the block that is running for a consumer, if any."""
        block = self.block
        return block if block is not None and not block.finished and block.attached else None

    def settle(self, block: RunningBlock | None) -> None:
        """Interrupt a block that still runs, and wait for its end. Its consumer can still read all its events."""
        if block is None or block.finished or not block.attached:
            return
        block.stop_waiting()
        self.interrupt()
        if not self.reader.is_current:
            block.ended.wait()

    def leave(self, block: RunningBlock) -> None:
        """End the block and drop its events, because the consumer leaves."""
        self.settle(block)
        if block.finished:
            block.forget_events()  # late output goes to the spool

    def interrupt(self) -> None:
        """Ask the running block to end, as Ctrl-C does; from any thread."""
        block = self._attached()
        if block is not None:
            block.interrupt()
            self.calls.abandon()  # it is too late for approvals
            self.reader.wake()
            now = time.monotonic()
            if now - block.pressed >= PRESS_GAP:
                block.pressed = now
                with self._ending:  # else the signal could hit the next block
                    if self.block is block:
                        self._signal(block)

    def _signal(self, block: RunningBlock) -> None:
        if self.launch.interrupt_frames:
            self.send({"op": "interrupt", "block": block.number})
            if self.ready is None:
                return  # it cannot handle a signal yet
        self.control.command(f"signal {SIGINT}")

    def detach(self) -> None:
        """Move the running block to the background: its output goes to its spool from now on."""
        block = self._attached()
        if block is not None:
            block.detach()
            self.calls.abandon()
            block.end({"event": "detached", "why": block.clock.why})

    # -- queries between blocks ----------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Check whether a block is running, or the worker is not ready for one."""
        return self.ready is None or not self.alive or self.is_running_block

    def query(self, frame: Frame, timeout: float, early: bool = False) -> Frame | None:
        """Ask the driver, and return its answer; None if it is busy, does not answer in time, or is gone.

        `early` sends the query even if the worker is still starting.
        """
        with self._querying:
            if self.busy and not early:
                return None
            self._query = random_number(4) >> 1
            self._answer = answer = queue.SimpleQueue[Frame | None]()
            self.send({**frame, "query": self._query})
            if not self.alive:  # it ended before the query was registered
                answer.put(None)
            try:
                with contextlib.suppress(queue.Empty):
                    return answer.get(timeout=timeout)
            except KeyboardInterrupt:
                self.stop_query()
                raise
            if early:
                return None
            self.stop_query()
            with contextlib.suppress(queue.Empty):
                return answer.get(timeout=timeout / 3)
            return None

    def stop_query(self) -> None:
        """Interrupt the code that answers a query, such as a `__repr__` of the user's; from any thread."""
        if not self.busy and self.launch.dialect is None and not self.launch.interrupt_frames:
            self.control.command(f"nudge {SIGINT}")

    # -- called by the reader thread -----------------------------------------------------------------------------

    def tend(self) -> float | None:
        """Take the next step of `Clock` for a block that must end. Returns the seconds until the step after that.

        This does not depend on the block's consumer.
        """
        block = self._attached()
        if block is None:
            return None
        clock = block.clock
        if block.interrupted:
            clock.why = clock.why or "interrupted"
            if clock.stage == "running":  # a second interrupt does not postpone the next step
                clock.advance()
        while (left := clock.remaining()) == 0:
            match clock.stage:
                case "running":
                    clock.why = "timed_out"
                    self.interrupt()
                case "asked" if self.ready is None and self.launch.dialect is None and clock.may_still_start():
                    continue  # a slow start on a busy machine does not mean stuck code
                case "asked":
                    self.control.say(f"sweep {block.started}")
                    self._signal(block)
                case "swept":
                    self._signal(block)
                case "pressed" if clock.in_grace_period():
                    self._signal(block)
                    continue
                case "pressed":
                    clock.why = clock.why if clock.why == "timed_out" else "killed"
                    self.control.say("kill")
            clock.advance()
        return left

    def _received(self, data: Data, frame: Frame) -> None:
        """Handle a frame that follows the schema, from the worker or an earlier one.

        BadFrame if it makes no sense now.
        """
        if data is not self._data and frame["event"] != "stream":
            return
        block = self._blocks.get(frame.get("block") or 0)
        match frame["event"]:
            case "ready":
                if self.ready is not None:
                    raise BadFrame("a second `ready`")
                # The reader thread answers, too: a worker that makes calls and reads no replies must not block it.
                data.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_TIMEOUT, 0))
                frame = {**frame, "lost": frame.get("lost") or [], "unknown_threads": frame.get("unknown_threads") or 0}
                with self._ending:
                    self.ready, self._startup.block = frame, self.block
                    if self.block is not None:
                        self.block.started = clock_ticks()  # processes started until now belong to the worker
                self.snapshots.woken.put(frame)
            case "answer":
                if frame["query"] == self._query:  # no one waits for an older query
                    self._answer.put(frame)
            case "done" | "input_request" | "call" as event if block is None and frame.get("how") not in HARMLESS:
                raise BadFrame(f"`{event}` for a block that it is not running")
            case "sync":
                if self.block:
                    self.block.drain_channels()
                self.send({"op": "synced"})
            case "turn":
                self.send({"op": "turn"})
            case "call":
                self.calls.made(frame, block)
            case "call_off":
                self.calls.called_off(frame["call"])
            case "done" if block is not None and not block.finished:
                self._finish(block, frame)
            case event if block is not None and (event == "stream" or not block.finished):
                block.put(frame)

    def _finish(self, block: RunningBlock, frame: Frame) -> None:
        if self._terminal:
            self._terminal.drain()
        block.drain_channels()
        self.calls.block_over(block)
        block.finished = True
        block.release_held()
        if self.launch.containment is not None and self.launch.dialect is not None:
            self.control.say("drop")  # else the block's terminal would never reach its end
        why = block.clock.why or ("interrupted" if block.interrupted else None)
        block.end({**frame, "why": why})

    def _supervisor_said(self, answer: list[str]) -> None:
        match answer:
            case ["spawned", pid]:
                self.pid = int(pid)
            case ["exited", pid, code] if int(pid) == self.pid:
                self._worker_exited(int(code))
            case ["gone", state]:
                self.snapshots.states.discard(int(state))
            case ["left" | "promoted" | "missing" | "settled" as what, *words]:
                self.snapshots.changes.put((what, words))
            case ["staying"] if self.first.parts:  # they need it
                self.control.stays = True
                self._supervisor_gone()  # a wrapper process may hold the connection open

    def _supervisor_ended(self) -> None:
        self._supervisor_gone()
        if self._has_worker:
            if self.pid is not None and self._process is not None and self.launch.containment is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):  # in a sandbox, the kernel kills it
                    os.killpg(self.pid, signal.SIGKILL)
            self._worker_exited(-9)

    def _supervisor_gone(self) -> None:
        self.control.give_up()
        self.snapshots.changes.put(("missing", []))

    def _worker_exited(self, code: int) -> None:
        self._data.drain()
        self._data.over = True
        self._startup.drain()
        self._worker_gone(code)

    def _worker_gone(self, code: int) -> None:
        with self._ending:
            if not self._has_worker:
                return  # its end has been handled already
            self._has_worker, self.exit_code = False, code
            block = self.block
        if block is not None and not block.finished:
            self._report_exit(block)
        self.snapshots.woken.put({})
        self._answer.put(None)
        self.ended.set()

    @property
    def how_ended(self) -> str:
        """Say in a few words why the last worker ended."""
        return f"it sent {self._rejection}" if self._rejection else how_it_ended(self.exit_code or 0)

    def _reject(self, data: Data, what: str) -> None:
        """End a worker because it, or code that found its connection, broke the protocol."""
        if data is self._data:
            self._rejection = what
            self.control.say("kill")

    def _report_exit(self, block: RunningBlock) -> None:
        startup = "" if self.ready else self._startup.early
        if not self.ready and not startup and self._refusal is not None:
            self._refusal.seek(0)
            startup = self._refusal.read(4096).decode("utf-8", "replace")
        if not self.ready and not startup and self._parent is not None:
            startup = self._parent.last_words()
        self._finish(block, {"event": "exited", "code": self.exit_code, "how": self.how_ended, "startup": startup})


def random_number(size: int) -> int:
    return int.from_bytes(os.urandom(size), "little")


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def new_folder() -> Path:
    """Create a private folder, in memory if possible, so that a runtime's state touches no disk."""
    for path in (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm"):
        if path and os.access(path, os.W_OK | os.X_OK):
            return Path(tempfile.mkdtemp(prefix="interpreter-", dir=path))
    return Path(tempfile.mkdtemp(prefix="interpreter-"))
