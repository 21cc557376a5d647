"""The data stack: packages that all session environments share, made in the background."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import UsageError
from interpreter.runtimes import data_stack
from interpreter.runtimes.data_stack import (
    Making,
    agree,
    installed,
    make,
    making,
    remove_stack,
    stack_folder,
    status,
)
from package_index import PackageIndex, package_index
from python_runtimes import Ran
from tiny_package import write_wheel
from waiting import LIMIT, in_thread, until

pytestmark = pytest.mark.usefixtures("no_strays")
SHOWN = "import tiny_thing; print(tiny_thing.answer)"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    with package_index(tmp_path / "index", monkeypatch) as index:
        write_wheel(index.folder)
        yield index


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    data_stack.cancel_all()


@pytest.fixture
def interpreter() -> Iterator[OpenInterpreter]:
    made = session()
    yield made
    made.reset()


def session() -> OpenInterpreter:
    made = OpenInterpreter()
    made.computer.data_stack = ["tiny_thing"]
    return made


def run(interpreter: OpenInterpreter, language: str, code: str) -> Ran:
    return Ran([dict(chunk) for chunk in interpreter.computer.run(language, code, stream=True)])


def begin(*requirements: str, again: bool = False) -> tuple[Making, list[str]]:
    """Begin to make it; what the front end shows."""
    shown: list[str] = []
    agree(True)
    return make(requirements or ["tiny_thing"], lambda progress: shown.append(progress), again), shown


def finish(making: Making) -> str:
    """Wait for the end; why it failed, if it did."""
    until(lambda: making.is_over, "the data stack")
    return making.problem


# -- in sessions -------------------------------------------------------------------------------------------------------


def test_all_session_environments_import_it(
    interpreter: OpenInterpreter, index: PackageIndex, tmp_path_factory: pytest.TempPathFactory
) -> None:
    making, shown = begin()
    assert finish(making) == ""
    assert "downloading tiny_thing" in " ".join(shown)
    assert shown[-1] == ""
    stack = installed()
    assert (stack["requirements"], stack["packages"]) == (["tiny_thing"], 1) and stack["size"] > 100
    assert run(interpreter, "python", SHOWN).text == "42\n"
    assert run(interpreter, "shell", f"python -c '{SHOWN}'").text == "42\n"
    os.chdir(tmp_path_factory.mktemp("another"))
    other = session()
    assert run(other, "python", SHOWN).text == "42\n"
    other.reset()


def test_pip_in_a_session_has_its_packages_and_upgrades_go_to_the_session(
    interpreter: OpenInterpreter, index: PackageIndex
) -> None:
    finish(begin()[0])
    before = sorted(os.listdir(stack_folder() / "packages"))
    assert "Already installed: tiny_thing" in run(interpreter, "shell", "pip install tiny_thing").text
    assert interpreter.computer.context.python_environment().installed() == []
    write_wheel(index.folder, version="2.0", source="answer = 43\n")
    run(interpreter, "shell", "pip install --upgrade tiny_thing; pip uninstall -y tiny_other 2>&1")
    assert interpreter.computer.context.python_environment().installed() == [("tiny-thing", "2.0")]
    assert run(interpreter, "python", SHOWN).text == "43\n"
    run(interpreter, "shell", "pip uninstall -y tiny_thing; pip uninstall -y tiny_thing")
    assert run(interpreter, "shell", f"python -c '{SHOWN}'").text == "42\n"
    assert sorted(os.listdir(stack_folder() / "packages")) == before


def test_a_session_that_is_alive_sees_it_once_it_is_made(interpreter: OpenInterpreter, index: PackageIndex) -> None:
    assert "No module named 'tiny_thing'" in run(interpreter, "python", f"kept = 1\n{SHOWN}").text
    finish(begin()[0])
    assert run(interpreter, "python", f"{SHOWN}; print(kept)").text == "42\n1\n"


@pytest.mark.full
def test_an_environment_of_the_users_own_is_left_alone(
    interpreter: OpenInterpreter, index: PackageIndex, tmp_path: Path
) -> None:
    finish(begin()[0])
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    interpreter.computer.python = str(venv)
    assert interpreter.computer.context.python_environment().stack == ""
    assert "No module named 'tiny_thing'" in run(interpreter, "python", SHOWN).text


@pytest.mark.full
def test_a_warm_parent_imports_from_it(interpreter: OpenInterpreter, index: PackageIndex) -> None:
    finish(begin()[0])
    interpreter.computer.preload = ["tiny_thing"]
    assert run(interpreter, "python", "import sys; print('tiny_thing' in sys.modules)").text == "True\n"


@pytest.mark.full
def test_uv_makes_it_where_it_is_installed(
    interpreter: OpenInterpreter, index: PackageIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    for name, address in {"UV": str(index.folder), "PIP": "/nowhere"}.items():
        monkeypatch.setenv(f"{name}_FIND_LINKS", address)
    assert finish(begin()[0]) == ""
    assert run(interpreter, "python", SHOWN).text == "42\n"


# -- while it is being made ----------------------------------------------------------------------------------------------


def test_a_block_that_needs_it_waits_and_others_do_not(interpreter: OpenInterpreter, index: PackageIndex) -> None:
    index.hold()
    making, _ = begin()
    assert index.asked.wait(LIMIT)
    assert run(interpreter, "python", "import json; print('at once')").text == "at once\n"
    assert "No module named 'other'" in run(interpreter, "python", "import other").text
    thread, found = in_thread(run, interpreter, "python", f"import json, tiny_thing as t\n{SHOWN}")
    until(lambda: making.waiting, "the block to wait")
    index.release()
    thread.join()
    assert found[0].text == "Waiting for tiny_thing: the data packages are being installed.\n42\n"
    waiting = next(chunk for chunk in found[0].chunks if "Waiting" in str(chunk.get("content")))
    assert waiting["recipient"] == "user"  # the model sees the result alone


def test_waiting_can_be_interrupted(interpreter: OpenInterpreter, index: PackageIndex) -> None:
    index.hold()
    making, _ = begin()
    thread, found = in_thread(run, interpreter, "python", SHOWN)
    until(lambda: making.waiting, "the block to wait")
    interpreter.cancel()
    thread.join(LIMIT)
    assert found[0].text == "Waiting for tiny_thing: the data packages are being installed.\n"
    interpreter.session.log.close()
    events = interpreter.session.events()
    ends = [event.data["outcome"] for event in events if event.kind == "action" and event.data["state"] == "ended"]
    assert ends == ["interrupted"]
    assert not making.is_over


ELSEWHERE = """
from interpreter.runtimes.data_stack import agree, make
agree(True)
make(["tiny_thing"], lambda progress: print(progress, flush=True))
input()
"""


def test_another_process_makes_it_and_a_block_here_waits(interpreter: OpenInterpreter, index: PackageIndex) -> None:
    index.hold()
    other = subprocess.Popen([sys.executable, "-c", ELSEWHERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert index.asked.wait(LIMIT)
    busy = making()
    assert busy is not None
    thread, found = in_thread(run, interpreter, "python", SHOWN)
    until(lambda: busy.waiting, "the block to wait")
    assert "being installed" in status(["tiny_thing"])
    index.release()
    thread.join(LIMIT)
    assert found[0].text.endswith("are being installed.\n42\n")
    other.communicate(b"\n")


def test_one_that_was_interrupted_is_made_again(index: PackageIndex) -> None:
    index.hold()
    other = subprocess.Popen([sys.executable, "-c", ELSEWHERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert index.asked.wait(LIMIT)
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert not installed() and making() is None
    assert "The installation was interrupted." in status(["tiny_thing"])
    (stack_folder() / f"making-{other.pid}").mkdir(exist_ok=True)
    index.release()
    assert finish(begin()[0]) == ""
    assert installed()
    assert sorted(os.listdir(stack_folder())) == ["choice", "lock", "packages"]


@pytest.mark.full
def test_the_end_of_the_program_ends_the_installer(index: PackageIndex) -> None:
    index.hold()
    other = subprocess.Popen([sys.executable, "-c", ELSEWHERE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert index.asked.wait(LIMIT)
    other.communicate(b"\n")
    assert other.returncode == 0
    assert not installed()


# -- upgrading, failing, removing ------------------------------------------------------------------------------------------


def test_an_upgrade_replaces_it(interpreter: OpenInterpreter, index: PackageIndex) -> None:
    finish(begin()[0])
    assert run(interpreter, "shell", f"python -c '{SHOWN}'").text == "42\n"
    write_wheel(index.folder, version="2.0", source="answer = 43\n")
    finish(begin()[0])  # not automatically
    assert run(interpreter, "shell", f"python -c '{SHOWN}'").text == "42\n"
    finish(begin(again=True)[0])
    assert run(interpreter, "shell", f"python -c '{SHOWN}'").text == "43\n"


def test_a_failed_upgrade_keeps_the_stack(index: PackageIndex) -> None:
    finish(begin()[0])
    (index.folder / "broken-1.0-py3-none-any.whl").write_bytes(b"no wheel")
    making, shown = begin("tiny_thing", "broken", again=True)
    assert finish(making)
    assert shown[-1] == "not installed, see %env"
    assert installed()["requirements"] == ["tiny_thing"]
    assert "The last attempt" in status(["tiny_thing"])


def test_a_package_without_a_wheel_is_left_out(index: PackageIndex) -> None:
    assert finish(begin("tiny_thing", "not_for_this_python")[0]) == ""
    assert installed()["packages"] == 1
    assert "Not available for this Python: not_for_this_python." in status(["tiny_thing", "not_for_this_python"])


def test_a_missing_network_is_reported(index: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    assert "there seems to be no network connection" in finish(begin("tiny_thing", "another")[0])
    assert status(["tiny_thing"]).endswith("no network connection. To try again: %env stack update")
    assert not installed()


def test_it_can_be_removed(interpreter: OpenInterpreter, index: PackageIndex) -> None:
    finish(begin()[0])
    run(interpreter, "python", "1")
    remove_stack()
    assert not installed()
    assert "No module named 'tiny_thing'" in run(interpreter, "python", SHOWN).text
    assert status(["tiny_thing"]) == (
        "The data packages (tiny_thing) are not installed. To install them: %env stack update"
    )


@pytest.mark.parametrize("content", ["", "{}", "[1]"])
def test_a_damaged_one_is_not_complete(content: str) -> None:
    packages = stack_folder() / "packages"
    packages.mkdir(parents=True)
    (packages / ".complete").write_text(content)
    assert not installed()


def test_its_folders_are_read_only(index: PackageIndex) -> None:
    finish(begin()[0])
    assert not os.stat(stack_folder() / "packages").st_mode & 0o222
    assert json.loads((stack_folder() / "packages" / ".complete").read_text())["requirements"] == ["tiny_thing"]


def test_a_data_folder_that_cant_be_written_is_named(
    interpreter: OpenInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("taken").write_text("x")
    monkeypatch.setenv("XDG_DATA_HOME", os.path.abspath("taken"))
    with pytest.raises(UsageError, match=r"Can't write in .*taken"):
        agree(True)
    assert "can't write in" in run(interpreter, "python", "print(6 * 7)").text
