"""Another machine, as a session uses it: its runtimes and files, which a keeper there holds."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.errors import (
    BusyError,
    InterpreterError,
    NotRestorableError,
    RemoteError,
    RemoteInUseError,
    UndoError,
    UsageError,
)
from interpreter.messages import Chunk
from interpreter.questions import Input, Question, Step, read_input
from interpreter.remote.keeper import OFFERED, SETTINGS, About, types_of
from interpreter.remote.link import Link, packed, unpacked
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.block import RunningBlock, Spool, closing_chunk, event_chunks, notice, outputs_folder
from interpreter.runtimes.calls import HARMLESS, ComputerCall, failure
from interpreter.runtimes.launch import RuntimeContext
from interpreter.runtimes.live import CONTROL
from interpreter.runtimes.protocol import (
    COUNT,
    LINE,
    NAME,
    TEXT,
    BadFrame,
    Check,
    Frame,
    check_frame,
    flag,
    free,
    number,
    object_of,
    one_of,
    optional,
)
from interpreter.runtimes.sharing import take

if TYPE_CHECKING:
    from interpreter.remote.machines import Connect

# The attributes of a language that are the same on every machine.
DESCRIBED = (
    "file_extension comment lexer definitions quotes_paths explains_failures analysis scanners scan_parts "
    "order is_common install"
)
RETRY_DELAYS = (0.5, 1, 2, 4, 8)  # seconds between attempts to connect again; the last one repeats
LEAVE_TIMEOUT = 10.0  # seconds to wait for the end of a block whose consumer leaves
ERRORS: dict[str, type[Exception]] = {
    each.__name__: each for each in (BusyError, NotRestorableError, RemoteInUseError, UndoError, UsageError)
}
CHUNK = object_of(
    type=one_of("console", "image", "code", "input_request"),
    format=optional(NAME),
    content=lambda value: value is None or number()(value) or TEXT(value),
    stream=optional(one_of("stdout", "stderr")),
    ours=optional(flag),
    recipient=optional(NAME),
    mime=optional(NAME),
    also=optional(NAME),
    data=optional(TEXT),
    password=optional(flag),
    exit_code=optional(number(-(1 << 31))),
    ended=optional(one_of("done", "error", "interrupted", "timed_out", "died", "background")),
    truncated=optional(LINE),
)
EXPORTED: Check = lambda value: (  # noqa: E731 - a check like those of `object_of`
    isinstance(value, dict)
    and len(value) < 10_000
    and all(LINE(name) and (text is None or LINE(text)) for name, text in value.items())
)
PLACE: dict[str, Check] = {"cwd": LINE, "exported": EXPORTED}
SHARED: Check = lambda value: (  # noqa: E731
    isinstance(value, list)
    and all(isinstance(each, list) and len(each) == 2 and NAME(each[0]) and TEXT(each[1]) for each in value)
)
# The events that a keeper may send. Code there can impersonate it, so every event is checked and only a claim.
EVENTS: dict[str, dict[str, Check]] = {
    "chunk": {"run": COUNT, "chunk": CHUNK, "asks": flag, "size": COUNT},
    "over": {"run": COUNT},
    "ran": {"run": COUNT, "failed": optional(TEXT), "shared": optional(SHARED), **PLACE},
    "reply": {"call": COUNT, "value": lambda value: True, "error": optional(NAME), "words": optional(TEXT), **PLACE},
    "call": {
        "call": COUNT,
        "run": COUNT,
        "path": NAME,
        "how": one_of("call", "get", "set", "names", "code"),
        "args": free(list, 10_000),
        "kwargs": free(dict, 10_000),
    },
    "call_off": {"call": COUNT},
}


class Transport(Protocol):
    """Reaches a keeper."""

    def connect(self, ask: Callable[[str, bool], str | None]) -> None:
        """Connect if there is no connection. Raises RemoteError if that fails."""

    def open(self, what: str, name: str, seconds: float) -> socket.socket | None:
        """Connect to the keeper of that name: `start` makes one, `resume` returns None if it is gone."""

    def close(self) -> None: ...


class Machine:
    """The connection to a keeper. It reconnects automatically when it is lost."""

    def __init__(self, name: str, transport: Transport, workspace: str, keep: float, computer: Any = None) -> None:
        self.name, self.keep, self.computer = name, keep, computer
        self.workspace = workspace or "~"  # the workspace there; "~" until it is known
        self.place: str | None = None  # the working directory there
        self.exported: dict[str, str | None] = {}
        self.shared: dict[str, int] = {}  # the shared values that it has, with their numbers here
        self.about: About | None = None  # its system, its user and its languages, once it is connected
        self._transport, self.keeper = transport, secrets.token_hex(8)
        self.is_taken_over = False  # whether an earlier process left its runtimes there
        self._link = Link(self._received)
        self._begun = self._closed = False
        self._must_ask = False  # reconnecting needs an answer from the user
        self._lost: RemoteError | None = None  # why everything that ran there is gone, if it is
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._numbers = itertools.count(1)
        self._runs: dict[int, tuple[RunningBlock, Any]] = {}
        self._waiting: dict[int, queue.SimpleQueue[Frame]] = {}
        self._calls: dict[int, ComputerCall] = {}

    # -- connecting ------------------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        return self._link.connected

    def take_over(self, keeper: str) -> None:
        """Use the keeper that a killed process left there, if it still exists, when this machine connects."""
        self.keeper, self.about, self._begun, self.is_taken_over = keeper, None, True, True

    def connecting(self) -> Iterator[Question]:
        """Connect if necessary. The questions are those of ssh, such as for a password."""
        if self._link.connected:
            return
        prompts = queue.SimpleQueue[tuple[str, bool] | Exception | None]()
        answers = queue.SimpleQueue[str | None]()
        given_up = threading.Event()

        def ask(prompt: str, secret: bool) -> str | None:
            if given_up.is_set():
                return None
            prompts.put((prompt, secret))
            return answers.get()

        def connect() -> None:
            try:
                self._connect(ask)
                prompts.put(None)
            except Exception as error:  # noqa: BLE001 - raised in the thread that waits
                prompts.put(error)

        threading.Thread(target=connect, name=f"connect to {self.name}", daemon=True).start()
        try:
            while (asked := prompts.get()) is not None:
                if isinstance(asked, Exception):
                    raise asked
                answer = None
                try:
                    context = self.computer.context if self.computer is not None else None
                    answer = yield from read_input(*asked, context.on_input if context is not None else None)
                finally:
                    answers.put(answer)
        finally:
            given_up.set()

    def _connect(self, ask: Callable[[str, bool], str | None]) -> None:
        with self._lock:
            if self._link.connected:
                return
            self._transport.connect(ask)
            connection = self._transport.open("resume" if self._begun else "start", self.keeper, self.keep)
            if connection is None:
                self._fail(f"The session on {self.name} has ended, and its variables are lost.")
                self._forget()
                connection = self._transport.open("start", self.keeper, self.keep)
                assert connection is not None
            self._begun, self._closed, self._must_ask, self._lost = True, False, False, None
            self._wake.clear()
            greeted = threading.Event()
            threading.Thread(
                target=self._serve, args=(connection, self._link, greeted), name=self.name, daemon=True
            ).start()
            greeted.wait()
            if self._lost is not None:
                raise self._lost
        if self.about is None:
            self.about = unpacked(About, self._ask_keeper("keeper", "about"))
            context = self.computer.context if self.computer is not None and self.computer.machine is self else None
            if context is not None and self.place is not None:
                self.workspace = self.about.workspace
                if self.is_taken_over or not os.path.isabs(context.cwd):
                    context.cwd, context.exported = self.place, dict(self.exported)

    def _serve(self, connection: socket.socket, link: Link, greeted: threading.Event) -> None:
        problem: BadFrame | RemoteInUseError | None = None
        with connection:
            try:
                link.serve(connection, greeted.set)
            except (BadFrame, RemoteInUseError) as error:
                problem = error
        is_current = link is self._link and not self._closed
        if is_current and isinstance(problem, RemoteInUseError):
            self._fail(
                f"Another Open Interpreter is connected to the runtimes of this session on {self.name}. "
                "Close it, then try again.",
                RemoteInUseError,
            )
            self._link = Link(self._received)
        elif is_current and problem is not None:
            self._fail(f"The session on {self.name} was ended, because it sent {problem}.")
            self._forget()
        greeted.set()
        if is_current and problem is None:
            self._tell(f"Lost the connection to {self.name}. Reconnecting. Code there keeps running.")
            self._connect_again()

    def _connect_again(self) -> None:
        """Try to reconnect as long as the keeper waits, without questions unless a running block can ask them."""
        until = time.monotonic() + self.keep
        for seconds in itertools.chain(RETRY_DELAYS, itertools.repeat(RETRY_DELAYS[-1])):
            if self._closed or self._link.connected:
                return
            try:
                self._connect(self._ask_in_block)
                self._tell(f"Connected to {self.name} again.")
                return
            except (InterpreterError, OSError) as error:
                reason = str(error)
            if isinstance(self._lost, RemoteInUseError) or self._must_ask:
                return  # leave it to the next block: more tries would look like an attack
            if time.monotonic() > until:
                self._fail(f"There was no connection to {self.name} for {self.keep:.0f} seconds. {reason}")
                return
            self._wake.wait(seconds)

    def _ask_in_block(self, prompt: str, secret: bool) -> str | None:
        block = next((block for block, _ in list(self._runs.values()) if block.attached), None)
        if block is None:
            self._must_ask = True
            return None
        question = Question(Input(prompt, secret))
        block.nudge({"event": "question", "question": question})
        question.wait()
        return question.typed

    def _tell(self, message: str) -> None:
        for block, _ in list(self._runs.values()):
            block.nudge({"event": "chunk", "chunk": notice(message + "\n"), "asks": False, "size": 0})

    def _fail(self, message: str, kind: type[RemoteError] = RemoteError) -> None:
        """Note that everything that ran there is gone, and end everything that waits for it."""
        self._lost = kind(message)
        self.place, self.exported, self.shared = None, {}, {}
        for call in list(self._calls.values()):
            call.end()
        for block, _ in list(self._runs.values()):
            block.end({"event": "lost", "words": message})
        for waiting in list(self._waiting.values()):
            waiting.put({"error": kind.__name__, "words": message})
        self._runs.clear()
        self._waiting.clear()

    def _forget(self) -> None:
        """Start over: the next connection is to a new keeper."""
        self._link, self._begun, self.keeper = Link(self._received), False, secrets.token_hex(8)
        self.is_taken_over = False

    def connection(self) -> Connect:
        """Make the action that connects to this machine."""
        from interpreter.remote.machines import Connect

        return Connect(self)

    def close(self) -> None:
        """End the keeper and everything it keeps; the next block starts a new one."""
        self._closed = True
        self._wake.set()
        if self._begun and self._link.connected:
            self._link.send({"op": "end"})
            self._link.wait_until_sent(2)
        self._link.close()
        self._fail(f"The session on {self.name} has ended.")
        self._forget()
        self._transport.close()

    # -- what the keeper says --------------------------------------------------------------------------------------

    def _received(self, frame: Frame) -> None:
        check_frame(frame, EVENTS)
        if "cwd" in frame:
            is_path = os.path.isabs(frame["cwd"]) and not CONTROL.search(frame["cwd"])
            self.place, self.exported = frame["cwd"] if is_path else self.place, frame["exported"]
        block, language = self._runs.get(frame.get("run", -1), (None, None))
        match frame["event"]:
            case "chunk" if block is not None:
                block.nudge(frame)
            case "over" if language is not None and language.on_end is not None:
                language.on_end()
            case "ran" if block is not None:
                del self._runs[frame["run"]]
                for call in [each for each in self._calls.values() if each.block == frame["run"]]:
                    call.end()
                block.finished = True
                block.end(frame)
            case "reply":
                waiting = self._waiting.pop(frame["call"], None)
                if waiting is None:
                    raise BadFrame("an answer to nothing")
                waiting.put(frame)
            case "call":
                self._answer(frame, block, language)
            case "call_off":
                if (gone := self._calls.pop(frame["call"], None)) is not None:
                    gone.end()

    def _answer(self, frame: Frame, block: RunningBlock | None, language: Any) -> None:
        """Answer a call from code there of a tool on this computer, in a new thread."""
        tools = self.computer.context.tools if self.computer is not None else None
        if tools is None or (block is None and frame["how"] not in HARMLESS):
            problem = "There is no computer to call." if tools is None else "The block that made this call has ended."
            self._link.send({"op": "called", "call": frame["call"], **failure(problem)})
            return
        action = self.computer.context.action
        call = ComputerCall(frame, block, language.name if language is not None else "", action=action)
        call.machine = self.name
        self._calls[call.number] = call

        def answer() -> None:
            try:
                reply = tools.answer(call)
            except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - the code must not wait for ever
                reply = failure(f"{type(error).__name__}: {error}")
            if self._calls.pop(call.number, None) is not None:
                self._link.send({"op": "called", "call": call.number, **reply})

        threading.Thread(target=answer, name=f"{self.name} calls {call.path}", daemon=True).start()

    @property
    def label(self) -> str:
        """Name the workspace for as long as this keeper has the copies of its files."""
        return f"{self.workspace} on {self.name} ({self.keeper[:4]})"

    def record(self, limits: tuple[int, int, int]) -> RemoteRecord:
        """Return the file record of the machine's workspace."""
        return RemoteRecord(self, limits)

    def languages(self, here: list[type[BaseLanguage]], is_own: bool) -> list[type[BaseLanguage]]:
        """List the machine's languages: by the names that they have here, or with `@` and the machine's name."""
        return [
            (RestorableLanguage if language.restorable else RemoteLanguage).of(
                language, self, is_own, there=language.name, takes_keys=language.takes_keys, covered_by_undo=is_own
            )
            for language in here
        ]

    # -- asking the keeper -----------------------------------------------------------------------------------------

    def ask(self, on: str, name: str, *args: Any, **more: Any) -> Any:
        """Call a method of a language there, or of the file record. The result has its declared type."""
        connect_in_session(self)
        kind = "files" if on == "files" else "language"
        return unpacked(types_of(kind, name)[1], self._ask_keeper(on, name, *args, **more))

    def _ask_keeper(self, on: str, name: str, *args: Any, **more: Any) -> Any:
        if self._lost is not None:
            raise self._lost
        number = next(self._numbers)
        waiting = self._waiting[number] = queue.SimpleQueue()
        self._link.send({"op": "call", "call": number, "on": on, "name": name, "args": packed(args), **more})
        reply = waiting.get()
        if reply.get("error") is not None:
            raise ERRORS.get(reply["error"], RemoteError)(reply["words"] or reply["error"])
        return reply.get("value")

    def begin(self, language: Any, code: str, settings: Frame) -> tuple[int, RunningBlock]:
        """Start a block there. Returns its number, and where its events arrive."""
        number = next(self._numbers)
        block = RunningBlock(number, code, Spool(outputs_folder))
        self._runs[number] = block, language
        self.say("run", run=number, language=language.there, code=code, context=settings)
        return number, block

    def say(self, op: str, **more: Any) -> None:
        self._link.send({"op": op, **more})


