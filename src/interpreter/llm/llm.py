"""Llm: the model as the agent sees it. Messages go in, chunks come out."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from interpreter.config.settings import InterpreterSettings, LlmSettings
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
    Context,
    Cut,
    Fitting,
    Runtimes,
    compact,
    cost,
    estimate_request,
    estimate_size,
    estimate_text,
)
from interpreter.llm.failures import MALFORMED, malformed, wait_before_retry
from interpreter.llm.http import Connections, Exchange
from interpreter.llm.limits import Budget, Reservation
from interpreter.llm.model_profile import AS_IS, PROFILES, Assessment, Forms, ModelProfile, is_unknown
from interpreter.llm.model_servers import model_servers
from interpreter.llm.native_tools import NativeTools
from interpreter.llm.providers import (
    LITELLM,
    Endpoint,
    calls_tools,
    check_offline,
    identify,
    resolve,
    sees_images,
)
from interpreter.llm.reply_parser import Repetition, ReplyParser, thinks_first
from interpreter.llm.request import ADDRESS, Memory, build_request, convert, request_params
from interpreter.llm.responses import Responses
from interpreter.llm.secrets import secret_values
from interpreter.llm.tool_mode import ToolChat
from interpreter.llm.usage import TOKENS_PER_DOLLAR, Usage, UsageTracker, limit_reply, look_up
from interpreter.messages import Chunk, Message, only_original
from interpreter.sigint import call_user_code, iterate_user_code
from interpreter.tools import Toolbox

_MAX_WAIT_BEFORE_FALLBACK = 5.0
_FORMATS: Mapping[str, type[Exchange]] = {
    "chat": ChatCompletions,
    "anthropic": AnthropicMessages,
    "responses": Responses,
}
_ABOUT_THE_MODEL = ("supports_functions", "supports_vision", "context_window")
_MIN_WINDOW = 1500  # tokens: a shorter request fits any model

Completions = Callable[..., Iterator[dict[str, Any]]]


class Agent(Protocol):
    messages: list[Message]
    native_tools: NativeTools | None

    @property
    def cancelled(self) -> bool: ...

    @property
    def budget(self) -> Budget: ...

    @property
    def tools(self) -> Toolbox: ...

    @property
    def runtimes(self) -> Runtimes: ...


class Llm(LlmSettings):
    """A model and its settings; every setting `llm.*` is an attribute."""

    memory: Memory
    _writes_blocks = True  # code in fences is code to run

    def __init__(self, settings: InterpreterSettings, agent: Agent | None = None) -> None:
        self._settings = settings
        self._agent = agent if agent is not None else cast("Agent", settings)  # an OpenInterpreter is both
        self._completions: Completions | None = None
        self._custom: Any = None
        self._connections = Connections()
        self._servers = model_servers(self._wait_for_server)
        self._assessment = Assessment()
        self._usage = UsageTracker()
        self._fallen_back = False
        self._running: dict[threading.Event, None] = {}  # in the order of their start
        self._begin_conversation()

    def _begin_conversation(self) -> None:
        self.memory = Memory()
        self._context = Context()

    @property
    def interpreter(self) -> Any:
        """Return the OpenInterpreter that this model works for."""
        return self._agent

    # -- facts about the model -----------------------------------------------------------------------------------

    @property
    def profile(self) -> ModelProfile:
        """Return the model's profile: the one in `model_profile`, or one chosen by name, size and earlier replies."""
        if self.model_profile is not None:
            return next(profile for profile in PROFILES if profile.name == self.model_profile)
        return self._assessment.profile(self.model, self.api_base)

    @property
    def vision(self) -> bool:
        """Return whether the model gets images: as the setting says, or by its name."""
        return self.supports_vision if self.supports_vision is not None else sees_images(self.model, self.api_base)

    @property
    def _tries_tools(self) -> bool:
        is_undecided = self.supports_functions is None and self.model_profile is None
        return is_undecided and self._assessment.tries_tools(self.model, self.api_base)

    def assess(self) -> None:
        """Ask a server on this machine, once, how large a model is whose name doesn't say."""
        is_known = self.model_profile is not None or self._completions is not None
        served_model, sizes = (self.model, self.api_base), self._assessment.sizes
        if not is_known and served_model not in sizes and is_unknown(*served_model):
            endpoint = self.endpoint
            sizes[served_model] = self._servers.size(endpoint) if endpoint is not None else None

    def _is_trial(self, params: Mapping[str, Any]) -> bool:
        return "tools" in params and self._tries_tools

    def _step_down(self, reason: str) -> Chunk:
        """Switch a model that failed to call tools to shorter instructions, and forget the earlier templates."""
        self.memory.templates.clear()
        notice = self._assessment.failed(self.model, self.api_base, reason)
        return {"type": "status", "format": "notice", "content": {"text": notice}}

    @property
    def endpoint(self) -> Endpoint | None:
        """Return the endpoint of the model; None if it is unknown, or with custom `completions`."""
        try:
            return self._endpoint() if self._completions is None else None
        except ModelError:
            return None  # asking the model says what is wrong

    def _endpoint(self) -> Endpoint:
        return self._resolve(self.model, **{name: getattr(self, name) for name in ADDRESS})

    def _resolve(self, model: str, **address: str | None) -> Endpoint:
        self._connections.direct = self._settings.offline
        if self._settings.offline:
            check_offline(model, os.environ, address["api_base"])
        return resolve(model, os.environ, **address)

    def switch(self, model: str, api_base: str | None = None, own_server: bool = False) -> None:
        """Use another model from now on. Raises an error, and changes nothing, if that is not possible.

        Settings about the old model's window and abilities are dropped. Address and key stay if the provider stays,
        unless another address is given or `own_server` asks for its usual one: a key is not sent to anyone else.
        """
        same = identify(model, self.api_base)[0] == identify(self.model, self.api_base)[0]
        stays = same and not own_server and api_base in (None, self.api_base)
        address = {name: getattr(self, name) if stays else None for name in ADDRESS}
        address["api_base"] = api_base or address["api_base"]
        self._resolve(model, **address)
        for name, value in {"model": model, **address, **dict.fromkeys(_ABOUT_THE_MODEL)}.items():
            setattr(self, name, value)

    def settings_for(self, model: str) -> dict[str, Any]:
        """Return what to set for another model: it gets the address and the key only if its provider is the same."""
        same = identify(model)[0] == identify(self.model, self.api_base)[0]
        dropped = () if model == self.model else (*_ABOUT_THE_MODEL, *(() if same else ADDRESS))
        return {**dict.fromkeys(dropped), "model": model}

    def count(self, used: Usage) -> None:
        """Count what others have used for this conversation."""
        self._usage.session += used

    # -- the conversation ----------------------------------------------------------------------------------------

    @property
    def usage(self) -> Usage:
        return self._usage.session

    @property
    def turn_usage(self) -> Usage:
        return self._usage.turn

    @property
    def cost(self) -> float | None:
        """Return what this session has cost, in US dollars; None if no price is known."""
        usage = self._usage.session
        return None if usage.unpriced_tokens and usage.unpriced_tokens == usage.tokens else usage.cost

    @property
    def context_used(self) -> tuple[int, int | None]:
        """Return about how many tokens the next request has, and the model's context window, if known."""
        messages = self._agent.messages
        used = self._context.used(messages, self._settings.system_message) if messages else 0
        if self.context_window is not None:
            return used, self.context_window
        try:
            endpoint = self._endpoint()
        except ModelError:
            return used, None
        return used, self._servers.known_window(endpoint) or look_up(f"{endpoint.provider}/{endpoint.model}").window

    def compact(self) -> tuple[int, int] | None:
        """Leave older messages out of future requests, with a note in their place.

        Returns the tokens of the next request before and after, or None if nothing can be left out.
        """
        system: Message = {"role": "system", "type": "message", "content": ""}
        messages = [system, *self._agent.messages]
        old, before = self._context.cut, self.context_used[0]
        known = old.dropped if old is not None and old.holds(messages) else frozenset[int]()
        cut = compact(messages, 0, self._agent.runtimes, vision=self.vision)
        if cut is None or not cut.dropped - known:
            return None
        freed = sum(cost(messages[at]) for at in cut.dropped - known) - estimate_text(cut.note)
        after = max(0, before - max(0, freed))
        self._context.cut, self._context.read = cut, (len(self._agent.messages), after)
        return before, after

    def forms_sent(self) -> dict[str, Any]:
        """Return the forms in which messages were sent, for the journal; templates by position in the request."""
        templates = {str(at): template for (at, _), template in self.memory.templates.items()}
        if all(template == AS_IS for template in templates.values()):
            templates = {}
        return {
            "templates": templates,
            "replies": dict(self.memory.replies),
            "stepped_down": self._assessment.as_data(),
        }

    def resume(self, forms: Mapping[str, Any], used: Usage) -> None:
        """Continue a conversation from the journal: in the forms in which it went out, and with its usage."""
        messages = self._agent.messages  # the system message comes before them
        for at, template in forms.get("templates", {}).items():
            if 0 < int(at) <= len(messages):
                self.memory.templates[int(at), str(messages[int(at) - 1]["content"])] = template
        self.memory.replies.update(forms.get("replies", {}))
        self._assessment.load(forms.get("stepped_down", {}))
        self.count(used)

    def known_secrets(self) -> dict[str, str]:
        """Return secrets that must not leave this computer when code prints them, by description."""
        return secret_values(self._agent.runtimes.context.visible_environment(), [("API key", self.api_key)])

    def window(self, tokens: int) -> int | None:
        """Return how many tokens the model can read, for a request of about `tokens`; None if unknown."""
        endpoint = self.endpoint if tokens >= _MIN_WINDOW else None
        if endpoint is None:
            return self.context_window
        reported = self._servers.window(endpoint, self.context_window)
        return reported if reported is not None else look_up(f"{endpoint.provider}/{endpoint.model}").window

    def _wait_for_server(self, ask: Callable[[], Any]) -> Any:
        """Return the result of a small request; a BrokenStreamError as soon as it is cancelled."""
        cancelled = next(reversed(self._running), None) or threading.Event()
        if self._agent.cancelled:
            cancelled.set()
        return self._connections.send(ask, cancelled)

    def _request(self, messages: Sequence[Message], cut: Cut | None = None) -> dict[str, Any]:
        native, endpoint = self._agent.native_tools, self.endpoint
        profile, has_tools = self.profile, self.supports_functions
        if has_tools is None:
            has_tools = self._tries_tools or (profile.calls_tools and calls_tools(self.model, self.api_base))
        return build_request(
            messages,
            self,
            self._settings,
            self._agent.tools,
            self._agent.runtimes,
            profile,
            self.memory,
            has_tools=has_tools,
            vision=self.vision,
            native_tool=native.tool(endpoint.wire, endpoint.model) if native and endpoint else None,
            secrets=self.known_secrets() if self._settings.redact_secrets else None,
            cut=cut,
        )

    # -- asking --------------------------------------------------------------------------------------------------

    @property
    def completions(self) -> Completions:
        """Return the function that asks the model. With `model`, `messages`, `stream` and other parameters, it yields
        chunk dicts in OpenAI's shape. Assign your own; it may call the previous one.
        """
        return self._completions or self._ask_server

    @completions.setter
    def completions(self, function: Completions | None) -> None:
        self._completions = function

    def load(self) -> None:
        """Load what a request needs, so that the first one is faster; send nothing."""
        with contextlib.suppress(ModelError):
            self._connections.client(self._endpoint())

    def cancel(self) -> None:
        """End all requests, from any thread; waiting reads end at once."""
        for cancelled in list(self._running):
            cancelled.set()
        self._connections.cut()
        Budget.wake()

    @property
    def budget(self) -> Budget:
        """Return the budget that pays for its requests."""
        return self._agent.budget

    def run(self, messages: Sequence[Message]) -> Generator[Chunk]:
        """Ask the model and yield its reply as chunks without a role. The first message is the only system message."""
        chunks = self._asked(messages)
        return chunks if self._settings.stream_all else only_original(chunks)

    def reply(self, messages: Sequence[Message]) -> Iterator[Chunk]:
        """Yield the reply like `run`, with every type of chunk; from `run` itself, if a subclass overrides it."""
        if type(self).run is not Llm.run:
            return _with_ends(iterate_user_code(call_user_code(self.run, messages)))
        return self._asked(messages)

    def _asked(self, messages: Sequence[Message]) -> Generator[Chunk]:
        cancelled = threading.Event()
        self._running[cancelled] = None
        if self._agent.cancelled:  # `cancel` was called before this request was registered
            cancelled.set()
        last = messages[-1]
        if last.get("role") == "user" and last.get("content") != self._settings.loop_message:
            self._usage.turn = Usage()
            self._fallen_back = False
        try:
            yield from self._run_or_fall_back(messages, cancelled)
        finally:
            self._running.pop(cancelled, None)

    def _run_or_fall_back(self, messages: Sequence[Message], cancelled: threading.Event) -> Iterator[Chunk]:
        """Ask the model. If it fails before its first word, use the fallback model for the rest of the turn."""
        if self._custom is not None:
            yield from _with_ends(iterate_user_code(call_user_code(self._custom.run, list(messages))))
            return
        silent = True
        fallback = self.fallback_model
        if not self._fallen_back or fallback is None:
            try:
                for chunk in self._run_within_window(messages, cancelled):
                    silent = silent and chunk["type"] == "status"
                    yield chunk
                return
            # Errors after which the fallback model is used. The user has to see a wrong key or a refused request.
            except (
                BrokenStreamError,
                ModelOverloadedError,
                ModelTimeoutError,
                ModelUnreachableError,
                RateLimitedError,
            ) as error:
                if not silent or fallback is None or fallback == self.model or cancelled.is_set():
                    raise
                news = {"reason": error.reason, "from": self.model, "to": fallback}
            yield {"type": "status", "format": "fallback", "content": news}
        self._fallen_back = True
        # It shares connections, memory and usage, but address and key only with a model of the same provider.
        other = copy.copy(self)
        same = identify(fallback)[0] == identify(self.model, self.api_base)[0]
        dropped = (*_ABOUT_THE_MODEL, "fallback_model", *(() if same else ADDRESS))
        vars(other).update({**dict.fromkeys(dropped), "model": fallback})
        yield from other._run_within_window(messages, cancelled)

    def _run_within_window(self, messages: Sequence[Message], cancelled: threading.Event) -> Iterator[Chunk]:
        """Ask with what fits into the window.

        If it fails before its first word, ask again: with less if the server finds it too long, without tools if it
        refuses them, or later if the failure is temporary.
        """
        if self._completions is None and (endpoint := self.endpoint) is not None:
            watch = partial(self._connections.watch, cancelled=cancelled)
            try:
                for news in self._servers.start(endpoint, self.context_window, watch):
                    yield {"type": "status", "format": "loading", "content": news}
            except EngineError:
                if not cancelled.is_set():
                    raise
        if cancelled.is_set():
            return
        fit = partial(
            Fitting,
            self._context,
            messages,
            partial(self._request, messages),
            self.window,
            self._agent.runtimes,
            self.vision,
        )
        fitting, attempt = fit(), 0
        longest = self.max_retry_wait
        if self.fallback_model is not None:
            longest = min(longest, _MAX_WAIT_BEFORE_FALLBACK)
        while True:
            if attempt == 0 and fitting.status is not None:
                yield fitting.status
            if redacted := self.memory.redactor.news():
                yield {"type": "status", "format": "redacted", "content": {"what": redacted}}
            silent = True
            try:
                with contextlib.closing(self._reply(fitting.params, cancelled)) as chunks:
                    for chunk in chunks:
                        silent = silent and chunk.get("format") == "reading"
                        if chunk.get("format") == "usage":
                            self._context.learn(fitting.params, chunk["content"])
                            self._context.read = (len(messages) - 1, chunk["content"]["input_tokens"])
                        yield chunk
                return
            except ModelError as error:
                if not silent or cancelled.is_set():
                    raise
                wait, attempt = 0.0, attempt + 1
                named = error.params if isinstance(error, RequestRefusedError) else ()
                if self._is_trial(fitting.params) and ("tools" in named or "tool" in error.detail.lower()):
                    notice = self._step_down("can't use tools on this server")
                    fitting, attempt = fit(), 0
                elif isinstance(error, ContextTooLongError | RequestRefusedError) and fitting.tighten(error):
                    attempt = 0
                    continue
                else:
                    again = error.retryable and attempt <= self.max_retries
                    seconds = wait_before_retry(error, attempt, longest) if again else None
                    if seconds is None:
                        raise
                    wait = seconds
                    notice = {
                        "type": "status",
                        "format": "retry",
                        "content": {"reason": error.reason, "seconds": wait, "attempt": attempt},
                    }
            yield notice
            if cancelled.wait(wait):
                return

    def _reply(self, params: dict[str, Any], cancelled: threading.Event) -> Generator[Chunk]:
        """Ask for one reply. If it breaks off, yield what has arrived, then raise the error."""
        self._usage.check(params, self.max_budget, self.max_budget_tokens)
        left = self.budget.left
        most = limit_reply(params, left) if left is not None else 0.0
        with self.budget.reserve(most, cancelled.is_set) as reservation:
            yield from self._reply_within(params, cancelled, reservation)

    def _reply_within(
        self, params: dict[str, Any], cancelled: threading.Event, reservation: Reservation
    ) -> Generator[Chunk]:
        is_unproven = self._is_trial(params) and (self.model, self.api_base) not in self._assessment.called
        fences = self._writes_blocks and ("tools" not in params or is_unproven)
        tools = [tool.name for tool in self._agent.tools.others] if self._writes_blocks else []
        parser = ReplyParser(fences=fences, thinks_first=thinks_first(self.model), tools=tools)
        repetition = Repetition()
        came = ended = False
        if self._completions is not None:
            pieces = iterate_user_code(call_user_code(partial(self._completions, **params)))
        else:
            pieces = self._ask_server(**params, cancelled=cancelled)
        try:
            for piece in pieces:
                if isinstance(read := piece.get("prompt_progress"), dict):
                    yield {
                        "type": "status",
                        "format": "reading",
                        "content": {"done": read.get("processed"), "total": read.get("total")},
                    }
                    continue
                came = True
                try:
                    chunks = parser.feed(piece)
                except MALFORMED as error:
                    raise malformed(self.model, error) from error
                yield from chunks
                if cancelled.is_set():
                    break
                for chunk in chunks:
                    if "content" in chunk and repetition.feed(chunk["content"]):
                        if self._is_trial(params):
                            yield self._step_down("repeated itself")
                        raise RepeatingReplyError(
                            "The model kept repeating itself, so its reply was cut off. Rephrase the request, split "
                            "it into smaller steps, or use a larger model."
                        )
            ended = not cancelled.is_set()
        except ModelError:
            yield from parser.finish(close=False)
            raise
        finally:
            if isinstance(pieces, Generator):
                pieces.close()
            if came and not ended:  # the reply broke off, but still costs money
                reservation.cost = _price_of(self._usage.record(_counted(parser, params), params))
        if cancelled.is_set():
            yield from parser.finish(close=False)
            return
        if not came:
            raise BrokenStreamError("The model's reply is empty. Try again.")
        yield from self._end_reply(parser, params, reservation)

    def _end_reply(self, parser: ReplyParser, params: dict[str, Any], reservation: Reservation) -> Iterator[Chunk]:
        was_cut = parser.finish_reason == "length"
        chunks = parser.finish(close=not was_cut)
        # Before the chunks are passed on: if the user declines a block, this generator is closed there.
        used = self._usage.record(_counted(parser, params), params)
        reservation.cost = _price_of(used)
        yield from chunks
        yield {"type": "status", "format": "usage", "content": used}
        if self._is_trial(params) and not was_cut:
            if weakness := parser.weakness:
                yield self._step_down(weakness)
            elif parser.calls:
                self._assessment.called.add((self.model, self.api_base))
        if parser.finish_reason == "content_filter":
            raise ReplyDeclinedError(
                "The provider's content filter ended the reply. Rephrase it, or use another model."
            )
        if was_cut and parser.in_block:
            raise ReplyCutError(
                "The reply reached its token limit in the middle of a block, so the block was not run. Raise "
                "--max_tokens (in Python: interpreter.llm.max_tokens), or ask for smaller steps."
            )

    def _ask_server(
        self, model: str, cancelled: threading.Event | None = None, **params: Any
    ) -> Iterator[dict[str, Any]]:
        endpoint = self._resolve(model, **{name: params.get(name) for name in ADDRESS})
        # Custom `completions` that call this one don't pass the signal, so the newest run's is used.
        cancelled = cancelled or next(reversed(self._running), None) or threading.Event()
        if endpoint.wire == LITELLM:
            from interpreter.llm import litellm_bridge

            yield from litellm_bridge.ask(endpoint, params, cancelled, self.timeout, self._connections.watch)
            return
        try:
            watch = partial(self._connections.watch, cancelled=cancelled)
            endpoint, more = self._servers.ready(endpoint, self.context_window, watch)
        except EngineError:
            if cancelled.is_set():
                return
            raise
        timeouts = (self.timeout, self.connect_timeout, self.reply_timeout)
        wire = _FORMATS.get(endpoint.wire) or self._servers.formats[endpoint.wire]
        yield from self._connections.ask(wire, endpoint, params | more, self.memory.replies, cancelled, timeouts)


