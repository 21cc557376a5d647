"""Calls that do not end by themselves: interrupted, timed out, left behind by a worker or a block that is gone."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from gadget import Desk, calls_of, desk
from python_runtimes import Ran

__all__ = ["desk"]

JAVASCRIPT = pytest.param("javascript", marks=pytest.mark.needs("node"))
WAITING = {"python": "computer.gadget.wait()", "javascript": "await computer.gadget.wait()"}
BLOCKED = {"python": "computer.gadget.block()", "javascript": "await computer.gadget.block()"}
WIDTH = {"python": "print(computer.gadget.width)", "javascript": "console.log(await computer.gadget.width)"}


@pytest.mark.parametrize("language", ["python", JAVASCRIPT])
def test_an_interrupt_ends_the_call_in_the_session_and_in_the_tool(desk: Desk, language: str) -> None:
    desk.do({"python": "kept = 5", "javascript": "let kept = 5"}[language], language)
    ran = desk.interrupted(WAITING[language], language)
    assert ran.ended == "interrupted"
    if language == "python":
        assert "KeyboardInterrupt" in ran.stderr
    assert desk.gadget.left.wait(60)
    assert desk.do({"python": "print(kept)", "javascript": "console.log(kept)"}[language], language).text == "5\n"


@pytest.mark.parametrize("language", ["python", JAVASCRIPT])
def test_a_tool_that_cannot_be_interrupted_is_left_and_its_late_reply_is_nobodys(
    desk: Desk,
    language: str,
) -> None:
    ran = desk.interrupted(BLOCKED[language], language)
    assert ran.ended == "interrupted"
    assert desk.do(WIDTH[language], language).text == "7\n"
    desk.gadget.released.set()
    assert desk.do(WIDTH[language], language).text == "7\n"


def test_code_may_catch_the_interrupt_and_go_on(desk: Desk) -> None:
    ran = desk.interrupted(
        "try:\n    computer.gadget.wait()\nexcept KeyboardInterrupt:\n    print('caught', computer.gadget.width)"
    )
    assert ran.text == "caught 7\n"
    assert ran.ended == "done"


def test_a_block_that_takes_too_long_in_a_call_times_out(desk: Desk) -> None:
    desk.do("kept = 1")
    desk.interpreter.block_timeout = 1
    assert desk.do("computer.gadget.block()").ended == "timed_out"
    desk.interpreter.block_timeout = None
    assert desk.do("print(kept)").text == "1\n"


def test_ctrl_c_in_the_thread_that_reads_the_chunks(desk: Desk) -> None:
    def press() -> None:
        desk.gadget.entered.wait(60)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    desk.do("kept = 1")
    presser = threading.Thread(target=press)
    presser.start()
    ran = Ran()
    chunks = desk.computer.stream("python", "computer.gadget.block()")
    with pytest.raises(KeyboardInterrupt):
        ran.chunks.extend(map(dict, chunks))  # type: ignore[arg-type]
    presser.join()
    assert ran.ended == "interrupted"
    assert desk.do("print(kept)").text == "1\n"


def test_leaving_the_chunks_in_the_middle_of_a_call_ends_it(desk: Desk) -> None:
    chunks = desk.computer.stream("python", "print('begun')\ncomputer.gadget.wait()")
    for chunk in chunks:
        if chunk.get("content") == "begun\n":
            break
    assert desk.gadget.entered.wait(60)
    chunks.close()
    assert desk.gadget.left.wait(60)
    assert desk.do("print(computer.gadget.width)").text == "7\n"


@pytest.mark.parametrize("language", ["python", JAVASCRIPT])
def test_a_worker_that_dies_in_a_call_takes_it_along(desk: Desk, language: str) -> None:
    desk.do({"python": "kept = 5", "javascript": "let kept = 5"}[language], language)

    def kill() -> None:
        assert desk.gadget.entered.wait(60)
        instance = desk.computer.runtimes.runtime(language)
        instance.runtime.control.say("kill")  # type: ignore[attr-defined]

    killer = threading.Thread(target=kill)
    killer.start()
    ran = desk.do(WAITING[language], language)
    killer.join()
    assert ran.ended == "died"
    assert desk.gadget.left.wait(60)
    assert desk.do(WIDTH[language], language).text.endswith("7\n")
    if language == "python":
        assert desk.do("print(kept)").text == "5\n"


def test_ending_all_sessions_in_the_middle_of_a_call(desk: Desk) -> None:
    def end() -> None:
        assert desk.gadget.entered.wait(60)
        desk.computer.terminate()

    ender = threading.Thread(target=end)
    ender.start()
    desk.do("computer.gadget.wait()")
    ender.join()
    assert desk.gadget.left.wait(60)


def test_a_block_that_is_left_to_itself_goes_on_calling(desk: Desk) -> None:
    def detach() -> None:
        assert desk.gadget.entered.wait(60)
        desk.computer.runtimes.detach()
        desk.gadget.released.set()

    helper = threading.Thread(target=detach)
    helper.start()
    ran = desk.do("print(computer.gadget.wait(), flush=True)\ncomputer.gadget.mail('you', 'hi')")
    helper.join()
    assert ran.ended == "background"
    (job,) = desk.computer.jobs
    ended = threading.Event()
    for _ in range(2000):
        if not job.running:
            break
        ended.wait(0.01)
    assert "released" in job.output()
    assert "there was no one to ask" in job.output()
    assert desk.gadget.sent == []


# -- threads, forks, blocks that are over ------------------------------------------------------------------------------


def test_threads_of_a_block_call_one_after_the_other_and_none_is_lost(desk: Desk) -> None:
    ran = desk.do("""
