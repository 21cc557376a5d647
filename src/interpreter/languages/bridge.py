"""The worker of a language that is another program: it speaks frames with the host, and lines with the program.

A *persistent* program has a driver in its own language. The bridge starts it once and writes one command per line
(`{commands}` in its command line is the file to read them from):

    cd FOLDER          go there
    env NAME FILE      set a variable to what is in the file; `unset NAME` removes one
    share NAME FILE    set a variable to the value in the file, which another language shares
    run FILE           run the block in the file
    input FILE | eof   the answer to `input`

The driver writes lines to `{replies}`: `ready`, `input PROMPT`, `display MIME FILE [MIME FILE ...]`, `share NAME
FILE` for a value that other languages get, and at the end of a block `done STATUS CODE FOLDER`, where the status is ok,
error or interrupted; `missing PACKAGE` before it names one that could not be loaded. What the program prints goes to
stdout and stderr, as always.

A *one-shot* program is started for each block, and `{file}` in its command line is the block. It can keep what it
wants in the file `{state}`. If it writes its directory and its environment to `{state}.exports`, with a zero byte after
each, the next block has them.
"""

from __future__ import annotations

import base64
import codecs
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

Frame = dict[str, Any]
READ_SIZE = 64 * 1024
CAPACITY = 64 * 1024  # of a pipe: what was written earlier is no more than that
OF_PROCESS = {"_", "PWD", "OLDPWD", "SHLVL", "USER"}  # variables that describe the process itself
CHANGED = "changed.json"  # the environment variables that the last block changed, for the host
POLL_INTERVAL = 0.1  # seconds, for a one-shot program that waits for input
CAN_LOOK = sys.platform == "linux"  # whether a program that waits for input can be seen


class Backend:
    """Runs the blocks of a bridge."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    def start(self) -> None:
        """Get ready, and report that to the host."""
        self.bridge.send(event="ready")

    def run(self, frame: Frame, code: Path) -> None:
        """Begin a block, whose code is also in a file; `Bridge.done` ends it."""
        raise NotImplementedError

    def answer(self, text: str | None) -> None:
        """Pass on what the user typed; None for the end of input."""

    def interrupt(self) -> None:
        """End the block. Called from a signal handler, which can interrupt any of our code."""

    def children_changed(self) -> None:
        """Handle a signal, which may mean that a child process has ended."""

    def idle(self) -> None:
        """Handle a pause: nothing has happened for a while."""


class Bridge:
    """The connection to the host, the running block, and the streams to read for the backend."""

    def __init__(self, data: int, config: Frame, backend: Callable[[Bridge], Backend]) -> None:
        self.socket = socket.socket(fileno=data)
        self.config = config
        self.selector = selectors.DefaultSelector()
        self.block: int | None = None  # the running one
        self.last = 0
        self.interrupted = False
        self.idle_after: float | None = None  # seconds without events before `idle` is called
        self.backend = backend(self)
        self._pending = b""
        self._wake, self._waker = socket.socketpair()
        self._wake.setblocking(False)
        self._waker.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, self._interrupt)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        self.selector.register(self.socket, selectors.EVENT_READ, self._receive)
        self.selector.register(self._wake, selectors.EVENT_READ, self._woken)

    def serve(self) -> None:
        """Run blocks until the host is gone."""
        self.backend.start()
        while True:
            ready = self.selector.select(self.idle_after)
            for key, _ in ready:
                key.data()
            if not ready:
                self.backend.idle()

    def _interrupt(self, *_: object) -> None:
        if self.block is not None:
            self.interrupted = True
            self.backend.interrupt()

    def _woken(self) -> None:
        self._wake.recv(4096)
        self.backend.children_changed()

    def _receive(self) -> None:
        data = self.socket.recv(READ_SIZE)
        if not data:
            os._exit(0)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            frame = json.loads(line)
            match frame["op"]:
                case "run":
                    self.block = self.last = frame["block"]
                    self.interrupted = False
                    code = Path(frame["folder"], f"block.{self.config['extension']}")
                    code.write_text(frame["code"], "utf-8", "surrogateescape", newline="")
                    self.backend.run(frame, code)
                case "input" if frame["block"] == self.block:
                    self.backend.answer(frame.get("text"))
                case "inspect" | "complete":
                    self.send(event="answer", query=frame["query"])

    def send(self, **frame: Any) -> None:
        data = json.dumps(frame, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        try:
            self.socket.sendall(data)
        except OSError:
            os._exit(0)  # the host is gone

    def stream(self, name: str, text: str) -> None:
        if text:
            self.send(event="stream", block=self.last, name=name, text=text)

    def done(self, status: str, exit_code: int, **more: Any) -> None:
        number, self.block = self.block, None
        self.send(event="done", block=number, status=status, exit_code=exit_code, **more)


def adopt(frame: Frame) -> None:
    """Apply the environment variables and the directory in a frame."""
    for name, value in frame.get("env", {}).items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    if "cwd" in frame:
        os.chdir(frame["cwd"])


class Pipe:
    """A stream of a program, forwarded as it comes."""

    def __init__(self, bridge: Bridge, file: Any, name: str) -> None:
        self._bridge, self._file, self._name = bridge, file, name
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        os.set_blocking(file.fileno(), False)
        bridge.selector.register(file, selectors.EVENT_READ, self.read)

    def read(self) -> int:
        """Forward what is available. Returns the number of bytes, 0 if there was nothing."""
        try:
            data = b"" if self._file.closed else os.read(self._file.fileno(), READ_SIZE)
        except BlockingIOError:
            return 0
        text = self._decoder.decode(data, final=not data)
        if self._bridge.block is not None or self._bridge.last:
            self._bridge.stream(self._name, text)
        else:
            os.write(2, text.encode("utf-8", "replace"))  # the reason why it cannot start
        if not data:
            self.close()
        return len(data)

    def drain(self) -> None:
        """Forward everything written so far, but no more: a background process may never stop writing."""
        left = CAPACITY
        while left > 0 and (size := self.read()):
            left -= size

    def close(self) -> None:
        if not self._file.closed:
            self._bridge.selector.unregister(self._file)
            self._file.close()


class Program(Backend):
    """The common part of both kinds of programs: a process in its own group, and its streams."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self.process: subprocess.Popen[bytes] | None = None
        self.pipes: list[Pipe] = []

    def launch(self, command: Sequence[str], stdin: int, fds: Sequence[int] = ()) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=fds,
            process_group=0,
        )
        self.pipes = [
            Pipe(self.bridge, self.process.stdout, "stdout"),
            Pipe(self.bridge, self.process.stderr, "stderr"),
        ]

    def drain(self) -> None:
        for pipe in self.pipes:
            pipe.drain()

    def interrupt(self) -> None:
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGINT)
            except ProcessLookupError:
                pass  # it has just ended


