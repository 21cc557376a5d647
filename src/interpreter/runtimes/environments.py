"""Which Python runs code, and where its packages go: never into the environment that Open Interpreter runs from.

In this order: the Python that the settings name, the active virtual environment, the project's (if the user accepted
it), else a *session environment*. That is a virtual environment of ours in the data folder: its packages come first,
then the data stack, which all of them share, and ours can be imported behind them. If the Python chosen is our own, a
session environment is put in front of it.

A session environment is a few small files, written without starting a program. Sandboxed code has a separate one, so
that nothing it installs is imported outside a sandbox. The host reads and writes both only through `host.files`, and
starts no program from them: a session's supervisor runs on our own Python.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from interpreter.config.homes import make_folder, our_folder
from interpreter.errors import RuntimeStartError
from interpreter.host.files import Folder, read_bytes, remove
from interpreter.questions import Confirm, Question, Step
from interpreter.runtimes.block import notice
from interpreter.runtimes.data_stack import stack_folder
from interpreter.runtimes.launch import has_package

if TYPE_CHECKING:
    from interpreter.runtimes.launch import RuntimeContext

Origin = Literal["setting", "active", "project", "session"]

LIBRARY = os.path.basename(os.path.dirname(os.__file__))  # python3.12, or python3.13t
PACKAGES = f"lib/{LIBRARY}/site-packages"
BEHIND = "zz-open-interpreter.pth"  # the last one that is read
CONDA = "conda:"
SESSION = "session"
CONDA_PLACES = ("miniforge3", "mambaforge", "miniconda3", "anaconda3", "micromamba", ".conda")
# Starts the Python in the same folder, wherever that is.
PIP = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
'''
import sys
from pip._internal.cli.main import main
sys.exit(main())
"""
LAYERED = (
    "Open Interpreter is installed in your active environment, {active}. To keep it working, packages that code "
    "installs go to a layer above it. %env lists them.\n"
)
PROJECT = "This folder has its own Python environment, {name}. Use it for code here? I'll remember the answer."
MAX_TEXT_LENGTH = 100_000  # read from a project file


