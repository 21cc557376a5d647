"""Forty tasks on ten applications, at three scales, on one and two monitors, by name and by image.

`make test-full` runs all of them and prints the success rate of each class and the reasons of failures.
"""

from __future__ import annotations

import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from os_mode.scripted_task import Task, World, run_all, set_up
from screen.desktop import Application, Desktop, missing

pytestmark = pytest.mark.timeout(3000)
MINIMUM = 0.9
SIZE = (1920, 1200)
LONG_NAME = "a long name of a report.txt"
# GTK supports only integer scales on X11; in between, it scales fonts.
SCALES = {
    "1": {},
    "1.5": {"QT_SCALE_FACTOR": "1.5", "GDK_DPI_SCALE": "1.5"},
    "2": {"QT_SCALE_FACTOR": "2", "GDK_SCALE": "2"},
}
# Finds words in a screenshot of the active window and its menus, as a model with vision does.
BY_PICTURE = """
def at(words):
    picture = computer.display.view(show=False)
    found = computer.display.find_text(words, picture)
    assert found, f"{words} cannot be seen"
    return {"x": found[0]["x"], "y": found[0]["y"]}
"""
SETTLE = "computer.display.wait_until_still()"


@dataclass(frozen=True)
class Case:
    """One task on one application; `code` has the model's blocks."""

    application: str
    name: str
    how: str  # "name" or "picture"
    code: tuple[str, ...]
    check: Callable[[World], Any]

    def __str__(self) -> str:
        return f"{self.application} {self.name}"


def until_soon(world: World, condition: Callable[[], Any], what: str) -> None:
    world.desktop.until(condition, what, 20)


def editor(application: str, menu_item: str = "Select All") -> Iterator[Case]:
    """Tasks in an editor: delete all of a letter, and save another text."""
    save = 'computer.keyboard.press("delete")\ncomputer.keyboard.write("new")\ncomputer.keyboard.press("ctrl+s")'
    text = 'next(e for e in computer.display.elements() if e["role"] == "text" and e.get("value"))'
    letter = lambda world: world.file("letter.txt").read_text().strip()  # noqa: E731 - some editors add a final newline
    saved = lambda world: until_soon(world, lambda: letter(world) == "new", "the letter to be saved")  # noqa: E731
    menu = ('computer.mouse.click("Edit")', f'computer.mouse.click("{menu_item}")\n{save}')
    seen = (f'{BY_PICTURE}computer.mouse.click(at("Edit"))', f'computer.mouse.click(at("{menu_item}"))\n{save}')
    context = (f"computer.mouse.right_click({text})", f'computer.mouse.click("{menu_item}")\n{save}')
    keys = f'computer.mouse.click({text})\ncomputer.keyboard.press("ctrl+a")\n{save}'
    yield Case(application, "menu", "name", menu, saved)
    yield Case(application, "menu seen", "picture", seen, saved)
    yield Case(application, "context menu", "name", context, saved)
    yield Case(application, "click and keys", "name", (keys,), saved)


def prints(words: str) -> Callable[[World], Any]:
    def check(world: World) -> None:
        assert words in world.outputs, f"{words} is not in what was printed: {world.outputs[-300:]}"

    return check


def calculator() -> Iterator[Case]:
    value = "print('shows', [e.get('value') for e in computer.display.elements() if e['role'] == 'text'])"
    keys = "for key in '7*8=':\n    computer.mouse.click(key)\n"
    yield Case("galculator", "multiply", "name", (keys + value,), prints("shows ['56']"))
    clear = "computer.mouse.click('9')\ncomputer.mouse.click('AC')\ncomputer.mouse.click('5')\n"
    yield Case("galculator", "clear", "name", (clear + value,), prints("shows ['5']"))
    icons = (
        "boxes = {e['name']: e['box'] for e in computer.display.elements() if 'button' in e['role']}\n"
        "pictures = [computer.display.view(show=False, region=boxes[key]) for key in '46']\n"
        "for picture in pictures:\n    computer.mouse.click(picture)\n    computer.mouse.move(x=5, y=600)\n"
    )
    yield Case("galculator", "keys by their pictures", "picture", (icons + value,), prints("shows ['46']"))
    menu = ("computer.mouse.click('Edit')", "computer.mouse.click('Preferences...')")
    opened = f"{SETTLE}\nprint('windows', [w['title'] for w in computer.os.windows()])"
    yield Case("galculator", "a dialog", "name", (*menu, opened), prints("references"))


