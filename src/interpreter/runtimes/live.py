"""Between two blocks of a live language: the state that it is in, a second one like it, and a look at its variables."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from interpreter.errors import BusyError, NotRestorableError, UsageError
from interpreter.messages import Chunk
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.block import (
    IN_MEMORY,
    Block,
    Channels,
    console,
    display_chunks,
    notice,
)
from interpreter.runtimes.calls import CallRequest, Request
from interpreter.runtimes.context import SessionContext
from interpreter.runtimes.launch import Containment, Launch
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.runtime import Runtime
from interpreter.runtimes.state import (
    COMPLETING,
    LISTING,
    NOT_TAKEN_ALONG,
    SHOWING,
    Completions,
    Place,
    Restored,
    Value,
    Variable,
    Window,
    completions_from,
    numbers,
    value_from,
    variables_from,
)
from interpreter.sigint import Hold, interrupted_here

IN_SANDBOX = "What {name} code in a sandbox has left is not taken out of it."


class HasContext(Protocol):
    @property
    def context(self) -> SessionContext: ...


class BetweenBlocks(BaseLanguage):
    """The part of a live language that has nothing to do with a block that runs."""

    def __init__(self, computer: HasContext | None = None) -> None:
        self.context = computer.context if computer is not None else SessionContext()
        self.runtime: Runtime | None = None
        self.jobs: list[Job] = []
        self._stopped = False
        self._cwd: str | None = None  # where the session is, as far as we know
        self._env: dict[str, str | None] = {}  # the exported variables it was told of
        self._number: int | None = None  # of the present state
        self._before = 0  # that of the state before the last block
        self._places: dict[int, Place] = {}

    # -- states ------------------------------------------------------------------------------------------------

    @property
    def present(self) -> int:
        """The number of the present state."""
        if self._number is None:
            self._number = next(numbers)
        return self._number

    def leave_state(self) -> int:
        """A block begins: what it makes is another state; the number of the present one."""
        before = self.present
        self._note_place()
        self._number = next(numbers)
        return before

    def snapshot(self) -> tuple[int, int] | None:
        """What the next block's snapshot is called and how many to keep; None for no snapshot."""
        return None

    def _note_place(self) -> None:
        shared, kept = self.context, {*self._known_states(), self.present}
        self._places = {state: place for state, place in self._places.items() if state in kept}
        self._places[self.present] = Place(shared.cwd, dict(shared.exported), dict(self._env))

    def _known_states(self) -> Iterable[int]:
        """Those that may still be returned to."""
        return self.points()

    def _return_to(self, state: int) -> None:
        """The session is in this state again: so are the directory and the exported variables."""
        self._number = state
        place = self._places.get(state)
        if place is not None:
            self.context.return_to(place.cwd, place.exported)
            self._env = dict(place.own_env)
        self.forget_folder()

    def forget_folder(self) -> None:
        """Have the session told where it is: the folder that it is in may be gone, and another have its name."""
        self._cwd = None

    # -- a second one ------------------------------------------------------------------------------------------

    def split(self, computer: HasContext) -> tuple[Self, Restored]:
        runtime = self.runtime
        if runtime is not None and runtime.block is not None and not runtime.block.finished:
            raise BusyError(f"A {self.name} block is running: its session cannot be split now.")
        other = type(self)(computer)
        if not self.has_begun():
            return other, Restored()
        if self.contained_in is not None and other.context.containment is None:
            raise NotRestorableError(IN_SANDBOX.format(name=self.name))
        try:
            restored = self.hand_over(other)
        except BaseException:
            other.terminate()
            raise
        self._note_place()
        other._number, other._places = self.present, {self.present: self._places[self.present]}
        other._cwd, other._env = self._cwd, dict(self._env)
        return other, restored

    @property
    def contained_in(self) -> Containment | None:
        """What shut in the code that has left what there is."""
        return self.runtime.launch.containment if self.runtime is not None else None

    def has_begun(self) -> bool:
        """Whether there is anything that a block has left."""
        return self.runtime is not None and self.runtime.has_begun

    def hand_over(self, other: Any) -> Restored:
        """Give another language of the same kind, which has no session yet, what this one has."""
        raise NotRestorableError(NOT_TAKEN_ALONG.format(name=self.name))

    def take_back(self, other: Any) -> Restored:
        """Have what another session of this language has made of these variables."""
        raise NotRestorableError(NOT_TAKEN_ALONG.format(name=self.name))

    # -- questions between blocks ------------------------------------------------------------------------------

    def variables(self) -> list[Variable]:
        runtime = self.runtime
        if runtime is None or not runtime.alive:
            return []
        return variables_from(self._asked(runtime, {"op": "inspect"}, LISTING))

    def look(self, name: str, rows: Window = (0, 50), columns: Window = (0, 50)) -> Value:
        runtime = self.runtime
        if runtime is None or not runtime.alive:
            raise UsageError(f"There is no {name}: no {self.name} block has run.")
        frame = {"op": "inspect", "name": name, "rows": list(rows), "columns": list(columns)}
        return value_from(self._asked(runtime, frame, SHOWING))

    def complete(self, code: str, cursor: int) -> Completions:
        frame = {"op": "complete", "code": code, "cursor": cursor}
        return completions_from(self.runtime.query(frame, COMPLETING) if self.runtime else None, cursor)

    def _asked(self, runtime: Runtime, frame: Frame, patience: float) -> Frame:
        answer = runtime.query(frame, patience)
        if answer is None:
            raise BusyError(f"The {self.name} session is busy.")
        if "failed" in answer:
            raise UsageError(str(answer["failed"]))
        return answer


