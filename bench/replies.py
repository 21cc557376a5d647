"""The cost of receiving and showing a model's reply."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.subject import ROOT, Subject, once, probe
from bench.table import Measurement

sys.path.insert(0, str(ROOT / "tests"))

import anthropic_server
import responses_server
from model_server import ModelServer, Reply, Scripted, text, tool_call

TOKENS = 20_000
PARAGRAPH = (
    "Number {number}: the quick brown fox **jumps** over the `lazy` dog, and then it rests in the shade.\n\n"
    "- one thing\n- another thing with *some* weight\n\n"
)


@dataclass(frozen=True)
class Wire:
    """A wire format: its server, its replies, and a model that uses it."""

    name: str
    server: type[ModelServer]
    reply: Callable[[str, int | None], Scripted]
    model: str


CHAT = Wire("chat", ModelServer, text, "openai/gpt-4-scripted")
ANTHROPIC = Wire(
    "anthropic",
    anthropic_server.AnthropicServer,
    lambda words, split: anthropic_server.message(anthropic_server.say(words, split)),
    "anthropic/claude-scripted",
)
RESPONSES = Wire(
    "responses",
    responses_server.ResponsesServer,
    lambda words, split: responses_server.response(responses_server.say(words, split)),
    "openai/responses/gpt-5-scripted",
)


def with_server(
    replies: list[Scripted], measure: Callable[[ModelServer], dict[str, Any]], wire: Wire = CHAT
) -> tuple[dict[str, Any], ModelServer]:
    """Measure with a server; the first reply is short, to trigger lazy imports."""
    with wire.server([wire.reply("ok", None), *replies]) as server:
        return measure(server), server


@once
def long_reply(wire: Wire) -> Scripted:
    # No repeated words, because a repetitive reply is cut off.
    return wire.reply("".join(f" {number:04x}" for number in range(TOKENS)), 5)


def reply_cpu(python: Path, name: str, wire: Wire = CHAT) -> float:
    def measure(server: ModelServer) -> dict[str, Any]:
        return probe(python, name, api_base=server.base_url, model=wire.model, wire=wire.name)

    repeats = 3 if python == Path(sys.executable) else 1
    runs = [with_server([long_reply(wire)], measure, wire)[0] for _ in range(repeats)]
    assert all(run["characters"] == TOKENS * 5 for run in runs)
    return min(float(run["cpu"]) for run in runs)


def streamed(what: str, wire: Wire) -> Measurement:
    """Measure a long reply in a wire format, compared with httpx and json alone."""
    return Measurement(
        what,
        "s",
        lambda it: reply_cpu(it.python, "reply", wire),
        lambda: reply_cpu(Path(sys.executable), "bare_reply", wire),
        budget_of_bare=2,
    )


@once
def code_cpu(subject: Subject, lines: int) -> float:
    """CPU seconds for a call with this many lines of code, until the approval."""
    code = "".join(f"value_{number} = compute({number}, 'some text')\n" for number in range(lines))
    runs = [
        with_server(
            [tool_call("python", code, split=4)],
            lambda server: probe(subject.python, "tool_call", api_base=server.base_url, timeout=300),
        )[0]
        for _ in range(1 if subject.is_original else 3)
    ]
    assert all(run["characters"] == len(code) for run in runs)
    return min(float(run["cpu"]) for run in runs)


def code_growth(subject: Subject) -> float:
    """Compare the cost per line of 1,600 lines and of 400: 1 is linear."""
    return code_cpu(subject, 1600) / code_cpu(subject, 400) / 4


def shown(subject: Subject, characters: int) -> float:
    count = characters // len(PARAGRAPH) + 1
    paragraphs = "".join(PARAGRAPH.format(number=number) for number in range(count))[:characters]
    runs = [
        with_server(
            [text(paragraphs, split=4)],
            lambda server: probe(subject.python, "shown", api_base=server.base_url),
        )[0]
        for _ in range(1 if subject.is_original else 3)
    ]
    return min(float(run["seconds"]) for run in runs)


@once
def shown_20000(subject: Subject) -> float:
    return shown(subject, 20_000)


def shown_growth(subject: Subject) -> float:
    """Compare the cost per character of 20,000 characters and of 5,000: 1 is linear."""
    return shown_20000(subject) / shown(subject, 5_000) / 4


def history(subject: Subject, window: int | None = None) -> float:
    """Seconds from chat() to the request, with 800 earlier messages; the best of several runs."""
    arrivals: list[float] = []

    def answer(body: dict[str, Any]) -> Reply:
        arrivals.append(time.monotonic())
        return text("ok")

    given = {} if window is None else {"window": window}
    with ModelServer([answer] * 6) as server:
        times = probe(subject.python, "history", api_base=server.base_url, repeats=5, **given)
    assert subject.is_original or times["compacted"] == (5 if window else 0)
    return min(arrived - asked for arrived, asked in zip(arrivals[1:], times["began"], strict=True))


@once
def first_request(subject: Subject) -> tuple[float, float]:
    """For the first chat() of a process: seconds until the request arrives, and CPU until the first word."""
    best = (math.inf, math.inf)
    for _ in range(1 if subject.is_original else 5):
        arrivals: list[float] = []

        def answer(body: dict[str, Any], arrivals: list[float] = arrivals) -> Reply:
            arrivals.append(time.monotonic())
            return text("ok")

        with ModelServer([answer]) as server:
            times = probe(subject.python, "first_request", api_base=server.base_url)
        best = min(best[0], arrivals[0] - times["began"]), min(best[1], times["cpu"])
    return best


@once
def request_modules(subject: Subject) -> dict[str, Any]:
    """For a chat with one Python block: the number of our loaded modules, and of files that a second chat executes."""
    turn = [tool_call("python", "1 + 1"), text("Two.")]
    with ModelServer([*turn, *turn]) as server:
        return probe(subject.python, "modules", api_base=server.base_url)


def prompt_tokens(subject: Subject) -> float:
    """System message and tools of the first request, at four bytes a token."""
    _, server = with_server([], lambda server: probe(subject.python, "warm", api_base=server.base_url))
    body = server.requests[-1].body
    system = [message["content"] for message in body["messages"] if message["role"] == "system"]
    return round(len("".join([*system, json.dumps(body.get("tools", []))]).encode()) / 4)


MEASUREMENTS = [
    streamed("20,000-token reply through chat(stream=True), CPU", CHAT),
    streamed("the same from Anthropic's Messages, CPU", ANTHROPIC),
    streamed("the same from OpenAI's Responses, CPU", RESPONSES),
    Measurement("20,000 characters of Markdown in a terminal", "s", shown_20000, budget=3),
    Measurement("the same against 5,000, per character", "x", shown_growth, budget=1.5),
    Measurement("1,600 lines of code in a tool call, CPU", "s", lambda it: code_cpu(it, 1600), budget=1),
    Measurement("the same against 400 lines, per line", "x", code_growth, budget=1.5),
    Measurement("first chat() of a process to the request", "s", lambda it: first_request(it)[0]),
    Measurement("first chat() of a process to the first word, CPU", "s", lambda it: first_request(it)[1]),
    Measurement("chat() to request with 800 messages", "s", history, budget=0.030),
    Measurement("the same when half of them must be dropped", "s", lambda it: history(it, 30_000)),
    Measurement("system message and tools, tokens (4 bytes each)", "", prompt_tokens, budget=700),
    Measurement("our modules loaded after a request with a block", "", lambda it: request_modules(it)["in_request"]),
    Measurement("our files executed by a warm request", "", lambda it: request_modules(it)["executed"]),
]
