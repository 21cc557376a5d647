"""A session on the disk: its journal, large contents and summary, and the writer that keeps them in step with a chat.

A journal is lines of JSON that one process at a time appends to. Large contents are files beside it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import copy
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from jiter import from_json

from interpreter.config.homes import make_folder
from interpreter.errors import ConversationFileError, ConversationInUseError
from interpreter.host.files import BINARY, lock, write_all, write_bytes
from interpreter.llm.secrets import replace_secrets
from interpreter.llm.usage import Usage
from interpreter.messages import UNFLAGGED, Chunk, Fold, Message

NAME = "journal.jsonl"
BLOBS = "blobs"
VARIABLES = "variables"
SUMMARY = "summary.json"
MIN_BLOB_LENGTH = 8 * 1024  # characters; a text this long is stored as a blob, not in the journal itself
_COUNTS = [row.name for row in fields(Usage)]
WRITE_INTERVAL = 0.05  # seconds between two writes of a message that streams, at least
_REWRITE_SHARE = 0.02  # a text that is rewritten over and over is recorded after this share of the time it took so far
_REWRITE_RATE = 1_000_000  # and at most so many bytes a second
_REDACTION_PAUSE = 20  # times as long as the last search for secrets passes before the next
# The entries that are, or belong to, a numbered event of the session.
_NUMBERED = frozenset(
    {"message", "more", "decision", "action", "answer", "plan", "usage", "block", "ended", "call", "scan"}
)
_MAX_WHOLE_BYTES = 16 * 1024 * 1024
_FIXED = ("role", "type", "format", "recipient", "mime", "call")
_MISSING = object()
_PRINTED = ("console", "code", "message")  # an image is not text

JournalEntry = dict[str, Any]
Reference = dict[str, Any]
Secrets = Callable[[], Mapping[str, str]]  # returns the known secrets by name. Called only when something was printed.


class JournalFile:
    """A journal that is open for writing and locked.

    What `append` has written survives the death of this process; after `fsync` it survives that of the machine.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | BINARY, 0o600)
        try:
            lock(self._descriptor)
            self.length = os.fstat(self._descriptor).st_size
        except BaseException as error:
            os.close(self._descriptor)
            if isinstance(error, BlockingIOError):
                words = "Another interpreter has this conversation open. Close it there first, or pick another one."
                raise ConversationInUseError(words) from None
            raise

    def cut(self, length: int) -> None:
        """Remove everything after `length`: a line that a crash left incomplete."""
        if length < self.length:
            os.ftruncate(self._descriptor, length)
            self.length = length

    def append(self, entry: JournalEntry) -> None:
        """Write an entry completely or not at all; OSError if that fails."""
        data = line(entry)
        try:
            write_all(self._descriptor, data)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self.length)
            raise
        self.length += len(data)

    def fsync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file, which lets other processes write to it."""
        os.close(self._descriptor)


def line(entry: JournalEntry) -> bytes:
    try:
        return json.dumps(entry, ensure_ascii=False, separators=(",", ":"), default=str).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can hold
        return json.dumps(entry, separators=(",", ":"), default=str).encode() + b"\n"


def entries(folder: Path, offset: int = 0) -> Iterator[tuple[JournalEntry | None, int]]:
    """Each entry of a journal, None for a line that cannot be read, with the place in the file behind it."""
    with open(folder / NAME, "rb") as file:
        file.seek(offset)
        for text in file:
            offset += len(text)
            try:
                entry = from_json(text) if text[-1:] == b"\n" else None
            except ValueError:
                try:
                    entry = json.loads(text)  # slower, but knows half a surrogate pair
                except ValueError:
                    entry = None
            yield entry if isinstance(entry, dict) and "event" in entry else None, offset


class Blobs:
    """The large contents of one session, stored once under the hash of their bytes."""

    def __init__(self, session: Path) -> None:
        self.folder = session / BLOBS

    def put(self, text: str) -> Reference:
        """Store a text; base64 is stored as the bytes it stands for, so that people can look at it."""
        data = _decode_base64(text)
        encoding = "base64" if data is not None else "utf-8"
        if data is None:
            data = text.encode("utf-8", "surrogatepass")
        name = hashlib.sha256(data).hexdigest()
        if not (self.folder / name).exists():
            self.folder.mkdir(mode=0o700, exist_ok=True)
            write_bytes(self.folder / name, data, 0o600)
        return {"sha256": name, "encoding": encoding, "bytes": len(data)}

    def get(self, reference: Reference) -> str:
        """Return the text exactly as it was; OSError if it is missing."""
        data = (self.folder / str(reference["sha256"])).read_bytes()
        if reference["encoding"] == "base64":
            return base64.b64encode(data).decode("ascii")
        return data.decode("utf-8", "surrogatepass")

    # -- messages ------------------------------------------------------------------------------------------------

    def pack(self, message: Message) -> dict[str, Any]:
        """Convert a message to the journal's form: a large content becomes a reference."""
        content = message.get("content")
        if not isinstance(content, str) or len(content) < MIN_BLOB_LENGTH:
            return dict(message)
        return {**{key: value for key, value in message.items() if key != "content"}, "blob": self.put(content)}

    def unpack(self, packed: dict[str, Any]) -> Message:
        if "blob" not in packed:
            return packed  # type: ignore[return-value]
        try:
            content = self.get(packed["blob"])
        except OSError:
            content = "[The journal's copy of this is missing.]"
        return {**{key: value for key, value in packed.items() if key != "blob"}, "content": content}  # type: ignore[typeddict-item]

    def grow(self, message: dict[str, Any], entry: JournalEntry) -> None:
        """Apply an entry `more` to the message that it continues."""
        if "keep" in entry:
            text = entry["text"] if "text" in entry else self.get(entry["blob"])
            message["content"] = message["content"][: entry["keep"]] + text
        message.update(entry.get("set", {}))


