"""The points of a session, and the way from one to another."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from interpreter.errors import UndoError
from interpreter.undo.outlook import Outlook, Undone, VariablesOutlook
from interpreter.undo.point import PARTS, Part, Point, Way
from interpreter.undo.points import OFF, Points

if TYPE_CHECKING:
    from interpreter.languages.states import Mark
    from interpreter.messages import Message
    from interpreter.safety import Changes, FileRecord, Plan

_EARLIER = "Variables of an earlier run of the session cannot be brought back; its blocks can be run again."
_ELSEWHERE = (
    "What some of these blocks did to files and variables stays: they ran before this session had the conversation."
)


class Timeline(Points):
    """The points of a session, with the way from one to another."""

    # -- looking ahead ----------------------------------------------------------------------------------------------

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
            notes += dict.fromkeys(words for point in passed for words in _lasting(point, self._store.root))
        point = self.points[to].id if to < self.present else None
        return Outlook(to, back, passed, chosen, messages, files, variables, mark, tuple(notes), self._stamp, point)

    def _messages_outlook(self, to: int, notes: list[str]) -> Iterable[Message]:
        messages, tail = self._interpreter.messages, self._conversation.tail
        if self._conversation.changed:
            notes.append("The conversation was changed since: what was taken back of it does not come again.")
        at = self.at(to)
        return messages[at:] if at <= len(messages) else tail[: at - len(messages)]

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

    def go(self, outlook: Outlook, overwrite: Collection[str] = (), repositories: Collection[str] = ()) -> Undone:
        """Do it; files that somebody else has changed stay, unless they are named in `overwrite`."""
        if outlook.stamp != self._stamp:
            raise UndoError("Something has happened since this was planned: plan it again.")
        self._stamp += 1
        report, told = None, {}
        if outlook.files is not None:
            record = self._record()
            restore = record.undo if outlook.files.direction == "undo" else record.redo
            report = restore(outlook.files, overwrite, repositories)
            self._interpreter.computer.forget_folders()
        self._arrive("files", outlook)
        if outlook.mark is not None:
            self._remember_present()
            told = self._interpreter.computer.go_back(outlook.mark)
        self._arrive("variables", outlook)
        if "conversation" in outlook.parts:
            self._conversation.cut(self.at(outlook.to))
        self._arrive("conversation", outlook)
        undone = Undone(outlook, report, told)
        self._interpreter.journal.write("rewound", **undone.fields)
        return undone

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


def _lasting(point: Point, workspace: str | None) -> tuple[str, ...]:
    """What a block did for certain that no undo takes back, as far as its text tells."""
    if point.code is None or point.language is None:
        return ()
    from interpreter.safety.look import Step, look, reversibility

    effects = look(point.language, point.code, workspace or ".")
    outside = [effect for effect in effects.of("write", "delete") if effect.place == "outside"]
    certain = (*effects.of("network", "install", "database", "kill"), *outside)
    steps = (Step(effects.language, "", 0, effects=certain),)
    return reversibility(replace(effects, language="", steps=steps)).reasons  # its variables are another matter
