"""A checkpoint: the moment before a turn or a block; its place in the conversation; and the plan to return to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from interpreter.console_text import first_few
from interpreter.sigint import Hold

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.errors import NotRestorableError
    from interpreter.messages import Message
    from interpreter.runtimes import Registry
    from interpreter.runtimes.state import Mark, Restored
    from interpreter.session import Actor
    from interpreter.workspace import FileRecord, RestorePlan, RestoreReport, Step

Part = Literal["conversation", "files", "variables"]
PARTS: tuple[Part, ...] = ("conversation", "files", "variables")
Kind = Literal["turn", "block", "own"]
UndoKind = Literal["undo", "redo", "restore"]
_LABEL_LENGTH = 60
_NAMED_FILES = 10


@dataclass
class Checkpoint:
    """The moment before a turn, before a block in a turn, or before a block that was run outside of any."""

    id: int
    kind: Kind
    at: int  # how many messages there were
    label: str  # the beginning of the request, or of the code
    language: str | None = None
    block: int | None = None  # the number of the block in the journal
    time: float = field(default_factory=time.time)
    mark: Mark | None = None  # the states of the runtimes; a turn has that of its first block
    # Whose files were recorded when the block ran; None if that was switched off, and for a turn.
    workspace: str | None = None
    # The message that it is before, or if there was none, the one that it is `behind`.
    anchor: Message | None = field(default=None, repr=False)
    behind: int = 0
    actor: str = ""  # who acted, if that was not the session's own agent or user
    doer: Actor | None = field(default=None, repr=False)  # who ran the block, if that was in this run of the program
    # The conversation that it belongs to, if that is not the session's own.
    conversation: Conversation | None = field(default=None, repr=False)
    elsewhere: bool = False  # A turn that was loaded with the conversation; what its blocks did is unknown

    @property
    def begins_turn(self) -> bool:
        """Return whether a plain undo goes back to a checkpoint such as this."""
        return self.kind != "block"

    @property
    def code(self) -> str | None:
        """Return the code of a block, if the conversation has it."""
        message = self.anchor if not self.behind else None
        return str(message.get("content")) if message is not None and message.get("type") == "code" else None

    def irreversible(self, workspace: str | None, registry: Registry) -> tuple[str, ...]:
        """List the block's certain effects that undo can't restore, judging by its code."""
        if self.code is None or self.language is None:
            return ()
        from interpreter.policy.analysis import EffectStep, analyze, reversibility

        effects = analyze(self.language, self.code, workspace or ".", registry=registry)
        outside = [effect for effect in effects.of("write", "delete") if effect.place == "outside"]
        certain = (*effects.of("network", "install", "database", "kill"), *outside)
        steps = (EffectStep(effects.language, "", 0, effects=certain),)
        return reversibility(replace(effects, lasting="", steps=steps)).reasons  # variables are another matter

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields for the journal's event `point`."""
        return {
            "point": self.id,
            "kind": self.kind,
            "at": self.at,
            "label": self.label,
            "language": self.language,
            "block": self.block,
            "workspace": self.workspace,
            **({"elsewhere": True} if self.elsewhere else {}),
            **({"guest": self.actor} if self.actor else {}),  # every entry has the `actor` of its event
        }

    @classmethod
    def from_fields(cls, entry: dict[str, Any]) -> Checkpoint:
        names = ("kind", "at", "label", "language", "block", "time", "workspace", "elsewhere")
        known = {name: entry[name] for name in names if name in entry}
        return cls(id=entry["point"], actor=entry.get("guest", ""), **known)


def label_of(text: object) -> str:
    words = " ".join(text.split()) if isinstance(text, str) else ""
    return words if len(words) <= _LABEL_LENGTH else words[: _LABEL_LENGTH - 1] + "…"


def undone_in_words(files: Sequence[Checkpoint], variables: Sequence[Checkpoint], record: FileRecord | None) -> str:
    """Tell the model which files or variables were undone without the conversation; empty if none were."""
    from interpreter.workspace.tree import repository_of

    def blocks(checkpoints: Sequence[Checkpoint]) -> str:
        count = sum(each.kind != "turn" for each in checkpoints)
        return "the last block" if count == 1 else f"the last {count} blocks"

    changes = [record.changes(each.id) for each in files if each.kind != "turn"] if record is not None else []
    paths = sorted({repository_of(path) or path for each in changes if each is not None for path in each.pairs})
    states = [(each.language or "", each.mark.states) for each in variables if each.mark is not None]
    languages = sorted(
        {known for name, states_then in states for known in states_then if known.lower() == name.lower()}
    )
    said = []
    if paths:
        said.append(f"what {blocks(files)} did to files ({first_few(paths, _NAMED_FILES)})")
    if languages:
        said.append(f"the {' and '.join(languages)} variables of {blocks(variables)}")
    if not said:
        return ""
    return f"The user has undone {', and '.join(said)}: they are as they were before. The conversation stays."


# -- the conversation --------------------------------------------------------------------------------------------


