"""Programs that the host starts are the installed ones, no matter what session code wrote, exported or changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from interpreter.host import exposure, processes
from interpreter.host.processes import Completed
from waiting import until

PLANTED = "#!/bin/sh\ntouch {proof}\ncat\n"
REPOSITORY_ATTACKS = {
    "fsmonitor": (["config core.fsmonitor {program}"], "status"),
    "hook": (["config core.hooksPath {folder}/hooks"], "-c user.name=n -c user.email=e commit --allow-empty -m x"),
    "clean filter": (["config filter.evil.clean {program}", "attributes * filter=evil"], "status"),
    "process filter": (["config filter.evil.process {program}", "attributes * filter=evil"], "add ."),
    "textconv": (["config diff.evil.textconv {program}", "attributes * diff=evil"], "diff"),
    "external diff": (["config diff.external {program}"], "diff"),
    "pager": (["config core.pager {program}", "config pager.log true"], "-p log"),
    "included": (["config include.path {folder}/included"], "status"),
    "alias": (["config alias.go !{program}"], "go"),
    "credential helper": (["config credential.helper !{program}"], "credential fill"),
    "ssh": (["config core.sshCommand {program}"], "ls-remote ssh://localhost/x"),
}


@pytest.fixture(autouse=True)
def exposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that sandboxed code can write to."""
    monkeypatch.setattr(exposure, "_writable_by_code", set())
    folder = tmp_path / "workspace"
    (folder / "bin").mkdir(parents=True)
    exposure.distrust(folder)
    return folder


