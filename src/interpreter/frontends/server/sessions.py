"""The sessions of the server: those that are live, those that are stored, who owns them and who may read them.

A user has a folder of journals, so a session is looked up among the user's own; the id alone opens nothing. A live
session has an interpreter. When it has been idle for a while, its variables are saved and its runtimes end; the next
use brings it back. Readers of events don't notice: they read from the log while there is one, and otherwise from the
journal.
"""

from __future__ import annotations

import copy
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from interpreter import errors
from interpreter.api import OpenInterpreter
from interpreter.app import conversations, result_of
from interpreter.config.homes import make_folder, our_folder
from interpreter.config.setting import give_settings, given_settings
from interpreter.errors import BusyError, InterpreterError
from interpreter.frontends.server.gate import LOCAL, Refused, User
from interpreter.host import files
from interpreter.host.memory import available_megabytes
from interpreter.llm.secrets import replace_secrets
from interpreter.questions import APPROVE, Answer, QuestionKind
from interpreter.session import Actor, Event, SetPermissions
from interpreter.session.events import events_after, redacted
from interpreter.session.journal import SavedSession, Summary
from interpreter.session.journal.file import NAME, Facts, read_summary
from interpreter.session.journal.reader import past_events

Result = TypeVar("Result")
KINDS: tuple[QuestionKind, ...] = get_args(QuestionKind)
_TURN = "A turn"
FAILED = "The server failed in this turn. Its terminal shows the error."
_ID = re.compile(r"[0-9a-f]{8,32}")
_SAVE_AFTER = 1.0  # seconds without work, before the variables are saved
_EVENT_NUMBER_GAP = (
    1000  # numbers that a new run of a session leaves out: the last run may have given some that no journal has
)
_SESSION_MEGABYTES = 60  # that a session which is being started will need


class SessionKey(NamedTuple):
    """A session: whose, and which."""

    owner: str
    id: str


