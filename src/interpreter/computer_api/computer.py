"""The computer that blocks run on: its languages, and one way to run a block in any of them."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.tools import TOOLS, make
from interpreter.errors import (
    InterpreterError,
    LanguageNotFound,
    NotPreviewableError,
    NotRestorableError,
    UsageError,
)
from interpreter.languages.base import BaseLanguage
from interpreter.messages import Chunk, Fold, Framer, Message
from interpreter.settings import SettingsGroup

if TYPE_CHECKING:
    from interpreter.computer_api.tool import Tool
    from interpreter.core import OpenInterpreter
    from interpreter.languages.containment import Containment
    from interpreter.languages.jobs import Job
    from interpreter.languages.looking import Completions, Value, Variable, Window
    from interpreter.languages.states import Mark, Restored
    from interpreter.languages.surroundings import OnInput, Surroundings
    from interpreter.languages.trials.trial import Trial
    from interpreter.languages.trials.view import View
    from interpreter.preview import Preview
    from interpreter.wishes import Wish

Language = type[BaseLanguage]
IN_SANDBOX = "A block in a sandbox cannot be previewed: no view of the files can be made in there."


class Computer(SettingsGroup, group="computer"):
    """The user's computer, as the loop, the library and later the code itself see it."""

    def __init__(self, interpreter: OpenInterpreter | None = None) -> None:
        self._interpreter = interpreter
        self._languages: list[Language] | None = None
        self._running: dict[Language, BaseLanguage] = {}
        self._active: BaseLanguage | None = None
        self._shared: Surroundings | None = None
        self._left: list[Containment] = []  # that new sessions are not shut in any more
        self._on_trial: Trial | None = None
        self._tools: dict[str, Tool] = {}

    def __getattr__(self, name: str) -> Any:
        if name in TOOLS:
            return self._tools.get(name) or self._tools.setdefault(name, make(name, self))
        return super().__getattr__(name)

    # -- languages ---------------------------------------------------------------------------------------------

    @property
    def languages(self) -> list[Language]:
        """The classes of the languages that blocks may use; assign or append your own."""
        if self._languages is None:
            from interpreter.languages import built_in_languages

            self._languages = built_in_languages()
        return self._languages

    @languages.setter
    def languages(self, classes: list[Language]) -> None:
        for dropped in set(self._running) - set(classes):
            self._running.pop(dropped).terminate()
        self._languages = list(classes)

    @property
    def terminal(self) -> Computer:
        """The original kept its languages one level deeper; scripts still reach them there."""
        return self

    def get_language(self, name: str) -> Language | None:
        """The language of that name or alias, however it is capitalised."""
        wanted = name.strip().lower()
        for language in self.languages:
            if wanted == language.name.lower() or wanted in (alias.lower() for alias in language.aliases):
                return language
        return None

    def _instance(self, name: str) -> BaseLanguage:
        language = self.get_language(name)
        if language is None:
            raise LanguageNotFound(unknown_language(name, self.languages))
        if language not in self._running:
            self._running[language] = self._make(language)
        return self._running[language]

    def _make(self, language: Language) -> BaseLanguage:
        if language.name == "Python" and self.python == "in-process":
            from interpreter.languages.python.in_process import InProcessPython

            return InProcessPython(self)
        wants_computer = any(
            parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            for parameter in inspect.signature(language).parameters.values()
        )
        return language(self) if wants_computer else language()  # type: ignore[call-arg]

    def describe_languages(self) -> str:
        """The languages with what runs them, in words for the model."""
        from interpreter.languages.live import LiveLanguage

        self.shut_in()
        described = []
        for language in self.languages:
            instance = self._instance(language.name)
            name = language.name.lower()
            if isinstance(instance, LiveLanguage):
                name += f" ({instance.version() or 'not installed'})"
            described.append(name)
        return ", ".join(described)

    def has_python_package(self, name: str) -> bool:
        """Whether Python blocks can import a package, as far as can be told without starting a session."""
        from interpreter.languages.python.which import has_package, which_python

        try:
            return has_package(which_python(self.surroundings.python, self.surroundings.environment()), name)
        except InterpreterError:
            return False

    def is_alive(self, name: str) -> bool:
        """Whether the language has a session with what its blocks have defined."""
        from interpreter.languages.live import LiveLanguage

        language = self.get_language(name)
        instance = self._running.get(language) if language is not None else None
        if isinstance(instance, LiveLanguage):
            return instance.session is not None and instance.session.alive
        return instance is not None

    # -- what the sessions share ---------------------------------------------------------------------------------

    @property
    def surroundings(self) -> Surroundings:
        """What the live sessions share, with the settings as they are now."""
        from interpreter.languages.surroundings import Surroundings

        if self._shared is None:
            self._shared = Surroundings()
            if self._interpreter is not None:
                self._shared.cwd = self._interpreter.workspace
                self._shared.cancelled = self._interpreter._cancel.is_set
        shared, owner = self._shared, self._interpreter
        shared.python, shared.shell, shared.shell_rc = self.python, self.shell, self.shell_rc
        shared.active_lines = self.active_line_detection
        shared.snapshots = self.undo_snapshots
        if owner is not None:
            shared.timeout = owner.block_timeout
            shared.max_output = self.max_output or owner.max_output
        return shared

    def shut_in(self) -> None:
        """Have sessions that start from now on in the sandbox that the settings ask for, or in none."""
        shared = self.surroundings
        if self._interpreter is None:
            return
        before, shared.containment = shared.containment, self._interpreter.containment_now(shared.containment)
        if before is not None and before is not shared.containment:
            self._left.append(before)  # sessions may still be in there
            shared.exported.clear()  # such as LD_PRELOAD: programs outside would heed it

    @property
    def on_input(self) -> OnInput | None:
        """Asked when code wants input: `(prompt, is_password) -> answer`, None for end of file."""
        return self.surroundings.on_input

    @on_input.setter
    def on_input(self, ask: OnInput | None) -> None:
        self.surroundings.on_input = ask

    # -- running -------------------------------------------------------------------------------------------------

    def run(self, language: str, code: str, stream: bool = False, display: bool = False) -> Any:
        """Run code; the messages it made, or with `stream` a generator of its chunks."""
        chunks: Iterator[Chunk] = self._run_and_show(language, code) if display else self.stream(language, code)
        chunks = (chunk for chunk in chunks if chunk["type"] != "status")  # 0.4.3 had none, and scripts read them all
        return chunks if stream else collect(chunks, self.surroundings.max_output)

    def exec(self, code: str) -> Any:
        """Run a shell command."""
        return self.run("shell", code)

    def stream(self, language: str, code: str, instead: Iterable[Chunk] | None = None) -> Generator[Chunk]:
        """Run code and yield its chunks; what goes wrong is part of the output.

        With `instead`, these are the chunks of the block, which has run already.
        """
        try:
            self._active = self._instance(language)
            self.shut_in()  # and the settings as they are now
            if instead is None:
                self._end_trial()
                self.warm(language)  # it gets ready while the record looks at the workspace
            running = self._active.run(code) if instead is None else instead
            with closing(self._recorded(language, code, running)) as chunks:
                yield from chunks
        except InterpreterError as error:
            yield failure(f"{error}\n")
        except Exception:  # noqa: BLE001 - a user's own language may raise anything, and the model should read it
            yield failure(traceback.format_exc())
        finally:
            self._active = None

    def stream_widened(self, language: str, code: str, wish: Wish | None) -> Generator[Chunk]:
        """The same in a sandbox that gives what was asked for and granted, as long as that is for."""
        if wish is None:
            return self.stream(language, code)
        from interpreter.computer_api.widening import Widened

        return Widened(self, language, wish).run(code)

    def preview(self, language: str, code: str) -> Preview:
        """Try a block out, where nothing that it does lasts: see `interpreter.preview`."""
        if self._interpreter is None:
            raise UsageError("A preview needs an interpreter, whose workspace it is a view of.")
        return self._interpreter._preview(language, code)

    def trial(self, language: str, view: View) -> Trial:
        """A copy of a language's session, in a view of the file system."""
        self.shut_in()
        self._end_trial()
        if self.surroundings.containment is not None:
            raise NotPreviewableError(IN_SANDBOX)
        self._on_trial = self._instance(language).trial(view)
        return self._on_trial

    def _end_trial(self) -> None:
        """What goes on without a word about a trial is a no to it."""
        trial, self._on_trial = self._on_trial, None
        if trial is not None:
            trial.drop()

    def try_out(self, trial: Trial, code: str) -> Generator[Chunk]:
        """Run a block in such a copy."""
        self._active = trial.active
        try:
            with closing(generator(trial.run(code))) as chunks:
                yield from chunks
        finally:
            self._active = None

    def _recorded(self, language: str, code: str, chunks: Iterable[Chunk]) -> Generator[Chunk]:
        """The chunks of a block, with what the record of the session has to say before and after it."""
        timeline = self._interpreter.timeline if self._interpreter is not None else None
        if timeline is None:
            yield from chunks
            return
        try:
            yield from timeline.before_block(language, code)
            with closing(generator(chunks)) as running:
                for chunk in running:
                    if "ended" in chunk:
                        yield from timeline.after_block()
                    yield chunk
            yield from timeline.after_block()  # a language of somebody's own need not say that it is over
        finally:
            timeline.after_block()

    def _run_and_show(self, language: str, code: str) -> Iterator[Chunk]:
        from interpreter.frontend import show_chunks

        return show_chunks(self._interpreter, self.stream(language, code))

    def warm(self, language: str) -> None:
        """Start a language's session ahead of its first block, without waiting for it."""
        from interpreter.languages.live import LiveLanguage

        if self.get_language(language) is None:
            return
        instance = self._instance(language)
        if isinstance(instance, LiveLanguage):
            self.shut_in()
            instance.start()

    # -- between blocks ------------------------------------------------------------------------------------------

    def variables(self, language: str | None = None) -> dict[str, list[Variable]]:
        """The live variables by language: of one, or of all that have any; BusyError while a block runs."""
        if language is not None:
            found = self.get_language(language)
            if found is None:
                raise LanguageNotFound(unknown_language(language, self.languages))
            instance = self._running.get(found)
            return {found.name: instance.variables() if instance else []}
        listed = {each.name: instance.variables() for each, instance in list(self._running.items())}
        return {name: variables for name, variables in listed.items() if variables}

    def look(self, language: str, name: str, rows: Window = (0, 50), columns: Window = (0, 50)) -> Value:
        """A live value to look at: a window of a table, a picture, or text."""
        return self._instance(language).look(name, rows, columns)

    def complete(self, language: str, code: str, cursor: int | None = None) -> Completions:
        """What could be typed at the cursor; nothing if the language is busy, or has no session yet."""
        from interpreter.languages.looking import Completions

        found = self.get_language(language)
        instance = self._running.get(found) if found else None
        at = len(code) if cursor is None else cursor
        return instance.complete(code, at) if instance is not None else Completions(at)

    # -- states of the sessions ----------------------------------------------------------------------------------

    def mark(self) -> Mark:
        """This moment, to return to: the state of each language that has a return, the directory, the exports."""
        from interpreter.languages.states import Mark

        shared = self.surroundings
        states = {language.name: self._instance(language.name).state for language in self.languages}
        kept = {name: state for name, state in states.items() if state is not None}
        return Mark(kept, shared.cwd, dict(shared.exported))

    def go_back(self, mark: Mark) -> dict[str, Restored | NotRestorableError]:
        """Return to a moment, earlier or later; by language that was in another state, how that went."""
        told: dict[str, Restored | NotRestorableError] = {}
        for name, state in mark.states.items():
            try:
                if state != self.state(name):
                    told[name] = self.restore(name, state)
            except NotRestorableError as error:
                told[name] = error
        self.surroundings.return_to(mark.cwd, mark.exported)
        return told

    def state(self, language: str) -> int | None:
        """The same of one language, which may not have run anything yet; None if it has no return."""
        _ = self.surroundings
        return self._instance(language).state

    def points(self, language: str) -> list[int]:
        """The states that a language can return to, the oldest first."""
        return self._instance(language).points()

    def restore(self, language: str, state: int) -> Restored:
        """Return to a state; NotRestorableError if there is no way. The present one can be returned to after that."""
        _ = self.surroundings
        self._end_trial()
        return self._instance(language).restore(state)

    def split(self, other: Computer) -> dict[str, Restored | NotRestorableError]:
        """Give another computer, whose languages have not begun, the same variables; by language, how that went.

        The directory and the exported variables are the same there too; the caller may change them before a block runs.
        """
        told: dict[str, Restored | NotRestorableError] = {}
        other.shut_in()
        other.surroundings.return_to(self.surroundings.cwd, self.surroundings.exported)
        for language, instance in list(self._running.items()):
            try:
                other._running[language], told[language.name] = instance.split(other)
            except NotRestorableError as error:
                told[language.name] = error
        return told

    def send_keys(self, keys: bytes) -> None:
        """Hand what somebody typed to the shell block that is running."""
        send = getattr(self._active, "send_keys", None)
        if send is not None:
            send(keys)

    def detach(self) -> None:
        """Move the running block to the background."""
        detach = getattr(self._active, "detach", None)
        if detach is not None:
            detach()

    @property
    def jobs(self) -> list[Job]:
        """The blocks that were moved to the background."""
        return [job for language in self._running.values() for job in getattr(language, "jobs", ())]

    def stop(self) -> None:
        """End the running block; from any thread."""
        active = self._active
        if active is not None:
            active.stop()

    def terminate(self) -> None:
        """End all sessions and everything they started."""
        self._end_trial()
        running, self._running = self._running, {}
        for language in running.values():
            language.terminate()
        self._leave_sandboxes()

    def _leave_sandboxes(self) -> None:
        left, self._left = self._left, []
        if self._shared is not None and self._shared.containment is not None:
            left.append(self._shared.containment)
            self._shared.containment = None
            self._shared.exported.clear()
        for containment in left:
            containment.close()


def unknown_language(name: str, languages: list[Language]) -> str:
    known = ", ".join(language.name.lower() for language in languages)
    return f"`{name}` is disabled or not supported here. Languages to use: {known}."


def generator(chunks: Iterable[Chunk]) -> Generator[Chunk]:
    """A user's language may return any iterable; a generator can be closed."""
    yield from chunks


def failure(text: str) -> Chunk:
    return {"type": "console", "format": "output", "content": text, "stream": "stderr"}


def collect(chunks: Iterator[Chunk], max_output: int) -> list[Message]:
    """The messages of one block, without role."""
    messages: list[Message] = []
    fold, framer = Fold(lambda: messages, max_output), Framer()
    for chunk in chunks:
        for framed in framer.frame({**chunk, "role": "computer"}):
            fold.add(framed)
    fold.close()
    for message in messages:
        message.pop("role", None)
    return [message for message in messages if message["content"] != "" or "ended" in message]
