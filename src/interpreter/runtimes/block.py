"""One run of code in a runtime: its events in order, its whole output, its deadline, and the chunks that it shows."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import queue
import re
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from interpreter.config.homes import make_folder, our_folder
from interpreter.messages import Chunk
from interpreter.questions import Step
from interpreter.runtimes.protocol import READ_SIZE, Frame, family

WAITING_LIMIT = 4 * 1024 * 1024  # characters buffered for a slow consumer before the program has to wait
EVENT_SIZE = 500  # characters that an event counts, besides its text

# -- channels: where a block and its children write ------------------------------------------------------------------


@dataclass
class Channels:
    """The descriptors through which a block and its children write, new for each block."""

    reads: list[tuple[int, str]] = field(default_factory=list)  # (our end, "stdout" or "stderr")
    sends: list[int] = field(default_factory=list)  # sent to the driver with the run frame
    held: list[int] = field(default_factory=list)  # kept open here until the block has ended
    fields: Frame = field(default_factory=dict)  # the run frame's fields about them
    plain: Callable[[str], str] = str  # cleans the output before anyone reads it


MAX_HELD_BYTES = 1024 * 1024  # bytes; more than a pipe or a terminal can hold back
MAX_EARLY_LENGTH = 64 * 1024  # characters


class OutputChannel:
    """Our end of a pipe or a terminal that a block, its children or the worker itself write to."""

    order = 1  # after frames, which the driver sent before a child wrote

    def __init__(self, block: RunningBlock | None, fd: int, name: str, plain: Callable[[str], str] = str) -> None:
        self.block, self.fd, self.name, self._plain = block, fd, name, plain
        self.before: OutputChannel | None = None  # its output comes first
        self.early = ""  # the last output written while there was no block
        self._open = True
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        os.set_blocking(fd, False)

    def fileno(self) -> int:
        return self.fd

    def ready(self) -> bool:
        """Read what is available. False at the end of the stream."""
        if self.before is not None:
            self.before.drain()
        try:
            data = os.read(self.fd, READ_SIZE)
        except BlockingIOError:
            return True
        except OSError:
            data = b""  # a pseudo-terminal without writers answers with EIO
        self._take(data)
        return bool(data)

    def drain(self) -> None:
        """Read everything written so far, but little of what a background job writes in the meantime."""
        taken = 0
        with contextlib.suppress(OSError):
            while self._open and taken < MAX_HELD_BYTES and (data := os.read(self.fd, READ_SIZE)):
                taken += len(data)
                self._take(data)

    def _take(self, data: bytes) -> None:
        text = self._decoder.decode(data, final=not data)
        if self.block is None:
            self.early = (self.early + text)[-MAX_EARLY_LENGTH:]
        elif text:
            self.block.put({"event": "stream", "name": self.name, "text": self._plain(text)})

    def ended(self) -> None:
        """Close the descriptor, because the reader no longer uses it."""
        if self.block is not None and self in self.block.channels:
            self.block.channels.remove(self)
        self._open = False
        os.close(self.fd)


# -- the block -------------------------------------------------------------------------------------------------------


class RunningBlock:
    """A running or finished block. The reader thread puts events; a consumer peeks at one, handles it and advances.

    An event stays in the queue until it has been handled, so an exception in the consumer cannot lose it. The last
    event (`done`, `exited` or `detached`) is sticky: it needs no consumer, and every consumer can read it at any time.
    """

    def __init__(self, number: int, code: str, spool: Spool, clock: Clock | None = None) -> None:
        self.number, self.code, self.spool = number, code, spool
        self._installs = {"stdout": InstallLog(), "stderr": InstallLog()} if _INSTALLS.search(code) else {}
        self.clock = clock or Clock(None)  # used by the reader thread only
        self.channels: list[OutputChannel] = []
        self.held: list[int] = []
        self.attached = True
        self.finished = False
        self.started = clock_ticks()  # processes that start later belong to it
        self.last: Frame | None = None  # the event that ended it
        self.ended = threading.Event()  # set when `last` is
        self.on_end: Callable[[], None] | None = None  # called once, in the thread that ends the block
        self.tend: Callable[[], float | None] = lambda: None  # run by the reader while it waits for the consumer
        self.interrupted = False
        self._waits = True  # whether the reader waits for a slow consumer
        self.pressed = 0.0  # when it was last sent an interrupt
        self._ending = threading.Lock()
        self._events: deque[tuple[Frame, int]] = deque()  # each with `_put` as it was after the event
        self._put = self._got = 0  # characters; each has one writer
        self._arrived = threading.Lock()  # released when there may be new events
        self._room = threading.Event()
        self._room.set()

    @property
    def running(self) -> bool:
        """Check whether the block, or something it started, is still running."""
        return not self.finished or bool(self.channels)

    # -- for the reader thread -----------------------------------------------------------------------------------------

    def put(self, frame: Frame) -> None:
        """Queue an event. Waits while the consumer is far behind."""
        size = EVENT_SIZE
        if frame["event"] == "stream":
            size = len(frame["text"])
            self.spool.write(frame["text"])
            if log := self._installs.get(frame["name"]):
                before, frame = log.step, {**frame, "text": log.feed(frame["text"])}
                if before != log.step:
                    self.nudge({"event": "installing", "step": log.step})
                if not frame["text"]:
                    return
        else:
            self._end_installs()
        if frame["event"] == "display":
            size += sum(len(form) for form in frame["data"].values() if isinstance(form, str))
        while self._waiting() > WAITING_LIMIT:
            if not self._waits or self.clock.stage not in ("running", "asked"):
                return  # to the spool only: an interrupted block must end, even if its consumer is suspended
            self._room.clear()
            if self._waits and self._waiting() > WAITING_LIMIT:  # the consumer may have advanced just now
                self._room.wait(self.tend())
        self._put += size
        self.nudge(frame)

    def _end_installs(self) -> None:
        for name, log in self._installs.items():
            if text := log.end():
                self.nudge({"event": "stream", "name": name, "text": text})

    def _waiting(self) -> int:
        return self._put - self._got if self._events else 0

    def end(self, frame: Frame) -> None:
        """Set the last event, from any thread. Only the first call counts."""
        with self._ending:
            if self.last is not None:
                return
            self._end_installs()
            self.last = frame
        self._arrive()
        self.ended.set()
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()

    # -- for other threads ---------------------------------------------------------------------------------------------

    def nudge(self, frame: Frame) -> None:
        """Queue an event from any thread, even beyond the limit."""
        if self.attached and self.last is None:
            self._events.append((frame, self._put))
            self._arrive()

    def _arrive(self) -> None:
        if self._arrived.locked():
            with contextlib.suppress(RuntimeError):  # already released by another thread
                self._arrived.release()

    def interrupt(self) -> None:
        """Mark the block as interrupted, and wake the reader if it waits for room."""
        self.interrupted = True
        self._room.set()

    def stop_waiting(self) -> None:
        """Stop waiting for the consumer: output beyond its buffer goes to the spool only."""
        self._waits = False
        self._room.set()

    def detach(self) -> None:
        """Detach from the consumer, which is gone: new output goes to the spool only."""
        self.attached = False
        self.stop_waiting()

    # -- for the consumer ----------------------------------------------------------------------------------------------

    def peek(self, timeout: float = -1) -> Frame:
        """Return the next event, which stays the next one until `advance`.

        Raises queue.Empty after `timeout` seconds.
        """
        while not self._events:
            if self.last is not None and not self._events:
                return self.last
            self._room.set()  # in case an exception stopped `advance` before it did this
            if not self._arrived.acquire(timeout=timeout):
                raise queue.Empty
        return self._events[0][0]

    def advance(self, frame: Frame) -> None:
        """Remove an event that has been handled. Calling it again for the same event changes nothing."""
        if self._events and self._events[0][0] is frame:
            _, self._got = self._events.popleft()
        if not self._room.is_set() and self._put - self._got <= WAITING_LIMIT // 2:
            self._room.set()

    def events(self, interrupt: Callable[[], None]) -> Iterator[Frame]:
        """Yield the block's events, while it runs or later. The last one is `last`.

        On KeyboardInterrupt the block is interrupted, the remaining events still come, and then it is raised again.
        """
        struck = False
        handled: Frame | None = None
        while True:
            try:
                if handled is not None:
                    self.advance(handled)
                event = self.peek()
            except KeyboardInterrupt:
                struck = True
                interrupt()
                continue
            if event is self.last:
                break
            if self.last is None or event["event"] not in ("input_request", "question"):
                yield event
            elif event["event"] == "question":  # a block that has ended needs no answers
                event["question"].withdraw()
            handled = event
        yield event
        if struck:
            raise KeyboardInterrupt

    def shown(
        self, steps: Callable[[Frame], Iterable[Step]], interrupt: Callable[[], None]
    ) -> Generator[Step, None, None]:
        """Yield what the block's events show.

        KeyboardInterrupt, for example during a question, is raised at the end.
        """
        struck = False
        for event in self.events(interrupt):
            left = steps(event)
            while True:
                try:
                    yield from left
                    break
                except KeyboardInterrupt:
                    struck = True
                    interrupt()
        if struck:
            raise KeyboardInterrupt

    def forget_events(self) -> None:
        """Drop the queue: the consumer has left."""
        self.detach()
        self._events.clear()

    def drain_channels(self) -> None:
        for channel in list(self.channels):
            channel.drain()

    def release_held(self) -> None:
        held, self.held = self.held, []
        for fd in held:
            os.close(fd)


# -- installations -----------------------------------------------------------------------------------------------------

_INSTALLS = re.compile(r"\bpip3?\b['\", \w.=*-]{0,80}\binstall\b")
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*(?:[@-~]|$)")
_FIRST = re.compile(  # steps that other programs rarely print
    r"Collecting \S+(?: \(from .*)?$|Requirement already satisfied:|Looking in (?:indexes|links):|Processing \S*[/.]|"
    r"Obtaining \S+:|Resolved \d+ pack|Using Python \d"
)
_STEP = re.compile(
    r"Collecting|Downloading|Using cached|Installing|Preparing|Getting requirements|Building|Created wheel|Stored in|"
    r"Attempting uninstall|Found existing|Uninstalling|Successfully (?:uninstalled|built)|Prepared \d|[━╸╺]"
)
_NOTE = re.compile(r"Note: you may need to restart|WARNING: Running pip|\[notice|[-+~] \S+==")
_IS_THERE = re.compile(r"Requirement already satisfied: (\S+)(?!.*\(from )")
_ASKED = re.compile(r"Collecting ([\w.-]+)(?!.*\(from )")
_INSTALLED = re.compile(r"Successfully installed |Installed \d+ pack")
_MAX_NAMED = 4
_MAX_HELD = 40  # characters of an unfinished line that may belong to the log


class InstallLog:
    """Shortens the log of pip or uv to one line, its last. All other text passes."""

    def __init__(self) -> None:
        self.step = ""  # the current step; empty when it is over
        self._open, self._passes = "", False
        self._there, self._asked = list[str](), list[str]()
        self._inside = self._ignores_blanks = False

    def feed(self, text: str) -> str:
        *lines, self._open = (self._open + text).split("\n")
        shown = "".join(map(self._line, lines))
        if self._passes or (len(self._open) > _MAX_HELD and not self._is_step(self._open)):
            shown, self._open, self._passes = shown + self._open, "", True
        return shown

    def _is_step(self, line: str) -> bool:
        step, *later = [part.strip() for part in _ESCAPE.sub("", line).split("\r") if part.strip()] or [""]
        self._inside = self._inside or _FIRST.match(step) is not None
        if self._inside and (_FIRST.match(step) or _STEP.match(step)):
            self.step = [step, *later][-1]
            return True
        return _NOTE.match(step) is not None if step else self._ignores_blanks

    def _line(self, line: str) -> str:
        if not self._passes and self._is_step(line):
            self._ignores_blanks = True
            self._there += _IS_THERE.findall(line)
            self._asked += [name.lower().replace("_", "-") + "-" for name in _ASKED.findall(line)]
            return ""
        self._inside = self._passes = False
        self.step, self._ignores_blanks = "", _INSTALLED.match(line) is not None
        if line.startswith("Successfully installed "):
            self._there, asked = [], tuple(self._asked)
            names = sorted(line.split()[2:], key=lambda name: not name.lower().replace("_", "-").startswith(asked))
            if len(names) > _MAX_NAMED:
                line = f"Successfully installed {', '.join(names[:_MAX_NAMED])} and {len(names) - _MAX_NAMED} more"
        return self._already() + line + "\n"

    def end(self) -> str:
        """Return the text still held back, because code now shows or asks for something."""
        line, self._open = "" if self._is_step(self._open) else self._open, ""
        self._passes = self._passes or bool(line)
        return self._already() + line

    def _already(self) -> str:
        there, self._there = ", ".join(self._there), []
        return f"Already installed: {there}\n" * bool(there)


# -- the whole output ------------------------------------------------------------------------------------------------

MAX_IN_MEMORY = 256 * 1024
MAX_KEPT_BYTES = 2 * 1024**3  # all kept outputs together; the oldest are deleted first


class Spool:
    """The whole output of a block, in memory while it is short and in a file when it is long.

    A reader thread writes, any thread reads.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder = folder  # called when the first file is needed
        self._lock = threading.Lock()
        self._pieces: list[str] = []
        self._file: IO[str] | None = None
        self._kept = self._closed = False
        self.length = 0

    def write(self, text: str) -> None:
        with self._lock:
            if self._closed:
                return
            self.length += len(text)
            if self.length > MAX_KEPT_BYTES:
                return  # too much output: the rest is not kept
            if self._file is None:
                self._pieces.append(text)
                if self.length > MAX_IN_MEMORY:
                    self._open_file()
            else:
                self._file.write(text)
                if self._kept:  # others know its path, and may read it now
                    self._file.flush()

    def read(self) -> str:
        with self._lock:
            if self._file is None:
                return "".join(self._pieces)
            if not self._closed:
                self._file.flush()
            path = Path(self._file.name)
            return path.read_text("utf-8") if path.exists() else ""

    def keep(self) -> str:
        with self._lock:
            file = self._file or self._open_file()
            self._kept = True
            if not self._closed:
                file.flush()
            return file.name

    def close(self) -> None:
        """Close the file, and delete it unless it was kept."""
        with self._lock:
            self._closed = True
            if self._file is not None:
                self._file.close()
                if not self._kept:
                    Path(self._file.name).unlink(missing_ok=True)

    def _open_file(self) -> IO[str]:
        folder = self._folder()
        make_folder(folder)
        drop_oldest(folder, MAX_KEPT_BYTES)
        self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115 - it is open until `close`
            "w",
            encoding="utf-8",
            errors="replace",
            newline="",
            suffix=".txt",
            prefix="output-",
            dir=folder,
            delete=False,
        )
        self._file.writelines(self._pieces)
        self._pieces = []
        return self._file


