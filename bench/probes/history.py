"""When chat() was called, each time with 800 messages before it; with a window, they do not fit into it."""

import time

from common import ARGUMENTS, tell, warmed

interpreter = warmed()
words = "A sentence of a conversation that has been going on for quite some time now. " * 4
interpreter.stream_all = True
began, compacted = [], 0
for repeat in range(ARGUMENTS["repeats"]):
    interpreter.messages = [
        {"role": "assistant" if number % 2 else "user", "type": "message", "content": f"{repeat}.{number}: {words}"}
        for number in range(800)
    ]
    began.append(time.monotonic())
    for chunk in interpreter.chat("go", display=False, stream=True):
        compacted += chunk.get("format") == "compacted"
tell(began=began, compacted=compacted)
