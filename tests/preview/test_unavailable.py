"""Where there is no preview, that is said, with the reason; the session is not touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.errors import NotPreviewableError, UsageError
from preview.previewing import needs_views, ran

pytestmark = pytest.mark.usefixtures("no_strays")

# Somebody without rights, where no further user namespaces are allowed.
RESTRICTED = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "
PROGRAM = """
import sys
from interpreter import OpenInterpreter
from interpreter.errors import NotPreviewableError
interpreter = OpenInterpreter(workspace=sys.argv[1])
interpreter.computer.run("python", "x = 1")
for language in ("python", "shell"):
    try: interpreter.computer.preview(language, "x=2")
    except NotPreviewableError as error: print(error)
print(interpreter.computer.run("python", "print(x)")[0]["content"])
interpreter.computer.terminate()
"""


def test_another_system(interpreter: OpenInterpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NotPreviewableError, match="needs Linux"):
        interpreter.computer.preview("python", "1")


def test_the_whole_disk() -> None:
    with pytest.raises(NotPreviewableError, match="Can't make a copy-on-write view of /"):
        OpenInterpreter(workspace="/").computer.preview("python", "1")


@needs_views
@pytest.mark.needs("node")
def test_javascript(interpreter: OpenInterpreter) -> None:
    with pytest.raises(NotPreviewableError, match="JavaScript"):
        interpreter.computer.preview("javascript", "1")


@needs_views
def test_python_in_this_process(interpreter: OpenInterpreter) -> None:
    interpreter.computer.python = "in-process"
    with pytest.raises(NotPreviewableError, match="Python"):
        interpreter.computer.preview("python", "1")


@needs_views
def test_an_unknown_kernel_refuses(interpreter: OpenInterpreter, workspace: Path) -> None:
    """No place can hold a layer: the copy says why, and the session goes on."""
    from interpreter.runtimes import dry_run as bases

    ran(interpreter, "python", "x = 1")
    before = bases.MOST
    bases.MOST = 0
    try:
        with pytest.raises(NotPreviewableError):
            interpreter.computer.preview("python", "x = 2")
        with pytest.raises(NotPreviewableError):
            interpreter.computer.preview("shell", "x=2")
    finally:
        bases.MOST = before
    assert ran(interpreter, "python", "print(x)") == "1\n"
    assert ran(interpreter, "shell", "echo 1") == "1\n"


@needs_views
def test_a_system_that_allows_no_namespaces(workspace: Path) -> None:
    start = ["unshare", "--user", "--map-root-user", "bash", "-c", f'{RESTRICTED} "$@"', "bash"]
    if subprocess.run([*start, "true"], capture_output=True, check=False).returncode:
        pytest.skip("such a system cannot be made here")
    words = [*start, sys.executable, "-c", PROGRAM, str(workspace)]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert ["does not allow user namespaces" in line for line in told[:2]] == [True, True]
    assert told[2] == "1"


def test_a_computer_of_nobody() -> None:
    from interpreter.computer_api import Computer

    with pytest.raises(UsageError):
        Computer().preview("python", "1")
