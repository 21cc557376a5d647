"""The recorder of an agent: begins, resumes, branches and leaves sessions, and never stops the chat."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.errors import ConversationNotFoundError
from interpreter.llm.usage import Usage
from interpreter.messages import UNFLAGGED, Chunk, Fold, Message, notice
from interpreter.session import ACTION, Ids
from interpreter.session.journal.file import (
    Facts,
    JournalFile,
    JournalWriter,
    Secrets,
    copy_of,
    copy_session,
    new_folder,
    redact_message,
    splice,
    writing,
)
from interpreter.session.journal.reader import (
    VERSION,
    SavedSession,
    Summary,
    find,
    original_name,
    past_events,
    read_original,
    title_of,
    write_original,
)
from interpreter.version import __version__

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent

NO_IDS = Ids()


class Recorder:
    """`interpreter.journal`: saves messages and actions as a session in `conversation_history_path`.

    Nothing is written before the first message. If the disk is full or the folder cannot be written, there is one
    notice, the chat continues, and every turn tries again.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._writer: JournalWriter | None = None
        self._broken = False
        self._noticed = False
        self.notice: Chunk | None = None  # what to show to the user next
        self._facts = Facts()  # what is known of a session that is not written yet
        self._earlier_usage = Usage()  # of the interpreter before this session
        self._note: str | None = None
        self._resumed = False
        self._replies: set[str] = set()
        self._published: list[Message] = []  # the conversation that readers of events know
        self._pid = os.getpid()

    @property
    def _lock(self) -> AbstractContextManager[Any]:
        """One lock for the log and its journals: an event is published and recorded, or recorded and published."""
        return self._agent.session.log.writing

    @contextmanager
    def _recording(self) -> Iterator[JournalWriter | None]:
        """Yield the writer, or None if writing has failed. Other threads wait; a full disk does not stop the chat."""
        with self._lock:
            try:
                yield None if self._broken else self._writer
            except OSError as error:
                self._give_up(error)

    # -- facts ---------------------------------------------------------------------------------------------------

    @property
    def root(self) -> Path:
        return Path(self._agent.settings.conversation_history_path).expanduser()

    @property
    def id(self) -> str | None:
        """Return the session's id, None as long as nothing is written."""
        return self._writer.facts.id if self._writer else None

    @property
    def path(self) -> Path | None:
        """Return the session's folder, None as long as nothing is written."""
        return self._writer.folder if self._writer else None

    @property
    def block(self) -> int | None:
        """Return the number of the block that was proposed last."""
        return self._writer.blocks if self._writer else None

    @property
    def title(self) -> str:
        return self._writer.facts.title if self._writer else self._facts.title

    @property
    def usage(self) -> Usage:
        """Return what the session has used and cost, earlier runs of it included."""
        more, less = self._agent.llm.usage, self._earlier_usage
        counts = {name: count - getattr(less, name) for name, count in asdict(more).items() if name != "estimated"}
        return Usage(**counts, estimated=more.estimated)

    @property
    def is_in_step(self) -> bool:
        """Return whether the record has the whole conversation."""
        writer = None if self._broken else self._writer
        return writer is not None and writer.known == self._agent.messages

    def read(self) -> SavedSession | None:
        """Read the session as its journal has it now, None if there is none."""
        self.sync()
        return SavedSession.open(self._writer.folder) if self._writer else None

    def begin(self) -> str:
        """Begin the journal now and not with the first message; its id."""
        with self._lock, writing(self.root):
            self._writer = self._writer or self._begin()
            return self._writer.folder.name

    # -- a turn --------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open a journal for the turn that begins, if conversations are saved."""
        with self._recording():
            if not self._agent.settings.conversation_history:
                self._leave()
                return
            if self._pid != os.getpid():  # this process is a fork: the session stays its parent's
                self._pid = os.getpid()
                if self._writer is not None:
                    self._writer.close()
                self._writer = None
            if self._note is not None:  # it belongs before what the user has just said
                message: Message = {"role": "computer", "type": "message", "content": self._note}
                known = len(self._writer.known) if self._writer else self._agent.last_messages_count - 1
                self._agent.messages.insert(min(known, len(self._agent.messages)), message)
                self._agent.last_messages_count += 1
                self._note = None
            writer = self._writer or self._begin()
            self._writer, self._broken = writer, False
            if not writer.facts.title and self._agent.messages:  # it began before the first message
                writer.write("renamed", title=title_of(self._agent.messages))

    def begin_turn(self, fold: Fold, ids: Ids = NO_IDS) -> None:
        """Publish and record the user's message, and all other changes since the last turn."""
        self.announce(ids, fold)
        with self._recording() as writer:
            if writer is not None and self._resumed:
                writer.write("resumed", folder=self._folder, model=self._agent.llm.model)
                self._resumed = False

    def add(self, chunk: Chunk, number: int = 0, ids: Ids = NO_IDS) -> None:
        """Add a chunk of the turn, which is already part of the messages."""
        if self._writer is None:
            return
        with self._recording() as writer:
            if writer is None:
                return
            if writer.stamp.get("n") != number:  # else it is the next piece of the same text
                if chunk["type"] in UNFLAGGED:
                    writer.write_open_text()
                writer.stamp = _stamp(number, ids)
            writer.add(chunk)

    def record(self, number: int, kind: str, data: dict[str, Any], ids: Ids) -> None:
        """Record an event of the session that is no chunk: an action, an answer, a plan."""
        with self._recording() as writer:
            if writer is not None:
                writer.write_open_text()
                writer.stamp = _stamp(number, ids)
                if kind == "action" and data["state"] == "running" and ids.turn and data["kind"] != "turn":
                    person = "user" if self._agent.settings.in_terminal_interface else "library"
                    writer.begin_block(person if writer.asked else "auto_run")
                # The text of an error stays out: a server's may contain a key.
                writer.write(
                    kind, **{name: value for name, value in data.items() if (kind, name) != ("action", "text")}
                )

    def announce(self, ids: Ids, fold: Fold) -> None:
        """Publish and record what has changed in the messages other than by streaming through this fold.

        Such as the user's messages, notes, a script's edits. Anything may change the list, so it is compared.
        """
        numbers, log, messages, streamed = {}, self._agent.session.log, self._agent.messages, fold.made
        with self._recording() as writer:
            if found := splice(self._published, messages):
                if found.at == len(self._published):
                    for message in found.messages:
                        if id(message) not in streamed:
                            numbers[id(message)] = log.message(message, ids)
                elif found.drop != len(found.messages) or any(id(each) not in streamed for each in found.messages):
                    came = [dict(message) for message in found.messages]
                    log.publish("messages", {"at": found.at, "drop": found.drop, "messages": came}, ids)
                self._published[found.at : found.at + found.drop] = map(copy_of, found.messages)
            if writer is not None:
                writer.numbers |= numbers
                writer.fold = fold
                writer.stamp = _stamp(0, ids)
                writer.sync()

    def write(self, event: str, **fields: Any) -> None:
        """Record something other than messages."""
        with self._recording() as writer:
            if writer is not None:
                if (action := ACTION.get()) is not None:
                    writer.stamp = _stamp(0, action.ids)  # the last event may be another thread's
                writer.write(event, **fields)

    def end_turn(self) -> None:
        """Note the end of the turn, however it ended."""
        error, agent = sys.exception(), self._agent
        how = {"error": type(error).__name__} if error is not None else {}
        with self._recording() as writer:
            if writer is not None:
                writer.sync()
                forms = agent.llm.forms_sent()  # in which things were sent to the model
                forms["rendered"] = agent.prompt.rendered
                replies = {key: blocks for key, blocks in forms.pop("replies").items() if key not in self._replies}
                news = {name: form for name, form in forms.items() if form != writer.sent.get(name, {})}
                if news or replies:
                    writer.write("sent", **news, replies=replies)
                    writer.sent |= {name: dict(form) for name, form in news.items()}
                    self._replies |= replies.keys()
                if not agent.settings.conversation_filename:
                    agent.settings.conversation_filename = original_name(agent.messages, self.root)
                name = agent.settings.conversation_filename
                writer.write("turn", model=agent.llm.model, conversation_file=name, **how)
                writer.flush()
                write_original(self.root / name, self.stored_messages())

    def _give_up(self, error: OSError) -> None:
        self._broken = True
        if not self._noticed:
            why = error.strerror or str(error)
            self.notice = notice(
                f"Can't save this conversation: {why} ({self.path or self.root}). You can keep chatting."
            )
        self._noticed = True

    # -- between turns -------------------------------------------------------------------------------------------

    def sync(self, event: str = "messages_replaced") -> None:
        """Record what has changed in `messages` since the last turn; `event` may be `undo`."""
        with self._recording() as writer:
            if writer is not None:
                writer.sync(event)

    def rename(self, title: str) -> None:
        self._facts.title = title
        if self._writer is not None:
            with self._lock, writing(self._writer.folder):
                self._writer.write("renamed", title=title)
                self._writer.flush()

    def branch(self, title: str | None = None) -> str:
        """Continue in a new session that begins with all of this one; returns the new id."""
        old = self._writer
        if old is None:
            raise ConversationNotFoundError("There is nothing to branch from yet.")
        self.sync()
        writer = self._copy_of(old, title or f"{old.facts.title} (branch)")
        with writing(self.root):
            self._agent.timeline.files.branch(writer.folder)
        self._leave()
        self._writer = writer
        return writer.folder.name

    def fork_from(self, other: Recorder) -> None:
        """Continue with a copy of what another recorder has written, and with what it has cost."""
        self._earlier_usage, self._replies = other._earlier_usage, set(other._replies)
        if (old := other._writer) is not None:
            other.sync()
            self._writer = self._copy_of(old, f"{old.facts.title} (fork)")

    def resume(self, row: Summary | SavedSession | str) -> SavedSession:
        """Resume a session: its messages, its usage, and the forms in which things were sent.

        `row` is a row of the list, or the beginning of an id.
        """
        found = find(self.root, row) if isinstance(row, str) else row
        self._leave()
        if isinstance(found, Summary) and found.is_original:  # its file stays, what comes next goes to a new session
            messages = read_original(found.path)
            self._facts = Facts(title=title_of(messages), imported_from=str(found.path))
            session = SavedSession(found.path, self._facts, messages, [None] * len(messages))
        else:
            session = self._open(found.path)
        agent = self._agent
        agent.messages = session.messages
        agent.last_messages_count = len(session.messages)
        agent.settings.conversation_filename = session.facts.conversation_file
        self._earlier_usage = agent.llm.usage
        agent.llm.resume(session.sent, session.usage)
        agent.prompt.rendered = dict(session.sent.get("rendered", {}))
        agent.timeline.resume(session)
        self._published = list(map(copy_of, session.messages))
        log, path = agent.session.log, session.path
        log.continue_after(session.last_number)
        log.history = lambda: past_events(path)
        for action in session.open_actions.values():  # what was open when the last run ended is over
            ids = Ids(action.get("turn", ""), action["action"], action.get("actor", ""))
            log.publish("action", {"state": "ended", "kind": action["kind"], "outcome": "lost"}, ids, self)
        self._replies = set(session.sent.get("replies", {}))
        return session

    def tell_model(self, text: str | None) -> None:
        """Add a note for the model before the user's next message, about where the conversation was interrupted."""
        self._note = text

    def reset(self) -> None:
        """End the session, because the conversation is forgotten; the next message begins another."""
        with self._lock:
            self.sync()
            self.write("reset")
            self._leave()
        self._facts, self._note = Facts(), None
        self._earlier_usage = self._agent.llm.usage

    def close(self) -> None:
        """Record what has changed, and let other processes resume the session."""
        with self._recording():
            self.sync()
            self._leave()

    # -- sessions ------------------------------------------------------------------------------------------------

    def _begin(self) -> JournalWriter:
        folder = new_folder(self.root)
        writer = self._new_writer(JournalFile(folder), folder, Facts())
        if self._agent.messages and not self._facts.title:
            self._facts.title = title_of(self._agent.messages)
        facts = {"id": folder.name, "title": self._facts.title, "folder": self._folder, "model": self._agent.llm.model}
        if self._facts.imported_from:
            facts["imported_from"] = self._facts.imported_from
        try:
            writer.write("session", version=VERSION, program=__version__, **facts)
        except OSError:
            writer.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._replies = set()
        self._resumed = False
        return writer

    def _new_writer(self, journal: JournalFile, folder: Path, facts: Facts) -> JournalWriter:
        secrets = self._secrets()
        return JournalWriter(journal, folder, facts, lambda: self._agent.messages, lambda: self.usage, secrets=secrets)

    def stored_messages(self) -> list[Message]:
        """Return the conversation without the secrets that code printed, or as it is if `redact_journal` is off."""
        secrets, messages = self._secrets(), self._agent.messages
        if secrets is None:
            return [*messages]
        known = secrets()
        return [redact_message(each, lambda: known)[0] for each in messages]

    def _secrets(self) -> Secrets | None:
        return self._agent.llm.known_secrets if self._agent.settings.redact_journal else None

    def _copy_of(self, old: JournalWriter, title: str) -> JournalWriter:
        with writing(self.root):
            folder = copy_session(old.folder, self.root)
            writer = self._new_writer(JournalFile(folder), folder, replace(old.facts))
            writer.known, writer.blocks, writer.sent = list(old.known), old.blocks, dict(old.sent)
            facts = {"id": folder.name, "title": title, "folder": self._folder, "from": old.facts.id}
            writer.write("branched", **facts)
            writer.flush()
        return writer

    def _open(self, path: Path) -> SavedSession:
        with writing(path):
            journal = JournalFile(path)
        try:
            session = SavedSession.open(path)
            journal.cut(session.length)
        except BaseException:
            journal.close()
            raise
        writer = self._new_writer(journal, path, session.facts)
        writer.known = list(map(copy_of, session.messages))
        writer.blocks = session.last_block
        writer.sent = {name: session.sent.get(name, {}) for name in ("templates", "rendered")}
        self._writer, self._broken, self._resumed = writer, False, True
        self._facts = session.facts
        return session

    def _leave(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            if not self._broken and self._pid == os.getpid():
                try:
                    writer.flush()
                except OSError as error:
                    self._give_up(error)
            writer.close()
            self._broken = False

    @property
    def _folder(self) -> str:
        return os.path.abspath(str(self._agent.settings.workspace))


def _stamp(number: int, ids: Ids) -> dict[str, Any]:
    """Return the fields of an entry that identify its event."""
    known = {"n": number, "turn": ids.turn, "action": ids.action, "actor": ids.actor}
    return {name: value for name, value in known.items() if value}
