"""When chat() was called, each time with 800 messages before it."""

import time

from common import ARGUMENTS, tell, warmed

interpreter = warmed()
words = "A sentence of a conversation that has been going on for quite some time now. " * 4
began = []
for _ in range(ARGUMENTS["repeats"]):
    interpreter.messages = [
        {"role": "assistant" if number % 2 else "user", "type": "message", "content": f"{number}: {words}"}
        for number in range(800)
    ]
    began.append(time.monotonic())
    interpreter.chat("go", display=False)
tell(began=began)
