"""%script --verify runs the program again and compares its results."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from export.conversations import drawn
from interpreter.errors import ExportError, SandboxUnavailableError
from interpreter.host.files import Folder
from interpreter.messages import Message
from interpreter.sandbox.containment import check_available
from interpreter.script import verify as copies
from interpreter.script.verify import Verification, VerifyReport

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2, %s])\nplt.show()\n"


def verify(folder: Path, text: str, since: float | None = None, pictures: tuple[Message, ...] = ()) -> VerifyReport:
    return Verification(text, sys.executable, folder, pictures, since).run()


def test_a_reproduced_file_is_the_same(tmp_path: Path, no_strays: None) -> None:
    (tmp_path / "in.txt").write_text("7")
    (tmp_path / "out.txt").write_text("14")
    report = verify(tmp_path, "n = int(open('in.txt').read())\nopen('out.txt', 'w').write(str(n * 2))\n")
    assert report == VerifyReport(0, same=["out.txt"])
    assert report.reproduced


def test_a_different_file_is_listed(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("yesterday")
    report = verify(tmp_path, "open('out.txt', 'w').write('today')")
    assert report.different == ["out.txt"] and not report.reproduced
    assert (tmp_path / "out.txt").read_text() == "yesterday"


def test_files_made_by_the_session_are_hidden_from_the_program(tmp_path: Path) -> None:
    began = time.time() - 100
    (tmp_path / "in.txt").write_text("1")
    os.utime(tmp_path / "in.txt", (began - 50, began - 50))
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "out.txt").write_text("1")
    text = "import os\nos.mkdir('made')\nopen('made/out.txt', 'w').write(open('in.txt').read())\n"
    assert verify(tmp_path, text, began).reproduced


def test_a_program_that_reads_its_own_results_is_not_reproduced(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("ab")
    report = verify(tmp_path, "text = open('log.txt').read()\nopen('log.txt', 'w').write(text)\n", since=0)
    assert report.ran and report.needed_results and not report.reproduced


def test_a_failing_program_reports_its_output(tmp_path: Path) -> None:
    report = verify(tmp_path, "print('so far')\nopen('gone.csv')\n")
    assert report.exit_code == 1 and not report.reproduced
    assert "so far" in report.output and "gone.csv" in report.output


def test_absolute_paths_refer_to_the_copy(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("old")
    report = verify(tmp_path, f"open({str(tmp_path / 'out.txt')!r}, 'w').write('new')")
    assert (tmp_path / "out.txt").read_text() == "old"
    assert report.different == ["out.txt"]


def test_a_program_cannot_write_outside_its_copy(tmp_path: Path) -> None:
    """Not even if the session has no sandbox, as long as one is available."""
    try:
        check_available()
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    folder = tmp_path / "work"
    folder.mkdir()
    for target in (tmp_path / "outside.txt", Path.home() / "outside.txt"):
        verify(folder, f"open({str(target)!r}, 'w').write('x')")  # it writes at most inside the sandbox
        assert not target.exists()
    hidden = "import os\nopen(os.path.join(os.environ['WORK'], 'x'), 'w')"
    given = Verification(hidden, sys.executable, folder, environment={**os.environ, "WORK": str(folder)})
    assert "Error" in given.run().output and not (folder / "x").exists()


@pytest.mark.full
def test_figures_are_compared_by_appearance(tmp_path: Path) -> None:
    import base64
    import subprocess

    draw = "import io, base64\nb = io.BytesIO()\nplt.gcf().savefig(b, format='png', bbox_inches='tight', dpi=plt.gcf().dpi)\n"
    done = subprocess.run(
        [sys.executable, "-c", PLOT.replace("plt.show()\n", "") % 3 + draw + "print(base64.b64encode(b.getvalue()).decode())"],
        env={**os.environ, "MPLBACKEND": "agg"}, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    same: Message = {"type": "image", "format": "base64.png", "content": done.stdout.strip()}
    assert base64.b64decode(same["content"]).startswith(b"\x89PNG")
    report = verify(tmp_path, PLOT % 3 + PLOT % 9, pictures=(same, same, same))
    assert report.pictures[0] == ""
    assert "different" in report.pictures[1] or "sizes differ" in report.pictures[1]
    assert "did not draw it" in report.pictures[2]
    assert not report.reproduced


def test_image_files_are_compared_by_appearance(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (20, 20), "red").save(tmp_path / "a.png", compress_level=0)
    Image.new("RGB", (20, 20), "red").save(tmp_path / "b.png")
    text = "from PIL import Image\nfor n, c in [('a', 'red'), ('b', 'blue')]:\n    Image.new('RGB', (20, 20), c).save(n + '.png')"
    report = verify(tmp_path, text)
    assert report.same == ["a.png"] and len(report.different) == 1 and "b.png" in report.different[0]


def test_a_recorded_image_that_is_not_drawn_is_missing(tmp_path: Path) -> None:
    assert verify(tmp_path, "x = 1", pictures=(drawn(),)).pictures == ["the program did not draw it"]


def test_a_program_without_results_is_not_reproduced(tmp_path: Path) -> None:
    report = verify(tmp_path, "print(1)")
    assert report.ran and not report.reproduced


def test_a_folder_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "MAX_FILES", 2)
    for name in "abc":
        (tmp_path / name).write_text(name)
    with pytest.raises(ExportError, match="too large"):
        verify(tmp_path, "pass")


def test_child_processes_end_with_the_program(tmp_path: Path, no_strays: None) -> None:
    assert verify(tmp_path, "import subprocess\nsubprocess.Popen(['sleep', '600'])").ran


def test_version_control_and_environments_are_not_copied(tmp_path: Path) -> None:
    for name in (".git", ".venv", "node_modules"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("x")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "kept").write_text("x")
    target = tmp_path / "copy"
    target.mkdir()
    copies.copy_files(Folder(tmp_path), Folder(target))
    assert [path.name for path in target.rglob("*") if path.is_file()] == ["kept"]