class Conversation:
    """The messages of an agent, and behind them those that were undone. Anything may change `messages`."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._tail: list[Message] = []
        self._left = 0  # how many messages there were when it was cut
        self.changed = False  # `messages` has changed since, so the undone part no longer fits

    @property
    def messages(self) -> list[Message]:
        return self.agent.messages

    @property
    def tail(self) -> list[Message]:
        """Return the undone steps that can be redone."""
        if self._tail and len(self.messages) != self._left:
            self._tail, self.changed = [], True
        return self._tail

    @tail.setter
    def tail(self, tail: list[Message]) -> None:
        self._tail, self._left, self.changed = list(tail), len(self.messages), False

    def whole(self) -> list[Message]:
        """Return all messages, with those that were undone last."""
        return [*self.messages, *self.tail]

    def find(self, checkpoint: Checkpoint) -> int | None:
        """Find a checkpoint among all messages; None if its message is gone."""
        whole = self.whole()
        at = checkpoint.at - checkpoint.behind
        if checkpoint.anchor is None:
            return None
        if 0 <= at < len(whole) and whole[at] == checkpoint.anchor:
            return checkpoint.at
        alike = (place for place, message in enumerate(whole) if message == checkpoint.anchor)
        found = min(alike, key=lambda place: abs(place - at), default=None)
        return None if found is None else found + checkpoint.behind

    def cut(self, at: int) -> None:
        """Set the number of messages, fewer or more than now; the others can be redone."""
        whole, agent = self.whole(), self.agent
        with Hold():
            agent.messages[:] = whole[:at]
            self.tail = whole[at:]
            agent.last_messages_count = min(agent.last_messages_count, at)
            agent.journal.sync("undo")


def last_request(messages: Sequence[Message]) -> int:
    """Return where the user's last request begins; the end if there is none."""
    return next((at for at in reversed(range(len(messages))) if begins_request(messages, at)), len(messages))


def begins_request(messages: Sequence[Message], at: int) -> bool:
    """Check whether a message begins a request of the user. Attachments follow the words."""
    message, follows = messages[at], at > 0 and messages[at - 1].get("role") == "user"
    return message.get("role") == "user" and not (follows and message.get("type") in ("file", "image"))


# -- plans and results -------------------------------------------------------------------------------------------


class VariablesPlan(NamedTuple):
    """The effect of a plan on the variables of a language."""

    language: str
    obstacle: str | None = None  # why they stay as they are, if that is so

    @property
    def sentence(self) -> str:
        return f"The {self.language} variables stay as they are: {self.obstacle}."


class FolderPlan(NamedTuple):
    """The effect of a plan on the `.git` folders that an undo or redo could restore."""

    files: RestorePlan
    folders: tuple[str, ...] = ()  # those that are restored
    lines: tuple[str, ...] = ()  # what that means
    notes: tuple[str, ...] = ()  # why others are not
    carry_out: Callable[[Callable[[], RestoreReport]], RestoreReport] = lambda restore: (
        restore()
    )  # around the restoring


@dataclass(frozen=True)
class UndoPlan:
    """A plan for returning to a checkpoint, before anything is restored."""

    to: int  # the place of the checkpoint among all; one more than the last is the present
    back: bool  # whether it is earlier
    checkpoints: tuple[Checkpoint, ...]  # what would be undone, or redone
    parts: tuple[Part, ...]
    messages: tuple[Message, ...] = ()  # those that would go, or come back
    files: RestorePlan | None = None
    repositories: FolderPlan | None = None
    variables: tuple[VariablesPlan, ...] = ()
    mark: Mark | None = None
    notes: tuple[str, ...] = ()  # what cannot be restored, in sentences
    stamp: int = 0
    checkpoint: int | None = None  # the id of the checkpoint; None for the present

    @property
    def certain(self) -> list[Step]:
        """Return the changes to files that are as the blocks left them."""
        from interpreter.workspace.restore import select_steps

        folders = self.repositories.folders if self.repositories is not None else ()
        return select_steps(self.files, repositories=folders)[0] if self.files is not None else []

    @property
    def drifted(self) -> list[Step]:
        """Return the files that other programs have changed since, and that can be restored."""
        drift = self.files.drift if self.files is not None else ()
        return [step for step in drift if step.repository is None and not step.impossible]

    @property
    def changes_files(self) -> bool:
        """Return whether anything on the disk would change, or could; then a person should be asked."""
        return bool(self.certain or self.drifted)

    @property
    def is_empty(self) -> bool:
        return not (self.messages or self.changes_files or self.variables or self.mark)


@dataclass(frozen=True)
class UndoResult:
    """The result of an undo, a redo or a return to a checkpoint."""

    plan: UndoPlan
    files: RestoreReport | None = None
    variables: dict[str, Restored | NotRestorableError] = field(default_factory=dict)

    @property
    def restored(self) -> tuple[str, ...]:
        """Return the paths of the files that were restored."""
        return self.files.restored if self.files is not None else ()

    @property
    def sentences(self) -> list[str]:
        """List what could not be restored, or is not as it was; empty if there is nothing to say."""
        said = [f"{language}: {how}" for language, how in self.variables.items() if str(how)]
        left_alone = (each for each in self.plan.variables if each.obstacle is not None)
        said += [each.sentence for each in left_alone if each.language not in self.variables]
        if self.files is not None and self.plan.files is not None:
            from interpreter.workspace.tree import repository_of

            named = {step.path for step in self.plan.files.steps if step.impossible}  # among the notes
            kept = [each for each in (*self.files.kept, *self.files.failed) if each.path not in named]
            left = {repository_of(path) or path: why for path, why, *_ in kept}
            said += [f"{path} was left unchanged: {why}." for path, why in left.items()]
        return [*said, *self.plan.notes]

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields for the journal's event `rewound`."""
        return {
            "points": [checkpoint.id for checkpoint in self.plan.checkpoints],
            "back": self.plan.back,
            "to": self.plan.checkpoint,
            "parts": list(self.plan.parts),
            "files": self.files.fields if self.files is not None else None,
            "variables": {language: str(how) for language, how in self.variables.items()},
        }
