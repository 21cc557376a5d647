"""Files attached to a message: those it names as `@path`, and images it names by path."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from dataclasses import dataclass

from interpreter.api import OpenInterpreter
from interpreter.messages import Message
from interpreter.session import Event

IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_QUOTED = r"\"(?:[^\"\\\n]|\\.)+\"|'[^'\n]+'"
_AT = rf"(?<!\S)@(?P<at>{_QUOTED}|(?:\\.|[^\s\"'])(?:\\.|\S)*)"
_PATH = rf"(?<!\S)(?P<path>{_QUOTED}|file://\S+|(?:~|\.{{0,2}})/(?:\\.|\S)+|[A-Za-z]:\\(?:\\.|\S)+)"
_NAMED = re.compile(rf"{_AT}|{_PATH}")
_SPACED = re.compile(r"(?<!\S)(?:/|[A-Za-z]:\\)\S[^\n]*?\.(?:png|jpe?g|gif|webp)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Attachment:
    """A file or folder attached to a message."""

    path: str
    is_image: bool = False


@dataclass(frozen=True)
class Outgoing:
    """The user's message with its attachments, ready to be sent."""

    messages: tuple[Message, ...]
    attached: tuple[Attachment, ...] = ()
    missing: tuple[str, ...] = ()  # named like files, but they don't exist
    hides_images: bool = False  # the model cannot see images: it gets their paths


def prepare(interpreter: OpenInterpreter, text: str, data: str = "") -> Outgoing:
    """Add the files that `text` names to it, and `data` as plain text.

    A model that can see gets the images. Of other files it gets the path: code can read what is in them.
    """
    folder, is_elsewhere = interpreter.computer.context.folder_here, interpreter.computer.context.elsewhere
    attached, sees = attachments(text, folder), interpreter.llm.vision
    if is_elsewhere:  # code there can't read files of this machine, but a model can see an image
        attached = [each for each in attached if each.is_image and sees]
    message: Message = {"role": "user", "type": "message", "content": f"{text}\n\n{data}" if data else text}
    others: list[Message] = [
        {"role": "user", "type": "image" if each.is_image and sees else "file", "format": "path", "content": each.path}
        for each in attached
    ]
    hidden = not sees and any(each.is_image for each in attached)
    return Outgoing((message, *others), tuple(attached), () if is_elsewhere else tuple(missing(text, folder)), hidden)


def send(interpreter: OpenInterpreter, outgoing: Outgoing) -> Generator[Event]:
    """Send a message and yield the events of the turn that answers it."""
    *before, last = outgoing.messages
    interpreter.messages.extend(before)
    yield from interpreter.respond(last)


def attachments(text: str, folder: str) -> list[Attachment]:
    """Find the paths that a message names, relative to this folder: those after an @, otherwise only images."""
    by_path: dict[str, Attachment] = {}
    for match in _NAMED.finditer(text):
        path = existing(match["at"] or match["path"], folder)
        if path is not None and (match["at"] or is_image(path)):
            by_path.setdefault(path, Attachment(path, is_image(path)))
    if not by_path and (spaced := _SPACED.search(text)) and os.path.isfile(spaced[0]):
        by_path[spaced[0]] = Attachment(spaced[0], True)
    return list(by_path.values())


def missing(text: str, folder: str) -> list[str]:
    """Find words after an @ that look like a file but are not one."""
    named = [match["at"] for match in _NAMED.finditer(text) if match["at"] and "://" not in match["at"]]
    return [name for name in named if re.search(r"[/.]\w", name) and existing(name, folder) is None]


def is_image(path: str) -> bool:
    return os.path.splitext(path)[1].lower() in IMAGES and os.path.isfile(path)


def existing(written: str, folder: str) -> str | None:
    """Return the path if it exists, also without the full stop that may end the sentence."""
    if written[0] in "\"'" and written[-1] == written[0]:
        spellings = [written[1:-1]]
    else:
        if written.startswith("file://"):
            from urllib.parse import unquote, urlsplit

            written = unquote(urlsplit(written).path)
        unescaped = re.sub(r"\\(.)", r"\1", written)
        spellings = [written, unescaped, unescaped.rstrip(".,;:!?)]}'\"")]
    for spelled in spellings:
        path = os.path.join(folder, os.path.expanduser(spelled))
        if os.path.exists(path):
            return os.path.normpath(path)
    return None
