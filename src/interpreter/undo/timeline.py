"""The points of a session in their order, and the way from one to another."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast, overload

from interpreter.errors import BusyError, UndoError
from interpreter.undo.conversation import Conversation, last_beginning
from interpreter.undo.outlook import Outlook, Undone, VariablesOutlook
from interpreter.undo.point import PARTS, Kind, Part, Point, Way, label_of
from interpreter.undo.store import Store

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.journal import Session
    from interpreter.languages.states import Mark
    from interpreter.messages import Chunk, Message
    from interpreter.safety import Changes, FileRecord, Plan

_TOLD_FROM = 1.0  # seconds: a first copy of the workspace that took longer is told
_OFF = "Undo of files is off (setting `undo_files`)."
_EARLIER = "Variables of an earlier run of the session cannot be brought back; its blocks can be run again."


class Timeline:
    """Knows the moment before each turn and each block, and returns to it.

    The conversation, the files and the variables each have their place on the line: normally its end. An undo moves
    them back, a redo forward; what comes next begins where they are, and what was behind it is forgotten.
    """

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self.points: list[Point] = []
        self.places: dict[Part, int] = dict.fromkeys(PARTS, 0)
        self._store = Store(interpreter)
        self._conversation = Conversation(interpreter)
        self._newest = 0  # the id of the point that was made last
        self._latest: Mark | None = None  # of the sessions before they were taken back
        self._running: Point | None = None  # the block that runs
        self._in_turn = False
        self._stamp = 0

    # -- what happens ----------------------------------------------------------------------------------------------

    def begin_turn(self) -> None:
        """The user has said something, which is in the messages already."""
        self._add_turn(last_beginning(self._interpreter.messages))
        self._in_turn = True

    def end_turn(self) -> None:
        self._in_turn = False

    def prepare(self) -> None:
        """A block is on its way: have the first copy of the workspace made meanwhile."""
        try:
            self._store.prepare()
        except OSError:
            pass  # it fails again before the block, and is told then

    def before_block(self, language: str, code: str) -> list[Chunk]:
        """A block is about to run; what the user should be told first."""
        point = self._add("block" if self._in_turn else "own", self._messages_before(code), label_of(code))
        point.language, point.mark = language, self._interpreter.computer.mark()
        point.block = self._interpreter.journal.block if self._in_turn else None
        record, trouble = self._opened()
        point.workspace = self._store.root if record is not None else None
        self._interpreter.journal.write("point", **point.fields)
        self._running = point
        if record is None:
            return [_notice(trouble)] if trouble else []
        coverage = record.before(point.id)
        told = coverage.sentences
        if coverage.copied_files and coverage.seconds >= _TOLD_FROM:
            told.append(coverage.cost + ".")
        return [_notice(words) for words in told]

    def after_block(self) -> list[Chunk]:
        """It has ended, whatever ended it; what it did to the files of the workspace."""
        point, self._running = self._running, None
        if point is None:
            return []
        record, _ = self._opened()
        changes = record.after(point.id) if record is not None else None
        if changes is None or not (changes.pairs or changes.not_covered):
            return []
        self._interpreter.journal.write("files", **changes.fields, journal_block=point.block)
        return [_files(changes)]

    @property
    def watches_files(self) -> bool:
        """Whether it is known what blocks do to the files of the workspace."""
        return self._opened()[0] is not None

    def reset(self) -> None:
        """Forget every point: the conversation begins anew."""
        self._store.close()
        self.points, self._latest, self._running = [], None, None
        self._conversation.take_up([])
        self.places = dict.fromkeys(PARTS, 0)
        self._in_turn = False
        self._stamp += 1

    def take_up(self, session: Session) -> None:
        """Go on with the points of an earlier run: its conversation and its files can be taken back."""
        self.reset()
        self.points = [Point.from_fields(entry) for entry in session.points]
        self._newest = max((point.id for point in self.points), default=0)
        self._stay()
        self._conversation.take_up(session.taken_back)
        whole = self._conversation.whole()
        for point in self.points:
            point.anchor = whole[point.at] if point.at < len(whole) else None
        for part, to in session.rewound.items():
            if to is not None:  # the journal may not know it: points of a conversation that came from elsewhere
                self.places[cast(Part, part)] = sum(each.id < to for each in self.points)

    def branch(self, session: Path) -> None:
        """The session goes on in another folder, where both of them can be taken back."""
        self._store.branch(session)

    # -- where to ---------------------------------------------------------------------------------------------------

    @property
    def present(self) -> int:
        """The place behind the last point: now, when nothing is taken back."""
        return len(self.points)

    def place_of(self, point: int) -> int:
        """The place of the point with this id."""
        place = self._place(point)
        if place is None:
            raise UndoError(f"There is no point {point}. `interpreter.checkpoints` lists them; `%rewind` in the chat.")
        return place

    def back(self, count: int = 1, parts: Collection[Part] = PARTS, blocks: bool = False) -> int:
        """The place that many turns before what is in force, or that many blocks."""
        self._find_files()
        self.adopt()
        here = max(self.places[part] for part in parts)
        places = [place for place in range(here) if self._counts(place, blocks)]
        if not 0 < count <= len(places):
            raise UndoError("There is nothing to undo." if not places else f"{_only(len(places))} can be undone.")
        return places[-count]

    def forward(self, count: int = 1, parts: Collection[Part] = PARTS, blocks: bool = False) -> int:
        """The place that many turns after what is in force, or that many blocks."""
        self._find_files()
        here = min(self.places[part] for part in parts)
        places = [place for place in range(here + 1, self.present) if self._counts(place, blocks)]
        if here < self.present:
            places.append(self.present)
        if not 0 < count <= len(places):
            raise UndoError("There is nothing to redo." if not places else f"{_only(len(places))} can be redone.")
        return places[count - 1]

    def _counts(self, place: int, blocks: bool) -> bool:
        point = self.points[place]
        return point.kind != "turn" if blocks else point.begins_turn

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
            notes.append(trouble or _OFF)
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
                yield VariablesOutlook(found.name, "its variables cannot be rewound; its blocks can be run again")

    def _mark_at(self, to: int) -> Mark | None:
        """The states of the sessions at a place: as before the first block that came then."""
        later = (point.mark for point in self.points[to:] if point.mark is not None)
        if to < self.present and (mark := next(later, None)) is not None:
            return mark
        return self._latest

    def at(self, to: int) -> int:
        """How many messages there are at a place."""
        conversation = self._conversation
        return conversation.place(self.points[to]) if to < self.present else len(conversation.whole())

    def _find_files(self) -> None:
        """Learn from the record where the files are: an undo of them may have been cut off, and been finished since."""
        if self._running is not None:
            raise BusyError("A block is running: wait for its end, or stop it, and then undo.")
        record, _ = self._opened()
        if record is None:
            return
        record.settle()
        here = self.places["files"]
        limit = self._limit(here)
        if any(int(block) >= limit for block in record.blocks[-1:]):
            self.places["files"] = self._place(int(record.blocks[-1]), here - 1) + 1
        elif (ahead := self._ahead(record)) and int(ahead[0]) < limit:
            place = self._place(int(ahead[0]), here)
            self.places["files"] = place - (place > 0 and self.points[place - 1].kind == "turn")

    def _ahead(self, record: FileRecord) -> list[str]:
        """The blocks whose files could be done again; the record keeps others until the next block runs."""
        known = {point.id for point in self.points}
        return [block for block in record.undone if int(block) in known]

    def _limit(self, to: int) -> int:
        """The id from which on blocks are behind a place."""
        return self.points[to].id if to < self.present else self._newest + 1

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

    def _opened(self) -> tuple[FileRecord | None, str]:
        """The record of files, or why there is none; no words if it is switched off."""
        try:
            return self._store.record(), ""
        except OSError as error:
            return None, f"File undo does not work just now: {error}."

    def _record(self) -> FileRecord:
        record, trouble = self._opened()
        if record is None:
            raise UndoError(trouble or _OFF)
        return record

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

    # -- inside --------------------------------------------------------------------------------------------------

    def _add(self, kind: Kind, at: int, label: str) -> Point:
        dropped = self._forget_taken_back(at)
        self._newest += 1
        self._stamp += 1
        point = Point(self._newest, kind, at, label)
        self._conversation.hold_on(point)
        self.points.append(point)
        self._stay()
        if kind == "turn":
            self._interpreter.journal.write("point", **point.fields, drop=dropped)
        elif dropped is not None:
            self._interpreter.journal.write("points_dropped", drop=dropped, at=at)
        return point

    def _add_turn(self, at: int) -> None:
        messages = self._interpreter.messages
        self._add("turn", at, label_of(messages[at].get("content")) if at < len(messages) else "")

    def adopt(self) -> None:
        """Make points for what the user said and we know nothing of: a conversation that came from elsewhere."""
        conversation = self._conversation
        unknown = conversation.unknown_turns(self.points)
        if not any(conversation.find(point) is not None for point in self.points):
            for at in unknown:
                self._add_turn(at)
            return
        whole, lowest = conversation.whole(), self.points[0].id
        self.points[:0] = [
            Point(lowest - len(unknown) + number, "turn", at, label_of(whole[at].get("content")), anchor=whole[at])
            for number, at in enumerate(unknown)
        ]
        self.places = {part: place + len(unknown) for part, place in self.places.items()}

    def _forget_taken_back(self, at: int) -> int | None:
        """What comes next begins here; the id of the first point that is behind it now, if any is."""
        here = max(self.places.values())
        dropped = self.points[here].id if here < self.present else None
        del self.points[here:]
        if self.points and self.points[-1].at > at:
            for point in self.points:
                point.at = min(point.at, at)
        self._conversation.take_up([])
        self._latest = None
        return dropped

    @overload
    def _place(self, point: int | None) -> int | None: ...
    @overload
    def _place(self, point: int | None, missing: int) -> int: ...
    def _place(self, point: int | None, missing: int | None = None) -> int | None:
        return next((place for place, each in enumerate(self.points) if each.id == point), missing)

    def _stay(self) -> None:
        self.places = dict.fromkeys(PARTS, self.present)

    def _messages_before(self, code: str) -> int:
        """How many messages there were before a block's own."""
        messages = self._interpreter.messages
        last = messages[-1] if messages else None
        is_code = last is not None and last.get("type") == "code" and last.get("content") == code
        return len(messages) - 1 if is_code else len(messages)


