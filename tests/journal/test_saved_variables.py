"""Variables of an earlier run: saved when idle and on exit, restored with one answer, never loaded by the host."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.app import conversations, result_of
from interpreter.errors import NotRestorableError
from interpreter.frontends.start import end
from interpreter.session import REFUSE, Answer, Question
from interpreter.session.journal import SavedSession, listed
from model_server import ModelServer, text, tool_call
from sampling import some
from terminal.person import someone
from waiting import until

pytestmark = pytest.mark.usefixtures("no_strays")

QUESTION = "Run? [y]es  [n]o"
RESTORE = "Restore them?"
BUILD = """\
import math, collections
Point = collections.namedtuple("Point", "x y")
def area(r):
    return math.pi * r * r
numbers = [1, 2, 3]
same = numbers
log = open("log.txt", "w")
print("built")
"""
USE = "same.append(4); print(numbers, round(area(1), 2), Point(1, 2), 'log' in globals())"


@pytest.fixture
def root(home: Path) -> Path:
    return home / ".config" / "open-interpreter" / "conversations"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


class Runs:
    """One conversation in several runs."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.interpreter = self._make()

    def _make(self, **settings: object) -> OpenInterpreter:
        made = OpenInterpreter(workspace=str(self.workspace), auto_run=True, **settings)  # type: ignore[arg-type]
        made.computer.context.cwd = str(self.workspace)
        return made

    def chat(self, *codes: tuple[str, str], seconds: float = 20) -> str:
        """Have the model run blocks, and save the variables. Returns the conversation's id."""
        made = self.interpreter
        with ModelServer([*(tool_call(*code) for code in codes), text("Done.")]) as server:
            made.llm.api_base, made.llm.api_key = server.base_url, "key"
            made.chat("Go", display=False)
        made.save_variables_now(seconds)
        assert made.journal.id is not None
        return made.journal.id

    def again(self, **settings: object) -> OpenInterpreter:
        """The conversation's next run."""
        name = self.interpreter.journal.id
        self.close()
        self.interpreter = self._make(**settings)
        assert name is not None
        self.interpreter.journal.resume(name)
        return self.interpreter

    def output(self, code: str, language: str = "python") -> str:
        return "".join(str(each["content"]) for each in self.interpreter.computer.run(language, code)).strip()

    def close(self) -> None:
        self.interpreter.computer.terminate()
        self.interpreter.journal.close()


@pytest.fixture
def runs(workspace: Path, home: Path) -> Iterator[Runs]:
    made = Runs(workspace)
    yield made
    made.close()


def saved_variables(runs: Runs) -> dict[str, dict[str, object]]:
    session = runs.interpreter.journal.read()
    assert session is not None
    return session.variables


# -- at the terminal ---------------------------------------------------------------------------------------------------


