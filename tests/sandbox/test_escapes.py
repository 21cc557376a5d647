"""All known escapes fail, for the current user and for an unprivileged one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import platformdirs
import pytest

import interpreter
from sandbox import probes
from sandbox.probes import Facts

SOURCE = Path(interpreter.__file__).parent
UNPRIVILEGED_UID = 65534
AS_UNPRIVILEGED_USER = ["setpriv", f"--reuid={UNPRIVILEGED_UID}", f"--regid={UNPRIVILEGED_UID}", "--clear-groups"]


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that all users can reach; `tmp_path` is private to its owner."""
    folder = Path(tempfile.mkdtemp(prefix="escapes-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def facts(public_folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Facts]:
    home = public_folder / "home"
    work, outside, state = public_folder / "work", public_folder / "outside", public_folder / "state"
    deep = work / "a" / "b" / "c" / "d" / "e" / ".git"
    for folder in (home / ".ssh", work / ".git" / "hooks", work / ".vscode", deep, work / "separate", outside, state):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    known = Facts(
        workspace=str(work),
        canary=str(outside / "canary"),
        key=str(home / ".ssh" / "id_canary"),
        port=0,
        abstract=f"canary-{os.getpid()}",
        socket=str(outside / "socket"),
        sockets={},
        datagrams=str(outside / "datagram-socket"),
        pipe=str(outside / "pipe"),
        state=str(state),
        host_pid=os.getpid(),
        driver=str(SOURCE / "runtimes" / "supervisor.py"),
    )
    os.mkfifo(known.pipe)
    for folder in (work / ".git", deep, work / "separate"):
        (folder / "config").write_text("[core]\n")
    (work / "tree").mkdir()
    (work / "tree" / ".git").write_text("gitdir: ../separate\n")
    (outside / "canary").write_text("sings")
    (home / ".ssh" / "id_canary").write_text(known.secret)
    (state / "keys.env").write_text(known.secret)
    monkeypatch.setenv("CANARY_API_KEY", known.secret)
    monkeypatch.setenv("SOME_URL", f"postgres://me:{known.secret}@db.example.com/x")
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(known.datagrams)
        for address in (f"\0{known.abstract}", known.socket):
            stack.enter_context(listening_at(address))
        yield replace(known, port=tcp.getsockname()[1], sockets=host_sockets(outside, work, stack))


def listening_at(address: str | bytes) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    if isinstance(address, bytes) or address[0] == "/":
        os.chmod(address, 0o777)
    return listening


def host_sockets(outside: Path, work: Path, stack: contextlib.ExitStack) -> dict[str, str]:
    """Visible sockets whose paths differ from those in /proc/net/unix."""
    undecodable = os.fsencode(outside) + b"/socket-\xff\xfe"
    stack.enter_context(listening_at(undecodable))
    stack.enter_context(listening_at(str(work / "host-socket")))
    stack.enter_context(listening_at(str(outside / "before")))
    (outside / "before").rename(outside / "renamed-socket")
    bind = "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
    bind += "os.chmod(sys.argv[1], 0o777); print(flush=True); sys.stdin.read()"
    found = {"renamed": outside / "renamed-socket", "in the workspace": work / "host-socket"}
    found |= {"a relative path": outside / "relative-socket", "another network": outside / "network-socket"}
    away = ["unshare", "--net"] if os.getuid() == 0 else ["unshare", "--net", "--map-root-user"]
    for prefix, name in (([], "relative-socket"), (away, "network-socket")):
        process = subprocess.Popen(
            [*prefix, sys.executable, "-c", bind, name], cwd=outside, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        stack.callback(process.communicate)
    return {how: str(path) for how, path in found.items()} | {"an undecodable name": os.fsdecode(undecodable)}


def chown_to_unprivileged_user(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID, follow_symlinks=False)


def check(results: dict[str, probes.Result], facts: Facts) -> None:
    for name, result in results.items():
        print(f"{name}: {result.tried} tried, {result.held} held, {len(result.documented)} documented")
    assert [escape for result in results.values() for escape in result.escaped] == []
    assert all(result.survived for result in results.values()), results
    assert Path(facts.canary).read_text() == "sings"
    expected = {Path(os.fsdecode(path)).name for path in facts.sockets.values()} - {"host-socket"}
    expected |= {"canary", "socket", "datagram-socket", "pipe"}
    assert {path.name for path in Path(facts.canary).parent.iterdir()} == expected
    assert set(results["Python"].documented) == set(probes.DOCUMENTED)
    assert sorted(path.name for path in (Path(facts.workspace) / ".git").rglob("*")) == ["config", "hooks"]
    for folder in (".git", "a/b/c/d/e/.git", "separate"):
        assert (Path(facts.workspace) / folder / "config").read_text() == "[core]\n"
    assert not list(Path(facts.workspace).glob(".idea*")) and not (Path(facts.workspace) / ".agents").exists()
    assert Path(facts.key).read_text() == facts.secret
    assert not [path for path in Path(facts.workspace).rglob("*") if path.lstat().st_mode & 0o6000]


REPEATED = pytest.mark.parametrize("attempt", [1, *(pytest.param(n, marks=pytest.mark.full) for n in range(2, 6))])


@REPEATED
@pytest.mark.needs("node")
def test_no_probe_escapes(facts: Facts, sandbox_available: None, no_strays: None, attempt: int) -> None:
    results = probes.attempt_all(facts)
    check(results, facts)
    counts = {"Python": len(probes.PYTHON), "Shell": len(probes.SHELL), "JavaScript": len(probes.JAVASCRIPT)}
    assert {name: result.held for name, result in results.items()} == counts


@pytest.mark.full
@pytest.mark.needs("node")
def test_no_probe_escapes_from_a_read_only_sandbox(facts: Facts, sandbox_available: None, no_strays: None) -> None:
    check(probes.attempt_all(facts, "read-only"), facts)
    expected = [".git", ".vscode", "a", "host-socket", "separate", "tree"]
    assert sorted(path.name for path in Path(facts.workspace).iterdir()) == expected


@REPEATED
@pytest.mark.skipif(os.getuid() != 0, reason="runs as an unprivileged user already")
@pytest.mark.needs("node", "setpriv")
def test_no_probe_escapes_as_an_unprivileged_user(
    facts: Facts, public_folder: Path, sandbox_available: None, no_strays: None, attempt: int
) -> None:
    python = public_python()
    for source in (SOURCE, Path(platformdirs.__file__).parent):
        shutil.copytree(source, public_folder / "lib" / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(probes.__file__, public_folder / "lib")
    chown_to_unprivileged_user(public_folder)
    facts = replace(facts, driver=str(public_folder / "lib" / "interpreter" / "runtimes" / "supervisor.py"))
    env = {**os.environ, "PYTHONPATH": str(public_folder / "lib"), "VIRTUAL_ENV": "", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*AS_UNPRIVILEGED_USER, python, str(public_folder / "lib" / "probes.py"), json.dumps(asdict(facts))],
        env=env,
        cwd=public_folder,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    results = {name: probes.Result(**result) for name, result in json.loads(done.stdout.splitlines()[-1]).items()}
    check(results, facts)


def public_python() -> str:
    """A Python that another user can run."""
    for program in ("/usr/bin/python3", os.path.realpath(sys.executable)):
        test = [*AS_UNPRIVILEGED_USER, program, "-c", "import tomllib"]
        if shutil.which("setpriv") and subprocess.run(test, capture_output=True, cwd="/").returncode == 0:
            return program
    pytest.skip("no Python 3.11 or later that another user can run: apt-get install python3")


def test_the_probes_succeed_without_a_sandbox(facts: Facts, tmp_path: Path) -> None:
    """A probe that could never succeed would prove nothing."""
    names = ("read a key", "loopback of the host", "abstract socket of the host", "socket file of the host")
    names += ("signal a host process", "secrets in variables", "git configuration", "through a symbolic link")
    names += ("socket files of the host, created in unusual ways", "a reconnected socket pair")
    names += ("a deeply nested repository", "a separate git folder", "skills that don't exist yet")
    blocks = dict(probes.in_python(facts))
    for name in names:
        code = blocks[""] + blocks[name]
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert "ESCAPED" in done.stdout, (name, done.stdout, done.stderr)
