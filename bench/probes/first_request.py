"""The time of a process's first chat() call, and the CPU until the model's first word."""

import time

from common import ready, report

interpreter = ready()
_ = interpreter.llm
began, before = time.monotonic(), time.process_time()
chunks = interpreter.chat("go", display=False, stream=True)
next(chunks)
report(began=began, cpu=time.process_time() - before)
