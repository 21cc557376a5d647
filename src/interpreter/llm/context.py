"""The model's context window: how many tokens a request has, and what is left out when it doesn't fit.

Requests only grow at their end, so that a server's cache holds. A compaction (`Cut`) is decided once and kept until the
next one. The conversation itself is never changed.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.errors import ContextTooLongError, ModelError, RequestRefusedError
from interpreter.llm.failures import one_line
from interpreter.messages import EPHEMERAL, Chunk, Message

if TYPE_CHECKING:
    from interpreter.runtimes import Registry

# -- estimating tokens -------------------------------------------------------------------------------------------

BYTES_PER_TOKEN = 4
IMAGE_TOKENS = 85  # an image in low detail at OpenAI
MAX_IMAGE_TOKENS = 3000
MESSAGE_TOKENS = 4  # what a chat template puts around each message


def estimate_text(text: str) -> int:
    """Estimate a text's tokens: English and code have about four bytes in each, other scripts fewer characters."""
    return estimate_size(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))


def estimate_size(size: int) -> int:
    return (size + BYTES_PER_TOKEN - 1) // BYTES_PER_TOKEN


def estimate_messages(messages: Sequence[Mapping[str, Any]]) -> int:
    texts = (text for message in messages for text in _texts(message))
    tokens = sum(IMAGE_TOKENS if text is None else estimate_text(text) for text in texts)
    return MESSAGE_TOKENS * len(messages) + tokens


def estimate_request(params: Mapping[str, Any]) -> int:
    tools = params.get("tools")
    return estimate_messages(params["messages"]) + (estimate_text(str(tools)) if tools else 0)


def most_tokens(params: Mapping[str, Any]) -> int:
    """Return what a request can have at most: no token is shorter than a byte."""
    texts = [text for message in params["messages"] for text in _texts(message)] + [str(params.get("tools") or "")]
    sizes = (MAX_IMAGE_TOKENS if text is None else len(text.encode("utf-8", "replace")) for text in texts)
    return 4 * MESSAGE_TOKENS * len(params["messages"]) + sum(sizes)


def _texts(message: Mapping[str, Any]) -> Iterator[str | None]:
    """Yield all texts and arguments of a chat message; None for an image."""
    content = message.get("content") or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    yield from (part["text"] if part["type"] == "text" else None for part in parts)
    yield from (call["function"]["arguments"] for call in message.get("tool_calls") or ())


# -- pictures that are no longer sent ----------------------------------------------------------------------------

LEFT_OUT = "[The image that was here was left out to save room.]"
LEFT_OUT_PART = {"type": "text", "text": LEFT_OUT}
_PICTURES = frozenset({"image", "image_url", "input_image", "computer_screenshot"})  # in all wire formats


def is_image(message: Message) -> bool:
    """Return whether a message is an image, and not a description in place of one."""
    return message.get("type") == "image" and message.get("format") != "description"


