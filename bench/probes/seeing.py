"""Seconds to capture a screen and find text on it, and the number of missed words on a page of small text."""

import os
import subprocess
import sys
import time

from common import ARGUMENTS, report

from interpreter import OpenInterpreter
from interpreter.computer_api.screen.display.display import screen_of

sys.path.insert(0, ARGUMENTS["tests"])

from screen.word_page import word_page


def measured(act):
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def shown_display():
    """Start a display in memory; the server ends with this program, through a pipe."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-displayfd", str(writing)]
    server = subprocess.Popen(command, pass_fds=(writing,), stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as lines:
        os.environ["DISPLAY"] = ":" + lines.readline().strip()
    return server


def draw(image, left, top):
    from Xlib.display import Display

    x = Display()
    root = x.screen().root
    root.put_pil_image(root.create_gc(), left, top, image)
    x.sync()
    return x


server = shown_display()
try:
    page, places = word_page()
    canvas = draw(page, 0, 0)
    display = OpenInterpreter().computer.display
    whole = [0, 0, 1280, 800]
    display.view(region=whole)
    screens = screen_of(display)
    box = type(screens.monitors()[0].box)(*whole)
    grab = min(measured(lambda: screens.grab(box)) for _ in range(10))
    view = min(measured(lambda: display.view(region=whole)) for _ in range(5))
    load = measured(lambda: display.find_text("x", page.crop((0, 0, 200, 60))))
    first = measured(lambda: display.find_text("meadow"))
    again = min(measured(lambda: display.find_text("memory")) for _ in range(3))
    root = canvas.screen().root
    root.put_pil_image(root.create_gc(), 20, 20, page.crop((20, 120, 200, 150)))
    canvas.sync()
    changed = measured(lambda: display.find_text("border"))
    root.put_pil_image(root.create_gc(), 0, 0, page)
    canvas.sync()
    hits = 0
    for word, (x, y) in places.items():
        boxes = [found["box"] for found in display.find_text(word)]
        hits += any(b[0] - 3 <= x <= b[0] + b[2] + 3 and b[1] - 3 <= y <= b[1] + b[3] + 3 for b in boxes)
    canvas.close()
finally:
    server.terminate()
    server.wait(10)
report(grab=grab, view=view, load=load, first=first, again=again, changed=changed, missed=len(places) - hits)
