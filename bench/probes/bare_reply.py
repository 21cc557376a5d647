"""CPU of a long reply with only httpx and json, in a given wire format."""

import json
import time

import httpx
from common import ARGUMENTS, report

MESSAGES = [{"role": "user", "content": "go"}]
BLOCKS = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
ITEMS = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}]
FORMATS = {
    "chat": (
        "/chat/completions",
        {"messages": MESSAGES},
        lambda event: event["choices"][0]["delta"].get("content") or "",
    ),
    "anthropic": (
        "/messages",
        {"messages": BLOCKS, "max_tokens": 4096},
        lambda event: event["delta"].get("text", "") if event["type"] == "content_block_delta" else "",
    ),
    "responses": (
        "/responses",
        {"input": ITEMS, "store": False},
        lambda event: event["delta"] if event["type"] == "response.output_text.delta" else "",
    ),
}
HEADERS = {"x-api-key": "x", "anthropic-version": "2023-06-01"}


def ask(client):
    path, body, text_of = FORMATS[ARGUMENTS.get("wire", "chat")]
    body = {"model": "scripted", "stream": True, **body}
    characters = 0
    with client.stream("POST", ARGUMENTS["api_base"] + path, json=body, headers=HEADERS) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                characters += len(text_of(json.loads(line[6:])))
    return characters


with httpx.Client() as client:
    ask(client)
    began = time.process_time()
    characters = ask(client)
    report(cpu=time.process_time() - began, characters=characters)
