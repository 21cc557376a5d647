"""Calls that are interrupted, time out, or outlive their worker or block."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from example_computer_tool import CallTester, calls_of, tester
from python_runtimes import Ran

__all__ = ["tester"]

JAVASCRIPT = pytest.param("javascript", marks=pytest.mark.needs("node"))
WAITING = {"python": "computer.example.wait()", "javascript": "await computer.example.wait()"}
BLOCKED = {"python": "computer.example.block()", "javascript": "await computer.example.block()"}
WIDTH = {"python": "print(computer.example.width)", "javascript": "console.log(await computer.example.width)"}


@pytest.mark.parametrize("language", ["python", JAVASCRIPT])
def test_an_interrupt_ends_the_call_in_the_session_and_in_the_tool(tester: CallTester, language: str) -> None:
    tester.do({"python": "kept = 5", "javascript": "let kept = 5"}[language], language)
    ran = tester.interrupted(WAITING[language], language)
    assert ran.ended == "interrupted"
    if language == "python":
        assert "KeyboardInterrupt" in ran.stderr
    assert tester.example.left.wait(60)
    assert tester.do({"python": "print(kept)", "javascript": "console.log(kept)"}[language], language).text == "5\n"


@pytest.mark.parametrize("language", ["python", JAVASCRIPT])
def test_the_late_reply_of_an_uninterruptible_tool_is_dropped(
    tester: CallTester,
    language: str,
) -> None:
    ran = tester.interrupted(BLOCKED[language], language)
    assert ran.ended == "interrupted"
    assert tester.do(WIDTH[language], language).text == "7\n"
    tester.example.released.set()
    assert tester.do(WIDTH[language], language).text == "7\n"


def test_code_can_catch_the_interrupt_and_continue(tester: CallTester) -> None:
    ran = tester.interrupted(
        "try:\n    computer.example.wait()\nexcept KeyboardInterrupt:\n    print('caught', computer.example.width)"
    )
    assert ran.text == "caught 7\n"
    assert ran.ended == "done"


def test_a_block_that_takes_too_long_in_a_call_times_out(tester: CallTester) -> None:
    tester.do("kept = 1")
    tester.interpreter.block_timeout = 1
    assert tester.do("computer.example.block()").ended == "timed_out"
    tester.interpreter.block_timeout = None
    assert tester.do("print(kept)").text == "1\n"


def test_ctrl_c_in_the_thread_that_reads_the_chunks_interrupts_the_call(tester: CallTester) -> None:
    def press() -> None:
        tester.example.entered.wait(60)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    tester.do("kept = 1")
    presser = threading.Thread(target=press)
    presser.start()
    ran = Ran()
    chunks = tester.computer.stream("python", "computer.example.block()")
    with pytest.raises(KeyboardInterrupt):
        ran.chunks.extend(map(dict, chunks))  # type: ignore[arg-type]
    presser.join()
    assert ran.ended == "interrupted"
    assert tester.do("print(kept)").text == "1\n"


def test_closing_the_stream_during_a_call_ends_the_call(tester: CallTester) -> None:
    chunks = tester.computer.stream("python", "print('begun')\ncomputer.example.wait()")
    for chunk in chunks:
        if chunk.get("content") == "begun\n":
            break
    assert tester.example.entered.wait(60)
    chunks.close()
    assert tester.example.left.wait(60)
    assert tester.do("print(computer.example.width)").text == "7\n"


@pytest.mark.parametrize("language", ["python", JAVASCRIPT])
def test_a_call_ends_when_its_worker_dies(tester: CallTester, language: str) -> None:
    tester.do({"python": "kept = 5", "javascript": "let kept = 5"}[language], language)

    def kill() -> None:
        assert tester.example.entered.wait(60)
        instance = tester.computer.runtimes.runtime(language)
        instance.runtime.control.say("kill")  # type: ignore[attr-defined]

    killer = threading.Thread(target=kill)
    killer.start()
    ran = tester.do(WAITING[language], language)
    killer.join()
    assert ran.ended == "died"
    assert tester.example.left.wait(60)
    assert tester.do(WIDTH[language], language).text.endswith("7\n")
    if language == "python":
        assert tester.do("print(kept)").text == "5\n"


def test_a_call_ends_when_all_sessions_are_terminated(tester: CallTester) -> None:
    def end() -> None:
        assert tester.example.entered.wait(60)
        tester.computer.terminate()

    ender = threading.Thread(target=end)
    ender.start()
    tester.do("computer.example.wait()")
    ender.join()
    assert tester.example.left.wait(60)


def test_a_detached_block_keeps_making_calls(tester: CallTester) -> None:
    def detach() -> None:
        assert tester.example.entered.wait(60)
        tester.computer.runtimes.detach()
        tester.example.released.set()

    helper = threading.Thread(target=detach)
    helper.start()
    ran = tester.do("print(computer.example.wait(), flush=True)\ncomputer.example.mail('you', 'hi')")
    helper.join()
    assert ran.ended == "background"
    (job,) = tester.computer.jobs
    ended = threading.Event()
    for _ in range(2000):
        if not job.running:
            break
        ended.wait(0.01)
    assert "released" in job.output()
    assert "there was no one to ask" in job.output()
    assert tester.example.sent == []


# -- threads, forks, blocks that have ended ----------------------------------------------------------------------------


def test_calls_from_several_threads_run_one_at_a_time(tester: CallTester) -> None:
    ran = tester.do("""