def plant(folder: Path, name: str) -> Path:
    """A program that leaves a file as proof that it ran."""
    program = folder / name
    program.write_text(PLANTED.format(proof=folder.parent.resolve() / "proof"))
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("entry", ["{folder}/bin", ".", "", "bin", "{link}"])
def test_path_lookup_ignores_programs_in_the_workspace(
    exposed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    for folder in (exposed, exposed / "bin"):
        plant(folder, "env")
    (tmp_path / "link").symlink_to(exposed / "bin")
    entry = entry.format(folder=exposed, link=tmp_path / "link")
    monkeypatch.setenv("PATH", os.pathsep.join([entry, "/usr/bin", "/bin"]))
    monkeypatch.chdir(exposed)
    ran = processes.run(["env"])
    assert "PATH=/usr/bin:/bin\n" in ran.text
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize("interactive", [False, True])
def test_programs_in_the_workspace_are_not_started_by_path(exposed: Path, tmp_path: Path, interactive: bool) -> None:
    program = plant(exposed, "tool")
    (tmp_path / "link").symlink_to(program)
    for path in (program, tmp_path / "link"):
        with pytest.raises(FileNotFoundError, match="Code can write to its folder"):
            processes.start([str(path)], interactive=interactive)


def test_our_installation_is_trusted_even_inside_the_workspace(exposed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(exposed / ".venv"))
    (exposed / ".venv").mkdir()
    program = plant(exposed / ".venv", "bandit")
    assert processes.which(str(program)) == str(program)


def test_environment_variables_that_inject_code_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        *("LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "BASH_ENV"),
        *("BASH_FUNC_ls%%", "ENV", "PERL5OPT", "RUBYOPT", "GIT_EXTERNAL_DIFF", "LESSOPEN", "JAVA_TOOL_OPTIONS"),
        *("RIPGREP_CONFIG_PATH", "VIRTUAL_ENV", "GCONV_PATH", "OPENSSL_CONF", "GLIBC_TUNABLES"),
    ):
        monkeypatch.setenv(name, "planted")
    monkeypatch.setenv("DISPLAY", ":7")
    found = processes.environment({"MORE": "1"})
    assert "planted" not in found.values()
    assert (found["DISPLAY"], found["MORE"]) == (":7", "1")


def test_shared_libraries_are_not_loaded_from_the_workspace(exposed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{exposed}::lib:/opt/other;{exposed}:/opt/lib")
    assert processes.environment()["LD_LIBRARY_PATH"] == "/opt/lib"


@pytest.mark.parametrize("packages", [False, True])
def test_our_python_imports_nothing_from_the_working_directory(
    exposed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packages: bool
) -> None:
    for name in ("json.py", "sitecustomize.py", "usercustomize.py"):
        (exposed / name).write_text(f"open({str(tmp_path / 'proof')!r}, 'w')")
    monkeypatch.chdir(exposed)
    monkeypatch.setenv("PYTHONPATH", str(exposed))
    ran = processes.run(processes.python("-c", "import json, os; print(os.getcwd())", packages=packages))
    assert (ran.returncode, ran.text.strip()) == (0, "/")
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize("name", REPOSITORY_ATTACKS)
def test_git_runs_nothing_that_a_repository_configures(exposed: Path, tmp_path: Path, name: str) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    proof, program = tmp_path / "proof", plant(exposed / "bin", "planted")
    program.write_text(PLANTED.format(proof=proof))
    repository = exposed / "repository"
    preparations, command = REPOSITORY_ATTACKS[name]

    def git(*words: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e"]
        subprocess.run(["git", *identity, "-C", str(repository), *words], check=True, capture_output=True)

    repository.mkdir()
    git("init", "-q")
    (repository / "file").write_text("one\n")
    git("add", ".")
    git("commit", "-qm", "first")
    (repository / "file").write_text("two\n")
    (exposed / "included").write_text(f"[core]\nfsmonitor = {program}\n")
    (exposed / "hooks").mkdir()
    shutil.copy(program, exposed / "hooks" / "pre-commit")
    for line in preparations:
        verb, _, rest = line.format(program=program, folder=exposed).partition(" ")
        if verb == "config":
            git("config", *rest.split(" ", 1))
        else:
            (repository / ".gitattributes").write_text(rest)
    assert processes.run(
        ["git", "-C", str(repository), *command.split()], stdin=b"protocol=https\nhost=h\n\n"
    ).returncode
    assert not proof.exists()


def test_output_time_and_descriptors_are_bounded(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="more than 1,000 bytes"):
        processes.run(["sh", "-c", "while :; do echo word; done"], most=1000)
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"more than 0\.2 seconds"):
        processes.run(["sleep", "60"], timeout=0.2)
    left = processes.run(["sh", "-c", "sleep 60 & echo $!"])
    assert time.monotonic() - began < 20
    sleeper = int(left.text)
    until(
        lambda: not psutil.pid_exists(sleeper) or psutil.Process(sleeper).status() == "zombie",
        "its background process to end",
    )
    with open(tmp_path / "secret", "w") as file:
        os.set_inheritable(file.fileno(), True)
        listed = processes.run(["sh", "-c", f"test -e /proc/self/fd/{file.fileno()}"])
    assert listed == Completed(1, b"", b"") or not os.path.exists("/proc/self/fd")


def test_run_passes_input_and_returns_output() -> None:
    ran = processes.run(["sh", "-c", "cat; echo first >&2; echo last >&2; exit 3"], stdin=b"x" * 300_000)
    assert (ran.returncode, len(ran.stdout), ran.complaint) == (3, 300_000, "last")
    assert processes.run(["sh", "-c", "exit 3"]).complaint == "it exited with code 3"


def test_interactive_programs_keep_the_users_environment_and_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BASH_ENV", "mine")
    script = 'echo "$BASH_ENV $PWD" > seen'
    assert processes.start(["sh", "-c", script], interactive=True).wait() == 0
    assert (tmp_path / "seen").read_text() == f"mine {tmp_path}\n"


def test_heavy_modules_are_imported_only_when_a_program_starts() -> None:
    code = (
        "import sys, interpreter.host.processes as p; print({'subprocess', 'shutil', 'tempfile'} & sys.modules.keys())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


# -- imports -----------------------------------------------------------------------------------------------------------

IMPORTING = """
import os, sys
from interpreter.host import exposure, processes
from interpreter.host.files import Folder

exposure.distrust(sys.argv[1])
{arrange}
ours = {{"__name__": "interpreter.some.module"}}
for code in ("import uuid", "import not_installed_anywhere"):
    try:
        exec(code, ours)
    except ModuleNotFoundError as error:
        print(error)
print(ours["uuid"].__file__)
import helper
print(helper.__file__)
"""


@pytest.mark.parametrize(
    "arrange",
    ["sys.path.insert(0, sys.argv[1])", "os.chdir(sys.argv[1]); sys.path.insert(0, '')"],
    ids=["absolute path", "working directory"],
)
def test_user_code_imports_from_the_workspace_but_our_modules_do_not(exposed: Path, arrange: str) -> None:
    for name in ("uuid", "not_installed_anywhere"):
        (exposed / f"{name}.py").write_text("raise SystemExit('planted')\n")
    (exposed / "helper.py").write_text("")
    script = exposed / "script.py"
    script.write_text(IMPORTING.format(arrange=arrange))
    done = subprocess.run([sys.executable, str(script), str(exposed)], capture_output=True, text=True)
    assert "planted" not in done.stderr
    missing, ours, theirs = done.stdout.splitlines()
    assert missing == "No module named 'not_installed_anywhere' outside the workspace"
    assert not ours.startswith(str(exposed))
    assert theirs == str(exposed / "helper.py")


def test_a_workspace_inside_our_installation_is_exposed(exposed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(exposed.parent))  # for example /usr/local
    assert exposure.is_exposed(str(exposed / "bin"))
    monkeypatch.setattr(sys, "prefix", str(exposed / "venv"))
    assert not exposure.is_exposed(str(exposed / "venv" / "bin"))
