"""A preview: a block runs in a copy-on-write view of the workspace, and is then applied or discarded."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from interpreter.computer_api.computer import block_chunks
from interpreter.errors import UsageError
from interpreter.messages import has_failed
from interpreter.preview.dry_run import DryRun
from interpreter.preview.layers import Layer, write_layer
from interpreter.preview.overlay import Overlay
from interpreter.preview.system_calls import Denied
from interpreter.questions import REFUSE, Answer, Question, Step
from interpreter.session import Action, ActionContext, Block, Do, Performance
from interpreter.workspace import Change, FileRecord
from interpreter.workspace.restore import Written

if TYPE_CHECKING:
    from interpreter.messages import Chunk
    from interpreter.runtimes.pool import RuntimePool
    from interpreter.workspace.diff import Parse

OURS = "interpreter-"  # how our own folders among the temporary files begin


@dataclass(frozen=True)
class Applied:
    """The result of applying a preview."""

    files: Written = field(default_factory=Written)
    lost: tuple[str, ...] = ()  # what of the runtime could not be kept

    def __str__(self) -> str:
        words = [f"Not written: {each.path}, because {each.why}." for each in (*self.files.kept, *self.files.failed)]
        if self.lost:
            words.append(f"Lost: {', '.join(self.lost)}.")
        return "\n".join(words)


class RunPreview(Action):
    kind = "preview"

    def __init__(self, runtimes: RuntimePool, trial: DryRun, code: str, asks: bool = True) -> None:
        super().__init__()
        self._runtimes, self._trial, self._code, self._asks = runtimes, trial, code, asks
        self.has_asked = False
        self.unseen: list[Chunk] = []  # of one that doesn't ask: readers of events would take it for a real run

    def describe(self) -> str:
        return "a preview is running"

    def run(self, context: ActionContext) -> Generator[Step]:
        for step in self._runtimes.run_dry(self._trial, self._code):
            if not isinstance(step, Question):
                self.outcome = step.get("ended", "done")
            if self._asks:
                yield step
            elif isinstance(step, Question):
                self.has_asked = step.settle(Answer(REFUSE, by="nobody"))
            else:
                self.unseen.append(step)

    def stop(self) -> None:
        if not self.over:
            self._trial.active.stop()


class Preview(AbstractContextManager["Preview"]):
    """A dry run of a block.

    Iterate over it to run the block: it yields the block's chunks. Then look at `changes`, `diffs`, `denied`, and call
    `apply()` or `discard()`. Used as a context manager, it is discarded at the end unless it was applied.
    """

    def __init__(
        self,
        runtimes: RuntimePool,
        workspace: str,
        perform: Callable[[Action], Performance],
        record: Callable[[], FileRecord | None],
        language: str,
        code: str,
        parse: Parse | None = None,
        asks: bool = True,
    ) -> None:
        self._runtimes, self._perform, self._parse = runtimes, perform, parse
        self.has_asked = False  # in vain: what it asks was not to reach the user
        self._record = record  # of the files in the workspace
        self.language, self.code = language, code
        self.id = os.urandom(8).hex()  # names it in an answer that applies it
        self.chunks: list[Chunk] = []  # what the block has yielded so far
        # What it tried to do and could not: use the network, send signals to other processes, write elsewhere.
        self.denied: list[Denied] = []
        self.report: Applied | None = None  # the result, once it is applied
        self._layers: list[Layer] = []  # the workspace first
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
        self._action = RunPreview(runtimes, self._trial, code, asks)

    # -- running -------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Chunk]:
        """Run the block, once; after that, yield the same chunks again."""
        if self.chunks or self._over:
            yield from list(self.chunks)
            return
        action = self._action
        try:
            with closing(block_chunks(self._perform(action).chunks())) as chunks:
                for chunk in chunks:
                    self.chunks.append(chunk)
                    yield chunk
            self.chunks += action.unseen
            yield from action.unseen
        finally:
            self.has_asked = action.has_asked
            self.denied = self._trial.denied
            workspace = self._view.workspace
            for root, upper in sorted(self._view.layers.items(), key=lambda pair: pair[0] != workspace):
                skip, prefix = ("", "") if root == workspace else (OURS, os.path.join(root, ""))
                if root == workspace or (os.listdir(upper) and not os.path.basename(root).startswith(OURS)):
                    with suppress(FileNotFoundError):  # a temporary folder that has been deleted since
                        self._layers.append(Layer(root, upper, self._began, skip, prefix))

    def stop(self) -> None:
        """End the block early, or don't begin it; from any thread."""
        self._action.cancel()

    def run(self) -> Preview:
        """Run the block to its end."""
        for _ in self:
            pass
        return self

    # -- what it did ---------------------------------------------------------------------------------------------

    @property
    def changes(self) -> list[Change]:
        """Return the files that the block created, changed and deleted. Paths in the workspace are relative to it."""
        return [change for layer in self._layers for change in layer.listed]

    @property
    def diffs(self) -> dict[str, str]:
        """Return the changes as diffs of lines, by path."""
        return {path: text for layer in self._layers for path, text in layer.diffs(parse=self._parse).items()}

    @property
    def data_diffs(self) -> dict[str, str]:
        """Return the changes as diffs by path; diffs of tables are about rows, columns and cells."""
        return {path: text for layer in self._layers for path, text in layer.diffs(True, self._parse).items()}

    @property
    def lost(self) -> list[str]:
        """Return the connections, threads and pipes that the runtime would lose if the dry run is applied."""
        return self._trial.lost

    @property
    def read_only(self) -> list[str]:
        """Return the file systems, mounted in the home and temporary folders, that only a real run can write to."""
        return self._view.read_only

    @property
    def ended(self) -> str:
        return next((chunk["ended"] for chunk in reversed(self.chunks) if "ended" in chunk), "")

    @property
    def only_failed(self) -> bool:
        """Return whether the block failed and changed no files."""
        return any(map(has_failed, self.chunks)) and not self.changes

    @property
    def is_complete(self) -> bool:
        """Return whether the dry run did everything that a real run would have done."""
        cut_off = self.ended in ("interrupted", "timed_out", "died", "background")
        return self.can_apply and not (cut_off or self.denied or self.only_failed or self.has_asked)

    @property
    def can_apply(self) -> bool:
        """Return whether the dry run can be applied: not before it has run, nor if the block's process died."""
        return not self._over and bool(self.chunks) and not self._trial.died

    # -- the choice ----------------------------------------------------------------------------------------------

    def apply(self, overwrite: Collection[str] = ()) -> Applied:
        """Write the files and keep the variables. A file that another program has changed since is left alone.

        Such a path is overwritten if it is named in `overwrite`.
        """
        if not self.can_apply:
            raise UsageError(
                "There is nothing to apply: the block did not finish, or the preview was already applied or discarded."
            )
        block = Block(self.language, self.code)
        block.replay = partial(self.replay, overwrite)
        self._perform(block).result()
        assert self.report is not None
        return self.report

    def replay(self, overwrite: Collection[str] = ()) -> Generator[Step]:
        """Apply the dry run in place of running the block, and yield the block's chunks."""
        self._over = True
        try:
            written = Written()
            record = self._record()
            for layer in self._layers:
                if record is not None and not layer.prefix:
                    record.cover(layer.changes.pairs)
                written += write_layer(layer, overwrite)
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
        if not self._over:
            self._over = True
            try:
                self._trial.drop()
            finally:
                self._view.remove()

    def __exit__(self, *error: object) -> None:
        self.discard()

    def __del__(self) -> None:
        if not hasattr(self, "_trial") or self._over:
            return
        if sys.is_finalizing():  # no thread reads the runtime's answer any more; it ends with us
            self._view.remove()
        else:
            self.discard()
