"""Profiles in Python change only the interpreter that loads them."""

from __future__ import annotations

from pathlib import Path

import pytest

import interpreter as package
from interpreter import OpenInterpreter
from interpreter.config.setting import origins, sources
from interpreter.errors import ProfileError


def load(tmp_path: Path, code: str, **settings: object) -> OpenInterpreter:
    file = tmp_path / "p.py"
    file.write_text(code)
    made = OpenInterpreter(**settings)
    made.load_profile(str(file))
    return made


@pytest.mark.parametrize(
    "code",
    [
        "from interpreter import interpreter\ninterpreter.llm.model = 'x'\n",
        "from interpreter import interpreter as agent\nagent.llm.model = 'x'\n",
        "from interpreter import OpenInterpreter\ninterpreter = OpenInterpreter()\ninterpreter.llm.model = 'x'\n",
        "interpreter.llm.model = 'x'\n",
        "def f():\n    from interpreter import interpreter\n    interpreter.llm.model = 'x'\nf()\n",
        "from interpreter import BaseLanguage, computer, interpreter\ncomputer.shell_rc = True\ninterpreter.llm.model = 'x'\n",
    ],
)
def test_a_profile_changes_only_the_loading_interpreter(tmp_path: Path, code: str) -> None:
    shared, other = package.interpreter, OpenInterpreter()
    made = load(tmp_path, code)
    assert made.llm.model == "x"
    assert sources(made.llm)["llm.model"] == "profile"
    assert origins(made.llm)["llm.model"] == f"profile {tmp_path / 'p.py'}"
    assert shared.llm.model == other.llm.model == "gpt-4o"
    assert package.interpreter is shared


def test_settings_of_an_interpreter_created_in_a_profile_apply(tmp_path: Path) -> None:
    made = load(tmp_path, "from interpreter import OpenInterpreter\ninterpreter = OpenInterpreter(auto_run=True)\n")
    assert made.auto_run is True
    assert sources(made)["auto_run"] == "profile"


def test_values_set_by_code_before_stay(tmp_path: Path) -> None:
    made = load(tmp_path, "interpreter.auto_run = True\ninterpreter.max_output = 5\n", auto_run=False)
    assert (made.auto_run, made.max_output) == (False, 5)
    made.max_output = 6
    assert made.max_output == 6


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("\ninterpreter.autorun = True\n", 2, "There is no setting named autorun. Did you mean auto_run?"),
        ("x = 1\nx.y = 2\n", 2, "AttributeError: "),
        ("def f():\n    raise ValueError('no')\n\nf()\n", 2, "ValueError: no"),
        ("a = (\n", 1, "'(' was never closed."),
        ("interpreter.computer.mouses.click()\n", 1, "There is no computer.mouses. Did you mean computer.mouse?"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, code: str, line: int, words: str) -> None:
    with pytest.raises(ProfileError) as refusal:
        load(tmp_path, code)
    assert str(refusal.value).startswith(f"{tmp_path / 'p.py'}, line {line}: {words}")


def test_attributes_of_their_own_are_stored(tmp_path: Path) -> None:
    code = (
        "interpreter.tts = 'openai'\ninterpreter.print = True\ninterpreter.llm.note = interpreter.computer.note = 1\n"
    )
    made = load(tmp_path, code + "del interpreter.print\n")
    assert (made.tts, made.llm.note, made.computer.note, hasattr(made, "print")) == ("openai", 1, 1, False)  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_old_names_set_todays_settings(tmp_path: Path) -> None:
    assert load(tmp_path, "interpreter.model = 'x'\n").llm.model == "x"


def test_strict_settings_refuse_attributes_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="There is no setting named tts"):
        load(tmp_path, "interpreter.tts = 'openai'\n", strict_settings=True)


def test_a_start_script_runs_before_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "max_output: 7\nstart_script: |\n  seen = interpreter.max_output\n  interpreter.loop_message = f'saw {seen}'\n"
    )
    made = OpenInterpreter()
    made.load_profile(str(file))
    assert (made.max_output, made.loop_message) == (7, "saw 2800")
    file.write_text("start_script: |\n  a = 1\n  a.b\n")
    with pytest.raises(ProfileError, match=r"p\.yaml, line 3: AttributeError"):
        made.load_profile(str(file))


def test_a_profile_can_add_a_custom_language(tmp_path: Path) -> None:
    code = (
        "from interpreter import BaseLanguage, interpreter\n"
        "class Echo(BaseLanguage):\n    name = 'echo'\n"
        "    def run(self, code):\n        yield {'type': 'console', 'format': 'output', 'content': code}\n"
        "interpreter.computer.languages.append(Echo)\n"
    )
    made = load(tmp_path, code)
    assert made.computer.run("echo", "hello")[0]["content"] == "hello"


def test_assignments_after_the_profile_have_the_source_code(tmp_path: Path) -> None:
    made = load(tmp_path, "interpreter.auto_run = True\n")
    made.debug = True
    assert sources(made)["debug"] == "code"