class Persistent(Program):
    """A driver in the program's own language, which keeps the variables."""

    _files = 0
    _missing = ""  # a package that the block could not load

    def start(self) -> None:
        read, commands = os.pipe()
        self._replies, write = os.pipe()
        places = {"{commands}": f"/dev/fd/{read}", "{replies}": f"/dev/fd/{write}"}
        command = [places.get(part, part) for part in self.bridge.config["command"]]
        self.launch(command, subprocess.DEVNULL, (read, write))
        self._commands = open(commands, "w", encoding="utf-8", errors="surrogateescape", buffering=1)  # noqa: SIM115
        os.close(read)
        os.close(write)
        self._pending = b""
        self.bridge.selector.register(self._replies, selectors.EVENT_READ, self._listen)

    def run(self, frame: Frame, code: Path) -> None:
        self.folder = code.parent
        for name, value in frame.get("env", {}).items():
            self._say(f"unset {name}" if value is None else f"env {name} {self._file(value)}")
        if "cwd" in frame:
            self._say(f"cd {frame['cwd']}")
        for name, text in frame.get("shared", ()):
            self._say(f"share {name} {self._file(text)}")
        self._say(f"run {code}")

    def _say(self, command: str) -> None:
        try:
            self._commands.write(command + "\n")
        except OSError:
            pass  # it has ended, which other code handles

    def _file(self, text: str) -> Path:
        self._files += 1
        path = self.folder / f"value-{self._files % 1000}"
        path.write_text(text, "utf-8", "surrogateescape", newline="")
        return path

    def answer(self, text: str | None) -> None:
        self._say("eof" if text is None else f"input {self._file(text)}")

    def _listen(self) -> None:
        data = os.read(self._replies, READ_SIZE)
        if not data:
            self.bridge.selector.unregister(self._replies)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode("utf-8", "surrogateescape").partition(" ")
            number = self.bridge.block
            if word == "ready":
                self.bridge.send(event="ready")
                continue
            self.drain()  # its output comes before its reply
            match word if number is not None else "":
                case "input":
                    self.bridge.send(event="input_request", block=number, prompt=rest)
                case "display":
                    self.bridge.send(event="display", block=number, data=bundle(rest.split()))
                case "share":
                    name, path = rest.split(" ", 1)
                    value = Path(path).read_text("utf-8", "replace")
                    self.bridge.send(event="share", block=number, name=name, data=value)
                    os.unlink(path)
                case "missing":
                    self._missing = rest
                case "done":
                    status, code, folder = rest.split(" ", 2)
                    missing, self._missing = self._missing, ""
                    self.bridge.done(status, int(code), cwd=folder, missing=missing or None)

    def children_changed(self) -> None:
        """End as the program ended, after forwarding everything it wrote, if it has ended."""
        assert self.process is not None
        code = self.process.poll()
        if code is None:
            return
        self.drain()
        if code < 0:
            signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
            os.kill(os.getpid(), -code)
        os._exit(code)


