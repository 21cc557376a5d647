"""However a preview ends, the session keeps working and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from interpreter import OpenInterpreter
from preview.preview_session import layers, needs_views, output, ran
from waiting import until_ended

pytestmark = needs_views

DEATHS = {
    "abort": "import os; os.abort()",
    "exit": "import os; os._exit(7)",
    "SIGKILL": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_crash_leaves_the_session_running(interpreter: OpenInterpreter, workspace: Path, death: str) -> None:
    ran(interpreter, "python", "x = 1")
    code = f"x = 2; open('new.txt', 'w').close()\n{DEATHS[death]}"
    with interpreter.computer.preview("python", code) as preview:
        said = output(list(preview))
        assert "The session itself is not affected." in said
        assert preview.ended == "died"
        assert not preview.can_apply
        assert [change.path for change in preview.changes] == ["new.txt"]
    assert ran(interpreter, "python", "print(x)") == "1\n"
    assert not (workspace / "new.txt").exists()


def test_a_killed_shell_leaves_the_session_running(interpreter: OpenInterpreter) -> None:
    ran(interpreter, "shell", "x=1")
    with interpreter.computer.preview("shell", "x=2; kill -9 $$") as preview:
        preview.run()
        assert not preview.can_apply
    assert ran(interpreter, "shell", "echo $x") == "1\n"


LOOPS = {
    "python": "import os, time\nprint('begun')\nwhile True: time.sleep(0.01)",
    "python ignoring SIGINT": "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('begun')\ntime.sleep(1000)",
    "child process": "import subprocess; child = subprocess.Popen(['sleep', '1000']); print('begun'); child.wait()",
    "shell": "echo begun; sleep 1000",
}


@pytest.mark.parametrize("kind", LOOPS)
def test_stop_ends_the_preview(interpreter: OpenInterpreter, kind: str) -> None:
    language = "shell" if kind == "shell" else "python"
    ran(interpreter, language, "x=1")
    with interpreter.computer.preview(language, LOOPS[kind]) as preview:
        for chunk in preview:
            if "begun" in str(chunk.get("content")):
                threading.Thread(target=interpreter.computer.stop).start()
        assert preview.ended in ("interrupted", "died")
    assert ran(interpreter, language, "print(x)" if language == "python" else "echo $x") == "1\n"


def test_an_interrupted_block_can_be_applied(interpreter: OpenInterpreter, workspace: Path) -> None:
    code = "x = 1; open('new.txt', 'w').close(); print('begun')\nimport time; time.sleep(1000)"
    preview = interpreter.computer.preview("python", code)
    for chunk in preview:
        if "begun" in str(chunk.get("content")):
            interpreter.computer.stop()
    assert preview.ended == "interrupted"
    preview.apply()
    assert (workspace / "new.txt").exists()
    assert ran(interpreter, "python", "print(x)") == "1\n"


def test_previews_respect_block_timeout(interpreter: OpenInterpreter) -> None:
    interpreter.block_timeout = 1
    with interpreter.computer.preview("python", "import time; time.sleep(1000)") as preview:
        preview.run()
        assert preview.ended == "timed_out"
    interpreter.block_timeout = None
    assert ran(interpreter, "python", "print(1)") == "1\n"


def test_leaving_the_stream_early_discards_the_preview(interpreter: OpenInterpreter) -> None:
    with interpreter.computer.preview("python", LOOPS["python"]) as preview:
        next(iter(preview))
    assert not preview.can_apply
    assert ran(interpreter, "python", "print('time' in globals())") == "False\n"


def test_a_preview_can_ask_for_input(interpreter: OpenInterpreter) -> None:
    interpreter.computer.on_input = lambda prompt, password: "Ada"
    with interpreter.computer.preview("python", "name = input('Name? '); print(name)") as preview:
        assert "Ada\n" in output(list(preview))
        preview.apply()
    assert ran(interpreter, "python", "print(name)") == "Ada\n"


def test_discarding_works_after_the_session_died(interpreter: OpenInterpreter) -> None:
    pid = int(ran(interpreter, "python", "import os; x = 1; print(os.getpid())"))
    with interpreter.computer.preview("python", "x = 2") as preview:
        preview.run()
        os.kill(pid, signal.SIGKILL)
        until_ended([pid])
        preview.discard()
    assert ran(interpreter, "python", "print('alive')").endswith("alive\n")


def test_applying_works_after_the_session_died(interpreter: OpenInterpreter) -> None:
    pid = int(ran(interpreter, "python", "import os; x = 1; print(os.getpid())"))
    preview = interpreter.computer.preview("python", "x = 2").run()
    os.kill(pid, signal.SIGKILL)
    preview.apply()
    assert ran(interpreter, "python", "print(x)") == "2\n"


def test_discarding_works_after_the_supervisor_died(interpreter: OpenInterpreter) -> None:
    pid = int(ran(interpreter, "python", "import os; print(os.getppid())"))
    preview = interpreter.computer.preview("python", "x = 2").run()
    os.kill(pid, signal.SIGKILL)
    preview.discard()
    assert ran(interpreter, "python", "print('alive')").endswith("alive\n")


def test_discarding_works_after_terminate(interpreter: OpenInterpreter) -> None:
    before = layers()
    preview = interpreter.computer.preview("python", "import subprocess; subprocess.Popen(['sleep', '1000'])").run()
    interpreter.computer.terminate()
    preview.discard()
    assert layers() <= before


HOST = """
import sys, time
from interpreter import OpenInterpreter
interpreter = OpenInterpreter(workspace=sys.argv[1])
preview = interpreter.computer.preview(sys.argv[2], sys.argv[3])
for chunk in preview:
    if 'begun' in str(chunk.get('content')): print('begun', flush=True)
"""


@pytest.mark.parametrize("kind", ["child process", "shell"])
def test_a_killed_host_leaves_no_process(interpreter: OpenInterpreter, workspace: Path, kind: str) -> None:
    language = "shell" if kind == "shell" else "python"
    words = [sys.executable, "-c", HOST, str(workspace), language, LOOPS[kind]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "begun\n"
        below = psutil.Process(host.pid).children(recursive=True)
        host.kill()
    assert len(below) >= 2
    until_ended(below)
    with interpreter.computer.preview("python", "1"):
        assert not layers(host.pid)  # the next preview cleans them up


def test_a_program_that_never_runs_its_preview_ends(tmp_path: Path) -> None:
    """At the end of the program, no thread is left that could read an answer of the runtime."""
    code = (
        "from interpreter import OpenInterpreter\n"
        f"computer = OpenInterpreter(workspace={str(tmp_path)!r}).computer\n"
        "computer.run('python', 'v = [1]')\n"
        "preview = computer.preview('python', 'v.append(2)')\n"
        "raise SystemExit(3)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 3
