"""One turn on a terminal: shows its chunks, asks its questions, and handles keys and interrupts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from interpreter.frontends.terminal.approval import PreviewQuestion, allow_call, approve, shown_in_preview
from interpreter.frontends.terminal.terminal import Busy, Terminal
from interpreter.session import ANSWER, APPROVE, Answer, Event, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Chunk

INTERRUPTED = "Interrupted."
_INPUT: tuple[Literal["text", "password"], ...] = ("text", "password")
Result = TypeVar("Result")


def show_turn(terminal: Terminal, interpreter: OpenInterpreter, events: Iterator[Event]) -> Iterator[Chunk]:
    """Show the model's answer, ask its questions, and pass every chunk on."""
    with _busy(terminal, interpreter) as busy:
        terminal.display.fold_reasoning = not interpreter.verbose
        terminal.display.begin()
        yield from _show(terminal, interpreter, events, busy)


def show_block(terminal: Terminal, interpreter: OpenInterpreter, events: Iterator[Event]) -> Iterator[Chunk]:
    """Show the output of blocks that the user, not the model, asked for."""
    with _busy(terminal, interpreter) as busy:
        yield from _show(terminal, interpreter, events, busy, own_blocks=True)


def follow(
    interpreter: OpenInterpreter, events: Generator[Event, None, Result], answer: Callable[[Question], Answer]
) -> Result:
    """Run a use case to its end without showing its output; `answer` decides its questions. Gives its result."""
    with closing(events):
        while True:
            try:
                event = next(events)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]
            question = interpreter.session.questions.find(event.data.get("question", ""))
            if question is not None and question.is_open:
                interpreter.session.answer(question.id, answer(question))


@contextmanager
def _busy(terminal: Terminal, interpreter: OpenInterpreter) -> Iterator[Busy]:
    """The terminal during a turn; the session's code may ask the person there."""
    try:
        with Busy(terminal, interpreter).on() as busy:
            shared = interpreter.computer.context
            shared.size, shared.colors = terminal.tty.size(), terminal.colors
            if terminal.tty.can_type:
                shared.keyboard = terminal.tty.in_foreground
            # Input is typed in here, after `on_input`; calls, if code in this thread makes them.
            handler = partial(_ask, terminal, interpreter, busy)
            try:
                with interpreter.session.questions.answerable((*_INPUT, "call"), handler):
                    yield busy
            finally:
                if terminal.tty.can_type:
                    shared.keyboard = False
    finally:
        terminal.display.finish()


def _show(
    terminal: Terminal, interpreter: OpenInterpreter, events: Iterator[Event], busy: Busy, own_blocks: bool = False
) -> Iterator[Chunk]:
    reported = False
    try:
        for event in busy.interrupts.passing(events):
            if (
                own_blocks
                and event.kind == "action"
                and event.data["state"] == "begun"
                and event.data["kind"] == "block"
            ):
                busy.block_runs(None)
            chunk = event.chunk
            if chunk is None:
                continue
            if not shown_in_preview(terminal, chunk):
                terminal.display.show(chunk)
            busy.follow(chunk)
            question = interpreter.session.questions.find(chunk["question"]) if "question" in chunk else None
            if question is not None and question.is_open and question.kind not in _INPUT:
                answer = _ask(terminal, interpreter, busy, question)
                if answer is not None and question.is_open:  # another front end may have answered meanwhile
                    interpreter.session.answer(question.id, answer)
            reported = reported or chunk.get("ended") == "interrupted"
            yield chunk
    except KeyboardInterrupt:
        with busy.interrupts.state("inside"):
            interpreter.cancel()
            close = getattr(events, "close", None)
            if close is not None:
                close()
    terminal.interrupted = busy.interrupts.count > 0
    if terminal.interrupted and not reported:
        terminal.tell(INTERRUPTED)


def _ask(terminal: Terminal, interpreter: OpenInterpreter, busy: Busy, question: Question) -> Answer | None:
    """The person's answer; None if this terminal cannot give one."""
    if question.kind == "block":
        pending = question.subject
        preview = PreviewQuestion(terminal, interpreter, pending)
        answer = (preview.ask() if interpreter.preview else None) or approve(terminal, pending, preview)
        if answer.choice == APPROVE and "preview" not in answer.details:
            busy.block_runs(pending.language)
        return answer
    if question.kind == "call":
        return allow_call(terminal, question.subject.prompt)
    if question.kind not in _INPUT or not terminal.tty.can_type:
        return None
    try:
        return Answer(ANSWER, terminal.ask(question.subject.prompt, question.kind == "password"))
    except KeyboardInterrupt:
        interpreter.cancel()
        return None
