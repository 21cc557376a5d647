"""CPU of a long reply over httpx and json alone."""

import json
import time

import httpx
from common import ARGUMENTS, tell


def ask(client):
    body = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "go"}]}
    characters = 0
    with client.stream("POST", ARGUMENTS["api_base"] + "/chat/completions", json=body) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    characters += len(choice["delta"].get("content") or "")
    return characters


with httpx.Client() as client:
    ask(client)
    began = time.process_time()
    characters = ask(client)
    tell(cpu=time.process_time() - began, characters=characters)
