"""A sandbox that cannot be had is refused, with the reason and the command that would help; nothing runs without it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from interpreter.errors import SandboxUnavailableError
from interpreter.runtimes.launch import Start
from interpreter.runtimes.runtime import SUPERVISOR
from interpreter.sandbox import bubblewrap, container
from interpreter.sandbox.containment import Containment
from interpreter.sandbox.places import places
from interpreter.sandbox.sandbox import ENTER, ResourceLimits, Sandbox
from interpreter.sandbox.seatbelt import profile


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_without_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.defpath", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match="apt-get install bubblewrap"):
        Containment(Sandbox("workspace", str(tmp_path)))


def test_with_one_that_cannot_make_namespaces(tmp_path: Path) -> None:
    broken = program(tmp_path, "bwrap", "echo 'No permissions to create new namespace' >&2; exit 1")
    trouble = bubblewrap.trouble_with(str(broken))
    assert "No permissions to create new namespace" in trouble and ("sysctl" in trouble or "bubblewrap 0.8" in trouble)


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_a_sandbox_that_fails_later_says_so_and_runs_nothing(contained: Any, workspace: Path, tmp_path: Path) -> None:
    inside = contained()
    inside.containment.outputs.rmdir()
    ran = inside.do("python", "open('ran', 'w')")
    assert "bwrap:" in ran.text and ran.ended == "died" and not (workspace / "ran").exists()


def test_without_a_container_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match="apt-get install podman"):
        Containment(Sandbox("container:python:3.12", str(tmp_path)))


def test_with_one_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match=r"Cannot connect to the Docker daemon.*systemctl start docker"):
        container.available()


def test_the_command_line_of_a_container(workspace: Path, tmp_path: Path) -> None:
    sandbox = Sandbox(
        "container:python:3.12", str(workspace), paths=("/data", "/more:rw"), limits=ResourceLimits(memory=100)
    )
    start = Start([], {"LANG": "C", "PATH": "/bin"}, str(workspace / "sub"))
    mounts = {workspace / ".git": "ro", tmp_path: "ro"}
    line = container.command("docker", sandbox, start, mounts, ["python3", "-c", "1"], "/environment")
    text = " ".join(line)
    for part in (
        "--network none",
        "--cap-drop ALL",
        "no-new-privileges",
        "--read-only",
        "--memory 100m",
        "--pids-limit 1024",
    ):
        assert part in text
    for mount in (
        f"{workspace}:{workspace}:rw",
        f"{workspace}/.git:{workspace}/.git:ro",
        "/data:/data:ro",
        "/more:/more:rw",
    ):
        assert f"--volume {mount}" in text
    assert line[-5:] == ["--entrypoint", "python3", "python:3.12", "-c", "1"]
    assert (
        "--env-file /environment" in text
        and "PATH" not in text
        and "privileged" not in text.replace("no-new-privileges", "")
    )
    assert line.index(f"{workspace}:{workspace}:rw") < line.index(f"{workspace}/.git:{workspace}/.git:ro")


def test_variables_of_the_session_do_not_reach_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library, a configuration or another daemon for the engine would be code on the host."""
    program(tmp_path, "podman", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    hostile = dict.fromkeys(("LD_AUDIT", "CONTAINERS_CONF", "DOCKER_HOST", "BASH_ENV", "XDG_CONFIG_HOME"), "/planted")
    for name in hostile:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "work").mkdir()
    containment = Containment(Sandbox("container:python:3.12", str(tmp_path / "work")))
    with containment.wrap(Start(["python3"], {**hostile, "LANG": "C", "MORE": "a\nLD_AUDIT=b"}, "/")) as start:
        assert not hostile.keys() & start.env.keys() and "MORE" not in start.env
        given = Path(start.argv[start.argv.index("--env-file") + 1])
        assert given.stat().st_mode & 0o777 == 0o600
        assert set(given.read_text().splitlines()) == {*(f"{name}=/planted" for name in hostile), "LANG=C"}
    containment.close()


def test_programs_of_the_host_are_the_images_own() -> None:
    assert container.inside(sys.executable) == "python3"
    assert container.inside("/bin/sh") == "sh"
    assert container.inside("/no/such") == "/no/such" and container.inside("exec") == "exec"


def test_the_profile_for_seatbelt(workspace: Path, home: Path, tmp_path: Path) -> None:
    (home / ".ssh").mkdir()
    seen = places(Sandbox("workspace", str(workspace)), [], [])
    lines = profile(seen, {tmp_path: True}, 8080, [workspace / "separate"]).splitlines()
    by_name = next(line for line in lines if line.startswith("(deny file-write* (regex"))
    order = [
        "(deny default)",
        "(allow file-read*)",
        f'(deny file-read* file-write* (subpath "{home}"))',
        f'(allow file-read* file-write* (subpath "{workspace}"))',
        by_name,
        f'(deny file-write* (subpath "{workspace}/separate"))',
        "(deny network*)",
        '(allow network-outbound (remote ip "localhost:8080"))',
    ]
    assert [line for line in lines if line in order] == order
    assert not any("allow network" in line for line in profile(seen, {}, None).splitlines())


def test_seatbelt_shows_the_session_environment_in_our_hidden_state(workspace: Path, home: Path) -> None:
    state = home / "state"
    layer = state / "environments" / "work" / "sandboxed"
    layer.mkdir(parents=True)
    seen = places(Sandbox("workspace", str(workspace), paths=(str(home),)), [], [state])
    for can_write, allowed in ((True, "file-read* file-write*"), (False, "file-read*")):
        lines = profile(seen, {layer: can_write}, None).splitlines()
        hidden = lines.index(f'(deny file-read* file-write* (subpath "{state}"))')
        assert lines.index(f'(allow {allowed} (subpath "{layer}"))') > hidden


