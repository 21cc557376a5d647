"""Code inside a sandbox can't trick our own process outside into reading, writing or running things for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpreter.runtimes.launch import Start, run_to_end
from interpreter.runtimes.protocol import BadFrame, LineSplitter
from sampling import some

from .conftest import Inside


def test_block_files_are_not_written_through_links(inside: Inside, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("sings")
    inside.do("shell", f'for n in 3 4 5 6; do ln -s {canary} "$__oi_folder/block$n"; done')
    for number in range(4):
        inside.do("shell", f"echo {number} $__oi_folder")
    assert canary.read_text() == "sings"


def test_shell_state_is_not_read_through_links(inside: Inside, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('/tmp\0declare -x STOLEN="the secret"\n# whole\n')
    inside.do("shell", f'__oi_report() {{ rm -f "$__oi_folder/exports"; ln -s {secret} "$__oi_folder/exports"; }}')
    inside.do("shell", "true")
    assert "STOLEN" not in inside.context.exported
    inside.do("shell", f'ln -sf {secret} "$__oi_folder/state.exit"; kill -9 $$')
    assert "the secret" not in inside.do("shell", "echo $STOLEN").text


def test_a_named_pipe_instead_of_a_state_file_does_not_hang(inside: Inside) -> None:
    inside.do("shell", '__oi_report() { rm -f "$__oi_folder/exports"; mkfifo "$__oi_folder/exports"; }')
    assert inside.do("shell", "true").ended == "done"


@pytest.mark.parametrize(
    "code",
    some(
        2,
        [
            '__oi_report() { rm -rf "$__oi_folder/exports"; mkdir -p "$__oi_folder/exports/x"; }',
            'for n in $(seq 99); do mkdir -p "$__oi_folder/state.$n/x" "$__oi_folder/block$n/x"; done; exit',
            'touch "$__oi_folder/state.²" "$__oi_folder/state.$(seq -s "" 2000 | head -c 200)"',
            'mkdir "$__oi_folder/state.exit"; exit',
            'rm -rf "$__oi_folder"/*',
            'chmod 000 "$__oi_folder"',
        ],
    ),
)
def test_the_shell_survives_damage_to_its_state_files(inside: Inside, code: str) -> None:
    inside.do("shell", code)
    for number in range(4):
        assert inside.do("shell", f"echo {number}").text == f"{number}\n"


@pytest.mark.parametrize(
    "export", some(1, ["PATH=$PWD/bin:$PATH", "VIRTUAL_ENV=$PWD", "LD_PRELOAD=$PWD/evil.so", "BASH_ENV=$PWD/evil"])
)
def test_exported_variables_do_not_choose_host_programs(
    inside: Inside, workspace: Path, tmp_path: Path, export: str
) -> None:
    proof = tmp_path / "proof"
    (workspace / "bin").mkdir()
    (workspace / "evil").write_text(f"touch {proof}\n")
    (workspace / "evil.so").write_text("no library")
    for name in ("python", "node", "bash", "sh", "bwrap"):
        program = workspace / "bin" / name
        program.write_text(f"#!/bin/sh\ntouch {proof}\n")
        program.chmod(0o755)
    inside.do("shell", f"export {export}")
    assert inside.context.exported
    for language in ("python", "javascript"):
        inside[language].version()
        inside.do(language, "1")
    inside["shell"].version()
    assert not proof.exists()


def test_versions_of_workspace_programs_are_queried_inside(inside: Inside, workspace: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    program = workspace / "python"
    program.write_text(f"#!/bin/sh\nmkdir -p {tmp_path}; touch {proof}; echo Python 3.3.3\n")
    program.chmod(0o755)
    inside.context.python = str(program)
    assert inside["python"].version() == "3.3.3"
    assert not proof.exists()


def test_the_init_process_cannot_be_killed_or_stopped(inside: Inside) -> None:
    inside.do("python", "kept = 1")
    inside.do("python", "import os, signal; os.kill(1, signal.SIGKILL); os.kill(1, signal.SIGSTOP)")
    assert inside.do("python", "print(kept)").text.strip() == "1"


def test_the_init_process_cannot_be_traced_but_others_can(inside: Inside) -> None:
    tracing = "import ctypes, os; trace = ctypes.CDLL(None).ptrace; print(trace(16, 1, 0, 0))"
    own = "pid = os.fork() or os.execvp('sleep', ['sleep', '60']); print(trace(16, pid, 0, 0)); os.kill(pid, 9)"
    assert inside.do("python", f"{tracing}\n{own}").text == "-1\n0\n"


def test_the_command_line_reveals_no_environment_values(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    inside.context.exported["HARMLESS"] = "only-for-the-session"
    inside.do("shell", "true")
    session = inside["shell"].runtime
    command_line = Path(f"/proc/{session._process.pid}/cmdline").read_bytes()
    assert b"bwrap" in command_line and b"only-for-the-session" not in command_line
    assert os.path.basename(session.launch.worker[1]) == "bash"


@pytest.mark.parametrize("name", some(1, [".vscode2/../.idea", ".envrc", "sub/.git"]))
def test_links_with_trusted_names_expose_no_targets(inside: Inside, workspace: Path, home: Path, name: str) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("the secret")
    inside.do("shell", f"mkdir -p sub .vscode2; ln -s {home}/.ssh {name}")
    ran = inside.do("python", f"import os; print(os.listdir('{home}/.ssh'))")
    assert "FileNotFoundError" in ran.text
    assert "the secret" not in inside.do("javascript", f"require('fs').readFileSync('{name}/id', 'utf8')").text


def test_links_in_the_sandbox_home_do_not_redirect_mounts(inside: Inside, home: Path, tmp_path: Path) -> None:
    """Mounts for the next session stay inside its home folder, and nothing is created elsewhere."""
    seen = inside.containment.places([])
    inside.do(
        "shell", f"rm -rf ~/.local; ln -s /oldroot{tmp_path}/made ~/.local; ln -s /oldroot{tmp_path}/made /tmp/made"
    )
    (home / ".local" / "lib" / "python3.11").mkdir(parents=True)
    assert inside.containment.places([]) != seen
    ran = inside.do("python", "import os; print(os.path.islink(os.path.expanduser('~/.local')))")
    assert ran.text.strip() == "False"
    assert not (tmp_path / "made").exists()


def test_a_listed_path_that_is_a_link_is_not_followed(contained: Any, workspace: Path, home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id").write_text("the secret")
    (workspace / "data").symlink_to(home / ".ssh")
    inside = contained(paths=(str(workspace / "data"),))
    assert "the secret" not in inside.do("shell", "cat data/id").text


@given(st.lists(st.sampled_from([b"a", b"bcd", b"\n", b"efgh\n", b"\n\nijklmnop"]), max_size=30))
def test_an_endless_line_does_not_fill_our_memory(pieces: list[bytes]) -> None:
    lines, read = LineSplitter(), []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("interpreter.runtimes.protocol.MAX_FRAME_BYTES", 6)
        try:
            for piece in pieces:
                read += lines.feed(piece)
                assert len(b"".join(lines._open)) <= 8
        except BadFrame:
            assert max(map(len, b"".join(pieces).split(b"\n"))) > 6
        else:
            assert read == b"".join(pieces).split(b"\n")[:-1]


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_the_init_process_runs_no_code_from_the_sandbox(inside: Inside, workspace: Path, language: str) -> None:
    """The init process sets the limits and checks the mounts, and the sandbox ends with it."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    inside.do(
        "shell",
        f"""
        user=~/.local/lib/{version}/site-packages; mkdir -p $user lib
        for folder in ${{PYTHONPATH%%:*}} $PWD/lib; do echo 'import os; print(os.getpid(), file=open("{workspace}/ran", "a"))' >$folder/sitecustomize.py; done
        echo 'import os; print(os.getpid(), file=open("{workspace}/ran", "a"))' >$user/planted.pth
        packages=$VIRTUAL_ENV/lib/{version}/site-packages
        echo 'import os; print(os.getpid(), file=open("{workspace}/ran", "a"))' | tee $packages/planted.pth >$packages/sitecustomize.py
        cp $packages/sitecustomize.py $packages/usercustomize.py
        export PYTHONPATH=$PWD/lib LD_PRELOAD=$PWD/evil.so SOMETHING=else
        """,
    )
    assert inside.context.exported["LD_PRELOAD"] == f"{workspace}/evil.so"
    ran = inside.do(
        language, {"python": "import os; print(os.environ)", "javascript": "console.log(process.env)"}[language]
    )
    assert "evil.so" in ran.text
    assert "SANDBOX_LATER_" not in ran.text
    planted = workspace / "ran"
    ran_in = planted.read_text().split() if planted.exists() else []
    assert "1" not in ran_in
    assert bool(ran_in) == (language == "python")  # the worker does run it


def test_a_sandboxed_script_gets_the_limits_but_is_not_the_init_process(inside: Inside, tmp_path: Path) -> None:
    folder = tmp_path / "script"
    folder.mkdir()
    script = folder / "script.py"
    script.write_text(
        "import os, resource, sys\nprint(os.getpid(), resource.getrlimit(resource.RLIMIT_CPU))\nsys.exit(3)\n"
    )
    start = Start([sys.executable, str(script)], inside.context.environment(), "/")
    done = run_to_end(start, inside.containment, b"", 20, folder)
    assert done.returncode == 3
    assert done.text == "2 (3600, 3600)\n"


@pytest.mark.full
def test_deeply_nested_folders_do_not_block_cleanup(inside: Inside) -> None:
    code = """
import os, tempfile
place = os.open(tempfile.gettempdir(), os.O_RDONLY)
for _ in range(2000):
    os.mkdir("d", dir_fd=place)
    place, above = os.open("d", os.O_RDONLY, dir_fd=place), place
    os.close(above)
print("done")
"""
    assert inside.do("python", code).text == "done\n"
    inside.close()
    assert not inside.containment.scratch.exists()
