"""Saved conversations (choose one, resume it, run its blocks again), and the magic commands on conversations."""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interpreter.app import conversations, exports, result_of
from interpreter.console_text import PROSE, visible
from interpreter.errors import ConversationNotFoundError, NotRestorableError, UsageError
from interpreter.export import EXPORTERS
from interpreter.frontends.terminal.chat import connect, follow, replay, show_block
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.widgets import choose_row, search_row
from interpreter.llm.usage import in_dollars
from interpreter.questions import APPROVE, REFUSE, Answer, Question
from interpreter.session import Event
from interpreter.session.journal import SavedSession, Summary, last_in

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal

_WIDE = 100  # columns
_NUMBERED = 20  # rows that can be chosen by number


def named(terminal: Terminal, interpreter: OpenInterpreter, actions: Mapping[str, Any]) -> Summary | None:
    """Return the conversation that flags or a command name, else one that the user picks; None if they pick none."""
    if "continue" in actions:
        return last_in(interpreter.journal.root, os.path.abspath(interpreter.workspace))
    wanted = actions.get("resume")
    if isinstance(wanted, str):
        return conversations.find_conversation(interpreter, wanted)
    if not terminal.is_attended:
        raise UsageError("Picking a conversation needs a terminal. Without one, use `--resume ID` or `--continue`.")
    rows = conversations.list_conversations(interpreter)
    if not rows:
        raise ConversationNotFoundError(f"There are no conversations in {interpreter.journal.root} yet.")
    try:
        twins = twins_in(rows)
        if terminal.plain:
            labels = [drawn(row, terminal.tty.size()[0] - 6, twins) for row in rows[:_NUMBERED]]
            return rows[choose_row(terminal, "Which conversation?", labels, "to cancel")]
        searched = [f"{row.title} {row.facts.folder} {row.facts.model} {row.id}" for row in rows]
        return rows[
            search_row(terminal.tty, "Which conversation?", searched, lambda at, width: drawn(rows[at], width, twins))
        ]
    except KeyboardInterrupt:
        return None


def twins_in(rows: Sequence[Summary]) -> frozenset[str]:
    return frozenset(title for title, count in Counter(row.title for row in rows).items() if count > 1)


def drawn(row: Summary, width: int, twins: frozenset[str] = frozenset()) -> str:
    """Draw a row of the list: title, age, folder, model, cost. Titles among `twins` have their time instead."""
    facts, wide, age = row.facts, width >= _WIDE, "now"
    for unit, size, most in (("min", 60, 60), ("h", 3600, 24), ("d", 86400, 30)):
        if size <= row.age < size * most:
            age = f"{int(row.age // size)} {unit}"
    if row.age >= 30 * 86400:
        age = time.strftime("%Y-%m", time.localtime(time.time() - row.age))
    if row.title in twins:
        age = time.strftime("%d %b %H:%M", time.localtime(time.time() - row.age))
    usage = facts.usage
    has_cost = usage.requests and (usage.cost or not usage.unpriced_tokens)
    folder, model = _short(facts.folder, 24 if wide else 14), _short(facts.model, 24 if wide else 12)
    rest = visible("  ".join([f"{age:>7}", folder, model, f"{in_dollars(usage.cost) if has_cost else '':>8}"]))
    title, room = row.title, width - len(rest) - 2
    if room < 16:
        name = f"  {os.path.basename(facts.folder)}" * (row.title in twins)
        rest, room = visible(f"{age}{name}"), max(8, width - cells(f"{age}{name}") - 2)
    title = clip(visible(title, PROSE).replace("\n", " "), room)
    return title + " " * (room - cells(title)) + (f"  {rest}" if rest else "")


def _short(path: str, width: int) -> str:
    """Shorten a long path or name at its start, because its end identifies it."""
    home = os.path.expanduser("~")
    path = "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
    return f"{path if len(path) <= width else '...' + path[3 - width :]:<{width}}"


# -- resumed -------------------------------------------------------------------------------------------------------


def show(terminal: Terminal, interpreter: OpenInterpreter, session: SavedSession) -> None:
    """Show the conversation so far, report damaged parts of its journal, and offer to restore its variables."""
    terminal.display.languages = interpreter.computer.registry
    replay(terminal, session.messages)
    if session.torn:
        terminal.display.line("The program ended while writing, so the last part is missing.")
    if session.damaged:
        terminal.display.line(f"{session.damaged} lines of the journal are damaged and were skipped.", "error")
    terminal.display.finish()
    offer_variables(terminal, interpreter)


