"""Exact commits: HEAD and what the blocks of this session changed, and nothing else of what is in the files."""

from __future__ import annotations

import base64
import os
import re
import stat
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from interpreter.console_text import counted, first_few
from interpreter.host.files import Folder
from interpreter.llm.secrets import replace_secrets
from interpreter.questions import Step
from interpreter.repo.git import UNTRACKED, Entry, GitError, Repository, Scratch
from interpreter.runtimes.launch import Start, run_to_end
from interpreter.session import Action, ActionContext
from interpreter.workspace.diff import unified

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.session.checkpoints import Checkpoint
    from interpreter.workspace.tree import Item

MAX_FILE_BYTES = 5_000_000
_SECRET_NAMES = re.compile(r"(^|/)(\.env(\..+)?|id_(rsa|dsa|ecdsa|ed25519)|.+\.(pem|key|p12|pfx)|\.netrc|\.pgpass)$")
_HOOKS = ("pre-commit", "commit-msg")
_CHANGED_INDEX = 97
# Runs in the session, where `.git` may be read-only: the index is a copy, and the message is the output.
_HOOK_PROGRAM = """
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && cd "$ROOT" && base64 -d > "$folder/index" || exit 98
cp "$folder/index" "$folder/before" && printf '%s\\n' "$MESSAGE" > "$folder/message"
export GIT_INDEX_FILE="$folder/index" GIT_EDITOR=:
if [ -x "$HOOKS/pre-commit" ]; then "$HOOKS/pre-commit" >&2 < /dev/null || exit 1; fi
if [ -x "$HOOKS/commit-msg" ]; then "$HOOKS/commit-msg" "$folder/message" >&2 < /dev/null || exit 1; fi
git ls-files --stage > "$folder/after.txt"; GIT_INDEX_FILE="$folder/before" git ls-files --stage > "$folder/before.txt"
cmp -s "$folder/after.txt" "$folder/before.txt" || exit 97
cat "$folder/message"
"""
_HOOK_TIMEOUT = 600.0
_MAX_DIFF = 12_000  # characters that the model reads to write a message
_PROMPT = (
    "Write the message of a git commit with this diff: a subject of at most 72 characters in the style of the earlier "
    "ones, and only if it needs explaining an empty line and one short paragraph. Answer with the message alone.\n\n"
    "Earlier subjects:\n{subjects}\n\nDiff:\n{diff}"
)
# By agent: the commit made last, and the last block that it has.
_made: WeakKeyDictionary[Agent, tuple[str, int]] = WeakKeyDictionary()
refused: WeakKeyDictionary[Agent, str] = WeakKeyDictionary()  # why its last commit was refused


@dataclass(frozen=True)
class Plan:
    """The content of a planned commit."""

    repository: Repository
    head: str
    before: Mapping[str, Entry]  # the files as HEAD has them
    after: Mapping[str, Entry | None]
    left_out: Mapping[str, str]  # files, and why
    last_block: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def diff(self) -> str:
        parts = []
        for path, entry in sorted(self.after.items()):
            old, new = self.before.get(path), entry
            sides = [
                each.content.decode("utf-8", "replace").splitlines(keepends=True) if each else [] for each in (old, new)
            ]
            heads = f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null"
            is_binary = any(each and b"\0" in each.content for each in (old, new))
            parts.append(f"Binary file {path}\n" if is_binary else unified(sides[0], sides[1], heads))
        return "".join(parts)

    def sentences(self) -> Iterator[str]:
        names = first_few(sorted(self.after), 6)
        yield f"Commits {counted(len(self.after), 'file')} to {self.repository.branch}: {names}"
        yield from (f"Left out: {path}, {why}" for path, why in self.left_out.items())


# -- what the session changed --------------------------------------------------------------------------------------


