"""What it costs to take and to show what a model says."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.subject import ROOT, Subject, once, probe
from bench.table import Measurement

sys.path.insert(0, str(ROOT / "tests"))

from model_server import ModelServer, Reply, text, tool_call

TOKENS = 20_000
PARAGRAPH = (
    "The quick brown fox **jumps** over the `lazy` dog, and then it rests for a while in the shade.\n\n"
    "- one thing\n- another thing with *some* weight\n\n"
)


def with_server(
    replies: list[Reply], measure: Callable[[ModelServer], dict[str, Any]]
) -> tuple[dict[str, Any], ModelServer]:
    """The first reply is a short one: it warms up what is loaded on first use."""
    with ModelServer([text("ok"), *replies]) as server:
        return measure(server), server


@once
def long_reply() -> Reply:
    return text(" word" * TOKENS, split=5)


def reply_cpu(python: Path, name: str) -> float:
    runs = [
        with_server([long_reply()], lambda server: probe(python, name, api_base=server.base_url))[0]
        for _ in range(3 if python == Path(sys.executable) else 1)
    ]
    assert all(run["characters"] == TOKENS * 5 for run in runs)
    return min(float(run["cpu"]) for run in runs)


@once
def code_cpu(subject: Subject, lines: int) -> float:
    """CPU seconds for a call whose code has so many lines, until it is asked for."""
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
    """How much more 1,600 lines cost than 400, per line: 1 is linear."""
    return code_cpu(subject, 1600) / code_cpu(subject, 400) / 4


def shown(subject: Subject, characters: int) -> float:
    words = (PARAGRAPH * (characters // len(PARAGRAPH) + 1))[:characters]
    runs = [
        with_server(
            [text(words, split=4)],
            lambda server: probe(subject.python, "shown", api_base=server.base_url),
        )[0]
        for _ in range(1 if subject.is_original else 3)
    ]
    return min(float(run["seconds"]) for run in runs)


@once
def shown_20000(subject: Subject) -> float:
    return shown(subject, 20_000)


def shown_growth(subject: Subject) -> float:
    """How much more 20,000 characters cost than 5,000, per character: 1 is linear."""
    return shown_20000(subject) / shown(subject, 5_000) / 4


def history(subject: Subject) -> float:
    """Seconds from chat() to the request, with 800 messages before it; the best of some."""
    arrivals: list[float] = []

    def answer(body: dict[str, Any]) -> Reply:
        arrivals.append(time.monotonic())
        return text("ok")

    with ModelServer([answer] * 6) as server:
        began = probe(subject.python, "history", api_base=server.base_url, repeats=5)["began"]
    return min(arrived - asked for arrived, asked in zip(arrivals[1:], began, strict=True))


def prompt_tokens(subject: Subject) -> float:
    """System message and tools of the first request, at four bytes a token."""
    _, server = with_server([], lambda server: probe(subject.python, "warm", api_base=server.base_url))
    body = server.requests[-1].body
    system = [message["content"] for message in body["messages"] if message["role"] == "system"]
    return round(len("".join([*system, json.dumps(body.get("tools", []))]).encode()) / 4)


MEASUREMENTS = [
    Measurement(
        "20,000-token reply through chat(stream=True), CPU",
        "s",
        lambda it: reply_cpu(it.python, "reply"),
        lambda: reply_cpu(Path(sys.executable), "bare_reply"),
        budget_of_bare=2,
    ),
    Measurement("20,000 characters of Markdown in a terminal", "s", shown_20000, budget=3),
    Measurement("the same against 5,000, per character", "x", shown_growth, budget=1.5),
    Measurement("1,600 lines of code in a tool call, CPU", "s", lambda it: code_cpu(it, 1600), budget=1),
    Measurement("the same against 400 lines, per line", "x", code_growth, budget=1.5),
    Measurement("chat() to request with 800 messages", "s", history, budget=0.030),
    Measurement("system message and tools, tokens (4 bytes each)", "", prompt_tokens, budget=700),
]