def bundle(arguments: list[str]) -> dict[str, str]:
    """Read the forms of a value, by MIME type, from files, and delete them."""
    forms = {}
    for mime, path in zip(arguments[::2], arguments[1::2], strict=False):
        data = Path(path).read_bytes()
        is_text = mime.startswith("text/") or mime.endswith(("json", "xml"))
        forms[mime] = data.decode("utf-8", "replace") if is_text else base64.b64encode(data).decode("ascii")
        os.unlink(path)
    return forms


class OneShot(Program):
    """A program that runs one block and ends."""

    _asking = False
    _state = Path()

    def run(self, frame: Frame, code: Path) -> None:
        adopt(frame)
        for pipe in self.pipes:
            pipe.close()
        self._state = code.with_name("state")
        self._state.with_name(CHANGED).unlink(missing_ok=True)
        places = {"{file}": str(code), "{state}": str(self._state)}
        command = [places.get(part, part).replace("{file}", str(code)) for part in self.bridge.config["command"]]
        try:
            self.launch(command, subprocess.PIPE if CAN_LOOK else subprocess.DEVNULL)
        except OSError as error:
            self.bridge.stream("stderr", f"{command[0]}: {error.strerror}\n")
            self.bridge.done("error", 127)
            return
        self.bridge.idle_after, self._asking = POLL_INTERVAL if CAN_LOOK else None, False

    def idle(self) -> None:
        """Ask for input if the program is waiting for it, which it does not report."""
        from interpreter.runtimes.protocol import family  # not at the start, which it would double

        process, number = self.process, self.bridge.block
        if process is None or number is None or self._asking or not any(map(waits_for_input, family(process.pid))):
            return
        self._asking = True
        self.drain()
        self.bridge.send(event="input_request", block=number, prompt="")

    def answer(self, text: str | None) -> None:
        assert self.process is not None and self.process.stdin is not None
        self._asking = text is None  # after the end of input, don't ask again
        try:
            if text is not None:
                os.write(self.process.stdin.fileno(), text.encode("utf-8", "replace") + b"\n")
            else:
                self.process.stdin.close()
        except OSError:
            pass  # it has ended

    def children_changed(self) -> None:
        code = self.process.poll() if self.process is not None else None
        if code is None or self.bridge.block is None:
            return
        self.drain()
        self.bridge.idle_after = None
        stopped = self.bridge.interrupted  # fish exits with 0 even then
        status = "interrupted" if stopped else "error" if code else "ok"
        if code < 0 and not stopped:
            self.bridge.stream("stderr", f"It was ended by {signal.Signals(-code).name}.\n")
        self.bridge.done(status, code if code >= 0 else 128 - code, **self._left())

    def _left(self) -> Frame:
        """Apply and return the directory and exported variables that the block left, if the program reports them."""
        try:
            exports = self._state.with_name("state.exports")
            place, *pairs = os.fsdecode(exports.read_bytes()).split("\0")[:-1]
            exports.unlink()
            os.chdir(place)
        except (OSError, ValueError):
            return {}
        now = dict(pair.split("=", 1) for pair in pairs if re.match(r"[A-Za-z_]\w*=", pair, re.ASCII))
        names = (now.keys() | os.environ.keys()) - OF_PROCESS
        changed = {name: now.get(name) for name in names if now.get(name) != os.environ.get(name)}
        adopt({"env": changed})
        self._state.with_name(CHANGED).write_text(json.dumps(changed))
        return {"cwd": place}


def waits_for_input(pid: int) -> bool:
    """Check whether a thread of a process is reading or polling its standard input (Linux)."""
    read, polls = (0, (232, 281, 441)) if os.uname().machine == "x86_64" else (63, (22, 441))  # system calls of Linux
    try:
        files = {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        pipe = files[0]
        if not pipe.startswith("pipe:["):
            return False
        # A program may read from a copy of the descriptor.
        waiting = {f"{read} {fd:#x} " for fd, file in files.items() if file == pipe}
        polled = re.compile(rf"events: *[0-9a-f]*[13579bdf] .* ino:{int(pipe[6:-1]):x} ")  # odd: it waits for input
        for fd, file in files.items():
            if "[eventpoll]" in file and polled.search(Path(f"/proc/{pid}/fdinfo/{fd}").read_text()):
                waiting |= {f"{call} {fd:#x} " for call in polls}
        calls = (Path(f"/proc/{pid}/task/{task}/syscall").read_text() for task in os.listdir(f"/proc/{pid}/task"))
        return any(call.startswith(tuple(waiting)) for call in calls)
    except (OSError, KeyError):
        return False  # it has just ended


def run_worker(backend: Callable[[Bridge], Backend], data: int, origin: tuple[Any, ...]) -> int:
    """Run a supervisor's worker; the last argument on the command line is the configuration."""
    Bridge(data, json.loads(origin[-1][2]), backend).serve()
    return 0


main = partial(run_worker, lambda bridge: (Persistent if bridge.config["persistent"] else OneShot)(bridge))
