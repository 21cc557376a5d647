"""Which Python runs code; packages that code installs never go into our own environment."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.app.own_blocks import run_own_block
from interpreter.errors import RuntimeStartError
from interpreter.runtimes.environments import Choice, choose, home_of, make_layer, offered_project
from interpreter.session import APPROVE, REFUSE, Answer, Question
from python_runtimes import Ran
from tiny_package import write_wheel

UV = Path(sys.executable).with_name("uv")
OFFLINE = "--no-index --no-deps -q --disable-pip-version-check"


class Session:
    """The live runtimes of one interpreter."""

    def __init__(self) -> None:
        self.interpreter = OpenInterpreter()
        self.computer = self.interpreter.computer

    def do(self, language: str, code: str) -> Ran:
        return Ran([dict(chunk) for chunk in self.computer.run(language, code, stream=True)])

    @property
    def environment(self) -> Any:
        return self.computer.context.python_environment()


@pytest.fixture
def session() -> Iterator[Session]:
    made = Session()
    yield made
    made.interpreter.reset()


def make_venv(folder: Path) -> Path:
    """An empty virtual environment, made by `venv`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def our_files() -> set[tuple[str, int]]:
    """Return all files of our environment with their modification times, without bytecode."""
    found = set()
    for folder, _, names in os.walk(sys.prefix):
        if not folder.endswith("__pycache__"):
            found |= {(f"{folder}/{name}", os.lstat(f"{folder}/{name}").st_mtime_ns) for name in names}
    return found


# -- selection ---------------------------------------------------------------------------------------------------------


class TestSelection:
    """The setting first, then the active environment, the project's if the user accepted it, then our own."""

    @pytest.fixture
    def venv(self, tmp_path: Path) -> Path:
        return make_venv(tmp_path / "venv")

    def test_the_default_is_a_session_environment(self, tmp_path: Path) -> None:
        chosen = choose(None, {}, str(tmp_path))
        assert chosen.is_layer
        assert chosen.origin == "session"
        assert chosen.supervisor == sys.executable
        assert chosen.folder == str(home_of(str(tmp_path)) / "open")

    def test_the_active_environment_is_used(self, venv: Path) -> None:
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            chosen = choose(None, {name: str(venv)}, "/")
            assert (chosen.python, chosen.folder, chosen.origin) == (str(venv / "bin/python"), str(venv), "active")
            assert not chosen.is_layer
        assert choose(None, {"VIRTUAL_ENV": str(venv / "gone")}, "/").is_layer

    def test_the_setting_comes_first(self, venv: Path) -> None:
        python = str(venv / "bin" / "python")
        assert choose(str(venv), {}, "/").python == python
        assert choose("venv", {}, str(venv.parent)).python == python
        assert choose(python, {"VIRTUAL_ENV": "/elsewhere"}, "/").python == python
        assert choose("python", {"PATH": str(venv / "bin")}, "/").python == python

    def test_conda_environments_are_found_by_name(self, venv: Path, home: Path) -> None:
        place = home / "miniforge3" / "envs" / "science"
        place.parent.mkdir(parents=True)
        place.symlink_to(venv)
        assert choose("conda:science", {}, "/").folder == str(place)
        for name in ("conda:art", "conda:../envs/science"):
            with pytest.raises(RuntimeStartError, match="no Python at 'conda:"):
                choose(name, {}, "/")

    def test_a_setting_without_a_python_is_an_error(self) -> None:
        with pytest.raises(RuntimeStartError, match="no Python at 'nonsense'"):
            choose("nonsense", {"PATH": "/nowhere"}, "/")

    def test_the_shell_runs_without_a_valid_python(self, session: Session) -> None:
        session.computer.python = "nonsense"
        assert session.do("shell", "echo here").text == "here\n"
        assert "no Python at 'nonsense'" in session.do("python", "1").text

    def test_our_own_python_always_gets_a_layer(self) -> None:
        assert choose(sys.executable, {}, "/").is_layer
        assert choose(sys.prefix, {}, "/").is_layer
        active = choose(None, {"VIRTUAL_ENV": sys.prefix}, "/")
        assert active.is_layer
        assert active.origin == "active"

    def test_the_project_environment_is_used_if_the_user_accepted_it(self, tmp_path: Path) -> None:
        venv, workspace = make_venv(tmp_path / ".venv"), str(tmp_path)
        assert offered_project(workspace, None, {}) == str(venv)
        assert choose(None, {}, workspace).origin == "session"
        Choice(str(venv), True).save(workspace)
        assert offered_project(workspace, None, {}) is None
        assert choose(None, {}, workspace).folder == str(venv)
        Choice(str(venv), False).save(workspace)
        assert offered_project(workspace, None, {}) is None
        assert choose(None, {}, workspace).is_layer

    def test_poetry_and_conda_environments_are_offered(self, tmp_path: Path, home: Path) -> None:
        workspace = tmp_path / "work"
        workspace.mkdir()
        (workspace / "pyproject.toml").write_text('[tool.poetry]\nname = "My Report"\n')
        assert offered_project(str(workspace), None, {}) is None
        digest = base64.urlsafe_b64encode(hashlib.sha256(os.path.realpath(workspace).encode()).digest()).decode()
        poetry = make_venv(home / ".cache" / "pypoetry" / "virtualenvs" / f"my_report-{digest[:8]}-py3.11")
        assert offered_project(str(workspace), None, {}) == str(poetry)
        (workspace / "pyproject.toml").unlink()
        (workspace / "environment.yml").write_text("name: science\ndependencies: [numpy]\n")
        assert offered_project(str(workspace), None, {}) is None
        conda = make_venv(home / "miniconda3" / "envs" / "science")
        assert offered_project(str(workspace), None, {}) == str(conda)

    def test_session_environments_are_per_workspace_or_shared(self) -> None:
        assert choose(None, {}, "/usr").folder != choose(None, {}, "/var").folder
        assert choose(None, {}, "/usr", shared=True).folder == choose(None, {}, "/var", shared=True).folder
        assert choose(None, {}, "/usr", sandboxed=True).folder != choose(None, {}, "/usr").folder