import threading
from pathlib import Path
found = []
threads = [threading.Thread(target=lambda k=k: found.append(computer.gadget.echo(k))) for k in range(8)]
more = [threading.Thread(target=computer.gadget.overlap) for _ in range(4)]
for thread in threads + more: thread.start()
for number in range(20):
    assert computer.gadget.echo(number) == number
    print(number, end=" ", flush=True)
for thread in threads + more: thread.join()
print(sorted(found), computer.gadget.most_at_once)
""")
    assert ran.text.endswith("[0, 1, 2, 3, 4, 5, 6, 7] 1\n"), ran.text


def test_the_main_thread_is_asked_something_while_another_waits_for_a_reply(desk: Desk) -> None:
    def on_input(prompt: str, password: bool) -> str:
        assert desk.gadget.entered.wait(60)
        threading.Timer(0.2, desk.gadget.released.set).start()
        return "me"

    desk.computer.on_input = on_input
    ran = desk.do("""
import threading
from pathlib import Path
found = []
thread = threading.Thread(target=lambda: found.append(computer.gadget.wait()))
thread.start()
print(input("Who? "), computer.ai is not None)
thread.join()
print(found)
""")
    assert ran.text.endswith("me True\n['released']\n"), ran.text


def test_a_thread_of_a_block_that_is_over_is_told_so(desk: Desk) -> None:
    desk.do("""
import threading
from pathlib import Path
told, go = [], threading.Event()
def late():
    go.wait()
    try: computer.gadget.width
    except Exception as error: told.append(f"{type(error).__name__}: {error}")
def in_the_middle():
    try: computer.gadget.wait()
    except Exception as error: told.append(f"{type(error).__name__}: {error}")
threads = [threading.Thread(target=late, daemon=True), threading.Thread(target=in_the_middle, daemon=True)]
computer.gadget.width
for thread in threads: thread.start()
computer.gizmo.wait_for_gadget()
""")
    ran = desk.do("go.set()\nfor thread in threads: thread.join(60)\nprint(told, computer.gadget.width)")
    assert ran.text.count("Only a running block can use the computer") == 2, ran.text
    assert ran.text.count("ComputerError") == 2
    assert ran.text.endswith(" 7\n")


def test_a_forked_process_has_no_line_to_the_computer(desk: Desk) -> None:
    ran = desk.do("""
import os, sys
computer.gadget.width
pid = os.fork()
if pid == 0:
    try: computer.gadget.width
    except Exception as error: os.write(1, str(error).encode())
    os._exit(0)
os.waitpid(pid, 0)
print("", computer.gadget.echo("the parent goes on"))
""")
    assert "A forked process can't use `computer`" in ran.text
    assert ran.text.endswith("the parent goes on\n")


def test_snapshots_and_returns_keep_the_computer(desk: Desk) -> None:
    desk.do("from computer import gadget\nx = gadget.echo(1)")
    mark = desk.computer.mark()
    desk.do("x = gadget.echo(2)\nimport threading\nthreading.Thread(target=gadget.wait, daemon=True).start()")
    desk.computer.go_back(mark)
    assert desk.do("print(x, gadget.echo(3), computer.gadget.width)").text == "1 3 7\n"


def test_a_call_from_before_a_return_takes_no_reply_from_a_later_call(desk: Desk, tmp_path: Path) -> None:
    desk.do("from computer import gadget\nimport os, threading, time")
    mark = desk.computer.mark()
    entered = tmp_path / "entered"

    def let_the_block_end() -> None:
        desk.gadget.entered.wait(60)
        entered.touch()

    threading.Thread(target=let_the_block_end).start()
    desk.do(
        f"threading.Thread(target=gadget.block).start()\nwhile not os.path.exists({str(entered)!r}): time.sleep(0.01)"
    )
    desk.computer.go_back(mark)
    desk.gadget.entered.clear()

    def release_both() -> None:
        desk.gadget.entered.wait(60)
        desk.gadget.released.set()  # the earlier call ends at once, the later one with its next look

    threading.Thread(target=release_both).start()
    assert desk.do("print(gadget.wait())").text == "released\n"


def test_a_crash_in_a_block_that_calls_loses_that_block_alone(desk: Desk) -> None:
    desk.do("x = computer.gadget.echo(1)")
    assert desk.do("computer.gadget.echo(2)\nimport os\nos.kill(os.getpid(), 9)").ended == "died"
    assert desk.do("print(x, computer.gadget.echo(3))").text == "1 3\n"


def test_a_fork_of_the_interpreter_calls_its_own_computer(desk: Desk) -> None:
    desk.do("x = computer.gadget.echo(1)")
    other = desk.interpreter.fork()
    try:
        messages = other.computer.run("python", "print(x, computer.gadget.press('there'))")
        assert messages[0]["content"] == "1 pressed\n"
        assert other.computer.gadget.sent == ["there"]
        assert desk.gadget.sent == []
    finally:
        other.drop()


def test_a_frame_for_no_call_changes_nothing(desk: Desk) -> None:
    desk.do("computer.gadget.width")
    session = desk.computer.runtimes.runtime("python").runtime  # type: ignore[attr-defined]
    session.send({"op": "reply", "call": 1, "value": "late"})
    session.send({"op": "reply", "call": 999, "value": "never asked"})
    assert desk.do("print(computer.gadget.width)").text == "7\n"
    assert calls_of(desk.do("1")) == []
