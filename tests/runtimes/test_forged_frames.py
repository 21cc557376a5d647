"""Code that sends forged messages on the driver's connection ends its runtime and does no other harm."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.errors import NotPreviewableError, UsageError
from interpreter.preview.overlay import Overlay
from interpreter.preview.system_calls import SyscallGate
from interpreter.runtimes.block import RunningBlock, Spool, display_chunks
from interpreter.runtimes.launch import Launch
from interpreter.runtimes.live import LiveLanguage, how_done
from interpreter.runtimes.protocol import FRAMES, BadFrame, decode, encode
from interpreter.runtimes.runtime import Runtime
from interpreter.runtimes.state import completions_from, value_from, variables_from
from javascript_runtimes import JavaScriptRuntime
from python_runtimes import PythonRuntime, Ran
from shell_runtimes import ShellRuntime
from waiting import until

LIMIT = 60.0  # seconds
FIND = {
    "python": "import os, stat\nlines = [int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}')\n"
    "         and stat.S_ISSOCK(os.stat(f'/proc/self/fd/{fd}').st_mode)]\n",
    "javascript": "var fs = require('fs')\nvar lines = fs.readdirSync('/proc/self/fd').map(Number)"
    ".filter((fd) => { try { return fs.fstatSync(fd).isSocket() } catch { return false } })\n",
    "shell": 'lines=(); for fd in /proc/$$/fd/*; do [[ -S $fd ]] && lines+=("${fd##*/}"); done\n',
}
SEND = {
    "python": "for fd in lines: os.write(fd, {0!r}.encode() + b'\\n')\n",
    "javascript": "for (const fd of lines) fs.writeSync(fd, {0} + '\\n')\n",
    "shell": "for fd in ${{lines[@]}}; do printf '%s\\n' {0} >&$fd; done\n",
}
WAIT = {"python": "import time; time.sleep(60)", "javascript": "while (true) {}", "shell": "sleep 60"}
HELLO = {"python": "print('hello')", "javascript": "console.log('hello')", "shell": "echo hello"}

Session = PythonRuntime | JavaScriptRuntime | ShellRuntime


def make(language: str) -> Session:
    if language == "javascript":
        return JavaScriptRuntime()
    return ShellRuntime("bash") if language == "shell" else PythonRuntime(language)


@pytest.fixture(
    params=["ipython", "bare", "shell", pytest.param("javascript", marks=pytest.mark.needs("node"))], scope="module"
)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    found = make(request.param)
    yield found
    found.terminate()


def sending(session: Session, line: str) -> str:
    """Code that writes a line to the driver's connection."""
    kind = session.name.lower()
    quoted = f"'{line}'" if kind == "shell" else json.dumps(line) if kind == "javascript" else line
    return FIND[kind] + SEND[kind].format(quoted)


def check_ended(session: Session, ran: Ran, reason: str) -> None:
    assert f"ended (it sent {reason}" in ran.text and ran.ended == "died"
    assert session.do(HELLO[session.name.lower()]).text.endswith("hello\n")


FORGED = {
    "not JSON": ("[[[", "a message that is not JSON"),
    "not an object": ("[1]", "a message of an unknown kind"),
    "a message of the host": ('{"event":"exited","code":0}', "a message of an unknown kind"),
    "a missing field": ('{"event":"done","block":1}', "`done` with a wrong or missing `status`"),
    "a field of the wrong type": ('{"event":"stream","block":1,"name":"stdout","text":7}', "`stream` with a wrong"),
    "an exported variable": (
        '{"event":"done","block":1,"status":"ok","env":{"LD_PRELOAD":"x"}}',
        "`done` with an unknown",
    ),
    "an infinite number": ('{"event":"active_line","block":1,"line":1e999}', "`active_line` with a wrong"),
    "a negative number": ('{"event":"active_line","block":-1,"line":1}', "`active_line` with a wrong"),
    "another block": (
        '{"event":"done","block":0,"status":"ok","cwd":"/etc"}',
        "`done` for a block that it is not running",
    ),
    "a call from another block": ('{"event":"call","block":0,"call":1,"path":"x","how":"call"}', "`call` for a block"),
    "a call of an unknown kind": ('{"event":"call","block":0,"call":1,"path":"x","how":"run"}', "`call` with a wrong"),
    "a question from another block": (
        '{"event":"input_request","block":0,"prompt":"?"}',
        "`input_request` for a block",
    ),
    "a second start": ('{"event":"ready"}', "a second `ready`"),
    "an answer without a query": ('{"event":"answer","lost":[1]}', "`answer` with a wrong"),
    "a path that is a list": ('{"event":"done","block":0,"status":"ok","cwd":["/etc"]}', "`done` with a wrong"),
}


