"""computer.skills: what has worked is kept, tried out before, found again, and run in the live session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api.skills import Skills, normalised, of_code
from interpreter.errors import ComputerError, SandboxUnavailableError
from sampling import some

ADD = 'def add_up(a, b=2):\n    "The sum of two numbers."\n    return a + b\n'
SKILL_MD = """---
name: fill-forms
description: How PDF forms are filled in.
---
# Forms
Use pypdf.
"""


class At:
    """An interpreter, and what its Python says."""

    def __init__(self, **settings: Any) -> None:
        self.interpreter = OpenInterpreter(**settings)
        self.skills: Skills = self.interpreter.computer.skills

    def do(self, code: str) -> str:
        return "".join(str(each["content"]) for each in self.interpreter.computer.run("python", code)).strip()


@pytest.fixture
def at(no_strays: None) -> Iterator[At]:
    made = At()
    yield made
    made.interpreter.computer.terminate()


def has_skill(folder: Path, text: str = SKILL_MD) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)


# -- keeping ---------------------------------------------------------------------------------------------------------


def test_code_that_passes_its_test_is_kept(at: At, home: Path) -> None:
    kept = at.skills.save("Add up", ADD, test="assert add_up(1) == 3", description="Adds.")
    file = home / ".config" / "open-interpreter" / "skills" / "add_up.py"
    assert kept == {"name": "add_up", "path": str(file), "tested": True}
    assert file.read_text() == f'"""Adds."""\n\n{ADD}'
    assert at.skills.list() == ["add_up()"]


@pytest.mark.parametrize(
    ("code", "test", "reason"),
    some(
        2,
        [
            ("def f(): return df.sum()", "f()", "NameError: name 'df' is not defined"),
            ("import nothing_like_it", None, "ModuleNotFoundError"),
            ("def f(): return 1", "assert f() == 2", "AssertionError"),
            ("def f(:", None, "line 1: invalid syntax"),
            ("!ls", None, "line 1: invalid syntax"),
            ("def f(): return 1", "import os; os._exit(3)", "session ended"),
        ],
    ),
)
def test_what_does_not_run_in_a_fresh_session_is_not_kept(at: At, code: str, test: str | None, reason: str) -> None:
    with pytest.raises((ComputerError, ValueError), match=reason):
        at.skills.save("f", code, test)
    assert at.skills.list() == []


def test_a_block_is_kept_as_a_function_that_gives_its_last_value(at: At) -> None:
    block = 'import math\ntext = """one\n  two"""\nif text:\n    size = len(text)\nmath.floor(\n    size / 2)'
    kept = at.skills.new_skill.from_block("Half size", block, description="Half of it.")
    assert kept["tested"] is True
    assert at.do("computer.skills.run('half_size')") == "4"
    with pytest.raises(ComputerError, match="was not saved"):
        at.skills.new_skill.from_block("Wrong", "1 / 0")


COUNT = """import math

def _down(n):
    return n - 1

@staticmethod
def count(n=3):
    "Counts down."
    return [n, *count(_down(n))] if n else []

if __name__ == "__main__":
    print(count(math.floor(2.5)))
