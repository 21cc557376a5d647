"""computer.skills: code is tested and saved as a skill, found again, and run in the live session."""

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


class SkillSession:
    """An interpreter, its skills, and the output of its Python."""

    def __init__(self, **settings: Any) -> None:
        self.interpreter = OpenInterpreter(**settings)
        self.skills: Skills = self.interpreter.computer.skills

    def do(self, code: str) -> str:
        return "".join(str(each["content"]) for each in self.interpreter.computer.run("python", code)).strip()


@pytest.fixture
def live(no_strays: None) -> Iterator[SkillSession]:
    made = SkillSession()
    yield made
    made.interpreter.computer.terminate()


def write_skill(folder: Path, text: str = SKILL_MD) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)


# -- saving ----------------------------------------------------------------------------------------------------------


def test_code_that_passes_its_test_is_saved(live: SkillSession, home: Path) -> None:
    kept = live.skills.save("Add up", ADD, test="assert add_up(1) == 3", description="Adds.")
    file = home / ".config" / "open-interpreter" / "skills" / "add_up.py"
    assert kept == {"name": "add_up", "path": str(file), "tested": True}
    assert file.read_text() == f'"""Adds."""\n\n{ADD}'
    assert live.skills.list() == ["add_up()"]


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
def test_code_that_fails_in_a_fresh_session_is_not_saved(
    live: SkillSession, code: str, test: str | None, reason: str
) -> None:
    with pytest.raises((ComputerError, ValueError), match=reason):
        live.skills.save("f", code, test)
    assert live.skills.list() == []


def test_a_block_is_saved_as_a_function_returning_its_last_value(live: SkillSession) -> None:
    block = 'import math\ntext = """one\n  two"""\nif text:\n    size = len(text)\nmath.floor(\n    size / 2)'
    kept = live.skills.new_skill.from_block("Half size", block, description="Half of it.")
    assert kept["tested"] is True
    assert live.do("computer.skills.run('half_size')") == "4"
    with pytest.raises(ComputerError, match="was not saved"):
        live.skills.new_skill.from_block("Wrong", "1 / 0")


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
def test_a_function_is_saved_under_another_name(live: SkillSession, called: str) -> None:
    kept = live.skills.save("Countdown", COUNT, test=f"assert {called}(2) == [2, 1]")
    assert kept["name"] == "countdown" and kept["tested"] is True
    assert live.skills.search("countdown")[0]["signature"] == "def countdown(n=3)"
    assert live.skills.search("countdown")[0]["description"] == "Counts down."
    assert live.do("computer.skills.run('countdown')") == "[3, 2, 1]"


def test_from_block_calls_a_function_with_another_name(live: SkillSession) -> None:
    with pytest.raises(ComputerError, match="ZeroDivisionError"):
        live.skills.new_skill.from_block("Divide", "def by_zero(): return 1 / 0")
    assert live.skills.new_skill.from_block("Divide", "def by(n): return 1 / n")["tested"] is False
    assert live.do("computer.skills.run('divide', 2)") == "0.5"


def test_one_of_several_functions_must_have_the_skills_name(live: SkillSession) -> None:
    code = "def one(): return 1\ndef two(): return one() + 1\n"
    with pytest.raises(ValueError, match="defines one, two, and none of them is called three"):
        live.skills.save("three", code)
    live.skills.save("two", code)
    assert live.do("computer.skills.run('two')") == "2"


def test_a_skill_is_not_replaced_by_accident(live: SkillSession) -> None:
    live.skills.save("f", "def f(): return 1")
    with pytest.raises(ValueError, match="replace=True"):
        live.skills.save("f", "def f(): return 2")
    assert live.skills.save("f", "def f(): return 2", replace=True)["tested"] is False
    assert "return 2" in live.skills.read("f")


def test_testing_a_skill_leaves_the_session_unchanged(live: SkillSession, tmp_path: Path) -> None:
    live.do("x = 1")
    live.skills.save("f", "def f(): pass", test=f"x = 2; import os; os.chdir({str(tmp_path)!r})")
    assert live.do("import os; print(x, os.getcwd() == " + repr(str(tmp_path)) + ")") == "1 False"


