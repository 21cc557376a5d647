"""The Python environment at the prompt: offers, %python, %env and %pip."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from model_server import ModelServer, text, tool_call
from terminal.person import someone
from tiny_package import write_wheel

pytestmark = pytest.mark.usefixtures("no_strays")


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip finds packages in, instead of on the network."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in {"CONFIG_FILE": os.devnull, "NO_INDEX": "1", "FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return tmp_path


@pytest.mark.full
def test_one_key_installs_a_missing_package_and_runs_the_block(index: Path) -> None:
    write_wheel(index)
    replies = [tool_call("python", "import tiny_thing\nprint('it is', tiny_thing.answer)"), text("Done then.")]
    with ModelServer(replies) as server, someone(server=server) as person:
        person.says("go")
        person.answers("Run", "y")
        person.answers("Install tiny_thing and run the block? (y/n)", "y")
        person.sees("it is 42")
        person.sees("Done then.")
        person.says("%env")
        person.sees("a session environment")
        person.sees("tiny-thing 1.0")
        person.says("%env remove tiny-thing")
        person.answers("Uninstall tiny-thing?", "y")
        person.sees("Successfully uninstalled")
        person.says("%pip install tiny-thing")
        person.sees("Successfully installed")
        person.says("%env reset")
        person.answers("Remove 1 package from the session environment?", "y")
        person.sees("Removed.")
        person.says("%env")
        person.sees("No packages are installed in it.")
        assert person.leaves() == 0


@pytest.mark.full
def test_in_auto_mode_the_model_gets_the_install_command(index: Path) -> None:
    with ModelServer([tool_call("python", "import tiny_thing"), text("I see.")]) as server:
        with someone("-y", server=server) as person:
            person.says("go")
            person.sees("I see.")
            assert "(y/n)" not in person.screen
            assert person.leaves() == 0
        assert "install it with: %pip install tiny_thing" in str(server.requests[-1].messages)


def test_switching_environments_keeps_the_variables(tmp_path: Path) -> None:
    venv = Path.cwd() / "theirs"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    with ModelServer() as server, someone(server=server) as person:
        person.says(">>> n = 41; f = open('/dev/null'); g = (i for i in [1]); 'be' + 'gun'")
        person.sees("'begun'")
        person.says("!export LATER=here; true")
        person.says("%python theirs")
        person.sees("Not carried over: ")
        person.sees("chosen with %python")
        person.says(">>> import sys; print(n + 1, sys.prefix.endswith('theirs'))")
        person.sees("42 True")
        person.says("!echo $LATER; which python | grep -c theirs")
        person.sees("here")
        person.says("%python session")
        person.says(">>> print(n + 2, sys.prefix.endswith('open'))")
        person.sees("43 True")
        person.says("%python nowhere")
        person.sees("There is no Python at nowhere.")
        assert person.leaves() == 0


def test_the_projects_environment_is_offered() -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], check=True)
    with ModelServer() as server, someone(server=server) as person:
        person.says("!which python | tail -c 17")
        person.answers("This folder has its own Python environment, .venv.", "y")
        person.sees(".venv/bin/python")
        person.says("%python")
        person.sees("the environment of this project")
        assert person.leaves() == 0