@pytest.mark.parametrize("what", FORGED)
def test_an_invalid_frame_ends_the_runtime(session: Session, what: str) -> None:
    line, reason = FORGED[what]
    cwd, exported = session.context.cwd, dict(session.context.exported)
    check_ended(session, session.do(sending(session, line) + WAIT[session.name.lower()]), reason)
    assert session.context.cwd == cwd
    assert exported.items() <= session.context.exported.items() and "LD_PRELOAD" not in session.context.exported


def test_a_deeply_nested_frame_ends_the_runtime(session: Session) -> None:
    nested = '{"event":"display","block":1,"data":{"a":' + "[" * 600 + "]" * 600 + "}}"
    check_ended(session, session.do(sending(session, nested) + WAIT[session.name.lower()]), "`display` with a wrong")


@pytest.mark.parametrize("cwd", ["etc", "/tmp/\\u001b]0;title", "/tmp/\\nx", ""])
def test_an_invalid_working_directory_is_ignored(cwd: str) -> None:
    session = PythonRuntime("bare")
    try:
        before = session.context.cwd
        forged = f'{{"event":"done","block":%d,"status":"ok","cwd":"{cwd}"}}'
        code = sending(session, "LINE").replace("'LINE'", f"({forged!r} % computer._ask.__self__.number)")
        session.do(code + "import time; time.sleep(0.5)")
        assert session.context.cwd == before
        assert session.do("import os; print(os.getcwd())").text == f"{before}\n"
    finally:
        session.terminate()


@pytest.mark.parametrize("language", ["bare", "shell"])
def test_a_leftover_process_cannot_end_a_later_block(language: str, tmp_path: Path) -> None:
    session, go = make(language), tmp_path / "go"
    done = '{"event":"done","block":%d,"status":"ok","exit_code":0}'
    if language == "shell":
        forge = f"( until [[ -e {go} ]]; do sleep 0.05; done; n=$B; for i in {{1..300}}; do n=$((n+1))\n"
        forge += f"for fd in ${{lines[@]}}; do printf '{done}\\n' $n >&$fd; done; done ) &"
        code, slow = FIND["shell"] + "B=${__oi_block:-1}\n" + forge, f"touch {go}; sleep 1.5; echo end"
    else:
        forge = "kept = [os.dup(fd) for fd in lines]\nnumber = computer._ask.__self__.number\nif os.fork() == 0:\n"
        forge += f"    import time\n    while not os.path.exists({str(go)!r}): time.sleep(0.05)\n"
        forge += f"    for n in range(1, 300):\n        for fd in kept: os.write(fd, ({done!r} % (number + n)).encode() + b'\\n')\n"
        code, slow = (
            FIND["python"] + forge + "    os._exit(0)",
            f"open({str(go)!r}, 'w'); import time; time.sleep(1.5); print('end')",
        )
    try:
        session.do(code)
        ran = session.do(slow)
        assert ran.text == "end\n" or "ended (it sent `done` for a block that it is not running)" in ran.text
    finally:
        session.terminate()


@pytest.mark.parametrize(
    "frame",
    [
        '{"event":"sync"}',
        pytest.param('{"event":"call","block":%d,"call":1,"path":"x","how":"call"}', marks=pytest.mark.full),
    ],
    ids=["sync", "call"],
)
def test_a_flood_that_reads_no_replies_ends_the_runtime(frame: str) -> None:
    session = PythonRuntime("bare")
    flood = f"({frame!r}.replace('%d', str(computer._ask.__self__.number)) + '\\n').encode() * 400_000"
    code = f"{FIND['python']}import socket\nfor fd in lines: socket.socket(fileno=os.dup(fd)).sendall({flood})\n"
    ran: list[Ran] = []
    running = threading.Thread(target=lambda: ran.append(session.do(code + WAIT["python"])), daemon=True)
    running.start()
    running.join(LIMIT)
    assert ran and "ended (it sent more than it reads)" in ran[0].text
    session.terminate()