def _decode_base64(text: str) -> bytes | None:
    if len(text) % 4 or " " in text[:100]:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


# -- the summary --------------------------------------------------------------------------------------------------


@dataclass
class Facts:
    """A session's summary for lists."""

    id: str = ""
    title: str = ""
    folder: str = ""
    model: str = ""
    created: float = 0.0
    updated: float = 0.0
    usage: Usage = field(default_factory=Usage)
    imported_from: str | None = None
    conversation_file: str | None = None
    branched_from: str | None = None

    def learn(self, entry: JournalEntry) -> None:
        """Update these facts from an entry about the session as a whole."""
        self.updated = entry.get("time", self.updated)
        match entry["event"]:
            case "session" | "branched" | "resumed" | "renamed" | "turn":
                for name in ("id", "title", "folder", "model", "imported_from", "conversation_file"):
                    if name in entry:
                        setattr(self, name, entry[name])
                if entry["event"] in ("session", "branched"):
                    self.created = entry["time"]
                    self.branched_from = entry.get("from")
            case "usage":
                self.usage = usage_from(entry["total"])


def usage_from(data: dict[str, Any]) -> Usage:
    """Usage from plain data; fields of other versions are left out."""
    return Usage(**{name: data[name] for name in _COUNTS if name in data})


def read_summary(path: Path) -> Facts:
    """Read the summary, and what was written after it: by a crash, or by a turn that is running."""
    size = (path / NAME).stat().st_size
    length, facts = 0, Facts()
    # Where there is none, or it is damaged, the journal has it all.
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        data: dict[str, Any] = json.loads((path / SUMMARY).read_bytes())
        known, used = data.pop("length"), usage_from(data.pop("usage"))
        if known <= size:
            length, facts = known, Facts(**data, usage=used)
    for entry, _ in entries(path, length) if length < size else ():
        if entry is not None:
            facts.learn(entry)
    return facts


# -- the folders of sessions -------------------------------------------------------------------------------------


def new_folder(root: Path) -> Path:
    """Make a folder with a name that no session has."""
    make_folder(root)
    while True:
        folder = root / secrets.token_hex(4)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            return folder


