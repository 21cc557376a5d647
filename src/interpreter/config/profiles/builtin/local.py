"""A model on this machine, chosen from a list; afterwards nothing else is asked."""

from interpreter import interpreter

interpreter.local_setup()
interpreter.offline = True
