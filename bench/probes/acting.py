"""Seconds from an action in a real editor to the next screenshot and element list for the model."""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from common import ARGUMENTS, report

from interpreter import OpenInterpreter
from interpreter.computer_api.screen.os_mode import ScreenControl

sys.path.insert(0, ARGUMENTS["tests"])

from screen.desktop import Desktop

with tempfile.TemporaryDirectory() as folder:
    place = Path(folder) / "desktop"
    place.mkdir()
    desktop = Desktop(place)
    try:
        for name in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"):
            os.environ[name] = desktop.env[name]
        file = Path(folder) / "letter.txt"
        file.touch()
        desktop.editor(file)
        interpreter = OpenInterpreter()
        interpreter.llm.supports_vision = True
        computer, control = interpreter.computer, ScreenControl(interpreter)
        list(control.begin())
        times = []
        for _ in range(7):
            began = time.perf_counter()
            computer.keyboard.write("words ")
            control.called({"acts": True})
            list(control.after_block())
            times.append(time.perf_counter() - began)
        control.end()
        computer.terminate()
    finally:
        desktop.close()
report(next=statistics.median(times))
