"""An export runs nothing outside the sandbox that the session's code prepared, as root or unprivileged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import interpreter
from export import export_attacks
from interpreter.errors import SandboxUnavailableError
from interpreter.sandbox import bubblewrap
from sampling import some

UNPRIVILEGED = 65534
AS_UNPRIVILEGED = ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that all users can read, unlike pytest's."""
    try:
        bubblewrap.available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    folder = Path(tempfile.mkdtemp(prefix="exports-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def prepare(folder: Path) -> Path:
    (folder / "work").mkdir(parents=True)
    source = export_attacks.LIBRARY.replace("PROOF", str(folder / "proof"))
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-o", str(folder / "work" / "planted.so"), "-"]
    subprocess.run(command, input=source, text=True, check=True)
    return folder


def check(name: str, folder: Path, said: str) -> None:
    assert not (folder / "proof").exists() and not (folder / "work" / "proof").exists(), said
    if name == "the program, verified without an answer":
        assert said == "None"
    elif name in ("an environment", "programs on the path", "a preloaded library", "modules beside the files"):
        assert "exit_code=0" in said and "same=['out.txt']" in said
    else:
        assert said.startswith(("VerifyReport(", "ExportError: "))  # the attack may have broken its own results


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("name", some(3, export_attacks.ATTACKS))
def test_prepared_attacks_do_not_run_outside_the_sandbox(
    place: Path, name: str, no_strays: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")  # restores the working folder afterwards
    folder = prepare(place / "attack")
    check(name, folder, export_attacks.attack(name, folder))


@pytest.mark.full
@pytest.mark.needs("gcc", "setpriv")
@pytest.mark.skipif(os.getuid() != 0, reason="runs as an unprivileged user already")
def test_prepared_attacks_do_not_run_for_an_unprivileged_user(place: Path, no_strays: None) -> None:
    for number, _ in enumerate(export_attacks.ATTACKS):
        prepare(place / "attacks" / str(number))
    library = place / "lib"
    packages = (Path(interpreter.__file__).parent, *map(package, ("platformdirs", "jiter")))
    for source in packages:
        shutil.copytree(source, library / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(export_attacks.__file__, library)
    for path in (place, *place.rglob("*")):
        os.chown(path, UNPRIVILEGED, UNPRIVILEGED, follow_symlinks=False)
    env = {**os.environ, "PYTHONPATH": str(library), "VIRTUAL_ENV": "", "HOME": str(place / "home")}
    done = subprocess.run(
        [*AS_UNPRIVILEGED, public_python(), str(library / "export_attacks.py"), str(place / "attacks")],
        env=env,
        cwd=place,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    for number, (name, said) in enumerate(json.loads(done.stdout.splitlines()[-1]).items()):
        check(name, place / "attacks" / str(number), said)


def package(name: str) -> Path:
    import importlib

    return Path(str(importlib.import_module(name).__file__)).parent


def public_python() -> str:
    """A Python that another user can run."""
    for program in ("/usr/bin/python3", os.path.realpath(sys.executable)):
        if (
            subprocess.run([*AS_UNPRIVILEGED, program, "-c", "import tomllib"], capture_output=True, cwd="/").returncode
            == 0
        ):
            return program
    pytest.skip("no Python 3.11 or later here that another user could run: apt-get install python3")
