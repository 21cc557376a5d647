"""Helpers for rows: a scripted model, and the command line."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from model_server import ModelServer, Reply, reasoning, text, tool_call

del sys.path[0]

__all__ = [
    "ORIGINAL",
    "code",
    "command_line",
    "raises",
    "reasoning",
    "script",
    "scripted",
    "served",
    "terminal",
    "text",
    "tool_call",
]

ORIGINAL = (Path(sys.executable).parent / "litellm").exists()
PROGRAM = [str(Path(sys.executable).parent / "interpreter")] if ORIGINAL else [sys.executable, "-m", "interpreter"]
LIMIT = 60.0
QUIET = 0.4  # seconds without output after a prompt: the program waits for input
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[78]|\x1b\][^\x1b\x07]*(?:\x1b\\|\x07)|\x1bP[^\x1b]*\x1b\\")
_PROMPT = re.compile(rb"(?:^|[\r\n])> ?(?=[\r\n]|$)|\(y/n\)|what to change:")
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Server(ModelServer):
    """The scripted model; `chats` are the requests for a reply, without those for a list of models."""

    @property
    def chats(self) -> list[Any]:
        return [request for request in list(self.requests) if request.method == "POST"]


def code(source: str, language: str = "python", before: str = "") -> Any:
    """Return a reply of the model that runs code, after some text."""
    return (before, language, source)


def scripted(*replies: Any, on: Any = None, functions: bool = True) -> Server:
    """Start a model server with these replies, and connect an interpreter (by default the global one) to it.

    With `functions`, code comes as a tool call, otherwise as a fenced block. The server's `chats` are the
    requests to the model.
    """
    server = Server([_reply(each, functions) for each in replies]).start()
    if on is None:
        from interpreter import interpreter as on
    on.offline = True
    on.disable_telemetry = True
    on.llm.model = "openai/scripted"
    on.llm.api_base = server.base_url
    on.llm.api_key = "x"
    on.llm.context_window = 16000
    on.llm.max_tokens = 1000
    on.llm.supports_functions = functions
    on.llm.supports_vision = False
    return server


def short_chat() -> None:
    """Chat once, with a code block, as in most rows."""
    from interpreter import OpenInterpreter

    agent = OpenInterpreter(auto_run=True)
    scripted(code("1"), "One.", on=agent)
    agent.chat("Go", display=False)


def _reply(each: Any, functions: bool) -> Any:
    if not isinstance(each, (str, tuple)):
        return each
    before, language, source = each if isinstance(each, tuple) else (each, "", "")
    message = text(before, 4) if before else Reply()
    if not language:
        return message
    if functions:
        return message.then(tool_call(language, source))
    # Split the way a tokenizer splits a fence.
    fence = [
        f"{before}\n" if before else "",
        "```",
        language,
        "\n",
        *source.splitlines(keepends=True),
        "\n",
        "```",
        "\n",
    ]
    return text("".join(fence), [piece for piece in fence if piece])


class Served:
    """A server of `AsyncInterpreter`, for a program that has the key."""

    key = "the-key"

    def __init__(self, agent: Any) -> None:
        import uvicorn

        server = uvicorn.Server(uvicorn.Config(agent.server.app, port=0, log_level="error"))
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            time.sleep(0.01)
        self.port: int = server.servers[0].sockets[0].getsockname()[1]

    def ask(self, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """Send a GET, or with a body a POST, and return the answer: JSON as its value, else bytes."""
        headers = {"X-API-KEY": self.key, "Content-Type": kind}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            content = answer.read()
        return json.loads(content) if "json" in answer.headers["Content-Type"] else content


def served(agent: Any) -> Served:
    """Serve an AsyncInterpreter, made after INTERPRETER_API_KEY was set to `the-key`."""
    return Served(agent)


class raises:
    """`with raises(ValueError): ...`: the block must raise it."""

    def __init__(self, *kinds: type[BaseException]) -> None:
        self.kinds = kinds
        self.text = ""

    def __enter__(self) -> raises:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        assert kind is not None, f"no {' or '.join(each.__name__ for each in self.kinds)}"
        self.text = str(error)
        return issubclass(kind, self.kinds)


def _output_of(command: list[str], stdin: str = "", env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run a program; return its status and output, through a file: a background process may keep a pipe open."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as source:
        source.write(stdin)
        source.seek(0)
        done = subprocess.run(command, stdin=source, stdout=output, stderr=subprocess.STDOUT, timeout=LIMIT, env=env)
        output.seek(0)
        return done.returncode, output.read()


def script(source: str, **environment: str) -> str:
    """Run a script in a fresh Python. Returns its output."""
    status, output = _output_of([sys.executable, "-c", source], env={**os.environ, **environment})
    assert status == 0, output[-2000:]
    return output


class Finished:
    """The result of a command line: its output, its exit status, and the requests to the model."""

    def __init__(self, output: str, status: int, server: Server) -> None:
        self.output = output
        self.status = status
        self.chats = server.chats

    def __contains__(self, words: str) -> bool:
        return words in self.output


def command_line(*arguments: str, stdin: str = "", replies: Any = ("Hello.",), functions: bool = True) -> Finished:
    """`interpreter ARGUMENTS`, with its standard input from a pipe."""
    with Server([_reply(each, functions) for each in replies]) as server:
        command = [*PROGRAM, *arguments, *_connection(server, arguments, functions)]
        status, output = _output_of(command, stdin)
    print(output)  # shown if the row fails
    return Finished(output, status, server)


def _connection(server: Server, arguments: Any, functions: bool) -> list[str]:
    """Return the flags for the model server, except those that the row sets itself."""
    flags = ["--api_base", server.base_url, "--api_key", "x", "--offline"]
    flags += ["--llm_supports_functions" if functions else "--no-llm_supports_functions"]
    for name, short, value in (
        ("--model", "-m", "openai/scripted"),
        ("--context_window", "-cw", "16000"),
        ("--max_tokens", "-x", "1000"),
    ):
        flags += [] if name in arguments or short in arguments else [name, value]
    return flags


def terminal(*lines: str, flags: Any = (), replies: Any = ("Hello.",), functions: bool = True) -> Finished:
    """`interpreter FLAGS` in a terminal: each line is typed when the program waits for input; then Ctrl-D."""
    with Server([_reply(each, functions) for each in replies]) as server:
        command = [*PROGRAM, *flags, *_connection(server, flags, functions)]
        pid, screen = pty.fork()
        if pid == 0:
            os.execv(command[0], command)
        try:
            seen = b""
            for line in [*lines, "\x04"]:
                seen += _read_until_quiet(screen, LIMIT)
                with contextlib.suppress(OSError):
                    os.write(screen, line.encode() + (b"" if line == "\x04" else b"\r"))
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline:
                try:
                    if select.select([screen], [], [], 0.2)[0]:
                        seen += os.read(screen, 65536)
                except OSError:
                    break
        finally:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.close(screen)
    output = _ESCAPES.sub(b"", seen).decode(errors="replace")
    print(output)  # shown if the row fails
    return Finished(output, status, server)


def _read_until_quiet(screen: int, limit: float) -> bytes:
    """Read until the program shows a prompt (`> `, or a question) and waits."""
    seen, deadline = b"", time.monotonic() + limit
    while time.monotonic() < deadline:
        if select.select([screen], [], [], QUIET)[0]:
            try:
                part = os.read(screen, 65536)
            except OSError:
                return seen
            seen += part
            if b"\x1b[6n" in part:
                os.write(screen, b"\x1b[1;1R")
        elif _PROMPT.search(_ESCAPES.sub(b"", seen)[-400:]):
            return seen
    return seen
