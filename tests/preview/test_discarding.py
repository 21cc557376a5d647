"""Discarding a preview leaves files, variables and running processes unchanged."""

from __future__ import annotations

import socket
from pathlib import Path

from checkpoints.trees import shape
from interpreter import OpenInterpreter
from preview.preview_session import layers, needs_views, output, ran

pytestmark = needs_views

CHANGES = """
import os, shutil
open('old.txt', 'a').write('three\\n')
open('new.txt', 'w').write('new\\n')
shutil.rmtree('folder')
values.append(4)
other = 1
print('changed')
"""


def test_a_preview_shows_its_changes_and_leaves_no_trace(interpreter: OpenInterpreter, workspace: Path) -> None:
    ran(interpreter, "python", "values = [1, 2, 3]")
    before, folders = shape(workspace), layers()
    with interpreter.computer.preview("python", CHANGES) as preview:
        assert "changed\n" in output(list(preview))
        assert [(change.what, change.path) for change in preview.changes] == [
            ("deleted", "folder"),
            ("deleted", "folder/inside"),
            ("created", "new.txt"),
            ("changed", "old.txt"),
        ]
        assert preview.diffs["old.txt"].endswith(" one\n two\n+three\n")
        assert layers() > folders
    assert shape(workspace) == before
    assert layers() == folders
    assert ran(interpreter, "python", "print(values, 'other' in globals())") == "[1, 2, 3] False\n"


def test_a_rename_is_listed_once(interpreter: OpenInterpreter, workspace: Path) -> None:
    with interpreter.computer.preview("python", "import os\nos.rename('old.txt', 'new.txt')") as preview:
        list(preview)
        assert [(change.what, change.source, change.path) for change in preview.changes] == [
            ("renamed", "old.txt", "new.txt")
        ]
        assert preview.diffs == preview.data_diffs == {}


def test_a_preview_can_be_the_first_block(interpreter: OpenInterpreter, workspace: Path) -> None:
    with interpreter.computer.preview("python", "x = 1; print(x)") as preview:
        assert output(list(preview)) == "1\n"
        assert preview.changes == []
    assert ran(interpreter, "python", "print('x' in globals())") == "False\n"


def test_the_session_keeps_its_process_its_threads_and_its_connections(interpreter: OpenInterpreter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ran(
            interpreter,
            "python",
            f"""
import os, socket, threading
mine = os.getpid()
line = socket.create_connection(('127.0.0.1', {port}))
ended = threading.Event()
waiting = threading.Thread(target=ended.wait, name='patient'); waiting.start()
""",
        )
        far, _ = server.accept()
        code = "line.sendall(b'from the preview'); ended.set(); print(waiting.is_alive())"
        with far:
            with interpreter.computer.preview("python", code) as preview:
                preview.run()
                assert [each for each in preview.lost if "patient" in each]
                assert [each for each in preview.lost if str(port) in each]
            said = ran(interpreter, "python", "line.sendall(b'real'); print(mine == os.getpid(), waiting.is_alive())")
            assert said == "True True\n"
            assert far.recv(100) == b"real"
        ran(interpreter, "python", "ended.set(); waiting.join(); line.close()")


def test_writes_to_open_files_are_discarded(interpreter: OpenInterpreter, workspace: Path) -> None:
    ran(interpreter, "python", "log = open('log.txt', 'w'); log.write('a'); log.flush()")
    code = "log.write('b'); log.flush(); print(open('log.txt').read())"
    with interpreter.computer.preview("python", code) as preview:
        assert output(list(preview)) == "ab\n"
    ran(interpreter, "python", "log.write('c'); log.close()")
    assert (workspace / "log.txt").read_text() == "ac"


def test_writes_to_unnamed_files_and_shared_memory_are_discarded(interpreter: OpenInterpreter, workspace: Path) -> None:
    prepare = """
import mmap, os, tempfile
nameless = tempfile.TemporaryFile(); nameless.write(b'abc'); nameless.flush()
shared = mmap.mmap(-1, 10); shared[:3] = b'abc'
file = open('old.txt', 'r+b'); mapped = mmap.mmap(file.fileno(), 0)
"""
    ran(interpreter, "python", prepare)
    code = """
nameless.seek(0); nameless.write(b'XYZ'); nameless.flush()
shared[:3] = b'XYZ'; mapped[:3] = b'XYZ'
nameless.seek(0); print(nameless.read(), shared[:3], mapped[:3])
"""
    with interpreter.computer.preview("python", code) as preview:
        assert output(list(preview)) == "b'XYZ' b'XYZ' b'XYZ'\n"
    assert (workspace / "old.txt").read_text() == "one\ntwo\n"
    said = ran(interpreter, "python", "nameless.seek(0); print(nameless.read(), shared[:3], mapped[:3])")
    assert said == "b'abc' b'abc' b'one'\n"


def test_processes_started_by_the_preview_are_killed(interpreter: OpenInterpreter) -> None:
    code = "import subprocess; child = subprocess.Popen(['sleep', '1000'], start_new_session=True); print(child.pid)"
    with interpreter.computer.preview("python", code) as preview:
        pid = int(output(list(preview)))
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}/exe").exists()


