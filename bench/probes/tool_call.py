"""CPU for code that arrives in a tool call, until the approval."""

import time

from common import report, warmed

interpreter = warmed()
began = time.process_time()
characters = 0
for chunk in interpreter.chat("go", display=False, stream=True):
    if chunk["type"] == "code":
        characters += len(chunk.get("content", ""))
    if chunk["type"] == "confirmation":
        cpu = time.process_time() - began
        break
report(cpu=cpu, characters=characters)