def plan_commit(agent: Agent, own: bool = False) -> Plan:
    """Plan a commit of what blocks of the model changed, and with `own` also those that the user ran."""
    if agent.computer.machine is not None:
        raise GitError("This session works on another machine. Commit there with git.")
    repository = Repository(str(agent.settings.workspace))
    if repository.in_progress:
        raise GitError(f"{repository.in_progress.capitalize()} is in progress. Finish or abort it with git first.")
    head, settings = repository.head, repository.settings()
    _check_settings(settings)
    blocks, chosen = _uncommitted_blocks(agent, head, own)
    changes, left_out = _changes_of(agent, repository, chosen)
    if not changes:
        raise GitError(_nothing(agent, blocks, chosen, left_out))
    with repository.scratch() as scratch:
        before = scratch.entries(head, changes)
        converts = _conversions(scratch, changes, left_out, settings)
        fresh = set(changes) - set(before)
        ignored = scratch.ignored(fresh) if fresh else set()
        after: dict[str, Entry | None] = {}
        for path, pairs in changes.items():
            if path in ignored:
                left_out[path] = "which .gitignore names"
            elif path not in left_out:
                merged = _replayed(scratch, path, before.get(path), pairs, path in converts)
                if merged != before.get(path):
                    after[path] = merged
    for path, entry in list(after.items()):
        if entry is not None and (reason := _objection(path, entry.content, before.get(path))):
            left_out[path] = reason
            del after[path]
    if not after:
        raise GitError(_nothing(agent, blocks, chosen, left_out))
    return Plan(repository, head, before, after, left_out, max(each.id for each in blocks), settings)


def _uncommitted_blocks(agent: Agent, head: str, own: bool = False) -> tuple[list[Checkpoint], list[Checkpoint]]:
    """Return the blocks since the last commit, and those among them that count as the session's."""
    made, since = _made.get(agent, ("", 0))
    blocks = [each for each in agent.timeline.blocks if made != head or each.id > since]
    return blocks, [each for each in blocks if own or each.kind == "block" or each.actor]


# -- a commit by git itself ----------------------------------------------------------------------------------------

_TAKES_VALUE = re.compile(r"-[qvsnae]*[mFCct]|--(message|file|author|date|template|cleanup|fixup|squash|trailer)")
_ALL = {"add": re.compile(r"-[a-z]*[Au][a-z]*|--all|--update"), "commit": re.compile(r"-[qvsn]*a[qvsnm]*|--all")}


def changed_by_user(agent: Agent, commands: Sequence[tuple[str, Sequence[str]]], writes: bool) -> list[str]:
    """Name the files with changes of the user that git commands would commit; none if the session has no part in it.

    `writes`: the block that has the commands also changes files itself.
    """
    repository = Repository(str(agent.settings.workspace))
    if repository.in_progress:
        return []
    with repository.scratch() as scratch, Folder(repository.root) as root:
        staged = set(scratch.staged(repository.head))
        changed, fresh = set(scratch.listed("--modified", "--deleted")), set(scratch.listed(*UNTRACKED))
        changes, left_out = _changes_of(agent, repository, _uncommitted_blocks(agent, repository.head)[1])
        taken = _taken(repository.root, commands, staged, changed, fresh)
        if not taken or not (writes or changes.keys() & (staged | changed | fresh)):
            return []
        entries = scratch.entries(repository.head, taken)

        def is_of_session(path: str) -> bool:
            try:
                planned = _replayed(scratch, path, entries.get(path), changes.get(path, ()), False)
            except GitError:
                return False
            present = None
            with suppress(FileNotFoundError):
                is_link = stat.S_ISLNK(root.stat(path).st_mode)
                present = os.fsencode(root.readlink(path)) if is_link else root.read_bytes(path)
            sides = [side and side.replace(b"\r\n", b"\n") for side in (present, planned and planned.content)]
            return sides[0] == sides[1]

        return sorted(path for path in taken if path not in left_out and not is_of_session(path))


def _taken(
    root: str, commands: Sequence[tuple[str, Sequence[str]]], staged: set[str], changed: set[str], fresh: set[str]
) -> set[str]:
    """Return the files that commits among some git commands have, before other commands of the block change any."""
    committed: set[str] = set()
    for verb, rest in commands:
        at = [i for i, word in enumerate(rest) if not (i and verb == "commit" and _TAKES_VALUE.fullmatch(rest[i - 1]))]
        arguments = [rest[i] for i in at]
        operands = [each for each in arguments if not each.startswith("-")]
        takes_all = verb in _ALL and any(map(_ALL[verb].fullmatch, arguments))
        if verb == "stash" or (verb == "reset" and "--hard" in arguments):
            staged, changed = set(), set()
        elif verb == "reset":
            staged = set()
        elif verb == "add" and (operands or takes_all):
            is_update = {"-u", "--update"} & set(arguments)
            staged = staged | _selected(root, operands, changed if is_update else changed | fresh)
        elif verb == "commit":
            index = staged | changed if takes_all else staged
            committed |= _selected(root, operands, staged | changed) if operands else index
    return committed


