"""An export runs nothing outside the sandbox that code in the session has prepared, as root and without rights."""

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
from export import hostile
from interpreter.errors import SandboxUnavailableError
from interpreter.sandbox import bubblewrap
from sampling import some

SOMEBODY = 65534
BE_SOMEBODY = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody can reach: that of a test is its owner's alone."""
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
    source = hostile.LIBRARY.replace("PROOF", str(folder / "proof"))
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
        assert said.startswith(("VerifyReport(", "ExportError: "))  # it may have spoilt its own results


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("name", some(3, hostile.ATTACKS))
def test_nothing_prepared_runs_outside(
    place: Path, name: str, no_strays: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")  # so that the folder of the attack is left afterwards
    folder = prepare(place / "attack")
    check(name, folder, hostile.attack(name, folder))


@pytest.mark.full
@pytest.mark.needs("gcc", "setpriv")
@pytest.mark.skipif(os.getuid() != 0, reason="runs as an unprivileged user already")
def test_nothing_prepared_runs_outside_without_rights(place: Path, no_strays: None) -> None:
    for number, _ in enumerate(hostile.ATTACKS):
        prepare(place / "attacks" / str(number))
    library = place / "lib"
    packages = (Path(interpreter.__file__).parent, *map(package, ("platformdirs", "jiter")))
    for source in packages:
        shutil.copytree(source, library / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(hostile.__file__, library)
    for path in (place, *place.rglob("*")):
        os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
    env = {**os.environ, "PYTHONPATH": str(library), "VIRTUAL_ENV": "", "HOME": str(place / "home")}
    done = subprocess.run(
        [*BE_SOMEBODY, public_python(), str(library / "hostile.py"), str(place / "attacks")],
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
            subprocess.run([*BE_SOMEBODY, program, "-c", "import tomllib"], capture_output=True, cwd="/").returncode
            == 0
        ):
            return program
    pytest.skip("no Python 3.11 or later here that another user could run: apt-get install python3")
