"""Saved conversations (choose one, resume it, run its blocks again), and the magic commands on conversations."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from interpreter.app import conversations, exports, result_of
from interpreter.console_text import PROSE, visible
from interpreter.errors import ConversationNotFoundError, UsageError
from interpreter.export import EXPORTERS
from interpreter.frontends.terminal.render.ansi import cells, clip
from interpreter.frontends.terminal.turn import follow, replay, show_block
from interpreter.frontends.terminal.widgets import search_row
from interpreter.llm.usage import in_dollars
from interpreter.session import APPROVE, REFUSE, Answer, Question
from interpreter.session.journal import SavedSession
from interpreter.session.journal.reader import Block, Said, Shown, entries_from_session

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.export.script.verify import Report
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session import Event
    from interpreter.session.journal import Summary
    from interpreter.session.journal.reader import Entry


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


_SESSIONS = 20  # that are listed
_VERIFIED_NAMES = 10
_OUTCOMES = {"ok": "", "failed": ", failed", "refused": ", not allowed"}


# -- saved conversations -------------------------------------------------------------------------------------------


def list_sessions(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    found = conversations.list_conversations(interpreter, argument)
    if not found:
        saved = argument and conversations.list_conversations(interpreter)
        terminal.display.line("No conversation has these words." if saved else "No conversation is saved yet.")
        return
    width = terminal.tty.size()[0] - 12
    lines = [f"{row.id[:8]}  {drawn(row, width)}" for row in found[:_SESSIONS]]
    if len(found) > _SESSIONS:
        lines.append(f"and {len(found) - _SESSIONS} older ones: %sessions WORDS searches")
    lines.append("%resume ID takes one up; `interpreter --resume ID` does so from the shell.")
    terminal.display.line("\n".join(lines))


def resume_session(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    row = named(terminal, interpreter, {"resume": argument or True})
    if row is not None:
        session = result_of(conversations.resume(interpreter, row, leave=True))
        show(terminal, interpreter, session)


def branch(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    before = interpreter.journal.id
    after = result_of(conversations.branch(interpreter, argument))
    terminal.display.line(f"From here on this is a new conversation, {after}; {before} stays as it is.")


def rename(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if not argument:
        terminal.display.line(f"This conversation is called: {interpreter.journal.title or '(nothing yet)'}")
        return
    interpreter.journal.rename(argument)
    terminal.display.line(f"This conversation is now called: {argument}")


def save_messages(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    path = conversations.save_messages(interpreter, argument.strip("\"'"))
    terminal.display.line(f"The conversation is in {path}.")


def load_messages(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    path = result_of(conversations.load_messages(interpreter, argument.strip("\"'")))
    terminal.display.line(f"{len(interpreter.messages)} messages from {path}.")


# -- exports -------------------------------------------------------------------------------------------------------


def export(form: str, terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    """Write the conversation to the path that was typed, as the flags beside it say."""
    try:
        words = shlex.split(argument)
    except ValueError:
        words = [argument]
    flags = {word for word in words if word.startswith("--")}
    path = " ".join(word for word in words if not word.startswith("--"))
    known = ("--force", "--keep-secrets", *(("--all", "--verify") if form == "script" else ()))
    if unknown := sorted(flags - set(known)):
        raise UsageError(f"There is no {unknown[0]} here, only {' and '.join(known)}.")
    force, keep_secrets, whole = (flag in flags for flag in ("--force", "--keep-secrets", "--all"))
    exported = result_of(exports.export(interpreter, form, path, force, keep_secrets, whole))
    if exported is None:
        terminal.display.line("There is nothing to write down yet.")
        return
    made = exported.program
    what = EXPORTERS[form].title if made is None else f"A program of {made.kept} of the {made.blocks} blocks"
    terminal.display.line("\n".join([f"{what} is in {exported.path}.", *(f"- {note}" for note in exported.notes)]))
    if "--verify" not in flags:
        return

    def answer(question: Question) -> Answer:
        typed = terminal.ask(f"{question.chunk['content']['content']} (y/n) ", guarded=True) or ""
        return Answer(APPROVE if typed.strip().lower() in ("y", "yes") else REFUSE)

    report = follow(interpreter, exports.verify(interpreter, exported), answer)
    if report is None:
        terminal.display.line("Not verified.")
    else:
        terminal.display.line("\n".join(_report_lines(report)), "" if report.reproduced else "error")


def _report_lines(report: Report) -> list[str]:
    if not report.ran:
        how = "did not end in time" if report.exit_code is None else f"ended with exit code {report.exit_code}"
        return [f"Not reproduced: in a fresh process the program {how}.", report.output.strip()]
    if report.reproduced:
        lines = ["Reproduced: in a fresh process the program makes the same again."]
    elif report.different or any(report.pictures):
        lines = ["Not reproduced: the program runs, but what it makes is different."]
    else:
        lines = ["The program runs in a fresh process; not everything could be checked."]
    checked = {"the same": report.same, "different": report.different, "not checked": report.unknown}
    for what, names in checked.items():
        lines += [f"- {what}: {name}" for name in names[:_VERIFIED_NAMES]]
        if len(names) > _VERIFIED_NAMES:
            lines.append(f"- {what}: {len(names) - _VERIFIED_NAMES} more")
    lines += [f"- figure {number}: {problem or 'the same'}" for number, problem in enumerate(report.pictures, 1)]
    if report.needed_results:
        lines.append("- It needs files there that the session itself had made or changed.")
    if not (report.pictures or any(checked.values())):
        lines.append("- It makes no files and no figures that could be compared.")
    return lines


# -- what was done on the screen -----------------------------------------------------------------------------------


def replay_screen(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if interpreter.journal.path is None:
        terminal.display.line("Nothing is written down of this conversation yet.")
        return
    session = SavedSession.open(interpreter.journal.path)
    turns: list[list[Entry]] = []  # each begins with a message of the user
    for entry in entries_from_session(session):
        if isinstance(entry, Said) and entry.role == "user":
            turns.append([])
        if turns:
            turns[-1].append(entry)
    if not argument:  # the last one in which something was done
        number = next((n for n in range(len(turns), 0, -1) if _has_actions(turns[n - 1])), len(turns))
    else:
        number = int(argument) if argument.isdecimal() else 0
    if not 0 < number <= len(turns):
        known = f"There are 1 to {len(turns)}" if turns else "There is none yet"
        raise UsageError(f"Write the number of a turn, as in %replay 1. {known}.")
    first, *rest = turns[number - 1]
    words = " ".join(first.text.split()) if isinstance(first, Said) else ""
    terminal.display.line(f"Turn {number}: {words}")
    if not _has_actions(rest):
        terminal.display.line("Nothing was done on the screen in this turn.")
        return
    for entry in rest:
        if isinstance(entry, Shown):
            _show_picture(terminal, entry.message)
        elif isinstance(entry, Block):
            for call in entry.calls:
                when = time.strftime("%H:%M:%S", time.localtime(call["time"])) if call.get("time") else ""
                outcome = _OUTCOMES.get(str(call.get("outcome")), "")
                why = f": {' '.join(str(call['error']).split())}" if call.get("error") else ""
                took = f"({call.get('seconds', 0):.1f} s{outcome}{why})"
                terminal.display.line(f"{when}  {call.get('told')}  {took}".strip())
                for reference in call.get("pictures", ()):
                    picture = session.blobs.get(reference)
                    _show_picture(terminal, {"type": "image", "format": "base64.png", "content": picture})
            for output in entry.outputs:
                _show_picture(terminal, output)
    terminal.display.finish()


def _has_actions(turn: Sequence[Entry]) -> bool:
    return any(getattr(entry, "calls", ()) for entry in turn)


def _show_picture(terminal: Terminal, message: Mapping[str, Any]) -> None:
    if message.get("type") == "image":
        kind, content = str(message.get("format", "")), message.get("content", "")
        terminal.display.show({"role": "computer", "type": "image", "format": kind, "content": content})
