"""One turn on a terminal: its chunks are shown, its questions asked, its keys and interrupts heeded."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from interpreter.frontends.terminal.approval import PreviewQuestion, allow_call, approve, shown_in_preview
from interpreter.frontends.terminal.terminal import Busy, Terminal
from interpreter.session import ANSWER, APPROVE, Answer, Event, Question

if TYPE_CHECKING:
    from interpreter.agent.blocks import PendingBlock
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Chunk

INTERRUPTED = "Interrupted."
_INPUT: tuple[Literal["text", "password"], ...] = ("text", "password")
Result = TypeVar("Result")


def show_turn(terminal: Terminal, interpreter: OpenInterpreter, events: Iterator[Event]) -> Iterator[Chunk]:
    """Show the model's answer, ask what it asks, and pass every chunk on."""
    with _finished(terminal), Busy(terminal, interpreter).on() as busy, _at_hand(terminal, interpreter, busy):
        terminal.display.fold_reasoning = not interpreter.verbose
        terminal.display.begin()
        yield from _shown(terminal, interpreter, events, busy)


def follow(
    interpreter: OpenInterpreter, events: Generator[Event, None, Result], answer: Callable[[Question], Answer]
) -> Result:
    """Take a use case to its end, with this answer to its questions; its result. Its output is not shown."""
    with closing(events):
        while True:
            try:
                event = next(events)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]
            question = interpreter.session.questions.find(event.data.get("question", ""))
            if question is not None and question.is_open:
                interpreter.session.answer(question.id, answer(question))


def show_block(terminal: Terminal, interpreter: OpenInterpreter, events: Iterator[Event]) -> Iterator[Chunk]:
    """Show the output of blocks that somebody other than the model asked for."""
    with _finished(terminal), Busy(terminal, interpreter).on() as busy, _at_hand(terminal, interpreter, busy):
        yield from _shown(terminal, interpreter, _noticing_blocks(events, busy), busy)


def _noticing_blocks(events: Iterator[Event], busy: Busy) -> Iterator[Event]:
    try:
        for event in events:
            if event.kind == "action" and event.data["state"] == "begun" and event.data["kind"] == "block":
                busy.block_runs(None)
            yield event
    finally:
        _close(events)


def _shown(terminal: Terminal, interpreter: OpenInterpreter, events: Iterator[Event], busy: Busy) -> Iterator[Chunk]:
    told = False
    try:
        for event in busy.interrupts.passing(events):
            chunk = event.chunk
            if chunk is None:
                continue
            if not shown_in_preview(terminal, chunk):
                terminal.display.show(chunk)
            busy.follow(chunk)
            if "question" in chunk:
                _answer(terminal, interpreter, busy, chunk["question"])
            told = told or chunk.get("ended") == "interrupted"
            yield chunk
    except KeyboardInterrupt:
        with busy.interrupts.inside():
            interpreter.cancel()
            _close(events)
    terminal.interrupted = busy.interrupts.count > 0
    if terminal.interrupted and not told:
        terminal.tell(INTERRUPTED)


def _answer(terminal: Terminal, interpreter: OpenInterpreter, busy: Busy, question_id: str) -> None:
    """Ask the person at this terminal, unless somebody else has answered."""
    question = interpreter.session.questions.find(question_id)
    if question is not None and question.is_open and question.kind not in _INPUT:
        answer = _asked(terminal, interpreter, busy, question)
        if answer is not None and question.is_open:
            interpreter.session.answer(question.id, answer)


def _asked(terminal: Terminal, interpreter: OpenInterpreter, busy: Busy, question: Question) -> Answer | None:
    """What the person says; None if it is somebody else's to answer."""
    match question.kind:
        case "block":
            return _approve(terminal, interpreter, busy, question.subject)
        case "call":
            return allow_call(terminal, question.subject.prompt)
        case "text" | "password":
            return _type_in(terminal, interpreter, question)
    return None


def _type_in(terminal: Terminal, interpreter: OpenInterpreter, question: Question) -> Answer | None:
    if not terminal.tty.can_type:
        return None
    try:
        return Answer(ANSWER, terminal.ask(question.subject.prompt, question.kind == "password"))
    except KeyboardInterrupt:
        interpreter.cancel()
        return None


def _approve(terminal: Terminal, interpreter: OpenInterpreter, busy: Busy, pending: PendingBlock) -> Answer:
    preview = PreviewQuestion(terminal, interpreter, pending)
    answer = (preview.ask() if interpreter.preview else None) or approve(terminal, pending, preview)
    if answer.choice == APPROVE and "preview" not in answer.details:
        busy.block_runs(pending.language)
    return answer


@contextmanager
def _at_hand(terminal: Terminal, interpreter: OpenInterpreter, busy: Busy) -> Iterator[None]:
    """Code may ask the person at this terminal."""
    shared = interpreter.computer.context
    shared.size, shared.colors = terminal.tty.size(), terminal.colors
    with ExitStack() as after:
        if terminal.tty.can_type:
            shared.keyboard = terminal.tty.in_foreground
            after.callback(setattr, shared, "keyboard", False)
        # Input is typed in here, where `on_input` comes first; calls, if code in this thread makes them.
        handler = partial(_asked, terminal, interpreter, busy)
        after.enter_context(interpreter.session.questions.answerable((*_INPUT, "call"), handler))
        yield


@contextmanager
def _finished(terminal: Terminal) -> Iterator[None]:
    try:
        yield
    finally:
        terminal.display.finish()


def _close(events: Iterator[Event]) -> None:
    close = getattr(events, "close", None)
    if close is not None:
        close()