def test_saving_can_be_switched_off(live: SkillSession) -> None:
    live.interpreter.computer.save_skills = False
    with pytest.raises(PermissionError, match="save_skills"):
        live.skills.save("f", "def f(): pass")


def test_names_are_normalised_to_function_names() -> None:
    assert normalised(" Tidy my Downloads! ") == "tidy_my_downloads"
    assert normalised("2 plots") == "skill_2_plots"
    assert normalised("class") == "skill_class"
    with pytest.raises(ValueError, match="needs a name"):
        normalised("!?")


def test_a_description_cannot_inject_code() -> None:
    source = of_code("f", "1 + 1", 'Ends with "quotes" """ + open("x").read() + "\\')
    names: dict[str, Any] = {}
    exec(source, names)
    assert names["f"]() == 2


# -- steps -----------------------------------------------------------------------------------------------------------


def test_steps_are_saved_and_shown_one_by_one(live: SkillSession) -> None:
    assert "new_skill.name" in live.do("print(computer.skills.new_skill.create())")
    live.do("new = computer.skills.new_skill; new.name = 'Make tea'; print(new.name)")
    live.do("new.add_step('Boil water.', 'boil(1)'); new.add_step('Pour it.', 'pour()')")
    live.do("new.save()")
    assert live.skills.list() == ["make_tea()"]
    first = live.do("computer.skills.run('make_tea')")
    assert "Step 1 of 2: Boil water." in first and "boil(1)" in first and "make_tea(step=1)" in first
    assert "Step 2 of 2: Pour it." in live.do("computer.skills.run('make_tea', step=1)")
    with pytest.raises(ValueError, match="needs a name and at least one step"):
        live.skills.new_skill.save()


# -- running ---------------------------------------------------------------------------------------------------------


def test_a_skill_runs_with_the_sessions_objects(live: SkillSession) -> None:
    live.skills.save("first", "def first(things): return next(iter(things))")
    assert live.do("class Own:\n    pass\nown = Own()\ncomputer.skills.run('first', [own]) is own") == "True"


def test_a_changed_skill_runs_in_its_new_version(live: SkillSession) -> None:
    live.skills.save("f", "def f(): return 1")
    live.do("computer.skills.run('f')")
    Path(live.skills.path, "f.py").write_text("def f(): return 2")
    assert live.do("computer.skills.run('f()')") == "2"


def test_an_error_in_a_skill_shows_its_line(live: SkillSession) -> None:
    live.skills.save("broken", "def broken(a):\n    return 1 / a")
    told = live.do("computer.skills.run('broken', 0)")
    assert "ZeroDivisionError" in told and "return 1 / a" in told


def test_a_skill_run_from_the_host_runs_in_the_live_session(live: SkillSession) -> None:
    live.skills.save("add_up", ADD)
    (message,) = live.skills.run("add_up", 40)
    assert message["content"] == "42\n"


def test_a_skill_runs_in_process_too(live: SkillSession) -> None:
    live.skills.save("first", "def first(things): return next(iter(things))")
    live.interpreter.computer.python = "in-process"
    assert live.do("own = object()\nprint(computer.skills.run('first', [own]) is own)") == "True"


def test_import_skills_makes_skills_available_by_name(live: SkillSession) -> None:
    live.skills.save("add_up", ADD)
    assert "NameError" in live.do("add_up(1)")
    live.interpreter.import_skills = True
    assert "add_up()" in live.interpreter.prompt.system_message()["content"]
    assert live.do("add_up(1)") == "3"
    assert live.do("add_up = len; add_up('four')") == "4"


def test_code_can_import_skills(live: SkillSession) -> None:
    live.skills.save("add_up", ADD)
    assert live.do("print(computer.skills.import_skills(), add_up(1))") == "['add_up'] 3"


# -- finding ---------------------------------------------------------------------------------------------------------


