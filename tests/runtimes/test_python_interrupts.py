"""One interrupt ends a block promptly, the state stays, and the next block gets only its own output."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, cast

import pytest

from interpreter.runtimes.python.driver.execution import EventLoop
from interpreter.runtimes.python.driver.interrupts import OURS, Interrupts
from own_process import alone
from python_runtimes import PythonRuntime, fresh, session
from waiting import until

__all__ = ["fresh", "session"]

READY = "print('ready', flush=True)\n"


@pytest.mark.parametrize(
    "code",
    [
        READY + "while True: pass",
        READY + "import time\ntime.sleep(1000)",
        READY + "while True: print('x' * 1000)",
        "import sys\n" + READY + "while True: print('x' * 1000, file=sys.stderr)",
        READY + "while True: display('x')",
        "import threading\n" + READY + "threading.Event().wait()",
        "import asyncio\n" + READY + "await asyncio.sleep(1000)",
        "import asyncio\nasync def spin():\n    while True: pass\n" + READY + "await spin()",
        "import asyncio\n" + READY + "asyncio.run(asyncio.sleep(1000))",
        "import subprocess\n" + READY + "subprocess.run(['sleep', '1000'])",
        READY + "!sleep 1000",
        "try:\n    print('ready')\n    while True: pass\nfinally:\n    print('cleaned up')",
    ],
)
def test_an_interrupt_ends_the_block_and_keeps_the_state(session: PythonRuntime, code: str) -> None:
    session.do("kept = 5")
    ran = session.interrupted_when_ready(code)
    assert ran.ended == "interrupted"
    assert ran.exit_code == 130
    assert "KeyboardInterrupt" in ran.stderr
    assert "_interpreter_driver" not in ran.stderr
    assert "ipython-input" not in ran.stderr  # blocks are named as in other tracebacks
    assert ("cleaned up" in ran.stdout) == ("cleaned up" in code)
    assert session.do("print(kept)").text == "5\n"


STUBBORN = "trap '' INT; echo ready; while :; do sleep 1; done"


@pytest.mark.parametrize(
    "code", [f'os.system("{STUBBORN}")', f'subprocess.call("{STUBBORN}", shell=True)', f"!{STUBBORN}"]
)
def test_a_child_process_that_ignores_the_interrupt_is_ended(session: PythonRuntime, code: str) -> None:
    session.do("import os, subprocess\nkept = 6")
    assert session.interrupted_when_ready(f"{code}\nwhile True: pass").ended == "interrupted"
    assert session.do("print(kept)").text == "6\n"


def test_await_is_cancelled_cleanly(session: PythonRuntime) -> None:
    code = """
import asyncio
async def work():
    try:
        asyncio.get_running_loop().call_later(0.05, print, "ready")
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        print("cancelled")
        raise
