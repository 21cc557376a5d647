"""A block ends without its consumer, and its end is applied exactly once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.runtimes.live import LiveLanguage
from javascript_runtimes import JavaScriptRuntime
from python_runtimes import PythonRuntime, Ran
from shell_runtimes import ShellRuntime
from waiting import until

LANGUAGES: dict[str, Callable[[], LiveLanguage]] = {
    "python": PythonRuntime,
    "shell": ShellRuntime,
    "javascript": JavaScriptRuntime,
}
BEGUN = {"python": "print('begun', flush=True)\n", "shell": "echo begun\n", "javascript": "console.log('begun')\n"}
PRINT = {"python": "print({})", "shell": "echo {}", "javascript": "console.log({})"}
ENDLESS = {
    "python": "while True: pass",
    "shell": "while :; do :; done",
    "javascript": "await new Promise(() => {})",
}
FLOOD = {
    "python": "for i in range(10**9): print('x' * 1000)",
    "shell": "yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "javascript": "for (;;) { console.log('x'.repeat(1000)); await 1 }",
}


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> Iterator[LiveLanguage]:
    made = LANGUAGES[request.param]()
    yield made
    made.terminate()


def name_of(language: LiveLanguage) -> str:
    return language.name.lower()


def suspended(language: LiveLanguage, code: str) -> tuple[Iterator[dict[str, object]], Ran]:
    """A run whose consumer has stopped iterating after the first output."""
    chunks = (dict(chunk) for chunk in language.run(BEGUN[name_of(language)] + code))
    ran = Ran()
    while "begun" not in ran.text:
        ran.chunks.append(next(chunks))
    return chunks, ran


def printed(language: LiveLanguage, what: int) -> str:
    return Ran([dict(chunk) for chunk in language.run(PRINT[name_of(language)].format(what))]).text


def ended_block(language: LiveLanguage) -> bool:
    return language._last is not None and language._last.block.ended.is_set()


def test_the_reader_thread_calls_on_end_while_the_consumer_is_suspended(language: LiveLanguage) -> None:
    calls: list[str] = []
    language.on_end = lambda: calls.append(threading.current_thread().name)
    chunks, ran = suspended(language, "")
    until(lambda: calls, "the end of the block")
    ran.chunks.extend(chunks)
    language.on_end = None
    assert ran.ended == "done" and calls == [f"{language.name} session"]


def test_a_suspended_run_keeps_its_ending_after_another_run(language: LiveLanguage) -> None:
    chunks, ran = suspended(language, PRINT[name_of(language)].format(1))
    until(lambda: ended_block(language), "the end of the block")
    assert printed(language, 22) == "22\n"
    ran.chunks.extend(chunks)
    assert (ran.text, ran.ended) == ("begun\n1\n", "done")


def test_the_next_run_ends_a_suspended_one_that_still_runs(language: LiveLanguage) -> None:
    chunks, ran = suspended(language, ENDLESS[name_of(language)])
    assert not ended_block(language)
    assert printed(language, 22) == "22\n"
    ran.chunks.extend(chunks)
    assert ran.ended == "interrupted" and "22" not in ran.text
    assert printed(language, 33) == "33\n"


def test_resuming_a_suspended_run_does_not_disturb_the_running_one(language: LiveLanguage) -> None:
    first, ran = suspended(language, ENDLESS[name_of(language)])
    second, other = suspended(language, PRINT[name_of(language)].format(22))
    ran.chunks.extend(first)
    other.chunks.extend(second)
    assert ran.ended == "interrupted"
    assert (other.text, other.ended) == ("begun\n22\n", "done")


def test_the_next_run_ends_a_suspended_one_with_a_full_queue(language: LiveLanguage) -> None:
    chunks, ran = suspended(language, FLOOD[name_of(language)])
    until(lambda: language._last is not None and not language._last.block._room.is_set(), "the reader to wait")
    assert printed(language, 22) == "22\n"
    ran.chunks.extend(chunks)
    assert ran.ended == "interrupted" and "22" not in ran.text


def test_stop_works_while_the_consumer_is_suspended(language: LiveLanguage) -> None:
    chunks, ran = suspended(language, FLOOD[name_of(language)])
    until(lambda: language._last is not None and not language._last.block._room.is_set(), "the reader to wait")
    language.stop()
    until(lambda: ended_block(language), "the end of the block")
    ran.chunks.extend(chunks)
    assert ran.ended == "interrupted"


def test_the_timeout_works_while_the_consumer_is_suspended(language: LiveLanguage) -> None:
    language.context.timeout = 0.5
    try:
        chunks, ran = suspended(language, ENDLESS[name_of(language)])
        until(lambda: ended_block(language), "the end of the block")
    finally:
        language.context.timeout = None
    ran.chunks.extend(chunks)
    assert ran.ended == "timed_out"


def test_runs_in_several_threads_all_end(language: LiveLanguage) -> None:
    ends: list[str] = []

    def run(number: int) -> None:
        for _ in range(5):
            code = PRINT[name_of(language)].format(number)
            ends.append(Ran([dict(chunk) for chunk in language.run(code)]).ended)

    threads = [threading.Thread(target=run, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(ends) == 20
    assert printed(language, 22) == "22\n"


def test_a_suspended_run_ends_when_its_session_is_terminated(language: LiveLanguage) -> None:
    calls: list[int] = []
    language.on_end = lambda: calls.append(1)
    chunks, ran = suspended(language, ENDLESS[name_of(language)])
    language.terminate()
    language.on_end = None
    assert printed(language, 22) == "22\n"
    ran.chunks.extend(chunks)
    assert ran.ended == "died" and calls == [1]


def test_the_next_run_applies_directory_and_variables_of_a_suspended_one_once(tmp_path: Path) -> None:
    shell = ShellRuntime()
    try:
        chunks, ran = suspended(shell, f"cd {tmp_path}; export FOUND=here")
        until(lambda: ended_block(shell), "the end of the block")
        shell.do(":")
        assert os.path.samefile(shell.context.cwd, tmp_path)
        assert shell.context.exported["FOUND"] == "here"
        shell.do("cd /")
        ran.chunks.extend(chunks)
        assert ran.ended == "done" and shell.context.cwd == "/"  # its end is not applied twice
    finally:
        shell.terminate()


def test_detaching_a_suspended_run_ends_it_once() -> None:
    python = PythonRuntime()
    calls: list[str] = []
    try:
        python.on_end = lambda: calls.append("ended")
        chunks, ran = suspended(python, "import time; time.sleep(0.3)")
        python.detach()
        detached = python.runtime
        assert printed(python, 22) == "22\n" and python.runtime is not detached
        ran.chunks.extend(chunks)
        until(lambda: not python.jobs[0].running, "the end of the job")
        assert ran.ended == "background" and len(python.jobs) == 1 and len(calls) == 2
    finally:
        python.terminate()


def test_computer_run_ends_a_suspended_stream(interpreter: OpenInterpreter) -> None:
    computer = interpreter.computer
    first = computer.run("python", "print('begun', flush=True)\nwhile True: pass", stream=True)
    chunks = [next(first)]
    assert computer.run("python", "print('second')")[0]["content"] == "second\n"
    chunks += first
    assert "second" not in "".join(str(chunk["content"]) for chunk in chunks if chunk.get("format") == "output")
    assert [chunk["ended"] for chunk in chunks if "ended" in chunk] == ["interrupted"]


@pytest.fixture
def interpreter() -> Iterator[OpenInterpreter]:
    interpreter = OpenInterpreter(stream_all=True)
    yield interpreter
    interpreter.computer.terminate()
