"""The event log of a session: numbered events in one order, for any number of readers.

An event is either whole at once (a question, a decision, a file change) or a text that grows while it streams (a
reply, a block, its output). A text has one number, and its pieces differ in their offset: a reader that was cut off
resumes at (number, offset) and neither misses nor repeats anything. Only the newest event can grow. If another one
comes in between, the rest of the text is a new event that `continues` the first.
"""

from __future__ import annotations

import itertools
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Literal, NamedTuple, Protocol, Required, TypedDict, get_args, overload

from interpreter.messages import UNFLAGGED, Chunk, Fold, Framer, Message

MAX_EVENTS = 20_000  # kept in memory; the journal has them all
MAX_KEPT_LENGTH = 32 * 1024 * 1024  # characters of all events together that are kept in memory
MAX_TEXT_LENGTH = 256 * 1024  # characters of one text that late readers can still get
MAX_PIECES = 50_000  # of one text, where they cannot be put together
# Types whose pieces may be cut and put together; half a picture is none.
TEXTS = frozenset({"message", "code", "reasoning", "console", "review"})
# Kinds of events without an LMC form: the streams of 0.4.3 do not know them.
KernelKind = Literal["action", "answer", "plan", "undone", "messages", "permissions"]
KERNEL_KINDS: frozenset[str] = frozenset(get_args(KernelKind))

PlanState = Literal["pending", "running", "done", "failed", "skipped"]


class ActionFields(TypedDict, total=False):
    """The fields that an `action` event may have besides its state and kind."""

    parent: str  # the action that it is part of, when it begins
    language: str
    packages: list[str]
    tool: str  # that the model calls
    call: str  # that code makes
    effects: list[str]
    of: str  # whose permissions it changes
    outcome: str  # how it ended
    reason: str  # why a turn ended
    error: str  # the type of the error that ended it
    text: str  # and its words


class ActionData(ActionFields):
    """The beginning, running or end of an action."""

    state: Literal["begun", "running", "ended"]
    kind: str  # block, tool, turn, undo, ...


class AnswerData(TypedDict):
    """The outcome of a question."""

    question: str
    choice: str
    by: str


class PlanData(TypedDict):
    """A plan and its progress."""

    steps: list[dict[str, Any]]


class UndoneData(TypedDict):
    """The result of an undo, a redo or a return to a checkpoint."""

    points: list[int]
    back: bool
    to: int | None
    parts: list[str]
    files: dict[str, Any] | None
    variables: dict[str, str]
    told: list[str]


class MessagesData(TypedDict):
    """Messages that were replaced other than by streaming."""

    at: int
    drop: int
    messages: list[dict[str, Any]]


class PermissionsData(TypedDict, total=False):
    """The new permissions of an actor."""

    actor: Required[str]
    mode: str
    sandboxed: bool
    revoked: bool


class PlanStep(NamedTuple):
    """One step of a plan, as front ends show it."""

    text: str
    state: PlanState = "pending"


class Ids(NamedTuple):
    """The turn, action and actor that an event belongs to; empty for none."""

    turn: str = ""
    action: str = ""
    actor: str = ""


class Event(NamedTuple):
    """An event as readers get it, or the next piece of an event whose text is growing."""

    number: int
    offset: int  # where in the text this piece begins
    kind: str  # the chunk's type, or one of `KERNEL_KINDS`
    data: dict[str, Any]  # the LMC chunk, or the fields of an event that has none
    ids: Ids = Ids()
    time: float = 0.0
    end: int | None = None  # where in the text this piece ends, if its content is not as long as that

    @property
    def chunk(self) -> Chunk | None:
        """Return the event as 0.4.3 streams it; None where it has no such form."""
        return None if self.kind in KERNEL_KINDS else self.data  # type: ignore[return-value]

    @property
    def position(self) -> tuple[int, int]:
        """Return where a reader that has had this resumes."""
        if self.end is not None:
            return self.number, self.end
        return self.number, self.offset if self.data.get("start") else self.offset + _size(self.data)