def file_manager(application: str, delete: str, create: tuple[str, ...]) -> Iterator[Case]:
    renamed = lambda world: until_soon(world, (world.folder / "new.txt").exists, "the file to be renamed")  # noqa: E731
    gone = lambda world: until_soon(world, lambda: not (world.folder / LONG_NAME).exists(), "the file to be deleted")  # noqa: E731
    made = lambda world: until_soon(world, (world.folder / "box").is_dir, "the folder to be created")  # noqa: E731
    rename = f'computer.keyboard.press("f2")\n{SETTLE}\ncomputer.keyboard.press("ctrl+a")\ncomputer.keyboard.write("new.txt\\n")'
    button = f'computer.keyboard.press("f2")\n{SETTLE}\ncomputer.keyboard.press("ctrl+a")\ncomputer.keyboard.write("new.txt")'
    ok = 'computer.mouse.click("Rename")' if application == "thunar" else 'computer.mouse.click("OK")'
    yield Case(application, "rename", "name", ('computer.mouse.click("notes.txt")', button, ok), renamed)
    seen = f'{BY_PICTURE}computer.mouse.click(at("notes.txt"))\n{rename}'
    yield Case(application, "rename what is seen", "picture", (seen,), renamed)
    chosen = f'computer.mouse.click("{LONG_NAME}")\ncomputer.keyboard.press("shift+delete")\n{SETTLE}'
    yield Case(application, "delete a wrapped name", "name", (chosen, delete), gone)
    yield Case(application, "new folder", "name", create, made)


def browser() -> Iterator[Case]:
    def titled(title: str) -> Callable[[World], Any]:
        windows = lambda world: world.desktop.windows().values()  # noqa: E731
        return lambda world: until_soon(
            world, lambda: any(title in each for each in windows(world)), f"the page {title}"
        )

    link, back = 'computer.mouse.click("the other page")', 'computer.mouse.click("back arrow")'
    yield Case("dillo", "a link", "name", (link,), titled("Second"))
    yield Case(
        "dillo",
        "a link that is seen",
        "picture",
        (f'{BY_PICTURE}computer.mouse.click(at("the other page"))',),
        titled("Second"),
    )
    yield Case("dillo", "back", "name", (link, f"{SETTLE}\n{back}", SETTLE), titled("First"))
    change = "from pathlib import Path\nfile = Path('first.html')\nfile.write_text(file.read_text().replace('First', 'Newer'))"
    yield Case("dillo", "reload", "name", (change, 'computer.mouse.click("reload icon")'), titled("Newer"))


def terminal(application: str) -> Iterator[Case]:
    written = lambda world: until_soon(world, (world.folder / "out.txt").exists, "what the command writes")  # noqa: E731
    command = "echo hello > {folder}/out.txt"
    typed = f'computer.keyboard.write("{command}\\n")'
    yield Case(application, "a command", "name", (typed,), written)
    pasted = f'computer.clipboard.copy("{command}\\n")\ncomputer.clipboard.paste()'
    yield Case(application, "a paste", "name", (pasted,), written)
    read = f'computer.keyboard.write("echo $((6*7))00 apples\\n")\n{SETTLE}\nprint("read", computer.display.summary())'
    yield Case(application, "what it prints", "name", (read,), prints("4200 apples"))
    seen = f'computer.keyboard.write("echo; echo banana bread; echo\\n")\n{SETTLE}\n{BY_PICTURE}\nprint("seen at", at("bread"))'
    yield Case(application, "what it prints, seen", "picture", (seen,), prints("seen at {'x'"))


THUNAR_MENU = (
    "place = computer.os.active_window()\n"
    "computer.mouse.right_click(x=place['x'] + place['width'] - 60, y=place['y'] + place['height'] - 90)",
    f"computer.mouse.click('Create Folder...')\n{SETTLE}\ncomputer.keyboard.press('ctrl+a')\n"
    "computer.keyboard.write('box')\ncomputer.mouse.click('Create')",
)
PCMANFM_KEYS = (
    f"computer.keyboard.press('ctrl+shift+n')\n{SETTLE}",
    "computer.keyboard.write('box')\ncomputer.mouse.click('OK')",
)
CASES = [
    *editor("featherpad"),
    *editor("mousepad"),
    *editor("pluma"),
    *editor("l3afpad"),
    *calculator(),
    *file_manager("thunar", 'computer.mouse.click("Delete")', THUNAR_MENU),
    *file_manager("pcmanfm", 'computer.mouse.click("Yes")', PCMANFM_KEYS),
    *browser(),
    *terminal("lxterminal"),
    *terminal("xterm"),
]
CORE = ("featherpad menu",)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desktop]:
    """A desktop large enough for windows at twice the size."""
    if packages := missing():
        pytest.skip(f"a desktop needs packages: apt-get install {' '.join(packages)}")
    made = Desktop(tmp_path_factory.mktemp("large"), *SIZE)
    yield made
    made.close()