# -- installing --------------------------------------------------------------------------------------------------------

INSTALL_COMMANDS = {
    "%pip": ("python", "%pip install {options} {wheel}"),
    "!pip": ("python", "!pip install {options} {wheel}"),
    "!python -m pip": ("python", "!python -m pip install {options} {wheel}"),
    "subprocess": (
        "python",
        "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', "
        "*'{options} {wheel}'.split()])",
    ),
    "pip as a module": ("python", "import pip\nassert pip.main('install {options} {wheel}'.split()) == 0"),
    "pip in the shell": ("shell", "pip install {options} {wheel}"),
    "pip3 in the shell": ("shell", "pip3 install {options} {wheel}"),
    "python -m pip in the shell": ("shell", "python3 -m pip install {options} {wheel}"),
    "from JavaScript": (
        "javascript",
        "require('child_process').execSync('pip install {options} {wheel}').toString()",
    ),
    "uv in the shell": ("shell", "{uv} pip install -q --no-index --no-deps {wheel}"),
    "uv in Python": ("python", "!{uv} pip install -q --no-index --no-deps {wheel}"),
}


COMMON_COMMANDS = ("%pip", "subprocess", "pip in the shell", "uv in the shell")


@pytest.mark.parametrize(
    "commands", [COMMON_COMMANDS, pytest.param(tuple(INSTALL_COMMANDS), marks=pytest.mark.full)], ids=["common", "all"]
)
def test_installs_go_to_the_session_environment_and_never_into_ours(
    session: Session, tmp_path: Path, commands: tuple[str, ...]
) -> None:
    session.do("python", "1")
    before = our_files()
    names = [f"tiny_{number}" for number in range(len(commands))]
    for name, command in zip(names, commands, strict=True):
        language, code = INSTALL_COMMANDS[command]
        ran = session.do(language, code.format(options=OFFLINE, wheel=write_wheel(tmp_path, name), uv=UV))
        listed = [each for each, _ in session.environment.installed()]
        assert name.replace("_", "-") in listed, (command, ran.text)
    imports = f"import {', '.join(names)}; print({names[-1]}.answer)"
    assert session.do("python", imports).text == "42\n"
    assert session.do("shell", f"python -c '{imports}'").text == "42\n"
    assert our_files() == before


@pytest.mark.full
def test_our_packages_can_be_imported_but_not_uninstalled(session: Session, tmp_path: Path) -> None:
    before = our_files()
    shown = "import psutil; print(psutil.__name__)"
    assert session.do("python", shown).text == "psutil\n"
    newer = write_wheel(tmp_path, "tqdm", "99.0")
    session.do("shell", f"pip install {OFFLINE} --upgrade {newer}; pip uninstall -y -q psutil 2>&1")
    assert session.do("shell", f"python -c '{shown}; import tqdm; print(tqdm.answer)'").text == "psutil\n42\n"
    assert our_files() == before


