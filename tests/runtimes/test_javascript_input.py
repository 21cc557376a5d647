"""JavaScript input: questions go to the user and answers come back; an unattended session gets the end of input."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from javascript_runtimes import JavaScriptRuntime, session

__all__ = ["session"]
pytestmark = pytest.mark.needs("node")

CALLBACKS = "const rl = require('readline').createInterface({ input: process.stdin, output: process.stdout })\n"
PROMISES = "const rl = require('readline/promises').createInterface({ input: process.stdin, output: process.stdout })\n"


@pytest.fixture
def asked(session: JavaScriptRuntime) -> Iterator[list[str]]:
    """The questions; the first three are answered with their number, later ones not at all."""
    questions: list[str] = []

    def answer(prompt: str, password: bool) -> str | None:
        questions.append(prompt)
        return f"answer {len(questions)}" if len(questions) <= 3 else None

    session.context.on_input = answer
    yield questions
    session.context.on_input = None


def test_questions_with_a_callback_are_answered(session: JavaScriptRuntime, asked: list[str]) -> None:
    ran = session.do(CALLBACKS + "rl.question('Name? ', (name) => { console.log('hello', name); rl.close() })")
    assert asked == ["Name? "]
    assert (ran.stdout, ran.ended) == ("hello answer 1\n", "done")
    (request,) = ran.of_type("input_request")
    assert (request["content"], request["password"]) == ("Name? ", False)


def test_an_unclosed_readline_asks_no_more_questions(session: JavaScriptRuntime, asked: list[str]) -> None:
    ran = session.do(CALLBACKS + "rl.question('Name? ', (name) => console.log('hello', name))")
    assert asked == ["Name? "]
    assert ran.ended == "done"


def test_questions_with_promises(session: JavaScriptRuntime, asked: list[str]) -> None:
    ran = session.do(PROMISES + "console.log([await rl.question('A? '), await rl.question('B? ')]); rl.close()")
    assert asked == ["A? ", "B? "]
    assert ran.stdout == "[ 'answer 1', 'answer 2' ]\n"


def test_promisified_questions_are_answered(session: JavaScriptRuntime, asked: list[str]) -> None:
    ran = session.do(CALLBACKS + "const ask = require('util').promisify(rl.question).bind(rl); await ask('P? ')")
    assert asked == ["P? "]
    assert ran.stdout == "'answer 1'\n"


def test_delayed_questions_are_answered(session: JavaScriptRuntime, asked: list[str]) -> None:
    wait = "await new Promise((done) => setTimeout(done, 20))\n"
    ran = session.do(PROMISES + wait + "const late = await rl.question('Late? '); rl.close(); late")
    assert asked == ["Late? "]
    assert ran.stdout == "'answer 1'\n"


@pytest.mark.parametrize(
    "code",
    [
        CALLBACKS + "for await (const line of rl) console.log('got', line)",
        CALLBACKS + "rl.on('line', (line) => console.log('got', line)); undefined",
        PROMISES + "rl.on('line', (line) => console.log('got', line)); undefined",
        "for await (const data of process.stdin) console.log('got', String(data).trim())",
        "process.stdin.on('data', (data) => console.log('got', String(data).trim())); undefined",
        "process.stdin.setEncoding('utf8').on('readable', () => { for (let text; (text = process.stdin.read()); ) "
        "for (const line of text.trim().split('\\n')) console.log('got', line) }); undefined",
    ],
    ids=[
        "readline loop",
        "readline events",
        "readline/promises events",
        "stdin loop",
        "stdin data events",
        "stdin readable events",
    ],
)
def test_lines_are_read_until_the_end_of_input(session: JavaScriptRuntime, asked: list[str], code: str) -> None:
    ran = session.do(code)
    assert (ran.stdout, ran.ended) == ("got answer 1\ngot answer 2\ngot answer 3\n", "done")
    assert len(asked) == 4


def test_a_paused_stdin_asks_only_once(session: JavaScriptRuntime, asked: list[str]) -> None:
    ran = session.do(
        "process.stdin.once('data', (data) => { console.log(`<${data}>`); process.stdin.pause() }); undefined"
    )
    assert ran.stdout == "<answer 1\n>\n"
    assert len(asked) == 1


def test_inspecting_stdin_asks_nothing(session: JavaScriptRuntime, asked: list[str]) -> None:
    assert session.do("[process.stdin.isTTY, process.stdin.fd]").stdout == "[ undefined, 0 ]\n"
    assert asked == []


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (PROMISES + "await rl.question('?')", "No answer"),
        (
            CALLBACKS + "rl.on('close', () => console.log('closed')).question('?', console.log); undefined",
            "closed\n",
        ),
        (CALLBACKS + "let n = 0; for await (const line of rl) n++; console.log('lines', n)", "lines 0\n"),
        (
            "process.stdin.on('end', () => console.log('end')).resume().on('data', () => {}); undefined",
            "end\n",
        ),
        ("fs.readFileSync(0, 'utf8').length", "0\n"),
        ("child_process.execSync('cat; echo cat', { stdio: 'inherit' }); undefined", "cat\n"),
    ],
    ids=["question with promises", "question with callback", "readline loop", "stdin", "readFileSync", "child process"],
)
def test_unattended_sessions_get_the_end_of_input(session: JavaScriptRuntime, code: str, shown: str) -> None:
    ran = session.do(code)
    assert shown in ran.text
    assert ran.ended in ("done", "error")
    assert session.do("1").text == "1\n"


def test_an_interrupt_during_a_question_ends_the_block(session: JavaScriptRuntime) -> None:
    def interrupted(prompt: str, password: bool) -> str:
        session.stop()
        return "too late"

    session.context.on_input = interrupted
    try:
        assert session.do(PROMISES + "for (;;) await rl.question('?')").ended == "interrupted"
    finally:
        session.context.on_input = None
    assert session.do("console.log('next')").text == "next\n"


def test_unusual_prompts_are_shown(session: JavaScriptRuntime, asked: list[str]) -> None:
    session.do(PROMISES + r"await rl.question('\ud800 🎉\n'); await rl.question('')")
    assert asked == ["\ufffd 🎉\n", ""]
