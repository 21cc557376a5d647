"""Where previews are unavailable, the error says why and the session is unaffected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.computer_api import Computer
from interpreter.errors import NotPreviewableError, UsageError
from interpreter.preview import overlay
from preview.preview_session import needs_views, ran

pytestmark = pytest.mark.usefixtures("no_strays")

# An unprivileged user on a system that allows no more user namespaces.
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


def test_previews_need_linux(interpreter: OpenInterpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NotPreviewableError, match="needs Linux"):
        interpreter.computer.preview("python", "1")


def test_the_root_folder_cannot_be_previewed() -> None:
    with pytest.raises(NotPreviewableError, match="Can't make a copy-on-write view of /"):
        OpenInterpreter(workspace="/").computer.preview("python", "1")


@needs_views
@pytest.mark.needs("node")
def test_javascript_cannot_be_previewed(interpreter: OpenInterpreter) -> None:
    with pytest.raises(NotPreviewableError, match="JavaScript"):
        interpreter.computer.preview("javascript", "1")


@needs_views
def test_in_process_python_cannot_be_previewed(interpreter: OpenInterpreter) -> None:
    interpreter.computer.python = "in-process"
    with pytest.raises(NotPreviewableError, match="Python"):
        interpreter.computer.preview("python", "1")


@needs_views
def test_a_failed_view_leaves_the_session_running(
    interpreter: OpenInterpreter, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder can hold a layer: the preview is refused, and the session keeps working."""
    ran(interpreter, "python", "x = 1")
    with monkeypatch.context() as patch:
        patch.setattr(overlay, "MAX_ATTEMPTS", 0)
        with pytest.raises(NotPreviewableError):
            interpreter.computer.preview("python", "x = 2")
        with pytest.raises(NotPreviewableError):
            interpreter.computer.preview("shell", "x=2")
    assert ran(interpreter, "python", "print(x)") == "1\n"
    assert ran(interpreter, "shell", "echo 1") == "1\n"


@needs_views
def test_systems_without_user_namespaces_refuse_previews(workspace: Path) -> None:
    start = ["unshare", "--user", "--map-root-user", "bash", "-c", f'{RESTRICTED} "$@"', "bash"]
    if subprocess.run([*start, "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces can't be restricted here")
    words = [*start, sys.executable, "-c", PROGRAM, str(workspace)]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert ["does not allow user namespaces" in line for line in lines[:2]] == [True, True]
    assert lines[2] == "1"


def test_a_computer_without_an_interpreter_cannot_preview() -> None:
    with pytest.raises(UsageError):
        Computer().preview("python", "1")
