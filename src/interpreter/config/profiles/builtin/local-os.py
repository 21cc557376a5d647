"""As `local`, with control of the screen."""

from interpreter import interpreter

interpreter.local_setup()
interpreter.offline = True
interpreter.os = True
