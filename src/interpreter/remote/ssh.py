"""One multiplexed connection of the system's OpenSSH: it asks questions, copies our code, and starts a keeper."""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import importlib.util
import io
import json
import os
import shlex
import shutil
import socket
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from interpreter.errors import RemoteError, SettingError
from interpreter.host import processes
from interpreter.remote.keeper import GONE

Ask = Callable[[str, bool], "str | None"]  # (prompt, whether the answer is secret) -> the answer; None if there is none

PACKAGE = Path(__file__).parent.parent
COPIED = (
    "__init__.py errors.py leaves.py version.py messages.py questions.py console_text.py sigint.py config/__init__.py "
    "config/homes.py remote/__init__.py remote/keeper.py remote/link.py"
)
COPIED_FOLDERS = ("host", "languages", "runtimes", "workspace")
PREFIX = "interpreter-ssh-"
ASKPASS = Path(__file__).with_name("askpass.py")
OPTIONS = {
    "ControlPersist": "60",  # seconds that the connection outlives a killed client
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ConnectTimeout": "20",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
    "RequestTTY": "no",
}
MAX_GREETING_BYTES = 10_000  # bytes that a login shell may print before our program answers
HAVE, WANT, OLD = b"open-interpreter have", b"open-interpreter want", b"open-interpreter python "
PYTHONS = "python3 python3.14 python3.13 python3.12 python3.11 python"
FIND = (
    "for p in {pythons}; do "
    'if "$p" -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null; then '
    'exec "$p" -I -c "import base64; exec(base64.b64decode(b\'{boot}\'))" {arguments}; fi; done; '
    'echo "{old}$(python3 --version 2>&1)"'
)
BOOT = """
import io, os, shutil, sys, tarfile, tempfile
digest, what, name, seconds, workspace = sys.argv[1:]
cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "open-interpreter")
code = os.path.join(cache, "remote", digest)
def say(words):
    sys.stdout.buffer.write(b"\\nopen-interpreter " + words + b"\\n")
    sys.stdout.buffer.flush()
if not os.path.isdir(code):
    say(b"want")
    data = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    os.makedirs(os.path.dirname(code), 0o700, exist_ok=True)
    made = tempfile.mkdtemp(dir=os.path.dirname(code))
    tarfile.open(fileobj=io.BytesIO(data)).extractall(made)
    try:
        os.rename(made, code)
    except OSError:
        shutil.rmtree(made)
say(b"have")
sys.path.insert(0, code)
from interpreter.remote.keeper import main
sys.exit(main(what, os.path.join(cache, "keepers", name), seconds, bytes.fromhex(workspace).decode()))
"""


@dataclass(frozen=True)
class SshAddress:
    """`ssh://[user@]host[:port][/path]`."""

    host: str
    user: str | None = None
    port: int | None = None
    path: str = ""

    @classmethod
    def parse(cls, address: str) -> SshAddress:
        try:
            parts = urlsplit(address)
            host, user, port = parts.hostname, parts.username, parts.port
        except ValueError as error:
            raise SettingError(f"{address} is not the address of a machine: {error}.") from error
        if parts.password is not None:
            raise SettingError("Leave the password out of the address: ssh asks for it when it needs it.")
        if parts.scheme != "ssh" or not host or parts.query or parts.fragment:
            raise SettingError(f"{address} is not an address such as ssh://user@host:22/folder.")
        if host.startswith("-") or (user or "").startswith("-"):
            raise SettingError(f"{address} is not an address: a name can't begin with `-`.")
        path = unquote(parts.path)
        return cls(host, unquote(user) if user else None, port, path[1:] if path.startswith("/~") else path)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}" if self.user else self.host


