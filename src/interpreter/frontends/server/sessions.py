"""The sessions of the server: those that are live, those that are stored, who owns them and who may read them.

A user has a folder of journals, so a session is looked up among the user's own; the id alone opens nothing. A live
session has an interpreter and one thread that does its work, one thing at a time. When it has been idle for a while,
its variables are saved and its runtimes end; the next use brings it back. Readers of events don't notice: they read
from the log while there is one, and otherwise from the journal.
"""

from __future__ import annotations

import copy
import os
import queue
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from interpreter.api import OpenInterpreter
from interpreter.app import conversations, result_of
from interpreter.config.homes import make_folder, our_folder
from interpreter.config.setting import give_settings, given_settings
from interpreter.errors import BusyError, InterpreterError
from interpreter.frontends.server.gate import LOCAL, Refused, User
from interpreter.host import files
from interpreter.llm.secrets import redacted as without_secrets
from interpreter.session import APPROVE, Actor, Answer, Event, Ids
from interpreter.session.actions import QuestionKind
from interpreter.session.events import events_after, redacted
from interpreter.session.journal import SavedSession, Summary
from interpreter.session.journal.file import NAME, read_summary
from interpreter.session.journal.reader import past_events

Result = TypeVar("Result")
KINDS: tuple[QuestionKind, ...] = get_args(QuestionKind)
IDLE = {"role": "computer", "type": "status", "format": "idle", "content": {}}
"""The last event of a turn: the session is free."""
_ID = re.compile(r"[0-9a-f]{8,32}")
_SAVE_AFTER = 1.0  # seconds without work, before the variables are saved
_GAP = 1000  # numbers that a new run of a session leaves out: the last run may have given some that no journal has
_SESSION_MEGABYTES = 60  # that a session which is being started will need


class Key(NamedTuple):
    """A session: whose, and which."""

    owner: str
    id: str


