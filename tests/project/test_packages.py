"""Packages of others: the example is installed and used, and a broken one stops nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from model_server import ModelServer, text, tool_call

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "words"
MODULE = "words_for_open_interpreter.py"
BROKEN = """
[open_interpreter.languages]
gone = nowhere_to_be_found:Gone
[open_interpreter.tools]
untyped = broken_for_open_interpreter:untyped
execute = words_for_open_interpreter:count_words
"""
CHAT = """
import json, sys
from interpreter import OpenInterpreter
interpreter = OpenInterpreter(auto_run=True)
interpreter.llm.model, interpreter.llm.api_base, interpreter.llm.api_key = "gpt-4o", sys.argv[1], "key"
awk = interpreter.computer.run("awk", 'BEGIN { print 6 * 7 }')
called = interpreter.computer.run("python", "print(tools.count_words(path='notes.txt', most=1))")
print(json.dumps([awk[0]["content"], called[0]["content"], interpreter.chat("go", display=False), interpreter.tools.names]))
"""


class Installation:
    """A virtual environment that has this project, without copying it."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False)
        self.python = str(folder / "bin" / "python")
        done = self.run("import sysconfig; print(sysconfig.get_path('purelib'))")
        self.site = Path(done.stdout.strip())
        ours = subprocess.run(
            [sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        (self.site / "ours.pth").write_text(f"{ROOT / 'src'}\n{ours.stdout.strip()}\n")

    def run(self, code: str, *arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
        command = [self.python, "-c", code, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, **more)  # type: ignore[call-overload]
        assert isinstance(done, subprocess.CompletedProcess)
        return done

    def interpreter(self, *arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
        return self.run("import sys; from interpreter.frontends.cli import main; sys.exit(main())", *arguments, **more)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The example, built as a wheel and installed by pip."""
    folder = tmp_path_factory.mktemp("installation")
    installation = Installation(folder / "venv")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = f"words_for_open_interpreter-{project['version']}.dist-info"
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in rows.items())
        for group, rows in project["entry-points"].items()
    )
    wheel = folder / f"words_for_open_interpreter-{project['version']}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write(EXAMPLE / MODULE, MODULE)
        file.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/entry_points.txt", points)
        file.writestr(f"{info}/RECORD", "")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--target",
        installation.site,
        wheel,
    ]
    subprocess.run(pip, check=True, timeout=120)
    return installation


def test_the_language_and_the_tool_of_the_example_work(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk and milk")
    arguments = json.dumps({"path": "notes.txt", "most": 2})
    with ModelServer([tool_call(name="count_words", arguments=arguments), text("Milk, mostly.")]) as server:
        done = installation.run(CHAT, server.base_url, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        sent = server.requests[1].messages[-1]["content"]
    awk, called, answer, tools = json.loads(done.stdout.splitlines()[-1])
    assert awk == "42\n"
    assert called == "{'milk': 2}\n"
    assert json.loads(sent) == {"milk": 2, "and": 1}
    assert answer[-1]["content"] == "Milk, mostly."
    assert "count_words" in tools


def test_the_front_end_of_the_example_answers_lines(installation: Installation) -> None:
    with ModelServer([text("Milk.")]) as server:
        env = {
            **os.environ,
            "OPENAI_API_BASE": server.base_url,
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "key",
        }
        done = installation.interpreter("ask", "--model", "gpt-4o", input="What?\n\n", env=env)
    assert "Milk." in done.stdout, done.stderr


def test_help_lists_the_command_of_the_example_and_runs_it(installation: Installation) -> None:
    code = (
        "from interpreter import OpenInterpreter\n"
        "from interpreter.frontends.terminal import magics\n"
        "from interpreter.frontends.terminal.terminal import Terminal\n"
        "terminal, interpreter = Terminal(plain=True), OpenInterpreter()\n"
        "interpreter.messages = [{'role': 'user', 'type': 'message', 'content': 'one two three'}]\n"
        "magics.run(terminal, interpreter, '%help'); magics.run(terminal, interpreter, '%words')\n"
    )
    done = installation.run(code)
    assert "%words" in done.stdout, done.stderr
    assert "3 words so far." in done.stdout


def test_a_broken_package_stops_nothing_and_the_doctor_names_it(installation: Installation) -> None:
    assert installation.interpreter("--doctor").returncode == 0
    broken = installation.site / "broken-2.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 2.0\n")
    (broken / "entry_points.txt").write_text(BROKEN)
    (installation.site / "broken_for_open_interpreter.py").write_text("def untyped(*arguments): ...\n")
    code = (
        "from interpreter import OpenInterpreter; interpreter = OpenInterpreter(); "
        "print([each.name for each in interpreter.computer.languages][-1], 'untyped' in interpreter.tools)"
    )
    done = installation.run(code)
    assert done.stdout == "Awk False\n", done.stderr
    doctor = installation.interpreter("--doctor")
    assert doctor.returncode == 1
    assert "words-for-open-interpreter 1.0: languages awk (words_for_open_interpreter:Awk): ok" in doctor.stdout
    assert "broken 2.0: languages gone (nowhere_to_be_found:Gone): ModuleNotFoundError" in doctor.stdout
    assert "broken 2.0: tools execute (words_for_open_interpreter:count_words): UsageError" in doctor.stdout
    assert "broken 2.0: tools untyped (broken_for_open_interpreter:untyped): UsageError" in doctor.stdout


def test_a_session_environment_adds_nothing(installation: Installation, tmp_path: Path) -> None:
    code = "from interpreter import packages; print(packages.entry_points('languages'))"
    env = {**os.environ, "PYTHONPATH": str(installation.site)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=env, cwd=tmp_path
    )
    assert done.stdout == "[]\n", done.stderr
