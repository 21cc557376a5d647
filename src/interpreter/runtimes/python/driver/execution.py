"""What both engines need to run a block: the event loop, active lines, shell commands, and the format of errors."""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from types import CodeType, FrameType, TracebackType

from .hints import Any, Callable, Coroutine, Iterator, Match, Sequence
from .imports import trusted_import
from .interrupts import OURS, Interrupts, stands_in

HITS_PER_LINE = 1000  # after this many hits a line is no longer traced, so it costs nothing
BURST = 50.0  # this many lines may be reported at once
PER_SECOND = 50.0  # and this many a second on average


class EventLoop:
    """The event loop behind top-level await. Tasks that a block leaves behind continue when a later block awaits."""

    def __init__(self, interrupts: Interrupts | None = None) -> None:
        self._interrupts = interrupts
        self._loop: Any = None
        self.interrupted = False  # an interrupt cancelled the block that awaits
        self._presses = 0  # interrupts during this run
        self._is_cancelled = False  # whether the task was cancelled for one

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end; an interrupt cancels it, so that it can clean up."""
        asyncio = trusted_import("asyncio")
        if asyncio._get_running_loop() is not None:  # only for Python in the caller's process
            coroutine.close()
            raise RuntimeError("await at the top level cannot be used here: an event loop is already running")
        self.interrupted = self._is_cancelled = False
        self._presses = 0
        task: Any = None
        try:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
            if self._interrupts is None:
                task = self._loop.create_task(coroutine)
            else:
                with self._interrupts:  # pending interrupts are raised at the end of this context
                    task = self._loop.create_task(coroutine)
                    asyncio.set_event_loop(self._loop)
                    self._interrupts.cancel = lambda frame: self._cancel(task, frame)
            value = self._loop.run_until_complete(task)
            if self.interrupted and not self._is_cancelled:
                raise KeyboardInterrupt  # the interrupt came when the task was done
            return value
        except BaseException as error:
            if task is None:
                coroutine.close()
            elif not task.done() and self._presses <= 2:  # the interrupt was raised inside a step
                task.cancel()
                try:
                    self._loop.run_until_complete(task)
                except asyncio.CancelledError:
                    self.interrupted = True
            if self.was_interrupted(error):
                raise KeyboardInterrupt from None
            raise
        finally:
            if self._interrupts is not None:
                self._interrupts.cancel = None

    def _cancel(self, task: Any, frame: FrameType | None) -> bool:
        """Handle an interrupt by cancelling a task that waits; False if the user's code gets the exception instead.

        An exception within asyncio's code could lose a task for good, or leave the loop marked as running.
        """
        asyncio = trusted_import("asyncio")
        self._presses += 1
        in_asyncio = frame is not None and frame.f_code.co_filename.startswith(os.path.dirname(asyncio.__file__))
        is_waiting = not self.interrupted and self._loop.is_running() and asyncio.current_task(self._loop) is None
        if self._presses > 2 or not (in_asyncio or is_waiting):
            return False
        self.interrupted = True
        self._loop.call_soon_threadsafe(self._cancel_task, task)
        return True

    def _cancel_task(self, task: Any) -> None:
        self._is_cancelled = task.cancel() or self._is_cancelled

    def was_interrupted(self, error: BaseException) -> bool:
        """Check whether an error is the cancellation that an interrupt caused."""
        return self.interrupted and isinstance(error, trusted_import("asyncio").CancelledError)

    def descriptors(self) -> list[int]:
        ends = [getattr(self._loop, name, None) for name in ("_ssock", "_csock")]
        return [end.fileno() for end in ends if end is not None]

    def renew(self) -> None:
        """Replace the descriptors that were released, in a snapshot that resumes; the tasks stay."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        try:
            loop._close_self_pipe()
            loop._selector.close()
            loop._selector = trusted_import("selectors").DefaultSelector()
            loop._make_self_pipe()
        except (AttributeError, OSError):
            self._loop = None  # an unknown kind of loop, whose tasks are lost

    def close(self) -> None:
        if self._loop is not None:
            self._loop.close()


class ActiveLines:
    """Reports which top-level line of a block is running: by sys.monitoring, or statement by statement without it."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.enabled = True
        self._tell = tell
        self._offset = self._first = self._last = 0
        self._hits: dict[tuple[int, int], int] = {}
        self._allowance, self._asked = BURST, 0.0
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self._tool = -1

    def begin(self, offset: int = 0) -> None:
        """Start a block whose compiled lines are `offset` lower than in the text that the user sees."""
        self._offset, self._last = offset, 0
        self._hits.clear()
        self._allowance = BURST

    def enter(self, code: CodeType, line: int) -> None:
        """Prepare to report a top-level statement of the block that begins in this line and runs next."""
        if not self.enabled:
            return
        self._first = line
        monitoring = self._monitoring
        if monitoring is not None and self._tool < 0:
            # Python reserves the other tool ids.
            tool = next((each for each in (4, 3) if monitoring.get_tool(each) is None), None)
            if tool is None:
                monitoring = self._monitoring = None  # other tools use both
            else:
                monitoring.use_tool_id(tool, "interpreter active lines")
                monitoring.register_callback(tool, monitoring.events.LINE, self._on_line)
                self._tool = tool
        if monitoring is not None:
            monitoring.set_local_events(self._tool, code, monitoring.events.LINE)
        else:
            self._at(line, first=True)

    def _on_line(self, code: CodeType, line: int) -> Any:
        place = (id(code), line)
        hits = self._hits[place] = self._hits.get(place, 0) + 1
        if hits > HITS_PER_LINE or line < self._first:  # coroutines begin at a nonexistent line
            return self._monitoring.DISABLE
        self._at(line, first=hits == 1)
        return None

    def _at(self, line: int, first: bool) -> None:
        if line == self._last:
            return
        if not first:
            now = time.monotonic()
            self._allowance = min(BURST, self._allowance + (now - self._asked) * PER_SECOND)
            self._asked = now
            if self._allowance < 1:
                return
            self._allowance -= 1
        self._last = line
        self._tell(line + self._offset)


def first_line(statement: Any) -> int:
    """Return the line where a statement begins, including its decorators."""
    return int(min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))]))


# -- shell commands -------------------------------------------------------------------------------------------------


@stands_in
def run_command(command: str) -> int:
    """Run a command that writes to the block's own output. Returns its exit code, negative for a signal."""
    return int(trusted_import("subprocess").call(command, shell=True, executable=shell_program()))


