"""Saved conversations: list and find them, resume one, and run its blocks again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass

from interpreter.api import OpenInterpreter
from interpreter.app import perform, result_of
from interpreter.console_text import counted, first_few
from interpreter.errors import ConversationFileError, LanguageNotFound, NotRestorableError
from interpreter.host import files
from interpreter.policy.policy import mode_of
from interpreter.questions import APPROVE, REFUSE, Choose, Question
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.pool import Outcomes
from interpreter.runtimes.state import Restored
from interpreter.session import Block, Do, Event, Ids, Publisher
from interpreter.session.journal import SavedSession, Summary, find, listed
from interpreter.session.journal.reader import (
    Entry,
    RecordedBlock,
    entries_from_messages,
    entries_from_session,
    read_original,
)

RERUN = "rerun"  # an answer about variables: run the blocks again that built them
_NAMED = 8  # variables that a question names
# The model reads these before the user's next message.
_RESUMED = (
    "[This conversation was resumed on {date}, in a new process. The earlier live sessions have ended: "
    "variables, functions and imports are gone, files are still there. {again}The working directory is {folder}.]"
)
_NEW_RUNTIME = "[The user has restarted the {name} session and run {done} of its {all} successful blocks again.]"
_RESTORED = (
    "[This conversation was resumed on {date}, in a new process. The user has restored the saved variables: "
    "{names}.{lost} Files are still there. The working directory is {folder}.]"
)
_STILL_RUNNING = (
    "[This conversation was resumed on {date}, in a new process. The live sessions on {machine} are still running, so "
    "variables, functions and imports are back; a block that was running was interrupted. The working directory is "
    "{folder}.]"
)
_RERUN = "The user has run {done} of the {all} successful blocks again, so what they define exists. "


# -- finding -----------------------------------------------------------------------------------------------------


def list_conversations(interpreter: OpenInterpreter, words: str = "") -> list[Summary]:
    """Return the saved conversations, newest first, whose title or folder has all these words."""
    wanted = words.lower().split()
    return [
        row
        for row in listed(interpreter.journal.root)
        if all(word in f"{row.title} {row.facts.folder}".lower() for word in wanted)
    ]


def find_conversation(interpreter: OpenInterpreter, beginning: str) -> Summary:
    """Find the conversation whose id begins like this, or a conversation file of Open Interpreter 0.4.3."""
    return find(interpreter.journal.root, beginning)


# -- resuming ----------------------------------------------------------------------------------------------------


def resume(
    interpreter: OpenInterpreter, conversation: Summary, leave: bool = False
) -> Generator[Event, None, SavedSession]:
    """Continue a saved conversation; with `leave`, first end the one that is open here, and its runtimes.

    Its live variables are gone. The model gets a note about it; `restore_variables` and `Rerun` bring them back.
    """

    def take_up() -> SavedSession:
        if leave:
            interpreter.reset()
        session = interpreter.journal.resume(conversation)
        if blocks_to_rerun(entries_from_session(session)):
            interpreter.journal.tell_model(_note(interpreter))
        return session

    # Not recorded: the action switches journals, so neither could have all of it.
    return (yield from perform(interpreter, Do("resume", take_up, "a conversation is being resumed", recorded=False)))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class VariablesOffer:
    """The variables of a resumed conversation, and how they can come back."""

    names: list[str]  # those that were saved; empty if none were
    lost: list[str]  # those that could not be saved
    saved_at: float
    newer_blocks: int  # how many blocks ran after that
    blocks: int  # how many blocks could be run again instead

    @property
    def words(self) -> str:
        blocks = "the block that built them" if self.blocks == 1 else f"the {self.blocks} blocks that built them"
        if not self.names:
            return f"The variables are gone. Run {blocks} again?"
        lines = [f"Variables saved {_ago(self.saved_at)}: {first_few(self.names, _NAMED)}."]
        if self.lost:
            lines.append(f"Not saved: {first_few(self.lost, _NAMED)}.")
        if self.newer_blocks:
            lines.append(f"{counted(self.newer_blocks, 'block')} ran after that.")
        return "\n".join([*lines, "Restore them?"])


def variables_offer(interpreter: OpenInterpreter) -> VariablesOffer | None:
    """Look up what to offer right after a conversation was resumed; None if it has no variables."""
    if still_running_on(interpreter):
        return None
    session, saved = interpreter.journal.read(), interpreter.timeline.variables.found
    blocks = blocks_to_rerun(entries_from_session(session)) if session is not None else []
    if session is None or not (blocks or saved):
        return None
    saved_at = min((entry["time"] for entry in saved.values()), default=0.0)
    last = max((entry["blocks"] for entry in saved.values()), default=session.last_block)
    newer = sum(block.number > last and block.ended is not None for block in session.blocks)
    names, lost = ([each for entry in saved.values() for each in entry[key]] for key in ("names", "lost"))
    return VariablesOffer(names, lost, saved_at, newer, len(blocks))


def still_running_on(interpreter: OpenInterpreter) -> str:
    """Name the other machine on which the runtimes of the resumed conversation are still alive; else empty."""
    machine = interpreter.computer.machine
    return machine.name if getattr(machine, "is_taken_over", False) and machine.connected else ""


def restore_variables(interpreter: OpenInterpreter) -> Generator[Event, None, Outcomes | None]:
    """Restore the variables of a conversation that was just resumed; return the outcome for each language.

    It asks first, unless code runs without asking. None if the answer was no, or nothing was saved. The answer `RERUN`
    is for the front end: it runs the blocks again, with `Rerun(interpreter, approved=True)`.
    """
    machine = interpreter.computer.machine
    if getattr(machine, "is_taken_over", False):
        yield from perform(interpreter, machine.connection())
    if name := still_running_on(interpreter):
        interpreter.journal.tell_model(_note(interpreter, text=_STILL_RUNNING, machine=name))
    offer = variables_offer(interpreter)
    if offer is None or not offer.names:
        return None
    question = None
    if mode_of(interpreter) != "auto":
        question = Question(Choose(offer.words, (APPROVE, RERUN, REFUSE), "variables", offer))
    load = interpreter.timeline.variables.load
    action = Do("restore_variables", load, "variables are being restored", question, recorded=False)
    outcomes: Outcomes | None = yield from perform(interpreter, action)
    if outcomes is not None and any(isinstance(each, Restored) for each in outcomes.values()):
        lost = [*offer.lost, *(str(each) for each in outcomes.values() if isinstance(each, NotRestorableError))]
        values = {"names": first_few(offer.names, 50), "lost": f" Not restored: {first_few(lost, 50)}." if lost else ""}
        interpreter.journal.tell_model(_note(interpreter, text=_RESTORED, **values))
    return outcomes


def _ago(then: float) -> str:
    seconds = max(0.0, time.time() - then)
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"


def branch(interpreter: OpenInterpreter, title: str = "") -> Generator[Event, None, str]:
    """Continue in a new conversation that starts as a copy of this one; returns the new id."""
    action = Do("branch", lambda: interpreter.journal.branch(title or None), recorded=False)
    return (yield from perform(interpreter, action))  # type: ignore[no-any-return]


class UndoableReset:
    """A reset that can be undone as long as this object has not been discarded: it keeps the runtimes alive."""

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self.interpreter = interpreter
        interpreter.journal.sync()
        self._session = interpreter.journal.id
        self._messages, self._functions = interpreter.messages, interpreter.approver.known_functions
        self._marks = {each.id: each.mark for each in interpreter.timeline.checkpoints}
        result_of(perform(interpreter, Do("reset", self._reset, "a reset is running", recorded=False)))

    def _reset(self) -> None:
        self._runtimes = self.interpreter.runtimes.suspend()
        self.interpreter.reset()

    def undo(self) -> Generator[Event, None, None]:
        """Restore the conversation, the variables and the undo history; anything done since the reset is dropped."""
        yield from perform(self.interpreter, Do("undo", self._undo, "a reset is being undone", recorded=False))

    def _undo(self) -> None:
        interpreter = self.interpreter
        interpreter.reset()
        if self._session is None:
            interpreter.messages = self._messages
        else:
            interpreter.journal.resume(find_conversation(interpreter, self._session))
        for each in interpreter.timeline.checkpoints:
            each.mark = self._marks.get(each.id)
        interpreter.approver.known_functions = self._functions
        interpreter.runtimes.restore(self._runtimes)

    def discard(self) -> None:
        """End the runtimes from before the reset."""
        self._runtimes.terminate()


def blocks_to_rerun(entries: Iterable[Entry]) -> list[RecordedBlock]:
    """Select the blocks that ran well: together they built the conversation's variables."""
    # What the user ran themselves without any output looks as if it had not been run.
    blocks = [entry for entry in entries if isinstance(entry, RecordedBlock)]
    return [each for each in blocks if each.succeeded or (each.author == "user" and each.decision == "not_run")]


