"""Tokens sent to the model by OS mode tasks, for all requests: a scripted model works in a real editor."""

import os
import sys
import tempfile
from pathlib import Path

from common import ARGUMENTS, report

from interpreter import OpenInterpreter

sys.path.insert(0, ARGUMENTS["tests"])

from model_server import ModelServer, text, tool_call
from screen.desktop import Desktop

PICTURE = 1365  # tokens of a 1280 x 800 image at Anthropic
LINES = [f'computer.keyboard.write("Line {number} of the letter.\\n")' for number in range(6)]
MENUS = [f'computer.mouse.click("{menu}")\ncomputer.keyboard.press("esc")' for menu in ("File", "Edit", "View", "Help")]
TASKS = {
    "letter": [*LINES, 'computer.keyboard.hotkey("ctrl", "s")'],
    "menus": [code for menu in MENUS for code in menu.splitlines()],
    "moves": [f"computer.mouse.move(x={400 + 10 * number}, y=400)" for number in range(14)],
}


def tokens(body):
    """Tokens of a request: one per four characters of text, and a fixed number per image."""
    pictures = []

    def without_pictures(value):
        if isinstance(value, dict):
            return {key: without_pictures(each) for key, each in value.items()}
        if isinstance(value, list):
            return [without_pictures(each) for each in value]
        if isinstance(value, str) and value.startswith("data:image/"):
            pictures.append(value)
            return ""
        return value

    return len(str(without_pictures(body))) // 4 + PICTURE * len(pictures), len(pictures)


def spent(desktop, folder, blocks):
    file = folder / "letter.txt"
    file.write_text("")
    desktop.editor(file)
    done = text("Done! The file is saved.")
    with ModelServer([*(tool_call("python", block) for block in blocks), *[done] * 60]) as server:
        interpreter = OpenInterpreter(workspace=str(folder))
        interpreter.load_profile("os")
        interpreter.auto_run = True
        llm = interpreter.llm
        llm.model, llm.api_base, llm.api_key, llm.max_retries = "openai/scripted", server.base_url, "key", 0
        llm.supports_vision, llm.supports_functions, llm.context_window = True, True, 200_000
        try:
            for _ in interpreter.chat("Do it.", display=False, stream=True):
                pass
        finally:
            interpreter.computer.terminate()
            desktop.close_applications()
            desktop.until(lambda: not desktop.windows(), "all windows to be gone")
        counted = [tokens(request.body) for request in server.requests if request.messages]
    until_done = sum(number for number, _ in counted[: len(blocks) + 1])
    return {
        "requests": len(counted),
        "pictures": sum(pictures for _, pictures in counted),
        "tokens": sum(number for number, _ in counted),
        "tokens_until_done": until_done,  # without those after the model's first answer
    }


with tempfile.TemporaryDirectory() as folder:
    place = Path(folder) / "desktop"
    place.mkdir()
    desktop = Desktop(place)
    try:
        for name in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"):
            os.environ[name] = desktop.env[name]
        tokens = {name: spent(desktop, Path(folder), blocks) for name, blocks in TASKS.items()}
    finally:
        desktop.close()
report(**tokens)