def test_a_path_cannot_break_out_of_the_profile(tmp_path: Path) -> None:
    folder = tmp_path / 'a")(allow default)("'
    folder.mkdir()
    seen = places(Sandbox("workspace", str(folder)), [], [])
    assert r"a\")(allow default)(\"" in profile(seen, {}, None)


@pytest.mark.skipif(sys.platform != "darwin", reason="sandbox-exec is on macOS alone")
def test_seatbelt_holds(tmp_path: Path) -> None:
    containment = Containment(Sandbox("workspace", str(tmp_path)))
    with containment.wrap(Start(["/bin/sh", "-c", "echo x >~/canary; echo y >made"], {}, str(tmp_path))) as start:
        subprocess.run(start.argv, env=start.env, cwd=start.cwd)
    assert (tmp_path / "made").exists() and not (Path.home() / "canary").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_a_sandbox_whose_folders_somebody_deleted_says_so(contained: Any) -> None:
    inside = contained()
    (inside.containment.scratch / "tmp").rmdir()
    with pytest.raises(SandboxUnavailableError, match="Can't start the sandbox"):
        inside.do("python", "1")


@pytest.mark.parametrize("filtered", [False, True])
def test_the_line_into_a_container_carries_descriptors(tmp_path: Path, filtered: bool) -> None:
    """The same line without a container: the supervisor connects to it, and what it starts writes to our pipe."""
    calls = (bubblewrap.seccomp_filter() or b"").hex() if filtered else "-"
    code = "import socket; socket.socketpair()\ntry: socket.socket(socket.AF_UNIX)\nexcept OSError: print('none')"
    ours, theirs = socket.socketpair()
    lives, held = os.pipe()
    container.carry(tmp_path / "line", theirs.detach(), lives)
    reader, writer = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    argv = [
        sys.executable,
        ENTER,
        "0",
        "CORE=0",
        "-",
        calls,
        str(SUPERVISOR),
        f"connect={tmp_path}/line",
        "exec",
        *([sys.executable, "-c", code] if filtered else ["/bin/echo", "hello"]),
    ]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process, ours:
        socket.send_fds(ours, [b"spawn\n"], [null, null, writer, writer])
        for fd in (null, writer):
            os.close(fd)
        assert os.read(reader, 100).startswith(b"none" if filtered else b"hello")
        ours.shutdown(socket.SHUT_RDWR)
        assert process.wait(60) == 0
    os.close(reader)
    os.close(held)


def test_where_the_engine_ends_early_nobody_waits_for_its_container(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    lives, held = os.pipe()
    container.carry(tmp_path / "line", theirs.detach(), lives)
    os.close(held)
    with ours:
        ours.settimeout(60)
        assert ours.recv(1) == b""


@pytest.mark.parametrize("path", ["/.git/config", "/a/.Git", "/a/b/c/d/.vscode/tasks.json", "/x/.envrc", "/.agents"])
def test_seatbelt_denies_trusted_names_at_any_depth(workspace: Path, path: str) -> None:
    """Whether or not they exist: the profile goes by their names."""
    seen = places(Sandbox("workspace", str(workspace)), [], [])
    rules = [line for line in profile(seen, {}, None).splitlines() if "(regex" in line and "deny" in line]
    (pattern,) = re.findall(r'\(regex "(.*)"\)\)', rules[0])
    pattern = pattern.replace("\\\\", "\\")
    assert re.match(pattern, f"{workspace}{path}") and not re.match(pattern, f"{workspace}/a/.gitignore")
    assert not re.match(pattern, f"{workspace}/xgit/config") and not re.match(pattern, f"/other{path}")


def test_no_socket_of_the_host_is_reached_by_seatbelt(workspace: Path) -> None:
    lines = profile(places(Sandbox("workspace", str(workspace)), [], []), {}, 8080).splitlines()
    assert "(deny network*)" in lines and not any("unix-socket" in line or "system-socket" in line for line in lines)


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "TMPDIR"])
def test_a_folder_that_cannot_be_written_is_named(
    real: None, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (tmp_path / "file").write_text("")  # even root cannot make a folder in it
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", os.environ.get("TMPDIR"))
    with pytest.raises(SandboxUnavailableError, match=f"can't write to {tmp_path}/file.*XDG_CACHE_HOME"):
        Containment(Sandbox("workspace", str(workspace)))


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_a_processor_without_a_filter_needs_a_word_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(SandboxUnavailableError, match="sandbox_unix_sockets"):
        bubblewrap.seccomp_filter()
    assert bubblewrap.seccomp_filter(unix_sockets=True) is None


@pytest.mark.parametrize("kind", ["workspace", "read-only"])
def test_our_temporary_files_are_not_in_what_code_can_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The copies for undo are there: code could change them, and have the host follow a link."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    if kind == "read-only":
        places(Sandbox(kind, str(tmp_path)), [], [])
        return
    for sandbox in (Sandbox(kind, str(tmp_path)), Sandbox("read-only", "/usr", paths=(f"{tmp_path}:rw",))):
        with pytest.raises(SandboxUnavailableError, match="set TMPDIR"):
            places(sandbox, [], [])


def test_seatbelt_keeps_folders_above_our_installation_in_place(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(workspace / "tools/a/venv"))
    lines = profile(places(Sandbox("workspace", str(workspace)), [], []), {}, None).splitlines()
    assert f'(deny file-write* (subpath "{workspace}/tools/a/venv"))' in lines
    assert f'(deny file-write-unlink (literal "{workspace}/tools"))' in lines
    assert f'(deny file-write-unlink (literal "{workspace.parent}"))' not in lines
