"""Write the conversation to a file: as a notebook, Markdown, a web page, or a program."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.app import perform
from interpreter.session import Do, Question

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.export import Program
    from interpreter.export.script.verify import Report
    from interpreter.session import Event
    from interpreter.session.journal.reader import Entry

VERIFY = "Run the program again, in a copy of this folder? What it does elsewhere is done again too."


@dataclass
class Export:
    """What was written, and where."""

    path: Path
    entries: list[Entry]
    notes: list[str] = field(default_factory=list)  # what the reader should know about it, in sentences
    program: Program | None = None  # for a script


def export(
    interpreter: OpenInterpreter,
    form: str,
    path: str = "",
    force: bool = False,
    keep_secrets: bool = False,
    whole: bool = False,
) -> Generator[Event, None, Export | None]:
    """Write the conversation to a file; None if nothing has been said yet.

    `form` is a name in `interpreter.export.EXPORTERS`. Without a path, the name is the title of the conversation. An
    existing file is only replaced with `force`. Secrets are left out unless `keep_secrets` is set. A script has the
    blocks that the result needs, or with `whole` all.
    """

    def write() -> Export | None:
        return _write(interpreter, form, path, force, keep_secrets, whole)

    return (yield from perform(interpreter, Do("export", write, "an export is being written")))  # type: ignore[no-any-return]


def verify(interpreter: OpenInterpreter, exported: Export) -> Generator[Event, None, Report | None]:
    """Run an exported script in a fresh process and a copy of the folder, and compare what it makes.

    Asks first, unless `auto_run` is set; None if the answer was no.
    """
    question = None if interpreter.auto_run else Question.in_words("confirm", "verify", VERIFY, exported)
    run = Do("verify", lambda: _verified(interpreter, exported), "an export is being verified", question=question)
    return (yield from perform(interpreter, run))  # type: ignore[no-any-return]


def _write(
    interpreter: OpenInterpreter, form: str, path: str, force: bool, keep_secrets: bool, whole: bool
) -> Export | None:
    from interpreter.export import EXPORTERS, Conversation, choose_path, secrets_notice, texts_of, without_secrets
    from interpreter.export import write as write_file
    from interpreter.llm.secrets import redacted

    entries, title = _entries(interpreter)
    if not entries:
        return None
    if not keep_secrets:
        known = interpreter.llm.known_secrets()
        entries, title = without_secrets(entries, known), redacted(title, known)[0]
    computer, exporter = interpreter.computer, EXPORTERS[form]
    shared = computer.context
    file = choose_path(path, shared.cwd, title, exporter.suffix, force)
    python, environment = partial(_python, interpreter), shared.environment()
    document = exporter.make(
        Conversation(entries, title, computer.registry, file, shared.cwd, python, environment, whole)
    )
    write_file(file, document.text, force, document.pictures)
    notes = list(document.notes)
    if document.program is not None and os.path.realpath(shared.cwd) != os.path.realpath(interpreter.workspace):
        notes.append(f"Start it in {interpreter.workspace}, where the conversation began.")
    if not keep_secrets:
        # A program has only some of the blocks.
        notes += secrets_notice(document.text if document.program else texts_of(entries))
    return Export(file, entries, notes, document.program)


def _entries(interpreter: OpenInterpreter) -> tuple[list[Entry], str]:
    """What happened, and its title."""
    from interpreter.export import title_of
    from interpreter.session.journal.reader import entries_from_messages, entries_from_session

    session = interpreter.journal.read() if interpreter.messages else None
    if session is not None and interpreter.journal.is_in_step:
        # In memory is what was printed, in the record what may be told.
        session.messages = interpreter.messages
        entries = entries_from_session(session)
    else:
        entries = entries_from_messages(interpreter.messages)
    return entries, (session.title if session else "") or title_of(entries)


def _verified(interpreter: OpenInterpreter, exported: Export) -> Report:
    from interpreter.export.script.verify import Verification
    from interpreter.session.journal.reader import Block

    assert exported.program is not None
    return Verification(
        exported.program.text,
        _python(interpreter),
        Path(interpreter.workspace),
        exported.program.pictures,
        next((entry.at for entry in exported.entries if isinstance(entry, Block)), None),
        interpreter.computer.context.environment(),
    ).run()


def _python(interpreter: OpenInterpreter) -> str:
    from interpreter.runtimes.python.language import which_python

    shared = interpreter.computer.context
    return sys.executable if shared.python == "in-process" else which_python(shared.python, shared.environment())
