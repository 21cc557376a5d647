"""Tasks in Qt and Tk windows: forms, equal buttons, small print, late questions, a second monitor."""

from __future__ import annotations

import json
import re
from typing import Any

from os_mode.scripted_task import Seen, Task, World

ORDER = {"name": "Ann", "notes": "By Friday", "size": "Large", "gift": True}


def ordered(world: World, **wanted: Any) -> None:
    form = json.loads(world.written())
    assert {name: form[name] for name in wanted} == wanted, form


def clicks(seen: Seen, *targets: tuple[str, ...]) -> str:
    return "\n".join("computer.mouse.click(x={}, y={})".format(*seen.place(*words)) for words in targets)


def second_of(seen: Seen) -> str:
    """Click the second of the positions listed in the error."""
    place = re.search(r"^2\. x=(\d+), y=(\d+)", seen.all, re.MULTILINE)
    assert place, f"no list of places in {seen.all}"
    return f'computer.mouse.click(x={place[1]}, y={place[2]})\ncomputer.keyboard.press("ctrl+s")'


def fill(seen: Seen) -> str:
    return "\n".join(
        [
            'computer.keyboard.write("Ann")',
            'computer.mouse.click("Notes")',
            'computer.keyboard.write("By Friday")',
            'computer.mouse.click("Wrap it as a gift")',
            clicks(seen, ("combo box",)),
        ]
    )


TASKS = [
    Task(
        "fill a form in a desktop application",
        "Order a large one for Ann, by Friday, as a gift.",
        [fill, 'computer.mouse.click("Large")', 'computer.mouse.click("Save order")'],
        lambda world: ordered(world, **ORDER),
        lambda world: world.order(),
    ),
    Task(
        "without pictures, by the list of elements",
        "Order something for Ben.",
        [
            lambda seen: (
                clicks(seen, ("text", "Customer")) + '\ncomputer.keyboard.write("Ben")\n' + clicks(seen, ("check box",))
            ),
            lambda seen: clicks(seen, ("Save order",)),
        ],
        lambda world: (
            ordered(world, name="Ben", gift=True, size="Small"),
            all(seen.pictures() == 0 for seen in world.requests) or 1 / 0,
        ),
        lambda world: world.order(),
        model="text",
        vision=False,
    ),
    Task(
        "an element by its reference",
        "Order it for Cleo.",
        [
            'computer.keyboard.write("Cleo")\n'
            "save = next(e for e in computer.display.elements() if e['name'] == 'Save order')\n"
            "computer.display.activate(save)"
        ],
        lambda world: ordered(world, name="Cleo"),
        lambda world: world.order(),
    ),
    Task(
        "move through a form with the tab key",
        "Order a medium one for Dora.",
        [
            'computer.keyboard.write("Dora")\ncomputer.keyboard.press("shift+tab", presses=4)\n'
            'computer.keyboard.press("down")',
            'computer.mouse.click("Save order")',
        ],
        lambda world: ordered(world, name="Dora", size="Medium"),
        lambda world: world.order(),
        model="text",
    ),
    Task(
        "choose among three equal buttons",
        "Press the second of the buttons and save.",
        ['computer.mouse.click("Choose")', second_of],
        lambda world: (
            ordered(world, choice="2"),
            "3 things on the screen are 'Choose'" in world.outputs or 1 / 0,
            any(m["type"] == "image" for m in world.messages[2:]) or 1 / 0,
        ),
        lambda world: world.desktop.tk_form(world.file()),
    ),
    Task(
        "click text in a small font",
        "Withdraw.",
        ['computer.mouse.click("Withdraw")'],
        lambda world: world.has("word.txt", "Withdraw"),
        lambda world: world.program("small_print", str(world.file("word.txt")), title="Small print"),
    ),
    Task(
        "a dialog that appears late",
        "Make the backup and keep the old one.",
        [
            'computer.mouse.click("Begin")',
            "import time\n"
            "while not any(w['title'] == 'Ready' for w in computer.os.windows()):\n    time.sleep(0.1)\n"
            "computer.display.wait_until_still()\n"
            'computer.mouse.click("Keep")',
        ],
        lambda world: world.has("answer.txt", "Keep"),
        lambda world: world.program("late_question", str(world.file("answer.txt")), title="Backup"),
    ),
    Task(
        "act on the second monitor",
        "Move the order to the right monitor and save it there.",
        [
            'computer.keyboard.write("Eve")\nprint(computer.os.move_window("Order", x=700, y=100)["x"])',
            lambda seen: (
                "assert {} > 640\n".format(seen.place("Save order")[0])
                + clicks(seen, ("Save order",))
                + "\nprint('monitors:', len(computer.display.info()['monitors']), computer.mouse.position()[0] > 640)"
            ),
        ],
        lambda world: (ordered(world, name="Eve"), "monitors: 2 True" in world.outputs or 1 / 0),
        lambda world: world.order(),
        monitors=2,
        needs=("xrandr",),
    ),
]
