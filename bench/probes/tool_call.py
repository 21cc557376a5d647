"""CPU of code that arrives in a tool call, until it is asked for."""

import time

from common import tell, warmed

interpreter = warmed()
began = time.process_time()
characters = 0
for chunk in interpreter.chat("go", display=False, stream=True):
    if chunk["type"] == "code":
        characters += len(chunk.get("content", ""))
    if chunk["type"] == "confirmation":
        cpu = time.process_time() - began
        break
tell(cpu=cpu, characters=characters)