class LiveSession:
    """A session with an interpreter. Runs one action at a time: other clients get a BusyError."""

    def __init__(self, hub: SessionManager, key: SessionKey, interpreter: OpenInterpreter) -> None:
        self.key, self.interpreter = key, interpreter
        self.used = time.monotonic()
        self.closed = False
        self._hub, self._actors = hub, dict[str, Actor]()
        self.due = self.used + hub.idle_seconds  # when the housekeeping looks after it
        self._unsaved = False
        self._work = ""  # what is being done, until its last event is published
        self._changed, self._open = threading.Condition(), ExitStack()
        session = interpreter.session
        self._open.enter_context(session.questions.answerable(KINDS))
        self._open.callback(session.log.subscribe(lambda: hub.wake(key)))
        if (folder := interpreter.journal.path) is not None:
            session.log.history = lambda: past_events(folder)

    def actor(self, user: User) -> Actor:
        """Return the client that acts for a user."""
        with self._changed:
            if user.name not in self._actors:
                owner = self.interpreter.user
                self._actors[user.name] = self.interpreter.session.add_actor("client", owner.source, sink=owner.sink)
            return self._actors[user.name]

    # -- what clients do -------------------------------------------------------------------------------------------

    @property
    def running(self) -> str:
        """Say what clients are doing here; empty if nothing."""
        return self._work if self._work != _TURN or self.interpreter.agent.responding else ""

    def do(self, what: str, function: Callable[[], Result]) -> Result:
        """Do something in this thread; BusyError if something is being done."""
        with self._changed:
            self._check_free()
            self._work = what
        try:
            return function()
        finally:
            self._finish()

    def say(self, messages: list[Any]) -> tuple[str, int]:
        """Start the turn that answers a message; return its id and the number of the last event before it.

        Its end and its error are events.
        """
        agent, session = self.interpreter.agent, self.interpreter.session
        turn = agent.turn(messages[-1])
        with self._changed:
            self._check_free()
            before = session.log.last
            agent.messages.extend(messages[:-1])
            session.start(turn, agent.actor, self._read_turn)
            self._work = _TURN
        return turn.id, before

    def change(self, settings: dict[str, Any], user: User) -> None:
        """Change settings for a client, even while an action is running."""
        agent, template = self.interpreter.agent, self._hub.template
        action = SetPermissions(agent.actor, change=lambda: change_settings(self.interpreter, settings, template))
        action.kind = "settings"
        agent.session.perform(action, self.actor(user)).result()

    def while_idle(self, function: Callable[[], object]) -> None:
        """Call a short function, unless an action is running. No action can start until the function returns."""
        with self._changed:
            if not self.running:
                function()

    def cancel(self, wait: bool = False) -> None:
        """Stop the running action, and withdraw its question."""
        session = self.interpreter.session
        self.interpreter.cancel()
        for actor in list(self._actors.values()):
            session.cancel(actor)
        session.questions.withdraw()
        with self._changed:
            self._changed.wait_for(lambda: not (wait and self._work))

    def _check_free(self) -> None:
        """Raise BusyError if something is being done. The caller holds the lock, and begins something."""
        self._await_last_event()
        if self.closed:
            raise BusyError("The session is being suspended. Try again in a moment.")
        if self.running:
            raise BusyError(f"{self.running} is running. Wait for it, or cancel it.")
        self.used = time.monotonic()

    def _await_last_event(self) -> None:
        """If a turn is over, wait until its last event is published, which takes a moment."""
        self._changed.wait_for(lambda: self.running or not self._work)

    def _finish(self) -> None:
        with self._changed:
            self._work, self.used, self._unsaved = "", time.monotonic(), True
            self.due = self.used + _SAVE_AFTER
            self._changed.notify_all()
        self._hub.news.set()

    def _read_turn(self, events: Iterator[Event]) -> None:
        try:
            for _ in events:
                pass
        except InterpreterError:
            pass  # clients read it in the last event
        except BaseException as error:  # noqa: BLE001 - the terminal shows it
            self._hub.failed(error)
        finally:
            self._finish()

    # -- housekeeping ----------------------------------------------------------------------------------------------

    def attend(self) -> None:
        """Drop old snapshots, and save the variables if the session was used since; otherwise put it to sleep."""
        idle, runtimes = self._hub.idle_seconds, self.interpreter.computer.runtimes
        self.due = time.monotonic() + idle
        self.while_idle(lambda: runtimes.forget_snapshots(self._hub.snapshots_per_session))
        if not self._unsaved:
            self._hub.retire(self, idle)
        elif not self.running:
            self._unsaved = False
            self.interpreter.save_variables_now()

    def stop(self) -> bool:
        """Accept no more work; False if the session is busy or has already stopped."""
        with self._changed:
            self._await_last_event()
            if self.closed or self.running or any(each.running for each in self.interpreter.computer.jobs):
                return False
            self.closed = True
            return True

    def end(self) -> None:
        """Save the variables, end the runtimes and close the journal."""
        with self._changed:
            self._changed.wait_for(lambda: not self._work, 60)
        interpreter = self.interpreter
        with ExitStack() as ending:
            ending.callback(self._open.close)
            ending.callback(interpreter.session.close)
            ending.callback(interpreter.journal.close)
            ending.callback(interpreter.computer.terminate)
            interpreter.save_variables_now()


