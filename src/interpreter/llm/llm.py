"""The model that steps in when the first one cannot be reached."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from interpreter.config.settings import LlmSettings
from interpreter.errors import (
    BrokenStreamError,
    ContextTooLongError,
    EngineError,
    ModelError,
    ModelOverloadedError,
    ModelTimeoutError,
    ModelUnreachableError,
    RateLimitedError,
    RepeatingReplyError,
    ReplyCutError,
    ReplyDeclinedError,
    RequestRefusedError,
)
from interpreter.llm.anthropic import AnthropicMessages
from interpreter.llm.chat_completions import ChatCompletions
from interpreter.llm.context import (
    Around,
    Context,
    Cut,
    estimate_messages,
    estimate_size,
    estimate_text,
)
from interpreter.llm.failures import wait_before_retry
from interpreter.llm.http import Connections, WireFormat
from interpreter.llm.local.servers import (
    BUILTIN,
    OLLAMA_WIRE,
    LocalEndpoints,
    NearServers,
    Window,
)
from interpreter.llm.model_profile import Assessment, Forms, ModelProfile, profile_for, size_of
from interpreter.llm.ollama import OllamaChat
from interpreter.llm.providers import LITELLM, Endpoint, check_offline, identify, resolve
from interpreter.llm.reply_parser import Repetition, ReplyParser, thinks_first
from interpreter.llm.request import WHERE, Memory, can_see, convert, known_secrets, make_request
from interpreter.llm.responses import Responses
from interpreter.llm.tool_mode import ToolChat
from interpreter.llm.usage import Price, Purse, Usage, price_of, window_of
from interpreter.messages import Chunk, Message
from interpreter.sigint import call_user_code, iterate_user_code

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter


# What another model may be spared; a wrong key or a refused request is for the user to know.
STEPS_IN_AFTER: tuple[type[ModelError], ...] = (
    BrokenStreamError,
    ModelOverloadedError,
    ModelTimeoutError,
    ModelUnreachableError,
    RateLimitedError,
)
# With another model at hand nobody waits long for the first one.
LONGEST_WAIT = 5.0

_OF_THE_FIRST = ("supports_functions", "supports_vision", "context_window", "fallback_model")
_WHERE = ("api_base", "api_key", "api_version")


def stand_in(llm: Llm, fallback: str) -> Llm:
    """The same Llm with the fallback as its model: it shares connections, memory and counts with the first.

    Address and key are the first model's own; only a model of the same provider is asked there too.
    """
    other = copy.copy(llm)
    same = identify(fallback)[0] == identify(llm.model, llm.api_base)[0]
    settings = {
        **dict.fromkeys(_OF_THE_FIRST if same else (*_OF_THE_FIRST, *_WHERE)),
        "model": fallback,
    }
    vars(other).update(settings)
    return other


_OF_THE_MODEL = ("supports_functions", "supports_vision", "context_window")
_REPEATS_ITSELF = (
    "The model said the same thing over and over, so its reply was cut off. "
    "Say it in other words or in smaller steps, or use a larger model."
)

Completions = Callable[..., Iterator[dict[str, Any]]]


class Llm(LlmSettings, closed=True):
    """A model and how it is asked; every setting `llm.*` is an attribute."""

    memory: Memory
    _writes_blocks = True  # code in fences is code to run

    def __init__(self, interpreter: OpenInterpreter) -> None:
        self._interpreter = interpreter
        self._completions: Completions | None = None
        self._is_loaded = False
        self._wire = Connections()
        self._local = LocalEndpoints()
        self._near = NearServers()
        self._assessment = Assessment()
        self._begin()
        self._purse = Purse()
        self._fallen_back = False
        self._running: dict[threading.Event, None] = {}  # in the order of their start

    def _begin(self) -> None:
        """What belongs to one conversation."""
        self.memory = Memory()
        self._context = Context()
        self._formats: dict[str, WireFormat] = {
            "chat": ChatCompletions(self.memory.replies),
            "anthropic": AnthropicMessages(self.memory.replies),
            "responses": Responses(self.memory.replies),
            OLLAMA_WIRE: OllamaChat(),
        }

    @property
    def interpreter(self) -> OpenInterpreter:
        """Whom this model works for."""
        return self._interpreter

    @property
    def profile(self) -> ModelProfile:
        """How this model is asked: as `model_profile` says, else by its name, its size and how it has replied."""
        if self.model_profile is not None:
            return profile_for(self.model, named=self.model_profile)
        return self._assessment.profile(self.model, self.api_base)

    @property
    def tries_tools(self) -> bool:
        """Whether a model of which nothing is known is given tools to see how it does."""
        return self.model_profile is None and self._assessment.tries_tools(self.model, self.api_base)

    def assess(self) -> None:
        """Ask a server on this machine, once, how large a model is whose name does not tell."""
        if self.model_profile is None and self._completions is None:
            self._assessment.report(self.model, self.api_base, self._reported_size)

    def _reported_size(self) -> float | None:
        try:
            endpoint = self._endpoint()
        except ModelError:
            return None  # asking the model says what is wrong
        return size_of(self._local.size(endpoint, self.context_window)) or self._near.size(endpoint)

    def _is_tried(self, params: Mapping[str, Any]) -> bool:
        """Whether this request is to show how the model does with tools."""
        return "tools" in params and self.supports_functions is None and self.tries_tools

    def _refuses_tools(self, error: ModelError, params: Mapping[str, Any]) -> bool:
        named = error.params if isinstance(error, RequestRefusedError) else frozenset()
        return self._is_tried(params) and ("tools" in named or "tool" in error.detail.lower())

    def _step_down(self, reason: str) -> Chunk:
        """Ask a model that failed at it no longer in full; how things went out so far counts no more."""
        self.memory.templates.clear()
        words = self._assessment.failed(self.model, self.api_base, reason)
        return {"type": "status", "format": "notice", "content": {"text": words}}

    @property
    def completions(self) -> Completions:
        """How the model is asked: called with `model`, `messages`, `stream` and what else is set, it yields
        chunk dicts in OpenAI's shape. Assign your own; it may call the one that was there before.
        """
        return self._completions or self._ask_server

    @completions.setter
    def completions(self, way: Completions | None) -> None:
        self._completions = way

    @property
    def usage(self) -> Usage:
        """What all requests of this session took."""
        return self._purse.session

    @property
    def turn_usage(self) -> Usage:
        """What the requests of the last turn took."""
        return self._purse.turn

    @property
    def cost(self) -> float | None:
        """What this session has cost, in US dollars; None if the price of all that was asked is not known."""
        usage = self._purse.session
        return None if usage.unpriced_tokens and usage.unpriced_tokens == usage.tokens else usage.cost

    def forms_sent(self) -> dict[str, Any]:
        """The forms in which things went out, beyond what the messages tell, to be written down."""
        sent = {"templates": self.memory.templates_sent(), "replies": self.memory.replies.as_data()}
        return {**sent, "stepped_down": self._assessment.as_data()}

    def take_up(self, forms: Mapping[str, Any], used: Usage) -> None:
        """Go on with a conversation that was written down: as it went out, and with what it has cost."""
        self.memory.take_up(forms.get("templates", {}), self._interpreter.messages)
        self.memory.replies.load(forms.get("replies", {}))
        self._assessment.load(forms.get("stepped_down", {}))
        self._purse.session += used

    @property
    def context_used(self) -> tuple[int, int | None]:
        """About how many tokens the next request will have, and how many the model can read, if that is known."""
        messages = self._interpreter.messages
        used = self._context.used(messages, self._interpreter.system_message) if messages else 0
        return used, self._known_window()

    @property
    def vision(self) -> bool:
        """Whether the model gets images to look at: as the setting says, else by its name."""
        return can_see(self)

    def switch(self, model: str, api_base: str | None = None, own_server: bool = False) -> None:
        """Ask another model from now on; an error, and no change, if that cannot be.

        What was said of the old one's window and abilities does not hold for the new one. The address and the
        key stay as long as the provider does, unless another address is given or its own is wanted: a key goes
        to nobody else.
        """
        same = identify(model, self.api_base)[0] == identify(self.model, self.api_base)[0]
        stays = same and not own_server and api_base in (None, self.api_base)
        where = {name: getattr(self, name) if stays else None for name in WHERE}
        where["api_base"] = api_base or where["api_base"]
        self._resolve(model, **where)
        for name, value in {"model": model, **where, **dict.fromkeys(_OF_THE_MODEL)}.items():
            setattr(self, name, value)

    def load(self) -> None:
        """Load what asking needs, so that the first question does not wait for it; nothing is sent."""
        with contextlib.suppress(ModelError):
            self._wire.client(self._endpoint())
        self._is_loaded = True

    def cancel(self) -> None:
        """End what the model is being asked, from any thread; a read that waits ends at once."""
        for cancelled in list(self._running):
            cancelled.set()
        self._wire.cut()

    def run(self, messages: Sequence[Message]) -> Iterator[Chunk]:
        """Ask the model; its reply as chunks without a role. The first message is the only system message."""
        cancelled = threading.Event()
        self._running[cancelled] = None
        if self._interpreter.cancelled:  # `cancel` came before this request was registered
            cancelled.set()
        last = messages[-1]
        if last.get("role") == "user" and last.get("content") != self._interpreter.loop_message:
            self._purse.begin_turn()
            self._fallen_back = False
        try:
            yield from self._run_or_fall_back(messages, cancelled)
        finally:
            self._running.pop(cancelled, None)

    def _run_or_fall_back(self, messages: Sequence[Message], cancelled: threading.Event) -> Iterator[Chunk]:
        """Ask; if the model cannot be reached and has said nothing, the fallback for the rest of the turn."""
        silent = True
        fallback = self.fallback_model
        if not self._fallen_back or fallback is None:
            try:
                for chunk in self._run_within_window(messages, cancelled):
                    silent = silent and chunk["type"] == "status"
                    yield chunk
                return
            except STEPS_IN_AFTER as error:
                fallback = self.fallback_model
                if not silent or fallback is None or fallback == self.model or cancelled.is_set():
                    raise
                news = {"reason": error.reason, "from": self.model, "to": fallback}
            yield {"type": "status", "format": "fallback", "content": news}
        self._fallen_back = True
        yield from stand_in(self, fallback)._run_within_window(messages, cancelled)

    def _run_within_window(self, messages: Sequence[Message], cancelled: threading.Event) -> Iterator[Chunk]:
        """Ask with what fits into the window; a server that finds it too long is asked again with less."""
        yield from self._load_builtin(cancelled)
        if cancelled.is_set():
            return
        fitting = self._context.fitting(messages, partial(self._request, messages), self._around())
        while True:
            if fitting.status is not None:
                yield fitting.status
            if redacted := self.memory.redactor.news():
                yield {"type": "status", "format": "redacted", "content": {"what": redacted}}
            silent = True
            try:
                with contextlib.closing(self._run(fitting.params, cancelled)) as chunks:
                    for chunk in chunks:
                        silent = silent and chunk["type"] == "status"
                        if chunk.get("format") == "usage":
                            self._context.learn(fitting.params, chunk["content"])
                            self._context.read = (len(messages) - 1, chunk["content"]["input_tokens"])
                        yield chunk
                return
            except ModelError as error:
                if not silent or cancelled.is_set():
                    raise
                refused = self._refuses_tools(error, fitting.params)
                is_too_long = isinstance(error, ContextTooLongError | RequestRefusedError)
                if not refused and not (is_too_long and fitting.tighter(error)):
                    raise
            if refused:
                yield self._step_down("can't use tools on this server")
                fitting = self._context.fitting(messages, partial(self._request, messages), self._around())

    def _request(self, messages: Sequence[Message], cut: Cut | None = None) -> dict[str, Any]:
        return make_request(self, messages, cut)

    def _load_builtin(self, cancelled: threading.Event) -> Iterator[Chunk]:
        """Have a model of ours loaded, and say so, since that takes a while."""
        if self._completions is not None or not self.model.startswith(f"{BUILTIN}/"):
            return
        try:
            watch = partial(self._wire.watch, cancelled=cancelled)
            for news in self._local.start(self._endpoint(), self.context_window, watch):
                yield {"type": "status", "format": "loading", "content": news}
        except EngineError:
            if not cancelled.is_set():
                raise

    def _run(self, params: dict[str, Any], cancelled: threading.Event) -> Generator[Chunk]:
        """Ask, and ask again after a failure that may pass, as long as nothing has been said."""
        attempt = 0
        while True:
            silent = True
            try:
                with contextlib.closing(self._reply(params, cancelled)) as reply:
                    for chunk in reply:
                        silent = False
                        yield chunk
                return
            except ModelError as error:
                attempt += 1
                again = silent and error.retryable and attempt <= self.max_retries
                again = again and not self._refuses_tools(error, params)
                seconds = wait_before_retry(error, attempt, self._longest_wait()) if again else None
                if seconds is None:
                    raise
                status = {"reason": error.reason, "seconds": seconds, "attempt": attempt}
            yield {"type": "status", "format": "retry", "content": status}
            if cancelled.wait(seconds):
                return

    def _longest_wait(self) -> float:
        most = self.max_retry_wait
        return most if self.fallback_model is None else min(most, LONGEST_WAIT)

    def _reply(self, params: dict[str, Any], cancelled: threading.Event) -> Generator[Chunk]:
        """One reply; when it breaks off, what had come is yielded before the error is raised."""
        self._purse.check(params, self.max_budget, self.max_budget_tokens)
        is_unproven = self._is_tried(params) and not self._assessment.has_called(self.model, self.api_base)
        fences = self._writes_blocks and ("tools" not in params or is_unproven)
        tools = [tool.name for tool in self._interpreter.tools.others] if self._writes_blocks else []
        parser = ReplyParser(fences=fences, thinks_first=thinks_first(self.model), tools=tools)
        repetition = Repetition()
        came = ended = False
        if self._completions is not None:
            pieces = iterate_user_code(call_user_code(partial(self._completions, **params)))
        else:
            pieces = self._ask_server(**params, cancelled=cancelled)
        try:
            for piece in pieces:
                came = True
                chunks = parser.feed(piece)
                yield from chunks
                if cancelled.is_set():
                    break
                for chunk in chunks:
                    if "content" in chunk and repetition.feed(chunk["content"]):
                        if self._is_tried(params):
                            yield self._step_down("repeated itself")
                        raise RepeatingReplyError(_REPEATS_ITSELF)
            ended = not cancelled.is_set()
        except ModelError:
            yield from parser.finish(close=False)
            raise
        finally:
            if isinstance(pieces, Generator):
                pieces.close()
            if came and not ended:  # broken off, and paid for all the same
                self._purse.record(_usage(parser, params), params)
        if cancelled.is_set():
            yield from parser.finish(close=False)
            return
        if not came:
            raise BrokenStreamError("The model's reply is empty. Try again.")
        yield from self._end(parser, params)

    def _end(self, parser: ReplyParser, params: dict[str, Any]) -> Iterator[Chunk]:
        was_cut = parser.finish_reason == "length"
        yield from parser.finish(close=not was_cut)
        told = self._purse.record(_usage(parser, params), params)
        yield {"type": "status", "format": "usage", "content": told}
        if self._is_tried(params) and not was_cut:
            if weakness := parser.weakness:
                yield self._step_down(weakness)
            elif parser.has_called:
                self._assessment.called(self.model, self.api_base)
        if parser.finish_reason == "content_filter":
            words = "The provider's filter ended the reply. Put it in other words, or use another model."
            raise ReplyDeclinedError(words)
        if was_cut and parser.in_block:
            raise ReplyCutError(
                "The reply reached its limit of tokens in the middle of a block, so the block is not run. "
                "Raise --max_tokens (in Python: interpreter.llm.max_tokens), or ask for smaller steps."
            )

    def _ask_server(
        self, model: str, cancelled: threading.Event | None = None, **params: Any
    ) -> Iterator[dict[str, Any]]:
        """The usual way to the model: over HTTP."""
        endpoint = self._resolve(model, **{name: params.get(name) for name in WHERE})
        # Somebody's own way that calls this one does not know of the signal; it is that of the newest run.
        cancelled = cancelled or next(reversed(self._running), None) or threading.Event()
        timeouts = (self.timeout, self.connect_timeout)
        if endpoint.wire == LITELLM:
            from interpreter.llm import litellm_bridge

            yield from litellm_bridge.ask(endpoint, params, cancelled, self.timeout, self._wire.watch)
            return
        try:
            watch = partial(self._wire.watch, cancelled=cancelled)
            endpoint, more = self._local.ready(endpoint, self.context_window, watch)
        except EngineError:
            if cancelled.is_set():
                return
            raise
        params |= more
        wire_format = self._formats[endpoint.wire]
        while True:
            try:
                yield from self._wire.ask(wire_format, endpoint, params, cancelled, timeouts)
                return
            except RequestRefusedError as error:
                if not wire_format.adapt(endpoint, error, params):
                    raise

    def _endpoint(self) -> Endpoint:
        return self._resolve(self.model, **{name: getattr(self, name) for name in WHERE})

    @property
    def place(self) -> Endpoint | None:
        """Where the model is asked, if that is known and nobody's own way."""
        try:
            return self._endpoint() if self._completions is None else None
        except ModelError:
            return None

    def _resolve(self, model: str, **where: str | None) -> Endpoint:
        self._wire.direct = self._interpreter.offline
        if self._interpreter.offline:
            check_offline(model, os.environ, where["api_base"])
        return resolve(model, os.environ, **where)

    def _known_window(self) -> int | None:
        """The model's window, if it is known without asking anybody."""
        if self.context_window is not None:
            return self.context_window
        try:
            endpoint = self._endpoint()
        except ModelError:
            return None
        told = self._local.told(endpoint) or self._near.told(endpoint)
        return told or window_of(f"{endpoint.provider}/{endpoint.model}")

    def _around(self) -> Around:
        window = Window(self._near, self._local, self._endpoint, self.context_window)
        if self._completions is not None:
            window = Window(self._near, self._local, None, self.context_window)
        return Around(window.known, window.count, self._interpreter.computer, self.vision)