def _not_here(passed: Iterable[Point], workspace: str | None) -> Iterable[str]:
    """Which blocks worked where the record that is open now does not reach."""
    blocks = [point for point in passed if point.kind != "turn" and point.workspace != workspace]
    for other in dict.fromkeys(point.workspace for point in blocks):
        where = f"the workspace was {other} then" if other else "undo of files was off then"
        yield f"Files that some of these blocks changed are left as they are: {where}."


def _lasting(point: Point, workspace: str | None) -> tuple[str, ...]:
    """What a block did for certain that no undo takes back, as far as its text tells."""
    if point.code is None or point.language is None:
        return ()
    from interpreter.safety.look import Step, look, reversibility

    effects = look(point.language, point.code, workspace or ".")
    outside = [effect for effect in effects.of("write", "delete") if effect.place == "outside"]
    certain = (*effects.of("network", "install", "database", "kill"), *outside)
    return reversibility(replace(effects, steps=(Step(effects.language, "", 0, effects=certain),))).reasons


def _only(count: int) -> str:
    return "Only 1 step" if count == 1 else f"Only {count} steps"


def _notice(text: str) -> Chunk:
    return {"type": "status", "format": "notice", "content": {"text": text}}


def _files(changes: Changes) -> Chunk:
    return {"type": "status", "format": "files", "content": changes.fields}
