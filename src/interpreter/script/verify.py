"""Run an exported program in a sandbox, a fresh process and a copy of the folder, and compare the results.

Code wrote the program and its folder. So the host only copies and compares bytes, without following links. Everything
that runs the program or reads its pictures runs in the sandbox.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from interpreter.api import OpenInterpreter
from interpreter.app import perform
from interpreter.app.exports import Export, python_of, runtime_context
from interpreter.errors import ExportError, SandboxUnavailableError
from interpreter.export.documents import picture
from interpreter.host.files import Folder
from interpreter.host.processes import Completed
from interpreter.messages import Message
from interpreter.questions import Confirm, Question
from interpreter.runtimes.launch import Start, run_to_end
from interpreter.sandbox.containment import Containment, check_available
from interpreter.sandbox.sandbox import Sandbox
from interpreter.session import Do, Event
from interpreter.session.journal.reader import RecordedBlock

VERIFY = "Run the program again, in a copy of this folder?"
MAX_BYTES = 500_000_000
MAX_FILES = 10_000
TIMEOUT = 600.0
NEAR = 2.0  # pictures with a mean difference up to this, out of 255, count as equal
_TAIL = 2000
_CHUNK = 1024 * 1024
_NOT_COPIED = frozenset({".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".ipynb_checkpoints"})
_TEMPLATES = Path(__file__).parent


@dataclass
class VerifyReport:
    exit_code: int | None  # None if it took too long
    output: str = ""
    same: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # what could not be compared, with the reason
    # One for each picture of the session: empty if the program drew it again, else the difference.
    pictures: list[str] = field(default_factory=list)
    needed_results: bool = False  # it only ran with files that the session made or changed

    @property
    def ran(self) -> bool:
        return self.exit_code == 0

    @property
    def reproduced(self) -> bool:
        """Check that the program made all of its results again from nothing, and that each was compared and equal."""
        made = bool(self.same or self.pictures)
        return self.ran and made and not (self.different or self.unknown or any(self.pictures) or self.needed_results)


def place_of_run(containment: object) -> str:
    """Describe where a program would run; the containment is the session's."""
    if containment is not None:
        return "It runs in the session's sandbox and can't write to this folder."
    try:
        check_available()
    except SandboxUnavailableError:
        return (
            "There is no sandbox here, so it runs with your permissions. Anything it does outside this folder "
            "happens again."
        )
    return "It runs in a sandbox without network and can only write to that copy."


@dataclass(frozen=True)
class Verification:
    """The program to verify, and the session's files and results to compare with."""

    text: str
    python: str
    folder: Path
    pictures: Sequence[Message] = ()
    # When the session began, if known: files written later are its results, so the program doesn't get them.
    since: float | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    containment: Containment | None = None  # that of the session
    layer: str = ""  # the session environment that the Python belongs to, if it does
    stack: str = ""  # the data stack behind that environment

    def run(self) -> VerifyReport:
        """Run the program without the session's results. If that fails, run it with them, which the report notes."""
        results: list[str] = []
        if self.since is not None:
            with Folder(self.folder) as original:
                results = [name for name, (when, _) in stamps(original).items() if when >= self.since * 1e9]
        report, rewritten = self._attempt(results)
        if not report.ran and results:
            report, _ = self._attempt([])
            report.needed_results = report.ran
        elif report.ran and not results and rewritten:
            again, _ = self._attempt(rewritten)
            report, report.needed_results = (again, False) if again.ran else (report, True)
        return report

    def _attempt(self, leave_out: Sequence[str]) -> tuple[VerifyReport, list[str]]:
        """Run the program once. Returns the report, and which existing files it wrote again."""
        with tempfile.TemporaryDirectory(prefix="open-interpreter-verify-", ignore_cleanup_errors=True) as made:
            path = os.path.realpath(made)
            for name in ("folder", "figures"):
                os.mkdir(os.path.join(path, name))
            with (
                Folder(path) as place,
                Folder(os.path.join(path, "folder")) as copy,
                Folder(self.folder) as original,
                ExitStack() as stack,
            ):
                copy_files(original, copy, leave_out)
                before = stamps(copy)
                attempt = _Attempt(self, place, self._sandbox(path, stack))
                report = attempt.execute()
                written = sorted(name for name, stamp in stamps(copy).items() if before.get(name) != stamp)
                if report.ran:
                    attempt.compare_files(report, original, copy, written)
                    attempt.compare_pictures(report)
            return report, [name for name in written if name in before]

    def _sandbox(self, place: str, stack: ExitStack) -> Containment | None:
        """Return the session's sandbox for a program in `place`, or a new one; None if there is no sandbox here."""
        if self.containment is not None:
            return self.containment.with_workspace_kept(place)
        readable = (os.path.expanduser("~"), str(self.folder))
        try:
            containment = Containment(Sandbox("workspace", place, paths=readable, fixed=True))
        except SandboxUnavailableError:
            return None
        stack.callback(containment.close)
        if self.layer:
            containment.admit(self.layer, self.stack, writable=False)
        return containment


