"""A real sshd with its own keys and configuration, on a free port of this machine or behind a virtual cable."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ports import free_ports
from waiting import until

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
CONFIG = """
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication {passwords}
KbdInteractiveAuthentication no
PubkeyAuthentication {keys}
SetEnv XDG_CACHE_HOME={folder}/cache
LogLevel ERROR
"""


class Sshd:
    """A running server; `command` is an ssh command that can log in and trusts the keys in `known_hosts`."""

    def __init__(self, folder: Path, address: str, port: int) -> None:
        self.folder, self.address, self.port = folder, address, port
        self.workspace = folder / "there"
        self.known_hosts = folder / "known_hosts"

    @property
    def command(self) -> str:
        options = {
            "UserKnownHostsFile": self.known_hosts,
            "GlobalKnownHostsFile": "/dev/null",
            "IdentityFile": self.folder / "key",
            "IdentitiesOnly": "yes",
            "ControlPersist": "20",  # seconds: on a busy machine, the next program may not use it within one
        }
        return "ssh -F none " + " ".join(f"-o {name}={value}" for name, value in options.items())

    def url(self, user: str = "root") -> str:
        return f"ssh://{user}@{self.address}:{self.port}{self.workspace}"

    def start(self, within: list[str]) -> subprocess.Popen[bytes]:
        """Start the server, or restart it after it was killed; `within` is a prefix for its command."""
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen([*within, SSHD, "-D", "-e", "-f", str(self.folder / "config")], stderr=log)
        scan = ["ssh-keyscan", "-T", "1", "-p", str(self.port), self.address]
        until(lambda: process.poll() is not None or subprocess.run(scan, capture_output=True).stdout, "the server")
        assert process.poll() is None, (self.folder / "log").read_text()
        return process

    def know_host(self) -> None:
        key = (self.folder / "host_key.pub").read_text().split()[:2]
        self.known_hosts.write_text(f"[{self.address}]:{self.port} {' '.join(key)}\n")


@contextmanager
def sshd(
    folder: Path, passwords: bool = False, address: str = "127.0.0.1", within: list[str] | None = None
) -> Iterator[Sshd]:
    """Run a server; `within` is a prefix for its command."""
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copyfile(folder / "key.pub", folder / "authorized_keys")
    port = free_ports(1)[0]
    fields = {"passwords": "yes" if passwords else "no", "keys": "no" if passwords else "yes"}
    (folder / "config").write_text(CONFIG.format(port=port, address=address, folder=folder, **fields))
    os.makedirs("/run/sshd", exist_ok=True)
    server = Sshd(folder, address, port)
    server.workspace.mkdir()
    server.know_host()
    process = server.start(within or [])
    try:
        yield server
    finally:
        process.kill()
        process.wait()


@contextmanager
def cable() -> Iterator[tuple[list[str], str, str]]:
    """Make a network behind a virtual cable: a command prefix to run there, its address, and our network interface."""
    tag, number = secrets.token_hex(3), secrets.randbelow(250) + 1
    space, ours, theirs = f"oi-{tag}", f"oi{tag}a", f"oi{tag}b"
    subnet = f"10.213.{number}"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    ip("netns", "add", space)
    try:
        ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", space)
        ip("addr", "add", f"{subnet}.1/24", "dev", ours)
        ip("link", "set", ours, "up")
        ip("-n", space, "addr", "add", f"{subnet}.2/24", "dev", theirs)
        ip("-n", space, "link", "set", theirs, "up")
        ip("-n", space, "link", "set", "lo", "up")
        yield ["ip", "netns", "exec", space], f"{subnet}.2", ours
    finally:
        subprocess.run(["ip", "netns", "del", space], check=False)