def copy_session(session: Path, root: Path) -> Path:
    """Copy a session as it is now; blobs and saved variables are shared."""
    folder = new_folder(root)
    shutil.copyfile(session / NAME, folder / NAME)
    (folder / NAME).chmod(0o600)
    for name in (BLOBS, VARIABLES):
        if (session / name).exists():
            shutil.copytree(session / name, folder / name, copy_function=_link_or_copy)
    return folder


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@contextlib.contextmanager
def writing(where: Path) -> Iterator[None]:
    """Turn an error of the system into one that says what to do."""
    try:
        yield
    except OSError as error:
        raise ConversationFileError(f"Can't write to {where}: {error.strerror}.") from error


# -- writing ------------------------------------------------------------------------------------------------------


class JournalWriter:
    """Keeps one journal in step with `messages()`.

    It compares, so it does not matter what changed the conversation: the stream, an edit, or the user's code. It
    compares with the conversation as it was; what it writes is without the secrets that code printed.
    """

    def __init__(
        self,
        journal: JournalFile,
        folder: Path,
        facts: Facts,
        messages: Callable[[], list[Message]],
        total: Callable[[], Usage],
        clock: Callable[[], float] = time.monotonic,
        secrets: Secrets | None = None,
        effort: Callable[[], float] = time.thread_time,
    ) -> None:
        self.folder, self.facts = folder, facts
        self.known: list[Message] = []  # the conversation that is recorded
        self.blocks = 0
        self.sent: dict[str, dict[str, Any]] = {}  # the forms that the record has
        self.fold: Fold | None = None
        self.blobs = Blobs(folder)
        self._file = journal
        self._messages, self._total = messages, total
        self._clock = clock
        self._secrets = secrets  # to take out of what code printed
        self._effort = effort  # CPU seconds: on a busy machine the clock runs on while others work
        self._last: Message | None = None  # the last message as the record has it, if it was written here
        self._held = False  # its end is not in the record yet
        self._due = 0.0
        self._began = 0.0  # when the message that streams did
        self.asked = False  # the user was asked about the block that was proposed last
        self._decided = False
        self._ran_at: float | None = None  # when the block that runs began
        # The number of the event that is being written, and the turn, action and actor that it belongs to.
        self.stamp: dict[str, Any] = {}
        self.numbers: dict[int, int] = {}  # those of messages that did not stream, by their identity

    # -- the conversation ----------------------------------------------------------------------------------------

    def sync(self, event: str = "messages_replaced", whole: bool = True) -> None:
        """Record every difference between the conversation and the record; the last message may still be growing."""
        stamp, self.stamp = self.stamp, {name: value for name, value in self.stamp.items() if name != "n"}
        try:
            messages = self._messages()
            found = splice(self.known, messages)
            if found is None or found.at == len(self.known):
                if whole or found is not None:
                    self._complete()
                for message in found.messages if found is not None else ():
                    self._message(message, whole or message is not messages[-1])
                return
            forms = [self._form(message, whole or message is not messages[-1]) for message in found.messages]
            packed = [self.blobs.pack(form) for form in forms]
            self.write(event, at=found.at, drop=found.drop, of=len(self.known), messages=packed)
            self.known[found.at : found.at + found.drop] = map(copy_of, found.messages)
            self._last = copy_of(forms[-1]) if forms and found.at + len(forms) == len(self.known) else None
        finally:
            self.stamp = stamp

    def add(self, chunk: Chunk) -> None:
        """Take one chunk of the stream, which the fold has taken already."""
        if "start" in chunk:
            self._began = self._clock()
        elif "end" in chunk:
            self._catch_up()
            if chunk["type"] == "code" and chunk["role"] == "assistant":
                self.blocks += 1
                self.asked, self._decided, self._ran_at = False, False, None
                self.write("block", block=self.blocks, at=len(self.known) - 1)
        elif chunk["type"] in UNFLAGGED:
            self._add_event(chunk)
        elif chunk.get("format") == "active_line":
            if chunk["content"] is None:
                self._end_block(chunk)
        elif self._clock() >= self._due:
            if self.fold is not None:
                self.fold.settle()
            self._catch_up(whole=False)

    def write_open_text(self) -> None:
        """Another event comes next: record the text that is streaming first, so that the journal keeps the order."""
        if self.stamp.get("n") and self.fold is not None and self.fold.is_open:
            self.fold.settle()
            self._catch_up(whole=False)

    def _catch_up(self, whole: bool = True) -> None:
        """Record what the last message has become; that is all that changes in a stream."""
        messages, known = self._messages(), self.known
        if len(messages) == len(known) + 1:
            self._complete()
            self._message(messages[-1], whole)
        elif not known or len(messages) != len(known) or not self._more(messages[-1], whole):
            self.sync(whole=whole)

    def _message(self, message: Message, whole: bool = True) -> None:
        at, form = len(self.known), self._form(message, whole)
        number = self.numbers.pop(id(message), None)
        self.write("message", at=at, message=self.blobs.pack(form), **({"n": number} if number else {}))
        self.known.append(copy_of(message))
        self._last = copy_of(form)
        self._due = max(self._due, self._clock() + WRITE_INTERVAL)

    def _more(self, message: Message, whole: bool) -> bool:
        """Write how the last message has grown; False if that cannot be said by what the record has."""
        if self._last is None:
            return False
        form = self._form(message, whole)
        change = growth(self._last, form)
        if not change:
            return change is not None
        text = change.get("text", "")
        rewritten = change.get("keep", 0) < len(self._last.get("content") or "")
        if len(text) >= MIN_BLOB_LENGTH:
            change = {key: value for key, value in change.items() if key != "text"} | {"blob": self.blobs.put(text)}
        self.write("more", **change)
        self.known[-1], self._last = copy_of(message), copy_of(form)
        now = self._clock()
        self._due = max(self._due, now + WRITE_INTERVAL)
        if rewritten:
            self._due = max(self._due, now + _REWRITE_SHARE * (now - self._began), now + len(text) / _REWRITE_RATE)
        return True

    def _complete(self) -> None:
        """Write the rest of the last message, if some of it was held back."""
        if self._held and self.known:
            self._more(self.known[-1], whole=True)

    def _form(self, message: Message, whole: bool) -> Message:
        """Return the message as it is written. The more work that is, the longer the wait until the next time."""
        self._due = 0.0
        if self._secrets is None:
            return message
        began = self._effort()
        form, self._held = redact_message(message, self._secrets, whole)
        self._due = self._clock() + _REDACTION_PAUSE * (self._effort() - began)
        return form

    # -- blocks --------------------------------------------------------------------------------------------------

    def begin_block(self, by: str) -> None:
        self._ran_at = self._clock()
        self.sync()  # it may have been edited
        if not self._decided:
            self.write("decision", block=self.blocks, decision="approved", by=by)

    def _add_event(self, chunk: Chunk) -> None:
        content = chunk.get("content") or {}
        match chunk["type"], chunk.get("format"):
            case "confirmation", _:
                self.asked = True
            case "decision", decision:
                self.sync()
                self._decided = True
                who = {"by": content.get("by"), "reason": content.get("reason", "")}
                self.write("decision", block=self.blocks, decision=decision, **who)
            case _, "usage":
                self.write("usage", used=content, total=asdict(self._total()))
            case _, "call":
                entry = {name: value for name, value in content.items() if name != "pictures"}
                for name in ("told", "error"):
                    if self._secrets is not None and name in entry:
                        entry[name], _ = replace_secrets(entry[name], self._secrets())
                if content.get("pictures"):
                    entry["pictures"] = [self.blobs.put(picture) for picture in content["pictures"]]
                self.write("call", block=self.blocks, **entry)
            case _, "scan":
                self.write("scan", block=self.blocks, tools=content["tools"], findings=content["findings"])

    def _end_block(self, chunk: Chunk) -> None:
        self._catch_up()
        if self._ran_at is None:
            return  # it did not run, and the output says why
        seconds = round(self._clock() - self._ran_at, 3)
        self._ran_at = None
        how: dict[str, Any] = {"ended": chunk.get("ended", "done"), "exit_code": chunk.get("exit_code")}
        path = chunk.get("truncated")
        if path is not None and os.path.isfile(path) and os.path.getsize(path) <= _MAX_WHOLE_BYTES:
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                output = file.read()
            if self._secrets is not None:
                output, _ = replace_secrets(output, self._secrets())
            how["whole"] = self.blobs.put(output)
        self.write("ended", block=self.blocks, **how, seconds=seconds)

    # -- the file ------------------------------------------------------------------------------------------------

    def write(self, event: str, **fields: Any) -> None:
        entry: JournalEntry = {"event": event, "time": round(time.time(), 3), **self.stamp, **fields}
        if event not in _NUMBERED:
            entry.pop("n", None)
        self._file.append(entry)
        self.facts.learn(entry)

    def flush(self) -> None:
        """Make sure that everything is on the disk, and write the summary: a list need not read the whole journal."""
        self.facts.usage = self._total()
        self._file.fsync()
        summary = {"length": self._file.length, **asdict(self.facts)}
        write_bytes(self.folder / SUMMARY, json.dumps(summary).encode(), 0o600)

    def close(self) -> None:
        self._file.close()


