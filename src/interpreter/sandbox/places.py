"""Which places of the machine a sandboxed session sees, which it may write to, and the mount points for them."""

from __future__ import annotations

import contextlib
import glob
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from interpreter.config.homes import homes
from interpreter.errors import SandboxUnavailableError
from interpreter.host.files import CONFINED, Folder, lock
from interpreter.sandbox.sandbox import ENTER, WRITABLE, Sandbox, full

PACKAGE = Path(__file__).parents[1]
# What our side runs inside; the rest of the package is not needed there.
DRIVERS = (PACKAGE / "runtimes", ENTER)
# Others are mounted there.
APART = tuple(map(Path, ("/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/proc")))
# Places of people, not of the system.
HOMES = ("/home", "/root", "/mnt/c/Users")
# Readable for root, but private.
KEYS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/krb5.keytab"),
    *("/etc/sudoers.d", "/etc/ssl/private", "/sys/firmware"),
)
# In a home that is asked for as a whole; elsewhere they are not seen in the first place.
PRIVATE = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".password-store"),
    *(".netrc", ".npmrc", ".pypirc", ".git-credentials", ".local/share/keyrings", ".mozilla", ".config/google-chrome"),
)
# Of the user's home: no secrets, and hard to do without. Into its own two folders matplotlib wants to write.
USEFUL = (".local/lib/python3*", ".cache/matplotlib/*", ".config/matplotlib/*", ".cache/fontconfig", ".fonts")
# What git, editors, other agents and we ourselves run or believe: visible, but not writable, at any depth.
TRUSTED = (
    *(".git", ".githooks", ".husky", ".vscode", ".idea", ".cursor", ".devcontainer", ".envrc", ".mcp.json"),
    *(".agents", ".claude", ".codex", ".interpreter", ".open-interpreter"),
)
# Of these, what programs outside use without asking: where it is missing, an empty folder stops code from making it.
RESERVED = (".git", ".vscode", ".idea", ".agents")
MAX_FOLDERS = 20_000  # in which trusted files are looked for, the shallowest first
MAX_PROTECTED = 400  # each needs a mount, and a descriptor until it is mounted
RECENT = 100_000_000  # nanoseconds in which a folder can change twice without another time stamp


@dataclass(frozen=True)
class SandboxPlaces:
    """In the order in which they are mounted: what is hidden, then what is seen of it, then what is hidden in that."""

    home: Path
    hidden: tuple[Path, ...]  # folders that are empty inside
    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    protected: tuple[Path, ...]  # inside what is writable, and not; besides trusted files
    masked: tuple[Path, ...]  # inside what is seen, and not

    def is_hidden(self, path: str | Path) -> bool:
        """Whether it cannot be seen inside, whether or not it exists."""
        is_shown = is_inside(path, (*self.readable, *self.writable))
        return is_inside(path, self.masked) or (not is_shown and is_inside(path, self.hidden))

    def is_writable(self, path: str | Path) -> bool:
        is_kept = self.is_protected(path) or is_inside(path, self.masked)
        return not is_kept and is_inside(path, self.writable)

    def is_protected(self, path: str | Path) -> bool:
        """Whether it is ours or trusted by programs outside, in a folder that is writable otherwise."""
        names = [Path(path).relative_to(place).parts for place in self.writable if is_inside(path, [place])]
        return is_inside(path, self.protected) or any(is_trusted(*parts) for parts in names)


