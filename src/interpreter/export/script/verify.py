"""Run an exported program in a fresh process and a copy of the folder, and compare the results."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interpreter.errors import ExportError
from interpreter.export.outputs import picture
from interpreter.messages import Message

MAX_BYTES = 500_000_000
MAX_FILES = 10_000
TIMEOUT = 600.0
NEAR = 2.0
"""The mean difference of two pictures, in steps of 255, up to which they count as the same."""
_TAIL = 2000
_NOT_COPIED = frozenset({".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".ipynb_checkpoints"})
_TEMPLATES = Path(__file__).parent.parent / "templates"
_PROGRAM = "program_being_verified.py"


@dataclass
class Report:
    """What the run showed."""

    exit_code: int | None
    """None if it took too long."""
    output: str = ""
    same: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """What could not be compared, with the reason."""
    pictures: list[str] = field(default_factory=list)
    """For each picture of the session: empty if the program drew it again, else what is different."""
    needed_results: bool = False
    """It ran only with the files there that the session had made or changed."""

    @property
    def ran(self) -> bool:
        return self.exit_code == 0

    @property
    def reproduced(self) -> bool:
        """Everything that the program makes was made again, from nothing, and nothing is left unsaid."""
        made = bool(self.same or self.pictures)
        return self.ran and made and not (self.different or self.unknown or any(self.pictures) or self.needed_results)


@dataclass(frozen=True)
class Verification:
    """What to run, and where the session's files are."""

    text: str
    python: str
    folder: Path
    pictures: Sequence[Message] = ()
    since: float | None = None
    """When the session began, if that is known: files written later are its results, and not given to the program."""
    environment: Mapping[str, str] | None = None

    def run(self) -> Report:
        """Try without the session's results; if that fails, with them, which the report notes."""
        results: list[str] = []
        if self.since is not None:
            began = self.since * 1e9
            results = sorted(name for name, (when, _) in stamps(self.folder).items() if when >= began)
        report, rewritten = self._attempt(results)
        if not report.ran and results:
            report, _ = self._attempt([])
            report.needed_results = report.ran
        elif report.ran and not results and rewritten:
            again, _ = self._attempt(rewritten)
            report, report.needed_results = (again, False) if again.ran else (report, True)
        return report

    def _attempt(self, leave_out: Sequence[str]) -> tuple[Report, list[str]]:
        """One run, and which existing files it wrote again."""
        with tempfile.TemporaryDirectory(prefix="open-interpreter-verify-", ignore_cleanup_errors=True) as place:
            copy, figures = Path(place) / "folder", Path(place) / "figures"
            copy.mkdir()
            figures.mkdir()
            copy_folder(self.folder, copy, leave_out)
            before = stamps(copy)
            report = self._execute(copy, Path(place), figures)
            written = sorted(name for name, stamp in stamps(copy).items() if before.get(name) != stamp)
            if report.ran:
                self._compare_files(report, copy, written)
                self._compare_pictures(report, figures, Path(place))
            return report, [name for name in written if name in before]

    def _execute(self, copy: Path, place: Path, figures: Path) -> Report:
        program = place / _PROGRAM
        # The folder's own name in the program means the copy, so that the run does not write into the original.
        program.write_text(self.text.replace(str(self.folder), str(copy)), encoding="utf-8")
        shutil.copy(_TEMPLATES / "figures_to_files.txt", place / "figures_to_files.py")
        environment = {**(self.environment or os.environ), "MPLBACKEND": "module://figures_to_files"}
        paths = [str(copy), str(place), environment.get("PYTHONPATH", "")]
        environment |= {"FIGURES_FOLDER": str(figures), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        output = place / "output.txt"
        with open(output, "wb") as file:
            code = _run([self.python, str(program)], copy, environment, file.fileno())
        text = output.read_text(encoding="utf-8", errors="replace")
        return Report(code, text if len(text) <= _TAIL else "…" + text[-_TAIL:])

    def _compare_files(self, report: Report, copy: Path, written: Sequence[str]) -> None:
        for name in written:
            original = self.folder / name
            if not original.is_file():
                report.unknown.append(f"{name}: the program makes it, but it is not in the folder")
            elif filecmp.cmp(copy / name, original, shallow=False):
                report.same.append(name)
            elif original.suffix.lower() in (".png", ".jpg", ".jpeg"):
                told = self._differences([(copy / name, original)])[0]
                (report.different if told else report.same).append(f"{name}: {told}" if told else name)
            else:
                report.different.append(name)

    def _compare_pictures(self, report: Report, figures: Path, place: Path) -> None:
        drawn, pairs = sorted(figures.iterdir()), []
        for number, message in enumerate(self.pictures):
            recorded = picture(str(message.get("content", "")), message.get("format", ""))
            if recorded is None:
                report.pictures.append("the record of it cannot be read")
            elif number >= len(drawn):
                report.pictures.append("the program did not draw it")
            else:
                original = place / f"recorded-{number}"
                original.write_bytes(recorded.content)
                pairs.append((original, drawn[number]))
                report.pictures.append("")
        found = iter(self._differences(pairs))
        report.pictures = [each or next(found) for each in report.pictures]

    def _differences(self, pairs: Sequence[tuple[Path, Path]]) -> list[str]:
        """For each pair what is different; the session's own Python has what it takes to read pictures."""
        if not pairs:
            return []
        asked = json.dumps([[str(one), str(other)] for one, other in pairs])
        program = (_TEMPLATES / "compare_pictures.txt").read_text(encoding="utf-8")
        done = subprocess.run([self.python, "-c", program], input=asked, capture_output=True, text=True, check=False)
        if done.returncode:
            return ["could not be compared"] * len(pairs)
        told = []
        for difference in json.loads(done.stdout):
            if isinstance(difference, str):
                told.append(difference)
            else:
                looks = f"it looks different (by {difference:.1f} of 255 on average)"
                told.append("" if difference <= NEAR else looks)
        return told


def _run(command: list[str], folder: Path, environment: Mapping[str, str], output: int) -> int | None:
    """The exit code; None if it took too long. Whatever it started ends with it."""
    running = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return running.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        return None
    finally:
        try:
            os.killpg(running.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        running.wait()


def files_in(folder: Path) -> Iterator[Path]:
    """The regular files below a folder, without version control, environments and caches."""
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NOT_COPIED)
        for name in sorted(names):
            path = Path(base) / name
            if path.is_file():
                yield path


def copy_folder(source: Path, target: Path, leave_out: Iterable[str] = ()) -> None:
    """Copy the files, except for those to leave out; a folder that is too large is refused before the first one."""
    missing, total = set(leave_out), 0
    paths = [path for path in files_in(source) if str(path.relative_to(source)) not in missing]
    for number, path in enumerate(paths, 1):
        total += path.stat().st_size
        if number > MAX_FILES or total > MAX_BYTES:
            raise ExportError(
                f"{source} is too large to try the program in a copy of it (more than {MAX_FILES:,} files or "
                f"{MAX_BYTES // 1_000_000} MB): run the program in a folder of its own."
            )
    for path in paths:
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """When each file was last written, and how long it is."""
    found = {}
    for path in files_in(folder):
        facts = path.stat()
        found[str(path.relative_to(folder))] = (facts.st_mtime_ns, facts.st_size)
    return found