class SessionManager:
    """All sessions of all users."""

    def __init__(self, template: OpenInterpreter, folder: Path | None = None) -> None:
        self.template, self.folder = template, folder or our_folder("data") / "server"
        make_folder(self.folder)
        self.idle_seconds = template.server_idle_minutes * 60
        self.failed: Callable[[BaseException], None] = lambda error: None  # told of errors that are ours
        self._live: dict[SessionKey, LiveSession] = {}
        self._starting = 0
        self._lock = threading.RLock()
        self._keys: dict[SessionKey, threading.RLock] = {}
        self._wakes: dict[SessionKey, set[Callable[[], None]]] = {}
        self._shares = _database(self.folder / "shares.db", "shares (owner, id, user, primary key (owner, id, user))")
        self._indexes: dict[str, Index] = {}
        self._closed = False
        self.news = threading.Event()  # something is due earlier than before
        self._housekeeping = threading.Thread(target=self._keep_house, name="housekeeping", daemon=True)
        self._housekeeping.start()

    # -- housekeeping --------------------------------------------------------------------------------------------

    def _keep_house(self) -> None:
        """Attend to each session when it is due, in one thread for all sessions."""
        while not self._closed:
            self.news.clear()
            with self._lock:
                first = min(self._live.values(), key=lambda live: live.due, default=None)
            if first is None or first.due > time.monotonic():
                self.news.wait(first.due - time.monotonic() if first is not None else None)
            else:
                with suppress(Exception):  # what could not be saved is saved later, or when the session ends
                    first.attend()

    # -- places --------------------------------------------------------------------------------------------------

    def root(self, owner: str) -> Path:
        """Return the folder with the journals of a user."""
        if owner == LOCAL:
            return Path(self.template.conversation_history_path).expanduser()
        return self.folder / "users" / owner / "conversations"

    def workspaces(self, owner: str) -> Path:
        """Return the folder that the workspaces of a user are in."""
        return Path(self.template.workspace) if owner == LOCAL else self.folder / "users" / owner / "workspaces"

    def folders(self, owner: str) -> dict[str, Path]:
        """List the user's stored folders. The local user's workspace is the server's folder, and not one of them."""
        found = {"conversations": self.root(owner)}
        if owner != LOCAL:
            found["workspaces"] = self.workspaces(owner)
            for name in self.ids(owner):
                with suppress(OSError):
                    folder = Path(read_summary(self.root(owner) / name).folder)
                    if folder.parent.parent == Path(os.path.realpath(our_folder() / "forks")):
                        found[f"workspaces/copy-{name}"] = folder
        return found

    def locate(self, user: User, name: str, write: bool = False) -> SessionKey:
        """Find a session that the user owns, or to read one that is shared with them. Others don't exist for them."""
        if _ID.fullmatch(name):
            own = SessionKey(user.name, name)
            if user.role == "owner" and self.exists(own):
                return own
            shared = self._query("select owner from shares where id = ? and user = ?", name, user.name)
            if not write and shared and (self.root(shared[0][0]) / name / NAME).is_file():
                return SessionKey(shared[0][0], name)
        raise Refused(404, "not_found", "You have no such session. GET /api/sessions lists yours.")

    # -- live sessions -------------------------------------------------------------------------------------------

    def create(self, owner: str, workspace: str = "", settings: dict[str, Any] | None = None) -> LiveSession:
        """Create a session."""
        with self._reserve_slot():
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
                    raise Refused(
                        400,
                        "workspace",
                        f"A workspace is a folder in {root}: {getattr(error, 'strerror', None) or error}.",
                    ) from None
                interpreter.workspace = str(Path(os.path.realpath(root), name))
            return self.adopt(owner, interpreter)

    def successor(self, live: LiveSession) -> LiveSession:
        """Create a session in the workspace of another."""
        with self._reserve_slot():
            interpreter = self._configured(live.key.owner, {})
            interpreter.workspace = live.interpreter.workspace
            return self.adopt(live.key.owner, interpreter)

    def adopt(self, owner: str, interpreter: OpenInterpreter) -> LiveSession:
        """Make a session of an interpreter."""
        return self._add(SessionKey(owner, interpreter.journal.begin()), interpreter)

    def _add(self, key: SessionKey, interpreter: OpenInterpreter) -> LiveSession:
        with self._lock:
            before, live = self.snapshots_per_session, LiveSession(self, key, interpreter)
            self._live[key] = live
            for other in self._live.values() if self.snapshots_per_session < before else ():
                other.due = 0.0  # to keep fewer snapshots
            self.news.set()
        return live

    @property
    def snapshots_per_session(self) -> int:
        """Return how many snapshots an idle session keeps: fewer, the more sessions are live."""
        return max(0, self.template.server_max_sessions // max(1, len(self._live)) - 1)

    def find(self, key: SessionKey) -> LiveSession | None:
        return self._live.get(key)

    def exists(self, key: SessionKey) -> bool:
        return key in self._live or (self.root(key.owner) / key.id / NAME).is_file()

    def open(self, key: SessionKey) -> LiveSession:
        """Return the session; wake it if it is not live."""
        with self._key_lock(key):
            if (live := self._live.get(key)) is not None:
                live.used = time.monotonic()
                return live
            path = self.root(key.owner) / key.id
            with self._reserve_slot(), ExitStack() as failing:
                interpreter = self._configured(key.owner, {})
                failing.callback(interpreter.journal.close)
                failing.callback(interpreter.computer.terminate)
                facts = read_summary(path)
                interpreter.workspace = self._workspace_of(key.owner, facts.folder)
                interpreter.session.log.continue_after(SavedSession.open(path).last_number + _EVENT_NUMBER_GAP)
                result_of(conversations.resume(interpreter, Summary(path, facts)))

                def agree(question: Any) -> Answer:
                    return Answer(APPROVE, by="server")

                with interpreter.session.questions.answerable(["choose"], agree), suppress(InterpreterError):
                    result_of(conversations.restore_variables(interpreter))
                live = self._add(key, interpreter)
                failing.pop_all()
            self.wake(key)
            return live

    def fork(self, live: LiveSession, by: Actor) -> LiveSession:
        """Start a second session that continues from here, in a copy of the workspace."""
        with self._reserve_slot():
            return self.adopt(live.key.owner, live.interpreter.fork(by=by))

    def retire(self, live: LiveSession, idle: float = 0.0) -> bool:
        """Put a session to sleep, if it is doing nothing and was not used for `idle` seconds."""
        lock = self._key_lock(live.key)
        if not lock.acquire(blocking=False):
            return False
        try:
            if time.monotonic() - live.used < idle or not live.stop():
                return False
            self._end(live)
            with self._lock:
                self._live.pop(live.key, None)
        finally:
            lock.release()
        self.wake(live.key)
        return True

    def delete(self, key: SessionKey) -> None:
        """End a session and delete its record, and its workspace if that was made for it alone."""
        with self._key_lock(key):
            with self._lock:
                live = self._live.pop(key, None)
            path = self.root(key.owner) / key.id
            if live is not None:
                live.closed = True
                live.cancel()
                self._end(live)
            with suppress(OSError):
                facts = read_summary(path)
                if facts.conversation_file:
                    (path.parent / Path(facts.conversation_file).name).unlink(missing_ok=True)
                made, places = Path(facts.folder), [self.workspaces(key.owner), our_folder() / "forks"]
                own, forks = (Path(os.path.realpath(place)) for place in places)
                made = made.parent if made.parent.parent == forks else made  # each fork has its own folder
                is_own = key.owner != LOCAL and made.parent in (own, forks)
                if is_own and self._index(key.owner).uses(facts.folder) in ([], [key.id]):  # else as after a reset
                    files.remove(made)
            shutil.rmtree(path, ignore_errors=True)
            self._query("delete from shares where owner = ? and id = ?", *key)
        self.wake(key)

    def close(self) -> None:
        """End all sessions: their turns stop, their variables are saved."""
        with self._lock:
            self._closed, ending = True, list(self._live.values())
        self.news.set()
        self._housekeeping.join(60)
        for live in ending:
            live.closed = True
            live.cancel()
        with ThreadPoolExecutor(len(ending) or 1) as pool:
            pool.map(self._end, ending)
        self._shares.close()
        for index in self._indexes.values():
            index.close()

    def _end(self, live: LiveSession) -> None:
        try:
            live.end()
        except Exception as error:  # noqa: BLE001 - it has ended, but its variables were not saved
            self.failed(error)

    def _configured(self, owner: str, settings: dict[str, Any]) -> OpenInterpreter:
        """Make an interpreter with the settings of the server, and those that a client may choose."""
        made, template = OpenInterpreter(), self.template
        given = given_settings(template)
        given.pop("messages", None)
        give_settings(made, copy.deepcopy(given))
        made.messages, made.conversation_history, made.in_terminal_interface = [], True, False
        made.conversation_filename = None
        made.conversation_history_path = str(self.root(owner))
        if "computer" in vars(template):
            made.computer.languages = template.computer.languages
        if "agent" in vars(template):
            made.tools.copy_from(template.tools)
        change_settings(made, settings, template)
        return made

    def _workspace_of(self, owner: str, folder: str) -> str:
        """Return the folder where a stored session continues: its own, if that still exists and is the user's."""
        places = [self.workspaces(owner), our_folder() / "forks"]
        inside = any(Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(place)) for place in places)
        return folder if os.path.isdir(folder) and (owner == LOCAL or inside) else str(self.workspaces(owner))

    @contextmanager
    def _reserve_slot(self) -> Iterator[None]:
        """While this is entered, a session is being started. First there must be room for it, or room is made."""
        template, tried = self.template, set[SessionKey]()
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

    def _key_lock(self, key: SessionKey) -> threading.RLock:
        """Held while a session is opened, put to sleep or deleted."""
        with self._lock:
            return self._keys.setdefault(key, threading.RLock())

    # -- events ----------------------------------------------------------------------------------------------------

    def read(self, key: SessionKey, after: int, offset: int | None, most: int) -> list[Event]:
        """Return about `most` events that a reader has not had yet; a stored session stays asleep."""
        live = self._live.get(key)
        if live is not None:
            return list(map(_with_error_text, live.interpreter.session.read(after, offset, most)))
        path = self.root(key.owner) / key.id
        if not (path / NAME).is_file():
            return []
        secrets = self.template.llm.known_secrets()
        found = events_after(past_events(path), after, offset, most)
        return list(map(_with_error_text, redacted(found, lambda text: replace_secrets(text, secrets)[0])))

    def watch(self, key: SessionKey, wake: Callable[[], None]) -> Callable[[], None]:
        """Have `wake` called, from any thread, whenever the session has news; call the result to end that."""
        with self._lock:
            self._wakes.setdefault(key, set()).add(wake)

        def unwatch() -> None:
            with self._lock:
                self._wakes[key].discard(wake)
                if not self._wakes[key]:
                    del self._wakes[key]

        return unwatch

    def wake(self, key: SessionKey) -> None:
        for wake in list(self._wakes.get(key, ())):
            with suppress(RuntimeError):  # the loop of that reader has ended
                wake()

    # -- the list --------------------------------------------------------------------------------------------------

    def rows(self, user: User, words: str, most: int, before: float | None = None) -> tuple[list[dict[str, Any]], bool]:
        """Return a user's sessions, the latest first, and whether the list is complete."""
        rows, read_all = self._index(user.name).rows(words, most, before) if user.role == "owner" else ([], True)
        for owner, name in self._query("select owner, id from shares where user = ?", user.name):
            with suppress(OSError):
                row = {**_row(name, read_summary(self.root(owner) / name)), "shared_by": owner}
                text = f"{row['title']} {row['folder']}".lower()
                if (before is None or row["updated"] < before) and all(word in text for word in words.lower().split()):
                    rows.append(row)
        rows = sorted(rows, key=lambda row: -row["updated"])[:most]
        return [row | self._now(SessionKey(row.get("shared_by", user.name), row["id"])) for row in rows], read_all

    def _now(self, key: SessionKey) -> dict[str, Any]:
        """Describe what a session is doing."""
        live = self._live.get(key)
        waiting = len(live.interpreter.session.questions.open) if live is not None else 0
        return {"live": live is not None, "running": live.running if live is not None else "", "waiting": waiting}

    def ids(self, owner: str) -> list[str]:
        """List all sessions that are stored for a user, also those that can't be read."""
        with suppress(FileNotFoundError):
            return [each for each in os.listdir(self.root(owner)) if _ID.fullmatch(each)]
        return []

    def _index(self, owner: str) -> Index:
        with self._lock:
            if owner not in self._indexes:
                self._indexes[owner] = Index(self.root(owner))
            return self._indexes[owner]

    def row(self, key: SessionKey) -> dict[str, Any]:
        """Describe a stored session."""
        return _row(key.id, read_summary(self.root(key.owner) / key.id)) | self._now(key)

    def share(self, key: SessionKey, users: list[str]) -> None:
        """Let these users, and no others, read a session."""
        with self._lock, self._shares:
            self._shares.execute("delete from shares where owner = ? and id = ?", key)
            self._shares.executemany("insert or ignore into shares values (?, ?, ?)", [(*key, each) for each in users])

    def shared_with(self, key: SessionKey) -> list[str]:
        return [row[0] for row in self._query("select user from shares where owner = ? and id = ? order by user", *key)]

    def _query(self, words: str, *values: Any) -> list[Any]:
        with self._lock, self._shares:
            return self._shares.execute(words, values).fetchall()


