"""Python output: streams are separate, in order, complete, and belong to the right block."""

from __future__ import annotations

import re

from interpreter.runtimes.block import RunningBlock
from python_runtimes import PythonRuntime, fresh, session
from waiting import until

__all__ = ["fresh", "session"]


def test_stdout_and_stderr_are_separate_and_in_order(session: PythonRuntime) -> None:
    code = "import sys\nfor i in range(50):\n    print('out', i)\n    print('err', i, file=sys.stderr)"
    ran = session.do(code)
    assert ran.text == "".join(f"out {i}\nerr {i}\n" for i in range(50))
    assert ran.stderr == "".join(f"err {i}\n" for i in range(50))


def test_output_of_child_processes_and_c_code_stays_in_order(session: PythonRuntime) -> None:
    code = """
import os, subprocess, sys
for i in range(5):
    print("print", i)
    os.system("echo system; echo error >&2")
    print("error print", file=sys.stderr)
    os.write(1, b"write\\n")
    subprocess.run(["echo", "run"])
    display("shown")
    !echo bang
"""
    expected = "system\nerror\nerror print\nwrite\nrun\n'shown'\nbang\n"
    ran = session.do(code)
    assert ran.text == "".join(f"print {i}\n{expected}" for i in range(5))
    assert ran.stderr == "error\nerror print\n" * 5


def test_output_arrives_while_the_block_runs(session: PythonRuntime) -> None:
    running = session.run("import time\nprint('first')\nprint('part', end='', flush=True)\ntime.sleep(1000)")
    seen = ""
    for chunk in running:
        seen += chunk["content"] if chunk.get("format") == "output" else ""
        if "part" in seen:
            break
    running.close()
    assert seen == "first\npart"


def test_unfinished_lines_are_not_lost(session: PythonRuntime) -> None:
    code = "import sys\nprint('a', end='')\nprint('b', end='', file=sys.stderr)\nprint('c', end='')"
    ran = session.do(code)
    assert sorted(ran.text) == ["a", "b", "c"]
    assert session.do("print('d', end='')\n1/0").stdout == "d"


def test_100000_lines_arrive_complete(session: PythonRuntime) -> None:
    ran = session.do("for i in range(100_000):\n    print('%080d' % i)")
    lines = ran.stdout.splitlines()
    assert len(lines) == 100_000
    assert lines[0] == "0" * 80
    assert lines[-1] == f"{99_999:080}"


def test_a_line_of_10_megabytes_arrives_complete(session: PythonRuntime) -> None:
    assert session.do("print('x' * 10_000_000)").stdout == "x" * 10_000_000 + "\n"
    ran = session.do("import sys\nprint('y' * 10_000_000, file=sys.stderr)")
    assert ran.stderr == "y" * 10_000_000 + "\n"
    assert session.do("'z' * 10_000_000").stdout == "'" + "z" * 10_000_000 + "'\n"


def test_unusual_characters_do_no_harm(session: PythonRuntime) -> None:
    assert session.do("print('emoji 🎉 ünï')").stdout == "emoji 🎉 ünï\n"
    assert session.do("import sys\nprint('🎉', file=sys.stderr)").stderr == "🎉\n"
    assert session.do("print('half \\ud83d a pair')").stdout.endswith("a pair\n")
    assert session.do("print('half \\ud83d a pair', file=sys.stderr)").stderr == "half \ufffd a pair\n"
    assert session.do("'\\ud83d'").ended == "done"
    assert session.do("print('nul \\0 and \\x1b[31mred')").stdout == "nul \0 and \x1b[31mred\n"
    assert session.do("raise ValueError('\\udc80')").ended == "error"


def test_invalid_utf_8_is_replaced(session: PythonRuntime) -> None:
    code = "import sys\nsys.stdout.buffer.write(bytes(range(256)) + b'\\n')\nsys.stdout.buffer.write(b'ok\\n');"
    ran = session.do(code)
    assert "\ufffd" in ran.stdout
    assert ran.stdout.endswith("ok\n")
    ran = session.do("sys.stderr.buffer.write(b'\\xff\\xfe ok\\n');")
    assert ran.stderr == "\ufffd\ufffd ok\n"
    ran = session.do("import os\nos.system(\"head -c 100000 /dev/urandom; printf '\\\\377 end'\");")
    assert ran.stdout.endswith("\ufffd end")


def test_characters_may_be_written_byte_by_byte(session: PythonRuntime) -> None:
    code = """
import sys
for stream in (sys.stdout, sys.stderr):
    for byte in "é\\n".encode():
        stream.buffer.write(bytes([byte]))
        stream.buffer.flush()
"""
    ran = session.do(code)
    assert (ran.stdout, ran.stderr) == ("é\n", "é\n")


def test_the_streams_behave_like_text_streams(session: PythonRuntime) -> None:
    code = """
import io, sys
for stream, fd in ((sys.stdout, 1), (sys.stderr, 2), (sys.stdin, 0)):
    assert isinstance(stream, io.TextIOBase)
    assert stream.fileno() == fd and not stream.isatty() and stream.encoding.lower() == "utf-8"
    assert stream.name == {0: "<stdin>", 1: "<stdout>", 2: "<stderr>"}[fd]
    stream.flush()
    assert not stream.closed
for stream in (sys.stdout, sys.stderr):
    assert stream.write("abc\\n") == 4
    assert stream.writable() and not stream.readable()
    stream.writelines(["d\\n", "e\\n"])
    stream.reconfigure(line_buffering=True)
    try:
        stream.write(b"no")
    except TypeError as error:
        print(error)
"""
    ran = session.do(code)
    assert ran.ended == "done", ran.stderr
    assert ran.stdout.count("must be str, not bytes") == 2
    assert ran.stderr == "abc\nd\ne\n"