"""


@pytest.mark.parametrize("called", ["countdown", "count"])
def test_a_function_is_kept_under_another_name(at: At, called: str) -> None:
    kept = at.skills.save("Countdown", COUNT, test=f"assert {called}(2) == [2, 1]")
    assert kept["name"] == "countdown" and kept["tested"] is True
    assert at.skills.search("countdown")[0]["signature"] == "def countdown(n=3)"
    assert at.skills.search("countdown")[0]["description"] == "Counts down."
    assert at.do("computer.skills.run('countdown')") == "[3, 2, 1]"


def test_from_a_block_a_function_of_another_name_is_called(at: At) -> None:
    with pytest.raises(ComputerError, match="ZeroDivisionError"):
        at.skills.new_skill.from_block("Divide", "def by_zero(): return 1 / 0")
    assert at.skills.new_skill.from_block("Divide", "def by(n): return 1 / n")["tested"] is False
    assert at.do("computer.skills.run('divide', 2)") == "0.5"


def test_of_several_functions_one_has_to_be_called_as_the_skill(at: At) -> None:
    code = "def one(): return 1\ndef two(): return one() + 1\n"
    with pytest.raises(ValueError, match="defines one, two, and none of them is called three"):
        at.skills.save("three", code)
    at.skills.save("two", code)
    assert at.do("computer.skills.run('two')") == "2"


def test_a_skill_is_not_replaced_by_accident(at: At) -> None:
    at.skills.save("f", "def f(): return 1")
    with pytest.raises(ValueError, match="replace=True"):
        at.skills.save("f", "def f(): return 2")
    assert at.skills.save("f", "def f(): return 2", replace=True)["tested"] is False
    assert "return 2" in at.skills.read("f")


def test_the_trial_leaves_the_session_as_it_was(at: At, tmp_path: Path) -> None:
    at.do("x = 1")
    at.skills.save("f", "def f(): pass", test=f"x = 2; import os; os.chdir({str(tmp_path)!r})")
    assert at.do("import os; print(x, os.getcwd() == " + repr(str(tmp_path)) + ")") == "1 False"


def test_saving_can_be_switched_off(at: At) -> None:
    at.interpreter.computer.save_skills = False
    with pytest.raises(PermissionError, match="save_skills"):
        at.skills.save("f", "def f(): pass")


def test_names_become_those_of_functions() -> None:
    assert normalised(" Tidy my Downloads! ") == "tidy_my_downloads"
    assert normalised("2 plots") == "skill_2_plots"
    assert normalised("class") == "skill_class"
    with pytest.raises(ValueError, match="needs a name"):
        normalised("!?")


def test_words_in_a_description_cannot_become_code() -> None:
    source = of_code("f", "1 + 1", 'Ends with "quotes" """ + open("x").read() + "\\')
    names: dict[str, Any] = {}
    exec(source, names)
    assert names["f"]() == 2


# -- steps -----------------------------------------------------------------------------------------------------------


def test_steps_are_kept_and_told_one_by_one(at: At) -> None:
    assert "new_skill.name" in at.do("print(computer.skills.new_skill.create())")
    at.do("new = computer.skills.new_skill; new.name = 'Make tea'; print(new.name)")
    at.do("new.add_step('Boil water.', 'boil(1)'); new.add_step('Pour it.', 'pour()')")
    at.do("new.save()")
    assert at.skills.list() == ["make_tea()"]
    first = at.do("computer.skills.run('make_tea')")
    assert "Step 1 of 2: Boil water." in first and "boil(1)" in first and "make_tea(step=1)" in first
    assert "Step 2 of 2: Pour it." in at.do("computer.skills.run('make_tea', step=1)")
    with pytest.raises(ValueError, match="needs a name and at least one step"):
        at.skills.new_skill.save()


# -- running ---------------------------------------------------------------------------------------------------------


def test_a_skill_runs_in_the_session_with_what_is_there(at: At) -> None:
    at.skills.save("first", "def first(things): return next(iter(things))")
    assert at.do("class Own:\n    pass\nown = Own()\ncomputer.skills.run('first', [own]) is own") == "True"


def test_a_changed_skill_is_run_as_it_is_now(at: At) -> None:
    at.skills.save("f", "def f(): return 1")
    at.do("computer.skills.run('f')")
    Path(at.skills.path, "f.py").write_text("def f(): return 2")
    assert at.do("computer.skills.run('f()')") == "2"


def test_an_error_in_a_skill_shows_its_line(at: At) -> None:
    at.skills.save("broken", "def broken(a):\n    return 1 / a")
    told = at.do("computer.skills.run('broken', 0)")
    assert "ZeroDivisionError" in told and "return 1 / a" in told


def test_from_outside_a_skill_runs_in_the_live_session(at: At) -> None:
    at.skills.save("add_up", ADD)
    (message,) = at.skills.run("add_up", 40)
    assert message["content"] == "42\n"


def test_in_this_process_a_skill_runs_in_it_as_well(at: At) -> None:
    at.skills.save("first", "def first(things): return next(iter(things))")
    at.interpreter.computer.python = "in-process"
    assert at.do("own = object()\nprint(computer.skills.run('first', [own]) is own)") == "True"


def test_skills_are_there_by_name_if_that_is_wanted(at: At) -> None:
    at.skills.save("add_up", ADD)
    assert "NameError" in at.do("add_up(1)")
    at.interpreter.import_skills = True
    assert "add_up()" in at.interpreter.prompt.system_message()["content"]
    assert at.do("add_up(1)") == "3"
    assert at.do("add_up = len; add_up('four')") == "4"


