"""CPU of a long reply through chat(stream=True)."""

import time

from common import report, warmed

interpreter = warmed()
began = time.process_time()
characters = 0
for chunk in interpreter.chat("go", display=False, stream=True):
    if chunk["role"] == "assistant" and chunk["type"] == "message":
        characters += len(chunk.get("content", ""))
report(cpu=time.process_time() - began, characters=characters)
