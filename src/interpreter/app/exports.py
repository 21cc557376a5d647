"""Write the conversation to a file: as a notebook, Markdown, a web page, or a program."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.app import perform
from interpreter.errors import UsageError
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
from interpreter.session import Actor, Do, Event
from interpreter.session.journal.reader import Entry, entries_from_messages, entries_from_session

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.runtimes.launch import RuntimeContext
    from interpreter.script.program import Installed

TABLE_FILES = ("csv", "tsv", "parquet", "xlsx")


@dataclass
class Export:
    """The file that an export wrote, and the entries in it."""

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
    """Write the conversation to a file on behalf of `by` (default: the user); None if it is empty.

    `form` is a name in `interpreter.export.EXPORTERS`. Without a path, the name is the title of the conversation. An
    existing file is only replaced with `force`. Secrets are left out unless `keep_secrets` is set. A script
    contains the blocks that the result needs, or all of them with `whole`.
    """
    from interpreter.llm.secrets import replace_secrets

    def installed() -> Installed:
        shared = runtime_context(interpreter)
        listed: Installed = load("interpreter.script.program:installed_for")(
            python_of(shared), shared.environment(), shared.containment
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


def runtime_context(interpreter: OpenInterpreter) -> RuntimeContext:
    """Apply the sandbox that the settings ask for now, then return the context of the runtimes."""
    interpreter.runtimes.apply_sandbox()
    return interpreter.runtimes.context


def python_of(shared: RuntimeContext) -> str:
    return sys.executable if shared.python == "in-process" else shared.python_environment().python
