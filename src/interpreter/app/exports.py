"""Write the conversation to a file: as a notebook, Markdown, a web page, or a program."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from interpreter.app import perform
from interpreter.errors import ExportError, UsageError
from interpreter.export import (
    EXPORTERS,
    ExportedConversation,
    ExportedProgram,
    choose_path,
    secrets_notice,
    texts_of,
    title_of,
    without_secrets,
)
from interpreter.export import write as write_file
from interpreter.leaves import load
from interpreter.questions import Confirm, Question
from interpreter.session import Actor, Do, Event
from interpreter.session.journal.reader import Entry, RecordedBlock, entries_from_messages, entries_from_session

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.runtimes.launch import RuntimeContext
    from interpreter.sandbox.containment import Containment
    from interpreter.script.program import Installed
    from interpreter.script.verify import VerifyReport

TABLE_FILES = ("csv", "tsv", "parquet", "xlsx")
VERIFY = "Run the program again, in a copy of this folder?"


@dataclass
class Export:
    """What was written, and where."""

    path: Path
    entries: list[Entry]
    notes: list[str] = field(default_factory=list)  # what the reader should know about it, in sentences
    program: ExportedProgram | None = None  # for a script


def export(
    interpreter: OpenInterpreter,
    form: str,
    path: str = "",
    force: bool = False,
    keep_secrets: bool = False,
    whole: bool = False,
    by: Actor | None = None,
) -> Generator[Event, None, Export | None]:
    """Write the conversation to a file, for the user or `by`; None if nothing has been said yet.

    `form` is a name in `interpreter.export.EXPORTERS`. Without a path, the name is the title of the conversation. An
    existing file is only replaced with `force`. Secrets are left out unless `keep_secrets` is set. A script has the
    blocks that the result needs, or with `whole` all.
    """
    from interpreter.llm.secrets import replace_secrets

    def installed() -> Installed:
        shared = _runtime_context(interpreter)
        listed: Installed = load("interpreter.script.program:installed_for")(
            _python(shared), shared.environment(), shared.containment
        )
        return listed

    def write() -> Export | None:
        session = interpreter.journal.read() if interpreter.messages else None
        if session is not None and interpreter.journal.is_in_step:
            # The messages in memory show what was printed; in the journal, secrets are redacted.
            session.messages = interpreter.messages
            entries = entries_from_session(session)
        else:
            entries = entries_from_messages(interpreter.messages)
        title = (session.title if session else "") or title_of(entries)
        if not entries:
            return None
        if not keep_secrets:
            known = interpreter.llm.known_secrets()
            entries, title = without_secrets(entries, known), replace_secrets(title, known)[0]
        folder, registry, exporter = interpreter.workspace, interpreter.computer.registry, EXPORTERS[form]
        # Not relative to the directory that code moved to: only code knows where that is.
        file = choose_path(path, folder, title, exporter.suffix, force)
        document = exporter.make(ExportedConversation(entries, title, registry, file, folder, installed, whole))
        write_file(file, document.text, force, document.pictures)
        notes = list(document.notes)
        if not keep_secrets:
            # A program has only some of the blocks.
            notes += secrets_notice(document.text if document.program else texts_of(entries))
        return Export(file, entries, notes, document.program)

    return (yield from perform(interpreter, Do("export", write, "an export is being written"), by))  # type: ignore[no-any-return]


def export_table(
    interpreter: OpenInterpreter, path: str, fetch: Callable[[str], bytes]
) -> Generator[Event, None, Path]:
    """Write a table to a new file of the workspace. `fetch` returns its content as csv, tsv, parquet or xlsx."""
    file = Path(interpreter.workspace, os.path.expanduser(path))
    form = file.suffix.lower()[1:]
    if form not in TABLE_FILES:
        raise UsageError(f"Tables are exported to {', '.join(f'.{each}' for each in TABLE_FILES)} files.")
    if os.path.lexists(file):
        raise UsageError(f"{path} exists already. Choose another name.")
    content = fetch(form)
    yield from perform(interpreter, Do("export", lambda: write_file(file, content), "a table is being exported"))
    return file


def verify(interpreter: OpenInterpreter, exported: Export) -> Generator[Event, None, VerifyReport | None]:
    """Run an exported script in a sandbox, a fresh process and a copy of the folder, and compare what it makes.

    Always asks first; None if the answer was not a yes.
    """
    program = exported.program
    assert program is not None

    def run() -> VerifyReport:
        shared = _runtime_context(interpreter)
        environment = shared.python_environment()
        verification = load("interpreter.script.verify:Verification")(
            program.text,
            _python(shared),
            Path(interpreter.workspace),
            program.pictures,
            next((entry.at for entry in exported.entries if isinstance(entry, RecordedBlock)), None),
            shared.environment(),
            cast("Containment | None", shared.containment),
            environment.folder if environment.is_layer else "",
            environment.stack,
        )
        try:
            return verification.run()  # type: ignore[no-any-return]
        except OSError as error:
            raise ExportError(f"The program could not be verified: {error}") from error

    where = load("interpreter.script.verify:place_of_run")(_runtime_context(interpreter).containment)
    question = Question(Confirm(f"{VERIFY} {where}", "verify", details=exported))
    return (yield from perform(interpreter, Do("verify", run, "an export is being verified", question=question)))  # type: ignore[no-any-return]


def _runtime_context(interpreter: OpenInterpreter) -> RuntimeContext:
    """Apply the sandbox that the settings ask for now, then return the context of the runtimes."""
    interpreter.runtimes.apply_sandbox()
    return interpreter.runtimes.context


def _python(shared: RuntimeContext) -> str:
    return sys.executable if shared.python == "in-process" else shared.python_environment().python
