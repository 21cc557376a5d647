"""The session environment in a sandbox: code can install packages, and the host never loads them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.app import result_of
from interpreter.app.exports import export
from interpreter.host import processes
from interpreter.runtimes.data_stack import make, stack_folder
from interpreter.runtimes.environments import choose
from interpreter.script.verify import verify
from interpreter.session import APPROVE, Answer
from package_index import package_index
from sandbox.conftest import Inside
from tiny_package import write_wheel
from waiting import until

VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
OFFLINE = "--no-index --no-deps -q --disable-pip-version-check"
# Records which process loads it: its process ID in the sandbox, and its command line.
PLANTED = "import os; print(os.getpid(), open('/proc/self/cmdline').read().split(chr(0))[:2], file=open({path!r}, 'a'))"


def plant(inside: Any, where: Path) -> None:
    """Put code into the session environment that any Python loading it runs."""
    line = PLANTED.format(path=str(where))
    inside.do(
        "shell",
        f"""
        packages=$VIRTUAL_ENV/lib/{VERSION}/site-packages
        for name in planted.pth sitecustomize.py usercustomize.py json.py site.py; do echo "{line}" >$packages/$name; done
        """,
    )


def test_installed_packages_are_available_in_later_sandboxes(contained: Any, workspace: Path, tmp_path: Path) -> None:
    inside: Inside = contained()
    wheel = write_wheel(workspace)
    assert inside.do("shell", f"pip install {OFFLINE} {wheel}").ended == "done"
    assert inside.do("python", "import tiny_thing; print(tiny_thing.answer)").text == "42\n"
    again: Inside = contained()
    assert again.do("python", "import tiny_thing; print(tiny_thing.answer)").text == "42\n"


def test_packages_installed_inside_are_invisible_outside(contained: Any, workspace: Path) -> None:
    inside: Inside = contained()
    inside.do("shell", f"pip install {OFFLINE} {write_wheel(workspace)}")
    sandboxed, outside = (choose(None, {}, str(workspace), sandboxed=each) for each in (True, False))
    assert sandboxed.installed() == [("tiny-thing", "1.0")]
    assert outside.folder != sandboxed.folder
    assert outside.installed() == []


def test_a_read_only_sandbox_cannot_change_the_environment(contained: Any, workspace: Path) -> None:
    inside: Inside = contained(kind="read-only")
    assert "Read-only" in inside.do("shell", 'touch "$VIRTUAL_ENV"/x').text
    ran = inside.do("shell", f"pip install {OFFLINE} {write_wheel(workspace)}")
    assert ran.ended == "done", ran.text  # into the sandbox's home folder, which is temporary
    assert inside.do("python", "import tiny_thing; print(tiny_thing.answer)").text == "42\n"


def test_the_data_stack_can_be_read_and_not_changed(
    contained: Any, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: Inside = contained()
    stack = stack_folder()
    assert "No module named 'tiny_thing'" in inside.do("python", "import tiny_thing").text
    with package_index(tmp_path / "index", monkeypatch) as index:
        write_wheel(index.folder)
        making = make(["tiny_thing"], lambda progress: None)
        until(lambda: making.is_over, "the data stack")
    assert making.problem == ""
    assert inside.do("python", "import tiny_thing; print(tiny_thing.answer)").text == "42\n"  # the session is alive
    change = f"chmod u+w {stack}/packages; echo 'answer = 0' >{stack}/packages/tiny_thing.py; touch {stack}/x"
    assert inside.do("shell", change).text.count("Read-only") == 3
    assert inside.do("shell", "pip install --no-index tiny_thing").ended == "done"  # nothing to do
    read_only: Inside = contained(kind="read-only")
    assert read_only.do("python", "import tiny_thing; print(tiny_thing.answer)").text == "42\n"


def test_other_environments_and_our_state_are_hidden(contained: Any, home: Path) -> None:
    other = choose(None, {}, "/usr")
    other.prepare()
    inside: Inside = contained()
    listed = inside.do("shell", f"ls -A {Path(other.folder).parents[1]}/* {other.folder} 2>&1").text
    assert "sandboxed" in listed
    assert "project" not in listed and "usr-" not in listed.replace(other.folder, "")


def test_the_host_starts_no_program_from_the_environment(contained: Any, workspace: Path) -> None:
    inside: Inside = contained()
    inside.do("shell", "cp /bin/true $VIRTUAL_ENV/bin/git")
    folder = inside.context.python_environment().folder
    assert processes.which(f"{folder}/bin/git") is None
    assert processes.which(f"{folder}/bin/python") is None


@pytest.mark.full
def test_the_host_follows_no_links_in_the_environment(contained: Any, tmp_path: Path) -> None:
    inside: Inside = contained()
    victim = tmp_path / "victim"
    victim.mkdir()
    inside.do(
        "shell", f'cd "$VIRTUAL_ENV" && rm -r bin pyvenv.cfg && ln -s {victim} bin && ln -s {victim}/x pyvenv.cfg'
    )
    contained().do("python", "1")
    assert list(victim.iterdir()) == []
    assert contained().do("shell", "pip --version").text.startswith("pip ")


@pytest.mark.usefixtures("sandbox_available", "no_strays")
def test_code_planted_in_the_environment_runs_only_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never in the init process or on the host: not for exports, --verify or versions, with the sandbox on or off."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    interpreter = OpenInterpreter(auto_run=True)
    interpreter.sandbox, interpreter.workspace = "workspace", str(workspace)
    computer = interpreter.computer

    class Sessions:
        def do(self, language: str, code: str) -> Any:
            return computer.run(language, code)

    ran = workspace / "ran"
    plant(Sessions(), ran)
    computer.terminate()
    interpreter.messages = [
        {"role": "user", "type": "message", "content": "go"},
        {"role": "assistant", "type": "code", "format": "python", "content": "print(open('out.txt', 'w').write('x'))"},
        {"role": "computer", "type": "console", "format": "output", "content": "1"},
    ]
    computer.run("python", "open('out.txt', 'w').write('x')")
    computer.runtimes.describe_languages()
    with interpreter.session.questions.answerable(("confirm",), lambda question: Answer(APPROVE)):
        exported = result_of(export(interpreter, "script", "out.py"))
        assert exported is not None
        report = result_of(verify(interpreter, exported))
    assert report is not None and report.ran, report
    loaded = ran.read_text().splitlines()
    assert any("enter.py" in line for line in loaded)  # the worker, which is forked from the first process
    assert not any(line.startswith("1 ") and "enter.py" in line for line in loaded), loaded
    assert not any(int(line.split()[0]) > 1000 for line in loaded), loaded  # on the host
    interpreter.sandbox = "off"
    before = ran.read_text()
    computer.run("python", "import json, site")
    computer.runtimes.describe_languages()
    assert ran.read_text() == before
    interpreter.reset()
