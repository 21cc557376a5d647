"""A keeper in another process: blocks, state, files, lost connections and dead keepers."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from interpreter.errors import RemoteError, RemoteInUseError
from interpreter.questions import without_questions
from interpreter.remote.machine import Machine
from remote.conftest import RemoteSession, notices, text
from waiting import until

LIMITS = (10_000_000, 10_000_000, 1000)


def test_blocks_run_remotely_and_keep_their_state(remote: RemoteSession) -> None:
    chunks = remote.run("x = 41\nprint('hello')")
    assert text(chunks) == "hello\n"
    assert (chunks[-1]["ended"], chunks[-1]["exit_code"]) == ("done", 0)
    assert remote.output("print(x + 1)") == "42\n"


def test_remote_languages_share_directory_and_exports(remote: RemoteSession) -> None:
    place = remote.transport.workspace / "below"
    remote.run("mkdir below; cd below; export COLOR=blue", "Shell")
    assert remote.context.cwd == str(place)
    assert remote.output("import os; print(os.getcwd(), os.environ['COLOR'])") == f"{place} blue\n"


def test_images_come_back(remote: RemoteSession) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    code = (
        f"class P:\n    def _repr_png_(self):\n        import base64\n        return base64.b64decode('{pixel}')\nP()"
    )
    images = [chunk for chunk in remote.run(code) if chunk["type"] == "image"]
    assert [(each["format"], each["content"][:8]) for each in images] == [("base64.png", "iVBORw0K")]


def test_input_is_requested_locally(remote: RemoteSession) -> None:
    remote.context.on_input = lambda prompt, secret: f"answer to {prompt}{secret}"
    assert remote.output("print(input('name? '))").endswith("answer to name? False\n")
    assert remote.output("import getpass; print(getpass.getpass('key: '))").endswith("answer to key: True\n")


def test_an_interrupted_block_keeps_its_variables(remote: RemoteSession) -> None:
    python = remote.language()
    remote.run("x = 1")
    chunks = []
    for chunk in python.run("print('ready', flush=True)\nimport time\ntime.sleep(1000)"):
        chunks.append(dict(chunk))
        if "ready" in str(chunk.get("content")):
            threading.Thread(target=python.stop).start()
    assert chunks[-1]["ended"] == "interrupted"
    assert remote.output("print(x)") == "1\n"


def test_variables_values_and_completions(remote: RemoteSession) -> None:
    remote.run("numbers = [1, 2, 3]")
    python = remote.language()
    assert [(each.name, each.type) for each in python.variables()] == [("numbers", "list")]
    assert "[1, 2, 3]" in python.look("numbers").text
    assert [text for text, _ in python.complete("numb", 4).matches] == ["numbers"]


def test_variables_can_be_restored(remote: RemoteSession) -> None:
    python = remote.language()
    remote.run("x = 1")
    before = python.state
    remote.run("x = 2")
    assert before in python.points()
    python.restore(before)
    assert remote.output("print(x)") == "1\n"


def test_file_changes_can_be_undone_and_redone(remote: RemoteSession) -> None:
    file = remote.transport.workspace / "notes.txt"
    file.write_text("old\n")
    remote.run("pass")
    record = remote.machine.record(LIMITS)
    record.before(1)
    remote.run("open('notes.txt', 'w').write('new\\n'); open('more.txt', 'w').write('1')")
    changes = record.after(1)
    assert sorted((each.what, each.path) for each in changes.listed) == [
        ("changed", "notes.txt"),
        ("created", "more.txt"),
    ]
    assert "-old\n+new" in record.diff(1)["notes.txt"]
    assert record.content(changes.pairs["notes.txt"][0]) == b"old\n"
    report = record.undo(record.plan_undo(since=1))
    assert sorted(report.restored) == ["more.txt", "notes.txt"]
    assert file.read_text() == "old\n"
    assert not (file.parent / "more.txt").exists()
    record.undo(record.plan_redo(until=1))
    assert file.read_text() == "new\n"
    assert record.why("notes.txt") == "1"


def test_large_output_arrives_complete(remote: RemoteSession) -> None:
    output = remote.output("for i in range(200_000): print('line', i)")
    assert output.count("\n") == 200_000
    assert output.endswith("line 199999\n")


@pytest.mark.full
def test_a_slow_reader_slows_the_program_down(remote: RemoteSession) -> None:
    python = remote.language()
    chunks = python.run("for i in range(300_000): print('x' * 100)\nprint('end')")
    first = next(chunk for chunk in chunks if chunk["type"] == "console" and chunk["content"])
    assert first
    threading.Event().wait(0.5)
    waiting = sum(len(str(event)) for block, _ in remote.machine._runs.values() for event, _ in block._events.copy())
    assert waiting < 20_000_000
    assert text([dict(chunk) for chunk in chunks]).endswith("end\n")


# -- the connection breaks -----------------------------------------------------------------------------------------


def test_a_lost_connection_loses_and_repeats_no_output(remote: RemoteSession) -> None:
    code = "import time\nfor i in range(40):\n    print(i, flush=True)\n    time.sleep(0.02)"
    chunks: list[dict[str, Any]] = []
    for chunk in remote.language().run(code):
        chunks.append(dict(chunk))
        if chunk.get("content") in ("5\n", "20\n"):
            remote.transport.cut()
    assert text(chunks).split() == [str(i) for i in range(40)]
    assert chunks[-1]["ended"] == "done"
    assert "Lost the connection to elsewhere" in notices(chunks)


def test_variables_survive_a_lost_connection(remote: RemoteSession) -> None:
    remote.run("x = 1")
    remote.transport.is_down = True
    remote.transport.cut()
    until(lambda: not remote.machine.connected, "the loss to be noticed")
    remote.transport.is_down = False
    until(lambda: remote.machine.connected, "the connection to come back")
    assert remote.output("print(x + 1)") == "2\n"


def test_a_killed_keeper_is_reported_and_replaced(remote: RemoteSession) -> None:
    remote.run("x = 1")
    chunks: list[dict[str, Any]] = []
    for chunk in remote.language().run("print('ready', flush=True)\nimport time\ntime.sleep(1000)"):
        chunks.append(dict(chunk))
        if chunk.get("content") == "ready\n":
            remote.transport.kill_keeper()
    assert chunks[-1]["ended"] == "died"
    assert "its variables are lost" in notices(chunks)
    assert "NameError" in remote.output("print(x)")


def test_a_keeper_without_a_client_exits(make_remote: Callable[..., RemoteSession]) -> None:
    remote = make_remote(keep=0.3)
    remote.run("x = 1")
    folder = remote.transport.folder / remote.transport.names[-1]
    assert folder.is_dir()
    remote.transport.is_down = True
    remote.transport.cut()
    until(lambda: not folder.exists(), "the keeper to end")


def test_close_ends_the_keeper_and_its_runtimes(remote: RemoteSession) -> None:
    pid = int(remote.output("import os; print(os.getpid())"))
    folder = remote.transport.folder / remote.transport.names[-1]
    remote.machine.close()
    until(lambda: not folder.exists(), "the keeper to end")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert remote.output("print('new')") == "new\n"


# -- another client ------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_a_second_client_takes_over_only_after_the_first_is_gone(remote: RemoteSession) -> None:
    remote.run("x = 41")
    first, transport = remote.machine, remote.transport
    running = threading.Thread(target=remote.run, args=("y = 1\nimport time\ntime.sleep(1000)",), daemon=True)
    running.start()
    until(lambda: bool(first._runs), "the block to begin")
    second = RemoteSession(Machine("elsewhere", transport, "", 60), transport)
    second.machine.take_over(first.keeper)
    with pytest.raises(RemoteInUseError, match="Another Open Interpreter is connected"):
        second.run("pass")
    first._closed = True  # as if it was killed and never reconnects
    transport.processes[0].kill()
    assert second.output("print(x + 1)") == "42\n"
    assert second.machine.is_taken_over
    first._closed = False
    with pytest.raises(RemoteInUseError):
        list(first.connecting())  # it was only suspended
    running.join(10)
    assert not running.is_alive()
    assert second.output("print(x + 1)") == "42\n"
    second.machine.close()


# -- untrusted keepers -----------------------------------------------------------------------------------------------


class Forger:
    """A transport to a keeper that sends forged messages."""

    def __init__(self, *lines: bytes) -> None:
        self.lines = lines
        self.opened: list[socket.socket] = []

    def connect(self, ask: Any) -> None: ...

    def open(self, what: str, name: str, seconds: float) -> socket.socket:
        ours, theirs = socket.socketpair()
        theirs.sendall(b'{"seen": 0, "instance": "x"}\n' * 2)
        self.opened.append(theirs)
        threading.Thread(target=self.speak, args=(theirs,), daemon=True).start()
        return ours

    def speak(self, theirs: socket.socket) -> None:
        """Send the forged lines after the first request."""
        heard = b""
        while b'"op"' not in heard and (piece := theirs.recv(10_000)):
            heard += piece
        theirs.sendall(b"".join(self.lines))

    def close(self) -> None:
        for each in self.opened:
            each.close()


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b"[]\n",
        b'{"n": 1, "event": "surprise"}\n',
        b'{"n": 1, "event": "ran", "run": "x", "cwd": "/", "exported": {}}\n',
        b'{"n": 7, "event": "over", "run": 1}\n',
        b'{"n": 1, "event": "chunk", "run": 1, "size": 0, "asks": false, "chunk": {"type": "call"}}\n',
        b'{"n": 1, "event": "reply", "call": 1, "cwd": "/", "exported": {}, "value": {"$": "About"}}\n',
        b'{"n": 1, "event": "reply", "call": 1, "cwd": "/", "exported": {}, "value": 3}\n',
    ],
)
def test_malformed_keeper_messages_are_rejected(line: bytes) -> None:
    transport = Forger(line)
    machine = Machine("liar", transport, "", 1)
    with pytest.raises((RemoteError, ValueError)):
        list(machine.connecting())
    machine.close()


def test_a_reported_folder_must_be_an_absolute_path(remote: RemoteSession) -> None:
    remote.run("pass")
    before = remote.machine.place
    remote.machine._received({"event": "ran", "run": 10_000, "cwd": "not\nabsolute", "exported": {}})
    assert remote.machine.place == before


def test_an_interrupted_question_is_not_repeated(remote: RemoteSession) -> None:
    asked = []

    def interrupt(prompt: str, password: bool) -> str | None:
        asked.append(prompt)
        if len(asked) == 1:
            raise KeyboardInterrupt
        return "late"

    remote.context.on_input = interrupt
    chunks: list[dict[str, Any]] = []
    with pytest.raises(KeyboardInterrupt):
        chunks.extend(dict(chunk) for chunk in without_questions(remote.language().run("input('Who? ')")))
    assert asked == ["Who? "]
    assert remote.output("print(1)") == "1\n"
