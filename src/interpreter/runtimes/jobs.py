"""Blocks that were moved to the background: they go on, can be read, and can be stopped."""

from __future__ import annotations

from interpreter.runtimes.block import Block
from interpreter.runtimes.session import Session


class Job:
    """A block that runs on by itself in a session of its own."""

    def __init__(self, language: str, session: Session, block: Block) -> None:
        self.language, self.session, self.block = language, session, block
        self.path = block.spool.keep()

    @property
    def code(self) -> str:
        return self.block.code

    @property
    def pid(self) -> int | None:
        """The process group that the block runs in."""
        return self.session.pid

    @property
    def running(self) -> bool:
        return not self.block.finished

    def output(self) -> str:
        """Everything it has written so far."""
        return self.block.spool.read()

    def stop(self) -> None:
        """End it, and everything it started."""
        self.session.close()

    def __repr__(self) -> str:
        state = "running" if self.running else "ended"
        return f"<Job {self.language} {state}: {self.code.splitlines()[0] if self.code else ''}>"
