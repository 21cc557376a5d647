"""The points of a session in their order: what happened between them, and which are in force."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from interpreter.errors import BusyError, UndoError
from interpreter.session import Action, Block
from interpreter.session.checkpoints.conversation import Conversation, last_beginning
from interpreter.session.checkpoints.news import give, news
from interpreter.session.checkpoints.point import (
    PARTS,
    Kind,
    Part,
    Point,
    label_of,
)
from interpreter.session.checkpoints.store import Store

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Chunk, Message
    from interpreter.runtimes.states import Mark
    from interpreter.session.journal import Session
    from interpreter.workspace import Changes, FileRecord

MOST = 2_000  # points that can be returned to; the journal has them all
_TOLD_FROM = 1.0  # seconds: a first copy of the workspace that took longer is told
OFF = "Undo of files is off (setting `undo_files`)."


Method = TypeVar("Method", bound=Callable[..., Any])


def one_at_a_time(method: Method) -> Method:
    """A turn begins without the session's lane, while blocks of others run or are undone."""

    @wraps(method)
    def locked(self: Points, *args: Any, **kwargs: Any) -> Any:
        with self._changing:
            return method(self, *args, **kwargs)

    return cast(Method, locked)


class Points:
    """Knows the moment before each turn and each block, and returns to it.

    The conversation, the files and the variables each have their place on the line: normally its end. An undo moves
    them back, a redo forward; what comes next begins where they are, and what was behind it is forgotten.
    """

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self._changing = threading.RLock()
        self.points: list[Point] = []
        self.places: dict[Part, int] = dict.fromkeys(PARTS, 0)
        self._store = Store(interpreter)
        self._conversation = Conversation(interpreter)
        self._others: dict[int, Conversation] = {}  # of interpreters that share the computer
        self._newest = 0  # the id of the point that was made last
        self._latest: Mark | None = None  # of the sessions before they were taken back
        self._running: Point | None = None  # the block that runs
        self._stamp = 0
        self._forgot = False  # points that were too old
        self._news: list[str] = []  # what the model is to be told

    # -- what happens ----------------------------------------------------------------------------------------------

    @one_at_a_time
    def tell_model(self, interpreter: OpenInterpreter) -> None:
        """The user has said something, which is in the messages already: say before it what was taken back alone."""
        self._hear_news()
        words, self._news = self._news, []
        if words:
            give(interpreter.messages, "\n".join(words))
            interpreter.last_messages_count += 1

    @one_at_a_time
    def begin_turn(self, interpreter: OpenInterpreter) -> None:
        """Its turn begins."""
        self._add_turn(last_beginning(interpreter.messages), interpreter)

    @one_at_a_time
    def conversation_of(self, interpreter: OpenInterpreter) -> Conversation:
        """The conversation of an interpreter that acts in this session."""
        if interpreter is self._interpreter:
            return self._conversation
        return self._others.setdefault(id(interpreter), Conversation(interpreter))

    @property
    def conversations(self) -> list[Conversation]:
        """All that this session has, its own first."""
        return [self._conversation, *self._others.values()]

    def prepare(self) -> None:
        """A block is on its way: have the first copy of the workspace made meanwhile."""
        try:
            self._store.prepare()
        except OSError:
            pass  # it fails again before the block, and is told then

    def before(self, action: Action) -> list[Chunk]:
        """An action that can be undone is about to run; what the user should be told first."""
        interpreter = action.actor.settings if action.actor is not None else self._interpreter
        language, code = (action.language, action.code) if isinstance(action, Block) else (action.kind, "")
        return self.before_block(language, code or action.describe(), bool(action.turn), interpreter)

    def after(self, action: Action) -> list[Chunk]:
        """It has ended, whatever ended it; what it did to the files of the workspace."""
        return self.after_block()

    @one_at_a_time
    def before_block(
        self, language: str, code: str, in_turn: bool = False, by: OpenInterpreter | None = None
    ) -> list[Chunk]:
        """A block is about to run; what the user should be told first."""
        by = by or self._interpreter
        at = _messages_before(by.messages, code)
        point = self._add("block" if in_turn else "own", at, label_of(code), by=by)
        point.language, point.mark = language, self._interpreter.computer.mark()
        point.block = by.journal.block if in_turn else None
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

    @one_at_a_time
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

    @one_at_a_time
    def reset(self) -> None:
        """Forget every point: the conversation begins anew."""
        self._store.close()
        self.points, self._latest, self._running, self._news = [], None, None, []
        self._others.clear()
        self._conversation.take_up([])
        self.places = dict.fromkeys(PARTS, 0)
        self._forgot = False
        self._stamp += 1

    @one_at_a_time
    def take_up(self, session: Session) -> None:
        """Go on with the points of an earlier run: its conversation and its files can be taken back."""
        self.reset()
        self.points = [Point.from_fields(entry) for entry in session.points]
        self._newest = max((point.id for point in self.points), default=0)
        self._stay()
        self._conversation.take_up(session.taken_back)
        whole, gone = self._conversation.whole(), Conversation(self._interpreter)
        for point in self.points:
            if point.actor:
                point.conversation = gone  # of an interpreter that shared the computer: its messages are not here
            else:
                point.anchor = whole[point.at] if point.at < len(whole) else None
        for part, to in session.rewound.items():
            if to is not None:  # the journal may not know it: points of a conversation that came from elsewhere
                self.places[cast(Part, part)] = sum(each.id < to for each in self.points)
        self._forget_oldest()

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

    @one_at_a_time
    def back(self, count: int = 1, parts: Collection[Part] = PARTS, blocks: bool = False) -> int:
        """The place that many turns before what is in force, or that many blocks."""
        self._find_files()
        self.adopt()
        here = max(self.places[part] for part in parts)
        places = [place for place in range(here) if self._counts(place, blocks)]
        if not 0 < count <= len(places):
            raise UndoError("There is nothing to undo." if not places else f"{_only(len(places))} can be undone.")
        return places[-count]

    @one_at_a_time
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

    # -- the files -----------------------------------------------------------------------------------------------

    @property
    def watches_files(self) -> bool:
        """Whether it is known what blocks do to the files of the workspace."""
        return self._opened()[0] is not None

    def _opened(self) -> tuple[FileRecord | None, str]:
        """The record of files, or why there is none; no words if it is switched off."""
        try:
            return self._store.record(), ""
        except OSError as error:
            return None, f"File undo does not work just now: {error}."

    def _record(self) -> FileRecord:
        record, trouble = self._opened()
        if record is None:
            raise UndoError(trouble or OFF)
        return record

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

    def at(self, to: int, conversation: Conversation | None = None) -> int:
        """How many messages a conversation has at a place; by default the session's own."""
        own = self._conversation
        conversation = conversation or own
        for point in self.points[to:]:
            if (point.conversation or own) is conversation:
                return conversation.place(point)
        return len(conversation.whole())

    # -- inside --------------------------------------------------------------------------------------------------

    def _add(
        self, kind: Kind, at: int, label: str, elsewhere: bool = False, by: OpenInterpreter | None = None
    ) -> Point:
        if kind != "turn":
            self._hear_news()
        conversation = self.conversation_of(by or self._interpreter)
        dropped = self._forget_taken_back(at, conversation)
        self._newest += 1
        self._stamp += 1
        point = Point(self._newest, kind, at, label, elsewhere=elsewhere)
        if conversation is not self._conversation and by is not None:
            point.conversation, point.actor = conversation, by.agent.id
        conversation.hold_on(point)
        self.points.append(point)
        self._stay()
        self._forget_oldest()
        if kind == "turn":
            self._interpreter.journal.write("point", **point.fields, drop=dropped)
        elif dropped is not None:
            self._interpreter.journal.write("points_dropped", drop=dropped, at=at)
        return point

    def _hear_news(self) -> None:
        """Keep what the model is to be told, before it is forgotten."""
        if min(self.places.values()) < self.places["conversation"]:
            words = news(self.points, self.places, self._opened()[0])
            self._news += [words] if words and words not in self._news else []

    def _add_turn(self, at: int, by: OpenInterpreter, elsewhere: bool = False) -> None:
        messages = by.messages
        self._add("turn", at, label_of(messages[at].get("content")) if at < len(messages) else "", elsewhere, by)

    @one_at_a_time
    def adopt(self) -> None:
        """Make points for what the user said and we know nothing of: a conversation that came from elsewhere."""
        if self._forgot:
            return  # what is not known was known once
        conversation = self._conversation
        unknown = conversation.unknown_turns(self.points)
        if not any(conversation.find(point) is not None for point in self.points):
            for at in unknown:
                self._add_turn(at, self._interpreter, elsewhere=True)
            return
        whole, lowest = conversation.whole(), self.points[0].id
        self.points[:0] = [
            Point(
                lowest - len(unknown) + number,
                "turn",
                at,
                label_of(whole[at].get("content")),
                anchor=whole[at],
                elsewhere=True,
            )
            for number, at in enumerate(unknown)
        ]
        self.places = {part: place + len(unknown) for part, place in self.places.items()}

    def _forget_taken_back(self, at: int, conversation: Conversation) -> int | None:
        """What comes next begins here; the id of the first point that is behind it now, if any is."""
        here = max(self.places.values())
        dropped = self.points[here].id if here < self.present else None
        del self.points[here:]
        last = next((point for point in reversed(self.points) if self._belongs(point, conversation)), None)
        if last is not None and last.at > at:
            for point in self.points:
                if self._belongs(point, conversation):
                    point.at = min(point.at, at)
        for each in self.conversations:
            each.take_up([])
        self._latest = None
        return dropped

    def _belongs(self, point: Point, conversation: Conversation) -> bool:
        return (point.conversation or self._conversation) is conversation

    def _forget_oldest(self) -> None:
        """Let go of whole turns when there are too many points, but not each time."""
        if len(self.points) <= MOST * 1.1:
            return
        spare = len(self.points) - MOST
        turns = (place for place in range(spare, len(self.points)) if self.points[place].begins_turn)
        first = min(next(turns, spare), *self.places.values())
        del self.points[:first]
        self.places = {part: place - first for part, place in self.places.items()}
        self._forgot = True

    @overload
    def _place(self, point: int | None) -> int | None: ...
    @overload
    def _place(self, point: int | None, missing: int) -> int: ...
    def _place(self, point: int | None, missing: int | None = None) -> int | None:
        return next((place for place, each in enumerate(self.points) if each.id == point), missing)

    def _stay(self) -> None:
        self.places = dict.fromkeys(PARTS, self.present)


def _messages_before(messages: list[Message], code: str) -> int:
    """How many messages there were before a block's own."""
    last = messages[-1] if messages else None
    is_code = last is not None and last.get("type") == "code" and last.get("content") == code
    return len(messages) - 1 if is_code else len(messages)


def _only(count: int) -> str:
    return "Only 1 step" if count == 1 else f"Only {count} steps"


def _notice(text: str) -> Chunk:
    return {"type": "status", "format": "notice", "content": {"text": text}}


def _files(changes: Changes) -> Chunk:
    return {"type": "status", "format": "files", "content": changes.fields}