class Index:
    """The stored sessions of one user, in SQLite: it reads the summaries of those that have changed, and no others."""

    def __init__(self, root: Path) -> None:
        make_folder(root)
        self._root, self._lock = root, threading.Lock()
        self._rest, self._closed = threading.Thread(), False  # reads what the first page doesn't need
        columns = "id primary key, stamp, title, folder, model, created, updated, cost, branched_from"
        self._data = _database(root / ".index.db", f"sessions ({columns})")
        self._data.create_function("lower", 1, lambda text: (text or "").lower())  # SQLite's knows only a to z

    def rows(self, words: str, most: int, before: float | None) -> tuple[list[dict[str, Any]], bool]:
        """Return the newest ones whose title or folder has all these words, and whether the index has all sessions.

        The first page without words comes at once, from the files that were changed last; the others are read behind
        it. All other requests wait for them.
        """
        first_page = not words and before is None
        read_all = self.refresh(most if first_page else None)
        clauses, values = ["updated < ?"], [before if before is not None else float("inf")]
        for word in words.lower().split():
            clauses.append("lower(title || ' ' || folder) like ? escape '\\'")
            values.append("%" + re.sub(r"([%_\\])", r"\\\1", word) + "%")  # type: ignore[arg-type]
        asked = f"select * from sessions where {' and '.join(clauses)} order by updated desc limit ?"
        with self._lock:
            found = self._data.execute(asked, (*values, most))
            names = [column[0] for column in found.description]
            made = [dict(zip(names, row, strict=True)) for row in found]
        return [{name: value for name, value in row.items() if name != "stamp"} for row in made], read_all

    def uses(self, folder: str) -> list[str]:
        """List the sessions that work in a folder."""
        self.refresh()
        with self._lock:
            return [row[0] for row in self._data.execute("select id from sessions where folder = ?", (folder,))]

    def refresh(self, most: int | None = None) -> bool:
        """Read changed sessions: all, or `most` now and the rest in the background. Return whether all were read."""
        if most is None and self._rest.is_alive():
            self._rest.join()
        changed, seen = list[tuple[int, str, str]](), set[str]()
        with self._lock:
            known = dict(self._data.execute("select id, stamp from sessions"))
        with os.scandir(self._root) as listing:
            for each in listing:
                with suppress(OSError):
                    if _ID.fullmatch(each.name):
                        found = os.stat(os.path.join(each.path, NAME))
                        seen.add(each.name)
                        if known.get(each.name) != (stamp := f"{found.st_mtime_ns} {found.st_size}"):
                            changed.append((found.st_mtime_ns, each.name, stamp))
        with self._lock, self._data:
            self._data.executemany("delete from sessions where id = ?", [(name,) for name in known.keys() - seen])
        changed.sort(reverse=True)
        rest = [] if most is None else changed[most:]
        self._index_sessions(changed[:most])
        if rest and not self._rest.is_alive():
            self._rest = threading.Thread(target=self._index_sessions, args=[rest], daemon=True)
            self._rest.start()
        return not rest

    def _index_sessions(self, changed: list[tuple[int, str, str]]) -> None:
        for some in (changed[at : at + 100] for at in range(0, len(changed), 100)):
            learned = []
            for _, name, stamp in some:
                row: dict[str, Any] = dict.fromkeys(_row(name, Facts()))  # of one that can't be read, and isn't listed
                with suppress(OSError, ValueError, TypeError):
                    row = _row(name, read_summary(self._root / name))
                learned.append([name, stamp, *list(row.values())[1:]])
            with self._lock:
                if self._closed:
                    return
                with self._data:
                    self._data.executemany(f"insert or replace into sessions values (?{', ?' * 8})", learned)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._data.close()


