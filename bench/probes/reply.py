"""CPU of a long reply through chat(stream=True)."""

import time

from common import tell, warmed

interpreter = warmed()
began = time.process_time()
characters = 0
for chunk in interpreter.chat("go", display=False, stream=True):
    if chunk["role"] == "assistant" and chunk["type"] == "message":
        characters += len(chunk.get("content", ""))
tell(cpu=time.process_time() - began, characters=characters)
