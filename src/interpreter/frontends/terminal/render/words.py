"""The short lines that we add to a conversation, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_KINDS = {"image": "Image", "html": "Page", "image/svg+xml": "Drawing", "application/javascript": "Script"}
SILENT = "No output."
_WORTH_TELLING = 3.0  # seconds
_MOST_FINDINGS = 12


def wrapped(text: str, width: int, hanging: int = 0) -> list[str]:
    """Lines of ours that fit the screen; a continued line is indented like its beginning, and more if `hanging`."""
    from textwrap import wrap

    rows: list[str] = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + hanging)
        rows += wrap(line, max(width, 10), subsequent_indent=indent, break_on_hyphens=False) or [""]
    return rows


def shown_in(kind: str, path: str) -> str:
    return f"{_KINDS.get(kind, 'Shown')}: {path}"


def is_mere_name(text: str) -> bool:
    """Whether a display's text form tells nothing, such as `<IPython.core.display.HTML object>`."""
    return re.fullmatch(r"<[\w.]+ object(?: at 0x[0-9a-f]+)?>\s*", text) is not None


def card(chunk: Mapping[str, Any]) -> str:
    """What a block would do, as far as its text tells, and what the rules say of it; beside the question."""
    lines = list(chunk.get("effects", ()))
    if chunk.get("reason"):
        lines.append(f"asked: {chunk['reason']}")
    return "\n".join(filter(None, [*lines, wish(chunk)]))


def wish(chunk: Mapping[str, Any]) -> str:
    """What a block asks its sandbox for; where its path leads, which its text may not tell."""
    wanted = chunk.get("widening")
    return f"wants: {', '.join(wanted)}, which the sandbox does not give" if wanted else ""


def figure(path: str, size: tuple[int, int] | None) -> str:
    """A picture for those who cannot see it here."""
    return f"[figure: saved to {path}" + (f", {size[0]}x{size[1]}]" if size else "]")


def table(path: str, notes: list[str]) -> str:
    return f"[table: {', '.join([*notes, ''])}the whole saved to {path}]"


def ending(chunk: dict[str, Any], elapsed: float, silent: bool, explained: bool) -> str:
    """How a block ended, where that is not plain; `explained`: the output of a block that failed says why."""
    took = f" after {duration(elapsed)}"
    code = chunk.get("exit_code")
    match chunk.get("ended", "done"):
        case "interrupted":
            return f"Interrupted{took}."
        case "timed_out":
            return f"Stopped: it ran into the time limit{took}."
        case "died":
            return f"The session died{took}." if silent else ""  # else it was said how, and what is left
        case "background":
            return "Moved to the background."
    if code == 1 and chunk.get("ended") == "error" and not silent and explained:
        return ""  # the traceback has said it
    if code:
        return f"Exit code {code}{took}." if elapsed >= _WORTH_TELLING else f"Exit code {code}."
    if elapsed >= _WORTH_TELLING:
        return f"Done{took}."
    return SILENT if silent and chunk.get("ended", "done") == "done" else ""


def thought(elapsed: float) -> str:
    """What is left of a long chain of thoughts."""
    return f"Thought for {duration(elapsed)}."


def duration(elapsed: float, digits: int = 1) -> str:
    """So long, as people say it."""
    if elapsed < 60:
        return f"{elapsed:.{digits}f} s" if digits else f"{int(elapsed)} s"
    minutes, seconds = divmod(int(elapsed), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"


def decision(kind: str, content: dict[str, Any]) -> str:
    """A line for a decision that the user did not just take; why a block did not run comes as its output."""
    reason = content.get("reason") or ""
    if kind == "denied" or content.get("by") == "user" or not reason:
        return ""
    return f"{kind.capitalize()}: {reason}"


def compacted(content: dict[str, Any]) -> str:
    """What was left out of the request, so that it fits the model's window."""
    counts = [(content.get("messages"), "message"), (content.get("images"), "image")]
    what = " and ".join(f"{n} older {name}{'' if n == 1 else 's'}" for n, name in counts if n)
    return f"The conversation is long: {what} no longer sent to the model; a note says what was in there."


def redacted(content: dict[str, Any]) -> str:
    """What was taken out of the output that goes to the model."""
    what = ", ".join(content.get("what") or ())
    return f"Secrets in the output were not sent to the model: {what}. (redact_secrets)"


def scanned(content: dict[str, Any]) -> str:
    """What a scan of a block has come to, in a line for each finding."""
    from interpreter.policy.scanners import Finding

    findings, tools = content.get("findings") or [], " and ".join(content.get("tools") or ())
    lines = [f"The scan found {len(findings)} thing{'' if len(findings) == 1 else 's'}:"] if findings else []
    lines += [f"  {Finding(**finding)}" for finding in findings[:_MOST_FINDINGS]]
    if len(findings) > _MOST_FINDINGS:
        lines.append(f"  and {len(findings) - _MOST_FINDINGS} more")
    if content.get("unseen"):
        lines.append(f"Not scanned: no scanner here knows {'all of ' if tools else ''}this code.")
    elif not findings:
        lines.append(f"Scanned with {tools}: nothing found." if tools else "")
    return "\n".join(filter(None, [*lines, content.get("notice")]))


def control(content: dict[str, Any]) -> str:
    """The model has the mouse from now on, and how it is stopped."""
    stop = f"{content['stop']} or the mouse in a corner stops it." if content.get("stop") else "Ctrl-C stops it."
    return f"The model uses this screen now. {stop}"


def stopped(content: dict[str, Any]) -> str:
    return f"Stopped by {content.get('by')}. Nothing more is done on the screen."


def call(content: dict[str, Any]) -> str:
    """An action on the screen that code has just done or tried; nothing for what only looks."""
    if not content.get("acts"):
        return ""
    what = str(content.get("told", "")).removeprefix("computer.")
    return what if content.get("outcome") == "ok" else f"{what}: {content.get('outcome')}"


def tool_call(name: str, arguments: str) -> str:
    """A call of a tool as people write one."""
    from interpreter.tools.calls import shown_call

    return shown_call(name, arguments)


def fallback(content: dict[str, Any]) -> str:
    """Another model answers for the rest of the turn."""
    return f"{content.get('from')}: {retry(content)}. {content.get('to')} answers instead."


def retry(content: dict[str, Any]) -> str:
    reason = str(content.get("reason") or "the server is busy")
    return reason.rstrip(".")
