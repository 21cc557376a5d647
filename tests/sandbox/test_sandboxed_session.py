"""The sandbox settings apply to the blocks of a session."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.errors import NotPreviewableError, SandboxUnavailableError
from interpreter.runtimes.state import Restored
from interpreter.sandbox.containment import NAME
from model_server import text, tool_call
from sampling import some
from waiting import in_thread, until

__all__ = ["chatting"]
pytestmark = pytest.mark.usefixtures("sandbox_available", "no_strays")
WRITE = "open({path!r}, 'w').write('x'); print('written')"


def output(interpreter: OpenInterpreter, code: str, language: str = "python") -> str:
    return "".join(str(message["content"]) for message in interpreter.computer.run(language, code))


def decisions(interpreter: OpenInterpreter, message: str) -> list[str]:
    """Return the questions and decisions of a turn; taking the next chunk approves a block."""
    events = []
    for chunk in interpreter.chat(message, display=False, stream=True):
        if chunk["type"] in ("confirmation", "decision"):
            events.append(chunk["format"] if chunk["type"] == "decision" else "asked")
    return events


def scratch() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(f"{NAME}{os.getpid()}-*"))


def test_blocks_write_only_to_the_workspace(home: Path) -> None:
    before = scratch()
    (home / ".x").touch()
    interpreter = OpenInterpreter(sandbox="workspace")
    assert "written" in output(interpreter, WRITE.format(path="here"))
    assert Path("here").exists()
    assert "hidden" in output(interpreter, f"import os; print(os.path.exists({str(home)!r} + '/.x') or 'hidden')")
    output(interpreter, WRITE.format(path=str(home / "there")))
    assert not (home / "there").exists()
    assert len(scratch() - before) == 1
    interpreter.reset()
    assert scratch() == before


def test_changing_the_sandbox_starts_new_runtimes(home: Path) -> None:
    interpreter = OpenInterpreter()
    assert "written" in output(interpreter, "kept = 5\n" + WRITE.format(path=str(home / "one")))
    interpreter.sandbox = "workspace"
    shown = output(interpreter, "print('kept' in globals())\n" + WRITE.format(path=str(home / "two")))
    assert "The sandbox has changed" in shown and "False" in shown
    interpreter.sandbox = "off"
    assert "written" in output(interpreter, WRITE.format(path=str(home / "three")))
    interpreter.computer.terminate()
    assert [file.name for file in sorted(home.glob("*")) if file.is_file()] == ["one", "three"]


def test_plan_mode_reads_but_changes_nothing(chatting: Chatting) -> None:
    Path("seen").write_text("what is there")
    code = "print(open('seen').read())\n" + WRITE.format(path="made")
    interpreter, _ = chatting(tool_call("python", code), text("So."), mode="plan", sandbox_hosts=["localhost"])
    assert decisions(interpreter, "look") == []
    assert "what is there" in str(interpreter.messages) and "Read-only file system" in str(interpreter.messages)
    assert not Path("made").exists()
    containment: Any = interpreter.computer.context.containment
    assert containment.sandbox.hosts == () and containment.sandbox.kind == "read-only"


def test_plan_mode_denies_languages_without_a_sandbox(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "hello"), text("So."), mode="plan")
    assert decisions(interpreter, "look") == ["denied"]
    interpreter, _ = chatting(tool_call("python", "print(6 * 7)"), text("So."), mode="plan")
    interpreter.computer.python = "in-process"
    assert decisions(interpreter, "look") == ["denied"]


def test_auto_in_sandbox_mode_runs_sandboxed_code_without_asking(chatting: Chatting) -> None:
    replies = [tool_call("python", "print(6 * 7)"), text("So.")]
    interpreter, _ = chatting(*replies, mode="auto-in-sandbox")
    assert decisions(interpreter, "run") == ["asked"]
    interpreter, _ = chatting(*replies, mode="auto-in-sandbox", sandbox="workspace")
    assert decisions(interpreter, "run") == []
    assert "42" in str(interpreter.messages)


def test_nothing_runs_if_the_sandbox_is_unavailable(chatting: Chatting, home: Path) -> None:
    settings = {"sandbox": "workspace", "workspace": str(home), "auto_run": True}
    interpreter, _ = chatting(tool_call("python", WRITE.format(path="made")), **settings)
    with pytest.raises(SandboxUnavailableError, match="your home folder"):
        interpreter.chat("run", display=False)
    assert "your home folder" in output(interpreter, WRITE.format(path="made"))
    assert not (home / "made").exists()


def test_a_fork_gets_its_own_sandbox(home: Path) -> None:
    Path("shared").write_text("of both")
    interpreter = OpenInterpreter(sandbox="workspace")
    output(interpreter, "kept = [1, 2]")
    output(interpreter, "kept=3", "shell")
    child = interpreter.fork()
    try:
        assert child.computer.context.containment is not interpreter.computer.context.containment
        assert "[1, 2]" in output(child, "print(kept)")
        assert "3" in output(child, "echo $kept", "shell")
        assert "of both" in output(child, "print(open('shared').read())")
        assert child.workspace in output(child, "import os; print(os.getcwd())")
        output(child, WRITE.format(path="made") + "\n" + WRITE.format(path=str(home / "there")))
        assert (Path(child.workspace) / "made").exists() and not Path("made").exists()
        assert not (home / "there").exists()
    finally:
        child.drop()
        interpreter.reset()


def test_a_running_session_is_copied_into_another_sandbox(home: Path) -> None:
    os.mkfifo("pipe")
    interpreter, other = OpenInterpreter(sandbox="workspace"), OpenInterpreter(sandbox="workspace")
    output(interpreter, "kept = [1, 2]")
    code = "kept.append(3); open('begun', 'w'); print(open('pipe').read())"
    thread, outputs = in_thread(output, interpreter, code)
    until(Path("begun").exists, "the block to begin")
    assert interpreter.runtimes.split(other.runtimes)["Python"] == Restored()
    assert other.computer.context.containment is not interpreter.computer.context.containment
    Path("pipe").write_text("read")
    thread.join(60)
    assert "read" in outputs[0]
    assert "[1, 2, 3]" in output(interpreter, "print(kept)")
    interpreter.reset()
    assert "[1, 2]" in output(other, "print(kept)")
    other.reset()


def test_variables_are_not_copied_out_of_a_sandbox() -> None:
    interpreter, other = OpenInterpreter(sandbox="workspace"), OpenInterpreter()
    output(interpreter, "kept = 5")
    output(interpreter, "kept=5", "shell")
    refusals = interpreter.computer.runtimes.split(other.computer.runtimes)
    for name in ("Python", "Shell"):
        assert str(refusals[name]) == f"{name} variables in a sandbox can't be copied out of it."
    interpreter.reset()
    other.reset()


@pytest.mark.parametrize("ending", some(1, ["off", "terminated"]))
def test_variables_exported_in_a_sandbox_are_ignored_outside(ending: str) -> None:
    interpreter = OpenInterpreter(sandbox="workspace")
    output(interpreter, "export WORD=inside", "shell")
    assert "inside" in output(interpreter, "import os; print(os.environ.get('WORD'))")
    if ending == "terminated":
        interpreter.computer.terminate()
    interpreter.sandbox = "off"
    assert "None" in output(interpreter, "import os; print(os.environ.get('WORD'))")
    interpreter.reset()


def test_previews_in_a_sandbox_fall_back_to_static_analysis() -> None:
    interpreter = OpenInterpreter(sandbox="workspace")
    with pytest.raises(NotPreviewableError, match="in a sandbox") as raised:
        interpreter.computer.preview("python", "open('made', 'w')")
    assert raised.value.named == ["Creates made", "Undoable"]
    assert "42" in output(interpreter, "print(6 * 7)")
    interpreter.reset()


def test_variables_can_be_restored_in_a_sandbox() -> None:
    interpreter = OpenInterpreter(sandbox="workspace")
    output(interpreter, "kept = 1")
    mark = interpreter.computer.mark()
    output(interpreter, "kept = 2")
    interpreter.computer.go_back(mark)
    assert "1" in output(interpreter, "print(kept)")
    interpreter.reset()


def test_sandbox_modules_are_not_imported_without_a_sandbox() -> None:
    code = (
        "import sys; from interpreter import OpenInterpreter as O; o = O(); o.computer.run('python', '1')\n"
        "o.reset(); print([name for name in sys.modules if 'sandbox' in name])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert ran.stdout == "[]\n", ran.stderr


@pytest.mark.full
def test_excel_files_are_parsed_inside_the_sandbox(home: Path) -> None:
    """The session's own library parses the file, so it can do no more than other session code."""
    interpreter = OpenInterpreter(sandbox="workspace")
    library = f"""
import os, types
def load_workbook(*given, **named):
    open("inside", "w")
    try:
        open({str(home / "outside")!r}, "w")
    except OSError:
        pass
    row = ("id",)
    sheet = types.SimpleNamespace(title="One", iter_rows=lambda values_only: iter([row, (1,)]))
    return types.SimpleNamespace(worksheets=[sheet])
"""
    output(interpreter, f"import os; os.mkdir('lib'); open('lib/openpyxl.py', 'w').write({library!r})")
    list(interpreter.computer.run("shell", "export PYTHONPATH=$PWD/lib"))
    output(interpreter, "open('a.xlsx', 'wb').write(b'PK')")
    diffs = interpreter.timeline.diff(interpreter.timeline.blocks[-1].id, data=True)
    assert diffs == {"a.xlsx": "a.xlsx: 1 row, 1 column\n"}
    assert Path("inside").exists() and not (home / "outside").exists()
    for said in ("{}", "5", '{"error": "ValueError"}', '{"error": []}', "[" * 100_000):
        library = f"import os; os.write(1, {said!r}.encode()); os._exit(0)"
        output(interpreter, f"open('lib/openpyxl.py', 'w').write({library!r})")
        output(interpreter, f"open('a.xlsx', 'wb').write(b'PK{len(said)}')")
        diffs = interpreter.timeline.diff(interpreter.timeline.blocks[-1].id, data=True)
        assert "no cell diff: The operation failed in the session" in diffs["a.xlsx"]
    interpreter.reset()
