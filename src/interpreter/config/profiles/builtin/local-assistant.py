"""As `assistant`, with a model on this machine, chosen from a list."""

from interpreter import interpreter

interpreter.local_setup()
interpreter.offline = True
interpreter.custom_instructions = (
    "Answer in a sentence or two of plain spoken language. To do something, write one short block of code, "
    "read what it prints, and say what happened."
)
