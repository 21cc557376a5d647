"""Running blocks on a computer: one at a time, in any of its languages, with everything that goes on around one."""

from __future__ import annotations

import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.languages import Languages
from interpreter.errors import InterpreterError, NotPreviewableError, UsageError
from interpreter.languages.base import BaseLanguage
from interpreter.messages import Chunk, Fold, Framer, Message

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.languages.jobs import Job
    from interpreter.languages.trials.trial import Trial
    from interpreter.languages.trials.view import View
    from interpreter.preview import Preview
    from interpreter.wishes import Wish

IN_SANDBOX = "A block in a sandbox cannot be previewed: no view of the files can be made in there."


class Running(Languages):
    """The part of the computer that runs blocks."""

    def __init__(self, interpreter: OpenInterpreter | None = None) -> None:
        super().__init__(interpreter)
        self._active: BaseLanguage | None = None
        self._on_trial: Trial | None = None

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

    def copies(self, language: str) -> bool:
        """Whether a session of that language can be copied for a trial, as far as its kind tells."""
        known = self.get_language(language) is not None
        return known and type(self._instance(language)).trial is not BaseLanguage.trial

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
