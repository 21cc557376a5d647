"""Sessions over a real sshd on this machine: conformance, questions of ssh, pulled cables, killed clients."""

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
from interpreter.remote.machine import Machine
from interpreter.remote.ssh import OLD, Ssh, SshAddress, _greeted
from interpreter.runtimes import built_in_languages
from interpreter.runtimes.conformance import CHECKS, conform
from remote.conftest import Elsewhere, text, told
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
def there(server: Sshd) -> Iterator[Elsewhere]:
    machine = machine_at(server)
    yield Elsewhere(machine, None)
    machine.close()


@pytest.mark.parametrize("name", some(1, ["Shell", "Python"]))
def test_a_language_conforms_over_ssh(server: Sshd, name: str) -> None:
    given = {"Python": samples.PYTHON, "Shell": samples.SHELL}[name]
    machine = machine_at(server)
    language = next(each for each in machine.languages(built_in_languages(), True) if each.name == name)
    try:
        results = conform(language, given, python=sys.executable)
    finally:
        machine.close()
    assert {check: result for check, result in results.items() if result != "passed" and result != "not claimed"} == {}


@pytest.mark.full
@pytest.mark.parametrize("name", ["JavaScript", "Ruby", "R", "SQL"])
def test_another_language_conforms_over_ssh(server: Sshd, name: str) -> None:
    program = {"JavaScript": "node", "Ruby": "ruby", "R": "Rscript", "SQL": "sh"}[name]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    machine = machine_at(server)
    language = next(each for each in machine.languages(built_in_languages(), True) if each.name == name)
    try:
        results = conform(language, getattr(samples, name.upper()), tuple(CHECKS), python=sys.executable)
    finally:
        machine.close()
    assert {check: result for check, result in results.items() if result != "passed" and result != "not claimed"} == {}


def test_our_code_is_copied_once_and_nothing_else_is_needed(server: Sshd, there: Elsewhere) -> None:
    assert there.output("import sys; print(sys.executable != '')") == "True\n"
    copies = list((server.folder / "cache" / "open-interpreter" / "remote").iterdir())
    there.machine.close()
    assert there.output("print(1)") == "1\n"
    assert list((server.folder / "cache" / "open-interpreter" / "remote").iterdir()) == copies


# -- what ssh asks -------------------------------------------------------------------------------------------------


def answered(machine: Machine, *answers: str | None) -> list[tuple[str, str]]:
    """Connect and answer what is asked; the questions."""
    asked, left = [], list(answers)
    for chunk in machine.connecting():
        request: Any = chunk["request"]  # type: ignore[typeddict-item]
        asked.append((request.kind, request.prompt))
        answer = left.pop(0) if left else None
        if answer is not None:
            request.text, request.is_answered = answer, True
    return asked


def test_an_unknown_host_key_is_a_question(server: Sshd) -> None:
    machine = machine_at(server)
    server.known_hosts.write_text("")
    try:
        with pytest.raises(RemoteError, match="Host key verification failed"):
            answered(machine, "no")
        with pytest.raises(RemoteError, match="Host key verification failed"):
            answered(machine)
        (kind, prompt), *_ = answered(machine, "yes")
        assert kind == "text"
        assert "SHA256:" in prompt
        assert server.address in prompt
        assert server.known_hosts.read_text()
    finally:
        machine.close()
        server.know_host()


def test_a_changed_host_key_is_an_error_that_says_so(server: Sshd) -> None:
    machine = machine_at(server)
    other = (server.folder / "key.pub").read_text().split()[:2]
    server.known_hosts.write_text(f"[{server.address}]:{server.port} {' '.join(other)}\n")
    try:
        with pytest.raises(RemoteError, match="Host key verification failed"):
            answered(machine, "yes")
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


def test_a_password_is_a_question_and_a_wrong_one_is_asked_again(user: tuple[str, str]) -> None:
    name, password = user
    # not in the folder of pytest, which each new run of it closes to other users
    with tempfile.TemporaryDirectory() as place, sshd(Path(place), passwords=True) as server:
        (Path(place) / "cache").mkdir()
        Path(place).chmod(0o755)
        shutil.chown(server.workspace, name)
        shutil.chown(Path(place) / "cache", name)
        machine = machine_at(server, name)
        with pytest.raises(RemoteError, match="Permission denied"):
            answered(machine)
        asked = answered(machine, "wrong", password)
        assert [kind for kind, _ in asked] == ["password", "password"]
        assert name in asked[0][1]
        assert Elsewhere(machine, None).output("import getpass; print(getpass.getuser())") == f"{name}\n"
        machine.close()


# -- connections that break ------------------------------------------------------------------------------------------


