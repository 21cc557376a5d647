"""A keeper in another process: blocks, state, files, and what happens when the connection or the keeper goes."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from interpreter.errors import RemoteError, RemoteInUseError
from interpreter.remote.machine import Machine
from remote.conftest import Elsewhere, text, told
from waiting import until

LIMITS = (10_000_000, 10_000_000, 1000)


def test_blocks_run_there_and_keep_their_state(elsewhere: Elsewhere) -> None:
    chunks = elsewhere.run("x = 41\nprint('hello')")
    assert text(chunks) == "hello\n"
    assert (chunks[-1]["ended"], chunks[-1]["exit_code"]) == ("done", 0)
    assert elsewhere.output("print(x + 1)") == "42\n"


def test_a_folder_and_exported_variables_are_shared_between_its_languages(elsewhere: Elsewhere) -> None:
    place = elsewhere.transport.workspace / "below"
    elsewhere.run("mkdir below; cd below; export COLOR=blue", "Shell")
    assert elsewhere.context.cwd == str(place)
    assert elsewhere.output("import os; print(os.getcwd(), os.environ['COLOR'])") == f"{place} blue\n"


def test_a_figure_and_a_table_come_back(elsewhere: Elsewhere) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    code = (
        f"class P:\n    def _repr_png_(self):\n        import base64\n        return base64.b64decode('{pixel}')\nP()"
    )
    images = [chunk for chunk in elsewhere.run(code) if chunk["type"] == "image"]
    assert [(each["format"], each["content"][:8]) for each in images] == [("base64.png", "iVBORw0K")]


def test_input_is_asked_here(elsewhere: Elsewhere) -> None:
    elsewhere.context.on_input = lambda prompt, secret: f"answer to {prompt}{secret}"
    assert elsewhere.output("print(input('name? '))").endswith("answer to name? False\n")
    assert elsewhere.output("import getpass; print(getpass.getpass('key: '))").endswith("answer to key: True\n")


def test_a_block_is_interrupted_and_its_variables_stay(elsewhere: Elsewhere) -> None:
    python = elsewhere.language()
    elsewhere.run("x = 1")
    chunks = []
    for chunk in python.run("print('ready', flush=True)\nimport time\ntime.sleep(1000)"):
        chunks.append(dict(chunk))
        if "ready" in str(chunk.get("content")):
            threading.Thread(target=python.stop).start()
    assert chunks[-1]["ended"] == "interrupted"
    assert elsewhere.output("print(x)") == "1\n"


def test_variables_values_and_completions(elsewhere: Elsewhere) -> None:
    elsewhere.run("numbers = [1, 2, 3]")
    python = elsewhere.language()
    assert [(each.name, each.type) for each in python.variables()] == [("numbers", "list")]
    assert "[1, 2, 3]" in python.look("numbers").text
    assert ("numbers", "instance") in [tuple(each) for each in python.complete("numb", 4).matches] or python.complete(
        "numb", 4
    ).matches


def test_variables_go_back_to_an_earlier_state(elsewhere: Elsewhere) -> None:
    python = elsewhere.language()
    elsewhere.run("x = 1")
    before = python.state
    elsewhere.run("x = 2")
    assert before in python.points()
    python.restore(before)
    assert elsewhere.output("print(x)") == "1\n"


def test_files_are_undone_there(elsewhere: Elsewhere) -> None:
    file = elsewhere.transport.workspace / "notes.txt"
    file.write_text("old\n")
    elsewhere.run("pass")
    record = elsewhere.machine.record(LIMITS)
    record.before(1)
    elsewhere.run("open('notes.txt', 'w').write('new\\n'); open('more.txt', 'w').write('1')")
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


def test_a_large_output_arrives_whole(elsewhere: Elsewhere) -> None:
    output = elsewhere.output("for i in range(200_000): print('line', i)")
    assert output.count("\n") == 200_000
    assert output.endswith("line 199999\n")


@pytest.mark.full
def test_a_slow_reader_holds_the_program_up(elsewhere: Elsewhere) -> None:
    python = elsewhere.language()
    chunks = python.run("for i in range(300_000): print('x' * 100)\nprint('end')")
    first = next(chunk for chunk in chunks if chunk["type"] == "console" and chunk["content"])
    assert first
    threading.Event().wait(0.5)
    with_credit = elsewhere.machine
    waiting = sum(len(str(event)) for block, _ in with_credit._runs.values() for event, _ in block._events.copy())
    assert waiting < 20_000_000
    assert text([dict(chunk) for chunk in chunks]).endswith("end\n")


# -- the connection breaks -----------------------------------------------------------------------------------------


def test_a_lost_connection_comes_back_and_nothing_is_lost_or_repeated(elsewhere: Elsewhere) -> None:
    code = "import time\nfor i in range(40):\n    print(i, flush=True)\n    time.sleep(0.02)"
    chunks: list[dict[str, Any]] = []
    for chunk in elsewhere.language().run(code):
        chunks.append(dict(chunk))
        if chunk.get("content") in ("5\n", "20\n"):
            elsewhere.transport.cut()
    assert text(chunks).split() == [str(i) for i in range(40)]
    assert chunks[-1]["ended"] == "done"
    assert "Lost the connection to elsewhere" in told(chunks)


def test_what_ran_while_there_was_no_connection_is_there_afterwards(elsewhere: Elsewhere) -> None:
    elsewhere.run("x = 1")
    elsewhere.transport.is_down = True
    elsewhere.transport.cut()
    until(lambda: not elsewhere.machine.connected, "the loss to be noticed")
    elsewhere.transport.is_down = False
    until(lambda: elsewhere.machine.connected, "the connection to come back")
    assert elsewhere.output("print(x + 1)") == "2\n"


def test_a_keeper_that_is_killed_is_told_and_the_next_block_starts_a_new_one(elsewhere: Elsewhere) -> None:
    elsewhere.run("x = 1")
    chunks: list[dict[str, Any]] = []
    for chunk in elsewhere.language().run("print('ready', flush=True)\nimport time\ntime.sleep(1000)"):
        chunks.append(dict(chunk))
        if chunk.get("content") == "ready\n":
            elsewhere.transport.kill_keeper()
    assert chunks[-1]["ended"] == "died"
    assert "its variables are lost" in told(chunks)
    assert "NameError" in elsewhere.output("print(x)")


def test_a_keeper_ends_by_itself_when_nobody_comes_back(make_elsewhere: Callable[..., Elsewhere]) -> None:
    there = make_elsewhere(keep=0.3)
    there.run("x = 1")
    folder = there.transport.folder / there.transport.names[-1]
    assert folder.is_dir()
    there.transport.is_down = True
    there.transport.cut()
    until(lambda: not folder.exists(), "the keeper to end")


def test_closing_ends_the_keeper_and_what_it_keeps(elsewhere: Elsewhere) -> None:
    pid = int(elsewhere.output("import os; print(os.getpid())"))
    folder = elsewhere.transport.folder / elsewhere.transport.names[-1]
    elsewhere.machine.close()
    until(lambda: not folder.exists(), "the keeper to end")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert elsewhere.output("print('new')") == "new\n"


# -- another client ------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_another_client_is_refused_while_one_is_connected_and_then_takes_over(elsewhere: Elsewhere) -> None:
    elsewhere.run("x = 41")
    first, transport = elsewhere.machine, elsewhere.transport
    running = threading.Thread(target=elsewhere.run, args=("y = 1\nimport time\ntime.sleep(1000)",), daemon=True)
    running.start()
    until(lambda: bool(first._runs), "the block to begin")
    second = Elsewhere(Machine("elsewhere", transport, "", 60), transport)
    second.machine.take_over(first.keeper)
    with pytest.raises(RemoteInUseError, match="Another Open Interpreter is connected"):
        second.run("pass")
    first._closed = True  # it was killed: it does not come back
    transport.processes[0].kill()
    assert second.output("print(x + 1)") == "42\n"
    assert second.machine.is_taken_over
    first._closed = False
    with pytest.raises(RemoteInUseError):
        list(first.connecting())  # it was only asleep
    running.join(10)
    assert not running.is_alive()
    assert second.output("print(x + 1)") == "42\n"
    second.machine.close()


# -- nothing that it says is trusted ---------------------------------------------------------------------------------


class Forger:
    """A transport to something that says what it likes."""

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
        """Once it is asked something."""
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
def test_a_machine_that_sends_nonsense_is_not_used(line: bytes) -> None:
    transport = Forger(line)
    machine = Machine("liar", transport, "", 1)
    with pytest.raises((RemoteError, ValueError)):
        list(machine.connecting())
    machine.close()


def test_a_folder_that_it_claims_must_be_a_path(elsewhere: Elsewhere) -> None:
    elsewhere.run("pass")
    before = elsewhere.machine.place
    elsewhere.machine._received({"event": "ran", "run": 10_000, "cwd": "not\nabsolute", "exported": {}})
    assert elsewhere.machine.place == before


def test_a_question_that_is_interrupted_is_not_asked_again(elsewhere: Elsewhere) -> None:
    asked = []

    def interrupt(prompt: str, password: bool) -> str | None:
        asked.append(prompt)
        if len(asked) == 1:
            raise KeyboardInterrupt
        return "late"

    elsewhere.context.on_input = interrupt
    chunks: list[dict[str, Any]] = []
    with pytest.raises(KeyboardInterrupt):
        chunks.extend(dict(chunk) for chunk in elsewhere.language().run("input('Who? ')"))
    assert asked == ["Who? "]
    assert elsewhere.output("print(1)") == "1\n"
