"""Saved conversations: choosing one, resuming it, and running its blocks again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from interpreter.app import conversations, result_of
from interpreter.console_text import PROSE, visible
from interpreter.errors import ConversationNotFoundError, UsageError
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.turn import replay, show_block
from interpreter.frontends.terminal.widgets import search_row
from interpreter.llm.usage import in_dollars

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session import Event
    from interpreter.session.journal import SavedSession, Summary

_WIDE = 100  # columns
_NUMBERED = 20  # rows that can be chosen by number


def named(terminal: Terminal, interpreter: OpenInterpreter, actions: Mapping[str, Any]) -> Summary | None:
    """The conversation that flags or a command name, else one that the user picks; None if they pick none."""
    if "continue" in actions:
        return conversations.last_conversation(interpreter)
    wanted = actions.get("resume")
    if isinstance(wanted, str):
        return conversations.find_conversation(interpreter, wanted)
    if not (terminal.tty.can_type and terminal.tty.can_show):
        raise UsageError("Choosing a conversation needs a terminal. `--resume ID` and `--continue` do without one.")
    rows = conversations.list_conversations(interpreter)
    if not rows:
        raise ConversationNotFoundError(f"There is no conversation in {interpreter.journal.root} yet.")
    try:
        if terminal.plain:
            rows, width = rows[:_NUMBERED], terminal.tty.size()[0] - 6
            for number, row in enumerate(rows, 1):
                terminal.display.line(f"{number:>3}. {drawn(row, width)}")
            answer = (terminal.ask("Which one? Its number, or Enter to leave: ") or "").strip()
            return rows[int(answer) - 1] if answer.isdigit() and 0 < int(answer) <= len(rows) else None
        searched = [f"{row.title} {row.facts.folder} {row.facts.model} {row.id}" for row in rows]
        found = search_row(
            terminal.tty, "Which conversation?", searched, lambda number, width: drawn(rows[number], width)
        )
        return rows[found]
    except KeyboardInterrupt:
        return None


def drawn(row: Summary, width: int) -> str:
    """A row of the list: title, age, folder, model, cost."""
    facts, wide, age = row.facts, width >= _WIDE, "now"
    for unit, size, most in (("min", 60, 60), ("h", 3600, 24), ("d", 86400, 30)):
        if size <= row.age < size * most:
            age = f"{int(row.age // size)} {unit}"
    if row.age >= 30 * 86400:
        age = time.strftime("%Y-%m", time.localtime(time.time() - row.age))
    usage = facts.usage
    has_cost = usage.requests and (usage.cost or not usage.unpriced_tokens)
    folder, model = _short(facts.folder, 24 if wide else 14), _short(facts.model, 24 if wide else 12)
    rest = visible("  ".join([f"{age:>7}", folder, model, f"{in_dollars(usage.cost) if has_cost else '':>8}"]))
    title, room = row.title, width - len(rest) - 2
    if room < 16:
        title, rest, room = f"{row.title}  {age}", "", width
    title = clip(visible(title, PROSE).replace("\n", " "), room)
    return title + " " * (room - cells(title)) + (f"  {rest}" if rest else "")


def _short(path: str, width: int) -> str:
    """The end of a long path or name is what tells it apart."""
    home = os.path.expanduser("~")
    path = "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
    return f"{path if len(path) <= width else '...' + path[3 - width :]:<{width}}"


# -- resumed -------------------------------------------------------------------------------------------------------


def show(terminal: Terminal, interpreter: OpenInterpreter, session: SavedSession) -> None:
    """The conversation so far, and what of it is gone."""
    terminal.display.languages = interpreter.computer.registry
    replay(terminal, session.messages)
    if session.torn:
        terminal.display.line("The program was ended in the middle of writing: the last piece is missing.")
    if session.damaged:
        terminal.display.line(f"{session.damaged} lines of the journal could not be read and are left out.", "error")
    if blocks := conversations.blocks_to_rerun(session):
        what = "the block that built them" if len(blocks) == 1 else f"the {len(blocks)} blocks that built them"
        terminal.display.line(f"The variables of before are gone. F5 (or %rerun) runs {what} again.")
    terminal.display.finish()


def rerun(terminal: Terminal, interpreter: OpenInterpreter, language: str = "") -> None:
    """Run the blocks that had run well once more, in order; each is asked about as always.

    With a language only its own, in a new session: so it has the variables of before, where there is no other return.
    """
    if language and interpreter.computer.get_language(language) is None:
        terminal.display.line(f"{language} is no language here, so nothing is run again.")
        return
    again = conversations.Rerun(interpreter, language)
    if not again.blocks:
        result_of(again.events())
        begun = f"The {again.language.name} session begins anew. " if again.language is not None else ""
        terminal.display.line(f"{begun}No block of this conversation has run well, so there is nothing to run again.")
        return

    def until_interrupted() -> Iterator[Event]:
        with closing(again.events()) as events:
            for event in events:
                yield event
                if terminal.busy is not None and terminal.busy.interrupts.count and event.data.get("state") == "ended":
                    return  # Ctrl-C between two blocks ends all of it

    for _ in show_block(terminal, interpreter, until_interrupted()):
        pass
    terminal.display.line(f"{again.done} of {len(again.blocks)} blocks were run again.")
