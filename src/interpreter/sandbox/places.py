"""Which paths a sandboxed runtime sees and which it may write to, and the mount points for them."""

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
# What our own code runs from, inside the sandbox; the rest of the package is not needed there.
DRIVERS = (PACKAGE / "runtimes", PACKAGE / "languages", ENTER)
# The sandbox has its own of these.
APART = tuple(map(Path, ("/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/proc")))
# Folders that hold users' homes.
HOMES = ("/home", "/root", "/mnt/c/Users")
# Readable for root, but secret.
KEYS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/krb5.keytab"),
    *("/etc/sudoers.d", "/etc/ssl/private", "/sys/firmware"),
)
# Secrets in a home, masked if the home as a whole was asked for; else they are not visible anyway.
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
# The trusted names that programs outside use without asking. If one is missing, an empty folder stops code from
# creating it.
RESERVED = (".git", ".vscode", ".idea", ".agents")
MAX_FOLDERS = 20_000  # searched for trusted files, the shallowest first
MAX_PROTECTED = 400  # each needs a mount, and a descriptor until it is mounted
RECENT = 100_000_000  # nanoseconds in which a folder can change twice with the same time stamp


@dataclass(frozen=True)
class SandboxPlaces:
    """Paths to mount, in this order: hidden folders, the visible paths in them, and the masked paths in those."""

    home: Path
    hidden: tuple[Path, ...]  # folders that are empty inside
    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    protected: tuple[Path, ...]  # not writable although inside what is; besides trusted files
    masked: tuple[Path, ...]  # not visible although inside what is

    def is_hidden(self, path: str | Path) -> bool:
        """Check whether a path is invisible inside, whether or not it exists."""
        is_shown = is_inside(path, (*self.readable, *self.writable))
        return is_inside(path, self.masked) or (not is_shown and is_inside(path, self.hidden))

    def is_writable(self, path: str | Path) -> bool:
        is_kept = self.is_protected(path) or is_inside(path, self.masked)
        return not is_kept and is_inside(path, self.writable)

    def is_protected(self, path: str | Path) -> bool:
        """Check whether a path is ours or trusted by programs outside, within a folder that is otherwise writable."""
        names = [Path(path).relative_to(place).parts for place in self.writable if is_inside(path, [place])]
        return is_inside(path, self.protected) or any(is_trusted(*parts) for parts in names)


def places(sandbox: Sandbox, programs: Iterable[str], state: Iterable[Path]) -> SandboxPlaces:
    """Work out the places for these programs; `state` has our own files, which stay hidden."""
    workspace = Path(sandbox.workspace)
    home = Path(homes()[0])
    asked = [path for path in sandbox.paths if not is_inside(unresolved(path), [workspace])]  # code can add links
    more = replace(sandbox, paths=tuple(asked))
    writable = [*more.writable, *([workspace] if sandbox.writes_workspace else [])]
    refuse_too_wide(workspace, home, writable)
    folders = map(Path, (*HOMES, *reversed(homes())))
    hidden = [place for place in dict.fromkeys(folders) if os.path.isdir(place) and place != Path("/")]
    useful = [Path(path) for pattern in USEFUL for path in glob.glob(str(home / pattern))]
    needed = [*programs_of(programs, workspace), *DRIVERS, *useful, *more.readable]
    if is_inside(PACKAGE, APART):  # else code could put a module beside the package in the sandbox's own /tmp
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
    for place, name in ((home, "your home folder"), (PACKAGE, "the Open Interpreter installation")):
        if place.is_relative_to(workspace) and (place == home or workspace == Path("/")):
            raise SandboxUnavailableError(
                f"The workspace {workspace} contains {name}, so a sandbox would not protect anything. Start in your "
                f"project's folder, or name it: interpreter --workspace FOLDER"
            )
    if not workspace.is_dir():
        raise SandboxUnavailableError(
            f"The workspace {workspace} is not a folder. Name one: interpreter --workspace FOLDER"
        )
    # Code must not be able to write to our temporary files, such as the copies for undo.
    temporary = full(tempfile.gettempdir())
    if above := next((path for path in writable if temporary.is_relative_to(path)), None):
        raise SandboxUnavailableError(
            f"Code could write to {above}, which contains the folder for temporary files ({temporary}). Work in "
            f"another folder, or set TMPDIR to a folder outside it."
        )


def programs_of(programs: Iterable[str], workspace: Path) -> Iterator[Path]:
    """Yield the installations that programs belong to; each link on the way counts, as in a virtual environment.

    Code may have made the links in the workspace: from there, only whole installations of Python are followed.
    """
    for program in programs:
        is_trusted = not is_inside(unresolved(program), [workspace])
        for path in (*steps(Path(program)), Path(os.path.realpath(program))):
            folder = installation(path)
            if is_trusted or (folder != path and path.name.startswith("python")):
                yield folder


