"""The event loop behind top-level await: one for the whole session, running while a block awaits."""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
import types

from .imports import trusted_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from types import CodeType, FrameType
    from typing import Any, Callable, Coroutine, Dict, List, Match, Optional, Sequence, Set, Tuple

    from .interrupts import Interrupts


class EventLoop:
    """Tasks that a block leaves behind go on whenever a later block awaits."""

    def __init__(self, interrupts: Optional[Interrupts] = None) -> None:
        self._interrupts = interrupts
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self.interrupted = False  # the block that awaits was cancelled by an interrupt

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end; an interrupt cancels it, so that it can clean up."""
        asyncio = trusted_import("asyncio")
        if asyncio._get_running_loop() is not None:  # only where the caller's own process runs the block
            coroutine.close()
            raise RuntimeError("await at the top level cannot be used here: an event loop is already running")
        loop = self._current()
        task = loop.create_task(coroutine)
        self.interrupted = False
        if self._interrupts is not None:
            self._interrupts.cancel = lambda frame: self._cancel(task, frame)
        try:
            return loop.run_until_complete(task)
        except BaseException as error:
            if not task.done():  # the interrupt struck inside a step
                self._finish(task)
            if self.was_interrupted(error):
                raise KeyboardInterrupt from None
            raise
        finally:
            if self._interrupts is not None:
                self._interrupts.cancel = None

    def descriptors(self) -> List[int]:
        """What the loop itself has open."""
        ends = [getattr(self._loop, name, None) for name in ("_ssock", "_csock")]
        return [end.fileno() for end in ends if end is not None]

    def renew(self) -> None:
        """In a snapshot that goes on: what the loop waits with was let go of; its tasks stay."""
        loop: Any = self._loop
        if loop is None or loop.is_closed():
            return
        try:
            loop._close_self_pipe()
            loop._selector.close()
            loop._selector = trusted_import("selectors").DefaultSelector()
            loop._make_self_pipe()
        except (AttributeError, OSError):
            self._loop = None  # a loop of another kind: its tasks are lost

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()

    def was_interrupted(self, error: BaseException) -> bool:
        """Whether this is the cancellation that an interrupt asked for."""
        return self.interrupted and isinstance(error, trusted_import("asyncio").CancelledError)

    def _current(self) -> asyncio.AbstractEventLoop:
        asyncio = trusted_import("asyncio")
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        if self._interrupts is not None:
            asyncio.set_event_loop(self._loop)
        assert self._loop is not None
        return self._loop

    def _cancel(self, task: asyncio.Task[Any], frame: Optional[FrameType]) -> bool:
        """Take an interrupt: cancel what waits; the user's code in the middle of a step gets the exception.

        An exception within asyncio's own code could lose a task for ever.
        """
        asyncio = trusted_import("asyncio")
        if self._loop is None or not self._loop.is_running() or self.interrupted:
            return False
        asyncios_own = os.path.dirname(asyncio.__file__)
        in_asyncio = frame is not None and frame.f_code.co_filename.startswith(asyncios_own)
        if asyncio.current_task(self._loop) is not None and not in_asyncio:
            return False
        self.interrupted = True
        self._loop.call_soon_threadsafe(task.cancel)
        return True

    def _finish(self, task: asyncio.Task[Any]) -> None:
        asyncio = trusted_import("asyncio")
        task.cancel()
        try:
            assert self._loop is not None
            self._loop.run_until_complete(task)
        except asyncio.CancelledError:
            self.interrupted = True


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


VARIABLE = r"\{([^{}]+)\}|\$(\w+)"


def run_command(command: str) -> int:
    """Run a command whose output goes where the block's own goes; its exit code, negative for a signal."""
    return int(trusted_import("subprocess").call(command, shell=True, executable=shell_program()))


def command_output(command: str) -> List[str]:
    """The lines that a command writes, errors included."""
    subprocess = trusted_import("subprocess")
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ran = subprocess.run(command, shell=True, executable=shell_program(), check=False, **both)
    return str(ran.stdout.decode("utf-8", "replace")).splitlines()


def shell_program() -> Optional[str]:
    """The user's shell where it is bash or zsh, else bash, else what the system has."""
    wanted = os.environ.get("SHELL", "")
    if os.path.basename(wanted) in ("bash", "zsh") and os.path.exists(wanted):
        return wanted
    found: Optional[str] = trusted_import("shutil").which("bash")
    return found


def expand(command: str, namespace: Dict[str, Any]) -> str:
    """Put the values of `{expressions}` and `$names` into a command; what is not one stays as it is."""

    def value(match: Match[str]) -> str:
        expression, name = match.groups()
        if name is not None:
            return str(namespace[name]) if name in namespace else match.group()
        try:
            return str(eval(expression, namespace))
        except Exception:  # noqa: BLE001 -- braces that mean something to the shell or to awk
            return match.group()

    return re.sub(VARIABLE, value, command)


OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def clean(error: BaseException, hidden: Sequence[str] = (OURS,), longest: int = 0) -> BaseException:
    """Take the frames of files in these folders, and the middle of very long tracebacks, out of an error."""
    seen: Set[int] = set()
    todo: List[Optional[BaseException]] = [error]
    while todo:
        current = todo.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = shortened(current.__traceback__, tuple(hidden), longest)
        todo += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]
    return error


def shortened(
    whole: Optional[types.TracebackType], hidden: Tuple[str, ...], longest: int
) -> Optional[types.TracebackType]:
    entries: List[types.TracebackType] = []
    entry = whole
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    kept = [entry for entry in entries if not entry.tb_frame.f_code.co_filename.startswith(hidden)]
    if longest and len(kept) > longest:
        kept = kept[: longest // 2] + kept[-longest // 2 :]
    if len(kept) == len(entries):
        return whole
    rebuilt: Optional[types.TracebackType] = None
    for entry in reversed(kept):
        rebuilt = types.TracebackType(rebuilt, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return rebuilt


def formatted(error: BaseException, hidden: Sequence[str] = (OURS,), block_names: str = "") -> str:
    """The traceback as Python prints it, from the first frame of a block on."""
    clean(error, hidden)
    entry = error.__traceback__
    while entry is not None and not entry.tb_frame.f_code.co_filename.startswith(block_names):
        entry = entry.tb_next
    error.__traceback__ = entry or error.__traceback__
    if isinstance(error, SyntaxError) and error.__traceback__ is None:
        return "".join(traceback.format_exception_only(type(error), error))
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def outcome(error: Optional[BaseException]) -> Tuple[str, int]:
    """How a block ended: its status and its exit code."""
    if error is None:
        return "ok", 0
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    if isinstance(error, SystemExit):
        code = exit_code(error)
        return ("error" if code else "ok"), code
    return "error", 1


def exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1
