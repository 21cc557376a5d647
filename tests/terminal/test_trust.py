"""When code may run: chosen at the first start by arrow keys, remembered, and changed in the chat."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.app.trust import NO_SANDBOX, recall, remember
from interpreter.errors import SandboxUnavailableError
from interpreter.frontends.terminal.approval import GRANT_QUESTION, QUESTION
from interpreter.sandbox.containment import check_available
from model_server import ModelServer, text, tool_call
from terminal.person import ENTER, PROGRAM, Person, someone

DOWN, ESCAPE, SHIFT_TAB = "\x1b[B", "\x1b", "\x1b[Z"
KEY = {"GROQ_API_KEY": "gsk_made-up"}
TRUST = "When may code run?"
IN_SANDBOX = "auto-in-sandbox, sandbox workspace"


@pytest.fixture(autouse=True)
def no_data_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERPRETER_DATA_STACK", ",")  # they are offered in test_data_stack.py


@pytest.fixture
def sandbox_works() -> None:
    try:
        check_available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def groq(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A provider, at an address of the environment."""
    with ModelServer([]) as server:
        monkeypatch.setenv("GROQ_API_BASE", server.base_url)
        yield server


def chosen() -> str:
    return recall(OpenInterpreter())


@pytest.mark.usefixtures("sandbox_works")
def test_in_the_sandbox_code_runs_freely_and_asks_for_what_leaves_it(groq: ModelServer, home: Path) -> None:
    (home / "secret").write_text("hidden words")
    read = f"print(open({str(home / 'secret')!r}).read())"
    groq.replies[:] = [
        tool_call("python", "open('made.txt', 'w').write('x'); print('with' + 'out a question')"),
        tool_call("python", read),
        tool_call("python", f"# needs: read {home / 'secret'}\n{read}"),
        text("Done."),
    ]
    with someone(env=KEY) as person:
        person.sees(TRUST)
        person.sees("> Ask before each block")
        person.types(DOWN)
        person.sees("> Run freely inside a sandbox of this folder")
        person.types(ENTER)
        person.sees("Code in a sandbox runs without asking; I'll ask before anything leaves it.")
        person.says("Go.")
        person.sees("without a question")
        person.sees("wants: to read")
        assert "hidden words" not in person.screen
        assert QUESTION not in person.screen
        person.answers(GRANT_QUESTION, "y")
        person.sees("hidden words")
        person.sees("Done.")
        person.sees(IN_SANDBOX)
        person.says("%undo")
        person.answers("Change these files?", "y")
        assert person.leaves() == 0
    assert not Path("made.txt").exists()
    assert chosen() == "auto-in-sandbox"


