"""Windows and applications: listing, focusing, moving, closing, launching; notifications."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from interpreter.computer_api.screen.desktop import NoApplication, WindowError
from interpreter.errors import ComputerError
from screen.desktop import Desktop


@pytest.mark.needs("xterm", "mousepad")
def test_windows_can_be_listed_focused_moved_and_closed(desktop: Desktop, computer: Any, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("")
    # Not a shell: one that is still starting may outlive its terminal.
    editor, terminal = desktop.editor(file), desktop.terminal("sleep", "1000")
    listed = {window["id"]: window for window in computer.os.windows()}
    assert set(listed) == {editor.window, terminal.window}
    assert listed[editor.window]["application"] == "Mousepad" and listed[editor.window]["pid"] == editor.process.pid
    assert computer.os.active_window()["id"] == terminal.window
    assert computer.os.focus("letter.txt")["active"]
    assert desktop.active_window() == editor.window
    moved = computer.os.move_window("letter.txt", x=200, y=150, width=500, height=300)
    assert (moved["x"], moved["y"], moved["width"], moved["height"]) == (200, 150, 500, 300)
    with pytest.raises(WindowError, match=r"No window is 'nothing'(.|\n)*letter.txt(.|\n)*terminal"):
        computer.os.focus("nothing")
    assert computer.os.close_window(terminal.window)
    assert list(desktop.windows()) == [editor.window]


@pytest.mark.needs("mousepad")
def test_a_window_that_asks_before_closing_is_reported_as_open(
    desktop: Desktop, computer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from interpreter.computer_api.screen.platforms.x11 import screen as x11

    monkeypatch.setattr(x11, "_TIMEOUT", 1.0)
    file = tmp_path / "letter.txt"
    file.write_text("")
    desktop.editor(file)
    computer.keyboard.write("not saved")
    assert not computer.os.close_window("letter.txt")
    desktop.until(lambda: len(desktop.windows()) == 2, "the question")


@pytest.mark.full
@pytest.mark.needs("xterm")
def test_a_title_that_changes_while_being_read_is_consistent(desktop: Desktop, computer: Any) -> None:
    from Xlib.display import Display

    terminal, stop = desktop.terminal(), threading.Event()
    titles = {"short", "a title that is too long for one small answer " * 3, "terminal"}

    def rename() -> None:
        x = Display(desktop.env["DISPLAY"])
        window, name = x.create_resource_object("window", terminal.window), x.intern_atom("_NET_WM_NAME")
        while not stop.is_set():
            for title in titles:
                window.change_property(name, x.intern_atom("UTF8_STRING"), 8, title.encode())
            x.sync()
        x.close()

    thread = threading.Thread(target=rename)
    thread.start()
    try:
        listed = [computer.os.windows() for _ in range(50)]
        looked = [computer.display.info()["windows"] for _ in range(50)]
    finally:
        stop.set()
        thread.join()
    assert all(len(windows) == 1 and windows[0]["title"] in titles for windows in (*listed, *looked))


@pytest.mark.needs("xterm")
def test_applications_can_be_launched_by_name(
    desktop: Desktop, computer: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = home / ".local/share/applications"
    entries.mkdir(parents=True)
    (entries / "org.example.Notes.desktop").write_text(
        "[Desktop Entry]\nType=Application\nName=Quick Notes\nExec=xterm -T 'my notes' %F\n[Other]\nName=x\n"
    )
    window = computer.os.launch("quick notes")
    assert window["title"] == "my notes" and window["active"]
    with pytest.raises(NoApplication, match="Quick Notes"):
        computer.os.launch("quick nots")
    with pytest.raises(ComputerError, match="exited immediately with 1"):
        computer.os.launch("false")
    assert computer.os.close_window(window)
    desktop.until(lambda: not psutil.pid_exists(window["pid"]), "the program to end")


@pytest.mark.needs("mousepad")
def test_launching_a_running_application_that_opens_a_tab(desktop: Desktop, computer: Any) -> None:
    first = computer.os.launch("mousepad")
    again = computer.os.launch("mousepad")
    assert (again["id"], again["active"]) == (first["id"], True) and again["title"] != first["title"]
    assert computer.os.close_window(again)
    desktop.until(lambda: not psutil.pid_exists(first["pid"]), "the program to end")


def test_notifications_are_shown_and_shortened(desktop: Desktop, computer: Any, notifications: list[list[Any]]) -> None:
    assert computer.os.notify("Done: 3 files")
    assert computer.os.notify("x" * 500)
    assert notifications[0][3:5] == ["Open Interpreter", "Done: 3 files"]
    assert len(notifications[1][4]) == 200


def test_notify_returns_false_without_a_service(
    desktop: Desktop, computer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert computer.os.notify("hello") is False
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
    assert computer.os.notify("hello") is False


@pytest.fixture
def notifications(desktop: Desktop) -> Iterator[list[list[Any]]]:
    """A desktop notification service that records notifications."""
    from dbus_fast import Message, MessageType
    from dbus_fast.aio import MessageBus

    received: list[list[Any]] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()

    def answer(message: Message) -> Message | None:
        if message.message_type != MessageType.METHOD_CALL or message.member != "Notify":
            return None
        received.append(message.body)
        return Message.new_method_return(message, "u", [len(received)])

    async def serve() -> None:
        bus = await MessageBus(bus_address=desktop.env["DBUS_SESSION_BUS_ADDRESS"]).connect()
        bus.add_message_handler(answer)
        await bus.request_name("org.freedesktop.Notifications")
        ready.set()
        await stop.wait()
        bus.disconnect()

    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(60)
    yield received
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()