def drop_oldest(folder: Path, allowed: int) -> None:
    """Delete the oldest outputs in a folder until the rest fits."""
    files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("output-*"))
    total = sum(size for _, size, _ in files)
    for _, size, path in files:
        if total <= allowed:
            return
        path.unlink(missing_ok=True)
        total -= size


def outputs_folder() -> Path:
    return our_folder("cache") / "outputs"


# -- the deadline ----------------------------------------------------------------------------------------------------

SWEEP_AFTER = 0.4  # seconds from an interrupt until the block's children are killed
AGAIN_AFTER = 0.6  # until a second interrupt: os.system() ignores them while it waits for a child
KILL_AFTER = 1.0  # seconds from an interrupt until the worker is killed
STEPS = {  # the next stage, and the seconds until the one after it
    "running": ("asked", SWEEP_AFTER),
    "asked": ("swept", AGAIN_AFTER - SWEEP_AFTER),
    "swept": ("pressed", KILL_AFTER - AGAIN_AFTER),
}
START_DELAYS = 25  # how often the first step is postponed for a worker that is still starting
STARVED = 0.3  # a thread that waited for a processor for this share of the time could not react
STARVED_DELAYS = 75  # how often a step is postponed for that


class Clock:
    """Decides when a block that must end is pressed next, and records why it ended."""

    def __init__(self, timeout: float | None, worker: Callable[[], int | None] = lambda: None) -> None:
        self._until = None if timeout is None else time.monotonic() + timeout
        self.stage = "running"
        self.why: str | None = None
        self._start_delays, self._starved_delays = START_DELAYS, STARVED_DELAYS
        self._worker, self._since = worker, 0.0
        self._before: dict[str, tuple[float, float]] = {}

    def remaining(self) -> float | None:
        return None if self._until is None else max(0.0, self._until - time.monotonic())

    def may_still_start(self) -> bool:
        """Grant a worker that is not ready a little more time, if it has not had too much already."""
        if self.in_grace_period():
            return True
        self._start_delays -= 1
        if self._start_delays >= 0:
            self._until = time.monotonic() + SWEEP_AFTER
        return self._start_delays >= 0

    def in_grace_period(self) -> bool:
        """Grant a worker more time if the machine was too busy to run it."""
        long = STARVED * (time.monotonic() - self._since)
        for thread, (ran, waited) in self._scheduled().items():
            ran_before, waited_before = self._before.get(thread, (0.0, 0.0))
            if waited - waited_before >= long and ran - ran_before < KILL_AFTER and self._starved_delays > 0:
                self._starved_delays -= 1
                self._until = time.monotonic() + SWEEP_AFTER
                return True
        return False

    def _scheduled(self) -> dict[str, tuple[float, float]]:
        """Return the CPU times of the worker, its programs and this process, which must run to see the block's end."""
        pid = self._worker()
        processes = (*family(pid), os.getpid()) if pid is not None else ()
        return {thread: times for each in processes for thread, times in scheduled_times(each).items()}

    def advance(self) -> None:
        if self.stage == "running":
            self._before, self._since = self._scheduled(), time.monotonic()
        self.stage, wait = STEPS.get(self.stage, ("killed", None))
        self._until = None if wait is None else time.monotonic() + wait