class Ssh:
    """The ssh connection to one machine, and the folder for its sockets."""

    def __init__(self, address: SshAddress, command: str = "ssh") -> None:
        self.address = address
        self._command = shlex.split(command)
        self._folder = Path(tempfile.gettempdir())  # a private folder once connected
        self._lock = threading.Lock()

    def _argv(self, *options: str) -> list[str]:
        fixed = {**OPTIONS, "ControlPath": self._folder / "control"}
        argv = [
            *self._command,
            *(each for name, value in fixed.items() for each in ("-o", f"{name}={value}")),
            *options,
        ]
        argv += ["-l", self.address.user] if self.address.user else []
        argv += ["-p", str(self.address.port)] if self.address.port else []
        return [*argv, "--", self.address.host]

    def connect(self, ask: Ask) -> None:
        """Connect if there is no connection. Raises RemoteError if that fails."""
        if not hasattr(socket, "AF_UNIX"):
            raise RemoteError(
                "Sessions over ssh need Linux or macOS here. On Windows, run Open Interpreter inside WSL."
            )
        with self._lock:
            if not self._folder.name.startswith(PREFIX):
                self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            elif (self._folder / "control").exists() and processes.run(self._argv("-O", "check")).returncode == 0:
                return
            with self._asking(ask) as env, tempfile.TemporaryFile() as errors:
                try:
                    process = processes.start(self._argv("-o", "ControlMaster=yes", "-fN"), env=env, stderr=errors)
                except FileNotFoundError as error:
                    raise RemoteError("Open Interpreter needs the program `ssh`, which is not installed.") from error
                code = process.wait()  # returns once ssh has connected and is in the background
                errors.seek(0)
                error_text = errors.read().decode("utf-8", "replace")
        if code:
            lines = [line for line in error_text.replace("\r", "").splitlines() if line.strip()]
            raise RemoteError(f"Can't connect to {self.address}: {' '.join(lines[-3:]) or f'ssh exited with {code}'}")

    @contextlib.contextmanager
    def _asking(self, ask: Ask):  # type: ignore[no-untyped-def]
        """Listen for ssh's questions, and yield the environment in which ssh sends them to us instead of a terminal."""
        program, place = self._folder / "askpass", self._folder / "questions"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S {shlex.quote(str(ASKPASS))} "$@"\n')
        program.chmod(0o700)
        listener = socket.socket(socket.AF_UNIX)
        place.unlink(missing_ok=True)
        listener.bind(str(place))
        listener.listen()

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError, ValueError):
                        asked = json.loads(connection.makefile("rb").readline(100_000))
                        if asked["kind"] == "none":  # only a notice, such as a reminder to touch a key
                            continue
                        prompt = str(asked["prompt"])
                        is_open = "(yes/no" in prompt or asked["kind"] == "confirm"
                        connection.sendall(json.dumps(ask(prompt, not is_open)).encode() + b"\n")

        threading.Thread(target=answer, name="ssh questions", daemon=True).start()
        env = {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "INTERPRETER_ASKPASS": str(place)}
        try:
            yield {"DISPLAY": os.environ.get("DISPLAY", ":"), **env}  # before OpenSSH 8.4, it must be set
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def open(self, what: str, name: str, seconds: float) -> socket.socket | None:
        """Connect to the keeper of that name, and `start` it if asked. None if there is none to `resume`."""
        digest, code = bundle()
        arguments = [digest, what, name, str(seconds), self.address.path.encode().hex() or '""']
        boot = base64.b64encode(BOOT.encode()).decode()
        script = FIND.format(pythons=PYTHONS, boot=boot, arguments=" ".join(arguments), old=OLD.decode())
        ours, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as errors:
            argv = [*self._argv("-o", "ControlMaster=no", "-T"), f"exec sh -c {shlex.quote(script)}"]
            process = processes.start(argv, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=errors)
            theirs.close()
            threading.Thread(target=process.wait, name="ssh", daemon=True).start()  # reaps ssh
            if _greeted(ours, code, self.address):
                return ours
            ours.close()
            exit_code = process.wait()
            errors.seek(0)
            error_text = errors.read(10_000).decode("utf-8", "replace").strip()
        if exit_code == GONE and what == "resume":
            return None
        raise RemoteError(f"Can't start on {self.address}: {error_text or f'ssh exited with {exit_code}'}")

    def close(self) -> None:
        """End the connection and everything that uses it."""
        with self._lock:
            if self._folder.name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    processes.run(self._argv("-O", "exit"), timeout=10)
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = self._folder.parent


def _greeted(ours: socket.socket, code: bytes, address: SshAddress) -> bool:
    """Wait until our program runs there, sending it our code if it asks. False if it ends first."""
    begun = b""
    while True:
        piece = ours.recv(1)  # what follows belongs to the keeper
        begun += piece
        if not piece or len(begun) > MAX_GREETING_BYTES:
            return False
        if not begun.endswith(b"\n"):
            continue
        line = begun.splitlines()[-1]
        if line == WANT:
            ours.sendall(b"%d\n" % len(code) + code)
        elif line == HAVE:
            return bool(ours.recv(1, socket.MSG_PEEK))  # the keeper speaks first
        elif line.startswith(OLD):
            version = line.removeprefix(OLD).decode("utf-8", "replace")
            reason = f"{address} has {version}" if "Python" in version else f"{address} has no Python"
            raise RemoteError(
                f"{reason}, and Open Interpreter needs Python 3.11 or later there, for any language. Install it there, "
                "for instance with `uv python install 3.12` or your package manager, so that `python3` or `python3.12` "
                "is found over ssh."
            )


@functools.cache
def bundle() -> tuple[str, bytes]:
    """Pack the code that the other machine needs as a tar file, and return its digest with it."""
    files = {f"interpreter/{name}": PACKAGE / name for name in COPIED.split()}
    spec = importlib.util.find_spec("platformdirs")
    roots = [("interpreter", PACKAGE, each) for each in COPIED_FOLDERS]
    if spec is not None and spec.origin is not None:
        roots.append(("", Path(spec.origin).parent.parent, "platformdirs"))
    for name, root, folder in roots:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files[f"{name}/{path.relative_to(root)}".lstrip("/")] = path
    made, digest = io.BytesIO(), hashlib.sha256()
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=6) as tar:
        for name, path in files.items():
            data, info = path.read_bytes(), tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
            digest.update(name.encode() + b"\0" + data)
    return digest.hexdigest()[:16], made.getvalue()
