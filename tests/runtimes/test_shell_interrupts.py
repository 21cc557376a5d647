"""One interrupt ends a block, the shell keeps its state, and the next block gets only its own output."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from interpreter.runtimes.shell.dialect import HERE
from shell_runtimes import ShellRuntime, bash, fresh, shell
from waiting import is_running

__all__ = ["bash", "fresh", "shell"]

IGNORES = 'python3 -c "import signal, time; signal.signal(2, signal.SIG_IGN); print(1, flush=True); time.sleep(1000)"'
CHILD = "sh -c 'echo begun; exec sleep 1000'"
HANDLES = """python3 -c "
import time
try:
    print(1, flush=True); time.sleep(1000)
except KeyboardInterrupt:
    print('handled')
"
"""


@pytest.mark.parametrize(
    "code",
    [
        "while :; do :; done",
        "while true; do sleep 0.001; done",
        "spin() { while :; do :; done; }; outer() { spin; echo not reached; }; outer",
        "sleep 1000",
        "wait_here() { sleep 1000; echo not reached; }; wait_here",
        "sleep 1000 | cat",
        "(sleep 1000; echo not reached)",
        "value=$(sleep 1000; echo not reached)",
        "sleep 1000 & wait",
        "read other < <(sleep 1000)",
        "for ((;;)); do ((n++)); done",
        "yes > /dev/null",
        "if sleep 1000; then echo not reached; else echo not reached; fi",
        "eval 'sleep 1000; echo not reached'",
        "sleep 1000 || echo not reached",
        pytest.param(HANDLES, id="program that handles SIGINT"),
        pytest.param(IGNORES, id="program that ignores SIGINT"),
        "trap 'echo mine' INT; while :; do sleep 0.05; done",
        "trap '' INT; while :; do sleep 0.05; done",
    ],
)
def test_an_interrupt_ends_the_block(shell: ShellRuntime, code: str) -> None:
    shell.do("word=kept; trap - INT")
    begun = time.monotonic()
    ran = shell.stop_at("begun", f"echo begun\n{code}\necho not reached")
    assert time.monotonic() - begun < 10
    # bash may name the command that was interrupted, as it does at a prompt
    assert "not reached" not in ran.text.splitlines()
    if "trap" in code:  # the program's own trap is respected during the grace period
        assert ran.ended in ("interrupted", "died")
    else:
        assert ran.ended == "interrupted" and ran.exit_code == 130
    assert shell.do("echo $word; trap - INT").text == "kept\n"


def test_the_shell_survives_an_interrupt(fresh: ShellRuntime) -> None:
    before = fresh.do("echo $$; sleep 1000 & job=$!; here=1").text
    time.sleep(0.05)  # process start times are known to a hundredth of a second
    assert fresh.stop_at("begun", f"inner=1; {CHILD}; echo no").ended == "interrupted"
    assert fresh.do("echo $$").text == before
    ran = fresh.do("echo $here$inner; jobs; kill $job; wait $job 2>/dev/null; echo $?")
    assert ran.text.splitlines()[0] == "11" and ran.text.count("sleep 1000") >= 1
    assert ran.text.splitlines()[-1] == "143"  # the job is still a child of this shell


def test_jobs_of_earlier_blocks_survive_an_interrupt(fresh: ShellRuntime) -> None:
    process = psutil.Process(int(fresh.do("sleep 1000 & echo $!").text))
    time.sleep(0.05)  # process start times are known to a hundredth of a second
    for code in ("sleep 1000", IGNORES):
        fresh.stop_at("1" if code == IGNORES else "begun", f"echo begun; {code}")
        assert is_running(process)


def test_the_shell_survives_many_interrupts_in_a_row(fresh: ShellRuntime) -> None:
    fresh.do("word=kept")
    for n in range(25):
        fresh.stop_at("begun", "echo begun; while :; do echo noise; done" if n % 2 else "echo begun; sleep 1000")
        assert fresh.do("echo clean").text == "clean\n"
    assert fresh.do("echo $word").text == "kept\n"


@pytest.mark.parametrize("code", ["sleep 1000", "true", "echo one\\necho two\\ntrue"])
def test_an_interrupt_at_any_moment_does_not_hit_the_next_block(fresh: ShellRuntime, code: str) -> None:
    """Before the shell has read the block, between its lines, or when it is done."""
    fresh.do("word=kept")
    for n in range(20):
        with pressing(fresh, n / 4000):
            fresh.do(code)
        ran = fresh.do("echo $word")
        assert (ran.text, ran.ended) == ("kept\n", "done")


@contextmanager
def pressing(session: ShellRuntime, pause: float) -> Iterator[None]:
    """Press Ctrl-C again and again in another thread."""
    over = threading.Event()

    def press() -> None:
        while not over.wait(pause):
            session.stop()

    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("pause", [0.001, 0.02, 0.05])
def test_a_block_can_be_interrupted_while_the_shell_starts(fresh: ShellRuntime, pause: float) -> None:
    with pressing(fresh, pause):
        ran = fresh.do("sleep 1000; echo not reached")
    assert (ran.text, ran.ended) == ("", "interrupted")
    assert fresh.do("echo fine").text == "fine\n"


def test_repeated_interrupts_do_not_delay_the_end(fresh: ShellRuntime) -> None:
    fresh.do("word=kept")
    with pressing(fresh, 0.05):
        ran = fresh.do(IGNORES)
    assert ran.ended in ("interrupted", "died")
    assert fresh.do("echo fine").text == "fine\n"


def test_leaving_the_stream_ends_the_block(fresh: ShellRuntime) -> None:
    for _ in range(5):
        for chunk in fresh.run("while :; do echo noise; done"):
            if chunk.get("format") == "output":
                break
        assert fresh.do("echo clean").text == "clean\n"


def test_interrupts_keep_debugging_options(bash: ShellRuntime) -> None:
    bash.do("trap 'n=$((n+1))' DEBUG; shopt -s extdebug; set -T")
    bash.stop_at("begun", "echo begun; sleep 1000")
    assert bash.do("trap -p DEBUG; shopt extdebug; echo $-").text.split()[:4] == "trap -- 'n=$((n+1))' DEBUG".split()
    bash.do("trap - DEBUG; shopt -u extdebug; set +T")
    bash.stop_at("begun", "echo begun; sleep 1000")
    ran = bash.do("trap -p DEBUG; shopt extdebug; case $- in *T*) echo traced;; esac")
    assert ran.text.split() == ["extdebug", "off"]


def test_a_time_limit_ends_the_block(shell: ShellRuntime) -> None:
    shell.context.timeout = 1  # long enough for the first output
    ran = shell.do("echo begun; sleep 1000; echo not reached")
    shell.context.timeout = None
    assert (ran.text, ran.ended) == ("begun\n", "timed_out")
    assert shell.do("echo fine").text == "fine\n"


@pytest.mark.needs("zsh")
def test_zsh_sends_each_frame_once_despite_interrupts() -> None:
    """zsh runs traps inside the signal handler; a partly sent frame must not be sent again."""
    script = f". {shlex.quote(str(HERE / 'driver.zsh'))}; __oi_block=; __oi_watch_interrupts; "
    script += "for n in {1..2000}; do __oi_ready; done"
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb") as frames:
        process = subprocess.Popen(["zsh", "-fc", script], stdin=theirs, stdout=subprocess.DEVNULL)
        theirs.close()
        assert b"ready" in frames.readline()
        read = threading.Thread(target=lambda: sent.extend(frames))
        sent: list[bytes] = []
        read.start()
        end = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < end:
            process.send_signal(signal.SIGINT)
            time.sleep(0.0002)
        process.kill()
        read.join()
        process.wait()
    assert len(sent) == 1999