def test_temporary_files_are_deleted(interpreter: OpenInterpreter) -> None:
    code = "import tempfile; folder = tempfile.mkdtemp(); open(folder + '/x', 'w').write('x'); print(folder)"
    with interpreter.computer.preview("python", code) as preview:
        folder = output(list(preview)).strip()
        assert f"{folder}/x" in [change.path for change in preview.changes]
    assert not Path(folder).exists()


def test_other_runtimes_keep_their_directory_and_exports(interpreter: OpenInterpreter, workspace: Path) -> None:
    ran(interpreter, "shell", "export KEPT=1")
    with interpreter.computer.preview("shell", "export KEPT=2; mkdir deep; cd deep; pwd") as preview:
        assert output(list(preview)) == f"{workspace}/deep\n"
    with interpreter.computer.preview("python", "import os; os.chdir('folder'); os.environ['KEPT'] = '3'") as preview:
        preview.run()
    assert ran(interpreter, "shell", "echo $KEPT; pwd") == f"1\n{workspace}\n"
    assert ran(interpreter, "python", "import os; print(os.environ['KEPT'], os.getcwd())") == f"1 {workspace}\n"


def test_a_shell_keeps_its_state(interpreter: OpenInterpreter, workspace: Path) -> None:
    ran(interpreter, "shell", "NAME=before; greet() { echo \"hello $NAME\"; }; alias said='echo so'")
    before = shape(workspace)
    code = "NAME=after; greet; said; rm old.txt; greet() { echo other; }; echo x > new.txt; exit 3"
    with interpreter.computer.preview("shell", code) as preview:
        assert output(list(preview)) == "hello after\nso\n"
        assert [(change.what, change.path) for change in preview.changes] == [
            ("created", "new.txt"),
            ("deleted", "old.txt"),
        ]
    assert shape(workspace) == before
    assert ran(interpreter, "shell", "greet") == "hello before\n"


def test_running_another_block_discards_the_preview(interpreter: OpenInterpreter, workspace: Path) -> None:
    ran(interpreter, "python", "x = 1")
    preview = interpreter.computer.preview("python", "x = 2; open('new.txt', 'w')").run()
    assert preview.can_apply
    assert ran(interpreter, "python", "print(x)") == "1\n"
    assert not preview.can_apply
    preview.discard()
    assert not (workspace / "new.txt").exists()


def test_workspace_names_may_contain_special_characters(tmp_path: Path, no_strays: None) -> None:
    folder = tmp_path / "a,b:c d\\e=\nupperdir"
    folder.mkdir()
    interpreter = OpenInterpreter(workspace=str(folder))
    with interpreter.computer.preview("python", "open('new', 'w').close()") as preview:
        assert [change.path for change in preview.run().changes] == ["new"]
    interpreter.computer.terminate()
    assert list(folder.iterdir()) == []
