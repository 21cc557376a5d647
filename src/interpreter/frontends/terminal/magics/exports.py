"""Commands that write the conversation down: as a notebook, Markdown, a page, or a program."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from interpreter.frontends.terminal.magics.command import Command
from interpreter.session import APPROVE, REFUSE, Answer, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.app.exports import Export, Format
    from interpreter.export.script.verify import Report
    from interpreter.frontends.terminal.terminal import Terminal

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


def _export(terminal: Terminal, interpreter: OpenInterpreter, form: Format, wanted: _Wanted | None) -> Export | None:
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


def _jupyter(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    _export(terminal, interpreter, "notebook", _read(terminal, argument))


def _markdown(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    _export(terminal, interpreter, "markdown", _read(terminal, argument))


def _html(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    _export(terminal, interpreter, "html", _read(terminal, argument))


def _script(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
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


COMMANDS = (
    Command("jupyter", "[path]", "write the conversation as a notebook that runs", _jupyter),
    Command("markdown", "[path]", "write the conversation as Markdown", _markdown),
    Command("html", "[path]", "write the conversation as one page", _html),
    Command("script", "[path] [--all] [--verify]", "write a program of the blocks that the result needs", _script),
)
