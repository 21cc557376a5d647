"""The path of `interpreter.languages.program` in earlier versions."""

import sys
from importlib import import_module

sys.modules[__name__] = import_module("interpreter.languages.program")