def test_a_connection_that_is_killed_resumes(server: Sshd, there: Elsewhere) -> None:
    chunks: list[dict[str, Any]] = []
    there.run("x = 41")
    for chunk in there.language().run(COUNTING.format(12)):
        chunks.append(dict(chunk))
        if chunk.get("content") == "3\n":
            ssh: Any = there.machine._transport
            subprocess.run(ssh._argv("-O", "exit"), check=False, capture_output=True)
    assert text(chunks).split() == [str(i) for i in range(12)]
    assert "Lost the connection" in told(chunks)
    assert there.output("print(x + 1)") == "42\n"


def pull(tmp_path: Path, seconds: float) -> None:
    with cable() as (within, address, ours), sshd(tmp_path, address=address, within=within) as server:
        machine = machine_at(server, keep=300)
        there = Elsewhere(machine, None)
        there.run("x = 41")

        def away() -> None:
            subprocess.run(["ip", "link", "set", ours, "down"], check=True)
            time.sleep(seconds)
            subprocess.run(["ip", "link", "set", ours, "up"], check=True)

        chunks: list[dict[str, Any]] = []
        count = int(seconds * 10) + 20
        for chunk in there.language().run(COUNTING.format(count)):
            chunks.append(dict(chunk))
            if chunk.get("content") == "3\n":
                threading.Thread(target=away).start()
        assert text(chunks).split() == [str(i) for i in range(count)]
        assert chunks[-1]["ended"] == "done"
        assert there.output("print(x + 1)") == "42\n"
        machine.close()


@pytest.mark.full
def test_a_cable_that_is_out_for_ten_seconds(tmp_path: Path) -> None:
    pull(tmp_path, 10)


@pytest.mark.full
def test_a_cable_that_is_out_for_a_minute(tmp_path: Path) -> None:
    pull(tmp_path, 60)


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
def test_a_keeper_whose_client_was_killed_ends_by_itself(server: Sshd) -> None:
    argv = [sys.executable, "-c", CLIENT, server.url(), server.command]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"connected\n"
        keepers = server.folder / "cache" / "open-interpreter" / "keepers"
        (keeper,) = list(keepers.iterdir())
        client.kill()
    until(lambda: not keeper.exists(), "the keeper to end")


@pytest.mark.full
def test_a_host_that_is_killed_ends_the_block_and_comes_back_empty(tmp_path: Path) -> None:
    with cable() as (within, address, ours), contextlib.ExitStack() as first:
        server = first.enter_context(sshd(tmp_path, address=address, within=within))
        machine = machine_at(server, keep=20)
        there = Elsewhere(machine, None)
        there.run("x = 41")

        def crash() -> None:
            subprocess.run(["ip", "link", "set", ours, "down"], check=True)
            for pid in subprocess.run(["ip", "netns", "pids", within[-1]], capture_output=True).stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            shutil.rmtree(server.folder / "cache" / "open-interpreter" / "keepers")  # a new start finds none
            subprocess.run(["ip", "link", "set", ours, "up"], check=True)
            restarted.append(server.start(within))

        chunks: list[dict[str, Any]] = []
        restarted: list[subprocess.Popen[bytes]] = []
        try:
            for chunk in there.language().run(COUNTING.format(10_000)):
                chunks.append(dict(chunk))
                if chunk.get("content") == "3\n":
                    threading.Thread(target=crash).start()
            assert chunks[-1]["ended"] == "died"
            assert "has ended, and its variables are lost" in told(chunks)
            assert "NameError" in there.output("print(x)")
            assert there.output("print(6 * 7)") == "42\n"
        finally:
            machine.close()
            for process in restarted:
                process.kill()
                process.wait()


# -- addresses and Pythons -------------------------------------------------------------------------------------------


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
def test_a_wrong_address_says_what_is_wrong(address: str, problem: str) -> None:
    with pytest.raises(SettingError, match=problem):
        SshAddress.parse(address)


def test_an_address_has_a_user_a_port_and_a_folder() -> None:
    assert SshAddress.parse("ssh://ada@host:2222/data/a%20b") == SshAddress("host", "ada", 2222, "/data/a b")
    assert SshAddress.parse("ssh://host") == SshAddress("host")
    assert SshAddress.parse("ssh://host/~/work").path == "~/work"


@pytest.mark.parametrize(
    ("line", "words"), [(b"Python 3.9.2", "has Python 3.9.2"), (b"sh: not found", "has no Python")]
)
def test_a_machine_with_an_old_python_says_what_to_do(line: bytes, words: str) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"Welcome!\n" + OLD + line + b"\n")
    with ours, theirs, pytest.raises(RemoteError, match=f"{words}.*needs Python 3.11"):
        _greeted(ours, b"", SshAddress("host"))


def test_a_machine_that_cannot_be_reached_says_so() -> None:
    machine = Machine("nowhere", Ssh(SshAddress("127.0.0.1", port=1)), "", 1)
    with pytest.raises(RemoteError, match=r"Can't connect to 127\.0\.0\.1: .*refused"):
        list(machine.connecting())
    machine.close()
