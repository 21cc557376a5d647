"""`--remote` at the terminal: ssh's questions are asked there, and the machine is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from model_server import ModelServer
from remote.sshd import SSHD, sshd
from terminal.person import someone

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start an sshd that logs in others"),
    pytest.mark.skipif(not os.path.exists(SSHD), reason="sshd is not installed"),
]


def test_a_person_accepts_the_key_of_a_host_and_works_there(tmp_path: Path) -> None:
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


def test_a_no_ends_the_start_with_the_reason(tmp_path: Path) -> None:
    profile = tmp_path / "away.yaml"
    with sshd(tmp_path) as host, ModelServer() as server:
        host.known_hosts.write_text("")
        profile.write_text(f"computer:\n  remote_ssh: {host.command}\n")
        with someone("--profile", str(profile), "--remote", host.url(), server=server, columns=150) as person:
            person.answers("Are you sure you want to continue connecting", "no")
            person.sees("Can't connect to root@127.0.0.1")
            assert person.ends() != 0
