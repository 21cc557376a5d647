"""The conversation as Markdown, its pictures in files beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from interpreter.export.outputs import Page, Picture, Text, outputs_of, picture
from interpreter.runtimes import BUILT_IN, Registry
from interpreter.session.journal.entries import (
    Block,
    Entry,
    Said,
    Shown,
    ToolCall,
)

_DECIDED = {"declined": "You said no to this block", "denied": "This block was not allowed to run"}
_ENDED = {
    "interrupted": "This block was interrupted",
    "timed_out": "This block took too long and was ended",
    "died": "This block took its session down with it",
    "background": "This block went on in the background",
}
_EXTENSIONS = {"image/jpeg": ".jpg", "image/svg+xml": ".svg", "image/gif": ".gif", "image/webp": ".webp"}


class Document:
    """The text, and the pictures that it refers to by name in one folder."""

    def __init__(self, folder: str) -> None:
        self.pictures: dict[str, bytes] = {}
        self._folder = folder
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        return "\n\n".join(self._parts) + "\n"

    def add(self, *parts: str) -> None:
        self._parts += [part.strip("\n") for part in parts if part.strip()]

    def add_picture(self, image: Picture) -> None:
        number = len(self.pictures) + 1
        name = f"figure-{number}{_EXTENSIONS.get(image.mime, '.png')}"
        self.pictures[name] = image.content
        self.add(f"![Figure {number}]({quote(self._folder)}/{name})")


def markdown(entries: Sequence[Entry], title: str, pictures_folder: str, registry: Registry = BUILT_IN) -> Document:
    """The document; the pictures are to be put into a folder of that name."""
    document = Document(pictures_folder)
    document.add(f"# {title}")
    for entry in entries:
        match entry:
            case Said(role="user"):
                document.add(quoted(entry.text))
            case Said():
                document.add(entry.text)
            case Shown(message=message):
                _show(document, message.get("type", ""), str(message.get("content", "")), message.get("format", ""))
            case Block():
                _write_block(document, entry, registry.canonical(entry.language))
            case ToolCall():
                document.add(fenced(str(entry), ""))
                _write_outputs(document, entry)
    return document


def _write_block(document: Document, block: Block, language: str) -> None:
    document.add(fenced(block.code, language))
    if not block.ran:
        document.add(f"*{why_not(block)}.*")
        return
    _write_outputs(document, block)
    if reason := why_not(block):
        document.add(f"*{reason}.*")


def _write_outputs(document: Document, of: Block | ToolCall) -> None:
    outputs = outputs_of(of.outputs, richest=False)
    printed = any(isinstance(output, Text) for output in outputs)
    for output in outputs:
        match output:
            case Picture():
                document.add_picture(output)
            case Page(html=html) if not printed:
                document.add(fenced(html, "html"))
            case Text(text=text, mime="text/markdown" | "text/latex"):
                document.add(text)
            case Text(text=text) if text.strip():
                document.add(fenced(text, "text"))


def _show(document: Document, kind: str, content: str, form: str) -> None:
    image = picture(content, form) if kind == "image" else None
    if image is not None:
        document.add_picture(image)
    else:
        document.add(quoted(content))


def why_not(block: Block) -> str:
    """Why the block did not run to its end; empty if it did."""
    if not block.ran:
        return _DECIDED.get(block.decision, "This block was not run")
    if block.ended in _ENDED:
        return _ENDED[block.ended]
    return "" if block.succeeded else "This block failed"


def fenced(text: str, language: str) -> str:
    """A fenced block, whatever fences the text itself has."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
