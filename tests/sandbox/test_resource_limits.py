"""Resource limits stop fork bombs and memory hogs, and the session keeps working."""

from __future__ import annotations

import os
from typing import Any

import pytest

from interpreter.sandbox.bubblewrap import MEMORY_FILES, ControlGroups
from interpreter.sandbox.sandbox import ResourceLimits, Sandbox

pytestmark = pytest.mark.full

SMALL = ResourceLimits(memory=600, processes=120, file_size=16)


def test_a_fork_bomb_in_the_shell(contained: Any) -> None:
    inside = contained(limits=SMALL)
    inside.context.timeout = 3
    inside.do("shell", "bomb() { bomb | bomb & }; bomb; sleep 100")
    inside.context.timeout = None
    inside["shell"].terminate()
    assert inside.do("shell", "echo $((6 * 7))").text.strip() == "42"


def test_a_fork_bomb_in_python(contained: Any) -> None:
    inside = contained(limits=SMALL)
    inside.context.timeout = 3
    inside.do(
        "python",
        "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(0.01)",
    )
    inside.context.timeout = None
    inside["python"].terminate()  # processes forked after the interrupt end with the session
    assert inside.do("python", "print(6 * 7)").text.strip() == "42"


def test_thread_count_is_limited(contained: Any) -> None:
    inside = contained(limits=SMALL)
    code = "import threading\nfor _ in range(400): threading.Thread(target=threading.Event().wait, args=(5,)).start()"
    assert "can't start new thread" in inside.do("python", code).text
    assert inside.do("python", "print(6 * 7)").text.strip() == "42"


@pytest.mark.needs("node")
def test_javascript_memory_is_limited(contained: Any) -> None:
    inside = contained(limits=SMALL)
    inside.do("javascript", "let all = []; for (;;) all.push(Buffer.alloc(16 << 20, 1));")
    assert inside.do("javascript", "6 * 7").text.strip() == "42"


def test_memory_of_shell_commands_is_limited(contained: Any) -> None:
    inside = contained(limits=SMALL)
    assert inside.do("shell", "head -c 900M /dev/zero | tail -c 899M | wc -c").text.strip() != str(899 << 20)
    assert inside.do("shell", "echo $((6 * 7))").text.strip() == "42"


def test_control_groups_limit_the_memory_of_all_processes_together(contained: Any) -> None:
    groups = ControlGroups(SMALL)
    files = {file.name for folder in groups.folders for file in folder.iterdir()}
    groups.close()
    if files.isdisjoint(MEMORY_FILES.values()):
        pytest.skip("can't create a memory control group here: it needs root or a systemd session")
    inside = contained(limits=SMALL)
    code = "import subprocess, sys\nsub = [subprocess.Popen([sys.executable, '-c', 'x = bytearray(b\"x\") * (200 << 20); input()'],"
    code += " stdin=-1) for _ in range(6)]\nimport time; ends = time.monotonic() + 60\n"
    code += "while not (dead := -9 in [s.poll() for s in sub]) and time.monotonic() < ends: time.sleep(0.05)\nprint('dead', dead)"
    ran = inside.do("python", code)
    assert "dead True" in ran.text or ran.ended == "died"
    assert inside.do("python", "print(6 * 7)").text.strip().endswith("42")


def test_cpu_time_is_limited(contained: Any) -> None:
    inside = contained(limits=ResourceLimits(cpu=2))
    assert inside.do("shell", "sh -c 'while :; do :; done'").exit_code == 128 + 9
    assert inside.do("shell", "echo $((6 * 7))").text.strip() == "42"


@pytest.mark.skipif(os.getuid() != 0, reason="only root always gets control groups")
def test_control_groups_are_created_and_removed(tmp_path: Any) -> None:
    groups = ControlGroups(Sandbox("workspace", str(tmp_path)).limits)
    assert all(folder.is_dir() for folder in groups.folders)
    groups.close()
    assert not any(folder.exists() for folder in groups.folders)