background = asyncio.create_task(asyncio.sleep(1000))
await work()
"""
    ran = session.interrupted_when_ready(code)
    assert "cancelled\n" in ran.stdout
    assert ran.ended == "interrupted"
    ran = session.do("print(background.done())\nbackground.cancel()\nawait asyncio.sleep(0, 'on')")
    assert ran.text == "False\n'on'\n"


@pytest.mark.full
@pytest.mark.parametrize("gap", [0, 1, 9], ids=["one", "two at once", "two"])
@alone
def test_an_interrupt_in_any_line_of_asyncio_keeps_the_loop_working(gap: int) -> None:
    interrupts = Interrupts()
    interrupts.armed, loop = 1, EventLoop(interrupts)
    folder, presses, line = os.path.dirname(asyncio.__file__), {0}, 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        """Press Ctrl-C before a line of asyncio; as with a real signal, the exception comes from there."""
        nonlocal line
        if event == "line":
            line += 1
            if line in presses:
                interrupts._handle(signal.SIGINT, frame)
        return trace if frame.f_code.co_filename.startswith(folder) else None

    async def some_steps() -> str:
        for _ in range(3):
            await asyncio.sleep(0)
        return "value"

    def run_traced() -> Any:
        nonlocal line
        line, coroutine = 0, some_steps()
        sys.settrace(trace)
        try:
            return loop.run(coroutine)
        finally:
            sys.settrace(None)

    try:
        loop.run(asyncio.sleep(0))
        background = loop._loop.create_task(asyncio.sleep(1000))
        run_traced()
        assert run_traced() == "value"  # the first run takes more lines
        lines = line
        assert lines > 50
        for first in range(1, lines + 1):
            presses = {first, first + gap}
            with pytest.raises(KeyboardInterrupt):
                run_traced()
            assert loop.run(asyncio.sleep(0.001, "on")) == "on" and not background.done()
        background.cancel()
        loop.run(asyncio.sleep(0))
    finally:
        loop.close()
        asyncio.set_event_loop(None)


@pytest.mark.parametrize(
    "wait", ["subprocess.run(['sh', '-c', child])", "(kept := subprocess.Popen(['sh', '-c', child])) and os.wait()"]
)
def test_an_interrupt_while_waiting_for_a_child_ends_the_block(fresh: PythonRuntime, wait: str) -> None:
    fresh.do("import os, subprocess\nchild = 'echo ready; exec sleep 1000'")
    ran = fresh.interrupted_when_ready(f"found = [{wait}, print('went on')]")
    assert (ran.stdout, ran.ended) == ("ready\n", "interrupted")


def test_an_interrupt_before_the_wait_for_a_child_ends_the_block(fresh: PythonRuntime) -> None:
    """It comes while our stand-in for `os.wait` looks at the children."""
    fresh.do(
        "import os, subprocess\nours = os.wait.__func__.__globals__\nlook = ours['own_children']\n"
        "source = 'def own_children():\\n    found = look()\\n    signal.raise_signal(2)\\n    return found'\n"
        "exec(compile(source, look.__code__.co_filename, 'exec'), ours | {'look': look}, hidden := {})\n"
        "ours['own_children'] = hidden['own_children']"
    )
    ran = fresh.do("child = subprocess.Popen(['sleep', '1000'])\nos.wait()\nprint('went on')")
    assert (ran.stdout, ran.ended) == ("", "interrupted")


def test_an_interrupt_in_a_finalizer_ends_the_block(session: PythonRuntime) -> None:
    session.do(
        "import time\nclass Slow:\n    def __del__(self):\n        print('ready', flush=True)\n        time.sleep(1000)"
    )
    ran = session.interrupted_when_ready("slow = Slow()\ndel slow\ntime.sleep(0.3)\nprint('went on')")
    assert (ran.stdout, ran.ended) == ("ready\n", "interrupted")
    assert "Exception ignored" not in ran.stderr


def test_code_that_will_not_stop_is_killed(fresh: PythonRuntime) -> None:
    announce = "map(os.write, [1], [b'ready\\n'])"  # from inside the sum, which can't be interrupted
    ran = fresh.interrupted_when_ready(f"import itertools, os\nsum(itertools.chain({announce}, range(10**11)))")
    assert ran.ended == "died"
    assert "lost" in ran.stderr
    assert fresh.do("print('new')").text == "new\n"


def test_code_that_swallows_one_interrupt_gets_another(session: PythonRuntime) -> None:
    code = READY + "import time\ntry:\n    time.sleep(1000)\nexcept KeyboardInterrupt:\n    time.sleep(1000)"
    assert session.interrupted_when_ready(code).ended == "interrupted"


def test_leaving_the_stream_ends_the_block(session: PythonRuntime) -> None:
    for _ in range(5):
        running = session.run(READY + "while True: print('old')")
        for chunk in running:
            if "ready" in str(chunk.get("content")):
                break
        running.close()
        assert session.do("print('new')").text == "new\n"


def test_interrupts_between_blocks_are_ignored(session: PythonRuntime) -> None:
    session.do("kept = 7")
    assert session.runtime is not None
    for _ in range(20):
        session.runtime.control.command("signal 2")
        assert session.do("kept").ended in ("done", "interrupted")
    assert session.do("kept").stdout == "7\n"


def test_an_interrupt_at_any_moment_leaves_a_working_session(session: PythonRuntime) -> None:
    """Many interrupts while frames are written in both directions: none is torn."""
    code = "import sys\nfor i in range(10**9):\n    print('line', i, file=sys.stderr)\n    display(i)"
    for count in range(10):
        running = session.run(code)
        for _ in range(count * 3 + 1):
            next(running)
        running.close()
        assert session.do("print('whole')").text == "whole\n"


def test_the_first_block_can_be_interrupted_while_it_starts(fresh: PythonRuntime) -> None:
    running = fresh.start()

    def press() -> None:
        until(lambda: running.block is not None, "the block")  # it was sent, and the worker is still importing
        fresh.stop()

    threading.Thread(target=press).start()
    ran = fresh.do("import time\nwhile True: time.sleep(0.01)")
    assert ran.ended == "interrupted"


def test_a_late_interrupt_does_not_hit_the_next_block(
    session: PythonRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, next_begun = threading.Thread(target=session.stop), threading.Event()
    session.do(f"import os, time\nover = {str(tmp_path / 'over')!r}")
    assert session.runtime is not None
    wake = session.runtime.reader.wake

    def slow_wake() -> None:
        wake()
        if threading.current_thread() is late:
            assert next_begun.wait(60)

    monkeypatch.setattr(session.runtime.reader, "wake", slow_wake)
    for chunk in session.run(READY + "time.sleep(1000)"):
        if chunk.get("content") == "ready\n":
            late.start()
    assert chunk["ended"] == "interrupted"  # by the next step of the runtime itself
    for chunk in session.run("print('begun', flush=True)\nwhile not os.path.exists(over): time.sleep(0.01)"):
        if chunk.get("content") == "begun\n":
            next_begun.set()
            late.join()
            (tmp_path / "over").touch()
    assert chunk["ended"] == "done"


def test_many_interrupts_at_once_keep_the_session_working(session: PythonRuntime) -> None:
    """A second interrupt may hit our own code, which must keep the session intact."""
    session.do("kept = 7")
    for count in range(20):
        for chunk in session.run(READY + "while True: print('x')"):
            if "ready" in str(chunk.get("content")):
                for _ in range(count + 1):
                    session.stop()
        assert chunk["ended"] in ("interrupted", "error")
    ran = session.do("kept")
    assert ran.stdout == "7\n", ran.chunks


def test_only_a_second_interrupt_hits_our_own_code_and_only_once_in_a_block() -> None:
    def is_hit(file: str) -> bool:
        frame = cast(FrameType, SimpleNamespace(f_code=SimpleNamespace(co_filename=file)))
        try:
            interrupts._handle(signal.SIGINT, frame)
        except KeyboardInterrupt:
            return True
        return False

    interrupts, ours = Interrupts(), OURS + "driver/serve.py"
    assert [is_hit(ours) for _ in range(3)] == [False, False, False]  # starting
    interrupts.end()
    interrupts._running, interrupts._struck = True, False  # as begin() does, without a handler
    assert [is_hit(ours) for _ in range(4)] == [False, True, False, False]
    interrupts.armed, interrupts.waiting = 1, False
    assert [is_hit(ours), is_hit("<block>"), is_hit("<block>")] == [False, True, True]
    interrupts.end()
    assert not is_hit("<block>")


def test_a_time_limit_ends_the_block(session: PythonRuntime) -> None:
    session.context.timeout = 0.2
    try:
        ran = session.do("while True: pass")
    finally:
        session.context.timeout = None
    assert ran.ended == "timed_out"
    assert session.do("1").stdout == "1\n"