@dataclass(frozen=True)
class Environment:
    """A Python for code, and the folder that its packages are installed into."""

    python: str  # the Python that code sees
    # The program that the first process of a runtime runs on, which loads nothing from a session environment.
    supervisor: str
    folder: str = ""  # the virtual environment; empty for a Python outside of one
    origin: Origin = "session"
    is_layer: bool = False  # whether it is a session environment in front of our Python
    places: tuple[str, ...] = ()  # the folders where it looks for packages, its own first
    stack: str = ""  # the folder of the data stack, read-only for code; empty for the user's environments

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return these variables, changed so that `python`, `pip` and `uv pip` use this environment."""
        changed = dict(env)
        if not self.folder:
            return changed
        if os.path.isdir(os.path.join(self.folder, "conda-meta")):
            changed["CONDA_PREFIX"] = self.folder
            changed.pop("VIRTUAL_ENV", None)
        else:
            changed["VIRTUAL_ENV"] = self.folder
        changed.pop("PYTHONHOME", None)
        if self.is_layer:
            changed.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")  # this environment has no pip to upgrade
            changed.setdefault("UV_LINK_MODE", "copy")  # else its files may be ours as well, by hard links
        programs = os.path.join(self.folder, "bin")
        path = env.get("PATH", os.defpath)
        if programs not in path.split(os.pathsep):
            changed["PATH"] = f"{programs}{os.pathsep}{path}"
        return changed

    def prepare(self) -> None:
        """Create the session environment, or repair it, because code can write there."""
        if self.is_layer:
            try:
                make_layer(self.folder)
            except OSError as error:
                detail = f"can't write in {self.folder} ({error.strerror}). XDG_DATA_HOME can name another folder"
                raise RuntimeStartError("Python", detail) from error

    def installed(self, behind: bool = False) -> list[tuple[str, str]]:
        """List the name and version of each package that is installed here; in a layer, of those in the layer alone.

        With `behind`, also those that can be imported behind a layer.
        """
        packages: set[tuple[str, str]] = set()
        for folder in self.places[: 1 if self.is_layer and not behind else None]:
            try:
                with Folder(folder) as place:
                    names = place.listdir()
            except OSError:
                continue
            matches = (re.fullmatch(r"([\w.]+)-([\w.!+]+)\.dist-info", name, re.ASCII) for name in names)
            packages |= {(match[1].replace("_", "-"), match[2]) for match in matches if match}
        return sorted(packages, key=lambda each: each[0].lower())

    @property
    def installer(self) -> Literal["pip", "uv", ""]:
        if has_package(self.places, "pip") or (self.is_layer and bundled_pip()):
            return "pip"
        return "uv" if self.folder and shutil.which("uv") else ""

    def install_command(self, module: str) -> str:
        """Return the line of a Python block that installs the package behind a module; empty if there is none."""
        from interpreter.runtimes.missing_packages import package_names

        line, names = (
            {"pip": "%pip install ", "uv": "!uv pip install ", "": ""}[self.installer],
            package_names("pip", [module]),
        )
        return line + names[0] if line and names else ""


# -- notices and offers to the user ------------------------------------------------------------------------------------


def introduce(shared: RuntimeContext, may_ask: bool) -> Generator[Step]:
    """Offer the project's environment before the first block. Say once if installs go to a layer above the user's."""
    workspace, env = shared.workspace, shared.own_environment()
    folder = offered_project(workspace, shared.python, env) if may_ask else None
    if folder is not None:
        name = os.path.relpath(folder, workspace) if Path(folder).is_relative_to(workspace) else folder
        question = Question(Confirm(PROJECT.format(name=name), "offer"))
        yield question
        if not question.unattended:
            Choice(folder, question.approved).save(workspace)
            shared.forget_environment()
    marker = our_folder("data") / "environments" / "told"
    is_above = not shared.python and (chosen := shared.python_environment()).is_layer and chosen.origin == "active"
    if is_above and not marker.exists():
        make_folder(marker.parent)
        marker.touch()
        yield notice(LAYERED.format(active=sys.prefix))


# -- choosing ----------------------------------------------------------------------------------------------------------


def choose(
    asked: str | None, env: Mapping[str, str], workspace: str, shared: bool = False, sandboxed: bool = False
) -> Environment:
    """Choose the environment for code in a workspace.

    `asked` is a program, a folder or `conda:NAME`; `env` our variables.

    If its Python is our own, returns the session environment in front of it.
    """
    python, origin = _chosen_python(asked, env, workspace)
    prefix = os.path.dirname(os.path.dirname(python))
    is_layer = Path(prefix).is_relative_to(our_folder("data") / "environments")  # as in a program that code started
    is_ours = os.path.realpath(prefix) == os.path.realpath(sys.prefix) or python == sys.executable or is_layer
    if not is_ours or not hasattr(os, "fork"):
        is_environment = any(os.path.exists(os.path.join(prefix, name)) for name in ("pyvenv.cfg", "conda-meta"))
        folders = sorted(glob.glob(os.path.join(glob.escape(prefix), "lib", "python3*", "site-packages")))
        return Environment(python, python, prefix if is_environment else "", origin, places=tuple(folders))
    folder = session_folder("" if shared else workspace, sandboxed)
    stack = str(stack_folder())
    places = (os.path.join(folder, PACKAGES), os.path.join(stack, "packages"), *packages_behind())
    return Environment(os.path.join(folder, "bin", "python"), sys.executable, folder, origin, True, places, stack)


def _chosen_python(asked: str | None, env: Mapping[str, str], workspace: str) -> tuple[str, Origin]:
    """Find the Python that runs code. Raises RuntimeStartError if the user's setting doesn't lead to one."""
    if not asked:
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            if (active := env.get(name)) and (python := python_in(active)):
                return python, "active"
        chosen = Choice.of(workspace)
        if chosen is not None and chosen.accepted and (python := python_in(chosen.folder)):
            return python, "project"
    if not asked or asked == SESSION:
        return sys.executable, "session"
    if asked.startswith(CONDA):
        program_path = conda_python(asked.removeprefix(CONDA), env)
    else:
        path = os.path.expanduser(asked)
        below = os.path.join(workspace, path)
        folder = next((each for each in (path, below) if os.path.isdir(each)), None)
        program = path if os.path.sep not in path else below  # a path is relative to the workspace
        program_path = python_in(folder) if folder is not None else shutil.which(program, path=env.get("PATH"))
    if program_path is None:
        raise RuntimeStartError("Python", f"no Python at {asked!r}. Check the setting `computer.python`")
    return os.path.abspath(program_path), "setting"


def python_in(environment: str | os.PathLike[str]) -> str | None:
    paths = (os.path.join(environment, name) for name in ("bin/python", "bin/python3", "Scripts/python.exe"))
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def conda_python(name: str, env: Mapping[str, str]) -> str | None:
    """Find the Python of a conda environment by the environment's name, without starting conda."""
    roots = [os.path.join(os.path.expanduser("~"), place) for place in CONDA_PLACES]
    roots += [os.path.dirname(os.path.dirname(env["CONDA_EXE"]))] if env.get("CONDA_EXE") else []
    roots += [env["MAMBA_ROOT_PREFIX"]] if env.get("MAMBA_ROOT_PREFIX") else []
    folders = [os.path.join(root, "envs", name) for root in (*roots, "/opt/conda")] if name == Path(name).name else []
    return next(filter(None, map(python_in, folders)), None)