def offer_variables(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """Offer to bring the variables of a resumed conversation back: as they were saved, else by running its blocks."""
    chosen = ""

    def answer(question: Question) -> Answer:
        nonlocal chosen
        chosen = _choice(terminal, question.subject.details)
        return Answer(chosen)

    outcomes = None
    with suppress(KeyboardInterrupt):  # it can take a while
        outcomes = follow(interpreter, conversations.restore_variables(interpreter), answer)
    for outcome in (outcomes or {}).values():
        if isinstance(outcome, NotRestorableError):
            terminal.tell(str(outcome), "error")
    if machine := conversations.still_running_on(interpreter):
        terminal.tell(f"The session on {visible(machine)} is still running, with its variables.")
    elif outcomes and any(not isinstance(outcome, NotRestorableError) for outcome in outcomes.values()):
        terminal.tell("Restored.")
    else:
        offer = conversations.variables_offer(interpreter)
        if not chosen or outcomes:  # nothing was saved, or nothing could be loaded
            offer = replace(offer, names=[]) if offer is not None and offer.blocks else None
            chosen = _choice(terminal, offer) if offer is not None and terminal.is_attended else REFUSE
        if chosen == conversations.RERUN:
            rerun(terminal, interpreter, approved=True)
        elif offer is not None:
            terminal.tell("The earlier variables are gone. F5 (or %rerun) runs the blocks that built them again.")
    terminal.display.finish()


def _choice(terminal: Terminal, offer: conversations.VariablesOffer) -> str:
    """Ask what the user wants; nothing unclear counts as a yes."""
    choices = {"y": APPROVE, "yes": APPROVE, "r": conversations.RERUN, "n": REFUSE, "no": REFUSE}
    options = "[y]es  [n]o"
    if not offer.names:
        choices = {"y": conversations.RERUN, "yes": conversations.RERUN, "n": REFUSE, "no": REFUSE}
    elif offer.blocks:
        options = f"[y]es  [r]un the {'block' if offer.blocks == 1 else f'{offer.blocks} blocks'} again  [n]o"
    while True:
        try:
            typed = terminal.ask(f"{offer.words} {options} ", guarded=True)
        except KeyboardInterrupt:
            return REFUSE
        if typed is None or typed.strip().lower() in choices:
            return choices[typed.strip().lower()] if typed is not None else REFUSE


def rerun(terminal: Terminal, interpreter: OpenInterpreter, language: str = "", approved: bool = False) -> None:
    """Run the successful blocks again, in order; each needs approval as usual.

    With a language, only its blocks, in a new session. That restores variables where undo can't.
    """
    if language and interpreter.computer.get_language(language) is None:
        terminal.display.line(f"There is no language {language}, so nothing was run again.")
        return
    again = conversations.Rerun(interpreter, language, approved)
    if not again.blocks:
        result_of(again.events())
        begun = f"The {again.language.name} session starts over. " if again.language is not None else ""
        terminal.display.line(f"{begun}No block in this conversation succeeded, so there is nothing to run again.")
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


_SESSIONS = 20  # that are listed


# -- saved conversations -------------------------------------------------------------------------------------------


def list_sessions(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    rows = conversations.list_conversations(interpreter, argument)
    if not rows:
        saved = argument and conversations.list_conversations(interpreter)
        terminal.display.line("No conversation contains these words." if saved else "No conversations saved yet.")
        return
    width = terminal.tty.size()[0] - 12
    twins = twins_in(rows)
    lines = [f"{row.id[:8]}  {drawn(row, width, twins)}" for row in rows[:_SESSIONS]]
    if len(rows) > _SESSIONS:
        lines.append(f"and {len(rows) - _SESSIONS} older ones. To search: %sessions WORDS")
    lines.append("To continue one: %resume ID, or `interpreter --resume ID` from the shell.")
    terminal.display.line("\n".join(lines))


def resume_session(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    row = named(terminal, interpreter, {"resume": argument or True})
    if row is not None:
        session = result_of(conversations.resume(interpreter, row, leave=True))
        connect(terminal, interpreter)
        show(terminal, interpreter, session)


def branch(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    before = interpreter.journal.id
    after = result_of(conversations.branch(interpreter, argument))
    terminal.display.line(f"This is now a new conversation, {after}. {before} is unchanged.")


def rename(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if not argument:
        terminal.display.line(f"This conversation is called: {interpreter.journal.title or '(no title yet)'}")
        return
    interpreter.journal.rename(argument)
    terminal.display.line(f"This conversation is now called: {argument}")


def save_messages(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    path = conversations.save_messages(interpreter, argument.strip("\"'"))
    terminal.display.line(f"Saved to {path}.")


def load_messages(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    path = result_of(conversations.load_messages(interpreter, argument.strip("\"'")))
    terminal.display.line(f"{len(interpreter.messages)} messages from {path}.")


# -- exports -------------------------------------------------------------------------------------------------------


def export(
    form: str, terminal: Terminal, interpreter: OpenInterpreter, argument: str, more: Sequence[str] = ()
) -> tuple[exports.Export | None, set[str]]:
    """Write the conversation to the path that was typed, and return it with the flags beside it.

    `more`: flags that only this form has.
    """
    try:
        given = shlex.split(argument)
    except ValueError:
        given = [argument]
    flags = {each for each in given if each.startswith("--")}
    path = " ".join(each for each in given if not each.startswith("--"))
    known = ("--force", "--keep-secrets", *more)
    if unknown := sorted(flags - set(known)):
        raise UsageError(f"There is no {unknown[0]} here, only {' and '.join(known)}.")
    force, keep_secrets, whole = (flag in flags for flag in ("--force", "--keep-secrets", "--all"))
    exported = result_of(exports.export(interpreter, form, path, force, keep_secrets, whole))
    if exported is None:
        terminal.display.line("There is nothing to export yet.")
        return None, flags
    made = exported.program
    what = EXPORTERS[form].title if made is None else f"A program with {made.kept} of {made.blocks} blocks"
    terminal.display.line(
        "\n".join([f"{what} was saved to {exported.path}.", *(f"- {note}" for note in exported.notes)])
    )
    return exported, flags
