"""Every runtime: its processes end with it, its output is complete, and late output stays with its block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api import Computer
from sampling import some
from waiting import until, until_ended

HOST = """
import sys, time
from interpreter import OpenInterpreter
computer = OpenInterpreter(stream_all=True).computer
for chunk in computer.run(sys.argv[1], sys.argv[2], stream=True):
    if chunk.get("format") == "output":
        print(chunk["content"], end="", flush=True)
{after}
"""
DAEMON = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", '''
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", os.getpid(), flush=True)
        time.sleep(1000)
    os._exit(0)
os._exit(0)
'''], stdout=subprocess.PIPE, text=True)
print(child.stdout.readline(), end="")
print("worker", os.getpid())
"""
NODE = pytest.param("javascript", marks=pytest.mark.needs("node"))


@pytest.fixture
def computer() -> Iterator[Computer]:
    computer = OpenInterpreter(stream_all=True).computer
    yield computer
    computer.terminate()


def text_of(messages: list[Any]) -> str:
    return "".join(message["content"] for message in messages if message["type"] == "console")


@pytest.mark.parametrize("end", some(1, ["exit", "kill -9", "exception"]))
def test_nothing_outlives_the_host(end: str, no_strays: None) -> None:
    """Not even a daemon that left its process group, session and parent."""
    after = {"exit": "", "kill -9": "time.sleep(1000)", "exception": "raise SystemError"}[end]
    argv = [sys.executable, "-c", HOST.format(after=after), "python", DAEMON]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as host:
        assert host.stdout is not None
        numbers = [int(host.stdout.readline().split()[1]) for _ in range(2)]
        if end == "kill -9":
            host.kill()
    until_ended(numbers)


def test_terminate_ends_background_processes(computer: Computer, no_strays: None) -> None:
    process = psutil.Process(int(text_of(computer.run("shell", "sleep 1000 & echo $!"))))
    computer.terminate()
    until_ended([process])


def test_a_killed_supervisor_is_replaced(computer: Computer) -> None:
    supervisor = int(text_of(computer.run("python", "import os; print(os.getppid())")))
    os.kill(supervisor, signal.SIGKILL)
    os.waitid(os.P_PID, supervisor, os.WEXITED | os.WNOWAIT)
    computer.run("python", "print('this one or the next')")
    assert text_of(computer.run("python", "print('fine')")) == "fine\n"


@pytest.mark.full
def test_long_output_is_saved_in_a_file(computer: Computer) -> None:
    chunks = list(computer.run("python", "for n in range(100_000): print(n)", stream=True))
    path = Path(chunks[-1]["truncated"])
    assert path.read_text().splitlines() == [str(n) for n in range(100_000)]
    assert "".join(c["content"] for c in chunks if c.get("format") == "output") == path.read_text()
    code = "for n in range(100_000): print(n)"
    assert computer.run("python", code)[-1]["content"] == path.read_text()
    computer.max_output = 2800
    message = computer.run("python", code)[-1]
    computer.max_output = None
    assert len(message["content"]) < 3100
    assert message["content"].startswith("0\n1\n")
    assert message["content"].endswith("99998\n99999\n")
    assert message["truncated"] in message["content"]


@pytest.mark.full
def test_a_hundred_megabytes_in_bounded_memory(computer: Computer) -> None:
    before = psutil.Process().memory_info().rss
    total = 0
    for chunk in computer.run("python", "line = 'x' * 999\nfor n in range(100_000): print(line)", stream=True):
        if chunk.get("format") == "output":
            total += len(chunk["content"])
    assert total == 100_000_000
    assert psutil.Process().memory_info().rss - before < 60_000_000
    Path(chunk["truncated"]).unlink()


def test_a_slow_consumer_holds_the_program_back(computer: Computer) -> None:
    chunks = computer.run("python", "for n in range(200): print('x' * 99_999)", stream=True)
    first = next(chunk for chunk in chunks if chunk.get("format") == "output")
    before = psutil.Process().memory_info().rss
    time.sleep(1)  # in which a program that is not held back prints everything
    assert psutil.Process().memory_info().rss - before < 12_000_000
    rest = sum(len(chunk["content"]) for chunk in chunks if chunk.get("format") == "output")
    assert len(first["content"]) + rest == 20_000_000