def test_streams_can_be_closed_and_replaced(session: PythonRuntime) -> None:
    session.do("import sys\nsys.stdout.close()\nsys.stderr.close()")
    assert session.do("print('open again')").stdout == "open again\n"
    session.do("import io\nsys.stdout = io.StringIO()\nprint('caught')")
    assert (
        session.do("sys.stdout, caught = sys.__stdout__, sys.stdout\nprint(caught.getvalue())").stdout == "caught\n\n"
    )
    session.do("import contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as out:\n    print(1)")
    assert session.do("out.getvalue()").stdout == "'1\\n'\n"


def test_progress_bars_are_shown(session: PythonRuntime) -> None:
    ran = session.do("from tqdm import tqdm\nfor i in tqdm(range(3)): pass")
    assert "100%" in ran.stderr
    assert "\r" in ran.stderr


def test_threads_print_whole_lines(session: PythonRuntime) -> None:
    code = """
import sys, threading
def talk(name):
    for i in range(200):
        print(name * 20 + "\\n", end="")
        print(name.lower() * 20, file=sys.stderr)
threads = [threading.Thread(target=talk, args=(name,)) for name in "ABCD"]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    ran = session.do(code)
    assert sorted(ran.stdout.split()) == sorted(name * 20 for name in "ABCD" for _ in range(200))
    assert sorted(ran.stderr.split()) == sorted(name * 20 for name in "abcd" for _ in range(200))


def test_output_of_a_thread_belongs_to_the_block_that_started_it(session: PythonRuntime) -> None:
    session.do(
        """
import sys, threading
go, gone = threading.Event(), threading.Event()
def late():
    go.wait(60)
    print("late")
    print("late error", file=sys.stderr)
    gone.set()
threading.Thread(target=late).start()
"""
    )
    assert session.runtime is not None
    block = session.runtime.block
    ran = session.do("go.set()\nprint(gone.wait(60))")
    assert ran.text == "True\n"
    assert block is not None
    until(lambda: len(block.spool.read()) >= len("late\nlate error\n"), "the output of the thread")
    assert block.spool.read() == "late\nlate error\n"


def test_late_output_of_a_grandchild_stays_with_its_block(session: PythonRuntime) -> None:
    code = """
import os
reader, writer = os.pipe()
os.set_inheritable(reader, True)
os.system(f"(read line <&{reader}; echo late) &")
print("started")
"""
    assert session.do(code).stdout == "started\n"
    assert session.runtime is not None
    block = session.runtime.block
    assert session.do("os.write(writer, b'go\\n'); os.close(writer)\nprint('second')").stdout == "second\n"
    assert block is not None
    assert wait_for_end(session, block)
    assert block.spool.read() == "started\nlate\n"


def wait_for_end(session: PythonRuntime, block: RunningBlock) -> bool:
    """Run other blocks until the last process of this one has closed its pipes."""
    return any(not block.running or session.do("pass") is None for _ in range(5000))


def test_a_forked_child_prints_and_ends_on_its_own(session: PythonRuntime) -> None:
    code = """
import os, sys
print("before", end="")
pid = os.fork()
if pid == 0:
    print("child")
    print("child error", file=sys.stderr)
else:
    os.waitpid(pid, 0)
    print("parent")
"""
    ran = session.do(code)
    assert ran.stdout == "beforechild\nparent\n"
    assert ran.stderr == "child error\n"
    ran = session.do(
        "pid = os.fork()\nif pid == 0: raise ValueError('in the child')\nprint(os.waitpid(pid, 0)[1] >> 8)"
    )
    assert ran.stdout == "1\n"
    assert "in the child" in ran.stderr
    assert session.do("print('whole')").stdout == "whole\n"


def test_multiprocessing(session: PythonRuntime) -> None:
    code = """
import multiprocessing, os
def square(x):
    print("working")
    return x * x
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(square, [1, 2, 3]))
"""
    ran = session.do(code)
    assert ran.stdout.endswith("[1, 4, 9]\n")
    assert ran.stdout.count("working\n") == 3
    assert ran.stderr == ""
    ran = session.do("with multiprocessing.get_context('spawn').Pool(1) as pool:\n    print(pool.map(len, ['abc']))")
    assert ran.stdout == "[3]\n", ran.stderr


def test_tracebacks_are_colored_only_on_request(fresh: PythonRuntime) -> None:
    assert "\x1b" not in fresh.do("1/0").text
    fresh.context.colors = True
    assert ("\x1b" in fresh.do("1/0").text) == (fresh.engine == "ipython")
    fresh.context.colors = False
    assert "\x1b" not in fresh.do("1/0").text


def test_finalizers_and_signal_handlers_can_print(session: PythonRuntime) -> None:
    code = """
import gc, signal, sys, time
class Loud:
    def __del__(self):
        print("finalized", file=sys.stderr)
        print("finalized")
def tick(*_):
    print("tick", file=sys.stderr)
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
end = time.monotonic() + 0.2
count = 0
while time.monotonic() < end:
    loud = Loud(); loud.me = loud
    del loud
    count += 1
    print("line", file=sys.stderr)
    gc.collect(0)
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    ran = session.do(code)
    assert ran.ended == "done", ran.stderr[-500:]
    assert re.fullmatch(r"(tick|line|finalized|\n)*", ran.stderr)  # a handler may print before the newline
    assert ran.stderr.count("line") == int(session.do("count").stdout)
