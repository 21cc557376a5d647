"""A preview: a block runs in a copy-on-write view of the workspace, and is then applied or discarded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from interpreter.computer_api.computer import block_chunks
from interpreter.errors import UsageError
from interpreter.runtimes.dry_run import Overlay
from interpreter.runtimes.seccomp_notify import Denied
from interpreter.session import Action, Block, Do, Performance
from interpreter.workspace import Change
from interpreter.workspace.merge import Layer, Written, write_layer

if TYPE_CHECKING:
    from types import TracebackType

    from interpreter.computer_api.runtime_pool import RuntimePool
    from interpreter.messages import Chunk
    from interpreter.runtimes.dry_run import DryRun

OURS = "interpreter-"  # how our own folders among the temporary files begin


@dataclass(frozen=True)
class Applied:
    """The result of applying a preview."""

    files: Written = field(default_factory=Written)
    lost: tuple[str, ...] = ()
    """What of the runtime could not be kept."""

    def __str__(self) -> str:
        words = [f"Not written: {each.path}, because {each.why}." for each in (*self.files.kept, *self.files.failed)]
        if self.lost:
            words.append(f"Not brought along: {', '.join(self.lost)}.")
        return "\n".join(words)


class RunPreview(Action):
    """Run the block of a preview."""

    kind = "preview"

    def __init__(self, runtimes: RuntimePool, trial: DryRun, code: str) -> None:
        super().__init__()
        self._runtimes, self._trial, self._code = runtimes, trial, code

    def describe(self) -> str:
        return "a preview is running"

    def run(self) -> Generator[Chunk]:
        for chunk in self._runtimes.run_dry(self._trial, self._code):
            self.outcome = chunk.get("ended", "done")
            yield chunk

    def stop(self) -> None:
        if not self.over:
            self._trial.active.stop()


class Preview:
    """A dry run of a block.

    Iterate over it to run the block: it yields the block's chunks. Then look at `changes`, `diffs`, `denied`, and call
    `apply()` or `discard()`. Used as a context manager, it is discarded at the end unless it was applied.
    """

    def __init__(
        self,
        runtimes: RuntimePool,
        workspace: str,
        perform: Callable[[Action], Performance],
        cover: Callable[[Iterable[str]], None],
        language: str,
        code: str,
    ) -> None:
        self._runtimes, self._perform = runtimes, perform
        self._cover = cover  # called with the files of the workspace that are about to be changed
        self.language, self.code = language, code
        self.chunks: list[Chunk] = []
        """What the block has yielded so far."""
        self.denied: list[Denied] = []
        """What it tried to do and could not: use the network, send signals to other processes, write elsewhere."""
        self.report: Applied | None = None
        """The result, once it is applied."""
        self._layers: dict[str, Layer] = {}  # by how their paths begin, the workspace first
        Overlay.check(workspace)
        self._view = Overlay(workspace)
        self._began = time.time_ns()
        self._over = False
        try:
            start = partial(runtimes.start_dry_run, language, self._view)
            self._trial: DryRun = perform(Do("preview", start, "a preview is being made")).result()
        except BaseException:
            self._view.remove()
            raise

    # -- running -------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Chunk]:
        """Run the block, once; after that, yield the same chunks again."""
        if self.chunks or self._over:
            yield from list(self.chunks)
            return
        try:
            action = RunPreview(self._runtimes, self._trial, self.code)
            with closing(block_chunks(self._perform(action))) as chunks:
                for chunk in chunks:
                    self.chunks.append(chunk)
                    yield chunk
        finally:
            self.denied = self._trial.denied
            workspace = self._view.workspace
            for root, upper in sorted(self._view.layers.items(), key=lambda pair: pair[0] != workspace):
                start, ours = ("", "") if root == workspace else (os.path.join(root, ""), OURS)
                self._layers[start] = Layer(root, upper, self._began, ours)

    def run(self) -> Preview:
        """Run the block to its end."""
        for _ in self:
            pass
        return self

    # -- what it did ---------------------------------------------------------------------------------------------

    @property
    def changes(self) -> list[Change]:
        """What it created, changed and deleted; paths in the workspace are relative to it."""
        listed = []
        for start, layer in self._layers.items():
            for change in layer.changes.listed:
                source = start + change.source if change.source is not None else None
                listed.append(change._replace(path=start + change.path, source=source))
        return listed

    @property
    def diffs(self) -> dict[str, str]:
        """The same as differences of lines, by path."""
        found: dict[str, str] = {}
        for start, layer in self._layers.items():
            found |= {start + path: text for path, text in layer.diffs.items()}
        return found

    @property
    def lost(self) -> list[str]:
        """What the runtime has now and would lose if this is applied: connections, threads, pipes."""
        return self._trial.lost

    @property
    def ended(self) -> str:
        """How the block ended."""
        return next((chunk["ended"] for chunk in reversed(self.chunks) if "ended" in chunk), "")

    @property
    def can_apply(self) -> bool:
        """Whether it can be applied: not before it ran, nor if the block's process died."""
        return not self._over and bool(self.chunks) and not self._trial.died

    # -- the choice ----------------------------------------------------------------------------------------------

    def apply(self, overwrite: Collection[str] = ()) -> Applied:
        """Write the files and keep the variables. A file that something else has changed meanwhile is left alone.

        Such a path is overwritten if it is named in `overwrite`.
        """
        if not self.can_apply:
            raise UsageError("There is nothing to apply: the block has not run to its end, or this is over.")
        block = Block(self._runtimes, self.language, self.code)
        block.replay = partial(self.replay, overwrite)
        self._perform(block).result()
        assert self.report is not None
        return self.report

    def replay(self, overwrite: Collection[str] = ()) -> Generator[Chunk]:
        """Apply it as part of a block; yields the chunks of the block as it ran."""
        self._over = True
        try:
            written = Written()
            if "" in self._layers:
                self._cover(self._layers[""].changes.pairs)
            for start, layer in self._layers.items():
                written += write_layer(layer, overwrite, start)
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
        """Drop it: files and variables stay as they were, and the processes that the block started are ended."""
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
