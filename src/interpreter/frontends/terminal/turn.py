"""Conversations on a terminal: a turn as it runs, with its questions, and the end of an earlier conversation."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from interpreter.app.own_blocks import SIGNS
from interpreter.console_text import PROSE, visible
from interpreter.frontends.terminal.approval import allow_call, approve, shown_in_preview
from interpreter.frontends.terminal.keyboard import TurnKeyboard
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.tty import Tty
from interpreter.messages import group_of
from interpreter.session import ANSWER, APPROVE, Answer, Event, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Chunk, Message


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
def _busy(terminal: Terminal, interpreter: OpenInterpreter) -> Iterator[TurnKeyboard]:
    """The terminal during a turn; the session's code may ask the person there."""
    outer = terminal.busy
    try:
        terminal.follow(interpreter)
        busy = TurnKeyboard(terminal.tty, terminal.display, terminal.typed, interpreter, marks=not terminal.plain)
        terminal.busy = busy
        shared = interpreter.computer.context
        # Input is typed in here, after `on_input`; calls, if code in this thread makes them.
        handler = partial(_ask, terminal, interpreter, busy)
        with busy.on(), interpreter.session.questions.answerable((*_INPUT, "call"), handler):
            shared.size, shared.colors = terminal.tty.size(), terminal.colors
            if terminal.tty.can_type:
                shared.keyboard = terminal.tty.in_foreground
            yield busy
    finally:
        if terminal.tty.can_type:
            interpreter.computer.context.keyboard = False
        terminal.busy = outer
        terminal.display.finish()


def _show(
    terminal: Terminal,
    interpreter: OpenInterpreter,
    events: Iterator[Event],
    busy: TurnKeyboard,
    own_blocks: bool = False,
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


def _ask(terminal: Terminal, interpreter: OpenInterpreter, busy: TurnKeyboard, question: Question) -> Answer | None:
    """The person's answer; None if this terminal cannot give one."""
    if question.kind == "block":
        pending = question.subject
        answer = approve(terminal, interpreter, pending)
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


SCREENS = 3


def replay(terminal: Terminal, messages: Sequence[Message]) -> None:
    """Show the end of a conversation, and say how much is above it. Code is not separated from its output."""
    display = terminal.display
    columns, lines = terminal.tty.size()
    start, rows = len(messages), SCREENS * lines
    for message in reversed(messages):
        content = message.get("content")
        if message.get("type") == "image" or not isinstance(content, str):
            rows -= 10
        else:
            rows -= 2 + sum(1 + len(line) // columns for line in content.split("\n"))
        if rows < 0:
            break
        start -= 1
    start = min(start, len(messages) - 1)
    while start > 0 and messages[start].get("role") == "computer":
        start -= 1
    if start > 0:
        above = "1 earlier message is" if start == 1 else f"{start:,} earlier messages are"
        display.line(f"{above} not shown here; %markdown writes the whole conversation to a file.")
        display.finish()
    start = max(start, 0)
    for message, following in zip(messages[start:], [*messages[start + 1 :], None], strict=False):
        role = message.get("role")
        if role == "user":
            display.finish()
            terminal.tty.write(_typed(message, columns - 2))
            display.begin()
        elif role == "computer" and message.get("type") == "message":
            display.line(str(message.get("content")))
        else:
            for chunk in chunks_of(message, is_last=following is None or following.get("role") != "computer"):
                display.show(chunk)
    display.finish()


def _typed(message: Message, width: int) -> str:
    """A message of the user, as it looked at the prompt."""
    text = visible(str(message.get("content", "")), PROSE)
    if message.get("type") == "code":
        text = SIGNS.get(message.get("format", ""), "") + text
    elif message.get("type") == "image" and message.get("format") != "path":
        text = "(an image)"
    rows = [line[at : at + width] for line in text.split("\n") for at in range(0, len(line) or 1, width)]
    return "> " + "\n  ".join(rows) + "\n"


def chunks_of(message: Message, is_last: bool) -> Iterator[Chunk]:
    """A stored message as the stream that it came from; `is_last`: it is the last output of its block."""
    is_console = message.get("type") == "console"
    flag = group_of(cast("Chunk", message))
    yield {**flag, "start": True}
    if message.get("content"):
        content: Chunk = {**flag, "content": message["content"]}
        if is_console:
            content["format"] = "output"
        yield content
    if is_console and is_last:
        how = {key: value for key, value in message.items() if key in ("exit_code", "ended", "truncated")}
        over: Chunk = {"role": "computer", "type": "console", "format": "active_line", "content": None}
        yield cast("Chunk", {**over, **how})
    yield {**flag, "end": True}


# -- for the library -------------------------------------------------------------------------------------------------

_terminals: dict[bool, Terminal] = {}


def show_chat(interpreter: OpenInterpreter, message: Any = None) -> Iterator[Chunk]:
    """Chat in the terminal, or show the answer to one message; yields every chunk."""
    if message is None:
        from interpreter.frontends.terminal.chat import converse

        yield from converse(_terminal(interpreter), interpreter)
    else:
        yield from show_turn(_terminal(interpreter), interpreter, interpreter.respond(message))


def show_events(interpreter: OpenInterpreter | None, events: Iterator[Event]) -> Iterator[Chunk]:
    """Show the events of a block while they pass."""
    if interpreter is None:
        from interpreter.api import OpenInterpreter

        interpreter = OpenInterpreter()
    yield from show_block(_terminal(interpreter), interpreter, events)


def show_message(interpreter: OpenInterpreter, markdown: str) -> None:
    """Show a text of ours."""
    _terminal(interpreter).display.markdown(markdown)


def local_setup(interpreter: OpenInterpreter) -> None:
    """Ask which local model to use."""
    from interpreter.frontends.terminal import setup

    setup.local_setup(interpreter)


def _terminal(interpreter: OpenInterpreter) -> Terminal:
    """The terminal of this process, plain or not; it keeps what was typed ahead between turns."""
    plain, tty = interpreter.plain_text_display, Tty()
    known = _terminals.get(plain)
    if known is None or known.tty.stdout is not tty.stdout or known.tty.stdin is not tty.stdin:
        _terminals[plain] = known = Terminal(plain, tty)
    return known
