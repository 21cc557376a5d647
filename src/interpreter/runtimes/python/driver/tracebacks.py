"""Tracebacks as the user's code deserves them: without the frames that belong to us."""

from __future__ import annotations

import os
import traceback
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Set, Tuple

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
