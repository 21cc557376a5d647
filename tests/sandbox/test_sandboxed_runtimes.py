"""Runtimes work the same inside a sandbox."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from interpreter.computer_api import Computer
from interpreter.errors import SandboxUnavailableError
from interpreter.languages.in_process import InProcessPython
from interpreter.sandbox.containment import containment_for
from interpreter.sandbox.sandbox import Access, ResourceLimits, Sandbox
from waiting import in_thread, until

from .conftest import Inside

ANSWERS = {"python": ("print(6 * 7)", "42"), "shell": ("echo $((6 * 7))", "42"), "javascript": ("6 * 7", "42")}


@pytest.mark.needs("node")
@pytest.mark.parametrize("language", ANSWERS)
def test_blocks_run_and_keep_their_state(inside: Inside, language: str) -> None:
    begin = {"python": "kept = 5", "shell": "kept=5", "javascript": "let kept = 5"}[language]
    inside.do(language, begin)
    ask = {"python": "print(kept)", "shell": "echo $kept", "javascript": "kept"}[language]
    ran = inside.do(language, ask)
    assert ran.text.strip() == "5" and ran.ended == "done"


@pytest.mark.needs("node")
def test_runtimes_share_the_workspace_temporary_files_home_and_directory(inside: Inside, workspace: Path) -> None:
    inside.do("python", "open('made.txt', 'w').write('by Python'); open('/tmp/shared', 'w').write('here')")
    inside.do("shell", "mkdir -p sub; cd sub; export GREETING=hello; echo x >~/noted")
    ran = inside.do(
        "javascript", "[process.cwd(), process.env.GREETING, fs.readFileSync('/tmp/shared', 'utf8')].join()"
    )
    assert f"{workspace}/sub,hello,here" in ran.text
    assert "True" in inside.do("python", "import os; print(os.path.exists(os.path.expanduser('~/noted')))").text
    assert (workspace / "made.txt").read_text() == "by Python"
    assert not (Path.home() / "noted").exists() and not Path("/tmp/shared").exists()


def test_shell_blocks_have_a_terminal_and_background_jobs(inside: Inside) -> None:
    ran = inside.do("shell", "test -t 1 && echo terminal; sleep 100 & echo on")
    assert "terminal" in ran.text and "on" in ran.text and ran.ended == "done"
    assert inside.do("shell", "jobs -p | wc -l").text.strip() == "1"
    first, *_ = inside["shell"].runtime._blocks.values()
    assert first.running  # its terminal is still open


def test_the_terminal_of_a_shell_block_closes_with_the_block(inside: Inside) -> None:
    inside.do("shell", "echo one")
    inside.do("shell", "echo two")
    first, *_ = inside["shell"].runtime._blocks.values()
    until(lambda: not first.running, "the end of its terminal")


def test_keys_reach_a_shell_block(inside: Inside) -> None:
    inside.context.keyboard = True
    shown = ""
    for chunk in inside["shell"].run("read -p 'Name: ' name; echo hello $name; read again </dev/tty; echo and $again"):
        shown += str(chunk.get("content") or "") if chunk.get("format") == "output" else ""
        if shown.endswith("Name: "):
            inside["shell"].send_keys(b"Ada\n")
        if shown.endswith("hello Ada\n"):
            inside["shell"].send_keys(b"Grace\n")
    assert "hello Ada" in shown and "and Grace" in shown


def test_a_figure_is_shown(inside: Inside) -> None:
    ran = inside.do("python", "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    assert [chunk["format"] for chunk in ran.of_type("image")] == ["base64.png"]


def test_matplotlib_reads_the_users_settings_and_can_write_beside_them(contained: Any, home: Path) -> None:
    for path in (home / ".config/matplotlib/matplotlibrc", home / ".cache/matplotlib/fontlist-v1.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("lines.linewidth: 7")
    code = "import matplotlib as m; print(m.get_configdir(), m.get_cachedir(), m.rcParams['lines.linewidth'])"
    output = contained().do("python", code).text
    assert output == f"{home}/.config/matplotlib {home}/.cache/matplotlib 7.0\n"


def test_input_reaches_the_user(inside: Inside) -> None:
    inside.context.on_input = lambda prompt, password: f"answer to {prompt}"
    assert "answer to who" in inside.do("python", "print(input('who'))").text


@pytest.mark.needs("node")
@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "print('begun', flush=True)\nwhile True: pass"),
        ("python", "import subprocess; print('begun', flush=True); subprocess.run(['sleep', '100'])"),
        ("shell", "echo begun; sleep 100"),
        ("javascript", "console.log('begun'); while (true) {}"),
    ],
)
def test_a_block_can_be_interrupted(inside: Inside, language: str, code: str) -> None:
    ended = ""
    for chunk in inside[language].run(code):
        if "begun" in str(chunk.get("content")):
            threading.Thread(target=inside[language].stop).start()
        ended = str(chunk.get("ended", ""))
    assert ended == "interrupted"
    assert ANSWERS[language][1] in inside.do(language, ANSWERS[language][0]).text


def test_a_block_has_a_time_limit(inside: Inside) -> None:
    inside.do("python", "kept = 1")
    inside.context.timeout = 0.3
    ran = inside.do("python", "import time; time.sleep(100)")
    inside.context.timeout = None
    assert ran.ended == "timed_out"
    assert inside.do("python", "print(kept)").text.strip() == "1"


def test_a_crash_loses_only_the_block(inside: Inside) -> None:
    inside.do("python", "kept = [1, 2]")
    assert inside.do("python", "kept.append(3); import os; os.abort()").ended == "died"
    assert inside.do("python", "print(kept)").text.strip() == "[1, 2]"


def test_runtime_states_can_be_restored(inside: Inside) -> None:
    computer = Computer()
    computer.context.containment = inside.containment
    computer.context.cwd = inside.containment.sandbox.workspace
    try:
        computer.run("python", "number = 1")
        computer.run("shell", "number=1")
        mark = computer.mark()
        computer.run("python", "number = 2")
        computer.run("shell", "number=2")
        restored = computer.go_back(mark)
        assert {name: str(how) for name, how in restored.items()} == {"Python": "", "Shell": ""}
        assert computer.run("python", "print(number)")[-1]["content"].strip() == "1"
        assert computer.run("shell", "echo $number")[-1]["content"].strip() == "1"
    finally:
        computer.terminate()


def test_a_block_can_continue_in_the_background(inside: Inside) -> None:
    code = "import time; print('begun', flush=True)\nwhile True: time.sleep(0.01)"
    for chunk in inside["python"].run(code):
        if "begun" in str(chunk.get("content")):
            inside["python"].detach()
    (job,) = inside["python"].jobs
    assert job.running and "begun" in job.output()
    assert inside.do("python", "print(6 * 7)").text.strip() == "42"
    job.stop()
    assert not job.running


def test_truncated_output_can_be_read_in_full_inside(inside: Inside) -> None:
    ran = inside.do("python", "print('x' * 5000 + 'end')")
    path = ran.chunks[-1]["truncated"]
    assert "end" in inside.do("shell", f"tail -c 10 {path}").text
    assert inside.do("shell", f"echo more >{path}").ended == "error"


def test_terminating_the_runtime_ends_its_background_processes(inside: Inside) -> None:
    inside.do("shell", "(setsid sleep 1000 &) ; nohup sleep 1000 >/dev/null 2>&1 &")
    session = inside["shell"].runtime
    inside["shell"].terminate()
    assert not session._process
    # `no_strays` checks that no process is left.


@pytest.mark.parametrize("language", ["python", "shell"])
def test_a_running_session_is_copied_inside(inside: Inside, workspace: Path, language: str) -> None:
    before, waits, shown = {
        "python": ("kept = [1]", "kept.append(2); open('begun', 'w'); open('pipe').read()", "print(*kept)"),
        "shell": ("kept=1", "kept='1 2'; echo >begun; cat pipe", "echo $kept"),
    }[language]
    os.mkfifo(workspace / "pipe")
    inside.do(language, before)
    thread, ran = in_thread(inside.do, language, waits)
    until((workspace / "begun").exists, "the block to begin")
    copies = [Inside(inside.containment), Inside(inside.containment)]
    for copy in copies:
        copy.languages[language], _ = inside[language].split(copy)
    (workspace / "pipe").write_text("")
    thread.join(60)
    assert ran[0].ended == "done"
    assert inside.do(language, shown).text == "1 2\n"
    for ended, left in ((inside, copies[0]), (copies[0], copies[1])):
        ended[language].terminate()
        assert left.do(language, shown).text == "1\n"
    copies[1][language].terminate()


def test_turning_the_sandbox_on_starts_a_new_runtime(contained: Any, workspace: Path) -> None:
    inside = contained()
    containment, inside.context.containment = inside.containment, None
    inside.do("python", "kept = 1")
    inside.context.containment = containment
    ran = inside.do("python", "print('kept' in dir(), __import__('os').getpid() < 100)")
    assert "a new Python session" in ran.text and "False True" in ran.text


def test_granting_a_path_needs_a_new_runtime_but_a_host_does_not(contained: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers").write_text("1 2 3")
    inside = contained()
    assert "numbers" not in inside.do("shell", f"ls {tmp_path}/data").text.replace(str(tmp_path), "")
    host, data = Access("host", "example.com"), Access("read", str(tmp_path / "data"))
    assert inside.containment.widen(host) is inside.containment
    assert inside.containment.proxy.hosts == ["example.com"]
    inside.containment.narrow(host)
    assert inside.containment.proxy.hosts == []
    inside.context.containment = inside.containment.widen(data)
    assert inside.context.containment is not inside.containment
    inside["shell"].terminate()
    assert "1 2 3" in inside.do("shell", f"cat {tmp_path}/data/numbers").text
    assert inside.do("shell", f"echo x >{tmp_path}/data/numbers").ended == "error"


def test_the_session_survives_the_memory_limit(contained: Any) -> None:
    inside = contained(limits=ResourceLimits(memory=400))
    inside.do("python", "kept = 1")
    assert "MemoryError" in inside.do("python", "x = bytearray(500 << 20)").text
    assert inside.do("python", "print(kept)").text.strip() == "1"


def test_a_read_only_sandbox_writes_only_temporary_files(contained: Any, workspace: Path) -> None:
    inside = contained("read-only")
    ran = inside.do("python", "open('/tmp/fine', 'w').close(); open('made', 'w')")
    assert "Blocked by the sandbox: writing" in ran.text
    assert sorted(path.name for path in workspace.iterdir()) == [".git", ".vscode"]


def test_a_sandbox_is_reused_while_its_settings_match(inside: Inside, workspace: Path) -> None:
    containment = inside.containment
    assert containment_for(Sandbox("workspace", str(workspace)), containment) is containment
    containment.widen(Access("host", "example.com"))
    assert containment_for(Sandbox("workspace", str(workspace)), containment) is containment
    other = containment_for(Sandbox("read-only", str(workspace)), containment)
    assert other is not None and other is not containment and other.sandbox.hosts == ("example.com",)
    other.close()


def test_in_process_python_is_refused(inside: Inside) -> None:
    with pytest.raises(SandboxUnavailableError):
        list(InProcessPython(inside).run("1"))
