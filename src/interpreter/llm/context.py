"""How many tokens a text has, roughly, where no server says."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from interpreter.errors import ContextTooLongError, ModelError, RequestRefusedError
from interpreter.messages import EPHEMERAL, Chunk, Message

if TYPE_CHECKING:
    from interpreter.runtimes import Registry


BYTES_PER_TOKEN = 4
IMAGE_TOKENS = 85  # what an image in low detail costs at OpenAI
MESSAGE_TOKENS = 4  # what a chat template puts around each message


def estimate_text(text: str) -> int:
    """Tokens of a text: English and code have about four bytes in each, other scripts fewer characters."""
    return estimate_size(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))


def estimate_size(size: int) -> int:
    """Tokens of so many bytes."""
    return (size + BYTES_PER_TOKEN - 1) // BYTES_PER_TOKEN


def estimate_messages(messages: Iterable[Mapping[str, Any]]) -> int:
    """Tokens of chat messages as they go out."""
    return sum(MESSAGE_TOKENS + _of_message(message) for message in messages)


def _of_message(message: Mapping[str, Any]) -> int:
    content = message.get("content") or ""
    calls = message.get("tool_calls") or ()
    called = sum(estimate_text(call["function"]["arguments"]) for call in calls)
    if isinstance(content, str):
        return called + estimate_text(content)
    return called + sum(_of_part(part) for part in content)


def _of_part(part: Mapping[str, Any]) -> int:
    return estimate_text(part["text"]) if part["type"] == "text" else IMAGE_TOKENS


LEFT_OUT = "[The image that was here was left out to save room.]"
_PICTURES = frozenset({"image", "image_url", "input_image", "computer_screenshot"})  # as the wire formats call them
_IN_WORDS = {"type": "text", "text": LEFT_OUT}


def is_image(message: Message) -> bool:
    """Whether it is an image, and not the words in the place of one."""
    return message.get("type") == "image" and message.get("format") != "description"


def old_pictures(messages: Sequence[Message], most: int | None) -> frozenset[int]:
    """Where the pictures are that the computer has shown the model and that are too many, the oldest ones.

    Half of them go at once, so that in between requests only grow at their end, and a server's cache holds.
    """
    if most is None:
        return frozenset()
    shown = (at for at, m in enumerate(messages) if is_image(m) and m.get("role") == "computer")
    pictures = [at for at in shown if messages[at].get("recipient", "assistant") == "assistant"]
    step = max(1, most // 2)
    gone = -(-max(0, len(pictures) - most) // step) * step
    return frozenset(pictures[:gone])


def left_out_part() -> dict[str, Any]:
    """What stands in a chat message where the picture was."""
    return dict(_IN_WORDS)


def is_left_out(part: Mapping[str, Any]) -> bool:
    return part.get("text") == LEFT_OUT


@cache
def left_out_url() -> str:
    """The same as a picture, for a format that takes nothing else."""
    content = (Path(__file__).parent / "left_out.png").read_bytes()
    return f"data:image/png;base64,{base64.b64encode(content).decode('ascii')}"


def without_pictures(part: Any) -> Any:
    """A part of a request in which every picture is as if it were left out."""
    if isinstance(part, Mapping):
        if part.get("type") in _PICTURES or is_left_out(part):
            return _IN_WORDS
        return {key: without_pictures(value) for key, value in part.items()}
    return [without_pictures(each) for each in part] if isinstance(part, list | tuple) else part


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


_NEWEST_IMAGES = 2
_LONGEST_NOTE = 1500  # tokens
_SHORTEST_NOTE = 150


@dataclass(frozen=True)
class Cut:
    """What is left out of a conversation, by position; the note stands before `note_at`."""

    dropped: frozenset[int]
    blind: frozenset[int]
    """Images in whose place a word is said."""
    note_at: int
    note: str
    seen: tuple[Message, ...]
    """The messages it is about, as they were."""

    def holds(self, messages: Sequence[Message]) -> bool:
        """Whether the conversation still begins as it did."""
        return len(messages) > len(self.seen) and list(self.seen) == list(messages[1 : len(self.seen) + 1])

    def shown(self, position: int, message: Message) -> Message:
        if position not in self.blind:
            return message
        return {**message, "format": "description", "content": LEFT_OUT}


_NOTHING = Cut(frozenset(), frozenset(), 0, "", ())


def compact(messages: Sequence[Message], room: int, sessions: Sessions, *, vision: bool) -> Cut | None:
    """A cut that leaves about `room` tokens of messages behind the system message, or as few as can be.

    Kept are the first request, the last one and the newest rounds; old images go before anything else does.
    None if there is nothing to leave out.
    """
    blind = _old_images(messages) if vision else frozenset[int]()
    costs = [cost(message, at in blind) for at, message in enumerate(messages)]
    if blind and sum(costs[1:]) <= room * 3 // 2:
        return without_old_images(messages, None)
    note = max(_SHORTEST_NOTE, min(_LONGEST_NOTE, room // 4))
    kept = _requests(messages)
    start = _tail(messages, costs, kept, room - note)
    dropped = frozenset(range(1, start)) - kept
    if not dropped:
        return without_old_images(messages, None) if blind else None
    words = note_about(messages, dropped, sessions, note * BYTES_PER_TOKEN)
    end = max([start, *(at + 1 for at in blind)])
    return Cut(dropped, blind - dropped, start, words, _copies(messages, end))


def without_old_images(messages: Sequence[Message], cut: Cut | None) -> Cut | None:
    """The cut with all images left out but the first and the newest; None if there are no others."""
    gone = cut.dropped if cut else frozenset[int]()
    blind = _old_images(messages) - gone
    if not blind or (cut and blind <= cut.blind):
        return None
    seen = _copies(messages, max([max(blind) + 1, len(cut.seen) + 1 if cut else 0]))
    return replace(cut or _NOTHING, blind=blind, seen=seen)


def _old_images(messages: Sequence[Message]) -> frozenset[int]:
    """All but the first and the newest."""
    images = [at for at, message in enumerate(messages) if is_image(message)]
    return frozenset(images[1:-_NEWEST_IMAGES])


def cost(message: Message, is_blind: bool = False) -> int:
    """About how many tokens a message has."""
    if message.get("recipient", "assistant") != "assistant" or message.get("type") in EPHEMERAL:
        return 0
    if is_image(message):
        return MESSAGE_TOKENS + (estimate_text(LEFT_OUT) if is_blind else IMAGE_TOKENS)
    return MESSAGE_TOKENS + estimate_text(str(message.get("content") or ""))


def _requests(messages: Sequence[Message]) -> frozenset[int]:
    """The first thing that the user said, and the last, each with all that came along with it."""
    from_user = {at for at, message in enumerate(messages) if message.get("role") == "user"}
    if not from_user:
        return frozenset()
    first, last = min(from_user), max(from_user)
    while first + 1 in from_user:
        first += 1
    while last - 1 in from_user:
        last -= 1
    return frozenset(at for at in from_user if at <= first or at >= last)


def _tail(messages: Sequence[Message], costs: Sequence[int], kept: frozenset[int], room: int) -> int:
    """Where the newest rounds begin that fit into the room; the last round is always kept."""
    starts = [at for at in range(2, len(messages)) if _begins_round(messages, at)]
    behind = list(accumulate(reversed(costs)))[::-1]  # the costs from each position to the end
    for start in starts:
        before = sum(costs[at] for at in kept if at < start)
        if behind[start] + before <= room:
            return start
    return starts[-1] if starts else 1


def _begins_round(messages: Sequence[Message], at: int) -> bool:
    """Whether the model is asked, or asked again, right before this message: no call is cut from its result."""
    role, before = messages[at].get("role"), messages[at - 1].get("role")
    return (role == "user" and before != "user") or (role == "assistant" and before == "computer")


def _copies(messages: Sequence[Message], end: int) -> tuple[Message, ...]:
    return tuple(message.copy() for message in messages[1:end])


Params = dict[str, Any]
Place = tuple[str, str | None]

_REPLY = 4096  # tokens that are left to the reply where no limit is set, or a quarter of a small window
_NEAR = 0.6  # of the window: a refusal without a reason beyond it is taken for "too long"
_BELIEVED = (0.3, 4.0)  # a server's count in relation to ours; one beyond is of something else
_TIGHTENINGS = 2


@dataclass(frozen=True)
class Size:
    """How many tokens a request has; `estimated` unless a server has counted all of it."""

    tokens: int
    estimated: bool


@dataclass(frozen=True)
class Counted:
    """A request that a server has counted."""

    place: Place
    messages: list[dict[str, Any]]
    tokens: int
    ratio: float
    """Its count in relation to our estimate."""


@dataclass(frozen=True)
class Around:
    """What a fitting depends on beside the messages."""

    window: Callable[[int], int | None]
    """The model's window if it is known, for a request of about so many tokens."""
    count: Callable[[str], int | None]
    """Tokens of a text, as the server counts; None if it does not say."""
    sessions: Sessions
    vision: bool = False