class _Attempt:
    """Runs a program once and compares the results with those of the session.

    The program can write to all of `place`, so the host follows no link there.
    """

    def __init__(self, given: Verification, place: Folder, containment: Containment | None) -> None:
        self._given, self._place, self._containment = given, place, containment

    def execute(self) -> VerifyReport:
        folder, program = f"{self._place.path}/folder", f"{self._place.path}/program_being_verified.py"
        # The program may name the folder: that has to mean the copy, so that the run does not write into the original.
        text = self._given.text.replace(str(self._given.folder), folder)
        self._place.write_bytes("program_being_verified.py", text.encode())
        self._place.write_bytes("figures_to_files.py", (_TEMPLATES / "figures_to_files.txt").read_bytes())
        try:
            done = self._run_script("run_program", folder, program)
        except TimeoutError:
            return VerifyReport(None)
        return VerifyReport(done.returncode, done.text if len(done.text) <= _TAIL else "…" + done.text[-_TAIL:])

    def _run_script(self, template: str, *arguments: str, stdin: bytes = b"") -> Completed:
        """Run one of our scripts with the session's Python, in the same sandbox as the program."""
        self._place.write_bytes(f"{template}.py", (_TEMPLATES / f"{template}.txt").read_bytes())
        containment, env = self._containment, dict(self._given.environment)
        if containment is not None and self._given.containment is None:
            env = containment.environment(env)
        env |= {"MPLBACKEND": "module://figures_to_files", "FIGURES_FOLDER": f"{self._place.path}/figures"}
        start = Start([self._given.python, f"{self._place.path}/{template}.py", *arguments], env, "/")
        in_container = containment is not None and containment.sandbox.image  # then `place` is its workspace already
        return run_to_end(start, containment, stdin, TIMEOUT, None if in_container else Path(self._place.path))

    def compare_files(self, report: VerifyReport, original: Folder, copy: Folder, written: Sequence[str]) -> None:
        for number, name in enumerate(written):
            try:
                if have_same_content(copy, original, name):
                    report.same.append(name)
                elif name.lower().endswith((".png", ".jpg", ".jpeg")):
                    self._place.write_bytes(f"original-{number}", original.read_bytes(name))
                    problem = self._differences([(f"folder/{name}", f"original-{number}")])[0]
                    (report.different if problem else report.same).append(f"{name}: {problem}" if problem else name)
                else:
                    report.different.append(name)
            except OSError:
                report.unknown.append(f"{name}: the program creates it, but it is not in the folder")

    def compare_pictures(self, report: VerifyReport) -> None:
        drawn, pairs = sorted(self._place.listdir("figures")), []
        for number, message in enumerate(self._given.pictures):
            recorded = picture(message)
            if recorded is None:
                report.pictures.append("its record can't be read")
            elif number >= len(drawn):
                report.pictures.append("the program did not draw it")
            else:
                self._place.write_bytes(f"recorded-{number}", recorded.content)
                pairs.append((f"recorded-{number}", f"figures/{drawn[number]}"))
                report.pictures.append("")
        differences = iter(self._differences(pairs))
        report.pictures = [each or next(differences) for each in report.pictures]

    def _differences(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Describe the difference of each pair of pictures, empty if equal.

        Only the session's Python has the libraries for it.
        """
        if not pairs:
            return []
        paths = [[f"{self._place.path}/{name}" for name in pair] for pair in pairs]
        try:
            done = self._run_script("compare_pictures", stdin=json.dumps(paths).encode())
            differences = json.loads(done.text.strip().rpartition("\n")[2])  # warnings may stand before it
        except (OSError, ValueError, RecursionError):
            differences = None
        if not isinstance(differences, list) or len(differences) != len(pairs):
            return ["could not be compared"] * len(pairs)
        descriptions = []
        for difference in differences:
            if isinstance(difference, float | int):
                looks = f"it looks different (by {difference:.1f} of 255 on average)"
                descriptions.append("" if difference <= NEAR else looks)
            else:
                descriptions.append(str(difference)[:200] or "could not be compared")
        return descriptions


def have_same_content(one: Folder, other: Folder, name: str) -> bool:
    with one.open(name) as left, other.open(name) as right:
        while piece := left.read(_CHUNK):
            if piece != right.read(_CHUNK):
                return False
        return not right.read(1)


def copy_files(source: Folder, target: Folder, leave_out: Iterable[str] = ()) -> None:
    """Copy the regular files, except those in `leave_out`."""
    wanted = stamps(source)
    for name in sorted(wanted.keys() - set(leave_out)):
        when, size = wanted[name]
        if "/" in name:
            target.mkdir(name.rpartition("/")[0], parents=True, exist_ok=True)
        with source.open(name) as file, target.open(name, "xb") as copy:
            while size > 0 and (piece := file.read(min(size, _CHUNK))):  # no more than that, even if the file grows
                copy.write(piece)
                size -= len(piece)
        target.chmod(name, stat.S_IMODE(source.stat(name).st_mode) & 0o777)
        target.utime(name, (when, when))


def stamps(folder: Folder) -> dict[str, tuple[int, int]]:
    """Map each regular file to its modification time and size, without version control, environments and caches."""
    files: dict[str, tuple[int, int]] = {}
    pending, total = [""], 0
    while pending:
        base = pending.pop()
        for each in sorted(folder.listdir(base)):
            name = f"{base}/{each}" if base else each
            facts = folder.stat(name)
            if stat.S_ISDIR(facts.st_mode) and each not in _NOT_COPIED:
                pending.append(name)
            elif stat.S_ISREG(facts.st_mode):
                files[name] = (facts.st_mtime_ns, facts.st_size)
                total += facts.st_size
            if len(files) > MAX_FILES or total > MAX_BYTES:
                raise ExportError(
                    f"{folder.path} is too large to copy (more than {MAX_FILES:,} files or {MAX_BYTES // 1_000_000} "
                    f"MB). Run the program in a separate folder."
                )
    return files


def verify(interpreter: OpenInterpreter, exported: Export) -> Generator[Event, None, VerifyReport | None]:
    """Run an exported script in a sandbox, a fresh process and a copy of the folder, and compare what it makes.

    Always asks first; None if the answer was not a yes.
    """
    program = exported.program
    assert program is not None

    def run() -> VerifyReport:
        shared = runtime_context(interpreter)
        environment = shared.python_environment()
        verification = Verification(
            program.text,
            python_of(shared),
            Path(interpreter.workspace),
            program.pictures,
            next((entry.at for entry in exported.entries if isinstance(entry, RecordedBlock)), None),
            shared.environment(),
            cast("Containment | None", shared.containment),
            environment.folder if environment.is_layer else "",
            environment.stack,
        )
        try:
            return verification.run()
        except OSError as error:
            raise ExportError(f"The program could not be verified: {error}") from error

    where = place_of_run(runtime_context(interpreter).containment)
    question = Question(Confirm(f"{VERIFY} {where}", "verify", details=exported))
    action = Do("verify", run, "an export is being verified", question=question)
    report: VerifyReport | None = yield from perform(interpreter, action)
    return report
