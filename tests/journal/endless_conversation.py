"""An endless scripted conversation; run as a program, it forks conversations and kills them.

`python endless_conversation.py ROOT` reads lines `FOLDER SEED SECONDS`. For each it forks a process that talks, records into
ROOT/FOLDER and is killed SECONDS after its first chunk. The chunks the process received until then are
reported: lines of JSON `[before, after, characters]`, and an empty line.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from interpreter import BaseLanguage, OpenInterpreter
from interpreter.messages import EPHEMERAL, Chunk


class Parrot(BaseLanguage):
    name = "parrot"

    def run(self, code: str) -> Iterator[Chunk]:
        for word in code.split(" "):
            yield {"type": "console", "format": "output", "content": word + "\n"}


def endless(root: str | None, pauses: random.Random | None = None) -> OpenInterpreter:
    """Make an interpreter whose model answers every message with text, a block, and text again."""
    interpreter = OpenInterpreter(auto_run=True, conversation_history=root is not None)
    if root is not None:
        interpreter.conversation_history_path = root
    interpreter.computer.languages = [Parrot]
    interpreter.llm.supports_functions = False
    interpreter.llm.context_window = 10_000_000
    asked = 0

    def completions(**params: Any) -> Iterator[dict[str, Any]]:
        nonlocal asked
        asked += 1
        pieces = [f" word{asked}.{number}" for number in range(400 if asked % 3 == 1 else 30)]
        if asked % 2:
            pieces += ["\n```parrot\n", *(f"{word} " for word in pieces[:20]), "\n```\n"]
        for word in pieces:
            if pauses is not None and pauses.random() < 0.3:
                time.sleep(0.001)
            yield {"choices": [{"delta": {"content": word}}]}

    interpreter.llm.completions = completions
    return interpreter


def talk(root: str, seed: int, report: int) -> None:
    interpreter = endless(root, random.Random(seed))
    characters = turn = 0
    before = time.monotonic()
    while True:
        turn += 1
        for chunk in interpreter.chat(f"message {turn}", display=False, stream=True):
            after = time.monotonic()
            if chunk["type"] not in EPHEMERAL and isinstance(chunk.get("content"), str):
                characters += len(chunk["content"])
            os.write(report, json.dumps([before, after, characters]).encode() + b"\n")
            before = time.monotonic()


def killed(root: str, seed: int, seconds: float) -> bytes:
    """Return the chunks that a process received before it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            talk(root, seed, writing)
        finally:
            os._exit(1)
    os.close(writing)
    reported, end = b"", None
    while (left := 30.0 if end is None else end - time.monotonic()) > 0:
        if select.select([reading], [], [], left)[0]:
            piece = os.read(reading, 65536)
            if not piece:
                break  # it ended on its own, which the caller will notice
            reported += piece
            end = end or time.monotonic() + seconds
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while piece := os.read(reading, 65536):
        reported += piece
    os.close(reading)
    return reported


def main() -> None:
    endless(None).chat("load everything that is loaded on first use", display=False)
    for line in sys.stdin:
        folder, seed, seconds = line.split()
        reported = killed(os.path.join(sys.argv[1], folder), int(seed), float(seconds))
        sys.stdout.buffer.write(reported[: reported.rfind(b"\n") + 1] + b"\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
