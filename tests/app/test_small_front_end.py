"""A chat with approval, a figure, `input()`, undo, resume and fork, through events and answers alone."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.small_front_end import FrontEnd
from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.app import result_of
from interpreter.session import ANSWER, APPROVE, KEEP, REFUSE, Answer, Question
from model_server import ModelServer, text, tool_call

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("no_strays")

FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
GREETING = "name = input('Your name? ')\nopen('greeting.txt', 'w').write(f'Hello {name}')\nprint(name)"
NEW_PROCESS = """
import sys
from app.small_front_end import FrontEnd
from interpreter import OpenInterpreter
from interpreter.session import APPROVE, Answer

interpreter = OpenInterpreter()
interpreter.llm.api_base, interpreter.llm.api_key = sys.argv[1], "key"
front_end = FrontEnd(interpreter, lambda question: Answer(APPROVE))
front_end.resume(sys.argv[2])
print("blocks run again:", front_end.rerun())
front_end.chat("And now?")
front_end.run("python", "print(number + 1)")
front_end.close()
interpreter.computer.terminate()
print(front_end.screen)
print("no terminal:", not any(name.startswith("interpreter.frontends.terminal") for name in sys.modules))
"""


class Person:
    """Approves everything and types a name, unless `answers` says otherwise."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, Answer] = {"text": Answer(ANSWER, "Ada")}

    def decide(self, question: Question) -> Answer:
        self.asked.append(question.kind)
        return self.answers.get(question.kind, Answer(APPROVE))


@pytest.fixture
def person() -> Person:
    return Person()


Opening = Callable[..., tuple[FrontEnd, OpenInterpreter, ModelServer]]


@pytest.fixture
def opening(chatting: Chatting, person: Person, tmp_path: Path) -> Iterator[Opening]:
    """`opening(reply, ...)`: a front end whose model gives these replies, its interpreter and its server."""
    opened: list[FrontEnd] = []
    work = tmp_path / "work"
    work.mkdir()

    def start(*replies: Any) -> tuple[FrontEnd, OpenInterpreter, ModelServer]:
        interpreter, server = chatting(*replies, workspace=str(work))
        opened.append(FrontEnd(interpreter, person.decide))
        return opened[-1], interpreter, server

    yield start
    for front_end in opened:
        front_end.close()
        for each in front_end.forks.all:
            each.computer.terminate()
            each.journal.close()


def said(front_end: FrontEnd, kind: str) -> str:
    return "".join(content for shown, content in front_end.screen if shown == kind and isinstance(content, str))


def test_the_front_end_has_at_most_60_lines_and_no_terminal() -> None:
    source = (Path(__file__).parent / "small_front_end.py").read_text()
    assert len(source.splitlines()) <= 60
    assert "interpreter.frontends.terminal" not in source and "print" not in source and "import sys" not in source


def test_a_chat_with_approval_a_figure_and_input(opening: Opening, person: Person) -> None:
    replies = [tool_call("python", FIGURE), tool_call("python", GREETING), text("Hello, Ada.")]
    front_end, interpreter, _ = opening(*replies)
    front_end.chat("Draw a line, and greet me.")
    front_end.close()
    assert person.asked == ["block", "block", "text"]
    (figure,) = [content for kind, content in front_end.screen if kind == "image" and isinstance(content, str)]
    assert base64.b64decode(figure).startswith(b"\x89PNG")
    assert "Ada\n" in said(front_end, "console")
    assert said(front_end, "message") == "Draw a line, and greet me.Hello, Ada."
    assert Path(interpreter.workspace, "greeting.txt").read_text() == "Hello Ada"
    assert interpreter.messages[-1]["content"] == "Hello, Ada."


def test_a_refusal_with_a_reason_goes_to_the_model(opening: Opening, person: Person) -> None:
    front_end, interpreter, server = opening(tool_call("python", GREETING), text("As you like."))
    person.answers["block"] = Answer(REFUSE, "Use English.")
    front_end.chat("Greet me.")
    assert "Use English." in str(server.requests[-1].messages)
    assert not Path(interpreter.workspace, "greeting.txt").exists()


