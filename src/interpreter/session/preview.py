"""See before you say yes: a block is run where nothing lasts, and then made real, or forgotten."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from interpreter.computer_api.computer import block_chunks
from interpreter.errors import UsageError
from interpreter.runtimes.overlay import Overlay
from interpreter.runtimes.seccomp_notify import Denied
from interpreter.session import Action, Block, Do
from interpreter.workspace import Change
from interpreter.workspace.merge import (
    Layer,
    Written,
    write,
)

if TYPE_CHECKING:
    from types import TracebackType

    from interpreter.api import OpenInterpreter
    from interpreter.computer_api import Computer
    from interpreter.messages import Chunk
    from interpreter.runtimes.overlay import DryRun

OURS = "interpreter-"  # how our own folders among the temporary files begin


@dataclass(frozen=True)
class Applied:
    """What became of a preview that was applied."""

    files: Written = field(default_factory=Written)
    lost: tuple[str, ...] = ()
    """What of the session could not come along."""

    def __str__(self) -> str:
        words = [f"Not written: {each.path}, because {each.why}." for each in (*self.files.kept, *self.files.failed)]
        if self.lost:
            words.append(f"Not brought along: {', '.join(self.lost)}.")
        return "\n".join(words)


class TryOut(Action):
    """Run a block where nothing lasts."""

    kind = "preview"

    def __init__(self, computer: Computer, trial: DryRun, code: str) -> None:
        super().__init__()
        self._computer, self._trial, self._code = computer, trial, code

    def describe(self) -> str:
        return "a preview is running"

    def run(self) -> Generator[Chunk]:
        for chunk in self._computer.runtimes.run_dry(self._trial, self._code):
            self.outcome = chunk.get("ended", "done")
            yield chunk

    def stop(self) -> None:
        if not self.over:
            self._trial.active.stop()


class Preview:
    """A block that is tried out.

    Iterate over it to run the block: it yields the block's chunks. Then look at `changes`, `diffs`, `denied`, and say
    `apply()` or `discard()`. Used as a context manager, it is discarded at the end unless it was applied.
    """

    def __init__(self, interpreter: OpenInterpreter, language: str, code: str) -> None:
        self._interpreter = interpreter
        self.language, self.code = language, code
        self.chunks: list[Chunk] = []
        """What the block has yielded so far."""
        self.denied: list[Denied] = []
        """What it wanted to do and could not: the network, signals to others, writing elsewhere."""
        self.report: Applied | None = None
        """What became of it, once it is applied."""
        self._layers: dict[str, Layer] = {}
        Overlay.check(interpreter.workspace)
        self._view = Overlay(interpreter.workspace)
        self._began = time.time_ns()
        self._over = False
        try:
            made = Do(
                "preview",
                lambda: interpreter.computer.runtimes.start_dry_run(language, self._view),
                "a preview is being made",
            )
            self._trial: DryRun = interpreter.session.perform(made, interpreter.user).result()
        except BaseException:
            self._view.remove()
            raise

    # -- running -------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Chunk]:
        """Run the block, once; a second time, what it yielded."""
        if self.chunks or self._over:
            yield from list(self.chunks)
            return
        try:
            interpreter = self._interpreter
            action = TryOut(interpreter.computer, self._trial, self.code)
            with closing(block_chunks(interpreter.session.perform(action, interpreter.user))) as chunks:
                for chunk in chunks:
                    self.chunks.append(chunk)
                    yield chunk
        finally:
            self._look()

    def run(self) -> Preview:
        """Run the block to its end."""
        for _ in self:
            pass
        return self

    def _look(self) -> None:
        self.denied = self._trial.denied
        for root, upper in self._view.layers.items():
            own = root != self._view.workspace
            self._layers[root] = Layer(root, upper, self._began, OURS if own else "")

    # -- looking -------------------------------------------------------------------------------------------------

    @property
    def changes(self) -> list[Change]:
        """What it created, changed and deleted; paths in the workspace are relative to it."""
        listed = []
        for root, layer in self._by_importance():
            start = self._start(root)
            for change in layer.changes.listed:
                source = start + change.source if change.source is not None else None
                listed.append(change._replace(path=start + change.path, source=source))
        return listed

    @property
    def diffs(self) -> dict[str, str]:
        """The same as differences of lines, by path."""
        found: dict[str, str] = {}
        for root, layer in self._by_importance():
            found |= {self._start(root) + path: text for path, text in layer.diff().items()}
        return found

    @property
    def lost(self) -> list[str]:
        """What the session has now and would not have once this is applied: connections, threads, pipes."""
        return self._trial.lost

    @property
    def ended(self) -> str:
        """How the block ended."""
        return next((chunk["ended"] for chunk in reversed(self.chunks) if "ended" in chunk), "")

    @property
    def can_apply(self) -> bool:
        """Whether there is something that could be applied: not if the block's process died."""
        return not self._over and bool(self.chunks) and not self._trial.died

    def _by_importance(self) -> list[tuple[str, Layer]]:
        return sorted(self._layers.items(), key=lambda pair: pair[0] != self._view.workspace)

    def _start(self, root: str) -> str:
        return "" if root == self._view.workspace else os.path.join(root, "")

    # -- the choice ----------------------------------------------------------------------------------------------

    def apply(self, overwrite: Collection[str] = ()) -> Applied:
        """Write the files and keep the variables; what somebody else has changed meanwhile is left alone.

        Such a path is overwritten if it is named in `overwrite`.
        """
        for _ in self.applied(overwrite):
            pass
        assert self.report is not None
        return self.report

    def applied(self, overwrite: Collection[str] = ()) -> Generator[Chunk]:
        """The same, with the chunks of a block that has just run."""
        if not self.can_apply:
            raise UsageError("There is nothing to apply: the block has not run to its end, or this is over.")
        interpreter = self._interpreter
        block = Block(interpreter.computer.runtimes, self.language, self.code)
        block.replay = partial(self._apply, overwrite)
        return block_chunks(interpreter.session.perform(block, interpreter.user))

    def replay(self) -> Generator[Chunk]:
        """Make it real: the chunks of the block as it ran."""
        return self._apply(())

    def _apply(self, overwrite: Collection[str]) -> Generator[Chunk]:
        self._over = True
        try:
            written = Written()
            for root, layer in self._by_importance():
                written += write(layer, overwrite, self._start(root))
            self.report = Applied(written, tuple(self._trial.keep()))
        except BaseException:
            self._trial.drop()
            raise
        finally:
            self._view.remove()
        for chunk in self.chunks:
            if "ended" in chunk and str(self.report):
                yield {"type": "console", "format": "output", "content": f"{self.report}\n", "stream": "stderr"}
            yield {**chunk, "previewed": True}

    def discard(self) -> None:
        """Leave no trace: the files and the variables are as they were, and what the block started is ended."""
        if self._over:
            return
        self._over = True
        try:
            self._trial.drop()
        finally:
            self._view.remove()

    def __enter__(self) -> Preview:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def __del__(self) -> None:
        if hasattr(self, "_trial"):
            self.discard()
