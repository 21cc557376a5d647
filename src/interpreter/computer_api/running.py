"""Running blocks on a computer: one at a time, in any of its languages, with everything that goes on around one."""

from __future__ import annotations

import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.languages import Languages
from interpreter.errors import BusyError, InterpreterError, NotPreviewableError, UsageError
from interpreter.messages import Chunk, Fold, Framer, Message
from interpreter.runtimes.base import BaseLanguage
from interpreter.session import ANSWER, Actor, Answer, Block, Performance, Question, Session
from interpreter.sigint import call_user_code, guarded, iterate_user_code

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.runtimes.live import Job
    from interpreter.runtimes.overlay import DryRun, Overlay
    from interpreter.session.preview import Preview

IN_SANDBOX = "A block in a sandbox cannot be previewed: no view of the files can be made in there."


class Running(Languages):
    """The part of the computer that runs blocks."""

    def __init__(self, interpreter: OpenInterpreter | None = None) -> None:
        super().__init__(interpreter)
        self._session: Session | None = None
        self._user: Actor | None = None
        self._active: BaseLanguage | None = None
        self._on_trial: DryRun | None = None

    # -- through the session's pipeline ----------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """The session that this computer belongs to, which everything done on it goes through."""
        if self._session is None:
            owner = self._interpreter
            joined = owner.session if owner is not None else Session()
            with self._making:
                self._session = self._session or joined
        return self._session

    @property
    def user(self) -> Actor:
        """Whoever calls `run`: the one who holds this computer."""
        if self._user is None:
            owner = self._interpreter
            with self._making:
                self._user = self._user or (owner.user if owner is not None else self.session.add_actor("user", None))
        return self._user

    def belong_to(self, session: Session, user: Actor) -> None:
        """Be the computer of a session."""
        self._session, self._user = session, user

    def run(self, language: str, code: str, stream: bool = False, display: bool = False, wait: bool = True) -> Any:
        """Run code; the messages it made, or with `stream` a generator of its chunks.

        While another block of the session runs, this one waits, or raises BusyError if `wait` is false.
        """
        block = Block(self, language, code)
        performance = self.session.perform(block, self.user, wait)
        if display:
            from interpreter.frontend import show_events

            chunks = plain_chunks(show_events(self._interpreter, performance))
        else:
            chunks = block_chunks(performance)
        # 0.4.3 had no chunks of this type, and scripts read them all
        told: Generator[Chunk] = (chunk for chunk in chunks if chunk["type"] != "status")
        if not display:  # a terminal has a handler of its own
            told = guarded(told, partial(self.session.cancel, block))
        if stream:
            return told
        with closing(told):
            return collect(told, self.context.max_output)

    def exec(self, code: str) -> Any:
        """Run a shell command."""
        return self.run("shell", code)

    def stream(self, language: str, code: str) -> Generator[Chunk]:
        """Run code and yield its chunks; what goes wrong is part of the output."""
        return block_chunks(self.session.perform(Block(self, language, code), self.user))

    # -- inside it -------------------------------------------------------------------------------------------------

    def get_ready(self, block: Block) -> BaseLanguage:
        """The runtime for a block; it starts while the session notes where the files are."""
        language = self._instance(block.language)
        if any(isinstance(other, Block) and other.runtime is language for other in block.ancestors()):
            raise BusyError(f"The {language.name} runtime is running the code that asks for this.")
        self.shut_in()  # and the settings as they are now
        if block.replay is None:
            self._end_trial()
            self.warm(block.language)
        return language

    def execute(self, block: Block) -> Generator[Chunk]:
        """Run a block; what goes wrong is part of the output."""
        shared = self.context
        outer = self._active, shared.action, shared.ask, shared.cancelled
        try:
            shared.action, shared.ask = block, partial(self.session.ask_now, block)
            if block.replay is not None:
                running = block.replay()
            elif block.sandbox_request is not None:
                running = block.sandbox_request.run(self, block)
            else:
                running = self.run_now(block)
            with (
                self.session.questions.answerable(("text", "password"), self._ask_on_input),
                closing(running) as chunks,
            ):
                yield from chunks
        except InterpreterError as error:
            yield failure(f"{error}\n")
        except Exception:  # noqa: BLE001 - a user's own language may raise anything, and the model should read it
            yield failure(traceback.format_exc())
        finally:
            self._active, shared.action, shared.ask, shared.cancelled = outer

    def _ask_on_input(self, question: Question) -> Answer | None:
        """What `on_input` says, where it is set."""
        asked = self.context.on_input
        if asked is None:
            return None
        return Answer(ANSWER, asked(question.subject.prompt, question.kind == "password"), by="on_input")

    def run_now(self, block: Block) -> Generator[Chunk]:
        """Run a block in the runtime that there is for it now."""
        self._active = block.runtime = self._instance(block.language)
        self._active.on_end = block.mark_over
        self.context.cancelled = block.is_cancelled
        if self._active.handles_interrupts:
            yield from self._active.run(block.code)
        else:
            yield from iterate_user_code(call_user_code(self._active.run, block.code))

    def preview(self, language: str, code: str) -> Preview:
        """Try a block out, where nothing that it does lasts: see `interpreter.preview`."""
        if self._interpreter is None:
            raise UsageError("A preview needs an interpreter, whose workspace it is a view of.")
        return self._interpreter._preview(language, code)

    def copies(self, language: str) -> bool:
        """Whether a session of that language can be copied for a trial, as far as its kind tells."""
        known = self.get_language(language) is not None
        return known and type(self._instance(language)).dry_run is not BaseLanguage.dry_run

    def trial(self, language: str, overlay: Overlay) -> DryRun:
        """A copy of a language's session, in a view of the file system."""
        self.shut_in()
        self._end_trial()
        if self.context.containment is not None:
            raise NotPreviewableError(IN_SANDBOX)
        self._on_trial = self._instance(language).dry_run(overlay)
        return self._on_trial

    def _end_trial(self) -> None:
        """What goes on without a word about a trial is a no to it."""
        trial, self._on_trial = self._on_trial, None
        if trial is not None:
            trial.drop()

    def try_out(self, trial: DryRun, code: str) -> Generator[Chunk]:
        """Run a block in such a copy."""
        self._active = trial.active
        try:
            with closing(generator(trial.run(code))) as chunks:
                yield from chunks
        finally:
            self._active = None

    def warm(self, language: str) -> None:
        """Start a language's session ahead of its first block, without waiting for it."""
        from interpreter.runtimes.live import LiveLanguage

        if self.get_language(language) is None:
            return
        instance = self._instance(language)
        if isinstance(instance, LiveLanguage):
            with self._making:  # a turn warms what it is about to need while another thread's block begins
                self.shut_in()
                instance.start()

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

    def end(self, language: str) -> None:
        """End the session of one language; its next block begins a new one."""
        self._end_trial()
        self._instance(language).terminate()

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


def block_chunks(performance: Performance) -> Generator[Chunk]:
    """The chunks of a block as `computer.run` streams them: without flags and role."""
    return plain_chunks(performance.chunks)


def plain_chunks(chunks: Iterable[Chunk]) -> Generator[Chunk]:
    with closing(generator(chunks)) as framed:
        for chunk in framed:
            if not (chunk.get("start") or chunk.get("end")):
                yield {key: value for key, value in chunk.items() if key != "role"}  # type: ignore[misc]


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
