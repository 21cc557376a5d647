"""git: what it reads, what it changes, whom it asks."""

from __future__ import annotations

import re

from interpreter.policy.analysis.arguments import Arguments
from interpreter.policy.analysis.handlers import Call, handles
from interpreter.policy.analysis.notes import Doing, Notes

_GIT_READS = frozenset(
    "status log diff show rev-parse ls-files ls-tree blame grep describe shortlog reflog cat-file rev-list "
    "check-ignore help version count-objects name-rev for-each-ref show-ref merge-base whatchanged var "
    "annotate diff-tree range-diff fsck".split()
)
_GIT_WRITES = frozenset(
    "add commit merge rebase cherry-pick revert apply am mv init tag branch stash config remote worktree "
    "notes bisect gc reset checkout switch restore rm clean format-patch archive update-index update-ref "
    "symbolic-ref sparse-checkout prune".split()
)
_GIT_REMOTE = {
    "push": "send",
    "fetch": "get",
    "pull": "get",
    "clone": "get",
    "ls-remote": "get",
    "submodule": "get",
    "lfs": "get",
}
_GIT_LISTS = {
    "branch": "-a -r -v -vv --list --show-current --all --contains --merged --no-merged",
    "tag": "-l --list -n --contains",
    "stash": "list show",
    "config": "--get --list -l --get-all --get-regexp get list",
    "remote": "-v show get-url",
    "worktree": "list",
    "notes": "list show",
}
_GIT_LOSES = {"checkout", "restore", "reset", "clean", "rm", "switch"}


@handles("git")
def git(call: Call, doing: Doing, notes: Notes) -> None:
    top = Arguments(call.arguments, "-C -c --git-dir --work-tree --namespace --exec-path", stop_early=True)
    folder = next(iter(top.value("-C", "--work-tree")), ".")
    if top.has("-c", "--exec-path", "--config-env"):
        doing.unknown("git with a setting that may start programs")
    if not top.operands:
        return
    verb, rest = top.operands[0], top.operands[1:]
    arguments = Arguments(rest, "-m -F -b -B -o --output --message -n -u")
    doing.write(*arguments.value("--output", "-o"))
    if arguments.has("--exec", "-O", "--upload-pack", "--receive-pack", "-x", "--ext-diff"):
        doing.unknown("git may start programs")
    if verb in _GIT_REMOTE:
        _git_remote(verb, arguments.operands, folder, doing)
    elif verb in _GIT_WRITES and not _only_lists(verb, rest):
        doing.write(f"{folder}/.git".removeprefix("./"), how="git")
        if verb in _GIT_LOSES:
            _git_loses(verb, rest, folder, doing)
    elif verb not in _GIT_READS and verb not in _GIT_WRITES:
        doing.program(f"git {verb}", known=False)


def _only_lists(verb: str, rest: list[str]) -> bool:
    listing = set(_GIT_LISTS.get(verb, "").split())
    if verb in ("branch", "tag", "remote") and not rest:
        return True
    return bool(rest) and rest[0] in listing


def _git_remote(verb: str, operands: list[str], folder: str, doing: Doing) -> None:
    address = next((word for word in operands if re.search(r"://|^[\w.-]+@[\w.-]+:", word)), "")
    doing.network(address, _GIT_REMOTE[verb])
    if verb == "clone":
        target = operands[1] if len(operands) > 1 else address.rstrip("/").rsplit("/", 1)[-1].removesuffix(".git")
        doing.write(target)
    elif verb in ("pull", "submodule"):
        doing.write(folder)
    elif verb != "ls-remote":
        doing.write(f"{folder}/.git".removeprefix("./"), how="git")


def _git_loses(verb: str, rest: list[str], folder: str, doing: Doing) -> None:
    paths = [word for word in rest if not word.startswith("-")]
    if verb == "clean":
        doing.delete(*(paths or [folder]), tree=True)
    elif verb == "rm":
        doing.delete(*paths, tree=True)
    elif verb != "reset" or "--hard" in rest or "--merge" in rest:
        doing.write(folder)