import threading
from pathlib import Path
found = []
threads = [threading.Thread(target=lambda k=k: found.append(computer.example.echo(k))) for k in range(8)]
more = [threading.Thread(target=computer.example.overlap) for _ in range(4)]
for thread in threads + more: thread.start()
for number in range(20):
    assert computer.example.echo(number) == number
    print(number, end=" ", flush=True)
for thread in threads + more: thread.join()
print(sorted(found), computer.example.most_at_once)
""")
    assert ran.text.endswith("[0, 1, 2, 3, 4, 5, 6, 7] 1\n"), ran.text


def test_input_works_while_another_thread_waits_for_a_call(tester: CallTester) -> None:
    def on_input(prompt: str, password: bool) -> str:
        assert tester.example.entered.wait(60)
        threading.Timer(0.2, tester.example.released.set).start()
        return "me"

    tester.computer.on_input = on_input
    ran = tester.do("""
import threading
from pathlib import Path
found = []
thread = threading.Thread(target=lambda: found.append(computer.example.wait()))
thread.start()
print(input("Who? "), computer.ai is not None)
thread.join()
print(found)
""")
    assert ran.text.endswith("me True\n['released']\n"), ran.text


def test_a_call_from_a_thread_of_an_ended_block_fails(tester: CallTester) -> None:
    tester.do("""
import threading
from pathlib import Path
told, go = [], threading.Event()
def late():
    go.wait()
    try: computer.example.width
    except Exception as error: told.append(f"{type(error).__name__}: {error}")
def in_the_middle():
    try: computer.example.wait()
    except Exception as error: told.append(f"{type(error).__name__}: {error}")
threads = [threading.Thread(target=late, daemon=True), threading.Thread(target=in_the_middle, daemon=True)]
computer.example.width
for thread in threads: thread.start()
computer.gizmo.wait_for_example()
""")
    ran = tester.do("go.set()\nfor thread in threads: thread.join(60)\nprint(told, computer.example.width)")
    assert ran.text.count("Only a running block can use the computer") == 2, ran.text
    assert ran.text.count("ComputerError") == 2
    assert ran.text.endswith(" 7\n")


def test_a_forked_process_cannot_use_the_computer(tester: CallTester) -> None:
    ran = tester.do("""
import os, sys
computer.example.width
pid = os.fork()
if pid == 0:
    try: computer.example.width
    except Exception as error: os.write(1, str(error).encode())
    os._exit(0)
os.waitpid(pid, 0)
print("", computer.example.echo("the parent goes on"))
""")
    assert "A forked process can't use `computer`" in ran.text
    assert ran.text.endswith("the parent goes on\n")


def test_calls_work_after_going_back_to_a_snapshot(tester: CallTester) -> None:
    tester.do("from computer import example\nx = example.echo(1)")
    mark = tester.computer.mark()
    tester.do("x = example.echo(2)\nimport threading\nthreading.Thread(target=example.wait, daemon=True).start()")
    tester.computer.go_back(mark)
    assert tester.do("print(x, example.echo(3), computer.example.width)").text == "1 3 7\n"


def test_going_back_does_not_mix_up_replies_of_earlier_and_later_calls(tester: CallTester, tmp_path: Path) -> None:
    tester.do("from computer import example\nimport os, threading, time")
    mark = tester.computer.mark()
    entered = tmp_path / "entered"

    def let_the_block_end() -> None:
        tester.example.entered.wait(60)
        entered.touch()

    threading.Thread(target=let_the_block_end).start()
    tester.do(
        f"threading.Thread(target=example.block).start()\nwhile not os.path.exists({str(entered)!r}): time.sleep(0.01)"
    )
    tester.computer.go_back(mark)
    tester.example.entered.clear()

    def release_both() -> None:
        tester.example.entered.wait(60)
        tester.example.released.set()  # the earlier call ends at once, the later one with its next poll

    threading.Thread(target=release_both).start()
    assert tester.do("print(example.wait())").text == "released\n"


def test_a_crash_after_a_call_loses_only_that_block(tester: CallTester) -> None:
    tester.do("x = computer.example.echo(1)")
    assert tester.do("computer.example.echo(2)\nimport os\nos.kill(os.getpid(), 9)").ended == "died"
    assert tester.do("print(x, computer.example.echo(3))").text == "1 3\n"


def test_a_forked_interpreter_calls_its_own_computer(tester: CallTester) -> None:
    tester.do("x = computer.example.echo(1)")
    other = tester.interpreter.fork()
    try:
        messages = other.computer.run("python", "print(x, computer.example.press('there'))")
        assert messages[0]["content"] == "1 pressed\n"
        assert other.computer.example.sent == ["there"]
        assert tester.example.sent == []
    finally:
        other.drop()


def test_replies_without_a_pending_call_are_ignored(tester: CallTester) -> None:
    tester.do("computer.example.width")
    session = tester.computer.runtimes.runtime("python").runtime  # type: ignore[attr-defined]
    session.send({"op": "reply", "call": 1, "value": "late"})
    session.send({"op": "reply", "call": 999, "value": "never asked"})
    assert tester.do("print(computer.example.width)").text == "7\n"
    assert calls_of(tester.do("1")) == []