@pytest.mark.full
def test_a_flood_of_calls_ends_soon_after_an_interrupt() -> None:
    session = PythonRuntime("bare")
    session.context.tools = Mock(answer=lambda call: {"value": call.number})
    call = '{"event":"call","block":%d,"call":%d,"path":"x.y","how":"call"}\n'
    code = f"""{FIND["python"]}import socket, threading
number = computer._ask.__self__.number
calls = "".join({call!r} % (number, n) for n in range(1000)).encode()
lines = [socket.socket(fileno=os.dup(fd)) for fd in lines]
def read():
    while True: lines[0].recv(1 << 16)
threading.Thread(target=read, daemon=True).start()
while True:
    try:
        lines[0].sendall(calls)
    except KeyboardInterrupt:
        pass
"""
    stopper = threading.Timer(1.5, session.stop)
    stopper.start()
    began, threads = time.monotonic(), threading.active_count()
    ran = session.do(code)
    assert ran.ended == "died" and time.monotonic() - began < LIMIT / 3
    assert threading.active_count() < threads + 100
    session.terminate()


def test_a_process_that_outlives_its_worker_cannot_impersonate_the_next(tmp_path: Path) -> None:
    session, line = PythonRuntime("bare"), b'{"event":"ready"}\n{"event":"done","block":0,"status":"ok"}\n'
    forge = "kept = [os.dup(fd) for fd in lines]\nif os.fork() == 0:\n    while True:\n"
    forge += f"        for fd in kept: os.write(fd, {line!r})\nimport time; time.sleep(0.2); os._exit(7)"
    try:
        ran = session.do(FIND["python"] + forge)
        assert "Only this block is lost" in ran.text and ran.ended == "died"
        assert session.do("print('hello')").text == "hello\n"
    finally:
        session.terminate()


def test_forged_answers_are_not_shown() -> None:
    session = PythonRuntime("bare")
    answers = "".join(
        f'{{"event":"answer","query":{n},"variables":[{{"name":"forged","type":"int"}}]}}\n' for n in range(99)
    )
    session.do(
        f"{FIND['python']}import threading, time\ndef forge():\n    for _ in range(300):\n        time.sleep(0.01)\n        for fd in lines: os.write(fd, {answers!r}.encode())"
    )
    session.do("threading.Thread(target=forge, daemon=True).start()")
    try:
        assert "forged" not in [each.name for each in session.variables()]
    finally:
        session.terminate()


def test_an_oversized_frame_ends_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpreter.runtimes.protocol.MAX_FRAME_BYTES", 1 << 20)
    session = PythonRuntime("bare")
    code = (
        FIND["python"]
        + "for fd in lines:\n    for _ in range(100): os.write(fd, b'x' * 100_000)\nimport time; time.sleep(60)"
    )
    check_ended(session, session.do(code), "a message of more than 1 MB")
    session.terminate()


def test_values_too_large_to_show_are_an_error() -> None:
    session = PythonRuntime("bare")
    ran = session.do("class Large:\n    def _repr_html_(self): return 'x' * (1 << 27)\ndisplay(Large())")
    assert "too much to show" in ran.text and ran.ended == "error"
    session.terminate()


@pytest.mark.parametrize(
    "frame",
    [{"event": "active_line", "line": 1}, {"event": "display", "data": {"a": "x" * 9000}}],
    ids=["active_line", "display"],
)
def test_events_wait_for_a_slow_consumer(frame: dict[str, Any], tmp_path: Path) -> None:
    block = RunningBlock(1, "", Spool(lambda: tmp_path))
    putting = threading.Thread(target=lambda: [block.put(dict(frame)) for _ in range(20_000)], daemon=True)
    putting.start()
    until(lambda: not block._room.is_set(), "a full queue", LIMIT)
    assert len(block._events) < 10_000
    block.forget_events()
    putting.join(LIMIT)
    assert not putting.is_alive() and len(block._events) < 10


