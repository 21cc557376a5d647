"""The program on the other machine: it keeps a session's runtimes and file record, even while no client is connected.

    python keeper.py start|resume FOLDER SECONDS WORKSPACE

`start` makes a keeper, which becomes a daemon, and connects it with standard input and output; `resume` only connects.
Only the user's own processes can open its socket. It ends when a client asks it to, or when no client has been
connected for so many seconds. It needs nothing but Python and the files that were copied with it.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import inspect
import os
import platform
import queue
import secrets
import selectors
import shutil
import socket
import sys
import threading
import time
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interpreter.errors import InterpreterError
from interpreter.questions import ANSWER, Answer, Question
from interpreter.remote.link import Link, packed, unpacked
from interpreter.runtimes import BUILT_IN, BaseLanguage, built_in_languages, state
from interpreter.runtimes.calls import ComputerCall, failure
from interpreter.runtimes.launch import RuntimeContext
from interpreter.runtimes.live import LiveLanguage
from interpreter.runtimes.protocol import READ_SIZE, BadFrame, Frame
from interpreter.runtimes.sharing import take
from interpreter.workspace import FileRecord, SnapshotLimits

SOCKET = "socket"
STOP_TIMEOUT = 10.0  # seconds that the blocks of a killed client have to end
GONE = 3  # the exit code of `resume` if there is no keeper
MAX_AHEAD_LENGTH = 4 * 1024 * 1024  # characters that may be on their way to a client before the program has to wait
# The settings of the runtimes that a client decides, by the names of RuntimeContext.
SETTINGS = tuple(
    "cwd colors timeout max_output python shares_environment offline shell shell_rc sql active_lines table_rows "
    "snapshots max_shared emit_images".split()
)
# What a client may call. Arguments and results have the types that the classes declare.
OFFERED: dict[str, tuple[type, frozenset[str]]] = {
    "language": (
        BaseLanguage,
        frozenset("variables look stop_looking complete state points restore terminate detach".split()),
    ),
    "files": (
        FileRecord,
        frozenset(
            "before after settle plan_undo plan_redo undo changes diff drift_diff why content blocks undone forgotten "
            "off is_prepared is_read prepare_in_background left_out limit".split()
        ),
    ),
}


@functools.cache
def types_of(kind: str, name: str) -> tuple[list[Any], Any]:
    """Return the parameter types and the result type of a method or property that a keeper offers."""
    member = getattr(OFFERED[kind][0], name, None)
    if isinstance(member, property):
        member = member.fget
    if member is None:
        return [], None  # `detach` of a live language, for example
    if not callable(member):
        return [], str | None
    hints = typing.get_type_hints(member, localns=vars(state))
    result = hints.pop("return", None)
    return [hints[each] for each in inspect.signature(member).parameters if each in hints], result


@dataclass(frozen=True)
class About:
    """Describe a machine to the model."""

    system: str
    user: str
    languages: dict[str, str | None]  # their versions; None if not installed
    workspace: str = ""


class Running:
    """A block that runs for a client."""

    def __init__(self) -> None:
        self.language: BaseLanguage | None = None
        self.answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.room = threading.Condition()
        self.ahead = 0  # characters that the client has not shown yet
        self.is_stopped = False
        self.ended = threading.Event()

    def add(self, size: int) -> None:
        with self.room:
            self.ahead += size
            self.room.notify_all()

    def stop(self) -> None:
        with self.room:
            self.is_stopped = True
            self.room.notify_all()
        if self.language is not None:
            self.language.stop()


class Keeper:
    """The runtimes of one session, and the connection to its client."""

    def __init__(self, folder: Path, workspace: str, keep: float) -> None:
        self.folder, self._keep = folder, keep
        self.context = RuntimeContext(cwd=workspace)
        self.context.tools = self
        self.workspace = workspace
        self.link = Link(self._received, secrets.token_hex(8), self._replace_client)
        self.over = threading.Event()
        self._languages: dict[str, BaseLanguage] = {}
        self._record: FileRecord | None = None
        self._running: dict[int, Running] = {}
        self._calls: dict[int, queue.SimpleQueue[Frame]] = {}  # calls of tools on the client's computer
        self._call_number = 0
        self._lock = threading.RLock()
        self._alone: threading.Timer | None = None

    # -- connections -----------------------------------------------------------------------------------------------

    def accept(self, listener: socket.socket) -> None:
        """Serve each client that connects, until the end."""
        while not self.over.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                threading.Thread(target=self._serve, args=(connection,), name="client", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(BadFrame):
            self.link.serve(connection, self.stop_waiting)
        with self._lock:
            if not self.link.connected and not self.over.is_set():
                self.wait_for_client()

    def _replace_client(self) -> None:
        """Stop everything that the last client began, because a new client takes its place."""
        self.stop_waiting()
        with self._lock:
            running, self._running = list(self._running.values()), {}
            calls, self._calls = list(self._calls.values()), {}
        for waiting in calls:
            waiting.put(failure("The call was interrupted."))
        for each in running:
            each.answers.put(None)
            threading.Thread(target=each.stop, name="stop", daemon=True).start()
        until = time.monotonic() + STOP_TIMEOUT
        for each in running:
            each.ended.wait(max(0.0, until - time.monotonic()))

    def wait_for_client(self) -> None:
        """End the keeper if no client connects in time."""
        self.stop_waiting()
        with self._lock:
            self._alone = threading.Timer(self._keep, self.over.set)
            self._alone.daemon = True
            self._alone.start()

    def stop_waiting(self) -> None:
        with self._lock:
            if self._alone is not None:
                self._alone.cancel()
                self._alone = None

    def close(self) -> None:
        for language in list(self._languages.values()):
            language.terminate()
        self.link.close()

    # -- what a client says ----------------------------------------------------------------------------------------

    def _received(self, frame: Frame) -> None:
        running = self._running.get(frame.get("run", -1))
        match frame.get("op"):
            case "run":
                running = self._running[frame["run"]] = Running()
                block = (frame, running, self.link.client)
                threading.Thread(target=self._run, args=block, name="block", daemon=True).start()
            case "call":
                threading.Thread(target=self._call, args=(frame, self.link.client), name="call", daemon=True).start()
            case "stop" if running is not None:
                threading.Thread(target=running.stop, name="stop", daemon=True).start()
            case "answer" if running is not None:
                running.answers.put(frame["text"])
            case "shown" if running is not None:
                running.add(-frame["size"])
            case "keys" if running is not None:
                getattr(running.language, "send_keys", lambda keys: None)(unpacked(bytes, frame["keys"]))
            case "called":
                waiting = self._calls.pop(frame.pop("call"), None)
                if waiting is not None:
                    waiting.put({name: value for name, value in frame.items() if name in ("value", "error")})
            case "end":
                self.over.set()

    def runtime(self, name: str) -> BaseLanguage:
        """Return the runtime of a language, made on first use."""
        with self._lock:
            if name not in self._languages:
                language: Any = BUILT_IN.describe(name).variant(self.context)
                self._languages[name] = language(self)
            return self._languages[name]

    def _run(self, frame: Frame, running: Running, client: str) -> None:
        number, end, known = frame["run"], Frame(), dict[str, int]()
        try:
            settings: Frame = frame["context"]
            for name in SETTINGS:
                if name in settings:
                    setattr(self.context, name, settings[name])
            self.context.exported.update(settings.get("exported", {}))
            for name, text in settings.get("shared", []):
                take(self.context.shared, name, text, self.context.max_shared)
            known = {name: each.number for name, each in self.context.shared.items()}
            running.language = language = self.runtime(frame["language"])
            self.context.cancelled = lambda: running.is_stopped
            language.on_end = lambda: self.link.send({"event": "over", "run": number}, client)
            for step in language.run(frame["code"]):
                with running.room:
                    running.room.wait_for(lambda: running.ahead <= MAX_AHEAD_LENGTH or running.is_stopped)
                question = step if isinstance(step, Question) else None
                chunk = step.subject.chunk if isinstance(step, Question) else step
                size = len(chunk["content"]) if isinstance(chunk.get("content"), str) else 0
                running.add(size)
                event = {"event": "chunk", "run": number, "chunk": chunk, "asks": question is not None, "size": size}
                self.link.send(event, client)
                if question is not None and (answer := running.answers.get()) is not None:
                    question.settle(Answer(ANSWER, answer))
        except InterpreterError as error:
            end = {"failed": str(error)}
        except Exception as error:  # noqa: BLE001 - the client must not wait for ever
            end = {"failed": f"{type(error).__name__}: {error}"}
        finally:
            running.ended.set()
            if self._running.get(number) is running:
                del self._running[number]
            new = [[name, each.text] for name, each in self.context.shared.items() if known.get(name) != each.number]
            self.link.send({"event": "ran", "run": number, "shared": new, **end, **self._place()}, client)

    def _place(self) -> Frame:
        return {"cwd": self.context.cwd, "exported": self.context.exported}

    def _call(self, frame: Frame, client: str) -> None:
        """Answer a client's call of a language or of the file record."""
        try:
            kind, name = ("files" if frame["on"] == "files" else "language"), frame["name"]
            value: Any
            if name == "about":
                languages = {each.name: self.runtime(each.name).version() for each in built_in_languages()}
                system = f"{platform.system()} {platform.release()}"
                value = About(system, getpass.getuser(), languages, self.workspace)
            elif name not in OFFERED[kind][1]:
                raise InterpreterError(f"The keeper doesn't know {name}.")
            else:
                target = self.record(frame["limits"]) if kind == "files" else self.runtime(frame["on"])
                member, hints = getattr(target, name, None), types_of(kind, name)[0]
                args = [unpacked(hint, each) for hint, each in zip(hints, frame["args"], strict=False)]
                value = member(*args) if callable(member) else member
                if name == "undo":
                    self._forget_folders()
            reply = {"value": packed(value)}
        except Exception as error:  # noqa: BLE001 - the client must not wait for ever
            reply = {"error": type(error).__name__, "words": str(error)}
        self.link.send({"event": "reply", "call": frame["call"], **reply, **self._place()}, client)

    def record(self, limits: list[int]) -> FileRecord:
        with self._lock:
            wanted = SnapshotLimits(*limits)
            if self._record is None:
                self._record = FileRecord(self.workspace, self.folder / "files", wanted, [self.folder.parent])
            if self._record.limits != wanted:
                self._record.limit(wanted)
            return self._record

    def _forget_folders(self) -> None:
        """Forget working directories after files were restored: a path may now be a different folder."""
        self.context.leave_lost_folder()
        for language in self._languages.values():
            if isinstance(language, LiveLanguage):
                language.known_cwd = None

    # -- the computer of the client, for the code that runs here -----------------------------------------------------

    def answer(self, call: ComputerCall) -> Frame:
        with self._lock:
            self._call_number += 1
            number = self._call_number
            waiting = self._calls[number] = queue.SimpleQueue()
        running = [
            each for each, about in self._running.items() if about.language and about.language.name == call.language
        ]
        call.on_end = lambda: self._call_off(number)
        self.link.send(
            {
                "event": "call",
                "call": number,
                "run": running[-1] if running else 0,
                "path": call.path,
                "how": call.how,
                "args": call.args,
                "kwargs": call.kwargs,
            }
        )
        return waiting.get()

    def _call_off(self, number: int) -> None:
        waiting = self._calls.pop(number, None)
        if waiting is not None:
            waiting.put(failure("The call was interrupted."))
            self.link.send({"event": "call_off", "call": number})


