"""Tasks for models with a native computer tool, from Anthropic and OpenAI."""

from __future__ import annotations

import anthropic_server as anthropic
import responses_server as openai
from model_server import AnyReply
from os_mode.scripted_task import Seen, Task


def claude(number: int, **action: object) -> AnyReply:
    return anthropic.message(anthropic.act(call_id=f"toolu_{number}", **action))


def gpt(number: int, **action: object) -> AnyReply:
    return openai.response(openai.act(action, call_id=f"call_{number}"))


def claude_clicks(seen: Seen) -> AnyReply:
    return claude(1, action="left_click", coordinate=list(seen.place("text", "focused")))


def gpt_clicks(seen: Seen) -> AnyReply:
    x, y = seen.place("text", "focused")
    return gpt(1, type="click", button="left", x=x, y=y)


TASKS = [
    Task(
        "with Anthropic's computer tool",
        "Write a note.",
        [
            claude_clicks,
            claude(2, action="type", text="by Claude"),
            claude(3, action="key", text="ctrl+s"),
        ],
        lambda world: world.has("note.txt", "by Claude"),
        lambda world: world.editor("note.txt"),
        model="anthropic",
        needs=("mousepad",),
    ),
    Task(
        "with OpenAI's computer tool",
        "Write a note.",
        [
            gpt_clicks,
            gpt(2, type="type", text="by GPT"),
            gpt(3, type="keypress", keys=["CTRL", "S"]),
        ],
        lambda world: world.has("note.txt", "by GPT"),
        lambda world: world.editor("note.txt"),
        model="openai",
        needs=("mousepad",),
    ),
]