@pytest.mark.parametrize(
    "message",
    [
        {"layers": {"/w": "/root/.ssh"}, "namespace": 1, "lost": []},
        {"layers": [], "namespace": 1},
        {"layers": {}},
        {"namespace": "x"},
        {"failed": 7},
        "nothing",
    ],
    ids=["unknown layer", "list of layers", "no place", "no layers", "wrong reason", "no event"],
)
def test_a_preview_with_forged_layers_is_refused(message: Any, tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(encode({"event": "entered", **message}) if isinstance(message, dict) else b"{}\n")
        overlay = Overlay(str(tmp_path))
        with pytest.raises(NotPreviewableError):
            overlay.enter(ours, SyscallGate())
        overlay.remove()
    assert overlay.layers == {}


# -- fuzzing -----------------------------------------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)
VALID: dict[str, st.SearchStrategy[Any]] = {
    "block": st.sampled_from([1, 2, 3]),
    "query": st.sampled_from([0, 7]),
    "status": st.sampled_from(["ok", "error", "interrupted"]),
    "how": st.sampled_from(["call", "get", "set", "names"]),
    "name": st.sampled_from(["stdout", "stderr"]),
    "kind": st.sampled_from(["table", "picture", "text"]),
    "path": st.text(max_size=10),
    "text": st.text(max_size=10),
    "prompt": st.text(max_size=10),
    "line": st.integers(0, 9),
    "call": st.integers(0, 9),
    "data": st.dictionaries(st.sampled_from(["text/plain", "text/html", "image/png", "application/json"]), VALUES),
    "cells": st.lists(st.lists(st.text(max_size=3), max_size=3), max_size=3),
    "index": st.lists(st.text(max_size=3), max_size=3),
    "matches": st.lists(st.lists(st.text(max_size=3), min_size=2, max_size=2), max_size=3),
    "start": st.integers(0, 9),
}


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line that is nearly a frame, or nothing like one."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=50)).replace(b"\n", b"")
    event = draw(st.sampled_from(sorted(FRAMES)))
    frame: dict[str, Any] = {"event": event}
    for name in FRAMES[event]:
        if draw(st.integers(0, 5)):
            frame[name] = draw(VALID.get(name, st.none()) if draw(st.integers(0, 9)) else VALUES)
    if draw(st.integers(0, 19)) == 0:
        frame[draw(st.text(max_size=5))] = draw(VALUES)
    return encode(frame)


def use(line: bytes) -> None:
    """Handle a line like a runtime, and use its content like the rest of the host."""
    runtime = Runtime(Launch(["driver", "none"]), "Python")
    runtime._write = lambda *_: None  # type: ignore[method-assign]
    runtime._query = 7
    runtime.next_number = 2
    runtime._data = Mock()
    runtime._startup = Mock()
    block = runtime._add_block("code")
    frame = decode(line)
    runtime._received(runtime._data, frame)
    assert block.last is None or (frame["event"] == "done" and frame["block"] == 2)
    language = LiveLanguage()
    match frame["event"]:
        case "done":
            how_done({**frame, "why": None})
            language.apply_changes(frame)
        case "answer":
            variables_from(frame)
            completions_from(frame, 3)
            with suppress(UsageError):
                value_from(frame)
        case "display":
            list(display_chunks(frame["data"]))


@pytest.mark.parametrize("text", ["a", "ä"])
def test_files_that_are_not_base64_are_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="incomplete file"):
        value_from({"kind": "file", "text": text})


@given(lines())
@settings(max_examples=300, deadline=None)
def test_random_lines_are_frames_or_rejected(line: bytes) -> None:
    with suppress(BadFrame):
        use(line)


@pytest.mark.full
@pytest.mark.timeout(900)
@given(lines())
@settings(max_examples=40_000, deadline=None)
def test_many_random_lines_are_frames_or_rejected(line: bytes) -> None:
    with suppress(BadFrame):
        use(line)