def clock_ticks() -> int:
    """Return the time in the unit of process start times; 0 on systems without them."""
    is_known = sys.platform == "linux"
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")) if is_known else 0


def scheduled_times(pid: int) -> dict[str, tuple[float, float]]:
    """Return, by thread, the seconds that it ran and that it waited for a processor; empty on other systems."""
    times: dict[str, tuple[float, float]] = {}
    with contextlib.suppress(OSError, ValueError):  # the process has ended, or this is not Linux
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                ran, waited, _ = file.read().split()
                times[task] = int(ran) / 1e9, int(waited) / 1e9
    return times


# -- chunks ----------------------------------------------------------------------------------------------------------


def event_chunks(event: Frame, emit_images: bool = True) -> Iterator[Chunk]:
    """Convert an event to chunks. Without `emit_images`, the model does not get the images."""
    match event["event"]:
        case "stream":
            yield console(event["text"], event["name"])
        case "active_line":
            yield {"type": "console", "format": "active_line", "content": event["line"]}
        case "display":
            yield from display_chunks(event["data"], emit_images)
        case "called":
            yield {"type": "status", "format": "call", "content": event["call"]}
        case "installing":
            yield {"type": "status", "format": "installing", "content": {"step": event["step"]}}


IMAGES = {"image/png": "base64.png", "image/jpeg": "base64.jpeg"}
READABLE = ("text/markdown", "text/latex", "application/json")  # for the user and the model alike
PICTORIAL = ("image/svg+xml", "application/javascript")  # for the user; the model gets the plain text


