"""The same for somebody who is not root: through a user namespace, which the session stays in once it was kept."""

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

from preview.previewing import cannot

SOMEBODY = 65534
SOURCE = Path(__file__).parent.parent.parent / "src"
SYSTEM_PYTHON = "/usr/bin/python3"
# Root's rights last until here: what matters is whether they may start it themselves.
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
told = {'uid': os.getuid()}
ran('python', 'import os, socket; x = 1; open("mine", "w").close(); os.chmod("mine", 0)')
code = '''x += 1; open('new.txt', 'w').write(str(x)); os.remove('old.txt')
try: open('mine')
except PermissionError: print('closed')
socket.create_connection(('127.0.0.1', 9))'''
for keep in (False, True, True):
    (workspace / 'old.txt').write_text('old')
    with interpreter.computer.preview('python', code) as preview:
        preview.run()
        told.setdefault('seen', []).append([[each.what, each.path] for each in preview.changes])
        told.setdefault('denied', []).append([each.what for each in preview.denied])
        if keep: told.setdefault('applied', []).append(str(preview.apply()))
    told.setdefault('after', []).append([ran('python', 'print(x)'), sorted(os.listdir(workspace))])
told['closed'] = ran('python', 'open("mine")').count('PermissionError') > 0
with interpreter.computer.preview('shell', 'y=1; rm new.txt; kill -9 1; echo $?') as preview:
    preview.run()
    told['shell'] = [[each.what, each.path] for each in preview.changes]
    preview.apply()
told['shell after'] = [ran('shell', 'echo $y'), sorted(os.listdir(workspace))]
interpreter.computer.terminate()
print(json.dumps(told))
"""


def somebodys_python() -> str | None:
    """A Python that they may run, with what we need."""
    for python in (sys.executable, SYSTEM_PYTHON):
        check = [*as_somebody(), python, "-c", CHECK]
        if subprocess.run(check, capture_output=True, check=False, cwd="/").returncode == 0:
            return python
    return None


def as_somebody() -> list[str]:
    if os.getuid():
        return []
    return ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]


def tell(folder: Path) -> dict[str, Any]:
    python = somebodys_python()
    if python is None:
        pytest.skip("no Python of 3.11 or later that somebody other than root may run")
    packages = [str(SOURCE), *(path for path in sys.path if path.endswith("site-packages"))]
    env = {**os.environ, "HOME": str(folder), "PYTHONPATH": os.pathsep.join(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*as_somebody(), python, "-c", PROGRAM], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if "no copy-on-write view" in done.stderr:
        pytest.skip("this machine allows no user namespaces")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.skipif(cannot() is not None, reason=str(cannot()))
@pytest.mark.usefixtures("no_strays")
def test_somebody_else_than_root() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        if os.getuid() == 0:
            os.chown(folder, SOMEBODY, SOMEBODY)
        told = tell(folder)
    finally:
        shutil.rmtree(folder)
    assert told["uid"] != 0
    both = [["created", "new.txt"], ["deleted", "old.txt"]]
    assert told["seen"] == [both, both, [["changed", "new.txt"], ["deleted", "old.txt"]]]
    assert told["denied"] == [["network"]] * 3
    assert told["applied"] == ["", ""]
    assert told["after"] == [
        ["1\n", ["mine", "old.txt"]],
        ["2\n", ["mine", "new.txt"]],
        ["3\n", ["mine", "new.txt"]],
    ]
    assert told["closed"]
    assert told["shell"] == [["deleted", "new.txt"]]
    assert told["shell after"] == ["1\n", ["mine"]]
