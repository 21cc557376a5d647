"""Other file systems mounted below a folder that a dry run covers: the rest of that folder stays writable in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from preview.preview_session import why_no_views
from preview.test_unprivileged import SOURCE, UNPRIVILEGED_UID, as_unprivileged_user, python_for_unprivileged_user

needs_mounts = pytest.mark.skipif(
    why_no_views() is not None or os.getuid() != 0, reason=why_no_views() or "only root can mount file systems"
)
pytestmark = [needs_mounts, pytest.mark.usefixtures("no_strays")]

# `remote` has a kind of file system that gets no layer, as sshfs and rclone; the name of `my disk` has a blank.
MOUNTS = """
set -e
cd "$HOME"
mkdir "my disk" remote remote/below
mount -t tmpfs none "my disk"
mount -t ramfs none remote
mkdir remote/work remote/nested
mount -t tmpfs none remote/nested
echo real > "my disk/kept"; echo real > remote/kept; echo real > remote/nested/kept
touch file; echo real > secret; mount --bind secret file
chown -R "$OWNER:$OWNER" .
exec "$@"
"""
PROGRAM = """
import json, os, sys
from pathlib import Path
from interpreter import OpenInterpreter
home, report = Path.home(), {}
interpreter = OpenInterpreter(workspace=sys.argv[1])
def ran(language, code):
    chunks = interpreter.computer.run(language, code, stream=True)
    return ''.join(chunk['content'] for chunk in chunks if chunk.get('format') == 'output')
ran('python', 'from pathlib import Path; home = Path.home(); log = open(home / "remote/log", "a")')
code = '''
(home / 'foo').mkdir()
(home / 'my disk/kept').write_text('changed')
Path('here').write_text('x')
print((home / 'remote/kept').read_text(), (home / 'remote/nested/kept').read_text(), (home / 'file').read_text())
(home / 'remote/kept').write_text('changed')
'''
for keep in (False, True):
    with interpreter.computer.preview('python', code) as preview:
        preview.run()
        chunks = preview.chunks
        report['output'] = ''.join(each['content'] for each in chunks if each.get('format') == 'output').split()[:3]
        report['changes'] = sorted([each.what, each.path] for each in preview.changes)
        report['text'] = ''.join(str(each.get('content')) for each in chunks)
        report['denied'] = [str(each) for each in preview.denied]
        report['read_only'] = preview.read_only
        if keep: preview.apply()
    report[f'kept {keep}'] = [(home / 'foo').exists(), (home / 'my disk/kept').read_text().strip()]
    report[f'still {keep}'] = ran('python', 'print((home / "remote/kept").write_text("real"), log.write("x"))').split()
with interpreter.computer.preview('shell', 'echo x >> ~/new; echo x > ~/remote/kept') as preview:
    report['shell'] = [preview.run().read_only == report['read_only'], [each.path for each in preview.changes]]
interpreter.computer.terminate()
print(json.dumps(report))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """In a temporary folder that others may enter, as pytest's own may not be."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def run_program(home: Path, workspace: str, owner: int, python: str) -> dict[str, Any]:
    (home / "work").mkdir()
    (home / "work").chmod(0o777)
    packages = [str(SOURCE), *(path for path in sys.path if path.endswith("site-packages"))]
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(packages), "PYTHONDONTWRITEBYTECODE": "1"}
    env["OWNER"] = str(owner)
    start = ["unshare", "--mount", "sh", "-c", MOUNTS, "sh", *(as_unprivileged_user() if owner else [])]
    command = [*start, python, "-c", PROGRAM, str(home / workspace)]
    done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, check=False)
    if "does not allow user namespaces" in done.stderr:
        pytest.skip("this machine allows no user namespaces")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("user", ["root", "another"])
@pytest.mark.parametrize("workspace", ["work", "remote/work"])
def test_a_mount_below_a_covered_folder_leaves_the_folder_writable(home: Path, user: str, workspace: str) -> None:
    python = sys.executable if user == "root" else python_for_unprivileged_user()
    if python is None:
        pytest.skip("no Python 3.11 or later that other users than root may run")
    report = run_program(home, workspace, UNPRIVILEGED_UID if user == "another" else 0, python)
    assert report["output"] == ["real", "real", "real"], report["text"]
    assert report["changes"] == sorted(
        [["changed", f"{home}/my disk/kept"], ["created", f"{home}/foo"], ["created", "here"]]
    )
    assert report["denied"] == [f"python: writing {home}/remote/kept"]
    assert report["read_only"] == [f"{home}/file", f"{home}/remote"]
    assert report["kept False"] == [False, "real"] and report["kept True"] == [True, "changed"]
    assert report["still False"] == report["still True"] == ["4", "1"]
    assert report["shell"] == [True, [f"{home}/new"]]
