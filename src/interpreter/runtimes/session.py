"""The host's side of a live session: run blocks in it, interrupt them, ask it between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from interpreter.runtimes.block import (
    Block,
    Channel,
    Channels,
)
from interpreter.runtimes.calls import Calls
from interpreter.runtimes.clock import Clock
from interpreter.runtimes.containment import HELD, path_of
from interpreter.runtimes.frames import Frame
from interpreter.runtimes.launch import Launch
from interpreter.runtimes.processes import Processes
from interpreter.runtimes.questions import Questions
from interpreter.runtimes.snapshots import Snapshots
from interpreter.runtimes.spool import Spool

SIGINT = 2
ASKING = ("input_request", "call_asks")
PRESS_GAP = 0.03  # seconds between two signals: a program that gets nothing but signals does nothing else
REMEMBERED_BLOCKS = 32  # finished blocks whose late output still finds its place


class Session(Processes):
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
