"""Which line of a block is running, told without touching the code: by sys.monitoring, else by statement."""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Callable, Dict, List, Tuple

TOOL_IDS = (4, 3)  # those that Python leaves to everybody
HITS_PER_LINE = 1000  # a line that was hit so often is no news, and from then on costs nothing
BURST = 50.0  # so many lines may be told at once
PER_SECOND = 50.0  # and so many a second on average


class ActiveLines:
    """Follows the top level of one block at a time."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.enabled = True
        self._tell = tell
        self._offset = 0
        self._first = self._last = 0
        self._hits: Dict[Tuple[int, int], int] = {}
        self._allowance, self._asked = BURST, 0.0
        self._monitoring = getattr(sys, "monitoring", None)
        self._tool = -1

    def begin(self, offset: int = 0) -> None:
        """A block starts; its compiled lines are `offset` lower than in the text that the user sees."""
        self._offset, self._last = offset, 0
        self._hits.clear()
        self._allowance = BURST

    def enter(self, code: CodeType, line: int) -> None:
        """A top-level statement of the block, which begins in this line, is about to run."""
        if not self.enabled:
            return
        self._first = line
        if self._tool < 0 and self._monitoring is not None:
            self._take_tool()
        if self._tool >= 0 and self._monitoring is not None:
            self._monitoring.set_local_events(self._tool, code, self._monitoring.events.LINE)
        else:
            self._at(line, first=True)

    def _take_tool(self) -> None:
        monitoring: Any = self._monitoring
        for tool in TOOL_IDS:
            if monitoring.get_tool(tool) is None:
                monitoring.use_tool_id(tool, "interpreter active lines")
                monitoring.register_callback(tool, monitoring.events.LINE, self._on_line)
                self._tool = tool
                return
        self._monitoring = None  # others have them all

    def _on_line(self, code: CodeType, line: int) -> Any:
        place = (id(code), line)
        hits = self._hits[place] = self._hits.get(place, 0) + 1
        if hits > HITS_PER_LINE or line < self._first:  # coroutines begin in a line that is none
            return self._monitoring.DISABLE if self._monitoring else None
        self._at(line, first=hits == 1)
        return None

    def _at(self, line: int, first: bool) -> None:
        if line == self._last:
            return
        if not first and not self._may_tell():
            return
        self._last = line
        self._tell(line + self._offset)

    def _may_tell(self) -> bool:
        now = time.monotonic()
        self._allowance = min(BURST, self._allowance + (now - self._asked) * PER_SECOND)
        self._asked = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True


def first_line(statement: Any) -> int:
    """Where a statement begins, its decorators included."""
    lines: List[int] = [statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))]
    return min(lines)
