"""The recorder of one interpreter: begins, takes up, branches and leaves sessions, and never stops the chat."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from interpreter.errors import ConversationNotFoundError
from interpreter.llm.usage import Usage
from interpreter.messages import UNFLAGGED, Chunk, Fold, Message
from interpreter.session import ACTION, EventLog, Ids
from interpreter.session.journal.file import (
    JournalFile,
    copied,
    new_folder,
    writing,
)
from interpreter.session.journal.reader import (
    VERSION,
    Facts,
    Session,
    Summary,
    find,
    past_events,
    read_original,
    title_of,
    usage_between,
    write_original,
)
from interpreter.session.journal.writer import Redaction, Scribe, kept, splice
from interpreter.version import __version__

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter


NO_IDS = Ids()


def stamp(number: int, ids: Ids) -> dict[str, Any]:
    """What an entry says of the event it belongs to."""
    known = {"n": number, "turn": ids.turn, "action": ids.action, "actor": ids.actor}
    return {name: value for name, value in known.items() if value}


class MessageEvents:
    """Publishes what changes in `messages` other than by streaming: what the user says, notes, a script's edits.

    The list is anybody's to change, so it is compared with what was published, before each request.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._known: list[Message] = []

    def take_up(self, messages: list[Message]) -> None:
        """These are known: they were published in an earlier run, or streamed."""
        self._known = [kept(message) for message in messages]

    def sync(self, messages: list[Message], ids: Ids, streamed: Collection[int]) -> dict[int, int]:
        """Publish the differences; by the identity of each new message, the number of its event."""
        found = splice(self._known, messages)
        if found is None:
            return {}
        numbers = {}
        if found.at == len(self._known):
            for message in found.messages:
                if id(message) not in streamed:
                    numbers[id(message)] = self._log.message(message, ids)
        elif found.drop != len(found.messages) or any(id(each) not in streamed for each in found.messages):
            data = {"at": found.at, "drop": found.drop, "messages": [dict(message) for message in found.messages]}
            self._log.publish("messages", data, ids)
        self._known[found.at : found.at + found.drop] = map(kept, found.messages)
        return numbers


Method = TypeVar("Method", bound=Callable[..., Any])


def _one_at_a_time(method: Method) -> Method:
    """Actions of other threads are recorded, too, while a turn is."""

    @wraps(method)
    def locked(self: Recorder, *args: Any, **kwargs: Any) -> Any:
        with self._writing:
            return method(self, *args, **kwargs)

    return cast(Method, locked)


