"""Tasks in an editor and a terminal: writing, saving, menus, selecting, copying."""

from __future__ import annotations

from os_mode.scripted_task import Seen, Task, World

EDITOR = ("mousepad",)
LINES = "".join(f"line {number}\n" for number in range(1, 401))
SAVE = 'computer.keyboard.hotkey("ctrl", "s")'


def letter(content: str = "") -> object:
    return lambda world: world.editor("letter.txt", content)


def line_of(seen: Seen, code: str) -> str:
    """Code that knows the position of the editor's first line as `x`, `y`."""
    x, y = seen.place("text", "focused")
    box = f"element = next(e for e in computer.display.elements() if e['x'] == {x} and e['y'] == {y})\n"
    return box + "left, top, width, height = element['box']\nx, y = left + 20, top + 8\n" + code


def scrolled(world: World) -> None:
    world.until(lambda: "HERE" in world.file("letter.txt").read_text(), "what was written")
    lines = world.file("letter.txt").read_text().splitlines()
    assert next(n for n, line in enumerate(lines) if "HERE" in line) > 200


TASKS = [
    Task(
        "write and save a file in an editor",
        "Write 'Dear reader' into letter.txt with the editor that is open.",
        [f'computer.keyboard.write("Dear reader\\n")\n{SAVE}'],
        lambda world: world.has("letter.txt", "Dear reader\n"),
        letter(),
        needs=EDITOR,
    ),
    Task(
        "type characters without a key",
        "Write the greeting.",
        [f'computer.keyboard.write("Zoë é ✓ 漢")\n{SAVE}'],
        lambda world: world.has("letter.txt", "Zoë é ✓ 漢"),
        letter(),
        model="text",
        needs=EDITOR,
    ),
    Task(
        "save through the menu",
        "Write yes, and save it with the menu.",
        ['computer.keyboard.write("yes")\ncomputer.mouse.click("File")', 'computer.mouse.click("Save")'],
        lambda world: world.has("letter.txt", "yes"),
        letter(),
        model="text",
        needs=EDITOR,
    ),
    Task(
        "replace all by shortcuts",
        "Replace the whole text by 'new'.",
        [
            f'computer.keyboard.press("ctrl+a")\ncomputer.keyboard.press("delete")\ncomputer.keyboard.write("new")\n{SAVE}'
        ],
        lambda world: world.has("letter.txt", "new"),
        letter("old text\nof two lines\n"),
        needs=EDITOR,
    ),
    Task(
        "drag a selection",
        "Mark the first line with the mouse and put 'short' in its place.",
        [
            lambda seen: line_of(
                seen,
                "computer.mouse.drag((left + 2, y), (left + width - 30, y))\n"
                "print('marked:', computer.os.get_selected_text())",
            ),
            f'computer.keyboard.write("short")\n{SAVE}',
        ],
        lambda world: (
            world.has("letter.txt", "short\nsecond\n"),
            "marked: the first line\n" in world.outputs or 1 / 0,
        ),
        letter("the first line\nsecond\n"),
        needs=EDITOR,
    ),
    Task(
        "double click selects a word",
        "Replace the word under the beginning of the text by 'Only'.",
        [lambda seen: line_of(seen, f'computer.mouse.double_click(x=x, y=y)\ncomputer.keyboard.write("Only")\n{SAVE}')],
        lambda world: world.has("letter.txt", "Only words here\n"),
        letter("Several words here\n"),
        needs=EDITOR,
    ),
    Task(
        "triple click selects a line",
        "Empty the first line.",
        [
            lambda seen: line_of(
                seen, f'computer.mouse.triple_click(x=x, y=y)\ncomputer.keyboard.press("delete")\n{SAVE}'
            )
        ],
        lambda world: world.until(
            lambda: world.file("letter.txt").read_text() in ("second\n", "\nsecond\n"), "the first line to be gone"
        ),
        letter("a first line\nsecond\n"),
        model="text",
        needs=EDITOR,
    ),
    Task(
        "right click for a menu",
        "Mark everything with the menu of the right button and delete it.",
        [
            lambda seen: line_of(seen, "computer.mouse.right_click(x=x, y=y + 60)"),
            'computer.mouse.click("Select All")',
            f'computer.keyboard.press("delete")\ncomputer.keyboard.write("empty")\n{SAVE}',
        ],
        lambda world: world.has("letter.txt", "empty"),
        letter("to be marked\n"),
        needs=EDITOR,
    ),
    Task(
        "scroll and write further down",
        "Write HERE somewhere near the end.",
        [
            lambda seen: line_of(
                seen,
                # A freshly loaded text grows while it is laid out, so scroll a second time.
                "computer.mouse.move(x=x, y=y + 100)\ncomputer.mouse.scroll(-400)\ncomputer.display.wait_until_still()\n"
                "computer.mouse.scroll(-400)\ncomputer.display.wait_until_still()\n"
                f'computer.mouse.click(x=x, y=y + 100)\ncomputer.keyboard.write("HERE")\n{SAVE}',
            )
        ],
        scrolled,
        letter(LINES),
        needs=EDITOR,
    ),
    Task(
        "copy between two applications",
        "Sign the guest book with the text of the letter.",
        [
            'computer.os.focus("letter.txt")\ncomputer.keyboard.press("ctrl+a")\nprint(computer.clipboard.copy())',
            'computer.os.focus("Guest book")\ncomputer.clipboard.paste()\n' + SAVE,
        ],
        lambda world: '"name": "Ann of Green Gables"' in world.written() or 1 / 0,
        lambda world: (
            world.editor("letter.txt", "Ann of Green Gables"),
            world.desktop.tk_form(world.file()),
        ),
        needs=EDITOR,
    ),
    Task(
        "start an application by its name and close it",
        "Start the editor, and close it again.",
        [
            'print(computer.os.launch("mousepad", "--disable-server")["application"])',
            'print("closed:", computer.os.close_window("Mousepad"))',
        ],
        lambda world: (
            "closed: True" in world.outputs or 1 / 0,
            world.until(lambda: not world.desktop.windows(), "no window"),
        ),
        needs=EDITOR,
    ),
    Task(
        "a command in a terminal",
        "Have the shell in the terminal write its greeting.",
        ["computer.keyboard.write(\"echo hello from 'the shell' > {folder}/said.txt\\n\")"],
        lambda world: world.has("said.txt", "hello from the shell\n"),
        lambda world: world.desktop.terminal("sh"),
        model="text",
        needs=("xterm",),
    ),
    Task(
        "a picture on the clipboard",
        "Copy a picture of the upper left corner.",
        [
            "picture = computer.display.view(show=False, region=[0, 0, 120, 90])\n"
            "computer.clipboard.copy(picture)\nback = computer.clipboard.view()\nprint('size:', back.width, back.height)"
        ],
        lambda world: "size: 120 90" in world.outputs or 1 / 0,
        letter("a window\n"),
        needs=(*EDITOR, "xclip"),
    ),
    Task(
        "JavaScript that uses the computer",
        "Write it from JavaScript.",
        ['await computer.keyboard.write("from JavaScript")\nawait computer.keyboard.hotkey("ctrl", "s")'],
        lambda world: world.has("letter.txt", "from JavaScript"),
        letter(),
        language="javascript",
        needs=(*EDITOR, "node"),
    ),
]