def _selected(root: str, operands: Sequence[str], paths: set[str]) -> set[str]:
    """Return the paths that operands may name, relative to any folder; all paths if there are none."""
    names = [os.path.relpath(each, root) if os.path.isabs(each) else os.path.normpath(each) for each in operands]
    if not names or any(re.search(r"[*?\[:]", name) or name == "." or name.startswith("..") for name in names):
        return paths
    return {path for path in paths if any(f"/{name}/" in f"/{path}/" for name in names)}


Version = tuple[str, bytes] | None  # mode and content


def _changes_of(
    agent: Agent, repository: Repository, blocks: Sequence[Checkpoint]
) -> tuple[dict[str, list[tuple[Version, Version]]], dict[str, str]]:
    """Collect what each block made of each file, in order, by its path; and which files can't be committed."""
    record = agent.timeline.files.required_record()
    prefix = os.path.relpath(os.path.realpath(str(agent.settings.workspace)), os.path.realpath(repository.root))
    changes: dict[str, list[tuple[Version, Version]]] = {}
    left_out: dict[str, str] = {}
    for block in blocks:
        done = agent.timeline.changes(block.id)
        for name, pair in (done.pairs if done is not None else {}).items():
            path = os.path.normpath(os.path.join(prefix, name))
            if ".git" in path.split("/") or all(item is None or item.kind == "folder" for item in pair):
                continue
            if _is_inside_other(repository.root, path):
                left_out[path] = "which belongs to a submodule or another repository"
                continue
            try:
                changes.setdefault(path, []).append((_version(record, pair[0]), _version(record, pair[1])))
            except ValueError as problem:
                left_out[path] = str(problem)
    return {path: pairs for path, pairs in changes.items() if path not in left_out}, left_out


def _version(record: Any, item: Item | None) -> Version:
    if item is None or item.kind == "folder":
        return None
    if item.kind == "link":
        return "120000", os.fsencode(str(item.content))
    if item.kind != "file":
        raise ValueError("which is no file")
    content = record.content(item)
    if content is None:
        raise ValueError(f"which is too large to be recorded ({item.size:,} bytes)")
    return ("100755" if item.mode & 0o100 else "100644"), content


def _is_inside_other(root: str, path: str) -> bool:
    parts = path.split("/")[:-1]
    return any(os.path.lexists(os.path.join(root, *parts[:depth], ".git")) for depth in range(1, len(parts) + 1))


def _replayed(
    scratch: Scratch, path: str, entry: Entry | None, pairs: Sequence[tuple[Version, Version]], converts: bool
) -> Entry | None:
    """Apply what blocks did to a file, one after the other, to the file as HEAD has it."""
    now: Version = (entry.mode, entry.content) if entry is not None else None
    for pair in pairs:
        old, new = (
            (side[0], side[1].replace(b"\r\n", b"\n")) if side is not None and converts else side for side in pair
        )
        if now == old or new == now:
            now = new
        elif now is None or old is None or new is None:
            raise GitError(
                f"{path} is not as it was before the session's blocks, so their changes can't be told from yours."
            )
        else:
            content = scratch.merged(old[1], now[1], new[1])
            if content is None:
                raise GitError(
                    f"In {path}, your own changes and those of the session are in the same lines. Commit yours first, "
                    "or commit with git."
                )
            now = (new[0] if new[0] != old[0] else now[0]), content
    if now is None or (entry is not None and now == (entry.mode, entry.content)):
        return entry if now is not None else None
    return Entry(now[0], now[1])


def _nothing(agent: Agent, blocks: Sequence[Any], chosen: Sequence[Any], left_out: Mapping[str, str]) -> str:
    if left_out:
        return "Nothing is committed. " + " ".join(f"{path} is left out, {why}." for path, why in left_out.items())
    if len(blocks) > len(chosen):
        return "Nothing to commit: only blocks that you ran yourself changed files. %commit --own includes them."
    if agent.timeline.files.off:
        return f"Nothing to commit: {agent.timeline.files.off}"
    return "Nothing to commit: no block of this session changed a file of the repository."


# -- what is refused -----------------------------------------------------------------------------------------------


