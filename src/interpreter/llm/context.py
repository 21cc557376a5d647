"""The model's window: how large a request is, when it has to become smaller, and what was made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interpreter.errors import ContextTooLongError, ModelError, RequestRefusedError
from interpreter.llm.compaction import Cut, compact, cost, without_old_images
from interpreter.llm.facts import Sessions
from interpreter.llm.tokens import IMAGE_TOKENS, MESSAGE_TOKENS, estimate_messages, estimate_text
from interpreter.messages import Chunk, Message

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
