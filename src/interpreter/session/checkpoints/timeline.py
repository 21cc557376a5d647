"""What the model cannot know: what blocks did that it sees in the conversation, taken back without that."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from interpreter.errors import BusyError, UndoError
from interpreter.messages import Message
from interpreter.session import ACTION, APPROVE, KEEP, REFUSE, Action, Answer, Block, Question
from interpreter.session.checkpoints.checkpoint import (
    PARTS,
    Conversation,
    Kind,
    Part,
    Point,
    Way,
    label_of,
    last_beginning,
)
from interpreter.session.checkpoints.file_store import Store
from interpreter.session.checkpoints.undo import Outlook, Undone, VariablesOutlook
from interpreter.sigint import Hold

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Chunk, Message
    from interpreter.runtimes import Registry
    from interpreter.runtimes.state import Mark
    from interpreter.session.journal import Session
    from interpreter.workspace import Changes, FileRecord, Plan


_NAMED = 10  # files


def news(points: list[Point], places: dict[Part, int], record: FileRecord | None) -> str:
    """The same in words, empty if there is none."""
    here = places["conversation"]
    files = sorted(_changed(points[places["files"] : here], record))
    languages = sorted(_rewound(points[places["variables"] : here]))
    said = []
    if files:
        more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
        named = ", ".join(files[:_NAMED])
        said.append(f"what {_blocks(points, places['files'], here)} did to files ({named}{more})")
    if languages:
        said.append(f"the {' and '.join(languages)} variables of {_blocks(points, places['variables'], here)}")
    if not said:
        return ""
    return f"The user has taken back {', and '.join(said)}: they are as they were before. The conversation stays."


def give(messages: list[Message], words: str) -> None:
    """Say it before what the user has just said."""
    at = last_beginning(messages)
    if any(message.get("role") != "user" for message in messages[at:]):
        at = len(messages)
    messages.insert(at, {"role": "computer", "type": "message", "content": words})


def _blocks(points: list[Point], start: int, end: int) -> str:
    count = sum(point.kind != "turn" for point in points[start:end])
    return "the last block" if count == 1 else f"the last {count} blocks"


def _changed(points: Iterable[Point], record: FileRecord | None) -> set[str]:
    if record is None:
        return set()
    from interpreter.workspace.tree import repository_of

    found = (record.changes(point.id) for point in points if point.kind != "turn")
    return {repository_of(path) or path for changes in found if changes is not None for path in changes.pairs}


def _rewound(points: Iterable[Point]) -> set[str]:
    """The languages of these blocks that have a return."""
    names = ((point.language or "", point.mark.states) for point in points if point.mark is not None)
    return {known for name, states in names for known in states if known.lower() == name.lower()}


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
            if computer.runtimes.state(language) != state:
                kept = state in computer.runtimes.points(language)
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
            self._interpreter.computer.runtimes.forget_folders()
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
