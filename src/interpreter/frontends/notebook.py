"""Conversations in a Jupyter notebook: text, figures and tables inline, questions in the notebook's input box."""

from __future__ import annotations

import base64
import getpass
import html
import sys
import time
from collections.abc import Generator, Iterator
from html.parser import HTMLParser
from typing import Any

from IPython.display import HTML, DisplayHandle, Image, Markdown, display

from interpreter.api import OpenInterpreter
from interpreter.console_text import OUTPUT, PROSE, visible, visible_line
from interpreter.messages import Chunk
from interpreter.questions import ANSWER, APPROVE, REFUSE, Answer, Question
from interpreter.session import Event
from interpreter.sigint import Guarded, call_user_code

QUESTION = "Run this code? (y/n, or say what to change) "
_REFRESH_INTERVAL = 0.1  # seconds between two updates of a text that grows
_YES = ("y", "yes")
_TABLE_TAGS = frozenset("div style table caption colgroup col thead tbody tfoot tr th td p br b i em strong".split())
_TABLE_ATTRIBUTES = frozenset("class border style scope scoped colspan rowspan align valign id halign".split())


def show_chat(interpreter: OpenInterpreter, message: Any = None) -> Iterator[Chunk]:
    """Show the answer to a message as it comes; without one, ask for messages until an empty one."""
    if message is not None:
        yield from show_events(interpreter, interpreter.respond(message))
        return
    while (typed := input("> ").strip()) not in ("", "exit", "quit"):
        yield from show_events(interpreter, interpreter.respond(typed))


def show_events(interpreter: OpenInterpreter | None, events: Iterator[Event]) -> Iterator[Chunk]:
    """Show events while they pass; interrupting the cell interrupts the turn, whose end is shown and recorded."""
    shown_for = interpreter or OpenInterpreter()
    yield from Guarded(_show(shown_for, events), shown_for.cancel)


def show_message(interpreter: OpenInterpreter, markdown: str) -> None:
    display(Markdown(markdown))


def _show(interpreter: OpenInterpreter, events: Iterator[Event]) -> Generator[Chunk]:
    questions, cell = interpreter.session.questions, _Cell(interpreter.verbose)
    with questions.answerable(("text", "password", "call", "offer"), _answer_now):
        for event in events:
            chunk = event.chunk
            if chunk is None:
                continue
            cell.show(chunk)
            question = questions.find(chunk["question"]) if "question" in chunk else None
            if question is not None and question.is_open and question.kind not in ("text", "password"):
                answer = _approve(chunk) if question.kind == "block" else _answer_now(question)
                if question.is_open:  # another front end may have answered it first
                    interpreter.session.answer(question.id, answer)
            yield chunk


def _approve(chunk: Chunk) -> Answer:
    """Ask about a block, below what it would do."""
    findings = [str(finding.get("message", finding)) for finding in chunk.get("findings", ())]
    for line in [*chunk.get("effects", ()), chunk.get("reason"), *findings, *chunk.get("widening", ())]:
        if line:
            print(visible(str(line)))
    typed = call_user_code(input, QUESTION).strip()
    if typed.lower() in _YES:
        return Answer(APPROVE)
    return Answer(REFUSE, None if typed.lower() in ("", "n", "no") else typed)


def _answer_now(question: Question) -> Answer:
    """Ask the user for input that code wants, or whether it may call a tool."""
    prompt = visible(question.text)
    if question.kind in ("call", "offer"):
        typed = call_user_code(input, f"{prompt} (y/n) ")
        return Answer(APPROVE if typed.strip().lower() in _YES else REFUSE)
    return Answer(ANSWER, call_user_code(getpass.getpass if question.kind == "password" else input, prompt))


class _Cell:
    """The output of the cell: one text at a time grows, everything else is added below."""

    def __init__(self, verbose: bool) -> None:
        self._types = ("message", "code", "reasoning") if verbose else ("message", "code")
        self._text = ""
        self._handle: DisplayHandle | None = None
        self._updated = 0.0

    def show(self, chunk: Chunk) -> None:
        """Show a chunk; text of the model is updated at most every tenth of a second, and at its end."""
        form, content = str(chunk.get("format", "")), chunk.get("content")
        match chunk:
            case {"start": True} | {"end": True}:
                self._refresh(chunk)
                self._text, self._handle = "", None
            case {"role": "assistant", "type": kind} if kind in self._types:
                self._text += str(content)
                if time.monotonic() - self._updated > _REFRESH_INTERVAL:
                    self._refresh(chunk)
            case {"type": "console", "format": "output"} if "also" not in chunk:
                sys.stdout.write(visible(str(content), OUTPUT))
                sys.stdout.flush()
            case {"type": "image"} if form.startswith("base64"):
                display(Image(data=base64.b64decode(str(content))))
            case {"type": "code", "role": "computer"}:
                display(_rich(form, str(content)))
            case {"type": "status", "format": "notice", "content": {"text": words}}:
                print(visible(str(words)))

    def _refresh(self, chunk: Chunk) -> None:
        if not self._text.strip():
            return
        text = visible(self._text, "" if chunk["type"] == "code" else PROSE)
        if chunk["type"] == "code":
            fence = "`" * (3 + text.count("```"))
            text = f"{fence}{visible_line(chunk.get('format', ''))}\n{text}\n{fence}"
        if self._handle is None:
            self._handle = display(Markdown(text), display_id=True)
        else:
            self._handle.update(Markdown(text))
        self._updated = time.monotonic()


def _rich(language: str, content: str) -> Any:
    """Wrap output for display. HTML gets a separate origin: its scripts could otherwise act as the notebook."""
    match language:
        case "markdown":
            return Markdown(content)
        case "html" if _is_table(content):
            return HTML(content)
        case "html" | "svg":
            size = 'width="100%" height="450"'
            return HTML(f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(content)}" {size}></iframe>')
    return Markdown(f"```{language}\n{content}\n```")


def _is_table(content: str) -> bool:
    """Check that HTML is nothing but a table, as pandas makes them: no script, no handler, no address."""
    checker = _TableChecker()
    checker.feed(content)
    checker.close()
    return checker.is_plain


class _TableChecker(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.is_plain = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        styles = [value or "" for name, value in attrs if name == "style"]
        self.is_plain &= tag in _TABLE_TAGS and names <= _TABLE_ATTRIBUTES and not any(map(_loads, styles))

    def handle_data(self, data: str) -> None:
        self.is_plain &= not _loads(data)

    def handle_decl(self, decl: str) -> None:
        self.is_plain = False

    def unknown_decl(self, data: str) -> None:
        self.is_plain = False

    handle_pi = unknown_decl


def _loads(style: str) -> bool:
    return any(word in style.lower() for word in ("url(", "@import", "expression(", "\\"))
