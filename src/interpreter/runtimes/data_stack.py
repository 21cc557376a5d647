"""The data stack: packages for everyday work with data, installed once and shared by all session environments.

A session environment finds its own packages first, then these, then ours. Sessions only read them. The stack is
installed for this Python, in the background, and only after the user agreed, which is remembered.

`packages` is complete or empty. The installer writes to a folder beside it, which gets a mark and then its name at the
end. A lock stops two processes from installing at the same time. The next installation removes what an interrupted one
left.
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
from typing import TYPE_CHECKING, Any

from interpreter.config.homes import make_folder, our_folder
from interpreter.console_text import counted
from interpreter.errors import UsageError
from interpreter.host import processes
from interpreter.host.files import left_behind, lock, remove

if TYPE_CHECKING:
    from subprocess import Popen

    from interpreter.messages import Chunk
    from interpreter.runtimes.live import LiveLanguage

UPDATE = "%env stack update"
# By import name, the package that provides it, if its name differs.
BRINGS = dict(
    pair.split(":")
    for pair in "sklearn:scikit-learn PIL:pillow bs4:beautifulsoup4 docx:python-docx numpy:pandas dateutil:pandas "
    "pylab:matplotlib mpl_toolkits:matplotlib".split()
)
_MARK, _BESIDE = ".complete", "making-"
_INTERRUPTED = "The installation was interrupted."
_TO_STDOUT = -2  # subprocess.STDOUT; the module is only imported when needed
_IMPORT = re.compile(r"""(?:^|[;:"'])[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([\w., \t]+))""", re.MULTILINE)
_STEP = re.compile(
    r"(?:Collecting|Processing|Using cached|Downloading) (\S+)(?: (\([\d.]+ ?[kKMG]i?B\)))?|"
    r"Installing collected|Prepared "
)
_NOT_FOUND = re.compile(r"No matching distribution found for ([\w.-]+)")


def stack_folder() -> Path:
    """Return our folder for the stack of this Python. Session environments import from `packages` in it."""
    return our_folder("data") / "data-stack" / os.path.basename(os.path.dirname(os.__file__))


def installed() -> dict[str, Any]:
    """Read the record of a complete stack (`requirements`, `packages`, `size`, ...); empty if there is none."""
    try:
        return dict(json.loads((stack_folder() / "packages" / _MARK).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def agreed() -> bool | None:
    """Return whether the user wants the stack; None if they were never asked."""
    return choice.read_text("utf-8") == "yes" if (choice := stack_folder() / "choice").is_file() else None


def agree(wanted: bool) -> None:
    try:
        make_folder(stack_folder())
        (stack_folder() / "choice").write_text("yes" if wanted else "no", "utf-8")
    except OSError as error:
        raise UsageError(f"Can't write in {stack_folder()}: {error.strerror}.") from error


def status(requirements: Sequence[str]) -> str:
    """Describe its size and state, and what the user can do, in sentences."""
    stack, busy, last = installed(), making(), _makings.get(stack_folder())
    problem = last.problem if last is not None else ""
    if busy is not None:
        return f"The data packages are being installed: {busy.progress}."
    if not stack and not agreed():
        return f"The data packages ({', '.join(requirements)}) are not installed. To install them: {UPDATE}"
    if not stack:
        return f"The data packages are not installed. {problem or _INTERRUPTED} To try again: {UPDATE}"
    notes = [
        f"Data packages for all session environments: {counted(stack['packages'], 'package')},",
        f"{stack['size'] / 1e6:,.0f} MB, installed {stack['day']}.",
        f"Not available for this Python: {', '.join(stack['left_out'])}." if stack["left_out"] else "",
        "The list in the settings has changed since." if stack["requirements"] != list(requirements) else "",
        f"The last attempt to upgrade them failed. {problem}" if problem else "",
        f"To upgrade them: {UPDATE}. To remove them: %env stack remove",
    ]
    return " ".join(filter(None, notes))


# -- making it -----------------------------------------------------------------------------------------------------


class Making:
    """An installation in the background; without requirements, it waits for one in another process."""

    def __init__(self, requirements: Sequence[str], on_change: Callable[[str], object], again: bool = False) -> None:
        self.folder, self.problem, self.is_over = stack_folder(), "", False
        self.progress = "starting" if requirements else "another session does it"
        self.waiting: list[threading.Event] = []  # set at each change, and at the end
        self._requirements, self._on_change, self._again = list(requirements), on_change, again
        self.installer: Popen[bytes] | None = None
        _makings[self.folder] = self
        self.thread = threading.Thread(target=self._run, name="data stack", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            make_folder(self.folder)
            with open(self.folder / "lock", "a") as file:
                lock(file.fileno(), wait=True)
                if self._requirements and (self._again or not installed()):
                    self._install()
        except OSError as error:
            self.problem = f"{error.strerror or error}".rstrip(".") + "."
        finally:
            self.is_over = True
            self._tell("not installed, see %env" if self.problem else "")

    def _tell(self, progress: str) -> None:
        self.progress = progress
        for event in self.waiting:
            event.set()
        self._on_change(progress)

    def _install(self) -> None:
        beside = self.folder / f"{_BESIDE}{os.getpid()}"
        for left in (*left_behind(self.folder, _BESIDE), beside):
            remove(left)
        target, packages, old = beside / "packages", self.folder / "packages", f"{beside}-old"
        requirements = self._requirements
        while complaint := self._try_installers(target, requirements):
            missing = _NOT_FOUND.search(complaint)
            others = [each for each in requirements if missing is None or _name(each) != _name(missing[1])]
            if not others or others == requirements:
                raise OSError(complaint)
            requirements = others  # that one has no wheel for this Python, but the others are worth having
        stack = {
            "requirements": self._requirements,
            "left_out": [each for each in self._requirements if each not in requirements],
            "packages": len(list(target.glob("*.dist-info"))),
            "size": sum(os.lstat(f"{place}/{file}").st_size for place, _, files in os.walk(target) for file in files),
            "day": time.strftime("%Y-%m-%d"),
        }
        (target / _MARK).write_text(json.dumps(stack), "utf-8")
        if packages.exists():
            packages.rename(old)
        target.rename(packages)
        for place, _, _ in os.walk(packages):
            os.chmod(place, 0o555)
        remove(beside)
        remove(old)

    def _try_installers(self, target: Path, requirements: list[str]) -> str:
        """Install into a folder with the first installer that works. Returns why that failed, or an empty string."""
        from interpreter.runtimes.missing_packages import NO_CONNECTION

        lines: list[str] = []
        for command in _commands(target, requirements):
            remove(target)
            make_folder(target)
            env = {"PIP_USER": "0", "TMPDIR": str(target.parent)}  # /tmp may be too small
            self.installer = processes.start(command, env=env, stdout=processes.PIPE, stderr=_TO_STDOUT)
            with self.installer as process:
                for raw in process.stdout or ():
                    lines.append(raw.decode("utf-8", "replace").strip())
                    if step := _STEP.match(lines[-1]):
                        name = re.split(r"-\d|[<>=!~;\[]", os.path.basename(step[1] or ""))[0]
                        self._tell(f"downloading {name} {step[2] or ''}".rstrip() if name else "installing")
            if process.returncode <= 0:
                return _INTERRUPTED if process.returncode else ""
        if NO_CONNECTION.search("\n".join(lines)):
            return "The package index can't be reached: there seems to be no network connection."
        return next((line for line in reversed(lines) if line.lower().startswith("error")), "The installer failed.")


_makings: dict[Path, Making] = {}  # the last one in this process, by folder


@atexit.register
def cancel_all() -> None:
    """Stop the installers of this process; their downloads stay in their caches."""
    for each in _makings.values():
        if each.installer is not None:
            processes.kill(each.installer)
            each.thread.join(10)


def _commands(target: Path, requirements: list[str]) -> Iterator[list[str]]:
    """Yield the install commands to try, in order: uv may not know the index that pip is configured for."""
    from interpreter.runtimes.environments import bundled_pip, packages_behind
    from interpreter.runtimes.launch import has_package

    options = ["--target", str(target), "--only-binary", ":all:", "--", *requirements]
    if processes.which("uv"):
        yield ["uv", "pip", "install", "--python", sys.executable, "--compile-bytecode", *options]
    is_ours = has_package(packages_behind(), "pip")
    pip = processes.python("-m", "pip", packages=True) if is_ours else processes.python(f"{bundled_pip()}/pip")
    options = ["--no-input", "--disable-pip-version-check", "--progress-bar", "off", *options]
    yield [*pip, "install", "--retries", "2", *options]  # notices about retries reveal a missing network


def make(requirements: Sequence[str], on_change: Callable[[str], object], again: bool = False) -> Making:
    """Install the stack in the background, or `again` with the newest versions. Joins a running installation."""
    known = _makings.get(stack_folder())
    return known if known is not None and not known.is_over else Making(requirements, on_change, again)


def making() -> Making | None:
    """Return the installation that is running, in this process or another one; None if there is none."""
    known = _makings.get(stack_folder())
    if known is not None and not known.is_over:
        return known
    try:
        with open(stack_folder() / "lock", "a") as file:
            lock(file.fileno())
    except OSError as error:  # never made, or locked
        return Making((), lambda progress: None) if isinstance(error, BlockingIOError) else None
    return None


def remove_stack() -> None:
    """Delete the stack, and remember that the user does not want it."""
    agree(False)
    cancel_all()
    remove(stack_folder() / "packages")
    make_folder(stack_folder() / "packages")  # running sessions look for it there


# -- waiting for it ------------------------------------------------------------------------------------------------


def wait_until_made(
    runtime: LiveLanguage, code: str, requirements: Sequence[str], is_cancelled: Callable[[], bool]
) -> Generator[Chunk]:
    """Before a block, wait for packages that it needs and that are being installed.

    Stopping the block ends the wait.
    """
    from interpreter.runtimes.block import notice

    listed, context = {_name(each) for each in requirements}, runtime.context
    imported = ",".join(source or names for source, names in _IMPORT.findall(code)).split(",")
    modules = dict.fromkeys(each.strip().partition(" ")[0].partition(".")[0] for each in imported)
    needed = [name for name in modules if BRINGS.get(name, _name(name)) in listed]
    busy = making() if needed and not installed() else None
    if busy is None or not (environment := context.python_environment()).stack:
        return
    places = [os.path.join(folder, "") for folder in (context.cwd, *environment.places)]
    here = {name for name in needed for place in places for end in ("", ".py") if os.path.exists(place + name + end)}
    if missing := ", ".join(name for name in needed if name not in here):
        yield {**notice(f"Waiting for {missing}: the data packages are being installed.\n"), "recipient": "user"}
        status: Chunk = {"role": "computer", "type": "status", "format": "preparing"}
        runtime.awaited = awaited = threading.Event()
        busy.waiting.append(awaited)
        while not busy.is_over and not is_cancelled():
            yield {**status, "content": {"what": f"waiting for {missing}", "progress": busy.progress}}
            awaited.wait()
            awaited.clear()
        yield {**status, "content": {}}
        if busy.problem:
            yield notice(f"The data packages were not installed. {busy.problem}\n")


def _name(requirement: str) -> str:
    """Return the normalised name of the package that a requirement asks for."""
    return re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0].replace("_", "-").lower()