# -- the project's own -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """The user's decision about the environment of a project."""

    folder: str
    accepted: bool

    @classmethod
    def of(cls, workspace: str) -> Choice | None:
        """Read the user's decision about this workspace; None if they were never asked."""
        try:
            word, _, folder = (home_of(workspace) / "project").read_text("utf-8").partition(" ")
        except (OSError, UnicodeDecodeError):
            return None
        return cls(folder, word == "use")

    def save(self, workspace: str) -> None:
        home = home_of(workspace)
        make_folder(home)
        (home / "project").write_text(f"{'use' if self.accepted else 'ignore'} {self.folder}", "utf-8")


def offered_project(workspace: str, asked: str | None, env: Mapping[str, str]) -> str | None:
    """Find the project's environment, unless the user has chosen a Python or was already asked about this one."""
    if asked or env.get("VIRTUAL_ENV") or env.get("CONDA_PREFIX"):
        return None
    folder = next(filter(python_in, _project_folders(workspace, env)), None)
    is_ours = folder is not None and os.path.realpath(folder) == os.path.realpath(sys.prefix)
    if folder is None or is_ours or ((choice := Choice.of(workspace)) is not None and choice.folder == folder):
        return None
    return folder


def _project_folders(workspace: str, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the folders where venv, uv, poetry and conda keep a project's environment."""
    yield from (os.path.join(workspace, name) for name in (".venv", "venv"))
    settings = _read(workspace, "pyproject.toml")
    if b"[tool.poetry" in settings and (match := re.search(rb'(?m)^name\s*=\s*["\']([\w .-]+)["\']', settings)):
        from base64 import urlsafe_b64encode
        from hashlib import sha256

        import platformdirs

        place = sha256(os.path.normcase(os.path.realpath(workspace)).encode()).digest()
        name = f"{match[1].decode().lower().replace(' ', '_')[:42]}-{urlsafe_b64encode(place).decode()[:8]}-py3*"
        cache = env.get("POETRY_CACHE_DIR") or platformdirs.user_cache_dir("pypoetry", appauthor=False)
        yield from sorted(glob.glob(os.path.join(glob.escape(cache), "virtualenvs", name)), reverse=True)
    for file in ("environment.yml", "environment.yaml"):
        match = re.search(rb"(?m)^name:\s*[\"']?([\w.-]+)", _read(workspace, file))
        if match and (python := conda_python(match[1].decode(), env)):
            yield os.path.dirname(os.path.dirname(python))


def _read(workspace: str, name: str) -> bytes:
    try:
        return read_bytes(os.path.join(workspace, name), MAX_TEXT_LENGTH)
    except OSError:
        return b""


# -- session environments ----------------------------------------------------------------------------------------------


def home_of(workspace: str) -> Path:
    """Return our folder for a workspace's session environments; without a workspace, for those that all share."""
    if not workspace:
        return our_folder("data") / "environments" / "shared"
    from hashlib import sha256

    path = os.path.realpath(workspace)
    name = re.sub(r"[^\w.-]+", "-", os.path.basename(path))[:40]
    return our_folder("data") / "environments" / f"{name}-{sha256(os.fsencode(path)).hexdigest()[:12]}"


def session_folder(workspace: str, sandboxed: bool) -> str:
    return str(home_of(workspace) / ("sandboxed" if sandboxed else "open"))


def packages_behind() -> list[str]:
    """List the folders with our own packages and others that this Python can import."""
    import site

    users = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return [folder for folder in (*site.getsitepackages(), *users) if os.path.isdir(folder)]


def bundled_pip() -> str | None:
    """Return the pip archive that comes with Python and can be run directly; None if this Python has none."""
    places = (os.path.join(os.path.dirname(os.__file__), "ensurepip", "_bundled"), "/usr/share/python-wheels")
    wheels = [path for place in places for path in sorted(glob.glob(os.path.join(place, "pip-*.whl")))]
    return wheels[-1] if wheels else None


def make_layer(folder: str) -> None:
    """Write the files of a session environment that are missing. What code has put in their place is removed."""
    make_folder(stack_folder() / "packages")  # exists from the start, so that running sessions see packages appear
    make_folder(folder)
    try:
        _write_layer(folder)
    except OSError:  # code replaced a file by a link or a folder, or another session is writing it
        remove(folder)
        make_folder(folder)
        _write_layer(folder)


def _write_layer(folder: str) -> None:
    base = getattr(sys, "_base_executable", None) or sys.executable
    python = os.path.join(folder, "bin", "python")
    behind = packages_behind()
    pip = None if has_package(behind, "pip") else bundled_pip()
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    script = PIP.format(python=python)
    lines = [f"import site, sys; {each!r} in sys.path or site.addsitedir({each!r})" for each in behind]
    files = {
        "pyvenv.cfg": f"home = {os.path.dirname(base)}\ninclude-system-site-packages = false\n"
        f"version = {version}.{sys.version_info[2]}\nexecutable = {base}\n",
        f"{PACKAGES}/{BEHIND}": "\n".join([str(stack_folder() / "packages"), *lines, *([pip] if pip else []), ""]),
        **{f"bin/{name}": script for name in ("pip", "pip3", f"pip{version}")},
    }
    links = {"bin/python": base, "bin/python3": "python", f"bin/python{version}": "python"}
    with Folder(folder) as place:
        for name in ("bin", PACKAGES):
            place.mkdir(name, parents=True, exist_ok=True)
        for name, target in links.items():
            if not place.exists(name) or place.readlink(name) != target:
                with suppress(FileExistsError):  # another session made it first
                    place.unlink(name, missing_ok=True)
                    place.symlink(target, name)
        for name, text in files.items():
            if not place.exists(name) or place.read_bytes(name, MAX_TEXT_LENGTH) != text.encode():
                place.write_bytes(name, text.encode(), 0o755 if name.startswith("bin/") else 0o644)


def empty_layer(environment: Environment) -> None:
    remove(environment.folder)
    make_layer(environment.folder)  # at once, or `pip` in a running shell would be another one
