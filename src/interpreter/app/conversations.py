"""Saved conversations: list and find them, resume one, and run its blocks again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from interpreter.app import perform
from interpreter.errors import ConversationFileError, LanguageNotFound
from interpreter.host import files
from interpreter.policy.approval import BlockApproval
from interpreter.session import Block as RunBlock
from interpreter.session import Do, Event, Ids, Publisher
from interpreter.session.journal import find, last_in, listed
from interpreter.session.journal.reader import Block, entries_from_messages, entries_from_session

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.runtimes.base import BaseLanguage
    from interpreter.session.journal import SavedSession, Summary
    from interpreter.session.journal.reader import Entry

# The model reads these before the user's next message.
_RESUMED = (
    "[This conversation was taken up again on {date}, in a new process. The live sessions of before are over: "
    "variables, functions and imports are gone, files are still there. {again}The working directory is {folder}.]"
)
_NEW_RUNTIME = (
    "[The user has begun the {name} session anew and run {done} of its {all} blocks again that had run well.]"
)
_RERUN = "The user has run {done} of the {all} blocks that had run well again, so what they define is there. "


# -- finding -----------------------------------------------------------------------------------------------------


def list_conversations(interpreter: OpenInterpreter, words: str = "") -> list[Summary]:
    """The saved conversations, newest first, whose title or folder has all these words."""
    wanted = words.lower().split()
    rows = listed(interpreter.journal.root)
    return [row for row in rows if all(word in f"{row.title} {row.facts.folder}".lower() for word in wanted)]


def find_conversation(interpreter: OpenInterpreter, beginning: str) -> Summary:
    """The conversation whose id begins like this, or a conversation file of Open Interpreter 0.4.3."""
    return find(interpreter.journal.root, beginning)


def last_conversation(interpreter: OpenInterpreter) -> Summary:
    """The newest conversation in this workspace."""
    return last_in(interpreter.journal.root, os.path.abspath(interpreter.workspace))


# -- resuming ----------------------------------------------------------------------------------------------------


def resume(
    interpreter: OpenInterpreter, conversation: Summary, leave: bool = False
) -> Generator[Event, None, SavedSession]:
    """Continue a saved conversation; with `leave`, first end the one that is open here, and its runtimes.

    Its live variables are gone. The model is told so; `Rerun` builds them again.
    """

    def take_up() -> SavedSession:
        if leave:
            interpreter.reset()
        session = interpreter.journal.resume(conversation)
        if blocks_to_rerun(session):
            interpreter.journal.tell_model(_note(interpreter))
        return session

    # The journal changes under it, so neither the old nor the new one can have the whole action.
    return (yield from perform(interpreter, Do("resume", take_up, "a conversation is being resumed", recorded=False)))  # type: ignore[no-any-return]


def branch(interpreter: OpenInterpreter, title: str = "") -> Generator[Event, None, str]:
    """Go on in a new conversation that begins with this one, which stays as it is; the new id."""
    action = Do("branch", lambda: interpreter.journal.branch(title or None), recorded=False)
    return (yield from perform(interpreter, action))  # type: ignore[no-any-return]


def blocks_to_rerun(session: SavedSession) -> list[Block]:
    """The blocks of a conversation that ran well: together they built its variables."""
    return _that_ran_well(entries_from_session(session))


class Rerun:
    """Runs the blocks that ran well once more, in order, until one fails. Each is approved as always.

    With a language, it runs only the blocks in that language, in a new runtime. That brings variables back where undo
    cannot.
    """

    def __init__(self, interpreter: OpenInterpreter, language: str = "") -> None:
        self._interpreter = interpreter
        computer = interpreter.computer
        self.language: type[BaseLanguage] | None = computer.get_language(language) if language else None
        if language and self.language is None:
            raise LanguageNotFound(f"There is no language {language!r} here.")
        session = interpreter.journal.read()
        if session is not None:
            self.blocks = blocks_to_rerun(session)
        else:
            self.blocks = _that_ran_well(entries_from_messages(interpreter.messages))
        if self.language is not None:
            self.blocks = [block for block in self.blocks if computer.get_language(block.language) is self.language]
        self.done = 0  # how many ran well this time

    def events(self) -> Generator[Event, None, int]:
        """Run them: for each the code, then what its run publishes. Gives how many ran well."""
        interpreter, language = self._interpreter, self.language
        if language is not None:
            end = Do(
                "end_runtime",
                lambda: interpreter.computer.runtimes.end(language.name),
                f"{language.name} is being ended",
            )
            yield from perform(interpreter, end)
        try:
            for block in self.blocks:
                if not (yield from self._run(block)):
                    break
                self.done += 1
        finally:
            counts = {"done": self.done, "all": len(self.blocks)}
            if self.blocks and language is not None:
                interpreter.journal.tell_model(_NEW_RUNTIME.format(name=language.name, **counts))
            elif self.blocks:
                interpreter.journal.tell_model(_note(interpreter, _RERUN.format(**counts)))
        return self.done

    def _run(self, block: Block) -> Generator[Event, None, bool]:
        interpreter = self._interpreter
        shown = Publisher(interpreter.session.log, Ids(actor=interpreter.agent.id))
        yield from shown.publish({"role": "assistant", "type": "code", "format": block.language, "content": block.code})
        yield from shown.close()
        action = RunBlock(interpreter.runtimes, block.language, block.code, BlockApproval(interpreter, stored=False))
        exit_code = None
        with closing(interpreter.session.perform(action, interpreter.agent)) as events:
            for event in events:
                exit_code = event.data.get("exit_code", exit_code)
                yield event
        return not action.refused and action.outcome == "done" and not exit_code


def _that_ran_well(entries: Iterable[Entry]) -> list[Block]:
    # What the user ran themselves without any output looks as if it had not been run.
    blocks = [entry for entry in entries if isinstance(entry, Block)]
    return [each for each in blocks if each.succeeded or (each.author == "user" and each.decision == "not_run")]


def _note(interpreter: OpenInterpreter, again: str = "") -> str:
    folder = interpreter.computer.context.cwd
    return _RESUMED.format(date=time.strftime("%d %B %Y"), again=again, folder=folder)


# -- as a file ---------------------------------------------------------------------------------------------------


def save_messages(interpreter: OpenInterpreter, path: str = "") -> str:
    """Write the conversation to a JSON file; where that is."""
    path = _message_file(interpreter, path)
    text = json.dumps(interpreter.messages, indent=2, ensure_ascii=False, default=str)
    try:
        files.write_bytes(path, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise ConversationFileError(f"Could not write {path}: {error.strerror}.") from error
    return os.path.abspath(path)


def load_messages(interpreter: OpenInterpreter, path: str = "") -> Generator[Event, None, str]:
    """Replace the conversation by the one in such a file; where that is."""
    path = _message_file(interpreter, path)
    try:
        messages = json.loads(files.read_bytes(path))
    except OSError as error:
        raise ConversationFileError(f"Could not read {path}: {error.strerror}.") from error
    except ValueError:
        messages = None
    if not isinstance(messages, list) or not all(isinstance(item, dict) and "role" in item for item in messages):
        raise ConversationFileError(f"{path} is not a conversation: it must hold a JSON list of messages.")
    yield from perform(interpreter, Do("load", lambda: setattr(interpreter, "messages", messages)))
    return os.path.abspath(path)


def _message_file(interpreter: OpenInterpreter, path: str) -> str:
    """Relative to the workspace: where the runtimes are, only code says."""
    path = os.path.join(interpreter.workspace, os.path.expanduser(path or "messages.json"))
    return path if path.endswith(".json") else path + ".json"
