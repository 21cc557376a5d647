"""A block runs in a sandbox that gives more than usual: for this block, or from now on.

Nothing can be mounted into a live session, so for a path the block runs in a new one, and what its language has goes
there and back.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from interpreter.errors import InterpreterError, NotRestorableError
from interpreter.runtimes.between_blocks import BetweenBlocks
from interpreter.runtimes.displays import notice
from interpreter.runtimes.live import LiveLanguage
from interpreter.runtimes.states import Restored

if TYPE_CHECKING:
    from interpreter.computer_api.running import Running
    from interpreter.messages import Chunk
    from interpreter.runtimes.base import BaseLanguage
    from interpreter.sandbox import Containment
    from interpreter.sandbox.requests import Wish
    from interpreter.session import Block

FRESH = "The sandbox gives more in a new {name} session, which does not have the variables of before.\n"
LEFT = "The variables that this block has set stayed in a session that has ended; those of before are there again.\n"


class Widened:
    """A language that is given what a block of it asks for."""

    def __init__(self, computer: Running, block: Block, wish: Wish) -> None:
        self._computer, self._block, self._wish = computer, block, wish
        self._shared = computer.surroundings
        self._language = block.language

    def run(self, code: str) -> Generator[Chunk]:
        """Run the block, and yield its chunks; what goes wrong is part of the output."""
        try:
            containment: Any = self._shared.containment
            if self._wish.granted == "block":
                yield from self._for_block(code, containment)
            else:
                self._shared.containment = containment.widen(*self._wish.wanted)
                self._export(True)
                yield from self._here(code)
        except InterpreterError as error:
            yield from told(f"{error}\n")

    def _for_block(self, code: str, narrow: Containment) -> Generator[Chunk]:
        """After the block, the sandbox is as it was."""
        before, note = None, ""
        last: list[Chunk] = []
        wide = self._shared.containment = narrow.widen(*self._wish.wanted)
        self._export(True)
        try:
            if wide is not narrow:
                before = self._instance()
                yield from told(self._move(keep=True))
            with closing(self._computer.run_now(self._block)) as chunks:
                for chunk in chunks:
                    yield from last
                    last = [chunk]
        finally:
            self._shared.containment = narrow
            narrow.narrow(*self._wish.wanted)
            self._export(False)
            if before is not None:
                note = self._bring_back(before)
        yield from told(note)
        yield from last  # that the block has ended

    def _here(self, code: str) -> Generator[Chunk]:
        """With all that the sandbox gives now: the session may be from before that."""
        session = self._instance().session
        if session is not None and session.launch.containment is not self._shared.containment:
            yield from told(self._move(keep=False))
        yield from self._computer.run_now(self._block)

    def _export(self, given: bool) -> None:
        """Sessions hear of variables before their next block."""
        names = [each.value for each in self._wish.wanted if each.kind == "env"]
        self._shared.exported.update({name: os.environ.get(name) if given else None for name in names})

    # -- sessions ------------------------------------------------------------------------------------------------

    def _instance(self) -> LiveLanguage:
        found = self._computer._instance(self._language)
        assert isinstance(found, LiveLanguage)  # others are held by no sandbox
        return found

    def _move(self, keep: bool) -> str:
        """Have a session in the present sandbox, with the same variables; what is to be said about that."""
        before = self._instance()
        after, note = self._second(before)
        if not keep:
            self._end(before, after)
        self._put(after)
        return note

    def _second(self, language: LiveLanguage) -> tuple[LiveLanguage, str]:
        try:
            after, restored = language.split(self._computer)
            return after, said(restored)
        except NotRestorableError:
            return type(language)(self._computer), FRESH.format(name=language.name)

    def _bring_back(self, before: LiveLanguage) -> str:
        """Have the variables in the sandbox of before again; what is to be said about that."""
        after, kept, note = self._instance(), before, ""
        if after.has_begun():
            try:
                if type(before).take_back is not BetweenBlocks.take_back and before.has_begun():
                    note = said(before.take_back(after))
                else:
                    kept, restored = after.split(self._computer)
                    note = said(restored)
            except NotRestorableError:
                note = LEFT
        if kept is not before:
            self._end(before, kept)
        self._end(after, kept)
        self._put(kept)
        return note

    def _end(self, language: LiveLanguage, heir: LiveLanguage) -> None:
        """End its session; what it has in the background goes on."""
        heir.jobs += language.jobs
        language.jobs = []
        language.terminate()

    def _put(self, language: BaseLanguage) -> None:
        self._computer._running[type(language)] = language


def told(note: str) -> Iterator[Chunk]:
    if note:
        yield notice(note)


def said(restored: Restored) -> str:
    return f"{restored}\n" if str(restored) else ""
