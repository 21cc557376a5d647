"""One turn on a terminal: its chunks are shown, its questions asked, its keys and interrupts heeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from interpreter.terminal.approval import approve
from interpreter.terminal.preview import Seen, Trying
from interpreter.terminal.terminal import Busy, Terminal

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.messages import Chunk

INTERRUPTED = "Interrupted."


def show_turn(terminal: Terminal, interpreter: OpenInterpreter, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Show the model's answer, ask what it asks, and pass every chunk on."""
    with _finished(terminal), Busy(terminal, interpreter).on() as busy, _at_hand(terminal, interpreter):
        terminal.display.fold_reasoning = not interpreter.verbose
        terminal.display.begin()
        yield from _shown(terminal, interpreter, chunks, busy)


def show_block(terminal: Terminal, interpreter: OpenInterpreter, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Show the output of one block that somebody other than the model asked for."""
    with _finished(terminal), Busy(terminal, interpreter).on() as busy, _at_hand(terminal, interpreter):
        busy.block_runs("shell")  # keys that the block does not want are dropped by its language
        yield from _shown(terminal, interpreter, chunks, busy)


def _shown(terminal: Terminal, interpreter: OpenInterpreter, chunks: Iterator[Chunk], busy: Busy) -> Iterator[Chunk]:
    told = False
    try:
        seen = Seen(terminal)
        for chunk in chunks:
            if not seen.before(chunk, interpreter.pending):
                terminal.display.show(chunk)
            busy.follow(chunk)
            if chunk["type"] == "confirmation":
                _approve(terminal, interpreter, busy)
            told = told or chunk.get("ended") == "interrupted"
            yield chunk
    except KeyboardInterrupt:
        interpreter.cancel()
        _close(chunks)
    terminal.interrupted = busy.interrupts.count > 0
    if terminal.interrupted and not told:
        terminal.tell(INTERRUPTED)


def _approve(terminal: Terminal, interpreter: OpenInterpreter, busy: Busy) -> None:
    pending = interpreter.pending
    if pending is None:
        return
    trying = Trying(terminal, interpreter, pending)
    kept = interpreter.preview and trying.look()
    if not (kept or pending.declined) and approve(terminal, pending, trying) and pending.preview is None:
        busy.block_runs(pending.language)


@contextmanager
def _at_hand(terminal: Terminal, interpreter: OpenInterpreter) -> Iterator[None]:
    """Code may ask the person at this terminal, unless somebody else answers for them."""
    computer = interpreter.computer
    shared = computer.surroundings
    shared.size, shared.colors = terminal.tty.size(), terminal.colors
    with ExitStack() as after:
        if terminal.tty.can_type:
            shared.keyboard = terminal.tty.in_foreground
            after.callback(setattr, shared, "keyboard", False)
        if terminal.tty.can_type and computer.on_input is None:
            computer.on_input = _asker(terminal, interpreter)
            after.callback(setattr, computer, "on_input", None)
        yield


def _asker(terminal: Terminal, interpreter: OpenInterpreter) -> Callable[[str, bool], str | None]:
    def on_input(prompt: str, password: bool) -> str | None:
        try:
            return terminal.ask(prompt, password)
        except KeyboardInterrupt:
            interpreter.cancel()
            return None

    return on_input


@contextmanager
def _finished(terminal: Terminal) -> Iterator[None]:
    try:
        yield
    finally:
        terminal.display.finish()


def _close(chunks: Iterator[Chunk]) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        close()
