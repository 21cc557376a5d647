"""Splitting a live session: both sides have the same variables and are independent from then on."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api import Computer
from interpreter.errors import NotPreviewableError, NotRestorableError
from interpreter.runtimes.state import Restored
from runtimes.test_snapshots import UNSHARE
from runtimes.test_snapshots_libraries import DEFINED, NATIVE_THREAD, SHOWN
from sampling import some
from waiting import in_thread, is_running, until, until_ended, worker_of

Make = Callable[[], Computer]


@pytest.fixture
def make(no_strays: None) -> Iterator[Make]:
    """Makes computers; at the end none of their processes may be left."""
    made: list[Computer] = []

    def computer() -> Computer:
        made.append(OpenInterpreter().computer)
        return made[-1]

    yield computer
    for each in made:
        each.terminate()


def text(computer: Computer, language: str, code: str) -> str:
    return "".join(message["content"] for message in computer.run(language, code) if message["type"] == "console")


def python(computer: Computer, code: str) -> str:
    return text(computer, "python", code)


def split_computers(make: Make, code: str = "import os; shared = [1]; same = shared") -> tuple[Computer, Computer]:
    first, second = make(), make()
    python(first, code)
    assert str(first.runtimes.split(second.runtimes)["Python"]) == ""
    return first, second


def test_both_sides_have_the_variables_and_change_them_independently(make: Make) -> None:
    first, second = split_computers(make)
    assert python(second, "shared.append(2); print(same)") == "[1, 2]\n"
    assert python(first, "print(same)") == "[1]\n"
    assert python(first, "shared.append(3); print(same)") == "[1, 3]\n"
    assert python(second, "print(same)") == "[1, 2]\n"
    assert python(first, "print(os.getpid())") != python(second, "print(os.getpid())")


@pytest.mark.parametrize("ends", [0, 1])
def test_terminating_one_side_keeps_the_other(make: Make, ends: int) -> None:
    both = split_computers(make)
    both[ends].terminate()
    assert python(both[1 - ends], "print(same)") == "[1]\n"
    assert python(both[1 - ends], "shared.append(2); os._exit(1)").startswith("The Python session ended")
    assert python(both[1 - ends], "print(same)") == "[1]\n"


@pytest.mark.parametrize("dies", some(1, [0, 1]))
def test_a_crash_of_one_side_keeps_the_other(make: Make, dies: int) -> None:
    both = split_computers(make)
    for code in ("shared.append(2)", "os._exit(1)", "import signal; os.kill(os.getppid(), signal.SIGKILL)"):
        python(both[dies], code)
    assert python(both[1 - dies], "print(same)") == "[1]\n"
    session = both[dies].runtimes.runtime("python").runtime  # type: ignore[attr-defined]
    assert session.control.over.wait(60)
    assert python(both[dies], "print('same' in globals())") == "False\n"  # everything ended with its supervisor


def test_both_sides_can_be_restored(make: Make) -> None:
    first, second = split_computers(make)
    mark = second.mark()
    assert first.runtimes.state("python") == mark.states["Python"]
    for n, computer in enumerate((first, second)):
        python(computer, f"shared.append({n})")
    for computer in (first, second):
        computer.go_back(mark)
        assert python(computer, "print(same)") == "[1]\n"


def test_a_split_session_can_be_split_again(make: Make) -> None:
    first, second = split_computers(make)
    third = make()
    python(second, "shared.append(2)")
    second.runtimes.split(third.runtimes)
    python(third, "shared.append(3)")
    second.terminate()
    assert python(first, "print(same)") == "[1]\n"
    first.terminate()
    assert python(third, "print(same)") == "[1, 2, 3]\n"


def test_child_processes_belong_to_one_side(make: Make) -> None:
    first, second = split_computers(make, "import os, subprocess; child = subprocess.Popen(['sleep', '1000'])")
    python(second, "other = subprocess.Popen(['sh', '-c', 'sleep 1000 & sleep 1001'])")
    started = [
        psutil.Process(int(python(first, "print(child.pid)"))),
        psutil.Process(int(python(second, "print(other.pid)"))),
    ]
    first.terminate()
    until_ended(started[:1])
    assert is_running(started[1])
    second.terminate()
    until_ended(started)


def test_a_new_worker_of_the_second_side_is_clean(make: Make) -> None:
    """Its supervisor's memory holds nothing that the user's code left."""
    _, second = split_computers(
        make, "import os, json; json.mine = 1; os.environ['MINE'] = '1'; os.chdir('/'); os.umask(0)"
    )
    second.undo_snapshots = 0
    python(second, "os._exit(1)")
    assert python(second, "import json, os; print(hasattr(json, 'mine'), os.environ.get('MINE'))") == "False None\n"


def test_lost_threads_are_listed(make: Make) -> None:
    first, second = make(), make()
    python(
        first, "import threading; over = threading.Event()\nthreading.Thread(target=over.wait, name='watcher').start()"
    )
    assert "the thread watcher" in str(first.runtimes.split(second.runtimes)["Python"])
    assert python(second, "print(over.is_set())") == "False\n"
    python(first, "over.set()")


def test_variables_move_to_a_new_process_if_threads_cannot_be_split(make: Make) -> None:
    first, second = make(), make()
    python(first, NATIVE_THREAD)
    python(first, DEFINED)
    assert "steps (generator)" in str(first.runtimes.split(second.runtimes)["Python"])
    for computer in (second, first):
        assert python(computer, SHOWN) == "13 2 base3 Pair(a=1, b=[2]) True True 16 [1]\n"


@pytest.mark.full
def test_another_python_gets_all_picklable_variables(make: Make, tmp_path: Path) -> None:
    first, second = make(), make()
    python(first, f"import os\n{DEFINED}")
    second.python = str(tmp_path / "python")
    Path(second.python).write_text(f'#!/bin/sh\nOTHER=1 exec {sys.executable} "$@"\n')
    Path(second.python).chmod(0o755)
    assert "steps (generator)" in str(first.runtimes.split(second.runtimes)["Python"])
    for computer in (second, first):
        assert python(computer, SHOWN) == "13 2 base3 Pair(a=1, b=[2]) True True 16 [1]\n"
    first.terminate()
    assert python(second, "print(offset)") == "10\n"


def test_variables_moved_to_another_python_can_be_split_again(make: Make, tmp_path: Path) -> None:
    first, second, third = make(), make(), make()
    python(first, "n = 1")
    second.python = third.python = os.path.join(sys.prefix, "bin", ".", "python")  # the same Python by another name
    first.runtimes.split(second.runtimes)
    second.runtimes.split(third.runtimes)
    assert python(third, "print(n)") == "1\n"


def test_large_data_can_be_split(make: Make) -> None:
    first, second = split_computers(make, "import os; held = bytearray(b'x') * (300 << 20)")
    assert python(second, "held[-1] = 0; print(len(held), held[0])") == "314572800 120\n"
    assert python(first, "print(held[-1])") == "120\n"


def test_the_shell_is_split_too(make: Make) -> None:
    first, second = make(), make()
    text(first, "shell", "v=1; list=(a 'b c'); f() { echo f$v; }; alias g='echo g'; export E=1; cd /usr; umask 027")
    assert first.runtimes.split(second.runtimes)["Shell"] == Restored()
    assert text(second, "shell", "f; g; echo ${#list[@]} $E $PWD; umask; v=2") == "f1\ng\n2 1 /usr\n0027\n"
    assert text(first, "shell", "f; cd /") == "f1\n"
    assert text(second, "shell", "f; pwd") == "f2\n/usr\n"
    state = second.runtimes.state("shell")
    assert state is not None
    text(second, "shell", "v=3")
    second.runtimes.runtime("shell").restore(state)
    assert text(second, "shell", "f") == "f2\n"


def test_the_second_side_can_be_split_before_its_first_block(make: Make) -> None:
    first, second, third = make(), make(), make()
    python(first, "n = 1")
    text(first, "shell", "v=1")
    first.runtimes.split(second.runtimes)
    assert [variable.name for variable in second.variables("shell")["Shell"]] == ["v"]
    second.runtimes.split(third.runtimes)
    assert python(third, "print(n)") == text(third, "shell", "echo $v") == "1\n"


def test_the_second_side_can_start_in_another_folder(make: Make, tmp_path: Path) -> None:
    first, second = make(), make()
    python(first, "import os; os.chdir('/usr')")
    text(first, "shell", "v=1")
    first.runtimes.split(second.runtimes)
    second.runtimes.context.cwd = str(tmp_path)
    assert text(second, "shell", "pwd; echo $v") == f"{tmp_path}\n1\n"
    assert python(second, "print(os.getcwd())") == f"{tmp_path}\n"
    assert python(first, "print(os.getcwd())") == "/usr\n"


@pytest.mark.needs("node")
def test_javascript_cannot_be_split(make: Make) -> None:
    first, second = make(), make()
    text(first, "javascript", "let x = 1")
    refusal = first.runtimes.split(second.runtimes)["JavaScript"]
    assert isinstance(refusal, NotRestorableError)
    assert "Run its blocks again" in str(refusal)
    assert text(second, "javascript", "console.log(typeof x)") == "undefined\n"


def test_in_process_python_cannot_be_split(make: Make) -> None:
    first, second = make(), make()
    first.python = "in-process"
    python(first, "x = 1")
    assert "in-process" in str(first.runtimes.split(second.runtimes)["Python"])


def test_runtimes_that_never_ran_are_not_started(make: Make) -> None:
    first, second = make(), make()
    assert first.runtimes.split(second.runtimes) == {}
    assert not second.runtimes.is_alive("python")


# -- while a block is running ----------------------------------------------------------------------------------------

BEFORE = "import os; values = [1]; values.append(2)"
CHANGES = "values.append(3); made = 1; os.environ['MADE'] = '1'; os.chdir('/')"
VALUES = "print(values, 'made' in globals(), os.environ.get('MADE'), os.getcwd())"


class Waiting:
    """A block that runs in another thread, and waits for a named pipe."""

    def __init__(self, computer: Computer, code: str = CHANGES, language: str = "python") -> None:
        self._folder = Path(tempfile.mkdtemp())
        self._pipe, started = self._folder / "pipe", self._folder / "started"
        os.mkfifo(self._pipe)
        if language == "shell":
            code += f"; echo > {started}; cat {self._pipe}; echo over"
        else:
            code += f"\nopen({str(started)!r}, 'w').close(); print(open({str(self._pipe)!r}).read() + 'over')"
        self._thread, self._output = in_thread(text, computer, language, code)
        until(started.exists, "the block to begin")

    def end(self) -> str:
        """Let the block end; returns its output."""
        self._pipe.write_text("")
        return self.output()

    def output(self) -> str:
        self._thread.join(60)
        shutil.rmtree(self._folder)
        return str(self._output[0])


def split_python(first: Computer, second: Computer) -> None:
    assert first.runtimes.split(second.runtimes)["Python"] == Restored()


def test_a_copy_made_while_a_block_runs_has_the_state_before_it(make: Make) -> None:
    first, second = make(), make()
    python(first, BEFORE)
    mark, place = first.mark(), os.getcwd()
    block = Waiting(first)
    split_python(first, second)
    assert python(second, VALUES) == f"[1, 2] False None {place}\n"
    assert block.end() == "over\n"
    assert python(first, VALUES) == "[1, 2, 3] True 1 /\n"
    first.go_back(mark)
    assert python(first, VALUES) == f"[1, 2] False None {place}\n"
    assert second.runtimes.state("python") != first.runtimes.state("python")


def test_several_copies_of_one_running_block_and_a_copy_of_a_copy(make: Make) -> None:
    first, second, third, fourth = make(), make(), make(), make()
    python(first, BEFORE)
    block = Waiting(first)
    split_python(first, second)
    split_python(first, third)
    python(second, "values.append('second')")
    other = Waiting(second, "values.append('unfinished')")
    split_python(second, fourth)
    assert block.end() == other.end() == "over\n"
    shown = [python(computer, "print(values)") for computer in (first, second, third, fourth)]
    assert shown == [
        "[1, 2, 3]\n",
        "[1, 2, 'second', 'unfinished']\n",
        "[1, 2]\n",
        "[1, 2, 'second']\n",
    ]


def test_a_copy_of_a_copy_in_its_first_block_has_what_it_began_with(make: Make) -> None:
    first, second, third = make(), make(), make()
    python(first, BEFORE)
    block = Waiting(first)
    split_python(first, second)
    other = Waiting(second)
    split_python(second, third)
    assert python(third, "print(values)") == "[1, 2]\n"
    assert block.end() == other.end() == "over\n"


def test_a_copy_made_during_the_first_block_is_empty(make: Make) -> None:
    first, second = make(), make()
    first.undo_snapshots = 0
    block = Waiting(first, "import os; made = 1")
    assert first.runtimes.split(second.runtimes)["Python"] == Restored()
    assert python(second, "print('made' in globals())") == "False\n"
    assert block.end() == "over\n"
    block = Waiting(first, "made=1", "shell")
    assert first.runtimes.split(make().runtimes)["Shell"] == Restored()
    assert block.end() == "over\n"


def test_without_snapshots_a_running_block_cannot_be_copied(make: Make) -> None:
    first, second = make(), make()
    first.undo_snapshots = 0
    python(first, BEFORE)
    block = Waiting(first)
    refusal = first.runtimes.split(second.runtimes)["Python"]
    assert isinstance(refusal, NotRestorableError)
    assert "no snapshot of the variables before it was kept" in str(refusal)
    assert block.end() == "over\n"
    assert python(second, "print('values' in globals())") == "False\n"


@pytest.mark.needs("node")
def test_a_running_language_without_copies_is_refused_as_an_idle_one(make: Make) -> None:
    first, second = make(), make()
    text(first, "javascript", "let x = 1")
    chunks = first.run("javascript", "console.log(1); await new Promise(() => 0)", stream=True)
    next(chunk for chunk in chunks if chunk.get("format") == "output")
    assert isinstance(first.runtimes.split(second.runtimes)["JavaScript"], NotRestorableError)
    chunks.close()


def test_a_session_can_be_split_by_the_thread_that_reads_its_block(make: Make) -> None:
    """Also when it lags so far behind that nothing more is read from the block."""
    first, second = make(), make()
    python(first, BEFORE)
    chunks = first.run("python", "values.append(3); print('x' * (32 << 20)); values.append(4)", stream=True)
    next(chunk for chunk in chunks if chunk.get("format") == "output")
    split_python(first, second)
    assert python(second, "print(values)") == "[1, 2]\n"
    assert sum(len(chunk["content"]) for chunk in chunks if chunk.get("format") == "output") > 1 << 20
    assert python(first, "print(values)") == "[1, 2, 3, 4]\n"


def test_a_block_that_has_ended_unread_counts_as_finished(make: Make) -> None:
    first, second = make(), make()
    python(first, BEFORE)
    chunks = first.run("python", "print(1); values.append(3); os.chdir('/')", stream=True)
    next(chunk for chunk in chunks if chunk.get("format") == "output")
    runtime = first.runtimes.runtime("python").runtime  # type: ignore[attr-defined]
    assert runtime.block.ended.wait(60)
    split_python(first, second)
    assert python(second, "print(values, os.getcwd())") == "[1, 2, 3] /\n"
    list(chunks)
    assert python(first, "print(values, os.getcwd())") == "[1, 2, 3] /\n"


def test_a_copy_made_while_a_preview_is_open_has_nothing_of_it(make: Make) -> None:
    first, second = make(), make()
    python(first, BEFORE)
    try:
        preview = first.preview("python", "values.append(3)").run()
    except NotPreviewableError as error:
        pytest.skip(str(error))
    split_python(first, second)
    assert python(second, "print(values)") == "[1, 2]\n"
    preview.apply()
    assert python(first, "print(values)") == "[1, 2, 3]\n"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_running_shell_is_copied_from_the_state_before_its_block(make: Make, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    first, second, third = make(), make(), make()
    first.shell = second.shell = third.shell = shell
    place = os.getcwd()
    text(first, "shell", "v=1; f() { echo f$v; }; export E=1")
    mark = first.mark()
    block = Waiting(first, "v=2; export E=2; cd /", "shell")
    assert first.runtimes.split(second.runtimes)["Shell"] == Restored()
    other = Waiting(second, "v=3; export E=3; cd /usr", "shell")
    assert second.runtimes.split(third.runtimes)["Shell"] == Restored()
    assert text(third, "shell", "f; echo $E $PWD") == f"f1\n1 {place}\n"
    assert block.end() == other.end() == "over\n"
    assert text(first, "shell", "f; echo $E $PWD") == "f2\n2 /\n"
    assert text(second, "shell", "f; echo $E $PWD") == "f3\n3 /usr\n"
    first.go_back(mark)
    assert text(first, "shell", "f; echo $E $PWD") == f"f1\n1 {place}\n"


def test_a_shell_that_returned_to_a_state_is_copied_from_there(make: Make) -> None:
    first, second = make(), make()
    text(first, "shell", "v=1")
    mark = first.mark()
    text(first, "shell", "v=2")
    first.go_back(mark)
    block = Waiting(first, "v=3", "shell")
    assert first.runtimes.split(second.runtimes)["Shell"] == Restored()
    assert text(second, "shell", "echo $v") == "1\n"
    assert block.end() == "over\n"


def test_threads_that_cannot_be_copied_are_listed_while_a_block_runs(make: Make) -> None:
    first, second = make(), make()
    python(first, "import threading; over = threading.Event(); values = [1]")
    python(first, "threading.Thread(target=over.wait, name='watcher').start()")
    block = Waiting(first, "values.append(2)")
    assert "the thread watcher" in str(first.runtimes.split(second.runtimes)["Python"])
    assert python(second, "print(values, over.is_set())") == "[1] False\n"
    assert block.end() == "over\n"
    python(first, "over.set()")


def test_variables_move_to_a_new_process_while_a_block_runs(make: Make) -> None:
    first, second = make(), make()
    python(first, NATIVE_THREAD)
    python(first, DEFINED)
    block = Waiting(first, "base = 0")
    assert "steps (generator)" in str(first.runtimes.split(second.runtimes)["Python"])
    assert python(second, SHOWN) == "13 2 base3 Pair(a=1, b=[2]) True True 16 [1]\n"
    assert block.end() == "over\n"


def test_copies_of_a_running_session_leave_no_process(make: Make) -> None:
    first = make()
    python(first, BEFORE)
    block = Waiting(first)
    supervisor = supervisor_of(first)
    before = {process.pid for process in supervisor.children(recursive=True)}
    for _ in range(20):
        copy = make()
        split_python(first, copy)
        assert python(copy, "print(values)") == "[1, 2]\n"
        copy.terminate()
    until(lambda: {process.pid for process in supervisor.children(recursive=True)} == before, "the copies to be gone")
    assert block.end() == "over\n"


def supervisor_of(computer: Computer) -> psutil.Process:
    worker = worker_of(computer.runtimes.runtime("python").runtime)  # type: ignore[attr-defined]
    supervisor = worker.parent()
    assert supervisor is not None
    return supervisor


def snapshot_of(computer: Computer) -> psutil.Process:
    """The snapshot of the state before the running block."""
    worker = worker_of(computer.runtimes.runtime("python").runtime)  # type: ignore[attr-defined]
    return max(worker.children(), key=psutil.Process.create_time)


@pytest.mark.parametrize("killed", ["snapshot", "worker", "supervisor", "terminated"])
def test_a_copy_of_a_running_session_outlives_what_it_came_from(make: Make, killed: str) -> None:
    first, second = make(), make()
    python(first, BEFORE)
    block = Waiting(first)
    split_python(first, second)
    worker = worker_of(first.runtimes.runtime("python").runtime)  # type: ignore[attr-defined]
    if killed == "terminated":
        first.terminate()
    else:
        {"snapshot": snapshot_of(first), "worker": worker, "supervisor": supervisor_of(first)}[killed].kill()
    assert block.end() == "over\n" if killed == "snapshot" else block.output() != "over\n"
    assert python(second, "print(values)") == "[1, 2]\n"
    python(second, "values.append(5); os._exit(1)")
    assert python(second, "print(values)") == "[1, 2]\n"


def test_a_snapshot_that_was_killed_is_not_copied(make: Make) -> None:
    first, second = make(), make()
    python(first, BEFORE)
    block = Waiting(first)
    snapshot_of(first).kill()
    assert isinstance(first.runtimes.split(second.runtimes)["Python"], NotRestorableError)
    assert block.end() == "over\n"
    assert python(first, "print(values)") == "[1, 2, 3]\n"


@pytest.mark.parametrize("seed", some(4, range(40)))
def test_whatever_is_killed_while_a_copy_is_made(make: Make, seed: int) -> None:
    """A process of the copy, or the snapshot, ends at any moment: the copy works or is refused, and its origin goes on."""
    chance = random.Random(seed)
    first, second = make(), make()
    python(first, BEFORE)
    block = Waiting(first)
    snapshot, supervisor = snapshot_of(first), supervisor_of(first)
    known = {process.pid for process in supervisor.children(recursive=True)} - {snapshot.pid}
    thread, outcomes = in_thread(first.runtimes.split, second.runtimes)
    time.sleep(chance.random() * 0.04)
    made = [process for process in supervisor.children(recursive=True) if process.pid not in known]
    for process in chance.sample(made, min(len(made), chance.randint(1, 3))):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    thread.join(100)
    assert isinstance(outcomes[0], dict)
    python(second, "1")  # it may have been made before its processes were killed
    assert python(second, "print(1)") == "1\n"
    assert block.end() == "over\n"
    assert python(first, "print(values)") == "[1, 2, 3]\n"


HOST = """
import os, sys
from interpreter import OpenInterpreter
first, second = OpenInterpreter().computer, OpenInterpreter().computer
first.run("python", "import subprocess; child = subprocess.Popen(['sleep', '1000'])")
first.runtimes.split(second.runtimes)
second.run("python", "child = subprocess.Popen(['sleep', '1000'])")
if sys.argv[1] == "first":
    first.terminate()
print("both", flush=True)
os.read(0, 1)
"""


@pytest.mark.parametrize("ended", some(1, ["first", "none"]))
def test_both_sides_end_with_the_host(no_strays: None, ended: str) -> None:
    host = subprocess.Popen([sys.executable, "-c", HOST, ended], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert host.stdin is not None and host.stdout is not None
    assert host.stdout.readline() == b"both\n"
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdin.close()
    host.stdout.close()


@pytest.mark.needs("unshare")
def test_splitting_works_in_a_pid_namespace(make: Make, tmp_path: Path) -> None:
    """There the first supervisor is process 1, and its end would end everything."""
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not allow PID namespaces")
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(UNSHARE)} {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    first, second, third = make(), make(), make()
    first.python = second.python = third.python = str(wrapper)
    assert python(first, "import os; n = 1; print(os.getppid())") == "1\n"
    first.runtimes.split(second.runtimes)
    second.runtimes.split(third.runtimes)
    first.terminate()
    assert python(second, "print(n)") == "1\n"
    second.terminate()
    assert python(third, "print(n); os._exit(1)").startswith("1\n")
    assert python(third, "print(n)") == "1\n"