class Live:
    """A session with an interpreter, and the thread that works for it."""

    def __init__(self, hub: Hub, key: Key, interpreter: OpenInterpreter) -> None:
        self.key, self.interpreter = key, interpreter
        self.running = ""
        """What is being done; empty if nothing is."""
        self.used = time.monotonic()
        self.closed = False
        self._hub, self._actors = hub, dict[str, Actor]()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock, self._open = threading.RLock(), ExitStack()
        session = interpreter.session
        self._open.enter_context(session.questions.answerable(KINDS))
        self._open.callback(session.log.subscribe(lambda: hub.wake(key)))
        if (folder := interpreter.journal.path) is not None:
            session.log.history = lambda: past_events(folder)
        self._thread = threading.Thread(target=self._work, name=f"session {key.id}", daemon=True)
        self._thread.start()

    def actor(self, user: User) -> Actor:
        """The client that acts for a user."""
        with self._lock:
            if user.name not in self._actors:
                interpreter = self.interpreter
                self._actors[user.name] = interpreter.session.add_actor(
                    "client", interpreter, lambda: interpreter.journal
                )
            return self._actors[user.name]

    def submit(
        self, what: str, function: Callable[[], Result], after: Callable[[], object] = lambda: None
    ) -> Future[Result]:
        """Have something done in the session's thread, then `after`; BusyError if it is doing something."""
        done: Future[Result] = Future()

        def job() -> None:
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001 - for who waits for it
                self._over(after)
                done.set_exception(error)
            else:
                self._over(after)
                done.set_result(result)

        with self._lock:
            if self.closed:
                raise BusyError("The session is being put to sleep. Try again.")
            if self.running:
                raise BusyError(f"{self.running} is running. Wait for it, or cancel it.")
            self.running, self.used = what, time.monotonic()
        self._jobs.put(job)
        return done

    def _over(self, after: Callable[[], object]) -> None:
        with self._lock:  # who starts something next finds the end of this in the log
            self.running, self.used = "", time.monotonic()
            after()
        self._hub.wake(self.key)

    def say(self, messages: list[Any]) -> int:
        """Answer a message; the number of the last event before it.

        An error is an event of the session, and not raised. The last event says `idle`.
        """
        interpreter = self.interpreter

        def turn() -> None:
            try:
                interpreter.messages.extend(messages[:-1])
                with closing(interpreter.respond(messages[-1])) as events:
                    for _ in events:
                        pass
            except Exception as error:  # noqa: BLE001 - the readers get it as an event
                self.report(error)

        log = interpreter.session.log
        with self._lock:
            before = log.last
            self.submit("A turn", turn, lambda: log.publish("status", IDLE))
        return before

    def report(self, error: BaseException) -> None:
        """Publish an error of a turn."""
        session, known = self.interpreter.session, isinstance(error, InterpreterError)
        words = session.clean(str(error)) if known else "The server failed at this turn. Its terminal says more."
        chunk = {"role": "computer", "type": "error", "format": type(error).__name__, "content": words}
        session.log.publish("error", chunk, Ids(actor=self.interpreter.agent.id))
        if not known:
            self._hub.failed(error)

    def _work(self) -> None:
        saved = True
        while True:
            try:
                job = self._jobs.get(timeout=self._hub.idle_seconds if saved else _SAVE_AFTER)
            except queue.Empty:
                if not saved:
                    saved = True
                    with suppress(Exception):
                        self.interpreter.save_variables_now()
                    self._give_up_snapshots()
                elif self._hub.retire(self, self._hub.idle_seconds):
                    return
                continue
            if job is None:
                return
            job()
            saved = saved and job == self._give_up_snapshots

    def give_up_snapshots(self) -> None:
        """There are more sessions now: have the session's thread keep fewer snapshots, when it is idle."""
        self._jobs.put(self._give_up_snapshots)

    def _give_up_snapshots(self) -> None:
        self.interpreter.computer.runtimes.forget_snapshots(self._hub.snapshots_of_each)

    def stop(self) -> bool:
        """Take no more work; False if it is doing something."""
        with self._lock:
            if self.running or any(each.running for each in self.interpreter.computer.jobs):
                return False
            self.closed = True
            return True

    def end(self, wait: bool = True) -> None:
        """Save the variables, end the runtimes and close the journal."""
        self._jobs.put(None)
        if wait and threading.current_thread() is not self._thread:
            self._thread.join(60)
        interpreter = self.interpreter
        with ExitStack() as ending:
            ending.callback(self._open.close)
            ending.callback(interpreter.session.close)
            ending.callback(interpreter.journal.close)
            ending.callback(interpreter.computer.terminate)
            interpreter.save_variables_now()