def test_a_broken_package_does_not_break_the_session(session: Session, tmp_path: Path) -> None:
    """The driver and IPython come from our own environment, no matter what packages code installs."""
    for name in ("traitlets", "IPython", "decorator"):
        write_wheel(tmp_path, name, "99.0", "raise SystemExit('broken')\n")
    session.do("shell", f"pip install {OFFLINE} --force-reinstall {tmp_path}/*.whl")
    session.computer.terminate()
    ran = session.do("python", "print(get_ipython().__class__.__module__ != '', 6 * 7)")
    assert ran.text == "True 42\n"


def test_a_damaged_session_environment_is_repaired(session: Session, tmp_path: Path) -> None:
    session.do("shell", 'rm -r "$VIRTUAL_ENV"/bin/python "$VIRTUAL_ENV"/pyvenv.cfg; rm "$VIRTUAL_ENV"/bin/pip*')
    session.do("shell", f'ln -s {tmp_path} "$VIRTUAL_ENV"/bin/pip; mkdir "$VIRTUAL_ENV"/pyvenv.cfg')
    session.computer.terminate()
    assert session.do("shell", "pip --version").text.startswith("pip ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_pip_comes_from_the_standard_library_if_ours_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interpreter.runtimes.environments.packages_behind", list)
    make_layer(str(tmp_path / "layer"))
    wheel = write_wheel(tmp_path)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    pip = [str(tmp_path / "layer/bin/pip"), "install", *OFFLINE.split(), str(wheel)]
    subprocess.run(pip, check=True, env=env, capture_output=True)
    python = str(tmp_path / "layer/bin/python")
    shown = subprocess.run([python, "-c", "import tiny_thing, sys; print(sys.prefix)"], env=env, capture_output=True)
    assert shown.stdout.decode() == f"{tmp_path}/layer\n"


def test_packages_go_into_the_users_active_environment(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = make_venv(tmp_path / "theirs")
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))
    wheel = write_wheel(tmp_path)
    ran = session.do("shell", f"which python; {UV} pip install -q --no-index {wheel}")
    assert ran.text == f"{venv}/bin/python\n"
    assert session.do("python", "import sys, tiny_thing; print(sys.prefix)").text == f"{venv}\n"


def test_an_undone_export_leaves_the_environment_active(session: Session) -> None:
    shared = session.computer.context
    before = session.do("shell", "which pip").text
    mark = session.computer.runtimes.mark()
    session.do("shell", "export PATH=/usr/bin:/bin; unset PIP_DISABLE_PIP_VERSION_CHECK")
    assert session.do("shell", "which pip").text != before
    session.computer.runtimes.go_back(mark)
    assert session.do("shell", "which pip").text == before
    assert shared.environment()["PATH"].startswith(session.environment.folder)


def test_creating_an_environment_takes_milliseconds_and_starts_no_program(tmp_path: Path) -> None:
    started = []
    sys.addaudithook(lambda event, args: started.append(event) if event in ("subprocess.Popen", "os.fork") else None)
    took = []
    for number in range(5):
        begun = time.perf_counter()
        make_layer(str(tmp_path / f"layer{number}"))
        took.append(time.perf_counter() - begun)
    assert started == []
    assert min(took) < 0.1


# -- offers ------------------------------------------------------------------------------------------------------------


class Person:
    """Answers offers."""

    def __init__(self, session: Session, *answers: str) -> None:
        self.session, self.answers = session, list(answers)
        self.asked: list[str] = []

    def answer(self, question: Question) -> Answer:
        self.asked.append(question.text)
        return Answer(self.answers.pop(0))

    def do(self, language: str, code: str) -> tuple[str, str]:
        """Run a block of the user, and return how it ended and its output."""
        text = ""
        with self.session.interpreter.session.questions.answerable(("offer",), self.answer):
            events = run_own_block(self.session.interpreter, language, code)
            while True:
                try:
                    event = next(events)
                except StopIteration as ended:
                    return ended.value, text
                chunk = event.chunk
                if chunk is not None and chunk.get("format") == "output":
                    text += chunk.get("content") or ""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip finds packages in, instead of on the network."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