class Context:
    """Holds the compaction of a conversation from turn to turn, and what servers told about sizes."""

    def __init__(self) -> None:
        self.cut: Cut | None = None
        self._counted: Counted | None = None
        self.read = (0, 0)  # of the last request: how many messages it had, and how many tokens
        self._ceilings: dict[Place, int] = {}  # below what a server has refused

    def size(self, params: Params, count: Callable[[str], int | None] | None = None) -> Size:
        """What a server counted of the request, and an estimate of what is new in it."""
        counted, messages = self._counted, params["messages"]
        if counted is not None and counted.place != _place(params):
            counted = None
        ratio = counted.ratio if counted else 1.0
        known = len(counted.messages) if counted else 0
        if counted is None or messages[:known] != counted.messages:
            exact = _count(messages, count)
            return Size(round(_estimate(params) * ratio) if exact is None else exact, True)
        new = messages[known:]
        exact = _count(new, count)
        more = round(estimate_messages(new) * ratio) if exact is None else exact
        return Size(counted.tokens + more, bool(new) and exact is None)

    def used(self, messages: Sequence[Message], system: str) -> int:
        """About how many tokens a request with these messages would have, by what the last one had."""
        count, tokens = self.read
        if count == 0 or count > len(messages):
            count, tokens = 0, estimate_text(system)
        return tokens + sum(map(cost, messages[count:]))

    def learn(self, params: Params, usage: Mapping[str, Any]) -> None:
        """A server has counted a request."""
        tokens, estimate = usage.get("input_tokens"), _estimate(params)
        if usage.get("estimated") or not tokens:
            return
        least, most = _BELIEVED
        if least <= tokens / estimate <= most:
            self._counted = Counted(_place(params), list(params["messages"]), tokens, tokens / estimate)

    def fitting(self, messages: Sequence[Message], make: Callable[[Cut | None], Params], around: Around) -> Fitting:
        """The request for these messages, as small as it has to be."""
        if self.cut is not None and not self.cut.holds(messages):
            self.cut = None
        return Fitting(self, messages, make, around)

    def limit(self, params: Params, window: int | None) -> int | None:
        """How many tokens the request may have; None if nothing is known."""
        ceiling = self._ceilings.get(_place(params))
        if window is None:
            return ceiling
        asked, reply = params.get("max_tokens"), min(_REPLY, window // 4)
        room = window - (asked if asked and asked <= window // 2 else reply)
        return min(room, ceiling) if ceiling is not None else room

    def refused(self, params: Params, size: int, error: ModelError) -> None:
        """A server found a request of this size too long."""
        if error.status == 413:
            return  # of bytes, not of tokens
        told = error.window if isinstance(error, ContextTooLongError) else None
        known = self._ceilings.get(_place(params), size)
        self._ceilings[_place(params)] = min(known, size * 9 // 10, *([told * 3 // 4] if told else []))


class Fitting:
    """One request: made to fit before it is sent, and again, tighter, if the server finds it too long."""

    def __init__(
        self,
        context: Context,
        messages: Sequence[Message],
        make: Callable[[Cut | None], Params],
        around: Around,
    ) -> None:
        self._context, self._messages, self._make, self._around = context, messages, make, around
        self._tightened = 0
        self.status: Chunk | None = None
        """What there is to tell the user of: a compaction that was just made."""
        self.params = make(context.cut)
        self._size = context.size(self.params)
        self._window = around.window(self._size.tokens)
        limit = context.limit(self.params, self._window)
        if limit is not None and self._size.estimated and self._size.tokens > limit * _NEAR:
            self._size = context.size(self.params, around.count)
        if limit is not None and self._size.tokens > limit:
            self._compact(limit // 2)

    def tighter(self, error: ModelError) -> bool:
        """Whether there is a smaller request to send in the place of the one that was refused."""
        if not self._is_too_long(error):
            return False
        refused, is_larger = self._size.tokens, error.status == 413
        self._context.refused(self.params, refused, error)
        if is_larger and self._around.vision:
            cut = without_old_images(self._messages, self._context.cut)
            if cut is not None and self._take(cut):
                return True
        limit = self._context.limit(self.params, self._window) or refused
        while self._tightened < _TIGHTENINGS:
            self._tightened += 1
            if self._compact(limit // 2 if self._tightened < _TIGHTENINGS else 0):
                return True
        return False

    def _is_too_long(self, error: ModelError) -> bool:
        if isinstance(error, ContextTooLongError):
            return True
        # Anthropic, vLLM and others give no code for it.
        unexplained = isinstance(error, RequestRefusedError) and error.status == 400 and not error.params
        return unexplained and self._window is not None and self._size.tokens >= self._window * _NEAR

    def _compact(self, target: int) -> bool:
        ratio = self._ratio()
        fixed = _estimate({**self.params, "messages": self.params["messages"][:1]})
        room = max(0, round(target / ratio) - fixed)
        cut = compact(self._messages, room, self._around.sessions, vision=self._around.vision)
        return cut is not None and self._take(cut)

    def _ratio(self) -> float:
        return max(0.01, self._size.tokens / max(1, _estimate(self.params)))

    def _take(self, cut: Cut) -> bool:
        """Go on with this cut, if it makes the request smaller."""
        params = self._make(cut)
        ratio, before = self._ratio(), self._size.tokens
        if _weight(params) >= _weight(self.params):
            return False
        size = Size(round(_estimate(params) * ratio), True)
        self.params, self._size, self._context.cut = params, size, cut
        self.status = _status(cut, before, size, self._window)
        return True


def _status(cut: Cut, before: int, after: Size, window: int | None) -> Chunk:
    content = {
        "messages": len(cut.dropped),
        "images": len(cut.blind),
        "tokens_before": before,
        "tokens_after": after.tokens,
        "estimated": after.estimated,
        "window": window,
    }
    return {"type": "status", "format": "compacted", "content": content}


def _place(params: Params) -> Place:
    return params["model"], params.get("api_base")


def _estimate(params: Params) -> int:
    tools = params.get("tools")
    return estimate_messages(params["messages"]) + (estimate_text(str(tools)) if tools else 0)


def _weight(params: Params) -> int:
    """What a request weighs on the wire, images included."""
    return sum(len(str(message)) for message in params["messages"])


def _count(messages: Sequence[Mapping[str, Any]], count: Callable[[str], int | None] | None) -> int | None:
    """The tokens of messages as the server counts their texts; what it does not count is estimated."""
    if count is None or not messages:
        return None
    parts = list(_texts(messages))
    counted = count("\n".join(filter(None, parts)))
    around = MESSAGE_TOKENS * len(messages) + IMAGE_TOKENS * parts.count(None)
    return None if counted is None else counted + around


def _texts(messages: Sequence[Mapping[str, Any]]) -> Iterator[str | None]:
    """All that is said and called; None for an image."""
    for message in messages:
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield from (part["text"] if part["type"] == "text" else None for part in parts)
        yield from (call["function"]["arguments"] for call in message.get("tool_calls") or ())
