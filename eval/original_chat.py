"""Runs in the original's environment: has one conversation with Open Interpreter 0.4.3 and records it."""

import json
import os
import sys
import threading
import time
from pathlib import Path

import psutil

import interpreter as package
from interpreter import interpreter

ORDERS = json.loads(sys.argv[1])
PROFILES = Path(package.__file__).parent / "terminal_interface" / "profiles" / "defaults"


def set_up():
    if ORDERS["profile"]:
        interpreter.local_setup = lambda: interpreter  # there is no user to ask
        path = PROFILES / ORDERS["profile"]
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {})
    interpreter.auto_run = True
    interpreter.offline = True
    interpreter.disable_telemetry = True
    interpreter.llm.model = "openai/x"
    interpreter.llm.api_base = ORDERS["api_base"]
    interpreter.llm.api_key = "x"
    interpreter.llm.supports_functions = False
    interpreter.llm.supports_vision = False
    interpreter.llm.temperature = 0
    # What its setup for local models chooses on a machine with more than 9 GB.
    interpreter.llm.context_window = 8000
    interpreter.llm.max_tokens = 1200


def talk():
    """Send all messages. Returns what went wrong."""
    blocks = 0
    try:
        for message in ORDERS["words"]:
            for chunk in interpreter.chat(message, display=False, stream=True):
                blocks += chunk.get("type") == "code" and chunk.get("start") is True
                if blocks > ORDERS["blocks"]:
                    return "blocks"
    except Exception as error:  # noqa: BLE001 - any error goes into the table
        return f"{type(error).__name__}: {error}"
    return ""


def write_result(broke):
    """Write the result, and exit with all child processes."""
    with once:
        result = {"messages": interpreter.messages, "seconds": time.monotonic() - began, "broke": broke}
        Path(ORDERS["told"]).write_text(json.dumps(result, default=str), encoding="utf-8")
        for child in psutil.Process().children(recursive=True):
            child.kill()
        os._exit(0)


set_up()
once = threading.Lock()
began = time.monotonic()
timer = threading.Timer(ORDERS["seconds"], write_result, ("time",))
timer.daemon = True
timer.start()
write_result(talk())
