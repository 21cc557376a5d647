"""The points of a session, and the way from one to another."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from interpreter.errors import BusyError, UndoError
from interpreter.session import ACTION, APPROVE, KEEP, REFUSE, Action, Answer, Question
from interpreter.session.checkpoints.outlook import (
    Outlook,
    Undone,
    VariablesOutlook,
)
from interpreter.session.checkpoints.point import (
    PARTS,
    Part,
    Point,
    Way,
)
from interpreter.session.checkpoints.points import (
    OFF,
    Points,
    one_at_a_time,
)
from interpreter.sigint import Hold

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Chunk, Message
    from interpreter.runtimes import Registry
    from interpreter.runtimes.states import Mark
    from interpreter.workspace import (
        Changes,
        FileRecord,
        Plan,
    )

Asks = Literal["nothing", "drift", "files"]
"""What a person is asked about: nothing, files that somebody else has changed since, or any change of files."""

OUT_OF_DATE = "Something has happened since this was planned: plan it again."
_EARLIER = "Variables of an earlier run of the session cannot be brought back; its blocks can be run again."
_ELSEWHERE = (
    "What some of these blocks did to files and variables stays: they ran before this session had the conversation."
)


class GoTo(Action):
    """Undo, redo, or a return to a checkpoint, as a plan says.

    What has to be asked is asked before it takes the lane. If anything happens in between, it plans and asks again, or
    raises UndoError where `plan` is a plan that was shown already.
    """

    def __init__(
        self,
        interpreter: OpenInterpreter,
        way: Way,
        plan: Callable[[], Outlook] | Outlook,
        overwrite: Collection[str] = (),
        ask: Asks = "nothing",
    ) -> None:
        super().__init__()
        self.kind = {"back": "undo", "forward": "redo", "there": "restore"}[way]
        self._interpreter, self._timeline, self._asks = interpreter, interpreter.timeline, ask
        self._plan: Callable[[], Outlook] = plan if not isinstance(plan, Outlook) else (lambda: plan)
        self._agreed: Outlook | None = None  # the plan that nobody has to be asked about any more
        self._overwrite, self._repositories = set(overwrite), set[str]()
        self._confirmed: set[str] = set()  # whose work may be undone along with it

    def describe(self) -> str:
        return f"{self.kind} is running"

    def judge(self) -> Iterator[Chunk | Question]:
        """Ask before it undoes what another actor did, changes files, or overwrites what somebody else changed."""
        self._agreed = None
        if not self._may_ask:
            return
        try:
            plan = self._plan()
        except BusyError:
            return  # it is judged when the lane is free
        if plan.stamp != self._timeline.stamp:
            raise UndoError(OUT_OF_DATE)
        yield from self._ask_about_others(plan)
        if not self.refused and plan.changes_files and self._asks != "nothing":
            yield from self._ask_about_files(plan)
        if not self.refused:
            self._agreed = plan

    @property
    def _may_ask(self) -> bool:
        return self._asks != "nothing" or len(self._timeline.conversations) > 1

    def _ask_about_others(self, plan: Outlook) -> Iterator[Question]:
        others = self._timeline.others(plan, self._interpreter)
        if others <= self._confirmed:
            return
        words = f"This would also {self.kind} what {', '.join(sorted(others))} did."
        question = Question.in_words("confirm", self.kind, words)
        yield question
        if question.answer is None or question.answer.choice != APPROVE:
            raise UndoError(f"Nothing was changed. {words} That has to be confirmed first.")
        self._confirmed = others

    def _ask_about_files(self, plan: Outlook) -> Iterator[Question]:
        """The subject of both questions is the plan.

        The details of an answer may name the `paths` to overwrite, and `.git` folders to restore as `repositories`.
        """
        if self._asks == "files" and plan.certain:
            question = Question.in_words("confirm", self.kind, f"This would change {_counted(plan.certain)}.", plan)
            yield question
            self._take(question.answer)
        if not self.refused and plan.drifted:
            words = f"{_counted(plan.drifted)} changed since. Overwrite?"
            question = Question.in_words("overwrite", self.kind, words, plan, (APPROVE, KEEP, REFUSE))
            yield question
            self._take(question.answer)
            if question.answer is not None and question.answer.choice == APPROVE:
                self._overwrite |= set(question.answer.details.get("paths", [step.path for step in plan.drifted]))

    def _take(self, answer: Answer | None) -> None:
        if answer is None or answer.choice == REFUSE:
            self.refused = True
        else:
            self._repositories |= set(answer.details.get("repositories", ()))

    def still_allowed(self) -> bool:
        if self._asks == "nothing":
            return not self._may_ask or self._timeline.others(self._plan(), self._interpreter) <= self._confirmed
        return self._agreed is not None and self._agreed.stamp == self._timeline.stamp

    def run(self) -> Generator[Chunk]:
        session = self._interpreter.session
        session.questions.withdraw(kinds=["block"])  # what it was about may be gone
        plan = self._plan() if self._asks == "nothing" else self._agreed
        assert plan is not None
        self.result = undone = self._timeline.go(plan, self._overwrite, self._repositories)
        self.outcome = "done"
        session.log.publish("undone", {**undone.fields, "told": undone.sentences}, self.ids)  # the journal has it
        yield from ()


def _counted(steps: Collection[object]) -> str:
    return f"{len(steps)} file{'' if len(steps) == 1 else 's'}"


class Timeline(Points):
    """The points of a session, with the way from one to another."""

    @property
    def stamp(self) -> int:
        """Changes with everything that happens: a plan that has another one is out of date."""
        return self._stamp

    def others(self, outlook: Outlook, interpreter: OpenInterpreter) -> set[str]:
        """Who else did something on that way."""
        own = self.conversation_of(interpreter)
        passed = [point for point in outlook.points if (point.conversation or self._conversation) is not own]
        return {point.actor or self._interpreter.agent.id for point in passed}

    # -- looking ahead ----------------------------------------------------------------------------------------------

    @one_at_a_time
    def outlook(self, to: int, parts: Collection[Part] = PARTS, way: Way = "there") -> Outlook:
        """What would be restored by going there; with a way, parts that are there or beyond already stay."""
        self._find_files()
        stays = {"back": int.__le__, "forward": int.__ge__, "there": int.__eq__}[way]
        chosen = tuple(part for part in PARTS if part in parts and not stays(self.places[part], to))
        back = all(self.places[part] > to for part in chosen)
        ends = [self.places[part] for part in chosen] or [to]
        passed = tuple(self.points[to : max(ends)] if back else self.points[min(ends) : to])
        notes: list[str] = []
        files = self._files_outlook(to, passed, notes) if "files" in chosen else None
        mark = self._mark_at(to) if "variables" in chosen else None
        variables = tuple(self._variables_outlook(mark, passed)) if mark is not None else ()
        if "variables" in chosen and any(point.kind != "turn" and point.mark is None for point in passed):
            notes.append(_EARLIER)
        messages = tuple(self._messages_outlook(to, notes)) if "conversation" in chosen else ()
        if back and len(chosen) > 1 and any(point.elsewhere for point in passed) and _has_code(messages):
            notes.append(_ELSEWHERE)
        if "files" in chosen and back:
            registry = self._interpreter.computer.registry
            notes += dict.fromkeys(words for point in passed for words in _lasting(point, self._store.root, registry))
        point = self.points[to].id if to < self.present else None
        return Outlook(to, back, passed, chosen, messages, files, variables, mark, tuple(notes), self._stamp, point)

    def _messages_outlook(self, to: int, notes: list[str]) -> Iterable[Message]:
        for conversation in self.conversations:
            messages, tail = conversation.messages, conversation.tail
            if conversation.changed:
                notes.append("The conversation was changed since: what was taken back of it does not come again.")
            at = self.at(to, conversation)
            yield from messages[at:] if at <= len(messages) else tail[: at - len(messages)]

    def _files_outlook(self, to: int, passed: Iterable[Point], notes: list[str]) -> Plan | None:
        record, trouble = self._opened()
        if record is None:
            notes.append(trouble or OFF)
            return None
        notes += _not_here(passed, self._store.root)
        if any(point.id <= int(record.forgotten or 0) for point in passed):
            notes.append(
                "Files come back only in part: what the oldest of these blocks did to them is not kept any more."
            )
        limit = self._limit(to)
        behind = [block for block in record.blocks if int(block) >= limit]
        ahead = [block for block in self._ahead(record) if int(block) < limit]
        if not behind and not ahead:
            return None
        plan = record.plan_undo(since=behind[0]) if behind else record.plan_redo(until=ahead[-1])
        notes += [f"{each.path}: {each.why}" for each in plan.not_covered]
        notes += [f"{step.path} cannot be restored: {step.impossible}." for step in plan.steps if step.impossible]
        return plan

    def _variables_outlook(self, mark: Mark, passed: Iterable[Point]) -> Iterable[VariablesOutlook]:
        computer = self._interpreter.computer
        for language, state in mark.states.items():
            if computer.state(language) != state:
                kept = state in computer.points(language)
                yield VariablesOutlook(language, None if kept else "that state is not kept any more")
        for name in dict.fromkeys(point.language for point in passed):
            found = computer.get_language(name) if name else None
            if found is not None and found.name not in mark.states:
                yield VariablesOutlook(found.name, "they cannot be rewound; its blocks can be run again")

    def _mark_at(self, to: int) -> Mark | None:
        """The states of the sessions at a place: as before the first block that came then."""
        later = (point.mark for point in self.points[to:] if point.mark is not None)
        if to < self.present and (mark := next(later, None)) is not None:
            return mark
        return self._latest

    # -- going --------------------------------------------------------------------------------------------------------

    @one_at_a_time
    def go(self, outlook: Outlook, overwrite: Collection[str] = (), repositories: Collection[str] = ()) -> Undone:
        """Do it; files that somebody else has changed stay, unless they are named in `overwrite`."""
        if outlook.stamp != self._stamp:
            raise UndoError(OUT_OF_DATE)
        self._check_nobody_responds(outlook)
        self._stamp += 1
        report, told = None, {}
        if outlook.files is not None:
            record = self._record()
            restore = record.undo if outlook.files.direction == "undo" else record.redo
            report = restore(outlook.files, overwrite, repositories)
            self._interpreter.computer.forget_folders()
        self._arrive("files", outlook)
        if outlook.mark is not None:
            with Hold():  # the session and our record of it must change together
                self._remember_present()
                told = self._interpreter.computer.go_back(outlook.mark)
                self._arrive("variables", outlook)
        self._arrive("variables", outlook)
        if "conversation" in outlook.parts:
            for conversation, at in [(each, self.at(outlook.to, each)) for each in self.conversations]:
                conversation.cut(at)
        self._arrive("conversation", outlook)
        undone = Undone(outlook, report, told)
        self._interpreter.journal.write("rewound", **undone.fields)
        return undone

    def _check_nobody_responds(self, outlook: Outlook) -> None:
        """The messages of another agent are not taken from it while it writes them."""
        action = ACTION.get()
        acting = action.actor.settings if action is not None and action.actor is not None else self._interpreter
        for each in self.conversations if "conversation" in outlook.parts else ():
            responds = each.interpreter is not acting and each.interpreter.responding
            if responds and self.at(outlook.to, each) != len(each.messages):
                raise BusyError(f"{each.interpreter.agent.id} is still responding: wait for it, or cancel it.")

    def _arrive(self, part: Part, outlook: Outlook) -> None:
        if part in outlook.parts:
            self.places[part] = outlook.to

    def _remember_present(self) -> None:
        if self._latest is None:  # nothing has moved the sessions since the last block
            self._latest = self._interpreter.computer.mark()

    # -- asking --------------------------------------------------------------------------------------------------------

    def diff(self, point: int) -> dict[str, str]:
        """What a block changed, as a difference of lines for each path."""
        return self._record().diff(point)

    def drift_diff(self, outlook: Outlook, path: str) -> str:
        """From what somebody else made of a file to what would be restored there."""
        steps = outlook.files.steps if outlook.files is not None else ()
        return next((self._record().drift_diff(step) for step in steps if step.path == path), "")

    def why(self, path: str, line: int | None = None) -> Point | None:
        """The block that made a file, or one of its lines, what it is; None if it was no block of this session."""
        block = self._record().why(path, line)
        found = (point for point in self.points if block is not None and point.id == int(block))
        return next(found, None)

    def left_out(self, path: str) -> str | None:
        """Why a file of the workspace would not come back with an undo, if that is so."""
        record, _ = self._opened()
        if record is None or record.off is not None:
            return "undo of files is off"
        try:
            too_large = os.path.isfile(path) and os.path.getsize(path) > record.limits.file_bytes
        except OSError:
            return None  # it went just now
        return "it is too large for undo" if too_large else None

    def changes(self, point: int) -> Changes | None:
        """What a block changed; None if that is not known."""
        record = self.record()
        return record.changes(point) if record is not None else None

    def record(self) -> FileRecord | None:
        """The record of files; None where undo of files is off."""
        return self._store.record()

    @property
    def blocks(self) -> list[Point]:
        """The blocks that are in force, as far as files go, oldest first."""
        return [point for point in self.points[: self.places["files"]] if point.kind != "turn"]


def _not_here(passed: Iterable[Point], workspace: str | None) -> Iterable[str]:
    """Which blocks worked where the record that is open now does not reach."""
    blocks = [point for point in passed if point.kind != "turn" and point.workspace != workspace]
    for other in dict.fromkeys(point.workspace for point in blocks):
        where = f"the workspace was {other} then" if other else "undo of files was off then"
        yield f"Files that some of these blocks changed are left as they are: {where}."


def _has_code(messages: Iterable[Message]) -> bool:
    return any(message.get("type") == "code" for message in messages)


def _lasting(point: Point, workspace: str | None, registry: Registry) -> tuple[str, ...]:
    """What a block did for certain that no undo takes back, as far as its text tells."""
    if point.code is None or point.language is None:
        return ()
    from interpreter.policy.analysis import (
        Step,
        analyze,
        reversibility,
    )

    effects = analyze(point.language, point.code, workspace or ".", registry=registry)
    outside = [effect for effect in effects.of("write", "delete") if effect.place == "outside"]
    certain = (*effects.of("network", "install", "database", "kill"), *outside)
    steps = (Step(effects.language, "", 0, effects=certain),)
    return reversibility(replace(effects, lasting="", steps=steps)).reasons  # its variables are another matter