def _usage(parser: ReplyParser, params: dict[str, Any]) -> dict[str, Any]:
    """What the reply has cost in tokens: as the server counts, else estimated."""
    counted = parser.usage or {}
    if counted.get("prompt_tokens") is None:
        read = estimate_messages(params["messages"]) + estimate_text(str(params.get("tools", "")))
        written = estimate_size(parser.written)
        return {"input_tokens": read, "output_tokens": written, "estimated": True}
    usage = {"input_tokens": counted["prompt_tokens"], "output_tokens": counted.get("completion_tokens") or 0}
    details = counted.get("prompt_tokens_details") or {}
    kept = {name: details[name] for name in ("cached_tokens", "cache_creation_tokens") if details.get(name)}
    return usage | kept | {"estimated": False}


class AskedAside(Llm, closed=True):
    """Answers in plain text: no tool, no templates, nothing of the conversation. From any number of threads."""

    _writes_blocks = False

    def __init__(self, llm: Llm, max_tokens: int | None = None) -> None:
        vars(self).update(vars(llm))
        self._begin()
        if max_tokens is not None and (self.max_tokens is None or self.max_tokens > max_tokens):
            vars(self)["max_tokens"] = max_tokens

    def answer(self, system: str, text: str, image: str | None = None) -> str:
        """What the model says; `image` is base64. A typed model error if it cannot be asked or is cancelled."""
        messages: list[Message] = [
            {"role": "system", "type": "message", "content": system},
            {"role": "user", "type": "message", "content": self._redacted(text)},
        ]
        if image is not None:
            messages.append({"role": "user", "type": "image", "format": f"base64.{_kind(image)}", "content": image})
        cancelled = threading.Event()
        self._running[cancelled] = None
        try:
            chunks = self._run_or_fall_back(messages, cancelled)
            said = "".join(str(chunk["content"]) for chunk in chunks if chunk["type"] == "message")
        finally:
            self._running.pop(cancelled, None)
        if cancelled.is_set():
            raise ModelError("The question to the model was cancelled.")
        return said.strip()

    def _request(self, messages: Sequence[Message], cut: Cut | None = None) -> dict[str, Any]:
        forms = Forms(shrink_images=self.interpreter.shrink_images, vision=self.vision)
        params: dict[str, Any] = {"model": self.model, "stream": True}
        params["messages"] = convert(messages, ToolChat(), forms, self.memory, cut)
        for name in ("max_tokens", "temperature", *WHERE):
            if getattr(self, name) is not None:
                params[name] = getattr(self, name)
        return params

    def _redacted(self, text: str) -> str:
        if not self.interpreter.redact_secrets:
            return text
        return self.memory.redactor.redact(text, known_secrets(self))

    @property
    def has_budget(self) -> bool:
        return self.max_budget is not None or self.max_budget_tokens is not None

    @property
    def is_near(self) -> bool:
        """Whether the model runs on this machine, or in somebody's own way."""
        try:
            return self._completions is not None or self._endpoint().is_loopback
        except ModelError:
            return True  # asking it says what is wrong

    def window(self, tokens: int) -> int | None:
        """How many tokens the model can read at once, as far as it matters for so many; None if nobody knows."""
        return self._around().window(tokens)

    def price(self) -> Price | None:
        """What it takes, if that is known."""
        return price_of(self.model, self.api_base)


def _kind(image: str) -> str:
    """Of base64, by how it begins."""
    for begin, kind in (("/9j/", "jpeg"), ("R0lGOD", "gif"), ("UklGR", "webp")):
        if image.startswith(begin):
            return kind
    return "png"
