"""Sessions over a real sshd on this machine: conformance, ssh's questions, pulled cables, killed clients."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter.errors import RemoteError, SettingError
from interpreter.languages.conformance import conform
from interpreter.questions import ANSWER, Answer
from interpreter.remote.machine import Machine
from interpreter.remote.ssh import OLD, Ssh, SshAddress, _greeted
from interpreter.runtimes import built_in_languages
from remote.conftest import RemoteSession, notices, text
from remote.sshd import SSHD, Sshd, cable, sshd
from runtimes import language_samples as samples
from sampling import some
from waiting import until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start an sshd that logs in others"),
    pytest.mark.skipif(not os.path.exists(SSHD), reason="sshd is not installed"),
]
COUNTING = "import time\nfor i in range({}):\n    print(i, flush=True)\n    time.sleep(0.1)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


def machine_at(server: Sshd, user: str = "root", keep: float = 60) -> Machine:
    address = SshAddress.parse(server.url(user))
    return Machine(str(address), Ssh(address, server.command), address.path, keep)


@pytest.fixture
def remote(server: Sshd) -> Iterator[RemoteSession]:
    machine = machine_at(server)
    yield RemoteSession(machine, None)
    machine.close()


PROGRAMS = {"JavaScript": "node", "Ruby": "ruby", "R": "Rscript"}


@pytest.mark.parametrize("name", some(1, ["Shell", "Python", "JavaScript", "Ruby", "R", "SQL"]))
def test_a_language_conforms_over_ssh(server: Sshd, name: str) -> None:
    if name in PROGRAMS and shutil.which(PROGRAMS[name]) is None:
        pytest.skip(f"{PROGRAMS[name]} is not installed")
    machine = machine_at(server)
    language = next(each for each in machine.languages(built_in_languages(), True) if each.name == name)
    try:
        results = conform(language, getattr(samples, name.upper()), python=sys.executable)
    finally:
        machine.close()
    assert {check: result for check, result in results.items() if result != "passed" and result != "not claimed"} == {}


def test_our_code_is_copied_to_the_host_once(server: Sshd, remote: RemoteSession) -> None:
    assert remote.output("import sys; print(sys.executable != '')") == "True\n"
    copies = list((server.folder / "cache" / "open-interpreter" / "remote").iterdir())
    remote.machine.close()
    assert remote.output("print(1)") == "1\n"
    assert list((server.folder / "cache" / "open-interpreter" / "remote").iterdir()) == copies


# -- ssh's questions -----------------------------------------------------------------------------------------------


def connect_and_answer(machine: Machine, *answers: str | None) -> list[tuple[str, str]]:
    """Connect and answer the questions; return the questions."""
    asked, left = [], list(answers)
    for question in machine.connecting():
        asked.append((question.kind, question.text))
        answer = left.pop(0) if left else None
        if answer is not None:
            question.settle(Answer(ANSWER, answer))
    return asked


def test_an_unknown_host_key_is_a_question(server: Sshd) -> None:
    machine = machine_at(server)
    server.known_hosts.write_text("")
    try:
        with pytest.raises(RemoteError, match="Host key verification failed"):
            connect_and_answer(machine, "no")
        with pytest.raises(RemoteError, match="Host key verification failed"):
            connect_and_answer(machine)
        (kind, prompt), *_ = connect_and_answer(machine, "yes")
        assert kind == "text"
        assert "SHA256:" in prompt
        assert server.address in prompt
        assert server.known_hosts.read_text()
    finally:
        machine.close()
        server.know_host()


def test_a_changed_host_key_is_an_error(server: Sshd) -> None:
    machine = machine_at(server)
    other = (server.folder / "key.pub").read_text().split()[:2]
    server.known_hosts.write_text(f"[{server.address}]:{server.port} {' '.join(other)}\n")
    try:
        with pytest.raises(RemoteError, match="Host key verification failed"):
            connect_and_answer(machine, "yes")
    finally:
        machine.close()
        server.know_host()


@pytest.fixture
def user() -> Iterator[tuple[str, str]]:
    """An account with a password."""
    name, password = f"oi{secrets.token_hex(3)}", secrets.token_hex(6)
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True, capture_output=True)
    try:
        subprocess.run(["chpasswd"], input=f"{name}:{password}".encode(), check=True)
        yield name, password
    finally:
        subprocess.run(["userdel", "--remove", "--force", name], check=False, capture_output=True)


def test_a_wrong_password_is_asked_for_again(user: tuple[str, str]) -> None:
    name, password = user
    # Not in pytest's temporary folder, which other users can't enter.
    with tempfile.TemporaryDirectory() as place, sshd(Path(place), passwords=True) as server:
        (Path(place) / "cache").mkdir()
        Path(place).chmod(0o755)
        shutil.chown(server.workspace, name)
        shutil.chown(Path(place) / "cache", name)
        machine = machine_at(server, name)
        with pytest.raises(RemoteError, match="Permission denied"):
            connect_and_answer(machine)
        asked = connect_and_answer(machine, "wrong", password)
        assert [kind for kind, _ in asked] == ["password", "password"]
        assert name in asked[0][1]
        assert RemoteSession(machine, None).output("import getpass; print(getpass.getuser())") == f"{name}\n"
        machine.close()


# -- connections that break ------------------------------------------------------------------------------------------


def test_a_killed_connection_resumes(server: Sshd, remote: RemoteSession) -> None:
    chunks: list[dict[str, Any]] = []
    remote.run("x = 41")
    for chunk in remote.language().run(COUNTING.format(12)):
        chunks.append(dict(chunk))
        if chunk.get("content") == "3\n":
            ssh: Any = remote.machine._transport
            subprocess.run(ssh._argv("-O", "exit"), check=False, capture_output=True)
    assert text(chunks).split() == [str(i) for i in range(12)]
    assert "Lost the connection" in notices(chunks)
    assert remote.output("print(x + 1)") == "42\n"


@pytest.mark.full
@pytest.mark.parametrize("seconds", [10, 60])
def test_a_block_survives_a_pulled_cable(tmp_path: Path, seconds: int) -> None:
    with cable() as (within, address, ours), sshd(tmp_path, address=address, within=within) as server:
        machine = machine_at(server, keep=300)
        remote = RemoteSession(machine, None)
        remote.run("x = 41")

        def pull_cable() -> None:
            subprocess.run(["ip", "link", "set", ours, "down"], check=True)
            time.sleep(seconds)
            subprocess.run(["ip", "link", "set", ours, "up"], check=True)

        chunks: list[dict[str, Any]] = []
        count = seconds * 10 + 20
        for chunk in remote.language().run(COUNTING.format(count)):
            chunks.append(dict(chunk))
            if chunk.get("content") == "3\n":
                threading.Thread(target=pull_cable).start()
        assert text(chunks).split() == [str(i) for i in range(count)]
        assert chunks[-1]["ended"] == "done"
        assert remote.output("print(x + 1)") == "42\n"
        machine.close()


CLIENT = """
import sys
from interpreter.remote.machines import machine_at
class Computer: remote_keep, remote_ssh, machine = 1, sys.argv[2], None
machine = machine_at(sys.argv[1], "", Computer)
list(machine.connecting())
print("connected", flush=True)
sys.stdin.read()
"""


@pytest.mark.full
def test_a_keeper_exits_after_its_client_was_killed(server: Sshd) -> None:
    argv = [sys.executable, "-c", CLIENT, server.url(), server.command]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"connected\n"
        keepers = server.folder / "cache" / "open-interpreter" / "keepers"
        (keeper,) = list(keepers.iterdir())
        client.kill()
    until(lambda: not keeper.exists(), "the keeper to end")


@pytest.mark.full
def test_a_host_crash_ends_the_block_and_loses_its_variables(tmp_path: Path) -> None:
    with cable() as (within, address, ours), contextlib.ExitStack() as first:
        server = first.enter_context(sshd(tmp_path, address=address, within=within))
        machine = machine_at(server, keep=20)
        remote = RemoteSession(machine, None)
        remote.run("x = 41")

        def crash() -> None:
            subprocess.run(["ip", "link", "set", ours, "down"], check=True)
            for pid in subprocess.run(["ip", "netns", "pids", within[-1]], capture_output=True).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            shutil.rmtree(server.folder / "cache" / "open-interpreter" / "keepers")  # as after a reboot
            subprocess.run(["ip", "link", "set", ours, "up"], check=True)
            restarted.append(server.start(within))

        chunks: list[dict[str, Any]] = []
        restarted: list[subprocess.Popen[bytes]] = []
        try:
            for chunk in remote.language().run(COUNTING.format(10_000)):
                chunks.append(dict(chunk))
                if chunk.get("content") == "3\n":
                    threading.Thread(target=crash).start()
            assert chunks[-1]["ended"] == "died"
            assert "has ended, and its variables are lost" in notices(chunks)
            assert "NameError" in remote.output("print(x)")
            assert remote.output("print(6 * 7)") == "42\n"
        finally:
            machine.close()
            for process in restarted:
                process.kill()
                process.wait()


# -- addresses and errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("ssh://", "is not an address"),
        ("ssh://-oProxyCommand=x/", "can't begin with"),
        ("ssh://user:secret@host", "Leave the password out"),
        ("ssh://host:99999", "Port out of range"),
        ("http://host", "is not an address"),
    ],
)
def test_invalid_addresses_are_rejected(address: str, problem: str) -> None:
    with pytest.raises(SettingError, match=problem):
        SshAddress.parse(address)


def test_an_address_has_a_user_a_port_and_a_folder() -> None:
    assert SshAddress.parse("ssh://ada@host:2222/data/a%20b") == SshAddress("host", "ada", 2222, "/data/a b")
    assert SshAddress.parse("ssh://host") == SshAddress("host")
    assert SshAddress.parse("ssh://host/~/work").path == "~/work"


@pytest.mark.parametrize(
    ("line", "words"), [(b"Python 3.9.2", "has Python 3.9.2"), (b"sh: not found", "has no Python")]
)
def test_an_old_or_missing_python_is_an_error_with_advice(line: bytes, words: str) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"Welcome!\n" + OLD + line + b"\n")
    with ours, theirs, pytest.raises(RemoteError, match=f"{words}.*needs Python 3.11"):
        _greeted(ours, b"", SshAddress("host"))


def test_an_unreachable_machine_is_reported() -> None:
    machine = Machine("nowhere", Ssh(SshAddress("127.0.0.1", port=1)), "", 1)
    with pytest.raises(RemoteError, match=r"Can't connect to 127\.0\.0\.1: .*refused"):
        list(machine.connecting())
    machine.close()
