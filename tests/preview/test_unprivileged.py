"""Previews for users other than root: they use a user namespace, which the session stays in after applying."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from preview.preview_session import why_no_views

UNPRIVILEGED_UID = 65534
SOURCE = Path(__file__).parent.parent.parent / "src"
SYSTEM_PYTHON = "/usr/bin/python3"
# The first Python still has root's capabilities; after `exec` it shows whether the user may start it.
CHECK = "import os, sys; code = f'raise SystemExit({sys.version_info < (3, 11)})'; os.execv(sys.executable, ['it', '-c', code])"

PROGRAM = """
import json, os, socket, sys
from pathlib import Path
from interpreter import OpenInterpreter
workspace = Path('work'); workspace.mkdir(); (workspace / 'old.txt').write_text('old')
interpreter = OpenInterpreter(workspace=str(workspace.resolve()))
def ran(language, code):
    chunks = interpreter.computer.run(language, code, stream=True)
    return ''.join(chunk['content'] for chunk in chunks if chunk.get('format') == 'output')
report = {'uid': os.getuid()}
ran('python', 'import os, socket; x = 1; open("mine", "w").close(); os.chmod("mine", 0)')
code = '''x += 1; open('new.txt', 'w').write(str(x)); os.remove('old.txt')
try: open('mine')
except PermissionError: print('closed')
socket.create_connection(('127.0.0.1', 9))'''
for keep in (False, True, True):
    (workspace / 'old.txt').write_text('old')
    with interpreter.computer.preview('python', code) as preview:
        preview.run()
        report.setdefault('seen', []).append([[each.what, each.path] for each in preview.changes])
        report.setdefault('denied', []).append([each.what for each in preview.denied])
        if keep: report.setdefault('applied', []).append(str(preview.apply()))
    report.setdefault('after', []).append([ran('python', 'print(x)'), sorted(os.listdir(workspace))])
report['closed'] = ran('python', 'open("mine")').count('PermissionError') > 0
with interpreter.computer.preview('shell', 'y=1; rm new.txt; kill -9 1; echo $?') as preview:
    preview.run()
    report['shell'] = [[each.what, each.path] for each in preview.changes]
    preview.apply()
report['shell after'] = [ran('shell', 'echo $y'), sorted(os.listdir(workspace))]
interpreter.computer.terminate()
print(json.dumps(report))
"""


def python_for_unprivileged_user() -> str | None:
    """A Python, new enough for us, that the unprivileged user may run."""
    for python in (sys.executable, SYSTEM_PYTHON):
        check = [*as_unprivileged_user(), python, "-c", CHECK]
        if subprocess.run(check, capture_output=True, check=False, cwd="/").returncode == 0:
            return python
    return None


def as_unprivileged_user() -> list[str]:
    if os.getuid():
        return []
    return ["setpriv", f"--reuid={UNPRIVILEGED_UID}", f"--regid={UNPRIVILEGED_UID}", "--clear-groups"]


def run_program(folder: Path) -> dict[str, Any]:
    python = python_for_unprivileged_user()
    if python is None:
        pytest.skip("no Python 3.11 or later that other users than root may run")
    packages = [str(SOURCE), *(path for path in sys.path if path.endswith("site-packages"))]
    env = {**os.environ, "HOME": str(folder), "PYTHONPATH": os.pathsep.join(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*as_unprivileged_user(), python, "-c", PROGRAM],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if "does not allow user namespaces" in done.stderr:
        pytest.skip("this machine allows no user namespaces")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.skipif(why_no_views() is not None, reason=str(why_no_views()))
@pytest.mark.usefixtures("no_strays")
def test_previews_work_without_root() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        if os.getuid() == 0:
            os.chown(folder, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
        report = run_program(folder)
    finally:
        shutil.rmtree(folder)
    assert report["uid"] != 0
    both = [["created", "new.txt"], ["deleted", "old.txt"]]
    assert report["seen"] == [both, both, [["changed", "new.txt"], ["deleted", "old.txt"]]]
    assert report["denied"] == [["network"]] * 3
    assert report["applied"] == ["", ""]
    assert report["after"] == [
        ["1\n", ["mine", "old.txt"]],
        ["2\n", ["mine", "new.txt"]],
        ["3\n", ["mine", "new.txt"]],
    ]
    assert report["closed"]
    assert report["shell"] == [["deleted", "new.txt"]]
    assert report["shell after"] == ["1\n", ["mine"]]
