"""Applying a preview leaves files and variables as if the block had run."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import UsageError
from preview.preview_session import needs_views, output, ran

pytestmark = needs_views


def test_applying_keeps_files_and_variables(interpreter: OpenInterpreter, workspace: Path) -> None:
    ran(interpreter, "python", "values = [1]; import os, shutil")
    code = """
values.append(2)
open('old.txt', 'a').write('three\\n')
os.makedirs('a/b'); open('a/b/c', 'w').write('c')
os.symlink('old.txt', 'link'); os.chmod('old.txt', 0o600)
shutil.rmtree('folder')
"""
    with interpreter.computer.preview("python", code) as preview:
        preview.run()
        applied = preview.apply()
    assert str(applied) == ""
    assert set(applied.files.paths) == {"a", "a/b", "a/b/c", "folder", "folder/inside", "link", "old.txt"}
    assert (workspace / "old.txt").read_text() == "one\ntwo\nthree\n"
    assert (workspace / "old.txt").stat().st_mode & 0o777 == 0o600
    assert (workspace / "a/b/c").read_text() == "c"
    assert os.readlink(workspace / "link") == "old.txt"
    assert not (workspace / "folder").exists()
    assert ran(interpreter, "python", "print(values, sorted(os.listdir()))") == "[1, 2] ['a', 'link', 'old.txt']\n"


def test_later_blocks_use_the_real_files(interpreter: OpenInterpreter, workspace: Path) -> None:
    code = "import os, tempfile; os.mkdir('deep'); os.chdir('deep'); made = tempfile.mkdtemp()"
    interpreter.computer.preview("python", code).run().apply()
    ran(interpreter, "python", "open('here', 'w').write('x'); open(made + '/there', 'w').write('y')")
    assert (workspace / "deep/here").read_text() == "x"
    made = Path(ran(interpreter, "python", "print(made)").strip())
    assert (made / "there").read_text() == "y"
    assert ran(interpreter, "shell", "pwd") == f"{workspace}/deep\n"


def test_other_folders_are_writable_after_applying(interpreter: OpenInterpreter, home: Path) -> None:
    path = Path("/dev/shm") / f"test-{os.getpid()}"
    code = f"open({str(home / 'x')!r}, 'w')" if not str(home).startswith(("/tmp", "/var/tmp")) else "1"
    interpreter.computer.preview("python", code).run().apply()
    assert ran(interpreter, "python", f"import os; open({str(path)!r}, 'w').close(); os.remove({str(path)!r})") == ""
    mounts = "print([line for line in open('/proc/mounts') if 'overlay' in line and 'upperdir' in line])"
    assert ran(interpreter, "python", mounts) == "[]\n"


def test_open_files_stay_usable(interpreter: OpenInterpreter, workspace: Path) -> None:
    ran(interpreter, "python", "log = open('log.txt', 'w'); log.write('a'); log.flush()")
    code = "log.write('b'); log.flush(); new = open('new.txt', 'w'); new.write('1'); new.flush()"
    assert str(interpreter.computer.preview("python", code).run().apply()) == ""
    ran(interpreter, "python", "log.write('c'); log.close(); new.write('2'); new.close()")
    assert (workspace / "log.txt").read_text() == "abc"
    assert (workspace / "new.txt").read_text() == "12"


def test_threads_sockets_and_processes_that_get_lost_are_listed(interpreter: OpenInterpreter, workspace: Path) -> None:
    prepare = "import socket, subprocess, threading; near, far = socket.socketpair(); ended = threading.Event()\n"
    prepare += "waiting = threading.Thread(target=ended.wait, name='patient', daemon=True); waiting.start()"
    ran(interpreter, "python", prepare)
    code = "import mmap, os; file = open('new.txt', 'w+b'); file.write(b'abc'); file.flush()\n"
    code += "mapped = mmap.mmap(file.fileno(), 0); child = subprocess.Popen(['sleep', '1000'])"
    lost = str(interpreter.computer.preview("python", code).run().apply())
    assert "the thread patient" in lost
    assert "a socket" in lost
    assert "sleep (" in lost
    assert f"the memory-mapped file {workspace}/new.txt" in lost
    ran(interpreter, "python", "child.kill()")


def test_the_network_works_after_applying(interpreter: OpenInterpreter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        interpreter.computer.preview("python", "import os, socket").run().apply()
        arrived = threading.Thread(target=lambda: server.accept()[0].close())
        arrived.start()
        connect = f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]})).close()"
        assert ran(interpreter, "python", f"{connect}; print('connected')") == "connected\n"
        arrived.join(60)


def test_previews_can_be_repeated(interpreter: OpenInterpreter, workspace: Path) -> None:
    ran(interpreter, "python", "import os, socket; count = 0")
    for number in range(1, 4):
        code = "count += 1; open(f'file{count}', 'w').close(); print(sorted(os.listdir()))\nsocket.socket()"
        for keep in (False, True):
            with interpreter.computer.preview("python", code) as preview:
                assert f"'file{number}'" in output(list(preview))
                assert [each.what for each in preview.denied] == ["network"]
                if keep:
                    preview.apply()
    assert ran(interpreter, "python", "print(count)") == "3\n"
    assert sorted(path.name for path in workspace.iterdir() if path.name.startswith("file")) == [
        "file1",
        "file2",
        "file3",
    ]


def test_a_shell_keeps_the_applied_state(interpreter: OpenInterpreter, workspace: Path) -> None:
    ran(interpreter, "shell", 'NAME=before; gone=1; greet() { echo "hello $NAME"; }')
    code = (
        "NAME=after; unset gone; export SEEN=yes; said() { echo so; }; mkdir deep; cd deep; echo x > y; rm ../old.txt"
    )
    interpreter.computer.preview("shell", code).run().apply()
    assert (workspace / "deep/y").read_text() == "x\n"
    assert not (workspace / "old.txt").exists()
    said = ran(interpreter, "shell", 'greet; said; echo "${gone-unset}"; pwd')
    assert said == f"hello after\nso\nunset\n{workspace}/deep\n"
    seen = ran(interpreter, "python", "import os; print(os.environ['SEEN'], os.getcwd())")
    assert seen == f"yes {workspace}/deep\n"


@pytest.mark.parametrize("language", ["python", "shell"])
def test_undo_reverts_an_applied_preview(interpreter: OpenInterpreter, workspace: Path, language: str) -> None:
    before, code, shown = {
        "python": ("x = 1", "x = 2; open('new.txt', 'w').close()", "print(x)"),
        "shell": ("x=1", "x=2; touch new.txt", "echo $x"),
    }[language]
    ran(interpreter, language, before)
    interpreter.computer.preview(language, code).run().apply()
    assert ran(interpreter, language, shown) == "2\n"
    assert (workspace / "new.txt").exists()
    interpreter.undo(2, blocks=True)
    assert ran(interpreter, language, shown) == "1\n"
    assert not (workspace / "new.txt").exists()


def test_large_files_are_saved_for_undo_before_applying(interpreter: OpenInterpreter, workspace: Path) -> None:
    interpreter.undo_max_file_bytes = 1_000
    (workspace / "large").write_text("first" * 1_000)
    interpreter.computer.preview("python", "open('large', 'w').write('second')").run().apply()
    assert (workspace / "large").read_text() == "second"
    interpreter.undo(blocks=True)
    assert (workspace / "large").read_text() == "first" * 1_000


def test_files_changed_after_the_preview_are_kept(interpreter: OpenInterpreter, workspace: Path) -> None:
    code = "open('old.txt', 'w').write('mine'); open('new.txt', 'w').write('mine'); open('free', 'w').write('mine')"
    with interpreter.computer.preview("python", code) as preview:
        preview.run()
        (workspace / "old.txt").write_text("theirs")
        (workspace / "new.txt").write_text("theirs")
        applied = preview.apply()
    assert {each.path for each in applied.files.kept} == {"old.txt", "new.txt"}
    assert "old.txt, because it has been changed" in str(applied)
    assert (workspace / "old.txt").read_text() == (workspace / "new.txt").read_text() == "theirs"
    assert (workspace / "free").read_text() == "mine"


def test_changed_files_are_overwritten_on_request(interpreter: OpenInterpreter, workspace: Path) -> None:
    preview = interpreter.computer.preview("python", "open('old.txt', 'w').write('mine')").run()
    (workspace / "old.txt").write_text("theirs")
    assert preview.apply(overwrite=["old.txt"]).files.kept == ()
    assert (workspace / "old.txt").read_text() == "mine"


def test_files_changed_during_the_preview_are_kept(interpreter: OpenInterpreter, workspace: Path) -> None:
    code = "open('old.txt', 'a').write('mine'); print('written'); input()"

    def answer(prompt: str, password: bool) -> str:
        (workspace / "old.txt").write_text("theirs")
        return ""

    interpreter.computer.on_input = answer
    applied = interpreter.computer.preview("python", code).run().apply()
    assert [each.path for each in applied.files.kept] == ["old.txt"]
    assert (workspace / "old.txt").read_text() == "theirs"


def test_apply_works_once_and_only_after_running(interpreter: OpenInterpreter) -> None:
    preview = interpreter.computer.preview("python", "x = 1")
    with pytest.raises(UsageError):
        preview.apply()
    preview.run().apply()
    with pytest.raises(UsageError):
        preview.apply()
    preview.discard()
    assert ran(interpreter, "python", "print(x)") == "1\n"


def test_a_failed_block_can_be_applied(interpreter: OpenInterpreter, workspace: Path) -> None:
    preview = interpreter.computer.preview("python", "x = 1; open('new.txt', 'w').close(); 1 / 0").run()
    assert preview.ended == "error"
    preview.apply()
    assert (workspace / "new.txt").exists()
    assert ran(interpreter, "python", "print(x)") == "1\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can change file owners")
def test_file_owners_are_kept(interpreter: OpenInterpreter, workspace: Path) -> None:
    os.chown(workspace / "old.txt", 65534, 65534)
    code = "import os; open('old.txt', 'a').write('x'); open('new.txt', 'w').close(); os.chown('new.txt', 65534, 65534)"
    interpreter.computer.preview("python", code).run().apply()
    assert {(workspace / name).stat().st_uid for name in ("old.txt", "new.txt")} == {65534}


def test_changes_in_the_home_folder_are_applied(interpreter: OpenInterpreter, home: Path) -> None:
    preview = interpreter.computer.preview("python", "import pathlib; (pathlib.Path.home() / '.cache').mkdir()").run()
    assert [change.path for change in preview.changes] == [str(home / ".cache")]
    assert not (home / ".cache").exists()
    preview.apply()
    assert (home / ".cache").is_dir()
