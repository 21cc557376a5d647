"""The folders that records are kept in: taken along, copied for a branch, and made small when a session was killed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from interpreter.workspace.coverage import Limits
from interpreter.workspace.images import Images
from interpreter.workspace.ledger import BlockFiles, Ledger
from interpreter.workspace.pack import NAME as PACK

IMAGES = "images"


def contents_of(blocks: Iterable[BlockFiles]) -> set[str]:
    """The hashes of all that the blocks found or made."""
    found = {item for files in blocks for pair in files.pairs.values() for item in pair}
    found |= {item for files in blocks for back in files.overwritten.values() for item in back.values()}
    return {item.content for item in found if item is not None and item.content}


def oldest_kept(blocks: Sequence[BlockFiles], images: Images, present: set[str], limits: Limits) -> int:
    """Which of the blocks is the first to be kept, if so many are and so much is stored; the last one in any case."""
    spare = limits.stored_bytes - sum(map(images.size, present))
    seen = set(present)
    for index in reversed(range(len(blocks))):
        news = contents_of([blocks[index]]) - seen
        spare -= sum(map(images.size, news))
        seen |= news
        if spare < 0 or len(blocks) - index > limits.blocks:
            return min(index + 1, len(blocks) - 1)
    return 0


def carry(old: Path, new: Path, keep: bool) -> None:
    """Have all of a store in another folder too, or there only; the new one is whole or not there at all."""
    new.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not old.exists():
        return
    passing = new.with_name(f"{new.name}.new")
    shutil.rmtree(passing, ignore_errors=True)
    if keep:
        shutil.copytree(old, passing, symlinks=True, copy_function=_shared)
    else:
        shutil.move(old, passing)
    passing.rename(new)


def trim(folder: Path, unsettled: bool = False) -> bool:
    """Make the store of a session that was killed small; False if it was in the middle of something.

    Then its copies are needed to find out what was done; with `unsettled`, that is given up.
    """
    ledger = Ledger(folder)
    told = ledger.read()
    if not unsettled and (told.open_block is not None or ledger.intent() is not None):
        return False
    ledger.done()
    Images(folder / IMAGES).drop(contents_of(told.blocks))
    ledger.rewrite(told.blocks, told.position, told.forgotten)
    ledger.trimmed()
    return True


def _shared(source: str, target: str) -> None:
    """Large copies are never written again, so two stores may share them; the rest is written by both."""
    folder, name = os.path.split(source)
    if os.path.basename(folder) == IMAGES and name != PACK:
        try:
            os.link(source, target)
            return
        except OSError:
            pass  # another file system
    shutil.copyfile(source, target)
    os.chmod(target, 0o600)