@pytest.mark.parametrize("answer", [APPROVE, REFUSE])
def test_undo_asks_before_it_changes_files(opening: Opening, person: Person, answer: str) -> None:
    front_end, interpreter, _ = opening(tool_call("python", GREETING), text("Done."))
    front_end.chat("Greet me.")
    person.answers["confirm"] = Answer(answer)
    undone = front_end.undo()
    front_end.close()
    greeting, agreed = Path(interpreter.workspace, "greeting.txt"), answer == APPROVE
    assert person.asked == ["block", "text", "confirm"]
    assert (undone is not None, greeting.exists(), bool(interpreter.messages)) == (agreed, not agreed, not agreed)
    assert [kind for kind, _ in front_end.screen].count("undone") == agreed


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        (Answer(KEEP), ("mine", "mine")),
        (Answer(APPROVE), ("old", "old")),
        (Answer(APPROVE, paths=("a",)), ("old", "mine")),
        (Answer(REFUSE), ("mine", "mine")),
    ],
    ids=["keep both", "restore both", "restore one", "refuse"],
)
def test_undo_asks_about_files_changed_outside_the_session(
    opening: Opening, person: Person, answer: Answer, left: tuple[str, str]
) -> None:
    front_end, interpreter, _ = opening()
    work = Path(interpreter.workspace)
    for name in "abc":
        (work / name).write_text("old")
    front_end.run("python", "for name in 'abc': _ = open(name, 'w').write('new')")
    for name in "ab":
        (work / name).write_text("mine")
    person.answers["overwrite"] = answer
    undone = front_end.undo()
    assert person.asked == ["confirm", "overwrite"]
    assert ((work / "a").read_text(), (work / "b").read_text()) == left
    assert (work / "c").read_text() == ("new" if answer.choice == REFUSE else "old")
    assert (undone is None) == (answer.choice == REFUSE)


def test_keeping_a_fork_merges_its_files(opening: Opening, person: Person) -> None:
    replies = [tool_call("python", "number = 1"), text("One."), tool_call("python", GREETING), text("Greeted.")]
    front_end, first, _ = opening(*replies)
    front_end.chat("Set it.")
    front_end.fork()
    fork = front_end.forks.current
    front_end.chat("Greet me.")
    assert fork is not first and len(fork.messages) > len(first.messages)
    assert not Path(first.workspace, "greeting.txt").exists()
    front_end.forks.switch()
    assert front_end.forks.current is first
    front_end.forks.switch(2)
    merged = result_of(front_end.forks.keep())
    assert merged is not None and merged.paths == ["greeting.txt"]
    assert person.asked == ["block", "block", "text", "confirm"]
    assert Path(first.workspace, "greeting.txt").read_text() == "Hello Ada"
    assert front_end.forks.all == [fork] and front_end.run("python", "print(number, name)") == "done"
    front_end.close()
    assert "1 Ada\n" in said(front_end, "console")


def test_a_conversation_is_resumed_in_a_new_process(opening: Opening) -> None:
    front_end, interpreter, _ = opening(tool_call("python", "number = 41"), text("It is 41."))
    front_end.chat("Choose a number.")
    name = interpreter.journal.id
    assert name is not None
    interpreter.journal.close()
    with ModelServer([text("Still 41.")]) as server:
        path = os.pathsep.join([os.environ["PYTHONPATH"], str(Path(__file__).parent.parent)])
        command = [sys.executable, "-c", NEW_PROCESS, server.base_url, name]
        ran = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=120
        )
        assert not ran.stderr, ran.stderr
        assert "Choose a number." in str(server.requests[0].messages)
    assert "blocks run again: 1" in ran.stdout and "Still 41." in ran.stdout and "'42\\n'" in ran.stdout
    assert "no terminal: True" in ran.stdout