def programs_in(argv: list[str]) -> list[str]:
    return [path for path in argv if path.startswith("/") and os.access(path, os.X_OK) and os.path.isfile(path)]


def steps(path: Path) -> Iterator[Path]:
    for _ in range(16):
        yield path
        if not path.is_symlink():
            return
        path = path.parent / os.readlink(path)


def unresolved(path: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path.removesuffix(WRITABLE))))


def installation(program: Path) -> Path:
    """Return the folder above `bin`, or the program alone if that folder is much more than an installation."""
    above = program.parent.parent
    is_one = program.parent.name in ("bin", "Scripts") and ((above / "lib").is_dir() or (above / "pyvenv.cfg").exists())
    home = Path(os.path.expanduser("~"))
    return above if is_one and above != Path("/") and not home.is_relative_to(above) else program


def is_trusted(*names: str) -> bool:
    """Check for a trusted name, ignoring case because some file systems treat `.Git` as `.git`."""
    return not {name.lower() for name in names}.isdisjoint(TRUSTED)


class TrustedPaths:
    """Trusted files in a folder that code can write to: listed before each start, and again after each block."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = Folder(root)
        self._listed: dict[str, tuple[int, dict[str, int], list[str]]] = {}  # for each folder: time, files, folders
        self._held: dict[str, tuple[int, bool]] = {}  # by reserved name: a descriptor, and whether to remove the folder
        self.is_complete = True  # whether the last search covered all folders
        self._reserve()
        self._known = set(self.find().items())

    def _reserve(self) -> None:
        """Create the missing reserved folders. A lock tells other sandboxes that they are still needed."""
        for name in RESERVED if CONFINED else ():
            is_new = not self._folder.exists(name)
            try:
                self._folder.mkdir(name, exist_ok=True)
                fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._folder.fileno())
            except OSError:
                if is_new and os.access(self.root, os.W_OK):
                    raise
                continue  # it is a file or a link, or code cannot create it either
            left_behind = name == ".git" and not os.listdir(fd)
            try:
                lock(fd)
            except OSError:  # another sandbox holds it, and created it if it is empty
                left_behind = not os.listdir(fd)
            self._held[name] = (fd, is_new or left_behind)
            with contextlib.suppress(OSError):
                lock(fd, shared=True)

    def release(self) -> None:
        """Remove the folders that were made for reserved names, unless something uses them by now."""
        for name, (fd, is_ours) in self._held.items():
            with contextlib.suppress(OSError):
                lock(fd)
                if is_ours:
                    self._folder.rmdir(name)
            os.close(fd)
        self._held = {}
        self._folder.close()

    def find(self) -> dict[str, int]:
        """Map the trusted files, by name relative to the folder, to their inodes.

        A folder is read again if it has changed, which code cannot hide: no call sets the change time.
        """
        trusted: dict[str, int] = {}
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
            trusted |= known[1]
            names += known[2][: MAX_FOLDERS - len(names)]
        self._listed = listed
        self.is_complete = len(names) < MAX_FOLDERS
        return trusted

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
        """List trusted files that appeared since the last call. Called after every block: there may be no later one."""
        trusted = set(self.find().items())
        added = sorted(name for name, _ in trusted - self._known)
        self._known = trusted if self.is_complete else self._known | trusted
        return added

    def protected(self) -> list[str]:
        """List what must be read-only: repositories, also those that `.git` files name, then other trusted files."""
        trusted = {**self.find(), **dict(self._known)}  # code can add folders until a search misses some
        trusted = {name: inode for name, inode in trusted.items() if self._folder.exists(name)}
        repositories = [name for name in trusted if name.endswith(".git")]
        for name in list(repositories):
            folder = self._named_in(name, b"gitdir:", name.rpartition("/")[0])
            common = self._named_in(f"{folder}/commondir", b"", folder) if folder else ""
            repositories += [each for each in (folder, common) if each and self._folder.is_dir(each)]
        if len(repositories) > MAX_PROTECTED:
            raise SandboxUnavailableError(
                f"{self.root} contains more than {MAX_PROTECTED} git repositories, too many to protect. Start in "
                f"your project's folder, or name it: interpreter --workspace FOLDER"
            )
        return list(dict.fromkeys([*repositories, *trusted]))[:MAX_PROTECTED]

    def _named_in(self, file: str, begin: bytes, base: str) -> str:
        """Return the name of the folder that a file of git's points to; empty if it is outside this folder."""
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
        """Open what is at a name now, without following links; None for a link or nothing."""
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
    """Make folders for mounts in the sandbox's home and temporary folder, replacing links and files."""
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
