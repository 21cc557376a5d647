"""Conversations written to files: which formats there are, what they are made from, and how files are written.

To add a format, write a function `(ExportedConversation) -> Document` in a module of this package and give it a row in
EXPORTERS. Its command in the chat is a row in frontends/terminal/magics/__init__.py.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from interpreter.errors import ExportError
from interpreter.host.files import confined
from interpreter.llm.secrets import replace_secrets
from interpreter.messages import Message
from interpreter.runtimes import BUILT_IN, Registry, resolve
from interpreter.session.journal.reader import Entry, RecordedBlock, RecordedToolCall, Said, Shown
from interpreter.sigint import Hold

if TYPE_CHECKING:
    from interpreter.script.program import Installed

NAME_LENGTH = 40
TITLE_LENGTH = 80
_TEXTS = ("text", "code", "arguments")  # the attributes of entries that can contain secrets
_NOTE = re.compile(r"\[redacted: [^\]\n]{1,200}\]")


@dataclass(frozen=True)
class ExportedConversation:
    entries: Sequence[Entry]
    title: str
    registry: Registry = BUILT_IN
    path: Path = Path("conversation")  # the file that it will be written to
    folder: str = "."  # the session's workspace
    installed: Callable[[], Installed] | None = None  # lists the packages of the session's Python, for a program
    everything: bool = False  # for a program: keep all blocks that succeeded, not only those that the result needs


@dataclass
class ExportedProgram:
    """A program's source, and how many of the conversation's blocks are in it."""

    text: str
    blocks: int
    kept: int
    pictures: list[Message] = field(default_factory=list)  # what its blocks drew in the session


@dataclass
class Document:
    """The text of an export, with its pictures and notes."""

    text: str
    pictures: dict[str, bytes] = field(default_factory=dict)  # files for the folder of pictures beside it
    notes: list[str] = field(default_factory=list)  # sentences for the user, such as what was left out
    program: ExportedProgram | None = None


class Exporter(NamedTuple):
    """Describe a format: its file suffix, its name in menus and in sentences, and the function that makes it."""

    suffix: str
    label: str
    title: str
    function: str

    def make(self, conversation: ExportedConversation) -> Document:
        return resolve(self.function)(conversation)  # type: ignore[no-any-return]


EXPORTERS = {
    "notebook": Exporter(".ipynb", "notebook", "The notebook", "interpreter.export.notebook:notebook"),
    "markdown": Exporter(".md", "Markdown", "The conversation", "interpreter.export.documents:markdown"),
    "html": Exporter(".html", "HTML", "The page", "interpreter.export.documents:page"),
    "script": Exporter(".py", "script", "The program", "interpreter.script.program:program"),
}


# -- the file ----------------------------------------------------------------------------------------------------------


def title_of(entries: Sequence[Entry]) -> str:
    user_texts = (entry.text for entry in entries if isinstance(entry, Said) and entry.role == "user")
    line = next((line.strip() for text in user_texts for line in text.splitlines() if line.strip()), "Conversation")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


def file_name(title: str) -> str:
    """Turn a title into a name that every file system accepts."""
    name = ""
    for word in re.findall(r"[^\W_]+", title.lower()):
        if name and len(name) + 1 + len(word) > NAME_LENGTH:
            break
        name = f"{name}-{word}" if name else word[:NAME_LENGTH]
    return name or "conversation"


def choose_path(asked: str, folder: str, title: str, suffix: str, force: bool = False) -> Path:
    """Choose the path to write to. A generated name gets a number if it is taken; a given one raises ExportError."""
    base = Path(folder)
    path = base / Path(asked).expanduser() if asked else base / (file_name(title) + suffix)
    if asked and (path.is_dir() or asked.endswith(("/", os.sep))):
        path, asked = path / (file_name(title) + suffix), ""
    if asked and not path.suffix:
        path = path.with_suffix(suffix)
    if force or not is_taken(path):
        return path
    if asked:
        raise ExportError(f"{path} already exists. Choose another name, or add --force to replace it.")
    numbered = (path.with_name(f"{path.stem}-{number}{suffix}") for number in itertools.count(2))
    return next(free for free in numbered if not is_taken(free))


def is_taken(path: Path) -> bool:
    return os.path.lexists(path) or (path.suffix == ".md" and os.path.lexists(pictures_folder(path)))


def pictures_folder(path: Path) -> Path:
    """Return the folder for images of a document that can't embed them."""
    return path.with_name(f"{path.stem}_files")


def write(path: Path, text: str | bytes, force: bool = False, pictures: Mapping[str, bytes] | None = None) -> None:
    """Write a document and its pictures, atomically and without following links that code could have made."""
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    try:
        folder, name = confined(path)
        with Hold(), folder:
            if "/" in name:
                folder.mkdir(name.rpartition("/")[0], parents=True, exist_ok=True)
            beside = name.removesuffix(path.name) + pictures_folder(path).name
            if pictures:
                folder.mkdir(beside, exist_ok=True)
            for picture, content in (pictures or {}).items():
                folder.write_bytes(f"{beside}/{picture}", content)
            if force:
                folder.write_bytes(name, data)
                return
            try:
                file = folder.open(name, "xb")
            except FileExistsError as error:
                raise ExportError(f"{path} already exists. Add --force to replace it.") from error
            with file:
                file.write(data)
    except OSError as error:
        raise ExportError(f"Could not write {path}: {error.strerror}.") from error


# -- secrets -----------------------------------------------------------------------------------------------------------


def without_secrets(entries: Iterable[Entry], values: Mapping[str, str]) -> list[Entry]:
    """Return copies of the entries in which a note replaces each secret, in text, code and outputs."""

    def clean(message: Message) -> Message:
        text = message.get("content")
        if message.get("type") == "image" or not isinstance(text, str):
            return message
        copied = message.copy()
        copied["content"] = replace_secrets(text, values)[0]
        return copied

    cleaned: list[Entry] = []
    for entry in entries:
        changed: dict[str, Any] = {
            name: replace_secrets(getattr(entry, name), values)[0] for name in _TEXTS if hasattr(entry, name)
        }
        if isinstance(entry, RecordedBlock | RecordedToolCall):
            changed["outputs"] = tuple(map(clean, entry.outputs))
        elif isinstance(entry, Shown):
            changed["message"] = clean(entry.message)
        cleaned.append(replace(entry, **changed))
    return cleaned


def texts_of(entries: Iterable[Entry]) -> str:
    """Join everything in the entries (messages, code, arguments, outputs) into one text."""
    texts: list[str] = []
    for entry in entries:
        texts += [getattr(entry, name) for name in _TEXTS if hasattr(entry, name)]
        outputs = entry.outputs if isinstance(entry, RecordedBlock | RecordedToolCall) else ()
        shown = [entry.message] if isinstance(entry, Shown) else outputs
        texts += [str(each.get("content") or "") for each in shown if each.get("type") != "image"]
    return "\n".join(texts)


def secrets_notice(text: str) -> list[str]:
    """Count the secrets that were left out of a text, in a sentence for the user; empty if there were none."""
    count = len(_NOTE.findall(text))
    if not count:
        return []
    return [f"{count} secret{' was' if count == 1 else 's were'} left out. (Use --keep-secrets to include them.)"]