class Hub:
    """All sessions of all users."""

    def __init__(self, template: OpenInterpreter, folder: Path | None = None) -> None:
        self.template, self.folder = template, folder or our_folder("data") / "server"
        make_folder(self.folder)
        self.idle_seconds = template.server_idle_minutes * 60
        self.failed: Callable[[BaseException], None] = lambda error: None
        """Told of errors that are ours."""
        self._live: dict[Key, Live] = {}
        self._starting = 0
        self._lock = threading.RLock()
        self._keys: dict[Key, threading.RLock] = {}
        self._wakes: dict[Key, dict[object, Callable[[], None]]] = {}
        self._shares = _database(self.folder / "shares.db", "shares (owner, id, user, primary key (owner, id, user))")
        self._indexes: dict[str, Index] = {}
        self._closed = False

    # -- places --------------------------------------------------------------------------------------------------

    def root(self, owner: str) -> Path:
        """The folder with the journals of a user."""
        if owner == LOCAL:
            return Path(self.template.conversation_history_path).expanduser()
        return self.folder / "users" / owner / "conversations"

    def workspaces(self, owner: str) -> Path:
        """The folder that the workspaces of a user are in."""
        return Path(self.template.workspace) if owner == LOCAL else self.folder / "users" / owner / "workspaces"

    def locate(self, user: User, name: str, write: bool = False) -> Key:
        """A session that the user owns, or to read one that is shared with them. All others are not there."""
        if _ID.fullmatch(name):
            own = Key(user.name, name)
            if user.role == "owner" and (own in self._live or (self.root(user.name) / name / NAME).is_file()):
                return own
            shared = self._query("select owner from shares where id = ? and user = ?", name, user.name)
            if not write and shared and (self.root(shared[0][0]) / name / NAME).is_file():
                return Key(shared[0][0], name)
        raise Refused(404, "not_found", "You have no such session. GET /api/sessions lists yours.")

    # -- live sessions -------------------------------------------------------------------------------------------

    def create(self, owner: str, workspace: str = "", settings: dict[str, Any] | None = None) -> Live:
        """A new session."""
        with self._admitted():
            interpreter = self._configured(owner, settings or {})
            root = self.workspaces(owner)
            make_folder(root)
            if not workspace and owner == LOCAL:
                interpreter.workspace = str(root)
            else:
                try:
                    base, name = files.beneath(root, workspace or os.urandom(6).hex())
                    with base:
                        if name:
                            base.mkdir(name, parents=True, exist_ok=True)
                except (OSError, ValueError) as error:
                    words = f"A workspace is a folder in {root}: {getattr(error, 'strerror', None) or error}."
                    raise Refused(400, "workspace", words) from None
                interpreter.workspace = str(Path(os.path.realpath(root), name))
            return self.adopt(owner, interpreter)

    def successor(self, live: Live) -> Live:
        """A new session in the workspace of another."""
        with self._admitted():
            interpreter = self._configured(live.key.owner, {})
            interpreter.workspace = live.interpreter.workspace
            return self.adopt(live.key.owner, interpreter)

    def adopt(self, owner: str, interpreter: OpenInterpreter) -> Live:
        """Make a session of an interpreter."""
        key = Key(owner, interpreter.journal.begin())
        return self._add(key, interpreter)

    def _add(self, key: Key, interpreter: OpenInterpreter) -> Live:
        with self._lock:
            before, live = self.snapshots_of_each, Live(self, key, interpreter)
            self._live[key] = live
            for other in self._live.values() if self.snapshots_of_each < before else ():
                other.give_up_snapshots()
        return live

    @property
    def snapshots_of_each(self) -> int:
        """How many earlier states of its variables an idle session keeps: fewer, the more sessions are live."""
        return max(0, self.template.server_max_sessions // max(1, len(self._live)) - 1)

    def find(self, key: Key) -> Live | None:
        return self._live.get(key)

    def exists(self, key: Key) -> bool:
        return key in self._live or (self.root(key.owner) / key.id / NAME).is_file()

    def open(self, key: Key) -> Live:
        """The session, brought back if it is not live."""
        with self._changing(key):
            if (live := self._live.get(key)) is not None:
                live.used = time.monotonic()
                return live
            path = self.root(key.owner) / key.id
            with self._admitted(), ExitStack() as failing:
                interpreter = self._configured(key.owner, {})
                failing.callback(interpreter.journal.close)
                failing.callback(interpreter.computer.terminate)
                facts = read_summary(path)
                interpreter.workspace = self._workspace_of(key.owner, facts.folder)
                interpreter.session.log.continue_after(SavedSession.open(path).last_number + _GAP)
                result_of(conversations.resume(interpreter, Summary(path, facts)))

                def agree(question: Any) -> Answer:
                    return Answer(APPROVE, by="server")

                with interpreter.session.questions.answerable(["choose"], agree), suppress(InterpreterError):
                    result_of(conversations.restore_variables(interpreter))
                live = self._add(key, interpreter)
                failing.pop_all()
            self.wake(key)
            return live

    def fork(self, live: Live) -> Live:
        """A second session that continues from here, in a copy of the workspace; call it in the session's thread."""
        with self._admitted():
            return self.adopt(live.key.owner, live.interpreter.fork())

    def retire(self, live: Live, idle: float = 0.0) -> bool:
        """Put a session to sleep, if it does nothing and was not used for so many seconds."""
        lock = self._key_lock(live.key)
        if not lock.acquire(blocking=False):
            return False
        try:
            if time.monotonic() - live.used < idle or not live.stop():
                return False
            try:
                live.end()
            except Exception as error:  # noqa: BLE001 - it has ended, but its variables were not saved
                self.failed(error)
            with self._lock:
                self._live.pop(live.key, None)
        finally:
            lock.release()
        self.wake(live.key)
        return True

    def delete(self, key: Key) -> None:
        """End a session and delete its record, and its workspace if that was made for it alone."""
        with self._changing(key):
            with self._lock:
                live = self._live.pop(key, None)
            path = self.root(key.owner) / key.id
            if live is not None:
                live.closed = True
                live.interpreter.cancel()
                live.interpreter.session.questions.withdraw()
                live.end()
            with suppress(OSError):
                facts = read_summary(path)
                if facts.conversation_file:
                    (path.parent / Path(facts.conversation_file).name).unlink(missing_ok=True)
                made, places = Path(facts.folder), [self.workspaces(key.owner), our_folder() / "forks"]
                own, forks = (Path(os.path.realpath(place)) for place in places)
                made = made.parent if made.parent.parent == forks else made  # a fork is in a folder of its own
                others = (each for each in path.parent.iterdir() if _ID.fullmatch(each.name) and each != path)
                in_use = any(read_summary(each).folder == facts.folder for each in others)  # as after a reset
                if key.owner != LOCAL and made.parent in (own, forks) and not in_use:
                    files.remove(made)
            shutil.rmtree(path, ignore_errors=True)
            self._query("delete from shares where owner = ? and id = ?", *key)
        self.wake(key)

    def close(self) -> None:
        """End all sessions: their turns stop, their variables are saved."""
        with self._lock:
            self._closed, ending = True, list(self._live.values())
        for live in ending:
            live.interpreter.cancel()
            live.interpreter.session.questions.withdraw()
        threads = [threading.Thread(target=self._end_one, args=[live]) for live in ending]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._shares.close()
        for index in self._indexes.values():
            index.close()

    def _end_one(self, live: Live) -> None:
        with suppress(Exception):
            live.end()

    def _configured(self, owner: str, settings: dict[str, Any]) -> OpenInterpreter:
        """An interpreter with the settings of the server, and those that a client may choose."""
        made, template = OpenInterpreter(), self.template
        given = given_settings(template)
        given.pop("messages", None)
        give_settings(made, copy.deepcopy(given))
        made.messages, made.conversation_history, made.in_terminal_interface = [], True, False
        made.conversation_filename = None
        made.conversation_history_path = str(self.root(owner))
        if "computer" in vars(template):
            made.computer.languages = template.computer.languages
        for tool in template.tools.others if "tools" in vars(template) else ():
            made.tools.append(tool)
        change_settings(made, settings)
        return made

    def _workspace_of(self, owner: str, folder: str) -> str:
        """Where a stored session continues: where it was, if that is still there and the user's."""
        places = [self.workspaces(owner), our_folder() / "forks"]
        inside = any(Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(place)) for place in places)
        return folder if os.path.isdir(folder) and (owner == LOCAL or inside) else str(self.workspaces(owner))

    @contextmanager
    def _admitted(self) -> Iterator[None]:
        """While this is entered, a session is being started. First there must be room for it, or room is made."""
        template, tried = self.template, set[Key]()
        while True:
            with self._lock:
                if self._closed:
                    raise Refused(503, "closing", "The server is closing.")
                free = available_megabytes()
                fits = free is None or free - self._starting * _SESSION_MEGABYTES >= template.server_free_memory
                if fits and len(self._live) + self._starting < template.server_max_sessions:
                    self._starting += 1
                    break
                idle = [each for each in self._live.values() if not each.running and each.key not in tried]
            longest = min(idle, key=lambda each: each.used, default=None)
            if longest is None:
                raise Refused(503, "full", "There is no room for another session. End one, or try again later.")
            tried.add(longest.key)
            self.retire(longest)
        try:
            yield
        finally:
            with self._lock:
                self._starting -= 1

    def _key_lock(self, key: Key) -> threading.RLock:
        with self._lock:
            return self._keys.setdefault(key, threading.RLock())

    @contextmanager
    def _changing(self, key: Key) -> Iterator[None]:
        with self._key_lock(key):
            yield

    # -- events ----------------------------------------------------------------------------------------------------

    def read(self, key: Key, after: int, offset: int | None, most: int) -> list[Event]:
        """What a reader has not had yet, about `most` events of it; a stored session stays asleep."""
        live = self._live.get(key)
        if live is not None:
            return live.interpreter.session.read(after, offset, most)
        path = self.root(key.owner) / key.id
        if not (path / NAME).is_file():
            return []
        secrets = self.template.llm.known_secrets()
        found = events_after(past_events(path), after, offset, most)
        return list(redacted(found, lambda text: without_secrets(text, secrets)[0]))

    def watch(self, key: Key, wake: Callable[[], None]) -> Callable[[], None]:
        """Have `wake` called, from any thread, whenever the session has news; call the result to end that."""
        mark = object()
        with self._lock:
            self._wakes.setdefault(key, {})[mark] = wake

        def unwatch() -> None:
            with self._lock:
                self._wakes.get(key, {}).pop(mark, None)
                if not self._wakes.get(key):
                    self._wakes.pop(key, None)

        return unwatch

    def wake(self, key: Key) -> None:
        for wake in list(self._wakes.get(key, {}).values()):
            with suppress(RuntimeError):  # the loop of that reader has ended
                wake()

    # -- the list --------------------------------------------------------------------------------------------------

    def rows(self, user: User, words: str, most: int, before: float | None) -> list[dict[str, Any]]:
        """The sessions of a user, those changed last first."""
        with self._lock:
            index = self._indexes.get(user.name)
            if index is None:
                index = self._indexes[user.name] = Index(self.root(user.name))
        rows = index.rows(words, most, before) if user.role == "owner" else []
        for owner, name in self._query("select owner, id from shares where user = ?", user.name):
            with suppress(OSError):
                rows.append({**_row(name, read_summary(self.root(owner) / name)), "shared_by": owner})
        return [{**row, "live": Key(user.name, row["id"]) in self._live} for row in rows]

    def row(self, key: Key) -> dict[str, Any]:
        """A stored session."""
        return {**_row(key.id, read_summary(self.root(key.owner) / key.id)), "live": key in self._live}

    def share(self, key: Key, users: list[str]) -> None:
        """Let these users, and no others, read a session."""
        with self._lock, self._shares:
            self._shares.execute("delete from shares where owner = ? and id = ?", key)
            self._shares.executemany("insert or ignore into shares values (?, ?, ?)", [(*key, each) for each in users])

    def shared_with(self, key: Key) -> list[str]:
        return [row[0] for row in self._query("select user from shares where owner = ? and id = ? order by user", *key)]

    def _query(self, words: str, *values: Any) -> list[Any]:
        with self._lock, self._shares:
            return self._shares.execute(words, values).fetchall()


