"""A voice client for the protocol of 0.4.3's server: it reads lines of text, and speaks the answer by sentence.

    INTERPRETER_API_KEY=... python compat/voice_client.py ws://127.0.0.1:8000/

Text comes from standard input, so any speech recognition can be piped in; sentences go to the command in SPEAK, such as
`espeak` or `say`, or to standard output. New text interrupts the answer. Code never runs without a spoken "yes".
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from typing import Any

import websockets

SENTENCE = re.compile(r"(?<=[.!?])\s+")


class Voice:
    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._unsaid = ""
        self._waits_for_yes = False

    async def send(self, kind: str, content: str) -> None:
        """Send a message in pieces, as from speech recognition."""
        await self._socket.send(json.dumps({"role": "user", "type": kind, "start": True}))
        for word in content.split(" "):
            await self._socket.send(json.dumps({"role": "user", "type": kind, "content": f"{word} "}))
        await self._socket.send(json.dumps({"role": "user", "type": kind, "end": True}))

    async def hear(self) -> None:
        """Each line is one utterance. An empty line ends the client."""
        loop = asyncio.get_running_loop()
        while sentence := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            is_yes = self._waits_for_yes and sentence.lower().strip(".!") == "yes"
            self._waits_for_yes, self._unsaid = False, ""
            await self.send("command", "go") if is_yes else await self.send("message", sentence)

    async def listen(self) -> None:
        has_code = False
        async for frame in self._socket:
            chunk = json.loads(frame)
            kind, content = chunk.get("type"), chunk.get("content")
            if kind == "message" and chunk.get("role") == "assistant" and isinstance(content, str):
                *whole, self._unsaid = SENTENCE.split(self._unsaid + content)
                for sentence in whole:
                    await speak(sentence)
            elif kind == "code" and chunk.get("role") == "assistant":
                has_code = True
            elif kind == "console":
                has_code = False  # it ran
            elif kind == "error":
                await speak(f"Something went wrong: {content}")
            elif (kind, content) == ("status", "complete"):
                if self._unsaid.strip():
                    await speak(self._unsaid.strip())
                self._unsaid, self._waits_for_yes = "", has_code
                if has_code:
                    await speak("I have written some code. Say yes to run it.")
                has_code = False


async def speak(sentence: str) -> None:
    if command := os.environ.get("SPEAK"):
        await (await asyncio.create_subprocess_exec(*shlex.split(command), sentence)).wait()
    else:
        print(sentence, flush=True)


async def main(address: str) -> None:
    async with websockets.connect(address, proxy=None) as socket:
        await socket.send(json.dumps({"auth": os.environ["INTERPRETER_API_KEY"]}))
        if not json.loads(await socket.recv()).get("auth"):
            sys.exit("The server did not accept the key.")
        voice = Voice(socket)
        hearing, listening = asyncio.ensure_future(voice.hear()), asyncio.ensure_future(voice.listen())
        await asyncio.wait([hearing, listening], return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "ws://127.0.0.1:8000/"))
