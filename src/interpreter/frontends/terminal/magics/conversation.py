"""Commands on the conversation: save, load."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from interpreter.errors import ConversationFileError
from interpreter.session import APPROVE, REFUSE, Answer, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.app.exports import Export
    from interpreter.export.script.verify import Report
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session.journal import Session
    from interpreter.session.journal.reader import Entry


def save_messages(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app.conversations import save_messages

    try:
        path = save_messages(interpreter, argument.strip("\"'"))
    except ConversationFileError as error:
        terminal.display.line(str(error), "error")
        return
    terminal.display.line(f"The conversation is in {path}.")


def load_messages(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app import result_of
    from interpreter.app.conversations import load_messages

    try:
        path = result_of(load_messages(interpreter, argument.strip("\"'")))
    except ConversationFileError as error:
        terminal.display.line(str(error), "error")
        return
    terminal.display.line(f"{len(interpreter.messages)} messages from {path}.")


_MOST = 20


def list_sessions(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app.conversations import list_conversations
    from interpreter.frontends.terminal.sessions import drawn

    found = list_conversations(interpreter, argument)
    if not found:
        saved = argument and list_conversations(interpreter)
        terminal.display.line("No conversation has these words." if saved else "No conversation is saved yet.")
        return
    width = terminal.tty.size()[0] - 12
    lines = [f"{row.id[:8]}  {drawn(row, width)}" for row in found[:_MOST]]
    if len(found) > _MOST:
        lines.append(f"and {len(found) - _MOST} older ones: %sessions WORDS searches")
    lines.append("%resume ID takes one up; `interpreter --resume ID` does so from the shell.")
    terminal.display.line("\n".join(lines))


def resume(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app import conversations, result_of
    from interpreter.frontends.terminal import sessions

    actions = {"resume": argument or True}
    row = sessions.named(terminal, interpreter, actions)
    if row is None:
        return
    session = result_of(conversations.resume(interpreter, row, leave=True))
    sessions.show(terminal, interpreter, session)


def branch(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.app import conversations, result_of

    before = interpreter.journal.id
    after = result_of(conversations.branch(interpreter, argument))
    terminal.display.line(f"From here on this is a new conversation, {after}; {before} stays as it is.")


def rename(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if not argument:
        terminal.display.line(f"This conversation is called: {interpreter.journal.title or '(nothing yet)'}")
        return
    interpreter.journal.rename(argument)
    terminal.display.line(f"This conversation is now called: {argument}")


def rerun(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.frontends.terminal.sessions import rerun

    rerun(terminal, interpreter, argument)


_VERIFY_QUESTION = "Run the program again, in a copy of this folder? What it does elsewhere is done again too. (y/n) "
_NAMES = {"notebook": "The notebook", "markdown": "The conversation", "html": "The page"}
_MOST_NAMES = 10
KEEP_SECRETS = "--keep-secrets"


class _Wanted(NamedTuple):
    """What was written after the command."""

    path: str
    flags: frozenset[str]

    @property
    def force(self) -> bool:
        return "--force" in self.flags


def _read(terminal: Terminal, argument: str, *allowed: str) -> _Wanted | None:
    """The path and the flags; None, with a word about it, if they cannot be understood."""
    try:
        words = shlex.split(argument)
    except ValueError:
        words = [argument]
    flags = frozenset(word for word in words if word.startswith("--"))
    paths = [word for word in words if not word.startswith("--")]
    known = ("--force", KEEP_SECRETS, *allowed)
    if unknown := sorted(flags - set(known)):
        terminal.display.line(f"There is no {unknown[0]} here, only {' and '.join(known)}.")
        return None
    return _Wanted(" ".join(paths), flags)


def _export(terminal: Terminal, interpreter: OpenInterpreter, form: str, wanted: _Wanted | None) -> Export | None:
    """Write it; None, with a word about it, if there is nothing to write."""
    from interpreter.app import exports, result_of

    if wanted is None:
        return None
    everything, keeps = "--all" in wanted.flags, KEEP_SECRETS in wanted.flags
    exported = result_of(exports.export(interpreter, form, wanted.path, wanted.force, keeps, everything))
    if exported is None:
        terminal.display.line("There is nothing to write down yet.")
        return None
    made = exported.program
    what = _NAMES[form] if made is None else f"A program of {made.kept} of the {made.blocks} blocks"
    terminal.display.line("\n".join([f"{what} is in {exported.path}.", *(f"- {note}" for note in exported.notes)]))
    return exported


def jupyter(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    _export(terminal, interpreter, "notebook", _read(terminal, argument))


def markdown(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    _export(terminal, interpreter, "markdown", _read(terminal, argument))


def html(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    _export(terminal, interpreter, "html", _read(terminal, argument))


def script(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    wanted = _read(terminal, argument, "--all", "--verify")
    exported = _export(terminal, interpreter, "script", wanted)
    if exported is not None and wanted is not None and "--verify" in wanted.flags:
        _verify(terminal, interpreter, exported)


def _verify(terminal: Terminal, interpreter: OpenInterpreter, exported: Export) -> None:
    """Run what was just written, if the user says yes, and tell what came of it."""
    from interpreter.app.exports import verify
    from interpreter.frontends.terminal.turn import follow

    def answer(question: Question) -> Answer:
        typed = terminal.ask(_VERIFY_QUESTION) or ""
        return Answer(APPROVE if typed.strip().lower() in ("y", "yes") else REFUSE)

    report = follow(interpreter, verify(interpreter, exported), answer)
    if report is None:
        terminal.display.line("Not verified.")
    else:
        terminal.display.line("\n".join(_report(report)), "" if report.reproduced else "error")


def _report(report: Report) -> list[str]:
    if not report.ran:
        how = "did not end in time" if report.exit_code is None else f"ended with exit code {report.exit_code}"
        return [f"Not reproduced: in a fresh process the program {how}.", report.output.strip()]
    lines = []
    if report.reproduced:
        lines.append("Reproduced: in a fresh process the program makes the same again.")
    elif report.different or any(report.pictures):
        lines.append("Not reproduced: the program runs, but what it makes is different.")
    else:
        lines.append("The program runs in a fresh process; not everything could be checked.")
    lines += _listed("the same", report.same)
    lines += _listed("different", report.different)
    lines += _listed("not checked", report.unknown)
    lines += _pictures(report.pictures)
    if report.needed_results:
        lines.append("- It needs files there that the session itself had made or changed.")
    if not (report.same or report.different or report.pictures or report.unknown):
        lines.append("- It makes no files and no figures that could be compared.")
    return lines


def _listed(what: str, names: Sequence[str]) -> list[str]:
    shown = [f"- {what}: {name}" for name in names[:_MOST_NAMES]]
    return [*shown, f"- {what}: {len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else shown


def _pictures(found: Sequence[str]) -> list[str]:
    return [f"- figure {number}: {told or 'the same'}" for number, told in enumerate(found, 1)]


_OUTCOMES = {"ok": "", "failed": ", failed", "refused": ", not allowed"}


def replay(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.session.journal import Session
    from interpreter.session.journal.reader import entries_from_session

    if interpreter.journal.path is None:
        terminal.display.line("Nothing is written down of this conversation yet.")
        return
    session = Session.open(interpreter.journal.path)
    turns = turns_of(entries_from_session(session))
    if not argument:  # the last one in which something was done
        number = next((n for n in range(len(turns), 0, -1) if _has_actions(turns[n - 1])), len(turns))
    else:
        number = int(argument) if argument.isdecimal() else 0
    if not 0 < number <= len(turns):
        known = f"There are 1 to {len(turns)}" if turns else "There is none yet"
        terminal.display.line(f"Write the number of a turn, as in %replay 1. {known}.")
        return
    _show_turn(terminal, session, number, turns[number - 1])


def turns_of(entries: Sequence[Entry]) -> list[list[Entry]]:
    """The entries of each turn; it begins with what the user said."""
    from interpreter.session.journal.reader import Said

    turns: list[list[Entry]] = []
    for entry in entries:
        if isinstance(entry, Said) and entry.role == "user":
            turns.append([])
        if turns:
            turns[-1].append(entry)
    return turns


def _has_actions(turn: Sequence[Entry]) -> bool:
    return any(getattr(entry, "calls", ()) for entry in turn)


def _show_turn(terminal: Terminal, session: Session, number: int, turn: Sequence[Entry]) -> None:
    from interpreter.session.journal.reader import (
        Block,
        Said,
        Shown,
    )

    said = turn[0]
    words = " ".join(said.text.split()) if isinstance(said, Said) else ""
    terminal.display.line(f"Turn {number}: {words}")
    if not _has_actions(turn):
        terminal.display.line("Nothing was done on the screen in this turn.")
        return
    for entry in turn[1:]:
        if isinstance(entry, Shown):
            _picture(terminal, entry.message)
        elif isinstance(entry, Block):
            for call in entry.calls:
                terminal.display.line(told(call))
                for reference in call.get("pictures", ()):
                    picture = session.blobs.get(reference)
                    _picture(terminal, {"type": "image", "format": "base64.png", "content": picture})
            for output in entry.outputs:
                _picture(terminal, output)
    terminal.display.finish()


def told(call: dict[str, Any]) -> str:
    """A call in a line: when, what, how long it took, and what came of it."""
    when = time.strftime("%H:%M:%S", time.localtime(call["time"])) if call.get("time") else ""
    outcome = _OUTCOMES.get(str(call.get("outcome")), "")
    why = f": {' '.join(str(call['error']).split())}" if call.get("error") else ""
    return f"{when}  {call.get('told')}  ({call.get('seconds', 0):.1f} s{outcome}{why})".strip()


def _picture(terminal: Terminal, message: Mapping[str, Any]) -> None:
    if message.get("type") == "image":
        kind, content = str(message.get("format", "")), message.get("content", "")
        terminal.display.show({"role": "computer", "type": "image", "format": kind, "content": content})