def test_one_answer_restores_the_saved_variables(root: Path, workspace: Path) -> None:
    replies = [tool_call("python", BUILD), text("Built."), tool_call("python", USE), text("Used.")]
    with ModelServer(replies) as server:
        with someone("--workspace", str(workspace), server=server) as person:
            person.says("Build")
            person.answers(QUESTION, "y")
            person.sees("Built.")
            assert person.leaves() == 0
        with someone("--continue", "--workspace", str(workspace), server=server) as person:
            person.sees("Variables saved just now: math, collections, Point, area, numbers, same.")
            person.sees("Not saved: log (_io.TextIOWrapper).")
            person.answers("[r]un the block again", "y")
            person.sees("Restored.")
            person.says("Use")
            person.answers(QUESTION, "y")
            person.sees("[1, 2, 3, 4] 3.14 Point(x=1, y=2) False")
            person.sees("Used.")
            assert person.leaves() == 0
    [note] = [str(m["content"]) for m in server.requests[-1].messages if "was resumed on" in str(m["content"])]
    assert "restored the saved variables" in note and "Not restored: log (_io.TextIOWrapper)" in note
    [row] = listed(root)
    assert not [path for path in workspace.rglob("*") if path.name != "log.txt"]
    for path in (row.path, row.path / "variables", *(row.path / "variables").iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_a_crash_loses_only_changes_after_the_last_idle_save(root: Path) -> None:
    replies = [tool_call("python", "kept = 41"), text("Kept."), tool_call("python", "print(kept + 1)"), text("There.")]
    with ModelServer(replies) as server:
        with someone("-y", server=server) as person:
            person.says("Keep")
            person.sees("Kept.")
            person.at_prompt()
            journal = listed(root)[0].path / "journal.jsonl"
            until(lambda: '"event":"variables"' in journal.read_text(), "an idle save")
            person.signals(signal.SIGKILL)
            assert person.ends() == -signal.SIGKILL
        with someone("--continue", "-y", server=server) as person:  # -y restores without a question
            person.sees("Restored.")
            person.says("Is it there?")
            person.sees("42")
            person.sees("There.")
            assert person.leaves() == 0


@pytest.mark.full
def test_one_answer_runs_all_blocks_again(root: Path) -> None:
    replies = [
        *(tool_call("python", "a = 20"), tool_call("python", "b = a + 1\nprint('b is', b)"), text("Made.")),
        *(tool_call("python", "print(a + b)"), text("Added.")),
    ]
    with ModelServer(replies) as server:
        with someone("-y", "--no_save_variables", server=server) as person:
            person.says("Make")
            person.sees("Made.")
            assert person.leaves() == 0
        assert not (listed(root)[0].path / "variables").exists()
        with someone("--continue", server=server) as person:
            person.answers("Run the 2 blocks that built them again? [y]es  [n]o", "maybe")
            person.answers("Run the 2 blocks that built them again? [y]es  [n]o", "y", times=2)
            person.sees("2 of 2 blocks were run again.")
            assert QUESTION not in person.screen
            person.says("Add")
            person.answers(QUESTION, "y")
            person.sees("41")
            person.sees("Added.")
            assert person.leaves() == 0


@pytest.mark.full
def test_declining_leaves_the_saved_variables_untouched(root: Path) -> None:
    with ModelServer([tool_call("python", "y = 1"), text("Done."), text("I see."), text("No.")]) as server:
        with someone("-y", server=server) as person:
            person.says("Make y")
            person.sees("Done.")
            assert person.leaves() == 0
        with someone("--continue", server=server) as person:
            person.types("y\rearly words")  # typed before the question, so it's not an answer
            person.sees(RESTORE)
            person.types("n\r")
            person.sees("The earlier variables are gone. F5")
            person.sees("> y")
            person.sees("I see.")
            person.sees("> early words")
            person.types("\x15")
            person.says("Is y there?")
            person.sees("No.")
            assert person.leaves() == 0
    [note] = [str(m["content"]) for m in server.requests[-1].messages if "was resumed on" in str(m["content"])]
    assert "variables, functions and imports are gone" in note
    assert any("was resumed on" in str(m["content"]) for m in SavedSession.open(listed(root)[0].path).messages)
    assert SavedSession.open(listed(root)[0].path).variables["Python"]["names"] == ["y"]


# -- from Python -------------------------------------------------------------------------------------------------------


def test_the_library_saves_and_restores_variables(runs: Runs) -> None:
    os.environ["OUTSIDE_SECRET"] = "do-not-store-me"
    (runs.workspace / "helper.py").write_text("class Tool:\n    name = 'saw'\n")
    runs.chat(
        (
            "python",
            "import os, helper\ntool = helper.Tool()\nos.mkdir('deep'); os.chdir('deep')\nclass Thing:\n    size = 3\nthing = Thing()",
        ),
        ("shell", "colour='dark red'; export SHARED=yes; greet() { echo \"hello $1\"; }; list=(a b)"),
        ("javascript", "let lost = 1"),
    )
    stored = b"".join(path.read_bytes() for path in Path(str(runs.interpreter.journal.path), "variables").iterdir())
    assert b"do-not-store-me" not in stored and b"dark red" in stored
    outcomes = runs.again().restore_variables()
    assert set(outcomes) == {"Python", "Shell"}  # JavaScript's variables are not saved
    assert runs.output("print(thing.size, tool.name, os.path.basename(os.getcwd()))") == "3 saw deep"
    assert runs.output('greet "$colour ${list[1]}"; pwd', "shell").split("\n")[0] == "hello dark red b"
    assert runs.output("print(os.environ['SHARED'])") == "yes"


def test_unchanged_variables_are_not_saved_again(runs: Runs) -> None:
    runs.chat(("python", "n = 1"))
    [first] = Path(str(runs.interpreter.journal.path), "variables").iterdir()
    runs.interpreter.save_variables_now()
    journal = Path(str(runs.interpreter.journal.path), "journal.jsonl")
    assert journal.read_text().count('"event":"variables"') == 1
    runs.output("n = 2")
    runs.interpreter.save_variables_now()
    [second] = first.parent.iterdir()
    assert second != first
    runs.interpreter.journal.branch("another")
    runs.again().restore_variables()
    assert runs.output("print(n)") == "2"


@pytest.mark.parametrize("change", some(1, ["changed", "link", "gone"]))
def test_a_tampered_file_is_not_loaded(runs: Runs, tmp_path: Path, change: str) -> None:
    runs.chat(("python", "n = 1"))
    [file] = Path(str(runs.interpreter.journal.path), "variables").iterdir()
    trap = tmp_path / "trap"
    evil = b"cos\nsystem\n(S'touch %s'\ntR." % os.fsencode(trap)
    interpreter = runs.again()
    if change == "changed":
        file.write_bytes(evil)
    else:
        content = file.read_bytes()
        file.unlink()
        if change == "link":
            (tmp_path / "elsewhere").write_bytes(content)
            file.symlink_to(tmp_path / "elsewhere")
    outcomes = interpreter.restore_variables()
    assert isinstance(outcomes["Python"], NotRestorableError)
    assert not trap.exists()
    assert "NameError" in runs.output("print(n)")


def test_variables_that_are_too_large_or_slow_are_skipped_and_listed(runs: Runs) -> None:
    slow = "class Slow:\n    def __reduce__(self):\n        import time; time.sleep(600)\nslow = Slow()\n"
    runs.interpreter.save_variables_bytes = 10_000
    runs.chat(("python", f"small = 1\nlarge = bytes(20_000)\n{slow}after = 2"), seconds=2)
    row = saved_variables(runs)["Python"]
    assert row["names"] == ["small", "Slow"]
    assert row["lost"] == ["large (bytes, too large)", "slow (Slow, no time left)", "after (int, no time left)"]
    runs.again().restore_variables()
    assert runs.output("print(small)") == "1"


def test_an_incomplete_save_does_not_replace_a_complete_one(runs: Runs) -> None:
    runs.chat(("python", "a = 1\nb = 2"))
    slow = "class Slow:\n    def __reduce__(self):\n        import time; time.sleep(600)\n"
    runs.output(f"a = 10\n{slow}slow = Slow()")
    runs.interpreter.save_variables_now(1)
    assert saved_variables(runs)["Python"]["names"] == ["a", "b"]
    runs.again().restore_variables()
    assert runs.output("print(a + b)") == "3"


def test_variables_are_saved_up_to_the_size_limit(runs: Runs) -> None:
    runs.interpreter.save_variables_bytes = 100_000
    runs.chat(("python", "first = bytes(90_000)\nsecond = bytes(9_900)"))
    row = saved_variables(runs)["Python"]
    assert (row["names"], row["lost"]) == (["first"], ["second (bytes, too large)"])


def test_a_variable_that_crashes_when_saved_loses_only_itself(runs: Runs) -> None:
    bad = "import os\nclass Bad:\n    def __reduce__(self):\n        os._exit(3)\nbad = Bad()"
    runs.chat(("python", f"before = 1\n{bad}\nafter = 2"))
    assert saved_variables(runs)["Python"]["lost"] == ["bad (Bad)"]
    assert runs.output("print(before + after)") == "3"


def test_a_variable_that_fails_to_load_does_not_end_the_session(runs: Runs) -> None:
    bad = "class Bad:\n    def __reduce__(self):\n        return no, ()\nbad = Bad()"
    runs.chat(("python", f"def no():\n    raise ValueError('not here')\n{bad}"))
    outcomes = runs.again().restore_variables()
    assert "ValueError: not here" in str(outcomes["Python"])
    assert runs.output("print('alive')") == "alive"


@contextmanager
def ctrl_c_when_exists(path: Path) -> Iterator[None]:
    """Press Ctrl-C as soon as a file exists."""

    def press() -> None:
        until(path.exists, path.name)
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    yield
    pressing.join()


@pytest.mark.full
def test_ctrl_c_stops_loading(runs: Runs) -> None:
    wait = "open('loading', 'w').close(); import time; time.sleep(600)"
    runs.chat(("python", f"class Slow:\n    def __reduce__(self):\n        return exec, ({wait!r},)\nslow = Slow()"))
    interpreter = runs.again()
    with ctrl_c_when_exists(runs.workspace / "loading"), pytest.raises(KeyboardInterrupt):
        interpreter.restore_variables()
    assert runs.output("print('alive')") == "alive"  # the session was not lost


def test_ctrl_c_stops_saving_on_exit(runs: Runs) -> None:
    wait = "open('saving', 'w').close(); import time; time.sleep(600)"
    runs.chat(("python", f"class Slow:\n    def __reduce__(self):\n        {wait}\nslow = Slow()"), seconds=0.1)
    (runs.workspace / "saving").unlink(missing_ok=True)
    runs.output("n = 1")
    runs.interpreter.save_variables_exit_seconds = 300
    with ctrl_c_when_exists(runs.workspace / "saving"):
        end(runs.interpreter)
    assert runs.interpreter.computer.runtimes.runtime("python").runtime is None


def test_nothing_is_loaded_without_an_approval(runs: Runs) -> None:
    runs.chat(("python", "n = 1"))
    interpreter = runs.again()
    interpreter.auto_run = False
    assert result_of(conversations.restore_variables(interpreter)) is None
    asked: list[Question] = []

    def decide(question: Question) -> Answer:
        asked.append(question)
        return Answer(REFUSE)

    with interpreter.session.questions.answerable(["choose"], decide):
        assert result_of(conversations.restore_variables(interpreter)) is None
    offer = asked[0].subject.details
    assert offer.names == ["n"] and offer.blocks == 1
    assert "NameError" in runs.output("print(n)")


# -- sandboxes ---------------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_sandboxed_variables_load_only_in_an_equally_strict_sandbox(workspace: Path, home: Path) -> None:
    runs = Runs(workspace)
    try:
        runs.interpreter.sandbox = "workspace"
        runs.chat(("python", "n = 1"))
        sandboxed = SavedSession.open(str(runs.interpreter.journal.path)).variables["Python"]["sandbox"]
        assert sandboxed["kind"] == "workspace"
        outcomes = runs.again().restore_variables()
        assert "come from a sandbox" in str(outcomes["Python"]) and isinstance(outcomes["Python"], NotRestorableError)
        outcomes = runs.again(sandbox="workspace", sandbox_hosts=["example.org"]).restore_variables()
        assert isinstance(outcomes["Python"], NotRestorableError)
        for kind in ("read-only", "workspace"):
            assert not isinstance(runs.again(sandbox=kind).restore_variables()["Python"], NotRestorableError)
            assert runs.output("print(n)") == "1"
    finally:
        runs.close()


def test_sandboxed_variables_do_not_load_in_a_runtime_outside_the_sandbox(workspace: Path, home: Path) -> None:
    runs = Runs(workspace)
    try:
        runs.interpreter.sandbox = "workspace"
        code = f"open({str(home / 'escaped')!r}, 'w')"
        evil = f"class Evil:\n    def __reduce__(self):\n        return exec, ({code!r},)\nevil = Evil()"
        runs.chat(("python", evil), ("shell", "colour=red"))
        name = runs.interpreter.journal.id
        assert name is not None
        runs.close()
        runs.interpreter = Runs(workspace).interpreter
        runs.output("outside = 1")
        runs.output("outside=1", "shell")
        runs.interpreter.sandbox = "workspace"
        runs.interpreter.journal.resume(name)
        outcomes = runs.interpreter.restore_variables()
        assert not isinstance(outcomes["Python"], NotRestorableError) and not (home / "escaped").exists()
        assert runs.output('echo "$colour $outside"', "shell") == "red"
    finally:
        runs.close()
