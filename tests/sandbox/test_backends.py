"""Sandbox backends (bubblewrap, containers, Seatbelt): what they set up, and the errors if one is unavailable."""

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
from interpreter.sandbox import bubblewrap, container, system_calls
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
def test_missing_bubblewrap_is_an_error_with_an_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.defpath", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match="apt-get install bubblewrap"):
        Containment(Sandbox("workspace", str(tmp_path)))


def test_bubblewrap_without_namespaces_is_reported(tmp_path: Path) -> None:
    broken = program(tmp_path, "bwrap", "echo 'No permissions to create new namespace' >&2; exit 1")
    trouble = bubblewrap.trouble_with(str(broken))
    assert "No permissions to create new namespace" in trouble and ("sysctl" in trouble or "bubblewrap 0.8" in trouble)


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_a_sandbox_that_fails_to_start_runs_nothing(contained: Any, workspace: Path, tmp_path: Path) -> None:
    inside = contained()
    inside.containment.outputs.rmdir()
    ran = inside.do("python", "open('ran', 'w')")
    assert "bwrap:" in ran.text and ran.ended == "died" and not (workspace / "ran").exists()


def test_a_missing_container_engine_is_an_error_with_an_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match="apt-get install podman"):
        Containment(Sandbox("container:python:3.12", str(tmp_path)))


def test_an_unresponsive_container_engine_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match=r"Cannot connect to the Docker daemon.*systemctl start docker"):
        container.available()


def test_the_container_command_line_restricts_everything(workspace: Path, tmp_path: Path) -> None:
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


def test_session_variables_do_not_reach_the_container_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library, configuration or daemon chosen by such a variable would run code on the host."""
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


def test_host_programs_are_replaced_by_those_of_the_image() -> None:
    assert container.inside(sys.executable) == "python3"
    assert container.inside("/bin/sh") == "sh"
    assert container.inside("/no/such") == "/no/such" and container.inside("exec") == "exec"


def test_the_seatbelt_profile_denies_before_it_allows(workspace: Path, home: Path, tmp_path: Path) -> None:
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


def test_paths_are_escaped_in_the_seatbelt_profile(tmp_path: Path) -> None:
    folder = tmp_path / 'a")(allow default)("'
    folder.mkdir()
    seen = places(Sandbox("workspace", str(folder)), [], [])
    assert r"a\")(allow default)(\"" in profile(seen, {}, None)


@pytest.mark.skipif(sys.platform != "darwin", reason="sandbox-exec is for macOS")
def test_seatbelt_blocks_writes_outside_the_workspace(tmp_path: Path) -> None:
    containment = Containment(Sandbox("workspace", str(tmp_path)))
    with containment.wrap(Start(["/bin/sh", "-c", "echo x >~/canary; echo y >made"], {}, str(tmp_path))) as start:
        subprocess.run(start.argv, env=start.env, cwd=start.cwd)
    assert (tmp_path / "made").exists() and not (Path.home() / "canary").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_deleted_sandbox_folders_are_reported(contained: Any) -> None:
    inside = contained()
    (inside.containment.scratch / "tmp").rmdir()
    with pytest.raises(SandboxUnavailableError, match="Can't start the sandbox"):
        inside.do("python", "1")


@pytest.mark.parametrize("filtered", [False, True])
def test_the_container_connection_passes_file_descriptors(tmp_path: Path, filtered: bool) -> None:
    """The same connection without a container: the supervisor connects, and the program it starts writes to our pipe."""
    calls = (system_calls.seccomp_filter() or b"").hex() if filtered else "-"
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


def test_the_connection_closes_if_the_engine_exits_early(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    lives, held = os.pipe()
    container.carry(tmp_path / "line", theirs.detach(), lives)
    os.close(held)
    with ours:
        ours.settimeout(60)
        assert ours.recv(1) == b""


@pytest.mark.parametrize("path", ["/.git/config", "/a/.Git", "/a/b/c/d/.vscode/tasks.json", "/x/.envrc", "/.agents"])
def test_seatbelt_denies_trusted_names_at_any_depth(workspace: Path, path: str) -> None:
    """The profile matches names, whether or not the files exist."""
    seen = places(Sandbox("workspace", str(workspace)), [], [])
    rules = [line for line in profile(seen, {}, None).splitlines() if "(regex" in line and "deny" in line]
    (pattern,) = re.findall(r'\(regex "(.*)"\)\)', rules[0])
    pattern = pattern.replace("\\\\", "\\")
    assert re.match(pattern, f"{workspace}{path}") and not re.match(pattern, f"{workspace}/a/.gitignore")
    assert not re.match(pattern, f"{workspace}/xgit/config") and not re.match(pattern, f"/other{path}")


def test_seatbelt_denies_unix_sockets(workspace: Path) -> None:
    lines = profile(places(Sandbox("workspace", str(workspace)), [], []), {}, 8080).splitlines()
    assert "(deny network*)" in lines and not any("unix-socket" in line or "system-socket" in line for line in lines)


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "TMPDIR"])
def test_an_unwritable_folder_is_named_in_the_error(
    sandbox_available: None, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    (tmp_path / "file").write_text("")  # even root can't create a folder in a file
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", os.environ.get("TMPDIR"))
    with pytest.raises(SandboxUnavailableError, match=f"can't write to {tmp_path}/file.*XDG_CACHE_HOME"):
        Containment(Sandbox("workspace", str(workspace)))


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
def test_processors_without_a_seccomp_filter_need_sandbox_unix_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(SandboxUnavailableError, match="sandbox_unix_sockets"):
        system_calls.seccomp_filter()
    assert system_calls.seccomp_filter(unix_sockets=True) is None


def test_writable_folders_must_not_contain_our_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the copies for undo: code could change them, or trick the host into following a link."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    for sandbox in (Sandbox("workspace", str(tmp_path)), Sandbox("read-only", "/usr", paths=(f"{tmp_path}:rw",))):
        with pytest.raises(SandboxUnavailableError, match="set TMPDIR"):
            places(sandbox, [], [])


def test_a_read_only_workspace_may_contain_our_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    assert not places(Sandbox("read-only", str(tmp_path)), [], []).is_writable(tmp_path / "tmp")


def test_seatbelt_keeps_folders_above_our_installation_in_place(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(workspace / "tools/a/venv"))
    lines = profile(places(Sandbox("workspace", str(workspace)), [], []), {}, None).splitlines()
    assert f'(deny file-write* (subpath "{workspace}/tools/a/venv"))' in lines
    assert f'(deny file-write-unlink (literal "{workspace}/tools"))' in lines
    assert f'(deny file-write-unlink (literal "{workspace.parent}"))' not in lines