class Sink(Protocol):
    """Stores events beyond this process, as the journal does. Called before any reader sees an event."""

    def record(self, number: int, kind: str, data: dict[str, Any], ids: Ids) -> None:
        """Record an event that is not a chunk."""

    def add(self, chunk: Chunk, number: int, ids: Ids) -> None:
        """Add a chunk of an event, which is already part of the messages."""


class LogEntry:
    """An event in the log, or in the journal if it is no longer in memory."""

    __slots__ = ("cut", "data", "ended", "ids", "kind", "number", "pieces", "size", "time")

    def __init__(
        self,
        kind: str,
        data: dict[str, Any],
        ids: Ids,
        pieces: list[Chunk] | None = None,
        number: int = 0,
        when: float = 0.0,
    ) -> None:
        self.kind, self.data, self.ids, self.pieces, self.number = kind, data, ids, pieces, number
        self.time = when or time.time()
        self.ended = pieces is None
        self.size = sum(map(_size, pieces or ()))  # of the text so far
        self.cut = 0  # how much of its beginning is not kept

    @classmethod
    def whole(cls, message: Any, ids: Ids, number: int = 0, when: float = 0.0) -> LogEntry:
        head = {key: value for key, value in message.items() if key != "content"}
        piece: Any = {**head, "content": message.get("content")}
        entry = cls(str(message.get("type")), head, ids, [piece], number, when)
        entry.ended = True
        return entry

    def add(self, chunk: Chunk, size: int) -> None:
        assert self.pieces is not None
        self.pieces.append(chunk)
        self.size += size
        if self.size - self.cut > 2 * MAX_TEXT_LENGTH or len(self.pieces) > 2 * MAX_PIECES:
            self._shorten(self.pieces)

    def _shorten(self, all_pieces: list[Chunk]) -> None:
        """Keep the end of a long text: drop whole pieces, and shorten the first one that stays."""
        pieces = self.pieces = list(_joined(all_pieces))
        spare = self.size - MAX_TEXT_LENGTH - self.cut
        first, last = 0, len(pieces) - 1
        while first < last and (_size(pieces[first]) <= spare or last - first >= MAX_PIECES):
            spare -= _size(pieces[first])
            self.cut += _size(pieces[first])
            first += 1
        del pieces[:first]
        content = pieces[0].get("content")
        if spare > 0 and isinstance(content, str) and spare < len(content) and pieces[0]["type"] in TEXTS:
            pieces[0] = {**pieces[0], "content": content[spare:]}
            self.cut += spare

    @property
    def weight(self) -> int:
        """Estimate the characters that this entry keeps in memory."""
        return _weight(self.data) + (self.size - self.cut if self.pieces is not None else 0)

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            self.pieces = list(_joined(self.pieces or []))

    def events(self, offset: int | None = None) -> Iterator[Event]:
        """Return what a reader at this offset has not had yet; everything for one that has had nothing."""
        if self.pieces is None:
            if offset is None:
                yield self.event(0, {**self.data})
            return
        if offset is None:
            yield self.event(0, {**self.data, "start": True})
        at, wanted = self.cut, offset or 0
        if wanted < at:
            yield self.event(at - 1, {**self.data, "content": "", "omitted": at - wanted})
        for piece in self.pieces:
            size = _size(piece)
            if at + size > wanted:
                skip = max(0, wanted - at)
                yield self.event(at + skip, {**piece, "content": piece["content"][skip:]} if skip else {**piece})
            at += size
        if self.ended and wanted <= self.size:
            yield self.event(self.size, {**self.data, "end": True})

    def event(self, offset: int, data: dict[str, Any]) -> Event:
        return Event(self.number, offset, self.kind, data, self.ids, self.time)


def events_after(
    entries: Iterable[LogEntry], after: int, offset: int | None = None, most: int | None = None
) -> list[Event]:
    """Return about `most` events that a reader at this place has not had yet."""
    found: list[Event] = []
    for entry in entries:
        if entry.number > after:
            found += entry.events()
        elif entry.number == after and offset is not None:
            found += entry.events(offset)
        if most is not None and len(found) >= most:
            break
    return found