def connect_in_session(machine: Any) -> None:
    """Connect if necessary; questions go through the session of the machine's computer."""
    if machine.connected:
        return
    if machine.computer is None:
        for _ in machine.connecting():
            pass
    else:
        from interpreter.remote.machines import Connect

        machine.computer.session.perform(Connect(machine), machine.computer.user).result()


class RemoteRecord:
    """The keeper's file record of its workspace, with the methods of FileRecord that undo uses."""

    def __init__(self, machine: Machine, limits: tuple[int, int, int]) -> None:
        self._machine, self._limits = machine, limits

    def __getattr__(self, name: str) -> Any:
        kind, offered = OFFERED["files"]
        if name not in offered:
            raise AttributeError(name)
        ask = functools.partial(self._machine.ask, "files", name, limits=self._limits)
        member = getattr(kind, name, None)
        return ask if callable(member) else ask()

    def diff(self, block: str | int, data: bool = False, parse: object = None) -> Any:
        return self._machine.ask("files", "diff", block, data, limits=self._limits)


class RemoteLanguage(BaseLanguage):
    """A language of another machine; `Machine.languages` makes a class for each."""

    machine: Machine
    there = ""  # its name there
    is_own = True  # whether the whole session works on that machine, not only some blocks
    handles_interrupts = True

    @classmethod
    def of(cls, language: type[BaseLanguage], machine: Any, is_own: bool, **more: Any) -> type[BaseLanguage]:
        """Make a class for a language on a machine: with the same name, or with `@` and the machine's."""
        end = "" if is_own else f"@{machine.name}"
        about = {name: getattr(language, name) for name in DESCRIBED.split()} | more
        about |= {"name": language.name + end, "aliases": tuple(each + end for each in language.aliases)}
        about |= {"machine": machine, "runs_on": machine.name, "is_own": is_own}
        return type(language.__name__, (cls,), about)

    def __init__(self, computer: Any = None) -> None:
        self.context: RuntimeContext = computer.context if computer is not None else RuntimeContext()
        self._run: tuple[Any, RunningBlock] | None = None
        self._stopped = self._told = False

    def version(self) -> str | None:
        if self.machine.about is None:
            if not self.is_own:  # don't contact a machine before the first block there
                return "" if self.is_common else None
            connect_in_session(self.machine)
        return self.machine.about.languages.get(self.there) if self.machine.about is not None else None

    def installed(self) -> str | None:
        version = self.version()
        return None if version is None else f"{version} on {self.machine.name}".strip()

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, code: str) -> Iterator[Step]:
        machine, context = self.machine, self.context
        if context.containment is not None:
            raise RemoteError(
                f"A sandbox here can't contain code on {machine.name}, so nothing ran there. Turn it off for work on "
                "that machine: `--sandbox off`, and no plan mode."
            )
        self._stopped = False
        yield from machine.connecting()
        if not self.covered_by_undo and not self._told:
            self._told = True
            yield {"type": "status", "format": "notice", "content": {"text": self.undo_notice()}}
        run, block = self._run = self.begin(code)
        if self._stopped or context.cancelled():
            self.stop()
        try:
            yield from block.shown(functools.partial(self._chunks, run, block), self.stop)
        finally:
            if block.last is None:  # the consumer stopped reading
                self.stop()
                block.detach()
                if machine.connected:
                    block.ended.wait(LEAVE_TIMEOUT)
            block.forget_events()
            block.spool.close()
            self._take_place()
            self._run = None

    def undo_notice(self) -> str:
        """Say what undo does not cover; shown once, before the first block."""
        return f"Files on {self.machine.name} are not covered by undo; its variables are."

    def begin(self, code: str) -> tuple[Any, RunningBlock]:
        """Start a block there, with what changed here since the last one.

        Returns its number, and where its events arrive.
        """
        context, machine = self.context, self.machine
        settings = {name: getattr(context, name) for name in SETTINGS if name != "cwd"}
        new = {name: each for name, each in context.shared.items() if machine.shared.get(name) != each.number}
        settings["shared"] = [[name, each.text] for name, each in new.items()]
        machine.shared |= {name: each.number for name, each in new.items()}
        settings["python"] = None if context.python == "in-process" else context.python
        if self.covered_by_undo:
            if context.cwd != machine.place and os.path.isabs(context.cwd):
                settings["cwd"] = context.cwd
            known = machine.exported
            settings["exported"] = {
                name: text for name, text in context.exported.items() if known.get(name, "\0") != text
            }
        return machine.begin(self, code, settings)

    def _take_place(self) -> None:
        if self.covered_by_undo and self.machine.place is not None:
            self.context.cwd, self.context.exported = self.machine.place, dict(self.machine.exported)

    def _chunks(self, run: int, block: RunningBlock, event: Frame) -> Iterator[Step]:
        match event["event"]:
            case "chunk" if event["asks"]:
                prompt, secret = str(event["chunk"].get("content") or ""), bool(event["chunk"].get("password"))
                text = None
                try:
                    text = yield from read_input(prompt, secret, self.context.on_input)
                finally:  # even after an interrupt, because the keeper waits for an answer
                    self.machine.say("answer", run=run, text=text)
            case "question":  # from a call, or from a reconnection that needs a password
                yield from event["question"].asked()
            case "chunk":
                chunk: Any = {
                    name: each for name, each in event["chunk"].items() if each is not None or name == "content"
                }
                chunk.pop("truncated", None)  # a path on that machine; this one keeps the whole output
                if chunk.get("format") == "output":
                    block.spool.write(chunk["content"])
                if "ended" in chunk:
                    self._take_place()
                    if block.spool.length > self.context.max_output:
                        chunk["truncated"] = block.spool.keep()
                yield chunk
                if event["size"]:
                    self.machine.say("shown", run=run, size=event["size"])
            case "ran":
                for name, value in event.get("shared") or []:
                    yield from self._take_shared(name, value, self.machine.shared)
                if event.get("failed"):
                    yield notice(f"{event['failed']}\n")
                    yield closing_chunk(1, "error")
            case "lost":
                yield notice(f"{event['words']}\n")
                yield closing_chunk(None, "died")
            case _:
                yield from event_chunks(event, self.context.emit_images)

    def _take_shared(self, name: str, text: str, known: dict[str, int]) -> Iterator[Chunk]:
        """Share a value of the code there with the languages here; those in `known` need not be sent back."""
        try:
            take(self.context.shared, name, text, self.context.max_shared)
            known[name] = self.context.shared[name].number
        except ValueError as error:
            yield notice(f"{name[:100]!r} was not shared: {error}.\n")

    def stop(self) -> None:
        self._stopped = True
        if self._run is not None:
            self.machine.say("stop", run=self._run[0])

    def send_keys(self, keys: bytes) -> None:
        """Pass what the user typed to the block that runs."""
        if self._run is not None:
            self.machine.say("keys", run=self._run[0], keys=packed(keys))

    def detach(self) -> None:
        """Move the running block to the background there."""
        if self._run is not None:
            self._ask("detach")

    def terminate(self) -> None:
        if self.machine.connected:
            with contextlib.suppress(RemoteError):
                self._ask("terminate")

    # -- state -----------------------------------------------------------------------------------------------------

    def _ask(self, name: str, *args: Any) -> Any:
        return self.machine.ask(self.there, name, *args)

    def variables(self) -> list[Any]:
        return self._ask("variables") if self.machine.connected else []

    def look(
        self, name: str, rows: Any = (0, 50), columns: Any = (0, 50), view: Any = None, again: bool = False
    ) -> Any:
        return self._ask("look", name, rows, columns, view, again)

    def stop_looking(self) -> None:
        self._ask("stop_looking")

    def complete(self, code: str, cursor: int) -> Any:
        return self._ask("complete", code, cursor) if self.machine.connected else super().complete(code, cursor)


class RestorableLanguage(RemoteLanguage):
    """A remote language whose variables can be undone."""

    @property
    def state(self) -> int | None:
        if not self.covered_by_undo and not self.machine.connected:
            return None  # don't contact a machine that is not in use yet
        return self._ask("state")  # type: ignore[no-any-return]

    def points(self) -> list[int]:
        return self._ask("points")  # type: ignore[no-any-return]

    def restore(self, state: int) -> Any:
        restored = self._ask("restore", state)
        self._take_place()
        return restored