class Rerun:
    """Runs the successful blocks once more, in order, until one fails. Each needs approval as usual.

    With a language, it runs only the blocks in that language, in a new runtime. That brings variables back where undo
    cannot. `approved` means that the user has approved all of them at once: a block is then asked about only if more
    than the permission mode asks, such as a rule or a scan.
    """

    def __init__(self, interpreter: OpenInterpreter, language: str = "", approved: bool = False) -> None:
        self._interpreter, self._approved = interpreter, approved
        computer = interpreter.computer
        self.language: type[BaseLanguage] | None = computer.get_language(language) if language else None
        if language and self.language is None:
            raise LanguageNotFound(f"There is no language {language!r}.")
        session = interpreter.journal.read()
        known = entries_from_session(session) if session is not None else entries_from_messages(interpreter.messages)
        self.blocks = blocks_to_rerun(known)
        if self.language is not None:
            self.blocks = [block for block in self.blocks if computer.get_language(block.language) is self.language]
        self.done = 0  # how many ran well this time

    def events(self) -> Generator[Event, None, int]:
        """Run the blocks, yield the code and then the events of each, and return how many succeeded."""
        interpreter, language = self._interpreter, self.language
        if language is not None:
            end = Do(
                "end_runtime",
                lambda: interpreter.computer.runtimes.end(language.name),
                f"{language.name} is stopping",
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

    def _run(self, block: RecordedBlock) -> Generator[Event, None, bool]:
        interpreter = self._interpreter
        shown = Publisher(interpreter.session.log, Ids(actor=interpreter.agent.actor.id))
        yield from shown.publish({"role": "assistant", "type": "code", "format": block.language, "content": block.code})
        yield from shown.close()
        action = Block(block.language, block.code)
        exit_code = None
        with closing(interpreter.session.perform(action, interpreter.agent.actor)) as events:
            for event in events:
                exit_code = event.data.get("exit_code", exit_code)
                question = interpreter.session.questions.find(event.data.get("question", ""))
                if self._approved and question is not None and question.continuing_is_consent:
                    interpreter.session.answer(question.id, APPROVE)
                yield event
        return not action.refused and action.outcome == "done" and not exit_code


def _note(interpreter: OpenInterpreter, again: str = "", text: str = _RESUMED, **more: str) -> str:
    return text.format(date=time.strftime("%d %B %Y"), again=again, folder=interpreter.computer.context.cwd, **more)


# -- as a file ---------------------------------------------------------------------------------------------------


def save_messages(interpreter: OpenInterpreter, path: str = "") -> str:
    """Write the conversation to a JSON file and return its path. Printed secrets are redacted, as in the journal."""
    path = _message_file(interpreter, path)
    text = json.dumps(interpreter.journal.stored_messages(), indent=2, ensure_ascii=False, default=str)
    try:
        files.write_bytes(path, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise ConversationFileError(f"Can't write {path}: {error.strerror}.") from error
    return os.path.abspath(path)


def load_messages(interpreter: OpenInterpreter, path: str = "") -> Generator[Event, None, str]:
    """Replace the conversation with one from such a file and return its path."""
    path = _message_file(interpreter, path)
    messages = read_original(path)
    yield from perform(interpreter, Do("load", lambda: setattr(interpreter, "messages", messages)))
    return os.path.abspath(path)


def _message_file(interpreter: OpenInterpreter, path: str) -> str:
    """Resolve a path in the workspace, not in the runtimes' current folder, which only code knows."""
    path = os.path.join(interpreter.workspace, os.path.expanduser(path or "messages.json"))
    return path if path.endswith(".json") else path + ".json"
