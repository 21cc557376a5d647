"""The points of a session in their order, and the way from one to another."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from interpreter.errors import UndoError
from interpreter.undo.conversation import begins, last_beginning, place_in
from interpreter.undo.outlook import Outlook, Undone, VariablesOutlook
from interpreter.undo.point import PARTS, Kind, Part, Point, Way, label_of
from interpreter.undo.store import Store

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.journal import Session
    from interpreter.languages.states import Mark
    from interpreter.messages import Chunk, Message
    from interpreter.safety import Changes, FileRecord, Plan

_NO_RETURN = "its variables cannot be rewound; its blocks can be run again"
_TOLD_FROM = 1.0  # seconds: a first copy of the workspace that took longer is told


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
        self._newest = 0  # the id of the point that was made last
        self._tail: list[Message] = []  # the messages that were taken back
        self._latest: Mark | None = None  # of the sessions before they were taken back
        self._running: Point | None = None  # the block that runs
        self._forgotten: int | None = None  # the first point that was taken back in an earlier run
        self._in_turn = False
        self._stamp = 0
        self._preparing: threading.Thread | None = None

    # -- what happens ----------------------------------------------------------------------------------------------

    def begin_turn(self) -> None:
        """The user has said something, which is in the messages already."""
        self._add_turn(last_beginning(self._interpreter.messages))
        self._in_turn = True

    def end_turn(self) -> None:
        self._in_turn = False

    def prepare(self) -> None:
        """A block is on its way: have the workspace looked at meanwhile."""
        if self._preparing is not None and self._preparing.is_alive():
            return
        try:
            record = self._store.record()
        except OSError:
            return  # it fails again before the block, and is told then
        if record is None:
            return
        self._preparing = threading.Thread(target=record.prepare, name="file record", daemon=True)
        self._preparing.start()

    def before_block(self, language: str, code: str) -> list[Chunk]:
        """A block is about to run; what the user should be told first."""
        point = self._add("block" if self._in_turn else "own", self._messages_before(code), label_of(code))
        point.language, point.mark = language, self._interpreter.computer.mark()
        point.block = self._interpreter.journal.block if self._in_turn else None
        self._interpreter.journal.write("point", **point.fields)
        self._running = point
        try:
            record = self._store.record()
            coverage = record.before(point.id) if record is not None else None
        except OSError as error:
            return [_notice(f"File undo does not work just now: {error}.")]
        if coverage is None:
            return []
        told = coverage.sentences
        if coverage.copied_files and coverage.seconds >= _TOLD_FROM:
            told.append(coverage.cost + ".")
        return [_notice(words) for words in told]

    def after_block(self) -> list[Chunk]:
        """It has ended, whatever ended it; what it did to the files of the workspace."""
        point, self._running = self._running, None
        if point is None:
            return []
        try:
            record = self._store.record()
            changes = record.after(point.id) if record is not None else None
        except OSError as error:
            return [_notice(f"What this block did to files is not recorded: {error}.")]
        if not changes or not (changes.pairs or changes.not_covered):
            return []
        self._interpreter.journal.write("files", **changes.fields, journal_block=point.block)
        return [_files(changes)]

    def reset(self) -> None:
        """Forget every point: the conversation begins anew."""
        self._store.close()
        self.points, self._tail, self._latest, self._running, self._forgotten = [], [], None, None, None
        self.places = dict.fromkeys(PARTS, 0)
        self._in_turn = False

    def take_up(self, session: Session) -> None:
        """Go on with the points of an earlier run: its conversation and its files can be taken back."""
        self.reset()
        self.points = [Point.from_fields(entry) for entry in session.points]
        self._newest = max((point.id for point in self.points), default=0)
        for point in self.points:
            point.first = session.messages[point.at] if point.at < len(session.messages) else None
        self._stay()
        places = {point.id: place for place, point in enumerate(self.points)}
        gone_back = {part: places.get(point, 0) for part, point in session.rewound.items() if point is not None}
        self.places |= {part: gone_back.get(part, self.present) for part in PARTS if part != "variables"}
        here = self.places["variables"] = max(self.places["conversation"], self.places["files"])
        self._forgotten = self.points[here].id if here < self.present else None
        del self.points[here:]  # what was taken back then cannot be done again

    # -- where to ---------------------------------------------------------------------------------------------------

    @property
    def present(self) -> int:
        """The place behind the last point: now, when nothing is taken back."""
        return len(self.points)

    def place_of(self, point: int) -> int:
        """The place of the point with this id."""
        for place, each in enumerate(self.points):
            if each.id == point:
                return place
        raise UndoError(f"There is no point {point}. `interpreter.checkpoints` lists them; `%rewind` in the chat.")

    def back(self, count: int = 1, parts: Collection[Part] = PARTS, blocks: bool = False) -> int:
        """The place that many turns before what is in force, or that many blocks."""
        self.adopt()
        here = max(self.places[part] for part in parts)
        places = [place for place in range(here) if self._counts(place, blocks)]
        if not 0 < count <= len(places):
            raise UndoError("There is nothing to undo." if not places else f"{_only(len(places))} can be undone.")
        return places[-count]

    def forward(self, count: int = 1, parts: Collection[Part] = PARTS, blocks: bool = False) -> int:
        """The place that many turns after what is in force, or that many blocks."""
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
        stays = {"back": int.__le__, "forward": int.__ge__, "there": int.__eq__}[way]
        chosen = tuple(part for part in PARTS if part in parts and not stays(self.places[part], to))
        back = all(self.places[part] > to for part in chosen)
        ends = [self.places[part] for part in chosen] or [to]
        passed = tuple(self.points[to : max(ends)] if back else self.points[min(ends) : to])
        notes: list[str] = []
        files = self._files_outlook(to, notes) if "files" in chosen else None
        mark = self._mark_at(to) if "variables" in chosen else None
        variables = tuple(self._variables_outlook(mark, passed)) if "variables" in chosen else ()
        messages = tuple(self._messages_outlook(to)) if "conversation" in chosen else ()
        if "files" in chosen and back:
            notes += dict.fromkeys(words for point in passed for words in point.lasting)
        point = self.points[to].id if to < self.present else None
        return Outlook(to, back, passed, chosen, messages, files, variables, mark, tuple(notes), self._stamp, point)

    def _messages_outlook(self, to: int) -> Iterable[Message]:
        messages = self._interpreter.messages
        at = self.at(to)
        return messages[at:] if at <= len(messages) else self._tail[: at - len(messages)]

    def _files_outlook(self, to: int, notes: list[str]) -> Plan | None:
        record = self._store.record()
        if record is None:
            notes.append("Undo of files is off (setting `undo_files`).")
            return None
        limit = self.points[to].id if to < self.present else self._newest + 1
        behind = [block for block in record.blocks if int(block) >= limit]
        ahead = [block for block in record.undone if int(block) < limit]
        if not behind and not ahead:
            return None
        plan = record.plan_undo(since=behind[0]) if behind else record.plan_redo(until=ahead[-1])
        notes += [f"{each.path}: {each.why}" for each in plan.not_covered]
        notes += [f"{step.path} cannot be restored: {step.impossible}." for step in plan.steps if step.impossible]
        return plan

    def _variables_outlook(self, mark: Mark | None, passed: Iterable[Point]) -> Iterable[VariablesOutlook]:
        computer = self._interpreter.computer
        states = mark.states if mark is not None else {}
        for language, state in states.items():
            if computer.state(language) != state:
                kept = state in computer.points(language)
                yield VariablesOutlook(language, None if kept else "that state is not kept any more")
        for name, ours in {point.language: point.mark is not None for point in passed if point.language}.items():
            found = computer.get_language(name)
            if found is not None and found.name not in states:
                why = _NO_RETURN if ours else "they went with an earlier process"
                yield VariablesOutlook(found.name, why)

    def _mark_at(self, to: int) -> Mark | None:
        """The states of the sessions at a place: as before the first block that came then."""
        later = (point.mark for point in self.points[to:] if point.mark is not None)
        if to < self.present and (mark := next(later, None)) is not None:
            return mark
        return self._latest

    def at(self, to: int) -> int:
        """How many messages there are at a place."""
        whole = self._whole()
        if to == self.present:
            return len(whole)
        point = self.points[to]
        found = place_in(whole, point.first, point.at)
        return min(point.at, len(whole)) if found is None else found

    def _whole(self) -> list[Message]:
        return [*self._interpreter.messages, *self._tail]

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
        if outlook.mark is not None:
            self._remember_present()
            told = self._interpreter.computer.go_back(outlook.mark)
        if "conversation" in outlook.parts:
            self._cut(self.at(outlook.to))
        for part in outlook.parts:
            self.places[part] = outlook.to
        undone = Undone(outlook, report, told)
        self._interpreter.journal.write("rewound", **undone.fields)
        return undone

    def _record(self) -> FileRecord:
        record = self._store.record()
        if record is None:
            raise UndoError("Undo of files is off (setting `undo_files`).")
        return record

    def _remember_present(self) -> None:
        if self.places["variables"] == self.present:
            self._latest = self._interpreter.computer.mark()

    def _cut(self, at: int) -> None:
        interpreter = self._interpreter
        whole = self._whole()
        interpreter.messages[:] = whole[:at]
        self._tail = whole[at:]
        interpreter.last_messages_count = min(interpreter.last_messages_count, at)
        interpreter.journal.sync("undo")

    # -- asking --------------------------------------------------------------------------------------------------------

    def record(self) -> FileRecord | None:
        """The record of files; None where undo of files is off."""
        return self._store.record()

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
        record = self._store.record()
        return record.changes(point) if record is not None else None

    @property
    def blocks(self) -> list[Point]:
        """The blocks that are in force, as far as files go, oldest first."""
        return [point for point in self.points[: self.places["files"]] if point.kind != "turn"]

    # -- inside --------------------------------------------------------------------------------------------------

    def _add(self, kind: Kind, at: int, label: str) -> Point:
        dropped = self._forget_taken_back(at)
        self._newest += 1
        self._stamp += 1
        messages = self._interpreter.messages
        point = Point(self._newest, kind, at, label, first=messages[at] if at < len(messages) else None)
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
        whole, messages = self._whole(), self._interpreter.messages
        known = [place_in(whole, point.first, point.at) for point in self.points]
        if all(place is None for place in known):
            for at in [at for at in range(len(messages)) if begins(messages, at)]:
                self._add_turn(at)
        elif known[0] is not None:
            said = [at for at in range(known[0]) if begins(whole, at)]
            lowest = self.points[0].id
            self.points[:0] = [
                Point(lowest - len(said) + number, "turn", at, label_of(whole[at].get("content")), first=whole[at])
                for number, at in enumerate(said)
            ]
            self.places = {part: place + len(said) for part, place in self.places.items()}

    def _forget_taken_back(self, at: int) -> int | None:
        """What comes next begins here; the id of the first point that is behind it now, if any is."""
        here = max(self.places.values())
        dropped = self.points[here].id if here < self.present else self._forgotten
        del self.points[here:]
        if self.points and self.points[-1].at > at:
            for point in self.points:
                point.at = min(point.at, at)
        self._tail, self._latest, self._forgotten = [], None, None
        return dropped

    def _stay(self) -> None:
        self.places = dict.fromkeys(PARTS, self.present)

    def _messages_before(self, code: str) -> int:
        """How many messages there were before a block's own."""
        messages = self._interpreter.messages
        last = messages[-1] if messages else None
        is_code = last is not None and last.get("type") == "code" and last.get("content") == code
        return len(messages) - 1 if is_code else len(messages)


def _only(count: int) -> str:
    return "Only 1 step" if count == 1 else f"Only {count} steps"


def _notice(text: str) -> Chunk:
    return {"type": "status", "format": "notice", "content": {"text": text}}


def _files(changes: Changes) -> Chunk:
    return {"type": "status", "format": "files", "content": changes.fields}
