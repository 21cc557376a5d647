"""Undo, redo, or a return to a checkpoint, as an action: planned, asked about, done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator
from typing import TYPE_CHECKING, Literal

from interpreter.console_text import counted
from interpreter.errors import BusyError, UndoError
from interpreter.questions import APPROVE, REFUSE, Confirm, Question
from interpreter.session import Action, ActionContext
from interpreter.session.checkpoints.checkpoint import UndoKind, UndoPlan
from interpreter.session.checkpoints.timeline import OUT_OF_DATE, Timeline
from interpreter.session.events import UndoneData

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.messages import Chunk

# What a person is asked about: nothing, files that other programs have changed since, or any change of files.
Asks = Literal["nothing", "drift", "files"]


class UndoAction(Action):
    """Undo, redo, or a return to a checkpoint, as a plan says.

    It asks before it takes the lane. If anything happens in between, it plans and asks again, or raises UndoError if
    `plan` is a plan that was shown already.
    """

    def __init__(
        self,
        timeline: Timeline,
        by: Agent,
        kind: UndoKind,
        plan: Callable[[], UndoPlan] | UndoPlan,
        overwrite: Collection[str] = (),
        ask: Asks = "nothing",
    ) -> None:
        super().__init__()
        self.kind = kind
        self._timeline, self._by, self._asks = timeline, by, ask
        self._plan: Callable[[], UndoPlan] = plan if not isinstance(plan, UndoPlan) else (lambda: plan)
        self._approved: UndoPlan | None = None
        self._overwrite, self._repositories = set(overwrite), set[str]()
        self._confirmed: set[str] = set()  # whose work may be undone along with it

    def describe(self) -> str:
        return f"{self.kind} is running"

    @property
    def _may_ask(self) -> bool:
        is_guest = self.actor is not None and self.actor.kind == "agent"
        return is_guest or self._asks != "nothing" or len(self._timeline.conversations) > 1

    def _others(self, plan: UndoPlan) -> set[str]:
        return self._timeline.other_actors(plan, self._by, self.actor)

    def judge(self, context: ActionContext) -> Iterator[Question]:
        """Ask before undoing another actor's actions, changing files, or overwriting another program's changes."""
        self._approved = None
        if not self._may_ask:
            return
        try:
            plan = self._plan()
        except BusyError:
            return  # it is judged when the lane is free
        if plan.stamp != self._timeline.stamp:
            raise UndoError(OUT_OF_DATE)
        others = self._others(plan)
        if not others <= self._confirmed:
            words = f"This would also {self.kind} what {', '.join(sorted(others))} did."
            question = Question(Confirm(words, self.kind))
            yield question
            if not question.approved:
                raise UndoError(f"Nothing was changed. {words} Confirm that first.")
            self._confirmed = others
        if not self.refused and plan.changes_files and self._asks != "nothing":
            certain, drifted = counted(len(plan.certain), "file"), [step.path for step in plan.drifted]
            confirm = f"This would change {certain}." if self._asks == "files" and plan.certain else ""
            overwrite = f"{counted(len(drifted), 'file')} changed since then. Overwrite?" if drifted else ""
            chosen, repositories = yield from ask_about_files(self, plan, confirm, overwrite, drifted)
            self._overwrite |= chosen or set()
            self._repositories |= repositories
        if not self.refused:
            self._approved = plan

    def still_allowed(self, context: ActionContext) -> bool:
        if self._asks == "nothing":
            return not self._may_ask or self._others(self._plan()) <= self._confirmed
        return self._approved is not None and self._approved.stamp == self._timeline.stamp

    def run(self, context: ActionContext) -> Generator[Chunk]:
        session = self._by.session
        session.questions.withdraw(kinds=["block"])  # what it was about may be gone
        plan = self._plan() if self._asks == "nothing" else self._approved
        assert plan is not None
        self.result = result = self._timeline.go(plan, self._overwrite, self._repositories)
        self.outcome = "done"
        undone: UndoneData = {**result.fields, "told": result.sentences}  # type: ignore[typeddict-item]
        session.log.publish("undone", undone, self.ids)  # the journal has it
        yield from ()


def ask_about_files(
    action: Action, subject: object, confirm: str, overwrite: str, drifted: Collection[str]
) -> Generator[Question, None, tuple[set[str] | None, set[str]]]:
    """Ask before files change, and before overwriting what another program changed; an empty text asks nothing.

    The answer may name the `paths` to overwrite, and `.git` folders to restore as `repositories`.
    Returns both; no paths if that was not approved.
    """
    paths: set[str] | None = None
    repositories: set[str] = set()
    for text, changed in ((confirm, ()), (overwrite, tuple(drifted))):
        if action.refused or not text:
            continue
        question = Question(Confirm(text, action.kind, changed, subject))
        yield question
        answer = question.answer
        action.refused = answer is None or answer.choice == REFUSE
        if answer is not None and not action.refused:
            repositories |= set(answer.repositories)
            if changed and answer.choice == APPROVE:
                paths = set(changed if answer.paths is None else answer.paths)
    return paths, repositories