def places(sandbox: Sandbox, programs: Iterable[str], state: Iterable[Path]) -> SandboxPlaces:
    """The places for these programs; `state` is our own and stays hidden."""
    workspace = Path(sandbox.workspace)
    home = Path(homes()[0])
    asked = [path for path in sandbox.paths if not is_inside(unresolved(path), [workspace])]  # code can put links there
    more = replace(sandbox, paths=tuple(asked))
    writable = [*more.writable, *([workspace] if sandbox.writes_workspace else [])]
    refuse_too_wide(workspace, home, writable)
    folders = map(Path, (*HOMES, *reversed(homes())))
    hidden = [place for place in dict.fromkeys(folders) if os.path.isdir(place) and place != Path("/")]
    useful = [Path(path) for pattern in USEFUL for path in glob.glob(str(home / pattern))]
    needed = [*programs_of(programs, workspace), *DRIVERS, *useful, *more.readable]
    if is_inside(PACKAGE, APART):  # the sandbox has its own /tmp: code could put a module beside the package there
        needed.append(PACKAGE.parent)
    readable = [*needed, *([] if sandbox.writes_workspace else [workspace])]
    seen = [*readable, *writable]
    private = [Path(path) for path in (*KEYS, *glob.glob("/etc/ssh/ssh_host_*_key"))]
    private += [Path(home, name) for home in homes() for name in PRIVATE]
    existing = [path for path in (*private, *map(full, state)) if os.path.exists(path)]
    masked = [path for path in existing if is_inside(path, seen) or not is_inside(path, hidden)]
    own = [place for place in (full(sys.prefix), full(sys.base_prefix), PACKAGE) if is_inside(place, writable)]
    wanted = {*more.readable, *more.writable}
    return SandboxPlaces(
        home,
        tuple(hidden),
        tuple(dict.fromkeys(path for path in readable if os.path.exists(path))),
        tuple(dict.fromkeys(path for path in writable if os.path.exists(path))),
        tuple(own),
        tuple(path for path in dict.fromkeys(masked) if path not in wanted),
    )


def refuse_too_wide(workspace: Path, home: Path, writable: Iterable[Path]) -> None:
    for place, words in ((home, "your home folder"), (PACKAGE, "the Open Interpreter installation")):
        if place.is_relative_to(workspace) and (place == home or workspace == Path("/")):
            raise SandboxUnavailableError(
                f"The workspace {workspace} contains {words}, so a sandbox would not protect anything. Start in your "
                f"project's folder, or name it: interpreter --workspace FOLDER"
            )
    if not workspace.is_dir():
        raise SandboxUnavailableError(
            f"The workspace {workspace} is not a folder. Name one: interpreter --workspace FOLDER"
        )
    # Our own temporary files, such as the copies for undo, must not be the code's.
    temporary = full(tempfile.gettempdir())
    if above := next((path for path in writable if temporary.is_relative_to(path)), None):
        raise SandboxUnavailableError(
            f"Code could write to {above}, which contains the folder for temporary files ({temporary}). Work in "
            f"another folder, or set TMPDIR to a folder outside it."
        )


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


def is_trusted(*names: str) -> bool:
    """Whether one of the names is trusted; some file systems take `.Git` for `.git`."""
    return not {name.lower() for name in names}.isdisjoint(TRUSTED)