def display_chunks(data: dict[str, Any], emit_images: bool = True) -> Iterator[Chunk]:
    """Convert a MIME bundle that code displays to chunks, the richest form that we know first.

    Without `emit_images`, the model does not get the images.
    """
    for mime, name in IMAGES.items():
        if mime in data:
            image: Chunk = {"type": "image", "format": name, "content": _text(data[mime]).replace("\n", "")}
            if "text/csv" in data:
                image["data"] = _text(data["text/csv"])
            yield image if emit_images else {**image, "recipient": "user"}
            return
    plain = _text(data.get("text/plain", ""))
    as_text = [console(_line(plain))] if plain else []
    if "text/html" in data:
        for chunk in as_text:
            yield {**chunk, "also": "html"}  # the HTML that follows replaces it for the user
        yield {"type": "code", "format": "html", "content": _text(data["text/html"]), "recipient": "user"}
        return
    for mime in PICTORIAL:
        if mime in data:
            yield from as_text
            yield {**console(_text(data[mime])), "mime": mime, "recipient": "user"}
            return
    shown = next((mime for mime in READABLE if mime in data), None)
    if shown is None and (plain or not data):
        yield from as_text
        return
    shown = shown or next(iter(data))
    yield {**console(_line(_text(data[shown]))), "mime": shown}


def _text(form: Any) -> str:
    """Return a bundle's entry as text; it can be text, lines, or any JSON value."""
    if isinstance(form, list) and all(isinstance(line, str) for line in form):
        return "".join(form)
    return form if isinstance(form, str) else json.dumps(form, indent=2, ensure_ascii=False)


def _line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def console(text: str, stream: str = "stdout") -> Chunk:
    chunk: Chunk = {"type": "console", "format": "output", "content": text}
    return {**chunk, "stream": "stderr"} if stream == "stderr" else chunk


def notice(text: str) -> Chunk:
    """Make a chunk with our own message, to appear in a block's output."""
    return {**console(text, "stderr"), "ours": True}


def closing_chunk(exit_code: int | None, ended: str) -> Chunk:
    return {"type": "console", "format": "active_line", "content": None, "exit_code": exit_code, "ended": ended}
