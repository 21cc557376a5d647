"""The time of each chat() call with 800 earlier messages; with a window, they exceed it."""

import time

from common import ARGUMENTS, report, warmed

interpreter = warmed()
text = "A sentence of a conversation that has been going on for quite some time now. " * 4
interpreter.stream_all = True
began, compacted = [], 0
for repeat in range(ARGUMENTS["repeats"]):
    interpreter.messages = [
        {"role": "assistant" if number % 2 else "user", "type": "message", "content": f"{repeat}.{number}: {text}"}
        for number in range(800)
    ]
    began.append(time.monotonic())
    for chunk in interpreter.chat("go", display=False, stream=True):
        compacted += chunk.get("format") == "compacted"
report(began=began, compacted=compacted)
