"""A profile in Python, to copy: interpreter --profiles opens the folder for yours."""

from interpreter import interpreter

# Every setting of docs/settings.md is an attribute.
interpreter.llm.model = "gpt-4o"
interpreter.custom_instructions = "The user is called Ada and likes short answers."

# More that can be set:
# interpreter.llm.api_base = "http://localhost:1234/v1"
# interpreter.llm.context_window = 16000
# interpreter.auto_run = True  # run code without asking
# interpreter.messages = [{"role": "user", "type": "message", "content": "We are talking about my thesis."}]

# Code to define before the first block:
# interpreter.computer.run("python", "import pandas as pd")
