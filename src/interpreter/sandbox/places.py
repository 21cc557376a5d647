"""Which places of the machine a sandboxed session sees, which it may write to, and the mount points for them."""

from __future__ import annotations

import contextlib
import glob
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from interpreter.config.homes import homes
from interpreter.errors import SandboxUnavailableError
from interpreter.sandbox.sandbox import ENTER, WRITABLE, Sandbox

PACKAGE = Path(__file__).parents[1]
# What our side runs inside; the rest of the package is not needed there.
DRIVERS = (PACKAGE / "runtimes", ENTER)
# Others are mounted there.
APART = tuple(map(Path, ("/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/proc")))
# Places of people, not of the system.
HOMES = ("/home", "/root", "/mnt/c/Users")
# Readable for root, and nobody's business.
KEYS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/krb5.keytab"),
    *("/etc/sudoers.d", "/etc/ssl/private", "/sys/firmware"),
)
HOST_KEYS = "/etc/ssh/ssh_host_*_key"
# In a home that is asked for as a whole; elsewhere they are not seen in the first place.
PRIVATE = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".password-store"),
    *(".netrc", ".npmrc", ".pypirc", ".git-credentials", ".local/share/keyrings", ".mozilla", ".config/google-chrome"),
)
# Of the user's home: no secrets, and hard to do without.
USEFUL = (".local/lib/python3*", ".cache/matplotlib", ".config/matplotlib", ".cache/fontconfig", ".fonts")
# What git, editors and we ourselves run or believe: seen, but not written to.
TRUSTED = (".git", ".interpreter", ".open-interpreter", ".agents", ".vscode", ".idea", ".envrc", ".husky")
DEEPEST = 2  # folders below the workspace in which more repositories are looked for
MOST_FOLDERS = 400


@dataclass(frozen=True)
class Places:
    """In the order in which they are mounted: what is hidden, then what is seen of it, then what is hidden in that."""

    home: Path
    hidden: tuple[Path, ...]  # folders that are empty inside
    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    protected: tuple[Path, ...]  # inside what is writable, and not
    masked: tuple[Path, ...]  # inside what is seen, and not

    def is_hidden(self, path: str | Path) -> bool:
        """Whether it cannot be seen inside, whether or not it exists."""
        path = Path(path)
        if any(path.is_relative_to(masked) for masked in self.masked):
            return True
        seen = any(path.is_relative_to(place) for place in (*self.readable, *self.writable))
        return not seen and any(path.is_relative_to(folder) for folder in self.hidden)

    def is_writable(self, path: str | Path) -> bool:
        path = Path(path)
        if any(path.is_relative_to(place) for place in (*self.protected, *self.masked)):
            return False
        return any(path.is_relative_to(place) for place in self.writable)


def places(sandbox: Sandbox, programs: Iterable[str], state: Iterable[Path]) -> Places:
    """The places for these programs; `state` is our own, and nobody's inside."""
    workspace = Path(sandbox.workspace)
    home = Path(homes()[0])
    refuse_too_wide(workspace, home)
    asked = [path for path in sandbox.paths if not is_inside(unresolved(path), [workspace])]  # code can put links there
    more = replace(sandbox, paths=tuple(asked))
    writable = [*more.writable, *([workspace] if sandbox.writes_workspace else [])]
    hidden = hidden_folders()
    needed = [*programs_of(programs, workspace), *DRIVERS, *useful(home), *more.readable]
    readable = [*needed, *([] if sandbox.writes_workspace else [workspace])]
    seen = [*readable, *writable]
    masked = [path for path in private(state) if is_inside(path, seen) or not is_inside(path, hidden)]
    own = [place for place in (Path(sys.prefix), PACKAGE) if is_inside(place, writable)]
    trusted = [path for place in writable for path in trusted_in(place)]
    wanted = {*more.readable, *more.writable}
    return Places(
        home,
        tuple(hidden),
        tuple(dict.fromkeys(path for path in readable if os.path.exists(path))),
        tuple(dict.fromkeys(path for path in writable if os.path.exists(path))),
        tuple(dict.fromkeys([*trusted, *own])),
        tuple(path for path in dict.fromkeys(masked) if path not in wanted),
    )


def refuse_too_wide(workspace: Path, home: Path) -> None:
    for place, words in ((home, "your home folder"), (PACKAGE, "the folder in which Open Interpreter is installed")):
        if place.is_relative_to(workspace) and (place == home or workspace == Path("/")):
            raise SandboxUnavailableError(
                f"The workspace {workspace} has {words} in it, so a sandbox would protect nothing. "
                "Start in the folder that the work is about, or name it: interpreter --workspace FOLDER"
            )
    if not workspace.is_dir():
        raise SandboxUnavailableError(
            f"The workspace {workspace} is no folder. Name one: interpreter --workspace FOLDER"
        )