class TestMissingPackage:
    def test_accepting_installs_it_and_runs_the_block(self, session: Session, index: Path) -> None:
        write_wheel(index, "tiny_thing")
        person = Person(session, APPROVE)
        outcome, text = person.do("python", "import tiny_thing\nprint(tiny_thing.answer)")
        check = "Check the name, anyone can publish a package: tiny_thing.\n"
        assert person.asked == [f"{check}Install tiny_thing and run the block?"]
        assert (outcome, text) == ("done", "42\n")
        assert session.environment.installed() == [("tiny-thing", "1.0")]

    def test_declining_keeps_the_error(self, session: Session) -> None:
        person = Person(session, REFUSE)
        outcome, text = person.do("python", "import sklearnx")
        assert outcome == "error"
        assert text.endswith("The user doesn't want to install sklearnx.\n")

    def test_unattended_sessions_get_the_install_command(self, session: Session) -> None:
        text = session.do("python", "import bs4x\n").text
        assert text.endswith("install it with: %pip install bs4x\n")
        assert session.environment.install_command("sklearn") == "%pip install scikit-learn"

    @pytest.mark.full
    def test_a_failed_install_does_not_rerun_the_block(self, session: Session, index: Path) -> None:
        person = Person(session, APPROVE)
        outcome, text = person.do("python", "print('begun')\nimport tiny_thing")
        assert (outcome, text.count("begun\n")) == ("error", 1)
        assert text.endswith("Not installed: tiny_thing.\n")

    def test_a_missing_network_is_reported(
        self, session: Session, index: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        outcome, text = Person(session, APPROVE).do("python", "import tiny_thing")
        assert outcome == "error"
        assert text.endswith(
            "The package index can't be reached: there seems to be no network connection.\nNot installed: tiny_thing.\n"
        )
        session.interpreter.offline = True
        assert "Offline mode is on" in Person(session).do("python", "import tiny_thing")[1]

    def test_other_errors_offer_no_package(self, session: Session) -> None:
        person = Person(session)
        for code in ("import json.nothing", "from json import nothing", "1 / 0", "raise ImportError('no')"):
            assert "If it is a package" not in person.do("python", code)[1], code

    def test_offers_can_be_turned_off(self, session: Session) -> None:
        session.computer.install_missing = "never"
        assert Person(session).do("python", "import tiny_thing")[0] == "error"


class TestProjectEnvironment:
    def test_accepting_is_remembered(self, session: Session) -> None:
        venv = make_venv(Path.cwd() / ".venv")
        person = Person(session, APPROVE)
        assert person.do("shell", "which python")[1] == f"{venv}/bin/python\n"
        assert person.do("python", "import sys; print(sys.prefix)")[1] == f"{venv}\n"
        assert person.asked == [
            "This folder has its own Python environment, .venv. Use it for code here? I'll remember the answer."
        ]
        other = Session()
        assert Person(other).do("python", "import sys; print(sys.prefix)")[1] == f"{venv}\n"
        other.interpreter.reset()

    def test_declining_is_remembered(self, session: Session) -> None:
        make_venv(Path.cwd() / "venv")
        Person(session, REFUSE).do("python", "1")
        assert session.environment.is_layer
        other = Session()
        assert Person(other).do("python", "1")[0] == "done"
        other.interpreter.reset()

    def test_it_is_not_used_without_consent(self, session: Session) -> None:
        make_venv(Path.cwd() / ".venv")
        assert session.do("python", "import sys; print(sys.prefix)").text == f"{session.environment.folder}\n"
        assert Choice.of(os.getcwd()) is None


def test_a_layer_over_the_active_environment_is_mentioned_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    ran = session.do("python", "import sys; print(sys.prefix)")
    assert f"Open Interpreter is installed in your active environment, {sys.prefix}." in ran.text
    assert ran.text.endswith(f"{session.environment.folder}\n")
    other = Session()
    assert other.do("python", "print(1)").text == "1\n"
    other.interpreter.reset()


@pytest.mark.full
def test_in_process_python_installs_into_the_session_environment(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    session.computer.python = "in-process"
    before, env = our_files(), dict(os.environ)
    wheel = write_wheel(tmp_path, "tiny_inside")
    session.do("python", f"%pip install {OFFLINE} {wheel}")
    assert session.do("python", "import tiny_inside; print(tiny_inside.answer)").text == "42\n"
    assert session.do("python", "import subprocess; print(subprocess.getoutput('which pip'))").text == (
        f"{session.environment.folder}/bin/pip\n"
    )
    assert dict(os.environ) == env
    assert our_files() == before


def test_a_fork_continues_in_the_same_environment(session: Session) -> None:
    session.do("python", "left = (n for n in (6, 7))")  # can't be moved to another Python
    fork = session.interpreter.fork()
    try:
        shown = fork.computer.run("python", "import sys; print(next(left), sys.prefix)")
        assert shown[0]["content"] == f"6 {session.environment.folder}\n"
    finally:
        fork.reset()