def test_they_can_be_imported_by_the_code_too(at: At) -> None:
    at.skills.save("add_up", ADD)
    assert at.do("print(computer.skills.import_skills(), add_up(1))") == "['add_up'] 3"


# -- finding ---------------------------------------------------------------------------------------------------------


def test_skills_are_found_by_words(at: At, home: Path) -> None:
    at.skills.save("add_up", ADD)
    at.skills.save("resize", 'def resize(path):\n    "Make pictures smaller."')
    has_skill(home / ".agents" / "skills" / "forms")
    (best,) = at.skills.search("smaller picture")
    assert best["name"] == "resize()" and best["signature"] == "def resize(path)"
    assert [each["name"] for each in at.skills.search("fill in a form")] == ["fill-forms"]
    assert len(at.skills.search("")) == 3


def test_instructions_of_the_project_and_the_user_are_read(at: At, home: Path) -> None:
    has_skill(home / ".agents" / "skills" / "forms")
    has_skill(home / ".agents" / "skills" / "plain", "No front matter.")
    has_skill(Path(".agents/skills/forms"), SKILL_MD.replace("pypdf", "the project's own way"))
    assert at.skills.list() == ["fill-forms", "plain"]
    assert "the project's own way" in at.do("print(computer.skills.run('fill-forms'))")
    assert at.skills.read("plain") == "No front matter."


def test_one_that_is_not_there_names_those_that_are(at: At) -> None:
    with pytest.raises(ComputerError, match="There are none yet"):
        at.skills.run("tidy")
    at.skills.save("tidy_up", "def tidy_up(): pass")
    assert "There is no skill 'tidyup'. Available: tidy_up." in at.do("computer.skills.run('tidyup')")


def test_the_folder_is_a_setting(at: At) -> None:
    at.skills.path = "./own"
    at.skills.save("f", "def f(): pass")
    assert Path("own/f.py").exists()
    assert at.interpreter.skills_path == "./own"


# -- in a sandbox ----------------------------------------------------------------------------------------------------


@pytest.fixture
def shut_in(tmp_path: Path, home: Path, no_strays: None) -> Iterator[At]:
    (tmp_path / "work").mkdir()
    made = At(sandbox="workspace", workspace=str(tmp_path / "work"))
    try:
        made.interpreter.computer.runtimes.apply_sandbox()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    yield made
    made.interpreter.computer.terminate()


def test_code_in_a_sandbox_runs_skills_and_keeps_none(shut_in: At, tmp_path: Path) -> None:
    shut_in.skills.save("add_up", ADD, test="add_up(1)")
    assert shut_in.do("computer.skills.run('add_up', 1)") == "3"
    assert "PermissionError" in shut_in.do("computer.skills.save('f', 'def f(): pass')")
    assert "PermissionError" in shut_in.do("computer.skills.path = '/etc'")
    assert shut_in.skills.list() == ["add_up()"]


def test_a_link_in_the_workspace_leads_no_host_astray(shut_in: At, tmp_path: Path, home: Path) -> None:
    (home / "secret.py").write_text("def secret(): 'private'")
    shut_in.skills.path = "./own"
    shut_in.do("import os; os.mkdir('own'); os.symlink(" + repr(str(home / "secret.py")) + ", 'own/secret.py')")
    assert "private" not in shut_in.do("print(computer.skills.read('secret'))")
    (home / "other").mkdir()
    (home / "other" / "SKILL.md").write_text("private")
    shut_in.do("os.makedirs('.agents/skills'); os.symlink(" + repr(str(home / "other")) + ", '.agents/skills/other')")
    assert "private" not in shut_in.do("print(computer.skills.read('other'))")


def test_instructions_of_the_project_are_not_changed_from_a_sandbox(shut_in: At, tmp_path: Path) -> None:
    has_skill(tmp_path / "work" / ".agents" / "skills" / "forms")
    assert "Use pypdf." in shut_in.do("print(computer.skills.run('fill-forms'))")
    assert "Read-only" in shut_in.do("open('.agents/skills/forms/SKILL.md', 'w')")


def test_the_trial_of_a_skill_is_in_the_sandbox_too(shut_in: At, home: Path) -> None:
    (home / "private.txt").write_text("private")
    with pytest.raises(ComputerError, match="FileNotFoundError"):
        shut_in.skills.save("f", f"def f(): return open({str(home / 'private.txt')!r}).read()", test="f()")