def _check_settings(settings: Mapping[str, str]) -> None:
    if settings.get("commit.gpgsign", "").lower() in ("true", "yes", "on", "1"):
        raise GitError("commit.gpgsign is on, and signing is not supported. Commit with git, or turn it off.")
    for name in ("objectformat", "partialclone"):
        if settings.get(f"extensions.{name}", "sha1") != "sha1":
            raise GitError(f"extensions.{name} is set, which is not supported. Commit with git.")


def _conversions(
    scratch: Scratch, paths: Iterable[str], left_out: dict[str, str], settings: Mapping[str, str]
) -> set[str]:
    """Return the files whose line ends git converts. Those with a filter are left out: only git can run it."""
    converts: set[str] = set()
    is_automatic = settings.get("core.autocrlf", "false").lower() in ("true", "input")
    root, common = scratch.repository.root, scratch.repository.common
    above = {folder for path in paths for folder in ("", *map(str, PurePosixPath(path).parents))}
    places = [f"{common}/info/attributes", *(os.path.join(root, folder, ".gitattributes") for folder in above)]
    if not is_automatic and not any(map(os.path.lexists, places)):
        return converts
    for path, named in scratch.attributes(paths).items():
        if named.get("filter", "unspecified") not in ("unspecified", "unset"):
            left_out[path] = f"which goes through the filter {named['filter']}, so only git can commit it"
        is_text = named.get("text") in ("set", "auto") or named.get("eol") in ("lf", "crlf")
        if is_text or (is_automatic and named.get("text") != "unset"):
            converts.add(path)
    return converts


def _objection(path: str, content: bytes, before: Entry | None) -> str:
    """Return the reason that a file is not committed; empty if it is."""
    if len(content) > MAX_FILE_BYTES:
        return f"a large file ({len(content):,} bytes)"
    if _SECRET_NAMES.search(path) and before is None:
        return "whose name says that it holds secrets"
    found = replace_secrets(content.decode("utf-8", "replace"), {})[1]
    known = replace_secrets(before.content.decode("utf-8", "replace"), {})[1] if before is not None else []
    return f"which contains a secret ({', '.join(dict.fromkeys(found))})" if set(found) - set(known) else ""


def identity(settings: Mapping[str, str]) -> tuple[str, str]:
    """Return the name and address for a commit; GitError if there is none."""
    name = os.environ.get("GIT_AUTHOR_NAME") or settings.get("user.name", "")
    email = os.environ.get("GIT_AUTHOR_EMAIL") or settings.get("user.email", "")
    if not name or not email:
        raise GitError(
            "git doesn't know who you are. Set it with: git config --global user.name 'Your Name' and "
            "git config --global user.email you@example.com"
        )
    return re.sub(r"[<>\n]", "", name).strip(), re.sub(r"[<>\n]", "", email).strip()


# -- doing it ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Commit:
    """A commit that was made."""

    name: str
    branch: str
    subject: str
    paths: tuple[str, ...]
    left_out: Mapping[str, str]

    def __str__(self) -> str:
        lines = [f"Committed {counted(len(self.paths), 'file')} to {self.branch}: {self.name[:7]} {self.subject}"]
        if self.branch.endswith("(detached)"):
            lines.append("HEAD is detached, so no branch has this commit. `git switch -c NAME` makes one of it.")
        return "\n".join([*lines, *(f"Left out: {path}, {why}." for path, why in self.left_out.items())])


def make_commit(agent: Agent, message: str, plan: Plan) -> Commit:
    """Make the commit: hooks first, then objects, the user's index, and at last the branch."""
    repository = plan.repository
    name, email = identity(plan.settings)
    message = message.strip()
    if not message:
        raise GitError("A commit needs a message: %commit MESSAGE.")
    with repository.scratch() as scratch:
        stored = {
            path: entry and entry._replace(name=scratch.store(entry.content)) for path, entry in plan.after.items()
        }
        if plan.head:
            scratch.run("read-tree", plan.head, index="commit.index")
        scratch.put("commit.index", stored)
        tree = scratch.run("write-tree", index="commit.index").text.strip()
        message = _after_hooks(agent, scratch, plan, message)
        who = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", name), ("EMAIL", email), ("DATE", time.strftime("%s %z")))
        }
        parents = ["-p", plan.head] if plan.head else []
        made = scratch.run("commit-tree", tree, *parents, stdin=f"{message}\n".encode(), env=who).text.strip()
        with repository.locked() as place:
            _update_index(scratch, plan, stored)
            scratch.keep_objects()
            subject = message.splitlines()[0]
            initial = "" if plan.head else " (initial)"
            repository.move_head(plan.head, made, f"{name} <{email}>", f"commit{initial}: {subject}")
            place.write_bytes("index", Path(scratch.folder, "user.index").read_bytes())
    _made[agent] = made, plan.last_block
    return Commit(made, repository.branch, subject, tuple(sorted(plan.after)), plan.left_out)