def old_pictures(messages: Sequence[Message], most: int | None) -> frozenset[int]:
    """Return the positions of the oldest pictures that the computer has shown, if there are more than `most`.

    Half of them go at once, so that requests only grow at their end in between.
    """
    if most is None:
        return frozenset()
    pictures = [
        at
        for at, m in enumerate(messages)
        if is_image(m) and m.get("role") == "computer" and m.get("recipient", "assistant") == "assistant"
    ]
    step = max(1, most // 2)
    gone = -(-max(0, len(pictures) - most) // step) * step
    return frozenset(pictures[:gone])


# -- lists of what is on the screen ------------------------------------------------------------------------------

LIST, WHOLE_LIST = "On it (", "On it (what programs say"
LIST_LEFT_OUT = "[The list that was here was left out to save room.]"


def without_list(text: str) -> str:
    """Remove the listing of elements from the text of a screenshot."""
    head, separator, _ = text.partition(LIST)
    return head + LIST_LEFT_OUT if separator else text


def old_lists(messages: Sequence[Message], most: int | None, pictures: frozenset[int]) -> frozenset[int]:
    """Return the positions of the oldest screen listings, which are dropped together with their pictures.

    A listing of changes is kept or dropped with the full listing before it.
    """
    lists = [at for at, m in enumerate(messages) if m.get("recipient") == "assistant" and LIST in str(m.get("content"))]
    if most is None or not lists:
        return frozenset()
    step = max(1, most // 2)
    gone = -(-max(0, len(lists) - most) // step) * step  # for a model that gets no pictures
    end = max(pictures) if pictures else lists[gone - 1] if gone else -1
    first = next((at for at in lists if at > end), lists[-1])
    whole = [at for at in lists if at <= first and WHOLE_LIST in str(messages[at]["content"])]
    return frozenset(at for at in lists if whole and at < whole[-1])


def is_left_out(part: Mapping[str, Any]) -> bool:
    """Return whether a part of a chat message takes the place of a picture."""
    return part.get("text") == LEFT_OUT


@cache
def left_out_url() -> str:
    """Draw LEFT_OUT as a picture, for a format that accepts only pictures."""
    content = (Path(__file__).parent / "left_out.png").read_bytes()
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"


def without_pictures(part: Any) -> Any:
    """Replace every picture in a request by a text, and cut off what follows a list of the screen."""
    if isinstance(part, str):
        return without_list(part).partition(LIST_LEFT_OUT)[0]
    if isinstance(part, Mapping):
        if part.get("type") in _PICTURES or is_left_out(part):
            return LEFT_OUT_PART
        return {key: without_pictures(value) for key, value in part.items()}
    return [without_pictures(each) for each in part] if isinstance(part, list | tuple) else part


# -- the note in place of messages that are left out -------------------------------------------------------------


class Runtimes(Protocol):
    """The parts of the runtimes that a request depends on."""

    @property
    def context(self) -> Any: ...

    @property
    def registry(self) -> Registry: ...

    def is_alive(self, name: str) -> bool: ...

    def has_python_package(self, name: str) -> bool: ...


_COUNTED = (
    ("request", ("request", "requests")),
    ("block", ("block of code", "blocks of code")),
    ("call", ("call of a tool", "calls of a tool")),
    ("image", ("image", "images")),
)
_SHORT = 300
_MAX_NAMES = 40
_QUOTED = re.compile(r"""["']([^"'\n]{1,200})["']""")
_WORD = re.compile(r"[\w~./\\@+-]+")
_FILE = re.compile(r"(?:[\w~./\\ ()@+-]*[\w)]\.[A-Za-z]\w{1,4}|(?:~|\.{1,2})?/[\w./@+-]+\.\w{1,5})")


@dataclass
class _Facts:
    """Facts that the note keeps about messages that are left out."""

    runtimes: Runtimes
    exchanges: list[tuple[str, str]] = field(default_factory=lambda: [("", "")])  # request, last answer
    counts: Counter[str] = field(default_factory=Counter)
    files: list[str] = field(default_factory=list)  # the newest last, like the names
    names: dict[str, list[str]] = field(default_factory=dict)  # by language
    declined: list[str] = field(default_factory=list)

    def add(self, messages: Sequence[Message], at: int) -> None:
        message = messages[at]
        role, kind, content = message.get("role"), message.get("type"), str(message.get("content", ""))
        if kind == "image":
            self.counts["image"] += 1
        if kind == "file" or (kind == "image" and message.get("format") == "path"):
            self.files.append(content)
        elif role == "user" and kind == "message":
            if not _is_unrun(messages, at - 1):  # or it is the reason of a refusal, which the block has
                self.counts["request"] += 1
                self.exchanges.append((content, ""))
                self.files += [word for word in _WORD.findall(content) if _FILE.fullmatch(word.rstrip("."))]
        elif role == "assistant" and kind == "message":
            self.exchanges[-1] = (self.exchanges[-1][0], content)
        elif role == "assistant" and kind == "code":
            self.counts["block"] += 1
            language = str(message.get("format", "")).lower()
            if _is_unrun(messages, at):
                self.declined.append(f"{language} {one_line(content, 100)!r}")
            else:
                described = self.runtimes.registry.describe(language)
                candidates = _QUOTED.findall(content) + ([] if described.quotes_paths else _WORD.findall(content))
                defined = re.finditer(described.definitions, content, re.M) if described.definitions else ()
                self.files += filter(_FILE.fullmatch, candidates)
                self.names.setdefault(language, []).extend(match.group(match.lastindex or 0) for match in defined)
        elif kind == "tool_call":
            self.counts["call"] += 1
        elif kind == "console" and message.get("ended") in ("died", "timed_out"):
            blocks = (messages[p] for p in range(at, 0, -1) if messages[p].get("type") == "code")
            self.names.pop(next((str(block.get("format", "")).lower() for block in blocks), ""), None)


def note_about(messages: Sequence[Message], left_out: Collection[int], runtimes: Runtimes, most: int) -> str:
    """Write the note in place of these messages, in about `most` characters; same messages, same note."""
    facts = _Facts(runtimes)
    for at in sorted(left_out):
        facts.add(messages, at)
    lines = []
    for language, names in facts.names.items():
        if runtimes.is_alive(language):
            defined = f", with {_newest(names, most // 3)}" if names else ""
            lines.append(f"- The {language} session is still alive{defined}.")
        else:
            lines.append(f"- The {language} session is gone, and with it what was defined there.")
    if facts.files:
        lines.append(f"- Files that the code or the user named: {_newest(facts.files, most // 3)}.")
    lines += _fitting([f"- The user declined to run {what}." for what in facts.declined], most // 5)
    exchanges = []
    for request, answer in facts.exchanges:
        asked = f"The user: {one_line(request, _SHORT)}" if request else ""
        answered = f"You: {one_line(answer, _SHORT)}" if answer.strip() else ""
        if request or answer:
            exchanges.append("- " + " / ".join(filter(None, (asked, answered))))
    exchanges = _fitting(exchanges, most - sum(map(len, lines)))
    counts = [f"{facts.counts[what]} {nouns[facts.counts[what] > 1]}" for what, nouns in _COUNTED if facts.counts[what]]
    head = f"[{len(left_out)} messages between the first request and this note were left out to save room"
    return "\n".join([f"{head}: {', '.join(counts) or 'what was said'}. Known of them:", *exchanges, *lines]) + "]"


def _is_unrun(messages: Sequence[Message], at: int) -> bool:
    message, after = messages[at], messages[at + 1] if at + 1 < len(messages) else {}
    return message.get("role") == "assistant" and message.get("type") == "code" and after.get("role") == "user"


def _fitting(lines: list[str], most: int) -> list[str]:
    """Return the newest lines that fit, at least one."""
    kept: list[str] = []
    for line in reversed(lines):
        if kept and len(line) > most:
            break
        most -= len(line)
        kept.insert(0, line)
    return kept


def _newest(names: list[str], most: int) -> str:
    """Return the newest of the names, each once, as many as fit."""
    unique = list(dict.fromkeys(reversed(names)))[::-1]
    kept = _fitting([f"{name}, " for name in unique[-_MAX_NAMES:]], most)
    more = len(unique) - len(kept)
    return "".join(kept).removesuffix(", ") + (f" and {more} more" if more else "")


# -- compaction --------------------------------------------------------------------------------------------------

_NEWEST_IMAGES = 2
_MAX_NOTE_TOKENS = 1500
_MIN_NOTE_TOKENS = 150


@dataclass(frozen=True)
class Cut:
    """The parts of a conversation that are left out, by position."""

    dropped: frozenset[int]
    blind: frozenset[int]  # images that are replaced by words
    note_at: int  # the note goes before this message
    note: str
    seen: tuple[Message, ...]  # the messages that it is about, as they were

    def holds(self, messages: Sequence[Message]) -> bool:
        """Return whether the beginning of the conversation is unchanged."""
        return len(messages) > len(self.seen) and list(self.seen) == list(messages[1 : len(self.seen) + 1])


def compact(messages: Sequence[Message], room: int, runtimes: Runtimes, *, vision: bool) -> Cut | None:
    """Return a cut that leaves about `room` tokens after the system message, or as few as possible.

    The first and the last request and the newest rounds stay. Old images go first. None if nothing can be left out.
    """
    blind = _old_images(messages) if vision else frozenset[int]()
    costs = [cost(message, at in blind) for at, message in enumerate(messages)]
    if blind and sum(costs[1:]) <= room * 3 // 2:
        return without_old_images(messages, None)
    note = max(_MIN_NOTE_TOKENS, min(_MAX_NOTE_TOKENS, room // 4))
    # The user's first and last request, each with everything sent along with it.
    from_user = {at for at, message in enumerate(messages) if message.get("role") == "user"}
    first, last = min(from_user, default=0), max(from_user, default=0)
    while first + 1 in from_user:
        first += 1
    while last - 1 in from_user:
        last -= 1
    kept = frozenset(at for at in from_user if at <= first or at >= last)
    start = _newest_rounds(messages, costs, kept, room - note)
    dropped = frozenset(range(1, start)) - kept
    if not dropped:
        return without_old_images(messages, None) if blind else None
    note_text = note_about(messages, dropped, runtimes, note * BYTES_PER_TOKEN)
    end = max([start, *(at + 1 for at in blind)])
    return Cut(dropped, blind - dropped, start, note_text, _copies(messages, end))


def without_old_images(messages: Sequence[Message], cut: Cut | None) -> Cut | None:
    """Leave out all images except the first and the newest; None if there are no others."""
    cut = cut or Cut(frozenset(), frozenset(), 0, "", ())
    blind = _old_images(messages) - cut.dropped
    if blind <= cut.blind:
        return None
    return replace(cut, blind=blind, seen=_copies(messages, max(max(blind) + 1, len(cut.seen) + 1)))


def _old_images(messages: Sequence[Message]) -> frozenset[int]:
    images = [at for at, message in enumerate(messages) if is_image(message)]
    return frozenset(images[1:-_NEWEST_IMAGES])


def _copies(messages: Sequence[Message], end: int) -> tuple[Message, ...]:
    return tuple(message.copy() for message in messages[1:end])


def cost(message: Message, is_blind: bool = False) -> int:
    if message.get("recipient", "assistant") != "assistant" or message.get("type") in EPHEMERAL:
        return 0
    if is_image(message):
        return MESSAGE_TOKENS + (estimate_text(LEFT_OUT) if is_blind else IMAGE_TOKENS)
    return MESSAGE_TOKENS + estimate_text(str(message.get("content") or ""))


def _newest_rounds(messages: Sequence[Message], costs: Sequence[int], kept: frozenset[int], room: int) -> int:
    """Find the position from which the rounds fit into the room; the last round always stays.

    A round begins where the model is asked, or asked again, so no call is cut from its result.
    """
    starts = []
    for at in range(2, len(messages)):
        role, before = messages[at].get("role"), messages[at - 1].get("role")
        if (role == "user" and before != "user") or (role == "assistant" and before == "computer"):
            starts.append(at)
    behind = list(accumulate(reversed(costs)))[::-1]  # the costs from each position to the end
    for start in starts:
        before_start = sum(costs[at] for at in kept if at < start)
        if behind[start] + before_start <= room:
            return start
    return starts[-1] if starts else 1


# -- fitting a request into the window ---------------------------------------------------------------------------

Params = dict[str, Any]
ServedModel = tuple[str, str | None]  # a model and its address

_REPLY_TOKENS = 4096  # for the reply if no limit is set, or a quarter of a small window
_NEAR = 0.6  # of the window: a refusal without a reason beyond it is taken for "too long"
_TIGHTENINGS = 2


@dataclass(frozen=True)
class _Counted:
    served_model: ServedModel
    messages: list[dict[str, Any]]
    tokens: int
    ratio: float  # of its count to our estimate


class Context:
    """Holds the compaction of a conversation from turn to turn, and what servers reported about sizes."""

    def __init__(self) -> None:
        self.cut: Cut | None = None
        self.read = (0, 0)  # of the last request: how many messages it had, and how many tokens
        self._counted: _Counted | None = None
        self._ceilings: dict[ServedModel, int] = {}  # below what a server has refused

    def size(self, params: Params) -> int:
        """Return a request's tokens: a server's count of it, plus an estimate of what was added since."""
        counted, messages = self._counted, params["messages"]
        if counted is None or counted.served_model != _served_model(params):
            return estimate_request(params)
        known = len(counted.messages)
        if messages[:known] != counted.messages:
            return round(estimate_request(params) * counted.ratio)
        return counted.tokens + round(estimate_messages(messages[known:]) * counted.ratio)

    def used(self, messages: Sequence[Message], system: str) -> int:
        """Estimate the tokens of a request with these messages, based on the last request."""
        count, tokens = self.read
        if count == 0 or count > len(messages):
            count, tokens = 0, estimate_text(system)
        return tokens + sum(map(cost, messages[count:]))

    def learn(self, params: Params, usage: Mapping[str, Any]) -> None:
        tokens, estimate = usage.get("input_tokens"), estimate_request(params)
        if usage.get("estimated") or not tokens:
            return
        least, most = (0.3, 4.0)  # a server's count divided by ours; outside this range, it counts differently
        if least <= tokens / estimate <= most:
            self._counted = _Counted(_served_model(params), list(params["messages"]), tokens, tokens / estimate)

    def limit(self, params: Params, window: int | None) -> int | None:
        """Return how many tokens the request may have; None if unknown."""
        ceiling = self._ceilings.get(_served_model(params))
        if window is None:
            return ceiling
        asked, reply = params.get("max_tokens"), min(_REPLY_TOKENS, window // 4)
        room = window - (asked if asked and asked <= window // 2 else reply)
        return min(room, ceiling) if ceiling is not None else room

    def refused(self, params: Params, size: int, error: ModelError) -> None:
        """Remember that a server found a request of this size too long."""
        if error.status == 413:
            return  # of bytes, not of tokens
        window = error.window if isinstance(error, ContextTooLongError) else None
        known = self._ceilings.get(_served_model(params), size)
        self._ceilings[_served_model(params)] = min(known, size * 9 // 10, *([window * 3 // 4] if window else []))


class Fitting:
    """One request: made to fit before it is sent, and again if the server finds it too long."""

    def __init__(
        self,
        context: Context,
        messages: Sequence[Message],
        make: Callable[[Cut | None], Params],
        window: Callable[[int], int | None],  # the model's window if it is known, for about so many tokens
        runtimes: Runtimes,
        vision: bool,
    ) -> None:
        self._context, self._messages, self._make = context, messages, make
        self._runtimes, self._vision = runtimes, vision
        if context.cut is not None and not context.cut.holds(messages):
            context.cut = None
        self._tightened = 0
        self.status: Chunk | None = None  # a compaction that was just made, for the user
        self.params = make(context.cut)
        self._size = context.size(self.params)
        self._window = window(self._size)
        limit = context.limit(self.params, self._window)
        if limit is not None and self._size > limit:
            self._compact(limit // 2)

    def tighten(self, error: ModelError) -> bool:
        """Make the request smaller after the server refused it; return whether there is a smaller one to send."""
        # Anthropic, vLLM and others give no code for "too long".
        unexplained = isinstance(error, RequestRefusedError) and error.status == 400 and not error.params
        is_near = self._window is not None and self._size >= self._window * _NEAR
        if not isinstance(error, ContextTooLongError) and not (unexplained and is_near):
            return False
        self._context.refused(self.params, self._size, error)
        if error.status == 413 and self._vision:
            cut = without_old_images(self._messages, self._context.cut)
            if cut is not None and self._use(cut):
                return True
        limit = self._context.limit(self.params, self._window) or self._size
        while self._tightened < _TIGHTENINGS:
            self._tightened += 1
            if self._compact(limit // 2 if self._tightened < _TIGHTENINGS else 0):
                return True
        return False

    def _compact(self, target: int) -> bool:
        fixed = estimate_request({**self.params, "messages": self.params["messages"][:1]})
        room = max(0, round(target / self._ratio()) - fixed)
        cut = compact(self._messages, room, self._runtimes, vision=self._vision)
        return cut is not None and self._use(cut)

    def _ratio(self) -> float:
        return max(0.01, self._size / max(1, estimate_request(self.params)))

    def _use(self, cut: Cut) -> bool:
        """Use this cut if it makes the request smaller."""
        params = self._make(cut)
        if len(str(params["messages"])) >= len(str(self.params["messages"])):
            return False
        news: dict[str, Any] = {
            "messages": len(cut.dropped),
            "images": len(cut.blind),
            "tokens_before": self._size,
            "tokens_after": round(estimate_request(params) * self._ratio()),
            "estimated": True,
            "window": self._window,
        }
        self.params, self._size, self._context.cut = params, news["tokens_after"], cut
        self.status = {"type": "status", "format": "compacted", "content": news}
        return True


def _served_model(params: Params) -> ServedModel:
    return params["model"], params.get("api_base")