class Recorder:
    """`interpreter.journal`: what is said and done here goes to a session in `conversation_history_path`.

    Nothing is written before the first message. If the disk is full or the folder cannot be written, there is one
    notice, the chat goes on, and every turn tries again.
    """

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self._scribe: Scribe | None = None
        self._broken = False
        self._told = False
        self.notice: Chunk | None = None  # what the user should be told next
        self._facts = Facts()  # what is known of a session that is not written yet
        self._before = Usage()  # what the interpreter had spent before this session
        self._note: str | None = None
        self._resumed = False
        self._replies: set[str] = set()
        self._pid = os.getpid()
        self._own_lock = threading.RLock()
        self._messages: MessageEvents | None = None

    @property
    def _writing(self) -> AbstractContextManager[Any]:
        """One lock for the log and its journals: an event is published and recorded, or recorded and published."""
        session = vars(self._interpreter).get("session")
        return session.log.writing if session is not None else self._own_lock

    # -- facts ---------------------------------------------------------------------------------------------------

    @property
    def root(self) -> Path:
        """Where sessions are."""
        return Path(self._interpreter.conversation_history_path).expanduser()

    @property
    def id(self) -> str | None:
        """The session's id, None as long as nothing is written."""
        return self._scribe.facts.id if self._scribe else None

    @property
    def path(self) -> Path | None:
        """The session's folder, None as long as nothing is written."""
        return self._scribe.folder if self._scribe else None

    @property
    def block(self) -> int | None:
        """The number of the block that was proposed last."""
        return self._scribe.blocks if self._scribe else None

    @property
    def title(self) -> str:
        return self._scribe.facts.title if self._scribe else self._facts.title

    @property
    def usage(self) -> Usage:
        """What the session has used and cost, earlier runs of it included."""
        return usage_between(self._interpreter.llm.usage, self._before)

    @property
    def is_in_step(self) -> bool:
        """Whether the record has the whole conversation."""
        scribe = self._scribe
        return scribe is not None and not self._broken and scribe.known == self._interpreter.messages

    @property
    def _events(self) -> MessageEvents:
        if self._messages is None:
            self._messages = MessageEvents(self._interpreter.session.log)
        return self._messages

    def read(self) -> Session | None:
        """The session as its journal tells it now, None if there is none."""
        self.sync()
        return Session.open(self._scribe.folder) if self._scribe else None

    # -- a turn --------------------------------------------------------------------------------------------------

    @_one_at_a_time
    def begin_turn(self, fold: Fold, ids: Ids = NO_IDS) -> None:
        """The user has said something: publish and record it, and whatever else has changed since the last turn."""
        if not self._interpreter.conversation_history:
            self._leave()
            self.announce(ids, fold.made)
            return
        if self._pid != os.getpid():
            self._disown()
        self._tell_model()
        try:
            scribe = self._scribe or self._begin()
            self._scribe, self._broken = scribe, False
            scribe.fold = fold
            self.announce(ids, fold.made)
            if self._resumed:
                scribe.write("resumed", folder=self._folder(), model=self._interpreter.llm.model)
                self._resumed = False
        except OSError as error:
            self._give_up(error)

    def add(self, chunk: Chunk, number: int = 0, ids: Ids = NO_IDS) -> None:
        """A chunk of the turn; the fold has taken it. The publisher holds the lock."""
        scribe = self._scribe
        if scribe is None or self._broken:
            return
        try:
            if scribe.stamp.get("n") != number:  # else it is the next piece of the same text
                if chunk["type"] in UNFLAGGED:
                    scribe.write_open_text()
                scribe.stamp = stamp(number, ids)
            scribe.add(chunk)
        except OSError as error:
            self._give_up(error)

    @_one_at_a_time
    def record(self, number: int, kind: str, data: dict[str, Any], ids: Ids) -> None:
        """An event of the session that is no chunk: an action, an answer, a plan."""
        if self._scribe is None or self._broken:
            return
        try:
            self._scribe.write_open_text()
            self._scribe.stamp = stamp(number, ids)
            if kind == "action" and data["state"] == "running" and ids.turn:
                person = "user" if self._interpreter.in_terminal_interface else "library"
                self._scribe.running(person if self._scribe.asked else "auto_run")
            self._scribe.write(kind, **data)
        except OSError as error:
            self._give_up(error)

    @_one_at_a_time
    def announce(self, ids: Ids, streamed: Collection[int]) -> None:
        """Publish and record what has changed in the messages other than by streaming."""
        numbers = self._events.sync(self._interpreter.messages, ids, streamed)
        if self._scribe is not None and not self._broken:
            self._scribe.numbers |= numbers
            self._scribe.stamp = stamp(0, ids)
            self.sync()

    @_one_at_a_time
    def write(self, event: str, **fields: Any) -> None:
        """An entry about something other than the messages."""
        if self._scribe is None or self._broken:
            return
        if (action := ACTION.get()) is not None:
            self._scribe.stamp = stamp(0, action.ids)  # the last event may be another thread's
        try:
            self._scribe.write(event, **fields)
        except OSError as error:
            self._give_up(error)

    @_one_at_a_time
    def end_turn(self) -> None:
        """The turn is over, however it ended."""
        if self._scribe is None or self._broken:
            return
        error = sys.exception()
        how = {"error": type(error).__name__} if error is not None else {}
        try:
            self._scribe.sync()
            self._write_sent(self._scribe)
            self._scribe.write("turn", model=self._interpreter.llm.model, **how)
            self._scribe.settle()
            if self._interpreter.conversation_filename:
                write_original(self.root / self._interpreter.conversation_filename, self._forms())
        except OSError as problem:
            self._give_up(problem)

    def _forms(self) -> list[Message]:
        """The conversation as it is written down."""
        messages, redaction = self._interpreter.messages, self._redaction()
        return messages if redaction is None else [redaction.form(message)[0] for message in messages]

    def take_notice(self) -> Chunk:
        """What the user should be told now, once; there must be a notice."""
        notice, self.notice = self.notice, None
        assert notice is not None
        return notice

    def _give_up(self, error: OSError) -> None:
        self._broken = True
        if not self._told:
            why = error.strerror or str(error)
            text = f"This conversation is not being saved: {why} ({self.path or self.root}). The chat goes on."
            self.notice = {"role": "computer", "type": "status", "format": "notice", "content": {"text": text}}
        self._told = True

    def _write_sent(self, scribe: Scribe) -> None:
        """The forms in which things went to the model, if there is anything new in them."""
        forms = self._interpreter.llm.forms_sent()
        forms["rendered"] = self._interpreter.prompt.rendered
        replies = {key: blocks for key, blocks in forms.pop("replies").items() if key not in self._replies}
        news = {name: form for name, form in forms.items() if form != scribe.sent.get(name, {})}
        if news or replies:
            scribe.write("sent", **news, replies=replies)
            scribe.sent |= {name: dict(form) for name, form in news.items()}
            self._replies |= replies.keys()

    # -- between turns -------------------------------------------------------------------------------------------

    @_one_at_a_time
    def sync(self, event: str = "messages_replaced") -> None:
        """Record what has changed in `messages` since the last turn; `event` may be `undo`."""
        if self._scribe is None or self._broken:
            return
        try:
            self._scribe.sync(event)
        except OSError as error:
            self._give_up(error)

    @_one_at_a_time
    def rename(self, title: str) -> None:
        """Give the conversation another title."""
        self._facts.title = title
        if self._scribe is not None:
            with writing(self._scribe.folder):
                self._scribe.write("renamed", title=title)
                self._scribe.settle()

    def branch(self, title: str | None = None) -> str:
        """Go on in a new session that begins with all of this one; gives the new id."""
        old = self._scribe
        if old is None:
            raise ConversationNotFoundError("Nothing is saved yet, so there is nothing to branch from.")
        self.sync()
        scribe = self._copy_of(old, title or f"{old.facts.title} (branch)")
        with writing(self.root):
            self._interpreter.timeline.branch(scribe.folder)
        self._leave()
        self._scribe = scribe
        return scribe.folder.name

    def fork_from(self, other: Recorder) -> None:
        """Go on on one's own with a copy of what another recorder has written, and with what it has cost."""
        self._before, self._replies = other._before, set(other._replies)
        old = other._scribe
        if old is None:
            return
        other.sync()
        self._scribe = self._copy_of(old, f"{old.facts.title} (fork)")

    def resume(self, row: Summary | Session | str) -> Session:
        """Take up a session: its messages, its usage, and the forms in which things were sent.

        `row` is a row of the list, or the beginning of an id.
        """
        found = find(self.root, row) if isinstance(row, str) else row
        self._leave()
        is_original = isinstance(found, Summary) and found.is_original
        session = self._import(found.path) if is_original else self._take_up(found.path)
        interpreter = self._interpreter
        interpreter.messages = session.messages
        interpreter.last_messages_count = len(session.messages)
        self._before = interpreter.llm.usage
        interpreter.llm.resume(session.sent, session.usage)
        interpreter.prompt.rendered = dict(session.sent.get("rendered", {}))
        interpreter.timeline.take_up(session)
        self._events.take_up(session.messages)
        self._mark_lost(session)
        self._replies = set(session.sent.get("replies", {}))
        return session

    def _mark_lost(self, session: Session) -> None:
        """What was open when the last run ended is over; the numbers of events go on."""
        log, path = self._interpreter.session.log, session.path
        log.continue_after(session.last_number)
        log.history = lambda: past_events(path)
        for action in session.open_actions.values():
            ids = Ids(action.get("turn", ""), action["action"], action.get("actor", ""))
            log.publish("action", {"state": "ended", "kind": action["kind"], "outcome": "lost"}, ids, self)

    def tell_model(self, text: str | None) -> None:
        """What stands before the user's next message, for the model: where the conversation was interrupted."""
        self._note = text

    @_one_at_a_time
    def reset(self) -> None:
        """The conversation is to be forgotten: the session ends here, and the next message begins another."""
        self.sync()
        if self._scribe is not None and not self._broken:
            try:
                self._scribe.write("reset")
            except OSError as error:
                self._give_up(error)
        self._leave()
        self._facts, self._note = Facts(), None
        self._before = self._interpreter.llm.usage if "llm" in vars(self._interpreter) else Usage()

    @_one_at_a_time
    def close(self) -> None:
        """Record what has changed, and let others take the session up."""
        self.sync()
        self._leave()

    # -- sessions ------------------------------------------------------------------------------------------------

    def _begin(self) -> Scribe:
        folder = new_folder(self.root)
        interpreter = self._interpreter
        scribe = self._scribe_for(folder, Facts())
        self._facts.title = self._facts.title or title_of(interpreter.messages)
        facts = {"id": folder.name, "title": self._facts.title}
        where = {"folder": self._folder(), "model": interpreter.llm.model}
        if self._facts.imported_from:
            where["imported_from"] = self._facts.imported_from
        try:
            scribe.write("session", version=VERSION, program=__version__, **facts, **where)
        except OSError:
            scribe.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._replies = set()
        self._resumed = False
        return scribe

    def _scribe_for(self, folder: Path, facts: Facts) -> Scribe:
        return self._scribe_on(JournalFile(folder), folder, facts)

    def _scribe_on(self, journal: JournalFile, folder: Path, facts: Facts) -> Scribe:
        interpreter = self._interpreter
        messages, total = (lambda: interpreter.messages), (lambda: self.usage)
        return Scribe(journal, folder, facts, messages, total, redaction=self._redaction())

    def _redaction(self) -> Redaction | None:
        llm = self._interpreter.llm
        return Redaction(llm.known_secrets) if self._interpreter.redact_journal else None

    def _copy_of(self, old: Scribe, title: str) -> Scribe:
        with writing(self.root):
            scribe = self._scribe_for(copied(old.folder, self.root), replace(old.facts))
            scribe.known, scribe.blocks, scribe.sent = list(old.known), old.blocks, dict(old.sent)
            facts = {"id": scribe.folder.name, "title": title, "folder": self._folder(), "from": old.facts.id}
            scribe.write("branched", **facts)
            scribe.settle()
        return scribe

    def _take_up(self, path: Path) -> Session:
        with writing(path):
            journal = JournalFile(path)
        try:
            session = Session.open(path)
            journal.cut(session.length)
        except BaseException:
            journal.close()
            raise
        scribe = self._scribe_on(journal, path, session.facts)
        scribe.known = [kept(message) for message in session.messages]
        scribe.blocks = session.last_block
        scribe.sent = {name: session.sent.get(name, {}) for name in ("templates", "rendered")}
        self._scribe, self._broken, self._resumed = scribe, False, True
        self._facts = session.facts
        return session

    def _import(self, path: Path) -> Session:
        """A conversation of the original: the file stays as it is, what comes next goes to a new session."""
        messages = read_original(path)
        session = Session(path, messages=messages, times=[None] * len(messages))
        self._facts = Facts(title=title_of(session.messages), imported_from=str(path))
        session.facts = self._facts
        return session

    def _leave(self) -> None:
        scribe, self._scribe = self._scribe, None
        if scribe is None:
            return
        if not self._broken and self._pid == os.getpid():
            try:
                scribe.settle()
            except OSError as error:
                self._give_up(error)
        scribe.close()
        self._broken = False

    def _disown(self) -> None:
        """This process is a fork: the session stays its parent's."""
        self._pid = os.getpid()
        if self._scribe is not None:
            self._scribe.close()
        self._scribe = None

    def _folder(self) -> str:
        return os.path.abspath(str(self._interpreter.workspace))

    def _tell_model(self) -> None:
        """Put the note before what the user has just said."""
        note, self._note = self._note, None
        interpreter = self._interpreter
        if note is None:
            return
        known = len(self._scribe.known) if self._scribe else interpreter.last_messages_count - 1
        message: Message = {"role": "computer", "type": "message", "content": note}
        interpreter.messages.insert(min(known, len(interpreter.messages)), message)
        interpreter.last_messages_count += 1
