"""What a block put out, in the forms that a document can hold."""

from __future__ import annotations

import base64
import binascii
import html
import mimetypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interpreter.host.files import read_bytes
from interpreter.messages import Message

IMAGE_FORMATS = {"base64": "image/png", "base64.png": "image/png", "base64.jpeg": "image/jpeg"}
SVG = "image/svg+xml"

_OBJECT = re.compile(r"<[\w.]+(?: object)?(?: at 0x[0-9a-fA-F]+)?>|<Figure size .*>|<Figure.*Axes>")
_STYLE = re.compile(r"<(style|script)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_SHAPE = re.compile(r"\[?\d+ rows [x×] \d+ columns\]?")


@dataclass(frozen=True)
class Text:
    """What was printed, or the text form of a display of this MIME type."""

    text: str
    mime: str = ""


@dataclass(frozen=True)
class Picture:
    """An image; SVG as its source, others in base64."""

    mime: str
    data: str

    @property
    def content(self) -> bytes:
        return self.data.encode() if self.mime == SVG else base64.b64decode(self.data)

    @property
    def uri(self) -> str:
        data = base64.b64encode(self.data.encode()).decode() if self.mime == SVG else self.data
        return f"data:{self.mime};base64,{data}"


@dataclass(frozen=True)
class Page:
    """HTML that code displayed."""

    html: str


Output = Text | Picture | Page


def outputs_of(messages: Sequence[Message], richest: bool = True) -> list[Output]:
    """All outputs in order; unless told otherwise, without the text form that stood before a richer one."""
    found: list[Output] = []
    for message in messages:
        for output in _read(message):
            before = found[-1] if found else None
            if richest and not isinstance(output, Text) and isinstance(before, Text) and not before.mime:
                found[-1:] = _shortened(before, output)
            found.append(output)
    return found


def _read(message: Message) -> Iterator[Output]:
    content, form, mime = message.get("content"), message.get("format", ""), message.get("mime", "")
    if not isinstance(content, str) or not content:
        return
    match message.get("type"):
        case "image":
            yield (picture(message) if form != "path" else None) or Text(content)
        case "code":
            yield Page(content) if form == "html" else Text(content, "application/javascript")
        case "console" if mime == SVG:
            yield Picture(SVG, content)
        case "console":
            yield Text(content, mime)


def picture(message: Message) -> Picture | None:
    """The image of a message; None if there is none, it is only described, or cannot be read."""
    content, form = str(message.get("content", "")), message.get("format", "")
    if message.get("type") != "image":
        return None
    if form == "path":
        mime = mimetypes.guess_type(content)[0] or "image/png"
        try:
            data = read_bytes(content)
        except OSError:
            return None
        return Picture(mime, data.decode("utf-8", "replace") if mime == SVG else base64.b64encode(data).decode())
    try:
        base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return None
    return Picture(IMAGE_FORMATS[form], content) if form in IMAGE_FORMATS else None


def _shortened(printed: Text, richer: Output) -> list[Output]:
    """What was printed, without the text form of the display that follows."""
    lines = printed.text.rstrip("\n").split("\n")
    if _OBJECT.fullmatch(lines[-1].strip()):
        lines = lines[:-1]
    elif isinstance(richer, Page):
        # The last lines go if they say exactly the words of the table.
        words = _SHAPE.sub("", html.unescape(_TAG.sub(" ", _STYLE.sub(" ", richer.html)))).split()
        kept, said = list(lines), list[str]()
        while kept and len(said) < len(words):
            said = _SHAPE.sub("", kept.pop()).split() + said
        lines = kept if words and said == words else lines
    rest = "\n".join(lines)
    return [Text(rest + "\n")] if rest.strip() else []