@stands_in
def command_output(command: str) -> list[str]:
    """Run a command and return the lines that it writes, including errors."""
    subprocess = trusted_import("subprocess")
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ran = subprocess.run(command, shell=True, executable=shell_program(), check=False, **both)
    return str(ran.stdout.decode("utf-8", "replace")).splitlines()


def shell_program() -> Any:
    """Return the user's shell if it is bash or zsh, else bash, else None for the system's default."""
    if sys.platform == "win32":
        return None
    wanted = os.environ.get("SHELL", "")
    if os.path.basename(wanted) in ("bash", "zsh") and os.path.exists(wanted):
        return wanted
    return trusted_import("shutil").which("bash")


def expand(command: str, namespace: dict[str, Any]) -> str:
    """Insert the values of `{expressions}` and `$names` into a command; anything else stays as it is."""

    def value(match: Match[str]) -> str:
        expression, name = match.groups()
        if name is not None:
            return str(namespace[name]) if name in namespace else match.group()
        try:
            return str(eval(expression, namespace))
        except Exception:  # noqa: BLE001 -- braces that mean something to the shell or to awk
            return match.group()

    return re.sub(r"\{([^{}]+)\}|\$(\w+)", value, command)


# -- errors ---------------------------------------------------------------------------------------------------------


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, those that led to it, and those that it groups."""
    todo: list[Any] = [error]
    seen: set[int] = set()
    while todo:
        current = todo.pop(0)
        if isinstance(current, BaseException) and id(current) not in seen:
            seen.add(id(current))
            todo += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]
            todo.append(current.__dict__.get("reason"))  # of a URLError
            yield current


def clean(error: BaseException, hidden: Sequence[str] = (OURS,), longest: int = 0) -> None:
    """Remove frames in these folders, and the middle of very long tracebacks."""
    for current in error_chain(error):
        entries: list[TracebackType] = []
        entry = current.__traceback__
        while entry is not None:
            entries.append(entry)
            entry = entry.tb_next
        kept = [entry for entry in entries if not entry.tb_frame.f_code.co_filename.startswith(tuple(hidden))]
        if longest and len(kept) > longest:
            kept = kept[: longest // 2] + kept[-longest // 2 :]
        if len(kept) < len(entries):
            rebuilt: TracebackType | None = None
            for entry in reversed(kept):
                rebuilt = TracebackType(rebuilt, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
            current.__traceback__ = rebuilt


def formatted(error: BaseException, hidden: Sequence[str] = (OURS,), block_names: str = "") -> str:
    """Format the traceback as Python prints it, from the first frame of a block on."""
    clean(error, hidden)
    entry = error.__traceback__
    while entry is not None and not entry.tb_frame.f_code.co_filename.startswith(block_names):
        entry = entry.tb_next
    error.__traceback__ = entry or error.__traceback__
    if isinstance(error, SyntaxError) and error.__traceback__ is None:
        return "".join(traceback.format_exception_only(type(error), error))
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def outcome(error: BaseException | None) -> tuple[str, int]:
    """Return the status and the exit code that a block ended with."""
    if error is None:
        return "ok", 0
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    if isinstance(error, SystemExit):
        code = error.code & 0xFF if isinstance(error.code, int) else int(error.code is not None)
        return ("error" if code else "ok"), code
    return "error", 1


def missing_module(error: BaseException | None) -> str:
    """Return the top-level module whose absence ended a block; empty for any other error."""
    for _, current in zip(range(64), error_chain(error if isinstance(error, ImportError) else None)):
        name = getattr(current, "name", None)
        if isinstance(current, ModuleNotFoundError) and isinstance(name, str):
            top = name.partition(".")[0]
            known = top in sys.modules or top in getattr(sys, "stdlib_module_names", ())
            return "" if known else top[:100]
    return ""


def refusals(error: BaseException | None) -> list[dict[str, Any]]:
    """List the system errors in an error's chain, with the paths they concern."""
    errors: list[dict[str, Any]] = []
    for _, current in zip(range(64), error_chain(error)):
        if isinstance(current, OSError) and isinstance(current.errno, int):
            names = [
                os.path.abspath(os.fsdecode(name))
                for name in (current.filename, current.filename2)
                if isinstance(name, (str, bytes, os.PathLike))
            ]
            kind = type(current).__name__
            errors += [{"number": current.errno, "path": path, "kind": kind} for path in names or [""]]
    return errors[:8]