def _with_error_text(event: Event) -> Event:
    """Add a text that clients can show to the end of a turn that failed without one."""
    data = event.data
    if event.kind != "action" or (data["kind"], data.get("outcome")) != ("turn", "error") or "text" in data:
        return event
    is_ours = hasattr(errors, data["error"])  # its text is not in the journal
    text = f"The turn ended with an error: {data['error']}." if is_ours else FAILED
    return event._replace(data={**data, "text": text})


def _row(name: str, facts: Any) -> dict[str, Any]:
    return {
        "id": name,
        "title": facts.title,
        "folder": facts.folder,
        "model": facts.model,
        "created": facts.created,
        "updated": facts.updated,
        "cost": facts.usage.cost if not facts.usage.unpriced_tokens else None,
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

# What a client may set. Nothing here lets code run without an answer, widens a sandbox, or sends data elsewhere.
CLIENT_SETTINGS = {
    "model": "llm.model",
    "temperature": "llm.temperature",
    "max_tokens": "llm.max_tokens",
    "custom_instructions": "custom_instructions",
    "mode": "mode",
    "sandbox": "sandbox",
}


def change_settings(interpreter: OpenInterpreter, settings: dict[str, Any], server: OpenInterpreter) -> None:
    """Set what a client may set: permissions can be made tighter, never looser than those of the server."""
    for name, value in settings.items():
        if name not in CLIENT_SETTINGS:
            raise Refused(
                403, "setting", f"{name} can't be set over the network. These can: {', '.join(CLIENT_SETTINGS)}."
            )
        if name == "mode" and value not in (("plan",) if server.mode == "plan" else ("ask", "plan")):
            words = "Over the network, mode takes ask or plan. For auto, start the server with -y."
            raise Refused(403, "setting", "This server is in plan mode." if server.mode == "plan" else words)
        if name == "sandbox" and (interpreter.sandbox != "off" or value not in ("workspace", "read-only")):
            raise Refused(
                403,
                "setting",
                "Over the network, sandbox takes workspace or read-only, and only where the server has set none.",
            )
        group, _, leaf = CLIENT_SETTINGS[name].rpartition(".")
        setattr(interpreter.llm if group else interpreter, leaf, value)
