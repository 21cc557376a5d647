"""PowerShell, the shell on Windows. Untested: no other system reaches it."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from interpreter.errors import SessionStartError
from interpreter.messages import Chunk
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.block import closing_chunk, console
from interpreter.runtimes.context import SessionContext
from interpreter.runtimes.live import HasContext

DRIVER = Path(__file__).with_name("driver.ps1")
START_WITHIN = 30.0  # seconds


class PowerShell(BaseLanguage):
    """A live PowerShell; it has no signals, so an interrupt ends it."""

    name = "Shell"
    aliases = ("powershell", "pwsh", "batch", "bat", "bash", "sh", "zsh")
    file_extension = "ps1"
    lexer = "powershell"
    explains_failures = False
    order = 2

    def __init__(self, computer: HasContext | None = None) -> None:
        self.context = computer.context if computer is not None else SessionContext()
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: IO[str] | None = None

    def run(self, code: str) -> Iterator[Chunk]:
        if self._process is None:
            self._start()
        assert self._lines is not None
        self._lines.write(json.dumps({"code": code, "cwd": self.context.cwd}) + "\n")
        self._lines.flush()
        for line in self._lines:
            frame = json.loads(line)
            if frame["event"] == "done":
                self.context.cwd = frame["cwd"]
                yield closing_chunk(frame["exit_code"], "done" if frame["status"] == "ok" else "error")
                return
            yield console(frame["text"])
        self.terminate()
        yield console("The PowerShell session ended. Its variables are lost; the next block starts a new one.\n")
        yield closing_chunk(None, "died")

    def _start(self) -> None:
        program = shutil.which("pwsh") or shutil.which("powershell")
        if program is None:
            raise SessionStartError(self.name, "PowerShell is not installed.")
        token = secrets.token_hex(16)
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(START_WITHIN)
            argv = [program, "-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass"]
            argv += ["-File", str(DRIVER), str(server.getsockname()[1]), token]
            env = self.context.environment()
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=env, cwd=self.context.cwd)
            connection, _ = server.accept()
        self._lines = connection.makefile("rw", encoding="utf-8", newline="\n")
        connection.close()  # the file keeps it open
        if self._lines.readline().strip() != token:
            self.terminate()
            raise SessionStartError(self.name, "somebody else answered in its place.")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()

    def terminate(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