@pytest.mark.usefixtures("sandbox_works")
def test_in_the_sandbox_a_missing_package_is_one_question(groq: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(OpenInterpreter(), "auto-in-sandbox")
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.example:1/simple")
    groq.replies[:] = [tool_call("python", "import squarify"), text("I see.")]
    with someone(env=KEY) as person:
        person.says("Go.")
        person.sees("During the installation, the sandbox can reach index.example:1.")
        person.answers("Install squarify and run the block? (y/n)", "n")
        person.sees("The user doesn't want to install squarify.")
        person.sees("I see.")
        assert "Blocked by the sandbox" not in person.raw
        assert person.leaves() == 0


@pytest.mark.usefixtures("sandbox_works")
def test_the_choice_is_asked_once_and_changed_in_the_chat(groq: ModelServer) -> None:
    remember(OpenInterpreter(), "auto-in-sandbox")
    with someone(env=KEY) as person:
        person.at_prompt()
        person.sees(IN_SANDBOX)
        assert TRUST not in person.raw
        person.types(SHIFT_TAB)
        person.sees("asks first ·")
        person.says("%mode auto-in-sandbox")
        person.sees("Mode auto-in-sandbox")
        person.sees("starts a new session")
        person.sees(IN_SANDBOX)
        person.says("%mode plan")
        person.sees("plan, read-only sandbox")
        person.says("%sandbox read-only")
        person.says("%mode auto-in-sandbox")
        person.sees("auto-in-sandbox, sandbox read-only")
        person.says("%mode ask")
        person.sees("asks first, sandbox read-only")  # it wasn't the mode that turned this one on
        assert person.leaves() == 0
    assert chosen() == "auto-in-sandbox"


@pytest.mark.usefixtures("sandbox_works")
@pytest.mark.parametrize("key", [ENTER, ESCAPE])
def test_asking_is_the_first_row_and_what_escape_means(groq: ModelServer, key: str) -> None:
    with someone(env=KEY) as person:
        person.sees(TRUST)
        person.types(key)
        person.sees("I'll ask before running any code.")
        person.at_prompt()
        assert person.leaves() == 0
    assert chosen() == "ask"
    with someone(env=KEY) as person:
        person.at_prompt()
        assert TRUST not in person.raw


@pytest.mark.usefixtures("sandbox_works")
def test_in_a_folder_that_cannot_be_a_sandbox_it_asks_and_says_why(
    groq: ModelServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(OpenInterpreter(), "auto-in-sandbox")
    monkeypatch.chdir(home)
    with someone(env=KEY) as person:
        person.sees("I'll ask before running any code here. The workspace")
        person.sees("contains your home folder")
        person.at_prompt()
        person.sees("asks first ·")
        person.types(SHIFT_TAB)
        person.sees("plan, read-only sandbox")
        person.types(SHIFT_TAB)
        person.sees("asks first ·")  # and no sandbox
        assert person.leaves() == 0


def test_where_no_sandbox_works_one_sentence_says_how_to_get_it(
    groq: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "import interpreter.sandbox.bubblewrap as b; b.NAMESPACES = ['--no-such-option']\n"
    for is_first in (True, False):
        person = Person([sys.executable, "-c", broken + PROGRAM], env=KEY)
        try:
            person.at_prompt()
            person.sees("asks first ·")
            assert ("To let it run freely, a sandbox has to work:" in person.raw) == is_first
            assert TRUST not in person.raw
            assert person.leaves() == 0
        finally:
            person.close()


@pytest.mark.usefixtures("sandbox_works")
def test_the_question_comes_once_a_sandbox_works(groq: ModelServer) -> None:
    remember(OpenInterpreter(), NO_SANDBOX)
    with someone(env=KEY) as person:
        person.sees(TRUST)


@pytest.mark.usefixtures("sandbox_works")
def test_a_key_for_another_server_asks_too(groq: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_BASE")
    with someone(env={"OPENAI_API_KEY": "sk-made-up", "OPENAI_API_BASE": groq.base_url}) as person:
        person.sees(TRUST)


@pytest.mark.usefixtures("sandbox_works")
@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (["-y"], "auto run"),
        (["--mode", "plan"], "plan, read"),
        (["--sandbox", "read-only"], "asks first, sandbox read-only"),
    ],
)
def test_flags_go_before_the_choice(groq: ModelServer, flags: list[str], shown: str) -> None:
    for mode in ("", "auto-in-sandbox"):
        remember(OpenInterpreter(), mode)
        with someone(*flags, env=KEY) as person:
            person.at_prompt()
            person.sees(shown)
            assert TRUST not in person.raw


def test_one_message_scripts_and_the_library_keep_their_defaults(groq: ModelServer, home: Path) -> None:
    remember(OpenInterpreter(), "auto-in-sandbox")
    assert (OpenInterpreter().mode, OpenInterpreter().sandbox) == (None, "off")
    groq.replies[:] = [tool_call("python", "print(1)"), tool_call("python", "print(2)")]
    with someone("Go.", env=KEY) as person:
        person.answers(QUESTION, "n")
        person.ends()
    import os

    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, input="Go.\n", capture_output=True, text=True, env={**os.environ, **KEY}, timeout=60)
    assert "code needs approval" in done.stderr