def test_skills_are_found_by_keywords(live: SkillSession, home: Path) -> None:
    live.skills.save("add_up", ADD)
    live.skills.save("resize", 'def resize(path):\n    "Make pictures smaller."')
    write_skill(home / ".agents" / "skills" / "forms")
    (best,) = live.skills.search("smaller picture")
    assert best["name"] == "resize()" and best["signature"] == "def resize(path)"
    assert [each["name"] for each in live.skills.search("fill in a form")] == ["fill-forms"]
    assert len(live.skills.search("")) == 3


def test_skill_instructions_of_project_and_user_are_found(live: SkillSession, home: Path) -> None:
    write_skill(home / ".agents" / "skills" / "forms")
    write_skill(home / ".agents" / "skills" / "plain", "No front matter.")
    write_skill(Path(".agents/skills/forms"), SKILL_MD.replace("pypdf", "the project's own way"))
    assert live.skills.list() == ["fill-forms", "plain"]
    assert "the project's own way" in live.do("print(computer.skills.run('fill-forms'))")
    assert live.skills.read("plain") == "No front matter."


def test_an_unknown_skill_lists_the_available_ones(live: SkillSession) -> None:
    with pytest.raises(ComputerError, match="There are none yet"):
        live.skills.run("tidy")
    live.skills.save("tidy_up", "def tidy_up(): pass")
    assert "There is no skill 'tidyup'. Available: tidy_up." in live.do("computer.skills.run('tidyup')")


def test_the_folder_is_a_setting(live: SkillSession) -> None:
    live.skills.path = "./own"
    live.skills.save("f", "def f(): pass")
    assert Path("own/f.py").exists()
    assert live.interpreter.skills_path == "./own"


# -- in a sandbox ----------------------------------------------------------------------------------------------------


@pytest.fixture
def sandboxed(tmp_path: Path, home: Path, no_strays: None) -> Iterator[SkillSession]:
    (tmp_path / "work").mkdir()
    made = SkillSession(sandbox="workspace", workspace=str(tmp_path / "work"))
    try:
        made.interpreter.computer.runtimes.apply_sandbox()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    yield made
    made.interpreter.computer.terminate()


def test_sandboxed_code_can_run_but_not_save_skills(sandboxed: SkillSession, tmp_path: Path) -> None:
    sandboxed.skills.save("add_up", ADD, test="add_up(1)")
    assert sandboxed.do("computer.skills.run('add_up', 1)") == "3"
    assert "PermissionError" in sandboxed.do("computer.skills.save('f', 'def f(): pass')")
    assert "PermissionError" in sandboxed.do("computer.skills.path = '/etc'")
    assert sandboxed.skills.list() == ["add_up()"]


def test_skills_are_not_read_through_links_in_the_workspace(
    sandboxed: SkillSession, tmp_path: Path, home: Path
) -> None:
    (home / "secret.py").write_text("def secret(): 'private'")
    sandboxed.skills.path = "./own"
    sandboxed.do("import os; os.mkdir('own'); os.symlink(" + repr(str(home / "secret.py")) + ", 'own/secret.py')")
    assert "private" not in sandboxed.do("print(computer.skills.read('secret'))")
    (home / "other").mkdir()
    (home / "other" / "SKILL.md").write_text("private")
    sandboxed.do("os.makedirs('.agents/skills'); os.symlink(" + repr(str(home / "other")) + ", '.agents/skills/other')")
    assert "private" not in sandboxed.do("print(computer.skills.read('other'))")


def test_sandboxed_code_cannot_change_skill_instructions(sandboxed: SkillSession, tmp_path: Path) -> None:
    write_skill(tmp_path / "work" / ".agents" / "skills" / "forms")
    assert "Use pypdf." in sandboxed.do("print(computer.skills.run('fill-forms'))")
    assert "Read-only" in sandboxed.do("open('.agents/skills/forms/SKILL.md', 'w')")


def test_skills_are_tested_in_the_sandbox(sandboxed: SkillSession, home: Path) -> None:
    (home / "private.txt").write_text("private")
    with pytest.raises(ComputerError, match="FileNotFoundError"):
        sandboxed.skills.save("f", f"def f(): return open({str(home / 'private.txt')!r}).read()", test="f()")
