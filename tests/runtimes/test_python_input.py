"""Python input: questions go to the user and answers come back; an unattended session gets the end of file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from python_runtimes import PythonRuntime, session

__all__ = ["session"]


@pytest.fixture
def asked(session: PythonRuntime) -> Iterator[list[tuple[str, bool]]]:
    """The questions; each is answered with its number."""
    questions: list[tuple[str, bool]] = []

    def answer(prompt: str, password: bool) -> str:
        questions.append((prompt, password))
        return f"answer {len(questions)}"

    session.context.on_input = answer
    yield questions
    session.context.on_input = None


def test_input_is_answered(session: PythonRuntime, asked: list[tuple[str, bool]]) -> None:
    ran = session.do("print('before')\nname = input('Name? ')\nprint('hello', name)")
    assert asked == [("Name? ", False)]
    assert ran.stdout == "before\nhello answer 1\n"
    (request,) = ran.of_type("input_request")
    assert (request["content"], request["password"]) == ("Name? ", False)


def test_passwords_are_asked_for(session: PythonRuntime, asked: list[tuple[str, bool]]) -> None:
    code = "import getpass\nfrom getpass import getpass as ask\nprint(getpass.getpass(), ask('PIN: '))"
    ran = session.do(code)
    assert asked == [("Password: ", True), ("PIN: ", True)]
    assert ran.stdout == "answer 1 answer 2\n"


def test_stdin_is_answered(session: PythonRuntime, asked: list[tuple[str, bool]]) -> None:
    code = "import sys\nprint(repr(sys.stdin.readline()), repr(sys.stdin.buffer.readline()), sys.stdin.read(3))"
    assert session.do(code).stdout == "'answer 1\\n' b'answer 2\\n' ans\n"
    assert session.do("print(next(sys.stdin))").stdout == "wer 3\n\n"


def test_unusual_prompts_are_shown(session: PythonRuntime, asked: list[tuple[str, bool]]) -> None:
    session.do("input(5); input('\\ud800 🎉'); input()")
    assert asked == [("5", False), ("\ufffd 🎉", False), ("", False)]


def test_output_before_a_question_comes_first(session: PythonRuntime, asked: list[tuple[str, bool]]) -> None:
    ran = session.do("import os\nprint('part', end='')\nos.system('echo child')\ninput('?')\nprint('after')")
    kinds = [chunk["type"] for chunk in ran.chunks if chunk.get("format") != "active_line"]
    assert kinds[-2:] == ["input_request", "console"]
    assert "child" in ran.stdout


@pytest.mark.parametrize("code", ["input('?')", "import getpass; getpass.getpass()", "import sys; next(sys.stdin)"])
def test_unattended_input_is_the_end_of_file(session: PythonRuntime, code: str) -> None:
    ran = session.do(code)
    assert "EOFError" in ran.stderr or "StopIteration" in ran.stderr
    assert ran.ended == "error"


def test_unattended_stdin_is_empty(session: PythonRuntime) -> None:
    code = "import sys\nprint([sys.stdin.read(), sys.stdin.readline(), list(sys.stdin)])"
    assert session.do(code).stdout == "['', '', []]\n"


def test_child_processes_and_threads_get_the_end_of_file(session: PythonRuntime) -> None:
    assert session.do("import os\nprint(os.system('read x'))").stdout == "256\n"
    code = """
import threading
def ask():
    try: input("?")
    except EOFError as error: print(type(error).__name__)
thread = threading.Thread(target=ask); thread.start(); thread.join()
"""
    assert session.do(code).stdout == "EOFError\n"


def test_a_declined_question_is_the_end_of_file(session: PythonRuntime) -> None:
    session.context.on_input = lambda prompt, password: None
    try:
        assert "EOFError" in session.do("input('?')").stderr
    finally:
        session.context.on_input = None


def test_an_interrupt_during_a_question_ends_the_block(session: PythonRuntime) -> None:
    def interrupted(prompt: str, password: bool) -> str:
        session.stop()
        return "too late"

    session.context.on_input = interrupted
    try:
        ran = session.do("while True:\n    input('?')")
        assert ran.ended == "interrupted"
    finally:
        session.context.on_input = None
    assert session.do("print('next')").text == "next\n"
