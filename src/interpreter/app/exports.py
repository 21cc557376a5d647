"""Write the conversation to a file: as a notebook, Markdown, a web page, or a program."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from interpreter.app import perform
from interpreter.session import Do, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.export.script.program import Program
    from interpreter.export.script.verify import Report
    from interpreter.session import Event
    from interpreter.session.journal.entries import Entry

Format = Literal["notebook", "markdown", "html", "script"]
SUFFIXES: dict[Format, str] = {"notebook": ".ipynb", "markdown": ".md", "html": ".html", "script": ".py"}
VERIFY = "Run the program again, in a copy of this folder? What it does elsewhere is done again too."


@dataclass
class Export:
    """What was written, and where."""

    path: Path
    entries: list[Entry]
    notes: list[str] = field(default_factory=list)
    """What the reader should know about it, in sentences."""
    program: Program | None = None
    """For a script."""


def export(
    interpreter: OpenInterpreter,
    form: Format,
    path: str = "",
    force: bool = False,
    keep_secrets: bool = False,
    whole: bool = False,
) -> Generator[Event, None, Export | None]:
    """Write the conversation to a file; None if nothing has been said yet.

    Without a path, the name is the title of the conversation. An existing file is only replaced with `force`. Secrets
    are left out unless `keep_secrets` is set. A script has the blocks that the result needs, or with `whole` all.
    """
    writing = _Writing(interpreter, form, path, force, keep_secrets, whole)
    return (yield from perform(interpreter, Do("export", writing.write, "an export is being written")))  # type: ignore[no-any-return]


def verify(interpreter: OpenInterpreter, exported: Export) -> Generator[Event, None, Report | None]:
    """Run an exported script in a fresh process and a copy of the folder, and compare what it makes.

    Asks first, unless `auto_run` is set; None if the answer was no.
    """
    question = None if interpreter.auto_run else Question.in_words("confirm", "verify", VERIFY, exported)
    run = Do("verify", lambda: _verified(interpreter, exported), "an export is being verified", question=question)
    return (yield from perform(interpreter, run))  # type: ignore[no-any-return]


@dataclass
class _Writing:
    interpreter: OpenInterpreter
    form: Format
    path: str
    force: bool
    keep_secrets: bool
    whole: bool

    def write(self) -> Export | None:
        from interpreter.export.target import choose_path, write

        entries, title, notes = self._entries()
        if not entries:
            return None
        interpreter = self.interpreter
        folder, registry = interpreter.computer.surroundings.cwd, interpreter.computer.registry
        path = choose_path(self.path, folder, title, SUFFIXES[self.form], self.force)
        exported = Export(path, entries, notes)
        pictures: dict[str, bytes] = {}
        match self.form:
            case "notebook":
                from interpreter.export.notebook import notebook

                text = notebook(entries, title, registry)
            case "markdown":
                from interpreter.export.markdown import markdown
                from interpreter.export.target import pictures_folder

                document = markdown(entries, title, pictures_folder(path).name, registry)
                text, pictures = document.text, dict(document.pictures)
                if pictures:
                    exported.notes = [f"Its pictures are in {pictures_folder(path).name}/.", *notes]
            case "html":
                from interpreter.export.html import page

                text = page(entries, title, registry)
            case "script":
                exported.program = made = self._program(entries, title, folder)
                text, exported.notes = made.text, self._about(made, folder)
        write(path, text, self.force, pictures)
        return exported

    def _entries(self) -> tuple[list[Entry], str, list[str]]:
        """What happened, its title, and what was left out of it."""
        from interpreter.export import secrets
        from interpreter.export.target import title_of
        from interpreter.llm.request import known_secrets
        from interpreter.llm.secrets import redacted
        from interpreter.session.journal.entries import entries_from_messages
        from interpreter.session.journal.transcript import entries_from_session

        interpreter = self.interpreter
        session = interpreter.journal.read() if interpreter.messages else None
        if session is not None and interpreter.journal.is_in_step:
            # In memory is what was printed, in the record what may be told.
            session.messages = interpreter.messages
            entries = entries_from_session(session)
        else:
            entries = entries_from_messages(interpreter.messages)
        title = (session.title if session else "") or title_of(entries)
        if self.keep_secrets:
            return entries, title, []
        known = known_secrets(interpreter.llm)
        entries = secrets.without_secrets(entries, known)
        return entries, redacted(title, known)[0], secrets.notice(secrets.notes_in_entries(entries))

    def _program(self, entries: list[Entry], title: str, folder: str) -> Program:
        from interpreter.export.script.dependencies import installed_for
        from interpreter.export.script.program import program

        interpreter = self.interpreter
        installed = installed_for(_python(interpreter), interpreter.computer.surroundings.environment())
        return program(entries, title, installed, folder, self.whole, interpreter.computer.registry)

    def _about(self, made: Program, folder: str) -> list[str]:
        from interpreter.export.secrets import notes_in, notice

        workspace = self.interpreter.workspace
        elsewhere = os.path.realpath(folder) != os.path.realpath(workspace)
        where = [f"Start it in {workspace}, where the conversation began."] if elsewhere else []
        return [*made.notes, *where, *([] if self.keep_secrets else notice(notes_in(made.text)))]


def _verified(interpreter: OpenInterpreter, exported: Export) -> Report:
    from interpreter.export.script.verify import Verification
    from interpreter.session.journal.entries import Block

    assert exported.program is not None
    return Verification(
        exported.program.text,
        _python(interpreter),
        Path(interpreter.workspace),
        exported.program.pictures,
        next((entry.at for entry in exported.entries if isinstance(entry, Block)), None),
        interpreter.computer.surroundings.environment(),
    ).run()


def _python(interpreter: OpenInterpreter) -> str:
    from interpreter.runtimes.python.which import which_python

    shared = interpreter.computer.surroundings
    return sys.executable if shared.python == "in-process" else which_python(shared.python, shared.environment())
