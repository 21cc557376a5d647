"""Every way out that we know is tried, as whoever runs the tests and as somebody without rights; none leads out."""

from __future__ import annotations

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
SOMEBODY = 65534
BE_SOMEBODY = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach: that of a test is its owner's alone."""
    folder = Path(tempfile.mkdtemp(prefix="escapes-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def facts(open_folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Facts]:
    home = open_folder / "home"
    work, outside, state = open_folder / "work", open_folder / "outside", open_folder / "state"
    for folder in (home / ".ssh", work / ".git" / "hooks", work / ".vscode", outside, state):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    known = Facts(
        str(work), str(outside / "canary"), str(home / ".ssh" / "id_canary"), 0, "", "", str(state), os.getpid()
    )
    (work / ".git" / "config").write_text("[core]\n")
    (outside / "canary").write_text("sings")
    (home / ".ssh" / "id_canary").write_text(known.secret)
    (state / "keys.env").write_text(known.secret)
    monkeypatch.setenv("CANARY_API_KEY", known.secret)
    monkeypatch.setenv("SOME_URL", f"postgres://me:{known.secret}@db.example.com/x")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0canary-{os.getpid()}")
        abstract.listen()
        with socket.socket(socket.AF_UNIX) as file:
            file.bind(str(outside / "socket"))
            file.listen()
            port = tcp.getsockname()[1]
            names = {"abstract": f"canary-{os.getpid()}", "socket": str(outside / "socket")}
            yield replace(known, port=port, **names, driver=str(SOURCE / "runtimes" / "supervisor.py"))


def give_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)


def check(results: dict[str, probes.Result], facts: Facts) -> None:
    assert [escape for result in results.values() for escape in result.escaped] == []
    assert all(result.survived for result in results.values()), results
    assert Path(facts.canary).read_text() == "sings"
    assert sorted(path.name for path in Path(facts.canary).parent.iterdir()) == ["canary", "socket"]
    assert sorted(path.name for path in (Path(facts.workspace) / ".git").rglob("*")) == ["config", "hooks"]
    assert (Path(facts.workspace) / ".git" / "config").read_text() == "[core]\n"
    assert Path(facts.key).read_text() == facts.secret
    assert not [path for path in Path(facts.workspace).rglob("*") if path.lstat().st_mode & 0o6000]


@pytest.mark.needs("node")
def test_nothing_gets_out(facts: Facts, real: None, no_strays: None) -> None:
    results = probes.attempt_all(facts)
    check(results, facts)
    counts = {"Python": len(probes.PYTHON), "Shell": len(probes.SHELL), "JavaScript": len(probes.JAVASCRIPT)}
    assert {name: result.held for name, result in results.items()} == counts


@pytest.mark.full
@pytest.mark.needs("node")
def test_nothing_gets_out_of_a_read_only_one(facts: Facts, real: None, no_strays: None) -> None:
    check(probes.attempt_all(facts, "read-only"), facts)
    assert sorted(path.name for path in Path(facts.workspace).iterdir()) == [".git", ".vscode"]


@pytest.mark.skipif(os.getuid() != 0, reason="runs as an unprivileged user already")
@pytest.mark.needs("node", "setpriv")
def test_nothing_gets_out_without_rights(facts: Facts, open_folder: Path, real: None, no_strays: None) -> None:
    python = public_python()
    for source in (SOURCE, Path(platformdirs.__file__).parent):
        shutil.copytree(source, open_folder / "lib" / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(probes.__file__, open_folder / "lib")
    give_away(open_folder)
    facts = replace(facts, driver=str(open_folder / "lib" / "interpreter" / "runtimes" / "supervisor.py"))
    env = {**os.environ, "PYTHONPATH": str(open_folder / "lib"), "VIRTUAL_ENV": "", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*BE_SOMEBODY, python, str(open_folder / "lib" / "probes.py"), json.dumps(asdict(facts))],
        env=env,
        cwd=open_folder,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    results = {name: probes.Result(**told) for name, told in json.loads(done.stdout.splitlines()[-1]).items()}
    check(results, facts)


def public_python() -> str:
    """A Python that another user can run."""
    for program in ("/usr/bin/python3", os.path.realpath(sys.executable)):
        test = [*BE_SOMEBODY, program, "-c", "import tomllib"]
        if shutil.which("setpriv") and subprocess.run(test, capture_output=True, cwd="/").returncode == 0:
            return program
    pytest.skip("no Python 3.11 or later here that another user could run: apt-get install python3")


def test_the_probes_are_real(facts: Facts, tmp_path: Path) -> None:
    """Without a sandbox they get what they are after."""
    names = ("read a key", "loopback of the host", "abstract socket of the host", "socket file of the host")
    names += ("signal a host process", "secrets in variables", "git configuration", "through a symbolic link")
    blocks = dict(probes.in_python(facts))
    for name in names:
        code = blocks[""] + blocks[name]
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert "ESCAPED" in done.stdout, (name, done.stdout, done.stderr)
