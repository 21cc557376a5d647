"""When the first chat() of a process was called, and the CPU that it took until the model's first word."""

import time

from common import ready, tell

interpreter = ready()
_ = interpreter.llm
began, before = time.monotonic(), time.process_time()
chunks = interpreter.chat("go", display=False, stream=True)
next(chunks)
tell(began=began, cpu=time.process_time() - before)
