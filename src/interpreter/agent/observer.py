"""Observers, by which leaves see the calls and blocks of a turn and may add text for the model."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpreter.messages import Chunk
    from interpreter.session import ToolCall


class TurnObserver:
    """Watches one turn. Each method does nothing unless a leaf overrides it."""

    is_stuck = False  # whether the turn should end, because what it did had no effect

    def begin(self) -> Generator[Chunk]:
        """Add to the conversation before the model is asked."""
        yield from ()

    def check(self, call: ToolCall) -> None:
        """Raise an error if the call is not allowed in this turn."""

    def called(self, call: Mapping[str, Any]) -> None:
        """Note a call that began or ended."""

    def after_block(self) -> Generator[Chunk]:
        """Add to the output of a block that has ended."""
        yield from ()

    def farewell(self) -> Generator[Chunk]:
        """Add to the end of the turn."""
        yield from ()

    def end(self) -> None:
        """Release the resources of the turn."""
