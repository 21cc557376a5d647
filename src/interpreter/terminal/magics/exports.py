"""Commands that write the conversation down: as a notebook, Markdown, a page, or a program."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from interpreter.terminal.magics.command import Command

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.export.script.program import Program
    from interpreter.export.script.verify import Report
    from interpreter.journal.entries import Entry
    from interpreter.terminal.terminal import Terminal

_VERIFY_QUESTION = "Run the program again, in a copy of this folder? What it does elsewhere is done again too. (y/n) "
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


class _Found(NamedTuple):
    """What happened, as it is to be written down."""

    entries: list[Entry]
    title: str
    notes: list[str]


def _entries(terminal: Terminal, interpreter: OpenInterpreter, wanted: _Wanted | None) -> _Found | None:
    """What happened; None, with a word about it, if nothing has."""
    from interpreter.export import secrets
    from interpreter.export.target import title_of
    from interpreter.journal.entries import entries_from_messages
    from interpreter.journal.transcript import entries_from_session
    from interpreter.llm.request import known_secrets
    from interpreter.llm.secrets import redacted

    session = interpreter.journal.read() if interpreter.messages else None
    if session is not None and interpreter.journal.is_in_step:
        # In memory is what was printed, in the record what may be told.
        session.messages = interpreter.messages
        entries = entries_from_session(session)
    else:
        entries = entries_from_messages(interpreter.messages)
    if not entries:
        terminal.display.line("There is nothing to write down yet.")
    if wanted is None or not entries:
        return None
    title = (session.title if session else "") or title_of(entries)
    if KEEP_SECRETS in wanted.flags:
        return _Found(entries, title, [])
    known = known_secrets(interpreter.llm)
    entries = secrets.without_secrets(entries, known)
    title = redacted(title, known)[0]
    return _Found(entries, title, secrets.notice(secrets.notes_in_entries(entries)))


def _folder(interpreter: OpenInterpreter) -> str:
    return interpreter.computer.surroundings.cwd


def _told(terminal: Terminal, path: Path, what: str, notes: Sequence[str] = ()) -> None:
    lines = [f"{what} is in {path}.", *(f"- {note}" for note in notes)]
    terminal.display.line("\n".join(lines))


def _jupyter(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.export.notebook import notebook
    from interpreter.export.target import choose_path, write

    wanted = _read(terminal, argument)
    found = _entries(terminal, interpreter, wanted)
    if wanted is None or found is None:
        return
    entries, title, notes = found
    path = choose_path(wanted.path, _folder(interpreter), title, ".ipynb", wanted.force)
    write(path, notebook(entries, title), wanted.force)
    _told(terminal, path, "The notebook", notes)


def _markdown(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.export.markdown import markdown
    from interpreter.export.target import choose_path, pictures_folder, write

    wanted = _read(terminal, argument)
    found = _entries(terminal, interpreter, wanted)
    if wanted is None or found is None:
        return
    entries, title, notes = found
    path = choose_path(wanted.path, _folder(interpreter), title, ".md", wanted.force)
    document = markdown(entries, title, pictures_folder(path).name)
    write(path, document.text, wanted.force, document.pictures)
    where = [f"Its pictures are in {pictures_folder(path).name}/."] if document.pictures else []
    _told(terminal, path, "The conversation", [*where, *notes])


def _html(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.export.page import page
    from interpreter.export.target import choose_path, write

    wanted = _read(terminal, argument)
    found = _entries(terminal, interpreter, wanted)
    if wanted is None or found is None:
        return
    entries, title, notes = found
    path = choose_path(wanted.path, _folder(interpreter), title, ".html", wanted.force)
    write(path, page(entries, title), wanted.force)
    _told(terminal, path, "The page", notes)


def _script(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    from interpreter.export.script.environment import installed_for
    from interpreter.export.script.program import program
    from interpreter.export.secrets import notes_in, notice
    from interpreter.export.target import choose_path, write

    wanted = _read(terminal, argument, "--all", "--verify")
    found = _entries(terminal, interpreter, wanted)
    if wanted is None or found is None:
        return
    entries, title, _ = found
    folder = _folder(interpreter)
    path = choose_path(wanted.path, folder, title, ".py", wanted.force)
    installed = installed_for(_python(interpreter), interpreter.computer.surroundings.environment())
    made = program(entries, title, installed, folder, everything="--all" in wanted.flags)
    write(path, made.text, wanted.force)
    elsewhere = os.path.realpath(folder) != os.path.realpath(interpreter.workspace)
    where = [f"Start it in {interpreter.workspace}, where the conversation began."] if elsewhere else []
    left_out = [] if KEEP_SECRETS in wanted.flags else notice(notes_in(made.text))
    _told(terminal, path, f"A program of {made.kept} of the {made.blocks} blocks", [*made.notes, *where, *left_out])
    if "--verify" in wanted.flags:
        _verify(terminal, interpreter, made, entries)


def _python(interpreter: OpenInterpreter) -> str:
    import sys

    from interpreter.languages.python.which import which_python

    shared = interpreter.computer.surroundings
    return sys.executable if shared.python == "in-process" else which_python(shared.python, shared.environment())


def _verify(terminal: Terminal, interpreter: OpenInterpreter, made: Program, entries: Sequence[Entry]) -> None:
    """Run what was just written, if the user says yes, and tell what came of it."""
    from interpreter.export.script.verify import Verification
    from interpreter.journal.entries import Block

    if not interpreter.auto_run and (terminal.ask(_VERIFY_QUESTION) or "").strip().lower() not in ("y", "yes"):
        terminal.display.line("Not verified.")
        return
    verification = Verification(
        made.text,
        _python(interpreter),
        Path(interpreter.workspace),
        made.pictures,
        next((entry.at for entry in entries if isinstance(entry, Block)), None),
        interpreter.computer.surroundings.environment(),
    )
    report = verification.run()
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


COMMANDS = (
    Command("jupyter", "[path]", "write the conversation as a notebook that runs", _jupyter),
    Command("markdown", "[path]", "write the conversation as Markdown", _markdown),
    Command("html", "[path]", "write the conversation as one page", _html),
    Command("script", "[path] [--all] [--verify]", "write a program of the blocks that the result needs", _script),
)