class Index:
    """The stored sessions of one user, in SQLite: it reads the summaries of those that have changed, and no others."""

    def __init__(self, root: Path) -> None:
        make_folder(root)
        self._root, self._lock = root, threading.Lock()
        columns = "id primary key, stamp, title, folder, model, created, updated, cost, branched_from"
        self._data = _database(root / ".index.db", f"sessions ({columns})")

    def rows(self, words: str, most: int, before: float | None) -> list[dict[str, Any]]:
        """The newest ones whose title or folder has all these words."""
        with self._lock, self._data:
            self._refresh()
            clauses, values = ["updated < ?"], [before if before is not None else float("inf")]
            for word in words.lower().split():
                clauses.append("lower(title || ' ' || folder) like ? escape '\\'")
                values.append("%" + re.sub(r"([%_\\])", r"\\\1", word) + "%")  # type: ignore[arg-type]
            asked = f"select * from sessions where {' and '.join(clauses)} order by updated desc limit ?"
            found = self._data.execute(asked, (*values, most))
            names = [column[0] for column in found.description]
            made = [dict(zip(names, row, strict=True)) for row in found]
        return [{name: value for name, value in row.items() if name != "stamp"} for row in made]

    def _refresh(self) -> None:
        known = dict(self._data.execute("select id, stamp from sessions"))
        with os.scandir(self._root) as listing:
            for each in listing:
                if not _ID.fullmatch(each.name):
                    continue
                try:
                    found = os.stat(os.path.join(each.path, NAME))
                    stamp = f"{found.st_mtime_ns} {found.st_size}"
                    if known.pop(each.name, None) != stamp:
                        row = _row(each.name, read_summary(Path(each.path)))
                        marks = ", ".join("?" * (len(row) + 1))
                        values = [row["id"], stamp, *list(row.values())[1:]]
                        self._data.execute(f"insert or replace into sessions values ({marks})", values)
                except (OSError, ValueError, TypeError):
                    continue
        self._data.executemany("delete from sessions where id = ?", [(name,) for name in known])

    def close(self) -> None:
        self._data.close()


