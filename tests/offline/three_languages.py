"""An offline task with the library: prints the output of each language, and the answer."""

from __future__ import annotations

import sys

from interpreter import OpenInterpreter

interpreter = OpenInterpreter(offline=True, auto_run=True)
interpreter.llm.api_base, interpreter.llm.model = sys.argv[1], "gpt-4o"
try:
    for message in interpreter.chat("Count in three languages", display=False):
        if message["type"] in ("console", "message"):
            print(message["content"].strip())
finally:
    interpreter.computer.terminate()