class EventLog:
    """All events of a session in one total order.

    Publishing never waits for a reader. A reader that follows registers a wake-up, not a thread.
    """

    def __init__(self) -> None:
        self._entries: list[LogEntry] = []
        self._next = 1
        self._kept = 0  # characters, of all entries but the newest
        self.writing = threading.RLock()  # while this is held, no other thread publishes
        self._wakes: dict[object, Callable[[], None]] = {}
        self.closed = False
        self.history: Callable[[], Iterable[LogEntry]] = tuple  # the events that are older than those in memory

    @property
    def last(self) -> int:
        return self._next - 1

    def continue_after(self, number: int) -> None:
        """Continue the numbers of an earlier run of the session."""
        with self.writing:
            self._next = max(self._next, number + 1)

    # -- publishing ----------------------------------------------------------------------------------------------

    @overload
    def publish(self, kind: Literal["action"], data: ActionData, ids: Ids = ..., sink: Sink | None = None) -> Event: ...
    @overload
    def publish(self, kind: Literal["answer"], data: AnswerData, ids: Ids = ..., sink: Sink | None = None) -> Event: ...
    @overload
    def publish(self, kind: Literal["plan"], data: PlanData, ids: Ids = ..., sink: Sink | None = None) -> Event: ...
    @overload
    def publish(self, kind: Literal["undone"], data: UndoneData, ids: Ids = ..., sink: Sink | None = None) -> Event: ...
    @overload
    def publish(
        self, kind: Literal["messages"], data: MessagesData, ids: Ids = ..., sink: Sink | None = None
    ) -> Event: ...
    @overload
    def publish(
        self, kind: Literal["permissions"], data: PermissionsData, ids: Ids = ..., sink: Sink | None = None
    ) -> Event: ...
    @overload
    def publish(
        self, kind: Literal["status", "error"], data: Chunk, ids: Ids = ..., sink: Sink | None = None
    ) -> Event: ...

    def publish(self, kind: str, data: Any, ids: Ids = Ids(), sink: Sink | None = None) -> Event:  # noqa: B008 - a tuple
        """Number an event, record it, and let readers see it."""
        with self.writing:
            entry = self.begin(LogEntry(kind, {**data}, ids))  # the receiver may change the event
            if sink is not None:
                sink.record(entry.number, kind, data, ids)
        self.wake()
        return entry.event(0, data)

    def message(self, message: Message, ids: Ids) -> int:
        """Publish a message that is whole already; its number."""
        with self.writing:
            entry = self.begin(LogEntry.whole(message, ids))
        self.wake()
        return entry.number

    def begin(self, entry: LogEntry) -> LogEntry:
        """Number an entry and add it; the one before is over. The caller holds `writing`, and wakes the readers."""
        if self._entries:
            newest = self._entries[-1]
            newest.end()
            self._kept += newest.weight
        entry.number = self._next  # from here on nothing is allocated, so that no finaliser publishes in between
        self._next += 1
        self._entries.append(entry)
        if len(self._entries) > MAX_EVENTS * 1.1 or self._kept > MAX_KEPT_LENGTH * 1.1:
            first = max(0, len(self._entries) - MAX_EVENTS)
            self._kept -= sum(each.weight for each in self._entries[:first])
            while self._kept > MAX_KEPT_LENGTH and first < len(self._entries) - 1:
                self._kept -= self._entries[first].weight
                first += 1
            del self._entries[:first]
        return entry

    # -- reading -------------------------------------------------------------------------------------------------

    def read(self, after: int = 0, offset: int | None = None, most: int | None = None) -> list[Event]:
        """Return about `most` events after event `after`; with an `offset`, first the rest of the text of `after`."""
        with self.writing:
            start = bisect_left(self._entries, after, key=lambda entry: entry.number)
            first = self._entries[0].number if self._entries else self._next
            older = self.history() if after + 1 < first else ()
            recent = itertools.islice(self._entries, start, None)
            before = (each for each in older if after <= each.number < first)
            return events_after(itertools.chain(before, recent), after, offset, most)

    def follow(self, after: int = 0, offset: int | None = None) -> Generator[Event]:
        """Yield the same, then what comes, until the log is closed."""
        news = threading.Event()
        unsubscribe = self.subscribe(news.set)
        try:
            while True:
                news.clear()
                closed = self.closed
                for event in self.read(after, offset):
                    yield event
                    after, offset = event.position
                if closed:
                    return
                news.wait()
        finally:
            unsubscribe()

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Have `wake` called whenever there is something new; call the result to end that."""
        key = object()
        with self.writing:
            self._wakes[key] = wake

        def unsubscribe() -> None:
            with self.writing:
                self._wakes.pop(key, None)

        return unsubscribe

    def close(self) -> None:
        """End the log, and with it the readers that follow."""
        self.closed = True
        self.wake()

    def wake(self) -> None:
        """Tell the readers that follow that there is something new; not while `writing` is entered."""
        for key, wake in list(self._wakes.items()) if self._wakes else ():
            try:
                wake()
            except Exception:  # noqa: BLE001 - a reader that is gone, such as a closed event loop, must not stop the others
                self._wakes.pop(key, None)


class Publisher:
    """Publishes the chunks of one turn or action: framed, folded into messages, journaled, and then seen by readers."""

    def __init__(self, log: EventLog, ids: Ids, fold: Fold | None = None, journal: Sink | None = None) -> None:
        self._log, self._fold, self._journal = log, fold, journal
        self.ids = ids
        self.fields: Chunk = {}  # what every chunk says of itself: the id of the call that it answers
        self._framer = Framer()
        self._text: LogEntry | None = None
        self._is_message = False  # the open text is a plain message

    def append(self, chunk: Chunk) -> Event | None:
        """Publish the next piece of a message that is streaming; None, and nothing is done, for any other chunk.

        `publish` does the same for all chunks; most are such pieces, and each costs time.
        """
        text, content = self._text, chunk.get("content")
        if text is None or not self._is_message or chunk["type"] != "message" or len(chunk) != 3:
            return None
        if not content or type(content) is not str or chunk["role"] != text.data["role"]:
            return None
        with self._log.writing:
            if text.ended:
                return None  # another event has interrupted it
            if self._fold is not None:
                self._fold.grow(content)
            offset = text.size
            text.add({**chunk}, len(content))  # the receiver may change the chunk
            if self._journal is not None:
                self._journal.add(chunk, text.number, self.ids)
        self._log.wake()
        return Event(text.number, offset, "message", chunk, self.ids, text.time)  # type: ignore[arg-type]

    def publish(self, chunk: Chunk, number: int = 0) -> Generator[Event]:
        """Publish a chunk. With a `number`, its event was published under that already."""
        if self.fields:
            chunk = {**chunk, **self.fields}
        for framed in self._framer.frame(chunk):
            yield self._keep(framed, number if framed is chunk else 0)

    def close(self) -> Generator[Event]:
        """End the text that is open, if one is."""
        yield from map(self._keep, self._framer.close())

    def _keep(self, chunk: Chunk, number: int = 0) -> Event:
        data: dict[str, Any] = chunk  # type: ignore[assignment]
        with self._log.writing:  # what other threads publish comes before all of this, or after it
            if self._fold is not None:
                self._fold.add(chunk)
            if chunk["type"] not in UNFLAGGED:
                event = self._keep_text(chunk)
            elif number:
                event = Event(number, 0, chunk["type"], data, self.ids)
            else:
                event = self._log.begin(LogEntry(chunk["type"], {**data}, self.ids)).event(0, data)
            if self._journal is not None:
                self._journal.add(chunk, event.number, self.ids)
        self._log.wake()
        return event

    def _keep_text(self, chunk: Chunk) -> Event:
        text, starts, ends = self._text, chunk.get("start"), chunk.get("end")
        if starts:
            head = {key: value for key, value in chunk.items() if key != "start"}
            text = self._log.begin(LogEntry(chunk["type"], head, self.ids, []))
            self._is_message = chunk["type"] == "message" and len(head) == 2 and not self.fields
        assert text is not None
        if text.ended and not ends:  # another event has interrupted it
            text = self._log.begin(LogEntry(text.kind, {**text.data, "continues": text.number}, text.ids, []))
        offset = text.size
        if ends:
            text.end()
        elif not starts:
            text.add({**chunk}, _size(chunk))  # the receiver may change the chunk
        self._text = None if ends else text
        return Event(text.number, offset, text.kind, chunk, self.ids, text.time)  # type: ignore[arg-type]


_KEY_BEGINS, _KEY_ENDS = "-----BEGIN ", "-----END "  # a secret of several lines; all others stand in one


def redacted(events: Iterable[Event], clean: Callable[[str], str], rest: bool = True) -> Generator[Event]:
    """Return the same events without secrets, for readers on other machines; `clean` takes them out of a text.

    A secret may come in pieces, so what code prints is held back until its line is whole. At the end, `rest` gives out
    what was held back; without it, a reader gets that when it reads on from where it is.
    """
    waiting: list[Event] = []  # pieces of one line
    stream: tuple[int, str | None] = 0, None  # that they belong to
    for event in events:
        printed = event.data.get("role") == "computer" and isinstance(event.data.get("content"), str)
        if waiting and event.data.get("format") == "active_line":
            yield event._replace(end=waiting[0].offset)  # a reader that resumes here has not had what waits
            continue
        if waiting and (not printed or (event.number, event.data.get("stream")) != stream):
            yield _cleaned(waiting, clean)
            waiting = []
        if event.kind == "status":
            yield event._replace(data=without_secrets(event.data, clean))
        elif "data" in event.data and event.kind == "image":  # what is behind a figure
            yield event._replace(data={**event.data, "data": clean(event.data["data"])})
        elif event.kind not in TEXTS or not printed:
            yield event
        else:
            waiting.append(event)
            stream = event.number, event.data.get("stream")
            text = "".join(piece.data["content"] for piece in waiting)
            if text[-1:] in ("\n", "\r") and text.count(_KEY_BEGINS) <= text.count(_KEY_ENDS):
                yield _cleaned(waiting, clean)
                waiting = []
    if waiting and rest:
        yield _cleaned(waiting, clean)


def _cleaned(pieces: list[Event], clean: Callable[[str], str]) -> Event:
    first, (_, end) = pieces[0], pieces[-1].position
    text = clean("".join(piece.data["content"] for piece in pieces))
    return first._replace(data={**first.data, "content": text}, end=end)


def without_secrets(value: Any, clean: Callable[[str], str]) -> Any:
    """Return the same data, with every text in it cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {key: without_secrets(each, clean) for key, each in value.items()}
    return [without_secrets(each, clean) for each in value] if isinstance(value, list) else value


def _size(data: Any) -> int:
    """Return how far a piece moves the reader on; a flag or a picture moves it by one."""
    content = data.get("content")
    return (len(content) or 1) if isinstance(content, str) else 1


def _joined(pieces: list[Chunk]) -> Iterator[Chunk]:
    """Join pieces that differ only in their text."""

    def kind(piece: Chunk) -> Any:
        is_text = isinstance(piece.get("content"), str) and piece["type"] in TEXTS
        return {**piece, "content": ""} if is_text else object()

    for _, group in itertools.groupby(pieces, kind):
        same = list(group)
        yield {**same[0], "content": "".join([piece["content"] for piece in same])} if len(same) > 1 else same[0]


def _weight(value: Any) -> int:
    """Estimate the characters in the fields of an event."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_weight, value.values()))
    return sum(map(_weight, value)) if isinstance(value, (list, tuple)) else 8