# -- the program -------------------------------------------------------------------------------------------------------


def keep(listener: socket.socket, folder: Path, workspace: str, seconds: float) -> None:
    """Run a keeper until it is over, then end the process."""
    keeper = Keeper(folder, workspace, seconds)
    keeper.wait_for_client()
    threading.Thread(target=keeper.accept, args=(listener,), name="clients", daemon=True).start()
    keeper.over.wait()
    keeper.close()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def relay(connection: socket.socket) -> None:
    """Copy bytes between standard input and output and the keeper, until one side ends."""
    with selectors.DefaultSelector() as ready:
        ready.register(0, selectors.EVENT_READ)
        ready.register(connection, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                data = os.read(key.fd, READ_SIZE)
                if not data:
                    return
                if key.fd == 0:
                    connection.sendall(data)
                else:
                    view = memoryview(data)
                    while view:
                        view = view[os.write(1, view) :]


def main(what: str, place: str, seconds: str, workspace: str) -> int:
    """Start a keeper or find it, and connect it with standard input and output."""
    folder = Path(place).expanduser().absolute()
    workspace = os.path.realpath(os.path.expanduser(workspace or "~"))
    if what == "start":
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    elif not folder.is_dir():
        return GONE
    os.chdir(folder)  # the path of a socket must be short
    if what == "start" and not os.path.isdir(workspace):
        sys.stderr.write(f"There is no folder {workspace}.\n")
        return 1
    if what == "start" and not os.path.exists(SOCKET):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(SOCKET)
        os.chmod(SOCKET, 0o600)
        listener.listen()
        if os.fork() == 0:  # become a daemon
            os.setsid()
            os.chdir("/")
            if os.fork():
                os._exit(0)
            log = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(log, descriptor)
            keep(listener, folder, workspace, float(seconds))
        listener.close()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(SOCKET)
    except OSError:
        return GONE
    relay(connection)
    return 0