class MakeCommit(Action):
    """Commit for the user. It is a step of the session, so an undo takes it back."""

    kind = "commit"
    covered = True

    def __init__(self, agent: Agent, message: str, own: bool = False) -> None:
        super().__init__()
        self._agent, self._message, self._own = agent, message, own

    def describe(self) -> str:
        return "a commit is being made"

    def run(self, context: ActionContext) -> Generator[Step]:
        self.result = make_commit(self._agent, self._message, plan_commit(self._agent, self._own))
        self.outcome = "done"
        yield from ()


def _update_index(scratch: Scratch, plan: Plan, stored: Mapping[str, Entry | None]) -> None:
    """Bring the commit into the user's index; what they have staged themselves stays staged."""
    present = scratch.index_entries(plan.after)
    changed: dict[str, Entry | None] = {}
    for path, entry in stored.items():
        before, staged = plan.before.get(path), present.get(path)
        names = [each and (each.mode, each.name) for each in (staged, before)]
        if names[0] == names[1]:
            changed[path] = entry
        elif staged is not None and before is not None and entry is not None:
            own = scratch.with_contents({path: (staged.mode, staged.name)})[path]
            content = scratch.merged(before.content, own.content, entry.content)
            if content is not None:
                changed[path] = Entry(staged.mode, content, scratch.store(content))
    if changed:
        scratch.put("user.index", changed)
    scratch.run("write-tree", index="user.index")  # so that git knows which parts are unchanged


def _after_hooks(agent: Agent, scratch: Scratch, plan: Plan, message: str) -> str:
    """Run the repository's hooks in the session, in its sandbox; return the message as they leave it."""
    repository = plan.repository
    hooks = plan.settings.get("core.hookspath", "")
    hooks = os.path.join(repository.root, os.path.expanduser(hooks)) if hooks else f"{repository.common}/hooks"
    if not any(os.access(os.path.join(hooks, name), os.X_OK) for name in _HOOKS):
        return message
    agent.computer.runtimes.apply_sandbox()
    context = agent.computer.context
    scratch.keep_objects()  # the hooks may look at what would be committed
    index = base64.encodebytes(Path(scratch.folder, "commit.index").read_bytes())
    env = {**context.environment(), "ROOT": repository.root, "HOOKS": hooks, "MESSAGE": message}
    start = Start(["/bin/sh", "-c", _HOOK_PROGRAM], env, context.cwd)
    try:
        done = run_to_end(start, context.containment, index, _HOOK_TIMEOUT)
    except OSError as error:
        raise GitError(f"Nothing is committed: the hooks of the repository can't run in the session: {error}") from None
    if done.returncode == _CHANGED_INDEX:
        raise GitError(
            "Nothing is committed: a hook changed what would be committed. Run the hook in a block, so "
            "that its changes are part of the session, and commit again."
        )
    if done.returncode:
        output = (done.stderr + done.stdout).decode("utf-8", "replace").strip()[-2000:]
        raise GitError(f"Nothing is committed: a hook of the repository refused it:\n{output}")
    return done.text.strip() or message


def suggested_message(agent: Agent, plan: Plan) -> str:
    """Let the model write a message in the style of the repository."""
    from interpreter.llm import SideChat

    with plan.repository.scratch() as scratch:
        arguments = ("rev-list", "--max-count=10", "--no-merges", "--format=%s", plan.head)
        rows = scratch.run(*arguments).text.splitlines() if plan.head else []
    subjects = "\n".join(row for row in rows if not row.startswith("commit ")) or "(none)"
    prompt = _PROMPT.format(subjects=subjects, diff=plan.diff[:_MAX_DIFF])
    text = SideChat(agent.llm, 300).answer("You write messages of git commits.", prompt)
    lines = [line for line in text.strip().splitlines() if not line.startswith("```")]
    return "\n".join(lines).strip().strip('"')
