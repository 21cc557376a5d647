"""The conversation as Markdown, its pictures in files beside it."""

from __future__ import annotations

import re
from urllib.parse import quote

from interpreter.export import Conversation, Document, pictures_folder
from interpreter.export.outputs import Page, Picture, Text, outputs_of, picture
from interpreter.session.journal.reader import (
    Block,
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


def markdown(conversation: Conversation) -> Document:
    """The document, with its pictures for the folder beside it."""
    folder = pictures_folder(conversation.path).name
    writing = _Writing(folder)
    writing.add(f"# {conversation.title}")
    for entry in conversation.entries:
        match entry:
            case Said(role="user"):
                writing.add(quoted(entry.text))
            case Said():
                writing.add(entry.text)
            case Shown(message=message):
                if (image := picture(message)) is not None:
                    writing.add_picture(image)
                else:
                    writing.add(quoted(str(message.get("content", ""))))
            case Block():
                writing.add(fenced(entry.code, conversation.registry.canonical(entry.language)))
                if entry.ran:
                    writing.add_outputs(entry)
                if reason := why_not(entry):
                    writing.add(f"*{reason}.*")
            case ToolCall():
                writing.add(fenced(str(entry), ""))
                writing.add_outputs(entry)
    notes = [f"Its pictures are in {folder}/."] if writing.pictures else []
    return Document("\n\n".join(writing.parts) + "\n", writing.pictures, notes)


class _Writing:
    """The parts of the text so far, and the pictures that it refers to by name in one folder."""

    def __init__(self, folder: str) -> None:
        self.parts: list[str] = []
        self.pictures: dict[str, bytes] = {}
        self._folder = folder

    def add(self, part: str) -> None:
        if part.strip():
            self.parts.append(part.strip("\n"))

    def add_picture(self, image: Picture) -> None:
        number = len(self.pictures) + 1
        name = f"figure-{number}{_EXTENSIONS.get(image.mime, '.png')}"
        self.pictures[name] = image.content
        self.add(f"![Figure {number}]({quote(self._folder)}/{name})")

    def add_outputs(self, of: Block | ToolCall) -> None:
        outputs = outputs_of(of.outputs, richest=False)
        printed = any(isinstance(output, Text) for output in outputs)
        for output in outputs:
            match output:
                case Picture():
                    self.add_picture(output)
                case Page(html=html) if not printed:
                    self.add(fenced(html, "html"))
                case Text(text=text, mime="text/markdown" | "text/latex"):
                    self.add(text)
                case Text(text=text) if text.strip():
                    self.add(fenced(text, "text"))


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