def hidden_folders() -> list[Path]:
    found = map(Path, (*HOMES, *reversed(homes())))
    return [place for place in dict.fromkeys(found) if os.path.isdir(place) and place != Path("/")]


def programs_of(programs: Iterable[str], workspace: Path) -> Iterator[Path]:
    """The installations that programs belong to: each link on the way counts, as in a virtual environment.

    Links in the workspace may be the code's own: from there, only whole installations of Python are followed.
    """
    for program in programs:
        is_trusted = not is_inside(unresolved(program), [workspace])
        for path in (*steps(Path(program)), Path(os.path.realpath(program))):
            found = installation(path)
            if is_trusted or (found != path and path.name.startswith("python")):
                yield found


def programs_in(argv: list[str]) -> list[str]:
    """The programs that a command line names in full."""
    return [word for word in argv if word.startswith("/") and os.access(word, os.X_OK) and os.path.isfile(word)]


def steps(path: Path) -> Iterator[Path]:
    for _ in range(16):
        yield path
        if not path.is_symlink():
            return
        path = path.parent / os.readlink(path)


def unresolved(path: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path.removesuffix(WRITABLE))))


def installation(program: Path) -> Path:
    """The folder above `bin`, unless that is much more than an installation: then the program alone."""
    above = program.parent.parent
    is_one = program.parent.name in ("bin", "Scripts") and ((above / "lib").is_dir() or (above / "pyvenv.cfg").exists())
    home = Path(os.path.expanduser("~"))
    return above if is_one and above != Path("/") and not home.is_relative_to(above) else program


def useful(home: Path) -> Iterator[Path]:
    for pattern in USEFUL:
        yield from map(Path, glob.glob(str(home / pattern)))


def private(state: Iterable[Path]) -> list[Path]:
    paths = [Path(path) for path in (*KEYS, *system_keys())] + [
        Path(home, name) for home in homes() for name in PRIVATE
    ]
    return [path for path in (*paths, *map(resolved, state)) if os.path.exists(path)]


@cache
def system_keys() -> tuple[str, ...]:
    return tuple(glob.glob(HOST_KEYS))


def resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))


def trusted_in(folder: Path) -> Iterator[Path]:
    """What is in a writable folder that others run or believe, in the repositories below it as well."""
    if not folder.is_dir():
        return
    looked, todo = 0, [(folder, 0)]
    while todo and looked < MOST_FOLDERS:
        place, depth = todo.pop(0)
        looked += 1
        for entry in entries(place):
            if entry.is_symlink():
                continue  # what it leads to is somewhere else: if it were mounted here, it would be seen
            if entry.name in TRUSTED:
                yield Path(entry.path)
            elif depth < DEEPEST and entry.name != "node_modules" and entry.is_dir(follow_symlinks=False):
                todo.append((Path(entry.path), depth + 1))


def entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def is_inside(path: Path, places: Iterable[Path]) -> bool:
    return any(path.is_relative_to(place) for place in places)


def listening_sockets() -> list[Path]:
    """The files at which programs of this machine listen: whoever can see one can talk to it."""
    try:
        rows = Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]
    except OSError:
        return []
    names = {row.split(maxsplit=7)[7] for row in rows if len(row.split(maxsplit=7)) == 8}
    return [Path(name) for name in names if name.startswith("/") and os.path.exists(name)]


def make_mount_points(scratch: Path, places: Places, own: Iterable[Path]) -> None:
    """See to it that the folders on the way to each mount are folders, where the sandbox's own folders are mounted."""
    bases = {places.home: scratch / "home", Path("/tmp"): scratch / "tmp", Path("/var/tmp"): scratch / "tmp"}
    for place in (*places.readable, *places.writable, *own):
        for base, folder in bases.items():
            if place != base and place.is_relative_to(base):
                _make_folders(folder, place.relative_to(base).parts, is_folder=place.is_dir())
                break


def _make_folders(folder: Path, names: tuple[str, ...], is_folder: bool) -> None:
    """The folders below one another; what has their name and is none, a link above all, goes."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for name in names if is_folder else names[:-1]:
            here = _enter_folder(here, name)
        if not is_folder:
            with contextlib.suppress(OSError):
                os.unlink(names[-1], dir_fd=here)
    finally:
        os.close(here)


def _enter_folder(here: int, name: str) -> int:
    """Into a folder of that name, made if there is none; lets go of the one before."""
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=here)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            return os.open(name, flags, dir_fd=here)
        except OSError:
            os.unlink(name, dir_fd=here)
            os.mkdir(name, 0o700, dir_fd=here)
            return os.open(name, flags, dir_fd=here)
    finally:
        os.close(here)
