"""Magic commands on conversations: saved ones (%sessions, %resume, ...), exports (%jupyter, ...), and %replay."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from interpreter.app import conversations, exports, result_of
from interpreter.errors import UsageError
from interpreter.export import EXPORTERS
from interpreter.frontends.terminal.sessions import drawn, named, show
from interpreter.frontends.terminal.turn import follow
from interpreter.session import APPROVE, REFUSE, Answer, Question
from interpreter.session.journal import SavedSession
from interpreter.session.journal.reader import Block, Said, Shown, entries_from_session

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.export.script.verify import Report
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session.journal.reader import Entry

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
                terminal.display.line(call_line(call))
                for reference in call.get("pictures", ()):
                    picture = session.blobs.get(reference)
                    _show_picture(terminal, {"type": "image", "format": "base64.png", "content": picture})
            for output in entry.outputs:
                _show_picture(terminal, output)
    terminal.display.finish()


def _has_actions(turn: Sequence[Entry]) -> bool:
    return any(getattr(entry, "calls", ()) for entry in turn)


def call_line(call: dict[str, Any]) -> str:
    """A call in a line: when, what, how long it took, and how it ended."""
    when = time.strftime("%H:%M:%S", time.localtime(call["time"])) if call.get("time") else ""
    outcome = _OUTCOMES.get(str(call.get("outcome")), "")
    why = f": {' '.join(str(call['error']).split())}" if call.get("error") else ""
    return f"{when}  {call.get('told')}  ({call.get('seconds', 0):.1f} s{outcome}{why})".strip()


def _show_picture(terminal: Terminal, message: Mapping[str, Any]) -> None:
    if message.get("type") == "image":
        kind, content = str(message.get("format", "")), message.get("content", "")
        terminal.display.show({"role": "computer", "type": "image", "format": kind, "content": content})
