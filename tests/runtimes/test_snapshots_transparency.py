"""The user's code behaves as if there were no snapshots."""

from __future__ import annotations

import pytest

from python_runtimes import PythonRuntime, fresh, session

__all__ = ["fresh", "session"]


def test_a_closed_pipe_ends_for_its_reader(session: PythonRuntime) -> None:
    session.do("import subprocess; cat = subprocess.Popen(['cat'], stdin=subprocess.PIPE)")
    session.do("n = 1")
    assert session.do("cat.stdin.close(); print(cat.wait(timeout=60))").text == "0\n"
    session.do("import os; reader, writer = os.pipe()")
    assert session.do("os.close(writer); print(os.read(reader, 1))").text == "b''\n"


def test_a_port_can_be_reused(session: PythonRuntime) -> None:
    session.do("import socket; server = socket.create_server(('127.0.0.1', 0)); port = server.getsockname()[1]")
    session.do("n = 1")
    code = "server.close()\nagain = socket.socket()\nagain.bind(('127.0.0.1', port))\nagain.listen()\nagain.close()"
    ran = session.do(code)
    assert ran.ended == "done", ran.stderr


def test_a_peer_sees_a_connection_close(session: PythonRuntime) -> None:
    session.do("import socket; here, there = socket.socketpair(); n = 1")
    session.do("n = 2")
    assert session.do("here.close(); there.settimeout(20); print(there.recv(1))").text == "b''\n"


def test_closing_a_file_releases_its_lock(session: PythonRuntime) -> None:
    session.do("import fcntl, tempfile; file = tempfile.NamedTemporaryFile(); fcntl.flock(file, fcntl.LOCK_EX)")
    session.do("n = 1")
    code = (
        "other = open(file.name)\nfile.file.close()\nfcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)\nprint('free')"
    )
    assert session.do(code).text == "free\n"


def test_undo_restores_the_position_in_a_file(session: PythonRuntime) -> None:
    session.do("import tempfile; file = tempfile.TemporaryFile('w+'); file.write('abcdef'); file.flush(); file.seek(0)")
    session.do("first = file.read(2); n = 1; import os; os.lseek(file.fileno(), 2, 0)")
    state = session.present
    assert session.do("print(os.read(file.fileno(), 2))").text == "b'cd'\n"
    session.restore(state)
    assert session.do("print(os.read(file.fileno(), 2))").text == "b'cd'\n"


@pytest.mark.parametrize(
    "wait", ["os.wait()", "os.waitpid(-1, 0)", "os.wait3(0)", "os.waitid(os.P_ALL, 0, os.WEXITED)"]
)
def test_snapshots_are_not_children_to_wait_for(session: PythonRuntime, wait: str) -> None:
    session.do("import os, subprocess; n = 1")
    assert "ChildProcessError" in session.do(wait).stderr
    session.do("child = subprocess.Popen('exit 3', shell=True)")
    ran = session.do(f"print({wait})")
    assert ran.ended == "done", ran.stderr
    assert "ChildProcessError" in session.do(wait).stderr


def test_waiting_for_children_without_blocking_works(session: PythonRuntime) -> None:
    session.do("import os, subprocess; child = subprocess.Popen(['sleep', '1000'])")
    assert session.do("print(os.waitpid(-1, os.WNOHANG))").text == "(0, 0)\n"
    assert session.do("child.kill(); print(os.waitpid(-1, 0)[0] == child.pid)").text == "True\n"


def test_interrupts_do_not_kill_snapshots(fresh: PythonRuntime) -> None:
    fresh.do("import signal, subprocess; n = 1")
    points = fresh.points()
    ignoring = "n = 2\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2])\nprint('ready')\n"
    assert fresh.interrupted_when_ready(ignoring + "while True: subprocess.run(['sleep', '1000'])").ended == "died"
    assert fresh.do("print(n)").text == "1\n"  # it was killed, which lost only this block
    assert set(points) <= {*fresh.points(), fresh.present}


def test_a_stuck_snapshot_does_not_delay_the_block(fresh: PythonRuntime) -> None:
    fresh.do("kept = 1")
    fresh.do("import os, threading, time\nreader, writer = os.pipe()\nnever = threading.Event()")
    fresh.do("os.register_at_fork(after_in_child=lambda: never.wait())")
    assert fresh.do("print(kept)").text == "1\n"


def test_threads_keep_running_during_snapshots(session: PythonRuntime) -> None:
    session.do(
        "import threading, time\ncount = 0\ndef work():\n    global count\n    while count < 10**9 and not over:\n        count += 1\nover = False\nthreading.Thread(target=work).start()"
    )
    session.do("before = count")
    assert session.do("while count == before: time.sleep(0.001)\nover = True\nprint('ran on')").text == "ran on\n"


def test_unflushed_output_is_written_once(session: PythonRuntime) -> None:
    session.do("import os, sys, tempfile; file = open(tempfile.mktemp(), 'w'); file.write('once')")
    session.do("n = 1")
    assert session.do("file.close(); print(open(file.name).read())").text == "once\n"
    assert session.do("print('a', end='')").text == "a"
    assert session.do("print('b')").text == "b\n"


def test_input_transformers_are_called_as_often_as_without_snapshots() -> None:
    """After a snapshot we parse some code ahead of the next block, but not with the user's own functions."""
    counts = []
    for snapshots in (0, 20):
        session = PythonRuntime()
        session.context.snapshots = snapshots
        session.do("calls = []; ip = get_ipython()")
        session.do("ip.input_transformers_post.append(lambda lines: calls.append(lines) or lines)")
        session.do("n = 1")
        session.variables()
        counts.append(session.do("print(len(calls))").text)
        session.terminate()
    assert counts[0] == counts[1]
