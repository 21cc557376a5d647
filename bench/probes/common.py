"""Shared code of the probes; like them, it runs in ours and in the original."""

import json
import sys

ARGUMENTS = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}


def ready():
    """Make an interpreter connected to the scripted server."""
    from interpreter import interpreter

    interpreter.offline = True
    interpreter.disable_telemetry = True
    interpreter.conversation_history = False
    interpreter.llm.model = ARGUMENTS.get("model", "openai/gpt-4-scripted")
    interpreter.llm.api_base = ARGUMENTS["api_base"]
    interpreter.llm.api_key = "x"
    interpreter.llm.supports_functions = True
    interpreter.llm.supports_vision = False
    interpreter.llm.context_window = ARGUMENTS.get("window", 1_000_000)
    interpreter.llm.max_tokens = 4096
    return interpreter


def warmed():
    """Make one and chat with it briefly, so that lazy imports are done."""
    interpreter = ready()
    interpreter.chat("hi", display=False)
    interpreter.messages = []
    return interpreter


def report(**result):
    # The original prints other lines too: the result is the last one.
    print("\n" + json.dumps(result), flush=True)