@pytest.mark.parametrize("language", ["python", "shell", NODE])
def test_late_output_of_a_grandchild_does_not_land_in_the_next_block(
    computer: Computer, language: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    child = f"(cat {gate}; echo late; echo done > {gate}) &"
    spawn = "require('child_process').spawn('sh', ['-c', `CHILD`], {stdio: 'inherit', detached: true}).unref()"
    start = {
        "python": f"import os; os.system('''{child}''')",
        "shell": child,
        "javascript": spawn.replace("CHILD", child),
    }[language]
    computer.run(language, start)
    read = {
        "python": f"open({str(gate)!r}, 'w').close(); print(open({str(gate)!r}).read())",
        "shell": f": > {gate}; cat {gate}",
        "javascript": f"fs = require('fs'); fs.writeFileSync('{gate}', ''); fs.readFileSync('{gate}', 'utf8')",
    }[language]
    output = text_of(computer.run(language, read))
    assert "done" in output
    assert "late" not in output


def test_the_working_directory_is_shared_both_ways(computer: Computer, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    computer.run("shell", f"cd {tmp_path}")
    assert str(tmp_path) in text_of(computer.run("python", "import os; print(os.getcwd())"))
    computer.run("python", "os.chdir('a')")
    assert text_of(computer.run("shell", "pwd")).strip() == str(tmp_path / "a")
    computer.run("python", "os.chdir('b')")
    (tmp_path / "a" / "b").rmdir()
    assert text_of(computer.run("shell", "cd /; pwd")).splitlines()[-1] == "/"


def test_shell_exports_are_seen_by_later_blocks(computer: Computer) -> None:
    computer.run("python", "import os")
    computer.run("shell", "export FRUIT=pear; PLAIN=no")
    assert text_of(computer.run("python", "print(os.environ.get('FRUIT'), os.environ.get('PLAIN'))")) == "pear None\n"
    computer.run("shell", "unset FRUIT")
    assert text_of(computer.run("python", "print(os.environ.get('FRUIT'))")) == "None\n"


def test_a_block_times_out(computer: Computer) -> None:
    assert computer.interpreter is not None
    computer.interpreter.block_timeout = 0.3
    last = list(computer.run("shell", "sleep 1000", stream=True))[-1]
    assert last["ended"] == "timed_out"
    computer.interpreter.block_timeout = None
    assert text_of(computer.run("shell", "echo fine")) == "fine\n"


@pytest.mark.parametrize("language", ["python", "shell"])
def test_a_background_block_can_be_read_and_stopped(computer: Computer, language: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    code = {
        "python": f"import time\nprint('begun')\nprint(open({str(gate)!r}).read())\ntime.sleep(1000)",
        "shell": f"echo begun; cat {gate}; sleep 1000",
    }[language]
    ended = None
    for chunk in computer.run(language, code, stream=True):
        if "begun" in str(chunk.get("content")):
            computer.runtimes.detach()
        ended = chunk.get("ended", ended)
    assert ended == "background"
    (job,) = computer.jobs
    assert job.running
    assert text_of(computer.run(language, "print('next')" if language == "python" else "echo next")) == "next\n"
    gate.write_text("later\n")
    until(lambda: "later" in job.output(), "the output of the job")
    job.stop()
    assert not job.running


def test_the_process_id_of_a_background_block_is_shown(no_strays: None, computer: Computer) -> None:
    chunks = []
    for chunk in computer.run("shell", "echo begun; exec sleep 1000", stream=True):
        chunks.append(chunk)
        if "begun" in str(chunk.get("content")):
            computer.runtimes.detach()
    assert str(computer.jobs[0].pid) in "".join(str(chunk.get("content")) for chunk in chunks)


def test_stop_from_another_thread_ends_the_block(computer: Computer) -> None:
    for chunk in computer.run("python", "print('begun')\nimport time\ntime.sleep(1000)", stream=True):
        if "begun" in str(chunk.get("content")):
            threading.Thread(target=computer.stop).start()
    assert chunk["ended"] == "interrupted"


def test_leaving_the_stream_ends_the_block_and_the_next_one_is_clean(computer: Computer) -> None:
    for _ in range(20):
        for chunk in computer.run("python", "n = 0\nwhile True:\n    n += 1\n    print('noise', n)", stream=True):
            if chunk.get("format") == "output":
                break
        assert text_of(computer.run("python", "print('clean')")) == "clean\n"
