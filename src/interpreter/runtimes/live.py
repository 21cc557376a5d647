"""A language with a live runtime: blocks go in, chunks come out, state stays; and blocks moved to the background."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from _thread import start_new_thread
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, Self

from interpreter.errors import BusyError, InterpreterError, NotRestorableError, UsageError
from interpreter.host.files import Folder
from interpreter.messages import Chunk
from interpreter.questions import Step, read_input
from interpreter.runtimes.base import NOT_TAKEN_ALONG, BaseLanguage
from interpreter.runtimes.block import (
    MAX_IN_MEMORY,
    Channels,
    RunningBlock,
    closing_chunk,
    console,
    event_chunks,
    notice,
)
from interpreter.runtimes.launch import Launch, RuntimeContext, RuntimeSandbox
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.runtime import Runtime
from interpreter.runtimes.sharing import MAX_VARIABLE_BYTES, Form, Shared, as_csv, as_text, in_form, take
from interpreter.runtimes.state import (
    COMPLETE_TIMEOUT,
    LIST_TIMEOUT,
    SHOW_TIMEOUT,
    Completions,
    Restored,
    Saving,
    StateContext,
    TableQuery,
    Value,
    Variable,
    Window,
    completions_from,
    numbers,
    value_from,
    variables_from,
)
from interpreter.sigint import Hold, interrupted_here

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # not in paths that we show
NOT_SAVED = "The variables of {name} are not saved; its blocks can be run again."


class HasContext(Protocol):
    @property
    def context(self) -> RuntimeContext: ...


class Job:
    """A block that runs in the background, in a separate runtime."""

    def __init__(self, language: str, runtime: Runtime, block: RunningBlock) -> None:
        self.language, self.runtime, self.block = language, runtime, block
        self.code = block.code
        self.path = block.spool.keep()

    @property
    def pid(self) -> int | None:
        return self.runtime.pid

    @property
    def running(self) -> bool:
        return not self.block.finished

    def output(self) -> str:
        return self.block.spool.read()

    def stop(self) -> None:
        self.runtime.close()

    def __repr__(self) -> str:
        state = "running" if self.running else "ended"
        return f"<Job {self.language} {state}: {self.code.splitlines()[0] if self.code else ''}>"


@dataclass
class Run:
    runtime: Runtime
    block: RunningBlock
    ending: list[Chunk] | None = None  # the closing chunks, once its end has been applied


class LiveLanguage(BaseLanguage):
    """The common part of live languages; a subclass says how to launch its runtime and what to add."""

    has_views = False  # whether tables can be sorted, filtered and exported in the runtime
    # How the runtime gets values that other languages share: through its driver, or as environment variables.
    shared_form: Form = "env"
    sandboxable = True
    handles_interrupts = True
    uses_environment = False  # whether its blocks run or install Python packages
    installer: Literal["", "pip", "npm", "r"] = ""  # the installer that `installation` uses
    missing = ""  # the modules that the last block could not import
    needs_posix = "need Linux or macOS. On Windows, run Open Interpreter inside WSL."
    awaited = threading.Event()  # set by `stop` to end a wait before the next block

    def __init__(self, computer: HasContext | None = None) -> None:
        self.context = computer.context if computer is not None else RuntimeContext()
        self.runtime: Runtime | None = None
        self.jobs: list[Job] = []
        self.stopped = False
        self.known_cwd: str | None = None  # the runtime's directory, if known
        self.known_env: dict[str, str | None] = {}  # the exported variables that it knows
        self.known_shared: dict[str, int] = {}  # the numbers of the shared values that it has
        self.state_before = 0  # the number of the state before the last block
        self._number: int | None = None  # the number of the present state
        self._state_contexts: dict[int, StateContext] = {}
        self._last: Run | None = None
        self._order = threading.RLock()  # held to start a block or apply its end; the reader thread never takes it

    # -- for subclasses to say -----------------------------------------------------------------------------------

    def launch(self) -> Launch:
        raise NotImplementedError

    def channels(self) -> Channels:
        """Make the channels of the next block: by default two pipes, whose writing ends go to the driver."""
        (out, out_writer), (err, err_writer) = os.pipe(), os.pipe()
        return Channels(reads=[(out, "stdout"), (err, "stderr")], sends=[out_writer, err_writer])

    def fields(self) -> Frame:
        """Return additional fields for the next run frame."""
        return {}

    def snapshot(self) -> tuple[int, int] | None:
        """Return the state for the next block's snapshot, and how many to keep; None for no snapshot."""
        return None

    def exited(self, event: Frame) -> Iterator[Chunk]:
        """Report that the worker ended during a block, and close the block."""
        if event["startup"]:
            yield console(event["startup"], "stderr")
        yield notice(
            f"The {self.name} session ended ({event['how']}). Its variables are lost. The next block starts a new "
            "session.\n"
        )
        yield self.closing(event["code"], "timed_out" if event["why"] == "timed_out" else "died")

    def revive(self, runtime: Runtime) -> Iterator[Chunk]:
        """Prepare a fresh worker after the last one ended between blocks: it starts where the first one did."""
        self.known_cwd, self.known_env, self.known_shared = runtime.launch.cwd, {}, {}
        yield from ()

    def missing_imports(self, code: str) -> Sequence[str]:
        return ()

    def installation(self, modules: Sequence[str]) -> tuple[list[str], str, str]:
        """Return the packages that have these modules, the shell command that installs them, and a block that does it.

        The block is empty if they can't be installed.
        """
        return [], "", ""

    def part_before(self, code: str, line: int, module: str) -> str:
        """Return the part of a block that ran before it failed to import a module, in this line if known."""
        lines = code.splitlines()
        line = line or next((at for at, text in enumerate(lines, 1) if module in text), len(lines))
        *before, last = lines[:line]
        if self.installer != "pip" and module in last:  # what follows in its line did not run
            last = re.sub(rf"({re.escape(module)}[\"'`)]*;?).*", r"\1", last)
        return "\n".join([*before, last])

    def advice(self, event: Frame) -> Iterator[Chunk]:
        """Yield advice about the error that ended a block."""
        if self.installer and (module := event.get("missing")):
            self.missing = module
            why = " Offline mode is on, so it can't be installed now." if self.context.offline else ""
            yield notice(f"There is no package {module!r} for {self.name} here.{why}\n")

    def settle(self, event: Frame) -> None:
        """Do work after a block that nothing waits for."""

    # -- running -------------------------------------------------------------------------------------------------

    def contained_launch(self) -> Launch:
        """Return how to start its runtime in the present sandbox, if there is one."""
        return replace(self.launch(), containment=self.context.containment)

    def start(self) -> Runtime:
        """Return the runtime, starting it if necessary. Its worker may not be ready yet."""
        if self.runtime is None:
            if not hasattr(os, "fork"):
                raise InterpreterError(f"{self.name} blocks {self.needs_posix}")
            launch = self.contained_launch()
            runtime = Runtime(launch, self.name)
            runtime.calls.tools = self.context.tools
            runtime.start()
            self.runtime = runtime  # only once it has started
            self.known_cwd, self.known_env, self.known_shared = launch.cwd, dict(self.context.exported), {}
        return self.runtime

    def run(self, code: str) -> Iterator[Step]:
        run: Run | None = None
        try:
            with Hold(), self._order:
                if self._last is not None:  # end the last block and apply its end; its consumer still gets the ending
                    self._last.runtime.settle(self._last.block)
                    self._last.block.ended.wait()
                    self._ending(self._last)
                notices, run = self._begin(code)
            yield from notices
            yield from run.block.shown(partial(self._shown, run), run.runtime.interrupt)
        finally:
            if run is not None:
                run.runtime.leave(run.block)
                if run.block.last is not None and not run.runtime.reader.is_current:
                    self._ending(run)

    def _shown(self, run: Run, event: Frame) -> Iterable[Step]:
        return self._ending(run) if event is run.block.last else self.chunks(event)

    def _begin(self, code: str) -> tuple[list[Chunk], Run]:
        self.stopped, self.missing = False, ""
        notices: list[Chunk] = []
        old, present = self.runtime, self.context.containment
        sandbox = old.launch.containment if old is not None else None
        while present is not None and sandbox is not None and present is not sandbox:
            present = present.within
        if old is not None and sandbox is not present:  # outside the present sandbox, or in one that is not part of it
            self.end_runtime()
            if old.block is not None:
                notices.append(
                    notice(
                        f"The sandbox has changed, so this is a new {self.name} session, without the earlier "
                        "variables.\n"
                    )
                )
        runtime = self.start()
        if not runtime.alive:
            notices += self.revive(runtime)
        if runtime.ready and (missing := runtime.ready.pop("not_preloaded", None)):
            notices.append(notice(f"`computer.preload` names modules that can't be imported: {missing}\n"))
        self.state_before = self.leave_state()
        fields = self.run_fields()
        runtime.settle(runtime.block)  # such as the block of a dry run
        runtime.calls.tools, runtime.calls.action = self.context.tools, self.context.action
        self._last = Run(
            runtime, runtime.begin(code, self.channels(), fields, self.context.timeout, self.snapshot(), self.on_end)
        )
        if self.was_stopped():
            runtime.interrupt()
        return notices, self._last

    def run_fields(self) -> Frame:
        """Build the next run frame's fields besides the code: what changed elsewhere, and the language's own fields."""
        known, context = self.known_env, self.context
        changed = {name: value for name, value in context.exported.items() if known.get(name, "\0") != value}
        shared = {name: each for name, each in context.shared.items() if self.known_shared.get(name) != each.number}
        if self.shared_form == "env" and shared:
            # The prefix keeps names apart that mean something to shells, such as `path` or `http_proxy`.
            changed |= {f"shared_{name}": self._shared_variable(name, each) for name, each in shared.items()}
        changes: Frame = {"env": changed} if changed else {}
        if self.shared_form in ("json", "r"):
            changes["max_shared"] = context.max_shared
            changes |= {"shared": in_form(self.shared_form, shared)} if shared else {}
        if self.known_cwd != context.cwd:
            changes["cwd"] = context.cwd
        return {**changes, **self.fields()}

    def _shared_variable(self, name: str, shared: Shared) -> str:
        """Format a shared value for an environment variable: a table as the path of a CSV file, others as text."""
        is_table = "table" in shared.content
        text = as_csv(shared.content["table"]) if is_table else as_text(shared.content["value"])
        data = text.encode("utf-8", "replace")
        if not is_table and len(data) <= MAX_VARIABLE_BYTES:
            return text
        path = self.start().folder / f"{name}.{'csv' if is_table else 'json'}"
        with Folder(path.parent) as files:
            files.write_bytes(path.name, data, 0o600)
        return str(path)

    def chunks(self, event: Frame) -> Iterator[Step]:
        match event["event"]:
            case "share":
                try:
                    take(self.context.shared, event["name"], event["data"], self.context.max_shared)
                except ValueError as error:
                    yield notice(f"{event['name'][:100]!r} was not shared: {error}.\n")
            case "question":
                yield from event["question"].asked()
            case "input_request":
                secret = bool(event.get("password"))
                answer = yield from read_input(event["prompt"], secret, self.context.on_input)
                if answer is None and self.was_stopped():
                    return  # the interrupt counts as the answer
                reply: Frame = {"eof": True} if answer is None else {"text": answer}
                assert self.runtime is not None
                self.runtime.send({"op": "input", "block": event["block"], **reply})
            case _:
                yield from event_chunks(event, self.context.emit_images)

    # -- the end of a block --------------------------------------------------------------------------------------

    def _ending(self, run: Run) -> list[Chunk]:
        """Return the closing chunks of a run. The first caller, in any thread, applies what the block changed."""
        with Hold(), self._order:
            if run.ending is None:
                run.ending = []
                assert run.block.last is not None
                run.ending = list(self._ended(run, run.block.last))
            return run.ending

    def _ended(self, run: Run, event: Frame) -> Iterator[Chunk]:
        is_present = run.runtime is self.runtime  # else it was closed, and its state is lost
        match event["event"]:
            case "done":
                if is_present:
                    self.apply_changes(event)
                    self.settle(event)
                    yield from self._denials(event)
                    yield from self.advice(event)
                yield self.closing(event.get("exit_code"), how_done(event))
            case "exited":
                if not is_present:
                    yield from LiveLanguage.exited(self, event)
                    return
                yield from self._denials({**event, "exit_code": event["code"]})
                yield from self.exited(event)
            case "detached":
                yield from self._detached(run)

    def _denials(self, event: Frame) -> Iterator[Chunk]:
        """Report what the sandbox denied the block, so that the model does not look for a bug in it."""
        runtime = self.runtime
        if runtime is None or runtime.launch.containment is None or runtime.block is None:
            return
        block, output = runtime.block, ""
        if runtime.launch.dialect is not None and block.spool.length <= MAX_IN_MEMORY:  # a driver reports error numbers
            output = block.spool.read()
        for line in runtime.launch.containment.denials(block.code, {"cwd": self.context.cwd, **event, "said": output}):
            yield notice(line + "\n")

    def apply_changes(self, event: Frame) -> None:
        """Apply the working directory and the exported variables that the block left.

        The directory is what the code claims. It is shown and sent to other runtimes, but nothing is written to it.
        """
        if cwd := event.get("cwd"):
            self.known_cwd = None  # so that the next block is sent to the right directory
            if os.path.isabs(cwd) and not CONTROL.search(cwd):
                self.known_cwd = self.context.cwd = cwd
        self.context.exported.update(event.get("env") or {})
        self.known_env = dict(self.context.exported)
        self.known_shared = {name: each.number for name, each in self.context.shared.items()}

    def _detached(self, run: Run) -> Iterator[Chunk]:
        job = Job(self.name, run.runtime, run.block)
        self.jobs.append(job)
        run.runtime.snapshots.forget()
        if run.runtime is self.runtime:
            self.runtime = self._number = None
            self._state_contexts.clear()
        yield console(
            f"Still running in the background (process group {job.pid}). Its output goes to {job.path}; "
            f"new {self.name} blocks run in a new session.\n"
        )
        yield {**self.closing(None, "background"), "truncated": job.path}

    def closing(self, exit_code: int | None, ended: str) -> Chunk:
        chunk = closing_chunk(exit_code, ended)
        block = self.runtime.block if self.runtime else None
        self.context.last_output = block.spool if block is not None else self.context.last_output
        if block is not None and block.spool.length > self.context.max_output:
            chunk["truncated"] = block.spool.keep()
        return chunk

    # -- from other threads --------------------------------------------------------------------------------------

    def was_stopped(self) -> bool:
        return self.stopped or self.context.cancelled() or interrupted_here()

    def stop(self) -> None:
        self.stopped = True  # even if the block's runtime is still starting
        self.awaited.set()
        if self.runtime is not None:
            self.runtime.interrupt()

    def detach(self) -> None:
        if self.runtime is not None:
            self.runtime.detach()

    def end_runtime(self) -> None:
        """End the runtime; background jobs keep running in theirs."""
        runtime, self.runtime, self._number = self.runtime, None, None
        self._state_contexts.clear()
        if runtime is not None:
            runtime.close()

    def terminate(self) -> None:
        self.end_runtime()
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            job.stop()

    def __del__(self) -> None:  # may run at any point, and in a forked copy of this process
        for runtime in (self.runtime, *(job.runtime for job in self.jobs)):
            if runtime is not None and runtime.host == os.getpid():
                with contextlib.suppress(RuntimeError):  # this process is ending, and its runtimes end with it
                    start_new_thread(runtime.close, ())  # a `Thread` would wait, and take locks that may be held now

    # -- states --------------------------------------------------------------------------------------------------

    @property
    def present(self) -> int:
        if self._number is None:
            self._number = next(numbers)
        return self._number

    def leave_state(self) -> int:
        """Assign a new state to the block that begins, and return the previous one."""
        before = self.present
        self._note_place()
        self._number = next(numbers)
        return before

    def _note_place(self) -> None:
        kept = {*self._known_states(), self.present}
        self._state_contexts = {
            state: state_context for state, state_context in self._state_contexts.items() if state in kept
        }
        self._state_contexts[self.present] = StateContext(
            self.context.cwd, dict(self.context.exported), dict(self.known_env), dict(self.known_shared)
        )

    def _known_states(self) -> Iterable[int]:
        return self.points()

    def _return_to(self, state: int) -> None:
        """Record that the runtime is in this state again, and restore the directory and exported variables."""
        self._number = state
        state_context = self._state_contexts.get(state)
        if state_context is not None:
            self.context.return_to(state_context.cwd, state_context.exported)
            self.known_env, self.known_shared = dict(state_context.own_env), dict(state_context.own_shared)
        self.known_cwd = None  # its folder may be gone, or replaced by another

    def check_idle(self, refusal: str) -> None:
        if self.runtime is not None and self.runtime.is_running_block:
            raise BusyError(refusal)

    def split(self, computer: HasContext) -> tuple[Self, Restored]:
        """Start a second runtime from a copy of the present state or, during a block, of the state before it."""
        with self._order:
            run = self._last
            if run is not None and run.block.ended.is_set():
                self._ending(run)
            is_busy = run is not None and run.ending is None and run.runtime is self.runtime
            state = self.state_before if is_busy else self.present
            if not is_busy:
                self._note_place()
            state_context = self._state_contexts[state]
            if self.runtime is not None and self.runtime.snapshots.in_dry_run:  # or a block that belongs to one
                is_busy = True
            if not is_busy:
                return self._split(computer, state, state_context, None)  # no block can begin until then
        return self._split(computer, state, state_context, state)  # it may take longer than the block

    def _split(
        self, computer: HasContext, state: int, state_context: StateContext, before: int | None
    ) -> tuple[Self, Restored]:
        other, restored = type(self)(computer), Restored()
        if self.has_begun():
            if self.contained_in is not None and other.context.containment is None:
                raise NotRestorableError(f"{self.name} variables in a sandbox can't be copied out of it.")
            try:
                restored = self.hand_over(other, before)
            except BaseException:
                other.terminate()
                raise
        other._state_contexts = {state: state_context}
        other._return_to(state)
        return other, restored

    @property
    def contained_in(self) -> RuntimeSandbox | None:
        return self.runtime.launch.containment if self.runtime is not None else None

    def has_begun(self) -> bool:
        """Check whether a finished block has left anything, here or in the runtime that this one was copied from."""
        return self.runtime is not None and (self.runtime.has_finished_block or self.runtime.inherits)

    def hand_over(self, other: Any, before: int | None) -> Restored:
        """Give the present state to another language of the same kind that has no runtime yet.

        While a block is running, `before` is the state before it, which is given instead.
        """
        raise NotRestorableError(NOT_TAKEN_ALONG.format(name=self.name))

    def save(self, most: int, seconds: float) -> Saving | None:
        """Start saving the variables, within these limits of bytes and time; None if there is nothing to save."""
        return None

    def load(self, data: bytes) -> Restored:
        """Load variables that an earlier run of the session saved. Raises NotRestorableError if none can be loaded."""
        raise NotRestorableError(NOT_SAVED.format(name=self.name))

    # -- queries between blocks ----------------------------------------------------------------------------------

    def variables(self) -> list[Variable]:
        if self.runtime is None or not self.runtime.alive:
            return []
        return variables_from(self.query(self.runtime, {"op": "inspect"}, LIST_TIMEOUT))

    def look(
        self,
        name: str,
        rows: Window = (0, 50),
        columns: Window = (0, 50),
        view: TableQuery | None = None,
        again: bool = False,
    ) -> Value:
        if self.runtime is None or not self.runtime.alive:
            raise UsageError(f"There is no {name}, because no {self.name} block has run.")
        if view is not None and not self.has_views:
            raise UsageError(f"{self.name} tables can't be sorted, filtered or exported, only Python ones.")
        frame = {"op": "inspect", "name": name, "rows": list(rows), "columns": list(columns), "again": again}
        return value_from(self.query(self.runtime, frame | ({"view": asdict(view)} if view else {}), SHOW_TIMEOUT))

    def stop_looking(self) -> None:
        if self.runtime is not None:
            self.runtime.stop_query()

    def complete(self, code: str, cursor: int) -> Completions:
        frame = {"op": "complete", "code": code, "cursor": cursor}
        return completions_from(self.runtime.query(frame, COMPLETE_TIMEOUT) if self.runtime else None, cursor)

    def query(self, runtime: Runtime, frame: Frame, timeout: float) -> Frame:
        """Ask the driver. Raises BusyError if it does not answer, and UsageError if it fails."""
        answer = runtime.query(frame, timeout)
        if answer is None:
            raise BusyError(f"The {self.name} session is busy.")
        if "failed" in answer:
            raise UsageError(str(answer["failed"]))
        return answer


def how_done(event: Frame) -> str:
    if event["status"] == "interrupted":
        return "timed_out" if event["why"] == "timed_out" else "interrupted"
    return "done" if event["status"] == "ok" else "error"