__all__ = ["HasContext", "LiveLanguage", "how_done", "how_it_ended"]


@dataclass
class Run:
    """One run of a block."""

    runtime: Runtime
    block: Block
    ending: list[Chunk] | None = None  # the closing chunks, once its end has been applied


class LiveLanguage(BetweenBlocks):
    """The part that live languages have in common; each says how to launch it and what to add."""

    sandboxable = True

    handles_interrupts = True

    def __init__(self, computer: HasContext | None = None) -> None:
        super().__init__(computer)
        self._last: Run | None = None
        self._order = threading.RLock()  # held to start a block or apply its end; the reader thread never takes it

    # -- what a language says of itself ------------------------------------------------------------------------

    def launch(self) -> Launch:
        """How its session is started."""
        raise NotImplementedError

    def version(self) -> str | None:
        """What runs it, for the model to know, such as `Node.js 20.11`; None if it is not installed."""
        raise NotImplementedError

    def channels(self) -> Channels:
        """The channels of the next block: by default two pipes, their writing ends sent along."""
        (out, out_writer), (err, err_writer) = os.pipe(), os.pipe()
        return Channels(reads=[(out, "stdout"), (err, "stderr")], sends=[out_writer, err_writer])

    def fields(self) -> Frame:
        """What else the driver is told with the next block."""
        return {}

    def exited(self, event: Frame) -> Iterator[Chunk]:
        """The worker ended during a block: say so, and close the block."""
        if event["startup"]:
            yield {**console(event["startup"]), "stream": "stderr"}
        reason = how_it_ended(event["code"])
        lost = f"The {self.name} session ended ({reason}). Its variables are lost; the next block starts a new one."
        yield notice(lost + "\n")
        yield self.closing(event["code"], "timed_out" if event["why"] == "timed_out" else "died")

    def revive(self, runtime: Runtime) -> Iterator[Chunk]:
        """The worker ended between blocks: the next one is new, and knows nothing."""
        self._cwd, self._env = runtime.launch.cwd, {}
        yield from ()

    def settle(self, event: Frame) -> None:
        """A block is done, and nobody waits."""

    # -- running -----------------------------------------------------------------------------------------------

    def contained_launch(self) -> Launch:
        """How its session is started in the sandbox that there is now, if there is one."""
        return replace(self.launch(), containment=self.context.containment)

    def start(self) -> Runtime:
        """The session, started if there is none; the worker may still be getting ready."""
        if self.runtime is None:
            launch = self.contained_launch()
            runtime = Runtime(launch, self.name)
            runtime.calls.tools = self.context.tools
            runtime.start()
            self.runtime = runtime  # one that could not start is none
            self._cwd, self._env = launch.cwd, dict(self.context.exported)
        return self.runtime

    def run(self, code: str) -> Iterator[Chunk]:
        run: Run | None = None
        struck = False
        try:
            with Hold(), self._order:
                self._end_last()
                notices, run = self._begin(code)
            yield from notices
            for event in run.runtime.events(run.block):
                chunks = self._chunks(event)
                while True:
                    try:
                        yield from self._ending(run) if event is run.block.last else chunks
                        break
                    except KeyboardInterrupt:  # while the user answers a question, for example
                        struck = True
                        run.runtime.interrupt()
        finally:
            if run is not None:
                run.runtime.leave(run.block)
                if run.block.last is not None and not run.runtime.is_reading:
                    self._ending(run)
        if struck:
            raise KeyboardInterrupt

    def _begin(self, code: str) -> tuple[list[Chunk], Run]:
        self._stopped = False
        notices = list(self._move())
        runtime = self.start()
        if not runtime.alive:
            notices += self.revive(runtime)
        self._before = self.leave_state()
        news = self.context.news_for(self._env, self._cwd)
        fields = {**news, **self.fields()}
        timeout, snapshot = self.context.timeout, self.snapshot()
        runtime.calls.tools, runtime.calls.action = self.context.tools, self.context.action
        runtime.settle(runtime.block)  # that of a preview, for example
        block = runtime.begin(code, self.channels(), fields, timeout, snapshot, self.on_end)
        self._last = Run(runtime, block)
        if self._was_stopped():
            runtime.interrupt()
        return notices, self._last

    # -- the end of a block --------------------------------------------------------------------------------------

    def settle_last(self) -> bool:
        run = self._last
        if run is not None and run.block.last is not None:
            self._ending(run)
        return run is None or run.block.last is not None

    def _end_last(self) -> None:
        """Before another block starts: end the last one and apply its end. Its consumer still gets the ending."""
        run = self._last
        if run is not None:
            run.runtime.settle(run.block)
            run.block.ended.wait()
            self._ending(run)

    def _ending(self, run: Run) -> list[Chunk]:
        """The closing chunks of a run. The first caller, in any thread, applies what the block changed."""
        with Hold(), self._order:
            if run.ending is None:
                run.ending = []
                assert run.block.last is not None
                run.ending = list(self._ended(run, run.block.last))
            return run.ending

    def _ended(self, run: Run, event: Frame) -> Iterator[Chunk]:
        is_present = run.runtime is self.runtime  # if not, the session was closed, and its state is gone
        match event["event"]:
            case "done":
                if is_present:
                    self._take_news(event)
                    self.settle(event)
                    yield from self._denials(event)
                yield self.closing(event.get("exit_code"), how_done(event))
            case "exited":
                if not is_present:
                    yield from LiveLanguage.exited(self, event)
                    return
                yield from self._denials({**event, "exit_code": event["code"]})
                yield from self.exited(event)
            case "detached":
                yield from self._detached(run)

    def _move(self) -> Iterator[Chunk]:
        """A session that was started outside the present sandbox, or in another one, does not run blocks any more."""
        runtime = self.runtime
        if runtime is not None and not self._may_stay(runtime.launch.containment):
            jobs, self.jobs = self.jobs, []
            self.terminate()
            self.jobs = jobs  # they go on where they are
            if runtime.block is not None:
                yield notice(f"The sandbox has changed: a new {self.name} session, without the variables of before.\n")

    def _may_stay(self, place: Containment | None) -> bool:
        """Whether it is the present sandbox, or one that is part of it."""
        present = self.context.containment
        while present is not None and place is not None and present is not place:
            present = present.within
        return place is present

    def _chunks(self, event: Frame) -> Iterator[Chunk]:
        match event["event"]:
            case "stream":
                chunk = console(event["text"])
                yield {**chunk, "stream": "stderr"} if event["name"] == "stderr" else chunk
            case "active_line":
                yield {"type": "console", "format": "active_line", "content": event["line"]}
            case "display":
                yield from self._shown(event)
            case "call_asks":
                yield from self._ask_about_call(event)
            case "called":
                yield {"type": "status", "format": "call", "content": event["call"]}
            case "input_request":
                password = bool(event.get("password"))
                request = Request("password" if password else "text", event["prompt"])
                asked: Chunk = {"type": "input_request", "content": event["prompt"], "password": password}
                yield {**asked, "request": request}
                self._answer(event, request)

    def _shown(self, event: Frame) -> Iterator[Chunk]:
        for chunk in display_chunks(event["data"]):
            hidden = chunk["type"] == "image" and not self.context.emit_images
            yield {**chunk, "recipient": "user"} if hidden else chunk

    def _ask_about_call(self, event: Frame) -> Iterator[Chunk]:
        """A person has to allow what the code calls; going on without an answer is a no."""
        request: CallRequest = event["request"]
        try:
            content = {"type": "call", "format": request.name, "content": request.prompt}
            yield {"type": "confirmation", "format": "tool_call", "content": content, "request": request}
        finally:
            request.give_up()

    def _denials(self, event: Frame) -> Iterator[Chunk]:
        """What a sandbox kept from the block, so that nobody looks for a bug that is not there."""
        runtime = self.runtime
        if runtime is not None and runtime.launch.containment is not None and runtime.block is not None:
            block, speaks = runtime.block, runtime.launch.dialect is None  # of its errors, in numbers
            said = "" if speaks or block.spool.length > IN_MEMORY else block.spool.read()
            for line in runtime.launch.containment.denials(
                block.code, {"cwd": self.context.cwd, **event, "said": said}
            ):
                yield notice(line + "\n")

    def _answer(self, event: Frame, request: Request) -> None:
        asked, answer = self.context.on_input, request.text
        if not request.is_answered and asked is not None:
            answer = asked(event["prompt"], bool(event.get("password")))
        if answer is None and self._was_stopped():
            return  # the interrupt is the answer
        reply: Frame = {"eof": True} if answer is None else {"text": answer}
        assert self.runtime is not None
        self.runtime.send({"op": "input", "block": event["block"], **reply})

    def _take_news(self, event: Frame) -> None:
        """Where the block left the working directory and the exported variables."""
        if event.get("cwd"):
            self._cwd = self.context.cwd = event["cwd"]
        if event.get("env"):
            self.context.exported.update(event["env"])
        self._env = dict(self.context.exported)

    def _detached(self, run: Run) -> Iterator[Chunk]:
        job = Job(self.name, run.runtime, run.block)
        self.jobs.append(job)
        run.runtime.snapshots.forget()
        if run.runtime is self.runtime:
            self.runtime = self._number = None
            self._places.clear()
        yield console(
            f"Still running in the background (process group {job.pid}). Its output goes to {job.path}; "
            f"new {self.name} blocks run in a new session.\n"
        )
        yield {**self.closing(None, "background"), "truncated": job.path}

    def closing(self, exit_code: int | None, ended: str) -> Chunk:
        """The chunk that ends a block."""
        chunk: Chunk = {"type": "console", "format": "active_line", "content": None}
        chunk |= {"exit_code": exit_code, "ended": ended}
        block = self.runtime.block if self.runtime else None
        if block is not None and block.spool.length > self.context.max_output:
            chunk["truncated"] = block.spool.keep()
        return chunk

    # -- from other threads ------------------------------------------------------------------------------------

    def _was_stopped(self) -> bool:
        return self._stopped or self.context.cancelled() or interrupted_here()

    def stop(self) -> None:
        self._stopped = True  # also for a block whose session is still being started
        if self.runtime is not None:
            self.runtime.interrupt()

    def detach(self) -> None:
        """Move the running block to the background."""
        if self.runtime is not None:
            self.runtime.detach()

    def terminate(self) -> None:
        runtime, self.runtime, self._number = self.runtime, None, None
        self._places.clear()
        jobs, self.jobs = self.jobs, []
        if runtime is not None:
            runtime.close()
        for job in jobs:
            job.stop()

    def __del__(self) -> None:
        self.terminate()


def how_done(event: Frame) -> str:
    if event["status"] == "interrupted":
        return "timed_out" if event["why"] == "timed_out" else "interrupted"
    return "done" if event["status"] == "ok" else "error"


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


class Job:
    """A block that runs on by itself in a session of its own."""

    def __init__(self, language: str, runtime: Runtime, block: Block) -> None:
        self.language, self.runtime, self.block = language, runtime, block
        self.path = block.spool.keep()

    @property
    def code(self) -> str:
        return self.block.code

    @property
    def pid(self) -> int | None:
        """The process group that the block runs in."""
        return self.runtime.pid

    @property
    def running(self) -> bool:
        return not self.block.finished

    def output(self) -> str:
        """Everything it has written so far."""
        return self.block.spool.read()

    def stop(self) -> None:
        """End it, and everything it started."""
        self.runtime.close()

    def __repr__(self) -> str:
        state = "running" if self.running else "ended"
        return f"<Job {self.language} {state}: {self.code.splitlines()[0] if self.code else ''}>"
