"""`--remote` at the terminal: it asks ssh's questions and names the machine."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from model_server import ModelServer, text
from remote.sshd import SSHD, Sshd, sshd
from terminal.person import Person, someone
from waiting import until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start an sshd that logs in others"),
    pytest.mark.skipif(not os.path.exists(SSHD), reason="sshd is not installed"),
]


def test_accepting_the_host_key_starts_a_remote_session(tmp_path: Path) -> None:
    profile = tmp_path / "away.yaml"
    with sshd(tmp_path) as host, ModelServer() as server:
        host.known_hosts.write_text("")
        profile.write_text(f"computer:\n  remote_ssh: {host.command}\n")
        with someone("--profile", str(profile), "--remote", host.url(), server=server, columns=150) as person:
            person.answers("Are you sure you want to continue connecting", "yes")
            person.says("!pwd; export x=5")
            person.sees(str(host.workspace))
            person.says(">>> y = 6 * 7")
            person.says("%vars")
            person.sees("42")
            person.sees("root@127.0.0.1:")
            person.says("%cd /tmp")
            person.sees("This session works on root@127.0.0.1. To change the folder there: !cd FOLDER")
            assert person.leaves() == 0


def test_rejecting_the_host_key_ends_with_an_error(tmp_path: Path) -> None:
    profile = tmp_path / "away.yaml"
    with sshd(tmp_path) as host, ModelServer() as server:
        host.known_hosts.write_text("")
        profile.write_text(f"computer:\n  remote_ssh: {host.command}\n")
        with someone("--profile", str(profile), "--remote", host.url(), server=server, columns=150) as person:
            person.answers("Are you sure you want to continue connecting", "no")
            person.sees("Can't connect to root@127.0.0.1")
            assert person.ends() != 0


def kill_client(person: Person, host: Sshd) -> Path:
    """Kill the program, and return the folder of the keeper that it leaves behind."""
    (keeper,) = (host.folder / "cache" / "open-interpreter" / "keepers").iterdir()
    person.signals(signal.SIGKILL)
    assert person.ends() == -signal.SIGKILL
    return keeper


@pytest.mark.full
def test_continue_finds_the_runtimes_of_a_killed_client(tmp_path: Path, home: Path) -> None:
    profile = tmp_path / "away.yaml"
    with sshd(tmp_path) as host, ModelServer(replies=[text("Hello."), text("Fine.")]) as server:
        profile.write_text(f"computer:\n  remote_ssh: {host.command}\n")
        with someone("--profile", str(profile), "--remote", host.url(), server=server, columns=150) as person:
            person.says("hi")
            person.sees("Hello.")
            person.says(">>> import os; os.mkdir('sub'); os.chdir('sub'); x = 41; print('ready')")
            person.sees("ready", times=2)
            person.says(">>> import time; y = 1; print('begun', flush=True); time.sleep(1000)")
            person.sees("begun", times=2)
            kill_client(person, host)
        (keepers_file,) = home.rglob("keepers.json")
        assert keepers_file.stat().st_mode & 0o777 == 0o600
        with someone("--profile", str(profile), "--continue", server=server, columns=150) as person:
            person.sees("The session on root@127.0.0.1 is still running, with its variables.")
            person.says(">>> print(x + y, os.path.basename(os.getcwd()))")
            person.sees("42 sub")
            person.says("and now?")
            person.sees("Fine.")
            assert person.leaves() == 0
        said = str(server.requests[-1].body)
        assert "The live sessions on root@127.0.0.1 are still running" in said
        assert keepers_file.read_text().split('"keeper": "')[1][:16] not in said


@pytest.mark.full
def test_continue_reports_lost_variables_if_the_keeper_ended(tmp_path: Path, home: Path) -> None:
    profile = tmp_path / "away.yaml"
    with sshd(tmp_path) as host, ModelServer(replies=[text("Hello.")]) as server:
        profile.write_text(f"computer:\n  remote_ssh: {host.command}\n  remote_keep: 1\n")
        with someone("--profile", str(profile), "--remote", host.url(), server=server, columns=150) as person:
            person.says("hi")
            person.sees("Hello.")
            person.says(">>> x = 41; print('ready')")
            person.sees("ready", times=2)
            keeper = kill_client(person, host)
        until(lambda: not keeper.exists(), "the keeper to end")
        with someone("--profile", str(profile), "--continue", server=server, columns=150) as person:
            person.answers("The variables are gone. Run the block that built them again?", "n")
            person.says(">>> print(x)")
            person.sees("NameError")
            assert person.leaves() == 0
