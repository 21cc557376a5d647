"""The data stack: packages for everyday work with data, made once and shared by all session environments.

A session environment finds its own packages first, then these, then ours. Sessions only read them. The stack is made
for this Python, in the background, and only after the user agreed, which is remembered.

`packages` is complete or empty. The installer writes to a folder beside it, which gets a mark and then its name at the
end. A lock keeps two processes from making it at the same time. What an interrupted one left is removed by the next.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from interpreter.config.homes import make_folder, our_folder
from interpreter.console_text import counted
from interpreter.host import processes
from interpreter.host.files import left_behind, lock, remove

if TYPE_CHECKING:
    from subprocess import Popen

    from interpreter.messages import Chunk
    from interpreter.runtimes.live import LiveLanguage

    OnChange = Callable[[str, bool], object]  # what is being done, and whether that was the last

UPDATE = "%env stack update"
# By import name, the package that brings it, if its name differs.
BRINGS = dict(
    pair.split(":")
    for pair in "sklearn:scikit-learn PIL:pillow bs4:beautifulsoup4 docx:python-docx numpy:pandas dateutil:pandas "
    "pylab:matplotlib mpl_toolkits:matplotlib".split()
)
_MARK = ".complete"
_BESIDE = "making-"
_IMPORT = re.compile(r"""(?:^|[;:"'])[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([\w., \t]+))""", re.MULTILINE)
_INSTALL = re.compile(r"\bpip3?[ \t]+install[ \t]+([^\n;&|]+)")
_STEP = re.compile(r"\s*(?:Collecting|Processing|Using cached|Downloading)\s+(\S+)(?:\s+(\([\d.]+ ?[kKMG]i?B\)))?")
_NOT_FOUND = re.compile(r"No matching distribution found for ([\w.-]+)")
_MAX_LINES = 200  # of an installer's output, to say why it failed


def stack_folder() -> Path:
    """Our folder for the stack of this Python."""
    return our_folder("data") / "data-stack" / os.path.basename(os.path.dirname(os.__file__))


def packages_of(stack: str | os.PathLike[str]) -> str:
    """Where a stack's packages are: the folder that session environments import from."""
    return os.path.join(stack, "packages")


class Installed(NamedTuple):
    """A complete stack."""

    requirements: list[str]
    packages: int
    size: int  # in bytes
    day: str
    left_out: list[str]  # there is no wheel of these for this Python


def installed() -> Installed | None:
    """The stack, if it is complete."""
    try:
        return Installed(**json.loads(Path(packages_of(stack_folder()), _MARK).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def agreed() -> bool | None:
    """Whether the user wants it; None if they were never asked."""
    try:
        return (stack_folder() / "choice").read_text("utf-8") == "yes"
    except (OSError, UnicodeDecodeError):
        return None


def agree(wanted: bool) -> None:
    make_folder(stack_folder())
    (stack_folder() / "choice").write_text("yes" if wanted else "no", "utf-8")


def status(requirements: Sequence[str]) -> str:
    """Its size and state, and what can be done, in sentences."""
    stack, busy = installed(), making()
    if busy is not None:
        return f"The data packages are being installed: {busy.progress}."
    problem = last.problem if (last := _makings.get(stack_folder())) is not None else ""
    if stack is not None:
        notes = [f"Data packages for all session environments: {counted(stack.packages, 'package')}, "]
        notes[0] += f"{stack.size / 1e6:,.0f} MB, installed {stack.day}."
        notes += [f"Not available for this Python: {', '.join(stack.left_out)}."] if stack.left_out else []
        notes += ["The list in the settings has changed since."] if stack.requirements != list(requirements) else []
        notes += [f"The last attempt to upgrade them failed. {problem}"] if problem else []
        return " ".join([*notes, f"To upgrade them: {UPDATE}. To remove them: %env stack remove"])
    if agreed():
        problem = problem or "The installation was interrupted."
        return f"The data packages are not installed. {problem} To try again: {UPDATE}"
    return f"The data packages ({', '.join(requirements)}) are not installed. To install them: {UPDATE}"


# -- making it -----------------------------------------------------------------------------------------------------


class Making:
    """An installation in the background; without requirements, one that another process does is waited for."""

    def __init__(self, requirements: Sequence[str], on_change: OnChange, again: bool = False) -> None:
        self.folder, self.problem = stack_folder(), ""
        self.progress = "starting" if requirements else "another session does it"
        self.is_over = False
        self._requirements, self._on_change, self._again = list(requirements), on_change, again
        self._waiting: list[threading.Event] = []
        self._installer: Popen[bytes] | None = None
        self._cancelled = False
        _makings[self.folder] = self
        self._thread = threading.Thread(target=self._run, name="data stack", daemon=True)
        self._thread.start()

    def wake_at_end(self, event: threading.Event) -> None:
        """Set an event when it is over."""
        self._waiting.append(event)
        if self.is_over:
            event.set()

    def cancel(self) -> None:
        """End it; what the installer has downloaded stays in its cache."""
        self._cancelled = True
        if self._installer is not None:
            processes.kill(self._installer)
            self._thread.join(10)

    def _run(self) -> None:
        try:
            make_folder(self.folder)
            with open(self.folder / "lock", "a") as file:
                lock(file.fileno(), wait=True)
                if self._requirements and (self._again or installed() is None):
                    self._install()
        except OSError as error:
            self.problem = f"{error.strerror or error}".rstrip(".") + "."
        finally:
            self.is_over = True
            for event in self._waiting:
                event.set()
            self._on_change("not installed, see %env" if self.problem else "ready", True)

    def _install(self) -> None:
        target = self.folder / f"{_BESIDE}{os.getpid()}"
        for left in (*left_behind(self.folder, _BESIDE), target):
            remove(left)
        requirements, complaint = list(self._requirements), ""
        while requirements and (complaint := self._try_installers(target, requirements)):
            missing = re.search(_NOT_FOUND, complaint)
            others = [each for each in requirements if missing is None or _name(each) != _name(missing[1])]
            if missing is None or others == requirements or self._cancelled:
                raise OSError(complaint)
            requirements = others  # there is no wheel of that one for this Python: the others are worth having
        if self._cancelled or not requirements:
            raise OSError(complaint or "The installation was interrupted.")
        self._tell("finishing")
        names = [each for each in os.listdir(target) if each.endswith(".dist-info")]
        sizes = (os.lstat(os.path.join(place, file)).st_size for place, _, files in os.walk(target) for file in files)
        left_out = [each for each in self._requirements if each not in requirements]
        stack = Installed(self._requirements, len(names), sum(sizes), time.strftime("%Y-%m-%d"), left_out)
        (target / _MARK).write_text(json.dumps(stack._asdict()), "utf-8")
        for place, _, _ in os.walk(target):
            os.chmod(place, 0o555)
        packages, old = packages_of(self.folder), f"{target}-old"
        if os.path.exists(packages):
            os.rename(packages, old)
        os.rename(target, packages)
        remove(old)

    def _try_installers(self, target: Path, requirements: list[str]) -> str:
        """Install into an empty folder; why that failed, or nothing."""
        from interpreter.runtimes.environments import NO_CONNECTION

        lines: list[str] = []
        for command in _commands(target, requirements):
            remove(target)
            lines.clear()
            if self._follow(command, lines) == 0 or self._cancelled:
                return ""
        if NO_CONNECTION.search("\n".join(lines)):
            return "The package index can't be reached: there seems to be no network connection."
        errors = [line for line in lines if re.match("error", line, re.IGNORECASE)]
        return (errors or lines or ["The installer failed."])[-1]

    def _follow(self, command: list[str], lines: list[str]) -> int:
        """Run an installer, say what it does, and keep the last lines of what it prints; its exit code."""
        stderr = -2  # subprocess.STDOUT
        process = processes.start(command, env={"PIP_USER": "0"}, stdout=processes.PIPE, stderr=stderr)
        self._installer = process
        if self._cancelled:
            processes.kill(process)
        assert process.stdout is not None
        with process.stdout:
            for raw in process.stdout:
                line = raw.decode("utf-8", "replace").strip()
                lines[:] = [*lines[-_MAX_LINES:], *filter(None, [line])]
                if line.startswith(("Installing collected", "Prepared ")):
                    self._tell("installing")
                elif step := _STEP.match(line):
                    name = re.split(r"-\d|[<>=!~;\[]", os.path.basename(step[1]))[0]
                    self._tell(f"downloading {name} {step[2] or ''}".rstrip())
        return process.wait()

    def _tell(self, progress: str) -> None:
        if progress != self.progress:
            self.progress = progress
            self._on_change(progress, False)


_makings: dict[Path, Making] = {}  # the last of this process, by folder


@atexit.register
def _cancel_all() -> None:
    for each in _makings.values():
        each.cancel()


def _commands(target: Path, requirements: list[str]) -> Iterator[list[str]]:
    """The installers to try, in order: uv may not know the index that pip is set up for."""
    from interpreter.runtimes.environments import bundled_pip, packages_behind
    from interpreter.runtimes.launch import has_package

    options = ["--target", str(target), "--only-binary", ":all:", "--", *requirements]
    if processes.which("uv"):
        yield ["uv", "pip", "install", "--python", sys.executable, "--compile-bytecode", *options]
    pip = processes.python("-m", "pip", packages=True)
    if not has_package(packages_behind(), "pip") and (bundled := bundled_pip()):
        pip = processes.python(f"{bundled}/pip")
    quiet = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    yield [*pip, "install", "--retries", "2", *quiet, *options]  # whose notices tell that there is no network


def make(requirements: Sequence[str], on_change: OnChange, again: bool = False) -> Making:
    """Make the stack in the background, or `again` with the newest versions. One that this process makes is joined."""
    known = _makings.get(stack_folder())
    return known if known is not None and not known.is_over else Making(requirements, on_change, again)


def making() -> Making | None:
    """The installation that runs now, in this process or another one."""
    folder = stack_folder()
    known = _makings.get(folder)
    if known is not None and not known.is_over:
        return known
    try:
        with open(folder / "lock", "a") as file:
            lock(file.fileno())
    except BlockingIOError:
        return Making((), lambda progress, is_over: None)
    except OSError:
        pass  # it was never made
    return None


def remove_stack() -> None:
    """Delete it, and remember that the user does not want it."""
    agree(False)
    if (known := _makings.get(stack_folder())) is not None:
        known.cancel()
    remove(packages_of(stack_folder()))
    make_folder(packages_of(stack_folder()))  # sessions that are alive look for it there


# -- waiting for it ------------------------------------------------------------------------------------------------


def wait_until_made(
    runtime: LiveLanguage, code: str, requirements: Sequence[str], is_cancelled: Callable[[], bool]
) -> Generator[Chunk]:
    """Before a block: if it needs a package that is being installed, wait for that. Stopping it ends the wait."""
    from interpreter.runtimes.block import notice

    listed, context = {_name(each) for each in requirements}, runtime.context
    needed = [name for name in _needed(code) if BRINGS.get(name, _name(name)) in listed]
    busy = making() if needed and installed() is None else None
    if busy is None or not (environment := context.python_environment()).stack:
        return
    folders = (context.cwd, *environment.places)
    paths = {name: [os.path.join(folder, name + end) for folder in folders for end in ("", ".py")] for name in needed}
    needed = [name for name in needed if not any(map(os.path.exists, paths[name]))]
    if not needed:
        return
    yield {
        **notice(f"Waiting for {', '.join(needed)}: the data packages are being installed ({busy.progress}).\n"),
        "recipient": "user",
    }
    runtime.awaited = threading.Event()
    try:
        busy.wake_at_end(runtime.awaited)
        if not is_cancelled():
            runtime.awaited.wait()
    finally:
        runtime.awaited = None
    if busy.problem:
        yield notice(f"The data packages were not installed. {busy.problem}\n")


def _needed(code: str) -> list[str]:
    """The modules that code imports and the packages that it installs, as far as its text shows."""
    names = []
    for source, imported in _IMPORT.findall(code):
        modules = [source] if source else imported.split(",")
        names += [each.strip().partition(" ")[0].partition(".")[0] for each in modules]
    for words in _INSTALL.findall(code):
        names += [re.split(r"[^\w.-]", word, maxsplit=1)[0] for word in words.split() if not word.startswith("-")]
    return list(dict.fromkeys(filter(None, names)))


def _name(requirement: str) -> str:
    """The name of the package that a requirement asks for, in its normal form."""
    return re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0].replace("_", "-").lower()
