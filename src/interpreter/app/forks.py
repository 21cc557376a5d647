"""Forks: a second interpreter with the same conversation and variables, in its own copy of the workspace."""

from __future__ import annotations

import copy
import os
import secrets
from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.api import OpenInterpreter
from interpreter.config.setting import give_settings, given_settings
from interpreter.errors import NotRestorableError, UndoError
from interpreter.host.files import remove
from interpreter.questions import Question
from interpreter.session import Action, ActionContext
from interpreter.session.checkpoints.undo import ask_about_files
from interpreter.workspace import FileRecord, Item, Kept, Step
from interpreter.workspace.merge import copy_tree, merge, merge_steps

if TYPE_CHECKING:
    from interpreter.messages import Chunk
    from interpreter.runtimes.state import Restored
    from interpreter.session import Actor

FOLDER = "forks"
STORE = ".files"


@dataclass
class Fork:
    """The origin of a forked interpreter."""

    parent: OpenInterpreter
    folder: Path  # with the copy of the workspace in it, unless that is elsewhere
    record: FileRecord  # of the copy
    base: dict[str, Item]  # the copy as it was in the beginning
    # By language, which variables could not be copied.
    variables: dict[str, Restored | NotRestorableError] = field(default_factory=dict)

    @property
    def sentences(self) -> list[str]:
        """Describe how the two differ, in sentences."""
        return [f"{language}: {how}" for language, how in self.variables.items() if str(how)]


@dataclass(frozen=True)
class Merged:
    """The changes that keeping a fork made to the workspace."""

    paths: list[str]
    kept: list[Kept]


def fork(
    parent: OpenInterpreter,
    workspace: str | Path | None = None,
    started_by: Actor | None = None,
    settings: Mapping[str, Any] | None = None,
) -> OpenInterpreter:
    """Make a second interpreter that continues from here, in a copy of the workspace.

    While a block runs, its variables are those from before the block. One that was started by an actor may do and
    spend at most what that actor may. `settings` are those in which it differs.
    """
    if parent.computer.machine is not None:
        raise UndoError(f"A session on {parent.computer.machine.name} can't be forked: its files are not here.")
    source = Path(parent.workspace).resolve()
    record = parent.timeline.files.required_record()
    if not record.is_in_block:  # else the block that runs would count as ended
        record.prepare(0)
    if why := record.off or record.snapshot.too_large():
        raise UndoError(f"Can't copy the workspace for a fork: {why}")
    folder = Path(parent.get_oi_dir()) / FOLDER / secrets.token_hex(4)
    folder.mkdir(parents=True, mode=0o700)
    target = folder / source.name if workspace is None else Path(workspace).resolve()
    try:
        copy_tree(source, target)
        record = FileRecord(target, folder / STORE)
        record.prepare()
    except OSError as error:
        remove(folder)
        raise UndoError(f"The workspace could not be copied to {target}: {error.strerror or error}.") from error
    child = OpenInterpreter()
    child.started_by = started_by
    give_settings(child, copy.deepcopy(given_settings(parent)))
    child.workspace = str(target)
    for name, value in (settings or {}).items():
        setattr(child, name, value)
    child.conversation_filename = None
    child.messages = copy.deepcopy(parent.messages)
    while parent.responding and child.messages and child.messages[-1]["role"] == "assistant":
        del child.messages[-1]  # it is still being written, or waits to run
    child.last_messages_count = len(child.messages)
    child.llm.resume(parent.llm.forms_sent(), parent.llm.usage)
    child.computer.languages = parent.computer.languages
    child.tools.copy_from(parent.tools)
    outcomes = parent.computer.runtimes.split(child.computer.runtimes)
    child.forked = Fork(parent, folder, record, record.items, outcomes)
    child.computer.context.cwd = _moved(child.computer.context.cwd, source, target)
    child.journal.fork_from(parent.journal)
    return child


def plan_keep(child: OpenInterpreter) -> list[Step]:
    """Plan what keeping a fork would do to the workspace that it came from."""
    made = _fork_of(child)
    origin = made.parent.workspace
    if not os.path.isdir(origin):
        raise UndoError(
            f"{origin}, the origin of this fork, no longer exists. The fork's files are in {child.workspace}."
        )
    record = made.parent.timeline.files.required_record()
    record.prepare()
    made.record.prepare()
    return merge_steps(made.base, made.record, record.snapshot)


class Keep(Action):
    """Keep a fork: bring its files into the workspace it came from, continue there, and drop the parent.

    Files that both changed are not overwritten, unless they are named in `overwrite`.
    """

    kind = "keep"

    def __init__(self, child: OpenInterpreter, overwrite: Collection[str] = (), ask: bool = False) -> None:
        super().__init__()
        self._child, self._overwrite, self._asks = child, set(overwrite), ask
        self._steps: list[Step] = []

    def describe(self) -> str:
        return "a fork is being kept"

    def judge(self, context: ActionContext) -> Iterator[Question]:
        """Ask before it changes files, and about files that were changed in both; the subject is the list of steps."""
        if not self._asks:
            return
        self._steps = steps = plan_keep(self._child)
        drifted = [step.path for step in steps if step.drift]
        confirm = f"This would change {len(steps)} files." if steps else ""
        overwrite = f"{len(drifted)} files have changed in both. Overwrite?" if drifted else ""
        chosen, _ = yield from ask_about_files(self, steps, confirm, overwrite, drifted)
        if chosen is not None:
            self._overwrite = chosen

    def still_allowed(self, context: ActionContext) -> bool:
        return not self._asks or plan_keep(self._child) == self._steps

    def run(self, context: ActionContext) -> Generator[Chunk]:
        child, made, steps = self._child, _fork_of(self._child), plan_keep(self._child)
        # Continue in the workspace that the fork came from, also after a return to a checkpoint made in the fork.
        copied, home = Path(child.workspace).resolve(), Path(made.parent.workspace).resolve()
        child.workspace = str(home)
        child.computer.context.cwd = _moved(child.computer.context.cwd, copied, home)
        for checkpoint in child.timeline.checkpoints:
            if checkpoint.mark is not None:
                checkpoint.mark = replace(checkpoint.mark, cwd=_moved(checkpoint.mark.cwd, copied, home))
            if checkpoint.workspace == str(copied):
                checkpoint.workspace = str(home)  # what its block did there is undone with what is merged
        child.prompt.forget_situation()  # so that the model learns where it is
        child.timeline.before_block("fork", "%keep")
        try:
            folder = child.timeline.files.required_record().snapshot.folder
            written = merge(steps, made.record.store, folder, self._overwrite)
            self.result = Merged(list(written.paths), [*written.kept, *written.failed])
        finally:
            child.timeline.after()
        child.forked = made.parent.forked
        made.parent.forked = None
        made.parent.reset()
        remove(made.folder)
        self.outcome = "done"
        yield from ()


def drop(child: OpenInterpreter) -> None:
    """End a fork; the workspace that it came from stays unchanged."""
    made = _fork_of(child)
    child.forked = None
    child.reset()
    remove(made.folder)


def _fork_of(child: OpenInterpreter) -> Fork:
    if child.forked is None:
        raise UndoError("This is not a fork. fork() makes one.")
    return child.forked


def _moved(path: str, source: Path, target: Path) -> str:
    """Translate a path in one workspace to the other; a path outside of the workspace stays the same."""
    real = Path(os.path.realpath(path))
    return str(target / real.relative_to(source)) if real.is_relative_to(source) else path