@pytest.fixture
def large_desktop(large: Desktop, monkeypatch: pytest.MonkeyPatch) -> Desktop:
    for name in ("DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, large.env[name])
    for name in ("WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "AT_SPI_BUS_ADDRESS", "XMODIFIERS"):
        monkeypatch.delenv(name, raising=False)
    return large


def test_there_are_forty_tasks_on_ten_applications() -> None:
    assert len(CASES) == 40 and len({case.application for case in CASES}) == 10
    assert {case.how for case in CASES} == {"name", "picture"}


@pytest.mark.parametrize("case", [case for case in CASES if str(case) in CORE], ids=str)
def test_a_task_succeeds_at_twice_the_size_on_the_second_monitor(
    case: Case, large_desktop: Desktop, tmp_path: Path
) -> None:
    if shutil.which(case.application) is None:
        pytest.skip(f"{case.application} is not installed: apt-get install {case.application}")
    run_case(case, large_desktop, tmp_path, "2", 2)


@pytest.mark.full
@pytest.mark.parametrize("monitors", [1, 2])
@pytest.mark.parametrize("scale", SCALES)
def test_most_tasks_succeed_at_each_scale(
    scale: str, monitors: int, large_desktop: Desktop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, done, failures = Counter[str](), Counter[str](), []
    installed = [case for case in CASES if shutil.which(case.application)]
    for number, case in enumerate(installed):
        folder = tmp_path / str(number)
        folder.mkdir()
        classes = (case.application, f"by {case.how}")
        runs.update(classes)
        try:
            run_case(case, large_desktop, folder, scale, monitors)
            done.update(classes)
        except Exception as error:
            why = "".join(traceback.format_exception_only(error)).strip().splitlines()[0][:200]
            failures.append(f"{case.application}, {case.name}: {why}")
            large_desktop.picture(tmp_path / f"{number}.png")
    absent = sorted({case.application for case in CASES} - {case.application for case in installed})
    with capsys.disabled():
        print(
            f"\nscale {scale}, {monitors} monitor(s): {len(installed) - len(failures)} of {len(installed)} tasks succeeded"
        )
        print("; ".join(f"{name} {done[name]}/{count}" for name, count in runs.items()))
        print(*failures, *(f"not installed: {name}" for name in absent), sep="\n")
    assert len(installed) - len(failures) >= MINIMUM * len(installed), "\n".join(failures)


def run_case(case: Case, desktop: Desktop, folder: Path, scale: str, monitors: int) -> None:
    """Run a task with a scripted model, and check the result."""
    codes = [code.replace("{folder}", str(folder)) for code in case.code]
    turns = [lambda seen, code=code: code for code in codes]
    task = Task(case.name, "Go", turns, case.check, lambda world: start(case, world, scale), monitors=monitors)
    with set_up(task, desktop, folder) as world:
        # In file managers and browsers, tasks by name use the list of elements only; otherwise the model has vision.
        by_list = case.application in ("thunar", "pcmanfm", "dillo") and case.how == "name"
        world.interpreter.llm.supports_vision = not by_list
        run_all(world)
        task.check(world)


def start(case: Case, world: World, scale: str) -> None:
    """Start the application with its file or folder, on the second monitor if there are two."""
    folder = world.folder
    # Pluma finds its other windows through a socket in the temporary folder, even those of another desktop.
    env = SCALES[scale] | {"TMPDIR": str(world.desktop.folder)}
    match case.application:
        case "featherpad" | "mousepad" | "pluma" | "l3afpad":
            file = world.file("letter.txt", "Dear reader")
            options = {"featherpad": ["--standalone"], "mousepad": ["--disable-server"]}
            argv = [case.application, *options.get(case.application, []), str(file)]
            started = world.desktop.start(*argv, title="letter.txt", env=env)
        case "thunar" | "pcmanfm":
            for name in ("notes.txt", LONG_NAME):
                world.file(name, f"{name}\n")
            started = world.desktop.start(case.application, str(folder), title=folder.name, env=env)
        case "dillo":
            world.file(
                "first.html", "<title>First page</title><p>Go to <a href=second.html>the other page</a> now.</p>"
            )
            world.file("second.html", "<title>Second page</title><p>Here it ends.</p>")
            started = world.desktop.start("dillo", str(folder / "first.html"), title="First", env=env)
        case "lxterminal":
            started = world.desktop.start("lxterminal", "--no-remote", "-e", "sh", title="", env=env)
        case "xterm":
            font = ["-fa", "DejaVu Sans Mono", "-fs", str(round(10 * float(scale)))]
            started = world.desktop.start("xterm", *font, "-T", "terminal", "-e", "sh", title="terminal", env=env)
        case other:
            started = world.desktop.start(other, title=other, env=env)
    place(world, started, len(world.interpreter.computer.display.info()["monitors"]))


def place(world: World, started: Application, monitors: int) -> None:
    computer = world.interpreter.computer
    left = SIZE[0] // 2 if monitors == 2 else 0
    computer.os.move_window(started.window, x=left + 20, y=60, width=900, height=700)
    computer.display.wait_until_still(timeout=60)
    if started.title and "calculator" not in started.title:
        computer.display.wait_until_still(seconds=0.5, timeout=60)
