"""What a block can't do during a preview, and how that is reported."""

from __future__ import annotations

import os
import select
import socket
import subprocess
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from preview.preview_session import needs_views, output, ran
from sampling import some

pytestmark = needs_views

CLIENTS = {
    "socket": "import socket; socket.create_connection(('127.0.0.1', {port}))",
    "http": "import urllib.request; urllib.request.urlopen('http://localhost:{port}/')",
    "datagram": "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))",
    "subprocess": "import subprocess; print(subprocess.call(['bash', '-c', 'echo x > /dev/tcp/127.0.0.1/{port}']))",
}


@pytest.mark.parametrize("client", some(2, CLIENTS))
def test_nothing_reaches_the_network(interpreter: OpenInterpreter, client: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(type=socket.SOCK_DGRAM) as datagrams,
    ):
        port = server.getsockname()[1]
        datagrams.bind(("127.0.0.1", port))
        with interpreter.computer.preview("python", CLIENTS[client].format(port=port)) as preview:
            preview.run()
            denied = {(each.what, each.by.startswith("python")) for each in preview.denied}
            assert denied == {("network", client != "subprocess")}
        assert select.select([server, datagrams], [], [], 0)[0] == []


def test_denied_hosts_are_named(interpreter: OpenInterpreter) -> None:
    code = "import urllib.request; urllib.request.urlopen('http://example.invalid:81/')"
    with interpreter.computer.preview("python", code) as preview:
        preview.run()
        assert [str(each) for each in preview.denied] == ["python: the network example.invalid:81"]


def test_shell_blocks_cannot_reach_the_network(interpreter: OpenInterpreter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"echo x > /dev/tcp/127.0.0.1/{server.getsockname()[1]} || echo refused"
        with interpreter.computer.preview("shell", code) as preview:
            assert output(list(preview)).endswith("refused\n")
            assert [str(each) for each in preview.denied] == ["bash: the network"]
        assert select.select([server], [], [], 0)[0] == []


def test_unix_sockets_are_unreachable(interpreter: OpenInterpreter, tmp_path: Path) -> None:
    path = str(tmp_path / "door")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
        with interpreter.computer.preview("python", code) as preview:
            preview.run()
            assert [(each.what, each.target) for each in preview.denied] == [("network", path)]
        assert select.select([server], [], [], 0)[0] == []


def test_socket_pairs_and_process_pools_work(interpreter: OpenInterpreter) -> None:
    code = """
import socket, multiprocessing
a, b = socket.socketpair(); a.sendall(b'x'); print(b.recv(1))
with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1, 2]))
"""
    with interpreter.computer.preview("python", code) as preview:
        assert output(list(preview)) == "b'x'\n[1, 2]\n"
        assert preview.denied == []


@pytest.mark.parametrize("language", ["python", "shell"])
def test_signals_to_other_processes_are_denied(interpreter: OpenInterpreter, language: str) -> None:
    with subprocess.Popen(["sleep", "1000"]) as other:
        code = {"python": f"import os; os.kill({other.pid}, 9)", "shell": f"kill -9 {other.pid}"}[language]
        with interpreter.computer.preview(language, code) as preview:
            preview.run()
            assert [(each.what, each.target) for each in preview.denied] == [("signal", f"sleep ({other.pid})")]
        assert other.poll() is None
        other.kill()


def test_signals_to_child_processes_are_allowed(interpreter: OpenInterpreter) -> None:
    code = "import subprocess; child = subprocess.Popen(['sleep', '1000']); child.kill(); print(child.wait())"
    with interpreter.computer.preview("python", code) as preview:
        assert output(list(preview)) == "-9\n"
        assert preview.denied == []


def test_writes_to_other_folders_are_denied(interpreter: OpenInterpreter) -> None:
    path = Path(__file__).parent / "written-by-a-preview"
    if str(path).startswith(("/tmp/", "/var/tmp/")):
        path = Path(os.__file__).parent / path.name  # temporary files may be written; they are discarded
    try:
        with interpreter.computer.preview("python", f"open({str(path)!r}, 'w')") as preview:
            preview.run()
            expected = [] if not os.access(path.parent, os.W_OK) else [("write", str(path))]
            assert [(each.what, each.target) for each in preview.denied] == expected
            assert preview.ended == "error"
        assert not path.exists()
    finally:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "call", ["umount2(b'{workspace}', 2)", "mount(b'none', b'/', None, 0x1020, None)"], ids=["umount", "mount"]
)
def test_the_view_cannot_be_unmounted(interpreter: OpenInterpreter, workspace: Path, call: str) -> None:
    code = f"import ctypes; print(ctypes.CDLL(None, use_errno=True).{call.format(workspace=workspace)})\n"
    code += "open('new.txt', 'w').close()"
    with interpreter.computer.preview("python", code) as preview:
        assert output(list(preview)) == "-1\n"
        assert [each.what for each in preview.denied] == ["system"]
    assert not (workspace / "new.txt").exists()


def test_the_session_keeps_its_network_during_a_preview(interpreter: OpenInterpreter) -> None:
    """The session's process comes from an applied preview, so the same filter covers both."""
    interpreter.computer.preview("python", "import socket, threading").run().apply()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        prepare = (
            f"go_on = threading.Event()\ndef later(): go_on.wait(); socket.create_connection(('127.0.0.1', {port}))"
        )
        ran(interpreter, "python", f"{prepare}\nwaiting = threading.Thread(target=later); waiting.start()")
        with interpreter.computer.preview("python", "socket.socket()") as preview:
            preview.run()
            assert [each.what for each in preview.denied] == ["network"]
        ran(interpreter, "python", "go_on.set(); waiting.join()")
        assert select.select([server], [], [], 0)[0] == [server]
