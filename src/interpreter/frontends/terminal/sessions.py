"""Earlier conversations: choosing one, taking it up, and running again what built its variables."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from interpreter.errors import ConversationNotFoundError, UsageError
from interpreter.frontends.terminal.turn import show_block

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session import Event
    from interpreter.session.journal import Session, Summary

FLAGS = frozenset({"conversations", "resume", "continue"})
_WIDE = 100  # columns


def take_up(terminal: Terminal, interpreter: OpenInterpreter, actions: Mapping[str, Any]) -> Session | None:
    """Take up the conversation that the command line names; None if it names none, or the user chose none."""
    from interpreter.app import conversations, result_of

    row = named(terminal, interpreter, actions) if FLAGS & actions.keys() else None
    return None if row is None else result_of(conversations.resume(interpreter, row))


def named(terminal: Terminal, interpreter: OpenInterpreter, actions: Mapping[str, Any]) -> Summary | None:
    """The conversation that flags or a command name, else one that the user picks."""
    from interpreter.app.conversations import find_conversation, last_conversation

    if "continue" in actions:
        return last_conversation(interpreter)
    wanted = actions.get("resume")
    return find_conversation(interpreter, wanted) if isinstance(wanted, str) else pick(terminal, interpreter)


def pick(terminal: Terminal, interpreter: OpenInterpreter) -> Summary | None:
    """Let the user choose a conversation; None if they would rather not."""
    from interpreter.app.conversations import list_conversations

    if not (terminal.tty.can_type and terminal.tty.can_show):
        raise UsageError("Choosing a conversation needs a terminal. `--resume ID` and `--continue` do without one.")
    rows = list_conversations(interpreter)
    if not rows:
        raise ConversationNotFoundError(f"There is no conversation in {interpreter.journal.root} yet.")
    try:
        return rows[_pick_by_number(terminal, rows) if terminal.plain else _pick_by_arrows(terminal, rows)]
    except KeyboardInterrupt:
        return None


def _pick_by_arrows(terminal: Terminal, rows: Sequence[Summary]) -> int:
    from interpreter.frontends.terminal.widgets import Picker

    searched = [f"{row.title} {row.facts.folder} {row.facts.model} {row.id}" for row in rows]
    picker = Picker("Which conversation?", searched, lambda number, width: drawn(rows[number], width))
    return picker.choose(terminal.tty)


def _pick_by_number(terminal: Terminal, rows: Sequence[Summary]) -> int:
    width = terminal.tty.size()[0] - 6
    for number, row in enumerate(rows[:20], 1):
        terminal.display.line(f"{number:>3}. {drawn(row, width)}")
    answer = terminal.ask("Which one? Its number, or Enter to leave: ")
    if not answer or not answer.strip().isdigit() or not 0 < int(answer) <= min(len(rows), 20):
        raise KeyboardInterrupt
    return int(answer) - 1


def drawn(row: Summary, width: int) -> str:
    """A row of the list: title, age, folder, model, cost."""
    facts, wide = row.facts, width >= _WIDE
    folder, model = _short(facts.folder, 24 if wide else 14), _short(facts.model, 24 if wide else 12)
    columns = [f"{age_in_words(row.age):>7}", folder, model, _cost(row)]
    rest = "  ".join(columns)
    room = width - len(rest) - 2
    if room < 16:
        return _fitted(f"{row.title}  {columns[0].strip()}", width)
    return f"{_fitted(row.title, room)}  {rest}"


def _fitted(text: str, width: int) -> str:
    from interpreter.frontends.terminal.render.ansi import (
        cells,
        clip,
        visible,
    )

    text = clip(visible(text), width)
    return text + " " * (width - cells(text))


def _short(path: str, width: int) -> str:
    """The end of a long path or name is what tells it apart."""
    home = os.path.expanduser("~")
    path = "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
    return f"{path if len(path) <= width else '...' + path[3 - width :]:<{width}}"


def _cost(row: Summary) -> str:
    from interpreter.llm.usage import in_dollars

    usage = row.facts.usage
    if not usage.requests or (usage.unpriced_tokens and not usage.cost):
        return f"{'':>8}"
    return f"{in_dollars(usage.cost):>8}"


def age_in_words(seconds: float) -> str:
    """How long ago, in one unit."""
    if seconds < 60:
        return "now"
    for unit, size, most in (("min", 60, 60), ("h", 3600, 24), ("d", 86400, 30)):
        if seconds < size * most:
            return f"{int(seconds // size)} {unit}"
    return time.strftime("%Y-%m", time.localtime(time.time() - seconds))


# -- taken up ----------------------------------------------------------------------------------------------------


def show(terminal: Terminal, interpreter: OpenInterpreter, session: Session) -> None:
    """The conversation so far, and what of it is gone."""
    from interpreter.app.conversations import blocks_to_rerun
    from interpreter.frontends.terminal.turn import replay

    terminal.display.languages = interpreter.computer.registry
    replay(terminal, session.messages)
    if session.torn:
        terminal.display.line("The program was ended in the middle of writing: the last piece is missing.")
    if session.damaged:
        terminal.display.line(f"{session.damaged} lines of the journal could not be read and are left out.", "error")
    if blocks := blocks_to_rerun(session):
        what = "the block that built them" if len(blocks) == 1 else f"the {len(blocks)} blocks that built them"
        terminal.display.line(f"The variables of before are gone. F5 (or %rerun) runs {what} again.")
    terminal.display.finish()


def rerun(terminal: Terminal, interpreter: OpenInterpreter, language: str = "") -> None:
    """Run the blocks that had run well once more, in order; each is asked about as always.

    With a language only its own, in a new session: so it has the variables of before, where there is no other return.
    """
    from interpreter.app import result_of
    from interpreter.app.conversations import Rerun

    if language and interpreter.computer.get_language(language) is None:
        terminal.display.line(f"{language} is no language here, so nothing is run again.")
        return
    again = Rerun(interpreter, language)
    if not again.blocks:
        result_of(again.events())
        begun = f"The {again.language.name} session begins anew. " if again.language is not None else ""
        terminal.display.line(f"{begun}No block of this conversation has run well, so there is nothing to run again.")
        return
    for _ in show_block(terminal, interpreter, _until_interrupted(terminal, again.events())):
        pass
    terminal.display.line(f"{again.done} of {len(again.blocks)} blocks were run again.")


def _until_interrupted(terminal: Terminal, events: Generator[Event, None, object]) -> Iterator[Event]:
    """Ctrl-C between two blocks ends all of it."""
    with closing(events):
        for event in events:
            yield event
            if terminal.busy is not None and terminal.busy.interrupts.count and event.data.get("state") == "ended":
                return
