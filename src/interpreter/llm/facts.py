"""What stays true of messages that are left out: told in one note, from the record alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.messages import Message

if TYPE_CHECKING:
    from interpreter.runtimes import Registry


class Sessions(Protocol):
    """What the computer knows about its languages and their sessions."""

    def is_alive(self, name: str) -> bool: ...

    @property
    def registry(self) -> Registry: ...


_SHORT = 300
_MOST_NAMES = 40
_QUOTED = re.compile(r"""["']([^"'\n]{1,200})["']""")
_WORD = re.compile(r"[\w~./\\@+-]+")
_FILE = re.compile(r"(?:[\w~./\\ ()@+-]*[\w)]\.[A-Za-z]\w{1,4}|(?:~|\.{1,2})?/[\w./@+-]+\.\w{1,5})")


@dataclass
class _Exchange:
    asked: str = ""
    answered: str = ""


@dataclass
class _Facts:
    exchanges: list[_Exchange] = field(default_factory=lambda: [_Exchange()])
    blocks: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    files: dict[str, None] = field(default_factory=dict)
    names: dict[str, dict[str, None]] = field(default_factory=dict)  # by language, the newest last
    declined: list[str] = field(default_factory=list)


def note_about(messages: Sequence[Message], left_out: Collection[int], sessions: Sessions, most: int) -> str:
    """What the model is told in the place of these messages, in about `most` characters; the same every time."""
    facts = _Facts()
    for at in sorted(left_out):
        _gather(facts, messages, at, sessions)
    lines = [*_still_true(facts, sessions, most // 3), *_declined(facts, most // 5)]
    exchanges = _exchanges(facts, most - sum(map(len, lines)))
    head = f"[{len(left_out)} messages between the first request and this note were left out to save room"
    return "\n".join([f"{head}: {_counted(facts)}. Known of them:", *exchanges, *lines]) + "]"


def _gather(facts: _Facts, messages: Sequence[Message], at: int, sessions: Sessions) -> None:
    message = messages[at]
    role, kind, content = message.get("role"), message.get("type"), message.get("content", "")
    if kind == "image":
        facts.kinds["image"] += 1
    if kind == "file" or (kind == "image" and message.get("format") == "path"):
        facts.files[str(content)] = None
    elif role == "user" and kind == "message":
        _gather_request(facts, messages, at)
    elif role == "assistant" and kind == "message":
        facts.exchanges[-1].answered = str(content)
    elif role == "assistant" and kind == "code":
        _gather_block(facts, messages, at, sessions)
    elif kind == "tool_call":
        facts.kinds["call"] += 1
    elif kind == "console" and message.get("ended") in ("died", "timed_out"):
        facts.names.pop(_language_before(messages, at), None)


def _gather_request(facts: _Facts, messages: Sequence[Message], at: int) -> None:
    if _is_unrun(messages, at - 1):
        return  # the words of a refusal, which stand with the block
    facts.kinds["request"] += 1
    text = str(messages[at].get("content", ""))
    facts.exchanges.append(_Exchange(asked=text))
    facts.files.update((word, None) for word in _WORD.findall(text) if _FILE.fullmatch(word.rstrip(".")))


def _gather_block(facts: _Facts, messages: Sequence[Message], at: int, sessions: Sessions) -> None:
    language, code = _language(messages[at]), str(messages[at].get("content", ""))
    facts.blocks += 1
    if _is_unrun(messages, at):
        facts.declined.append(f"{language} {_shortened(code, 100)!r}")
        return
    described = sessions.registry.describe(language)
    found = _QUOTED.findall(code) + ([] if described.quotes_paths else _WORD.findall(code))
    for file in filter(_FILE.fullmatch, found):
        facts.files.pop(file, None)
        facts.files[file] = None
    names = facts.names.setdefault(language, {})
    for match in re.finditer(described.definitions, code, re.M) if described.definitions else ():
        name = match.group(match.lastindex or 0)
        names.pop(name, None)
        names[name] = None


def _is_unrun(messages: Sequence[Message], at: int) -> bool:
    """Whether a block stands there that the user did not let run."""
    message, after = messages[at], messages[at + 1] if at + 1 < len(messages) else {}
    return message.get("role") == "assistant" and message.get("type") == "code" and after.get("role") == "user"


def _language(message: Message) -> str:
    return str(message.get("format", "")).lower()


def _language_before(messages: Sequence[Message], at: int) -> str:
    blocks = (messages[p] for p in range(at, 0, -1) if messages[p].get("type") == "code")
    nothing: Message = {}
    return _language(next(blocks, nothing))


def _counted(facts: _Facts) -> str:
    counts = [
        (facts.kinds["request"], "request"),
        (facts.blocks, "block of code"),
        (facts.kinds["call"], "call of a tool"),
        (facts.kinds["image"], "image"),
    ]
    words = [f"{count} {what if count == 1 else _plural(what)}" for count, what in counts if count]
    return ", ".join(words) or "what was said"


def _plural(what: str) -> str:
    first, _, rest = what.partition(" ")
    return f"{first}s {rest}".strip()


def _still_true(facts: _Facts, sessions: Sessions, most: int) -> list[str]:
    lines = []
    for language, names in facts.names.items():
        if sessions.is_alive(language):
            kept = f", with {_newest(names, most)}" if names else ""
            lines.append(f"- The {language} session is still alive{kept}.")
        else:
            lines.append(f"- The {language} session is gone, and with it what was defined there.")
    if facts.files:
        lines.append(f"- Files that the code or the user named: {_newest(facts.files, most)}.")
    return lines


def _declined(facts: _Facts, most: int) -> list[str]:
    lines = [f"- The user declined to run {what}." for what in facts.declined]
    return _fitting(lines, most)


def _exchanges(facts: _Facts, most: int) -> list[str]:
    lines = [_exchange(each) for each in facts.exchanges if each.asked or each.answered]
    return _fitting(lines, most)


def _exchange(exchange: _Exchange) -> str:
    asked = f"The user: {_shortened(exchange.asked)}" if exchange.asked else ""
    answered = f"You: {_shortened(exchange.answered)}" if exchange.answered.strip() else ""
    return "- " + " / ".join(filter(None, (asked, answered)))


def _fitting(lines: list[str], most: int) -> list[str]:
    """The newest lines that fit, at least one."""
    kept: list[str] = []
    for line in reversed(lines):
        if kept and len(line) > most:
            break
        most -= len(line)
        kept.insert(0, line)
    return kept


def _newest(names: dict[str, Any], most: int) -> str:
    kept: list[str] = []
    for name in reversed(list(names)[-_MOST_NAMES:]):
        most -= len(name) + 2
        if kept and most < 0:
            break
        kept.insert(0, name)
    more = len(names) - len(kept)
    return ", ".join(kept) + (f" and {more} more" if more else "")


def _shortened(text: str, most: int = _SHORT) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