def redact_message(message: Message, secrets: Secrets, whole: bool = True) -> tuple[Message, bool]:
    """Return a message without the secrets that code printed, and whether some of it was held back.

    As long as it is not whole, its last word is held back: it may be the beginning of a secret. No secret has spaces in
    it but private keys, and those are found by their first line.
    """
    text = message.get("content")
    is_printed = message.get("role") == "computer" and message.get("type") in _PRINTED
    if not is_printed or not isinstance(text, str):
        return message, False
    end = len(text)
    if not whole and text and not text[-1].isspace():
        end -= len(text.rsplit(None, 1)[-1])
    clean, found = replace_secrets(text[:end], secrets())
    if not found and end == len(text):
        return message, False
    form = message.copy()
    form["content"] = clean
    return form, end < len(text)


# -- differences between two states of a conversation ------------------------------------------------------------


class Splice(NamedTuple):
    """A change of the conversation: from `at` on, `messages` replace `drop` messages."""

    at: int
    drop: int
    messages: Sequence[Message]


def splice(old: Sequence[Message], new: Sequence[Message]) -> Splice | None:
    """Find the one place where two lists of messages differ; None if they are equal."""
    shorter = min(len(old), len(new))
    at = 0
    while at < shorter and old[at] == new[at]:
        at += 1
    if at == len(old) == len(new):
        return None
    tail = 0
    while tail < shorter - at and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return Splice(at, len(old) - at - tail, new[at : len(new) - tail])


def growth(old: Message, new: Message) -> dict[str, Any] | None:
    """Describe how a message has grown: `keep` so many characters of its content, add `text`, `set` other fields.

    An empty dict if it is the same, None if it is another message.
    """
    if any(old.get(key) != new.get(key) for key in _FIXED) or not old.keys() <= new.keys():
        return None
    change: dict[str, Any] = {}
    fields = {key: value for key, value in new.items() if key != "content" and old.get(key, _MISSING) != value}
    before, after = old.get("content"), new.get("content")
    if isinstance(before, str) and isinstance(after, str):
        keep = len(before) if after.startswith(before) else len(os.path.commonprefix([before, after]))  # noqa: RUF071
        if keep < len(before) or keep < len(after):
            change |= {"keep": keep, "text": after[keep:]}
    elif before != after:
        fields["content"] = after
    if fields:
        change["set"] = fields
    return change


def copy_of(message: Message) -> Message:
    """Copy a message to compare with later; texts are shared, what can change inside is not."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return message.copy()
    return copy.deepcopy(message)