def _row(name: str, facts: Any) -> dict[str, Any]:
    cost = facts.usage.cost if not facts.usage.unpriced_tokens else None
    return {
        "id": name,
        "title": facts.title,
        "folder": facts.folder,
        "model": facts.model,
        "created": facts.created,
        "updated": facts.updated,
        "cost": cost,
        "branched_from": facts.branched_from,
    }


def _database(path: Path, table: str) -> sqlite3.Connection:
    def opened() -> sqlite3.Connection:
        data = sqlite3.connect(path, check_same_thread=False)
        data.execute("pragma journal_mode = wal")
        data.execute(f"create table if not exists {table}")
        return data

    try:
        return opened()
    except sqlite3.DatabaseError:  # a damaged index is made again
        path.unlink(missing_ok=True)
        return opened()


# -- settings ------------------------------------------------------------------------------------------------------

CHOOSABLE = {
    "model": "llm.model",
    "temperature": "llm.temperature",
    "max_tokens": "llm.max_tokens",
    "custom_instructions": "custom_instructions",
    "mode": "mode",
    "sandbox": "sandbox",
}
"""What a client may set. Nothing here lets code run without an answer, widens a sandbox, or sends data elsewhere."""


def change_settings(interpreter: OpenInterpreter, settings: dict[str, Any]) -> None:
    """Set what a client may set: permissions can be made tighter, never looser."""
    for name, value in settings.items():
        if name not in CHOOSABLE:
            words = f"{name} can't be set over the network. These can: {', '.join(CHOOSABLE)}."
            raise Refused(403, "setting", words)
        if name == "mode" and value not in ("ask", "plan"):
            raise Refused(
                403, "setting", "Over the network, mode takes ask or plan. For auto, start the server with -y."
            )
        if name == "sandbox" and (interpreter.sandbox != "off" or value not in ("workspace", "read-only")):
            words = "Over the network, sandbox takes workspace or read-only, and only where the server has set none."
            raise Refused(403, "setting", words)
        group, _, leaf = CHOOSABLE[name].rpartition(".")
        setattr(interpreter.llm if group else interpreter, leaf, value)


def available_megabytes() -> int | None:
    """The memory that can be used, of the machine or of the container; None where the system doesn't say."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text("ascii")
        found.append(int(text.split("MemAvailable:")[1].split()[0]) // 1024)
    with suppress(OSError, ValueError):
        most, used = (Path("/sys/fs/cgroup", name).read_text("ascii") for name in ("memory.max", "memory.current"))
        found.append((int(most) - int(used)) // 1024**2)
    return min(found, default=None)