class TrustedPaths:
    """Trusted files in a folder that code can write to: found before each session, and again after each block."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = Folder(root)
        self._listed: dict[str, tuple[int, dict[str, int], list[str]]] = {}  # of each folder: time, files, folders
        self._held: dict[str, tuple[int, bool]] = {}  # reserved names: a descriptor, and whether to remove the folder
        self.is_complete = True  # whether the last look was at all folders
        self._reserve()
        self._known = set(self.find().items())

    def _reserve(self) -> None:
        """Make what is missing of the reserved names. Other sandboxes see by a lock that it is still needed."""
        for name in RESERVED if CONFINED else ():
            is_new = not self._folder.exists(name)
            try:
                self._folder.mkdir(name, exist_ok=True)
                fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._folder.fileno())
            except OSError:
                if is_new and os.access(self.root, os.W_OK):
                    raise
                continue  # a file or a link, or code cannot make it either
            left_behind = name == ".git" and not os.listdir(fd)
            try:
                lock(fd)
            except OSError:  # another sandbox has it, and has made it if it is empty
                left_behind = not os.listdir(fd)
            self._held[name] = (fd, is_new or left_behind)
            with contextlib.suppress(OSError):
                lock(fd, shared=True)

    def release(self) -> None:
        """Remove the folders that were made for reserved names, unless they are in use by now."""
        for name, (fd, is_ours) in self._held.items():
            with contextlib.suppress(OSError):
                lock(fd)
                if is_ours:
                    self._folder.rmdir(name)
            os.close(fd)
        self._held = {}
        self._folder.close()

    def find(self) -> dict[str, int]:
        """The names of the trusted files, relative to the folder, and their inodes.

        What is in a folder is read again if the folder has changed, which code cannot hide: nothing sets that time.
        """
        found: dict[str, int] = {}
        listed: dict[str, tuple[int, dict[str, int], list[str]]] = {}
        names, begin = [""], f"{self.root}/"
        for name in names:
            try:
                changed = os.lstat(begin + name).st_ctime_ns
                known = self._listed.get(name)
                if known is None or known[0] != changed:
                    is_recent = time.time_ns() - changed < RECENT
                    known = (0 if is_recent else changed, *self._list(name))
            except OSError:
                continue
            listed[name] = known
            found |= known[1]
            names += known[2][: MAX_FOLDERS - len(names)]
        self._listed = listed
        self.is_complete = len(names) < MAX_FOLDERS
        return found

    def _list(self, folder: str) -> tuple[dict[str, int], list[str]]:
        trusted: dict[str, int] = {}
        folders: list[str] = []
        with self._folder.opened(folder) as place, os.scandir(place) as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if is_trusted(entry.name):
                    trusted[name] = entry.inode()
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
        return trusted, folders

    def new(self) -> list[str]:
        """What has appeared since the last time. It looks after every block: there may be no later one to report it."""
        found = set(self.find().items())
        added = sorted(name for name, _ in found - self._known)
        self._known = found if self.is_complete else self._known | found
        return added

    def protected(self) -> list[str]:
        """What has to be read-only: repositories, also those that `.git` files name, and then other trusted files."""
        found = {**self.find(), **dict(self._known)}  # code can add folders until what was found is not found any more
        found = {name: inode for name, inode in found.items() if self._folder.exists(name)}
        repositories = [name for name in found if name.endswith(".git")]
        for name in list(repositories):
            folder = self._named_in(name, b"gitdir:", name.rpartition("/")[0])
            common = self._named_in(f"{folder}/commondir", b"", folder) if folder else ""
            repositories += [each for each in (folder, common) if each and self._folder.is_dir(each)]
        if len(repositories) > MAX_PROTECTED:
            raise SandboxUnavailableError(
                f"{self.root} contains more than {MAX_PROTECTED} git repositories, too many to protect. Start in "
                f"your project's folder, or name it: interpreter --workspace FOLDER"
            )
        return list(dict.fromkeys([*repositories, *found]))[:MAX_PROTECTED]

    def _named_in(self, file: str, begin: bytes, base: str) -> str:
        """The name of the folder that a file of git's names, if it is in this folder."""
        try:
            text = self._folder.read_bytes(file, 4096)
        except OSError:
            return ""
        if not text.startswith(begin) or b"\0" in text:
            return ""
        path = os.path.realpath(os.path.join(self.root, base, os.fsdecode(text.removeprefix(begin).strip())))
        is_below = Path(path).is_relative_to(self.root) and path != str(self.root)
        return os.path.relpath(path, self.root) if is_below else ""

    def open(self, name: str) -> int | None:
        """A descriptor for what is at a name now, reached without links; None for a link or nothing."""
        head, _, last = name.rpartition("/")
        try:
            with self._folder.opened(head) as place:
                fd = os.open(last, os.O_PATH | os.O_NOFOLLOW, dir_fd=place)
        except OSError:
            return None
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            os.close(fd)
            return None
        return fd


def is_inside(path: str | Path, places: Iterable[Path]) -> bool:
    return any(Path(path).is_relative_to(place) for place in places)


def make_mount_points(scratch: Path, places: SandboxPlaces, own: Iterable[Path]) -> None:
    """Make the folders for mounts in the sandbox's home and temporary folder; links and files in their place go."""
    bases = {places.home: scratch / "home", Path("/tmp"): scratch / "tmp", Path("/var/tmp"): scratch / "tmp"}
    for place in (*places.readable, *places.writable, *own):
        base = next((base for base in bases if place != base and place.is_relative_to(base)), None)
        if base is None:
            continue
        within = place.relative_to(base)
        *names, last = [path.as_posix() for path in reversed([within, *within.parents])]
        with Folder(bases[base]) as folder:
            for name in names[1:] + ([last] if place.is_dir() else []):
                if not folder.is_dir(name):
                    folder.unlink(name, missing_ok=True)
                    folder.mkdir(name, 0o700)
            if not place.is_dir():
                with contextlib.suppress(OSError):
                    folder.unlink(last)