def _price_of(used: Mapping[str, Any]) -> float:
    """Return what a request counts in a budget: its cost, or its tokens if the price is unknown."""
    tokens = used["input_tokens"] + used["output_tokens"]
    return float(used["cost"] if "cost" in used else tokens / TOKENS_PER_DOLLAR)


def _counted(parser: ReplyParser, params: dict[str, Any]) -> dict[str, Any]:
    """Return the tokens of a reply and its request: as the server counts, or estimated."""
    counted = _counts(parser.usage)
    if "prompt_tokens" not in counted:
        written = estimate_size(parser.written)
        return {"input_tokens": estimate_request(params), "output_tokens": written, "estimated": True}
    usage = {"input_tokens": counted["prompt_tokens"], "output_tokens": counted.get("completion_tokens", 0)}
    details = _counts((parser.usage or {}).get("prompt_tokens_details"))
    cache = {name: details[name] for name in ("cached_tokens", "cache_creation_tokens") if details.get(name)}
    return usage | cache | {"estimated": False}


def _counts(usage: object) -> dict[str, int]:
    counts = usage if isinstance(usage, Mapping) else {}
    return {name: count for name, count in counts.items() if isinstance(count, int) and count >= 0}


def _with_ends(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Mark where blocks of code end in the chunks of a custom model, which may not say it."""
    code: str | None = None
    for chunk in chunks:
        language = chunk.get("format", "python") if chunk["type"] == "code" else None
        if code is not None and (language != code or chunk.get("end")):
            yield {"type": "code", "format": code, "end": True}
            code = None
        if not (chunk.get("start") or chunk.get("end")):
            code = language
            yield chunk if language is None else {**chunk, "format": language}
    if code is not None:
        yield {"type": "code", "format": code, "end": True}


class CustomLlm(Llm):
    """Calls the user's own object, which has `run(messages)`, instead of a model server."""

    def __init__(self, settings: InterpreterSettings, custom: Any) -> None:
        super().__init__(settings)
        self._completions = custom.run  # there is no server to know anything about
        self._custom = custom

    if not TYPE_CHECKING:  # it has the attributes of the object

        def __getattr__(self, name: str) -> Any:
            custom = vars(self).get("_custom")
            return (
                getattr(custom, name)
                if not name.startswith("_") and hasattr(custom, name)
                else super().__getattr__(name)
            )

        def __setattr__(self, name: str, value: Any) -> None:
            if not name.startswith("_") and name not in self._declared:
                setattr(self._custom, name, value)
            super().__setattr__(name, value)


class SideChat(Llm):
    """Asks the same model outside the conversation, from any number of threads.

    It answers in plain text, without tools and templates. It shares only connections and usage with the first, and
    its budget, unless it gets a separate one.
    """

    _writes_blocks = False

    def __init__(self, llm: Llm, max_tokens: int | None = None, budget: Budget | None = None) -> None:
        vars(self).update(vars(llm))
        self._begin_conversation()
        self._own_budget = budget
        if max_tokens is not None and (self.max_tokens is None or self.max_tokens > max_tokens):
            vars(self)["max_tokens"] = max_tokens

    @property
    def budget(self) -> Budget:
        return self._own_budget or super().budget

    def for_job(self, model: str | None, **settings: Any) -> SideChat:
        """Return a side chat with this model that can be cancelled separately and leaves retries to its caller.

        `settings` are those of `llm.*`; the address and key go to another model only if its provider is the same.
        """
        other = SideChat(self, budget=self._own_budget)
        other._connections, other._running = Connections(), {}
        chosen = {"max_retries": 0, "fallback_model": None}
        vars(other).update({**self.settings_for(model or self.model), **chosen, **settings})
        return other

    def for_item(self, seconds: float) -> SideChat:
        """Return a side chat for one request of a job, with this time limit."""
        other = copy.copy(self)
        other._begin_conversation()
        timeouts = {name: min(getattr(self, name), seconds) for name in ("timeout", "connect_timeout", "reply_timeout")}
        vars(other).update(timeouts)
        return other

    def answer(self, system: str, text: str, *images: str) -> str:
        """Return the model's answer; images are base64. Raises a ModelError if the request fails or is cancelled."""
        if self._settings.redact_secrets:
            text = self.memory.redactor.redact(text, self.known_secrets())
        messages: list[Message] = [
            {"role": "system", "type": "message", "content": system},
            {"role": "user", "type": "message", "content": text},
        ]
        for image in images:
            kinds = {"/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp"}
            kind = next((kind for start, kind in kinds.items() if image.startswith(start)), "png")
            messages.append({"role": "user", "type": "image", "format": f"base64.{kind}", "content": image})
        cancelled = threading.Event()
        self._running[cancelled] = None
        try:
            chunks = self._run_or_fall_back(messages, cancelled)
            reply_text = "".join(str(chunk["content"]) for chunk in chunks if chunk["type"] == "message")
        finally:
            self._running.pop(cancelled, None)
        if cancelled.is_set():
            raise ModelError("The request to the model was cancelled.")
        return reply_text.strip()

    def _request(self, messages: Sequence[Message], cut: Cut | None = None) -> dict[str, Any]:
        forms = Forms(shrink_images=self._settings.shrink_images, vision=self.vision)
        return request_params(self, convert(messages, ToolChat(), forms, self.memory, cut))

    @property
    def is_near(self) -> bool:
        """Return whether the model runs on this machine, or is asked with custom `completions`."""
        endpoint = self.endpoint
        return endpoint is None or endpoint.is_loopback
