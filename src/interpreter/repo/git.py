"""A repository on the host: git reads and writes its objects, and nothing that it configures is run.

git runs with a folder of our own as its repository, which has no configuration, hooks or filters, and only borrows the
objects of the real one. So no setting of the repository can start a program. References, the index and new objects are
put in place by us, without following links.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from interpreter.errors import UsageError
from interpreter.host import processes
from interpreter.host.files import Folder

# They run no filter, hook, fsmonitor, textconv or merge driver, least of all without a configuration.
COMMANDS = frozenset(
    "cat-file check-attr check-ignore commit-tree config diff-index hash-object ls-files ls-tree merge-file read-tree "
    "rev-list update-index write-tree".split()
)
_TIMEOUT = 30.0
_OBJECT = re.compile(r"[0-9a-f]{40}")
_REVISION = re.compile(r"(@|\w(?:[\w/-]|\.(?!\.))*)([~^][~^\d]*)?")
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
UNTRACKED = "--others", "--exclude-standard"  # `ls-files`: what the index lacks and `.gitignore` does not name
_IN_PROGRESS = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
}
_MAX_LINE = 4096  # bytes of HEAD, a reference or a `.git` file


class GitError(UsageError):
    """Something about the repository stands in the way; the text says what."""


class Entry(NamedTuple):
    """A file as git has it: its mode, its content, and the name of that."""

    mode: str
    content: bytes
    name: str = ""


class Repository:
    """The repository that a folder is in."""

    def __init__(self, folder: str) -> None:
        root = next((each for each in (Path(folder), *Path(folder).parents) if os.path.lexists(each / ".git")), None)
        if root is None:
            raise GitError(f"{folder} is in no git repository. `git init` makes one.")
        self.root = str(root)
        self.folder = str(root / ".git")
        if not os.path.isdir(self.folder):  # a linked worktree or a submodule
            pointer = Path(self.folder).read_text("utf-8")[:_MAX_LINE].removeprefix("gitdir:").strip()
            self.folder = os.path.normpath(os.path.join(self.root, pointer))
        common = _line(self.folder, "commondir")
        self.common = os.path.normpath(os.path.join(self.folder, common)) if common else self.folder
        if not os.path.isdir(os.path.join(self.common, "objects")):
            raise GitError(f"{self.folder} is not a git repository.")
        if os.path.lexists(os.path.join(self.common, "reftable")):
            raise GitError("This repository stores its references in the reftable format, which is not supported.")

    # -- where it stands -------------------------------------------------------------------------------------------

    @property
    def head_ref(self) -> str:
        """Return the reference that HEAD names; empty if it is detached."""
        line = _line(self.folder, "HEAD")
        return line[5:].strip() if line.startswith("ref: ") else ""

    @property
    def branch(self) -> str:
        """Return the branch; if HEAD is detached, the beginning of its commit."""
        return self.head_ref.removeprefix("refs/heads/") or f"{_line(self.folder, 'HEAD')[:7]} (detached)"

    @property
    def head(self) -> str:
        """Return the commit that HEAD is at; empty if there is none yet."""
        ref = self.head_ref
        name = self._resolve(ref) if ref else _line(self.folder, "HEAD")
        if name and not _OBJECT.fullmatch(name):
            raise GitError("Only repositories with SHA-1 object names are supported.")
        return name

    @property
    def in_progress(self) -> str:
        """Name the operation that git is in the middle of; empty if there is none."""
        return next((words for name, words in _IN_PROGRESS.items() if os.path.lexists(f"{self.folder}/{name}")), "")

    def _resolve(self, ref: str) -> str:
        if loose := _line(self.common, ref):
            return loose
        with suppress(OSError), Folder(self.common) as place:
            for row in place.read_bytes("packed-refs").decode("utf-8", "replace").splitlines():
                if row.endswith(f" {ref}"):
                    return row.split(" ")[0]
        return ""

    def find_ref(self, name: str) -> str:
        """Return the commit of a branch or tag; empty if neither has this name."""
        places = (name, f"refs/tags/{name}", f"refs/heads/{name}", f"refs/remotes/{name}")
        return next((at for place in places if place.startswith("refs/") and (at := self._resolve(place))), "")

    def settings(self) -> dict[str, str]:
        """Return the settings of the user and of the repository, as text: nothing is included or run for them."""
        own = os.path.join(os.path.expanduser("~"), ".gitconfig")
        found: dict[str, str] = {}
        shared = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git", "config")
        with self.scratch() as scratch:
            for path in (shared, own, os.path.join(self.common, "config")):
                if os.path.isfile(path):
                    rows = scratch.run("config", "--file", path, "--no-includes", "--null", "--list").stdout
                    pairs = (row.decode("utf-8", "replace").partition("\n") for row in rows.split(b"\0") if row)
                    found |= {name.lower(): value for name, _, value in pairs}
        return found

    @contextmanager
    def scratch(self) -> Iterator[Scratch]:
        """Yield what git can be run with."""
        with tempfile.TemporaryDirectory(prefix="interpreter-git-") as folder:
            yield Scratch(self, folder)

    # -- changing it -----------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[Folder]:
        """Hold the lock of the index, as git does."""
        with Folder(self.folder) as place:
            try:
                place.open("index.lock", "xb").close()
            except FileExistsError:
                raise GitError("git is running in this repository, or was killed: .git/index.lock exists.") from None
            try:
                yield place
            finally:
                place.unlink("index.lock", missing_ok=True)

    def move_head(self, old: str, new: str, who: str, reason: str) -> None:
        """Move the branch, or a detached HEAD, to another commit, and add that to the reflogs."""
        ref = self.head_ref
        if self.head != old:
            raise GitError("HEAD was moved in the meantime. Try again.")
        with Folder(self.common if ref else self.folder) as place:
            name = ref or "HEAD"
            _make_folder_of(place, name)
            place.write_bytes(name, f"{new}\n".encode())
        now = time.time()
        zone = time.strftime("%z", time.localtime(now))
        line = f"{old or '0' * 40} {new} {who} {int(now)} {zone}\t{reason}\n".encode()
        logs = [(self.folder, "logs/HEAD"), *([(self.common, f"logs/{ref}")] if ref else [])]
        for folder, name in logs:
            with suppress(OSError), Folder(folder) as place:
                _make_folder_of(place, name)
                with place.open(name, "ab") as file:
                    file.write(line)


class Scratch:
    """A folder in which git runs: new objects and indexes are made here."""

    def __init__(self, repository: Repository, folder: str) -> None:
        self.repository, self.folder = repository, folder
        for name in ("git/refs", "git/objects", "git/info", "objects"):
            os.makedirs(os.path.join(folder, name))
        Path(folder, "git/HEAD").write_text("ref: refs/heads/none\n")
        Path(folder, "git/config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
        for name in ("shallow", "info/exclude"):
            with suppress(OSError), Folder(repository.common) as place:
                Path(folder, "git", name).write_bytes(place.read_bytes(name))

    def run(
        self, *arguments: str, stdin: bytes = b"", index: str = "", env: Mapping[str, str] | None = None
    ) -> processes.Completed:
        """Run git; GitError if it fails."""
        if arguments[0] not in COMMANDS:
            raise GitError(f"git {arguments[0]} is not run on the host.")
        variables = {
            "GIT_DIR": os.path.join(self.folder, "git"),
            "GIT_WORK_TREE": self.repository.root,
            "GIT_OBJECT_DIRECTORY": os.path.join(self.folder, "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.path.join(self.repository.common, "objects"),
            "GIT_INDEX_FILE": os.path.join(self.folder, index or "index"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "HOME": self.folder,
            **(env or {}),
        }
        try:
            done = processes.run(
                ["git", *arguments], env=variables, cwd=self.repository.root, stdin=stdin, timeout=_TIMEOUT
            )
        except OSError as error:
            raise GitError(f"git can't be run: {error}.") from None
        if done.returncode > (1 if arguments[0] == "check-ignore" else 127 if arguments[0] == "merge-file" else 0):
            raise GitError(f"git {arguments[0]} failed: {done.complaint}")
        return done

    def entries(self, commit: str, paths: Iterable[str]) -> dict[str, Entry]:
        """Read files of a commit."""
        if not commit:
            return {}
        rows = self.run("ls-tree", "-r", "-z", "--full-tree", commit).stdout.split(b"\0")
        return self.with_contents(_listed(rows, set(paths)))

    def index_entries(self, paths: Iterable[str]) -> dict[str, Entry]:
        """List files of the user's index, without their contents; GitError if one of them has a conflict."""
        self.copy_index()
        rows = self.run("ls-files", "--stage", "-z", index="user.index").stdout.split(b"\0")
        return {path: Entry(mode, b"", name) for path, (mode, name) in _listed(rows, set(paths)).items()}

    def copy_index(self) -> None:
        """Copy the user's index with its time, which tells git what it has to compare."""
        with suppress(FileNotFoundError), Folder(self.repository.folder) as place:
            copy, facts = Path(self.folder, "user.index"), place.stat("index")
            copy.write_bytes(place.read_bytes("index"))
            os.utime(copy, ns=(facts.st_mtime_ns, facts.st_mtime_ns))

    def commit_of(self, revision: str) -> str:
        """Return the commit that a branch, tag, object name or HEAD names, such as `HEAD~2`."""
        match, repository = _REVISION.fullmatch(revision), self.repository
        if match:
            base = repository.head if match[1] in ("HEAD", "@") else repository.find_ref(match[1]) or match[1]
            with suppress(GitError):
                return self.run("rev-list", "--max-count=1", f"{base}{match[2] or ''}", "--").text.strip()
        raise GitError(f"There is no commit {revision}. Use for example HEAD~2, a branch or a tag.")

    def diff_since(self, commit: str, folder: str, settings: Mapping[str, str]) -> str:
        """Compare the files of a folder with a commit: no filter, text conversion or submodule's git runs for it."""
        self.copy_index()
        self.run("update-index", "-q", "--refresh", index="user.index")  # files with another time and the same content
        value = settings.get("core.autocrlf", "false").lower()
        env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.autocrlf", "GIT_CONFIG_VALUE_0": value}
        options = "--patch", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all"
        relative = [f"--relative={folder}/"] if folder else []
        return self.run("diff-index", *options, *relative, commit, "--", index="user.index", env=env).text

    def staged(self, commit: str) -> list[str]:
        """Copy the user's index, and list the files in which it differs from a commit, if there is one."""
        self.copy_index()
        self.run("update-index", "-q", "--refresh", index="user.index")
        options = "diff-index", "--cached", "--name-only", "--ignore-submodules=all", "-z"
        return self.listed(command=(*options, commit or EMPTY_TREE, "--"))

    def listed(self, *options: str, command: Sequence[str] = ()) -> list[str]:
        """List files of the copy of the user's index, as `ls-files` or another command does."""
        rows = self.run(*(command or ("ls-files", "-z", *options)), index="user.index").stdout.split(b"\0")
        return [os.fsdecode(row) for row in rows if row and not row.endswith(b"/")]

    def with_contents(self, rows: Mapping[str, tuple[str, str]]) -> dict[str, Entry]:
        names = [name for mode, name in rows.values() if mode != "160000"]
        data, at, contents = self.run("cat-file", "--batch", stdin="\n".join([*names, ""]).encode()).stdout, 0, {}
        for name in names:
            end = data.index(b"\n", at)
            head = data[at:end].split(b" ")
            if len(head) != 3:
                raise GitError(f"The object {name[:10]} is missing here, as in a partial clone.")
            size = int(head[2])
            contents[name] = data[end + 1 : end + 1 + size]
            at = end + size + 2
        return {path: Entry(mode, contents.get(name, b""), name) for path, (mode, name) in rows.items()}

    def store(self, content: bytes) -> str:
        """Store a content as it is, and return its name."""
        return self.run("hash-object", "-w", "--no-filters", "--stdin", stdin=content).text.strip()

    def merged(self, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        """Merge two versions of a file; None if they conflict."""
        if b"\0" in base + ours + theirs:
            return None
        names = [os.path.join(self.folder, name) for name in ("ours", "base", "theirs")]
        for name, content in zip(names, (ours, base, theirs), strict=True):
            Path(name).write_bytes(content)
        done = self.run("merge-file", "-p", *names)
        return done.stdout if done.returncode == 0 else None

    def put(self, index: str, entries: Mapping[str, Entry | None]) -> None:
        """Change entries of an index; None removes one."""
        rows = [
            f"{entry.mode} {entry.name}\t".encode() + os.fsencode(path)
            if entry
            else f"0 {'0' * 40}\t".encode() + os.fsencode(path)
            for path, entry in entries.items()
        ]
        self.run("update-index", "-z", "--index-info", stdin=b"\0".join([*rows, b""]), index=index)

    def attributes(self, paths: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the attributes that decide how git would convert files."""
        stdin = b"\0".join([*map(os.fsencode, paths), b""])
        words = self.run("check-attr", "-z", "--stdin", "filter", "text", "eol", stdin=stdin).stdout.split(b"\0")
        found: dict[str, dict[str, str]] = {}
        for path, name, value in zip(*[iter(words[:-1])] * 3, strict=True):
            found.setdefault(os.fsdecode(path), {})[name.decode()] = value.decode("utf-8", "replace")
        return found

    def ignored(self, paths: Iterable[str]) -> set[str]:
        """Return those that `.gitignore` files name."""
        stdin = b"\0".join([*map(os.fsencode, paths), b""])
        return set(map(os.fsdecode, self.run("check-ignore", "-z", "--stdin", stdin=stdin).stdout.split(b"\0")[:-1]))

    def keep_objects(self) -> None:
        """Put the new objects into the repository."""
        with Folder(os.path.join(self.repository.common, "objects")) as place:
            for path in Path(self.folder, "objects").glob("??/*"):
                name = f"{path.parent.name}/{path.name}"
                if not place.exists(name):
                    place.mkdir(path.parent.name, exist_ok=True)
                    place.write_bytes(name, path.read_bytes(), 0o444)


def _listed(rows: Iterable[bytes], wanted: set[str]) -> dict[str, tuple[str, str]]:
    """Read the rows of `ls-tree` or `ls-files --stage`: the mode and object of each path."""
    found = {}
    for row in rows:
        facts, _, path = row.partition(b"\t")
        if (name := os.fsdecode(path)) in wanted:
            mode, kind, last = facts.decode().split(" ")
            if kind in ("blob", "commit", "tree"):
                found[name] = mode, last
            elif last == "0":
                found[name] = mode, kind
            else:
                raise GitError(f"{name} has a conflict that is not resolved.")
    return found


def _line(folder: str, name: str) -> str:
    with suppress(OSError), Folder(folder) as place:
        return place.read_bytes(name, _MAX_LINE).decode("utf-8", "replace").strip()
    return ""


def _make_folder_of(place: Folder, name: str) -> None:
    if folder := name.rpartition("/")[0]:
        place.mkdir(folder, parents=True, exist_ok=True)
