"""Notices on the desktop, by whatever the system has for them; none of it ever fails loudly."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from shutil import which

_TITLE = "Open Interpreter"
_LIMIT = 5


def notice(text: str) -> bool:
    """Whether a notice could be shown."""
    if sys.platform == "darwin":
        script = f"display notification {_quoted(text)} with title {_quoted(_TITLE)}"
        return _ran(["osascript", "-e", script])
    return _over_the_bus(text) or _ran(["notify-send", "--app-name", _TITLE, _TITLE, text])


def _quoted(text: str) -> str:
    """A string of AppleScript."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _ran(command: list[str]) -> bool:
    if which(command[0]) is None:
        return False
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return ran.returncode == 0


def _over_the_bus(text: str) -> bool:
    """Ask the desktop's own service; in a thread, since the caller may have an event loop running."""
    shown: list[bool] = []
    thread = threading.Thread(target=lambda: shown.append(asyncio.run(_notify(text))), daemon=True, name="notice")
    thread.start()
    thread.join(2 * _LIMIT)
    return shown == [True]


async def _notify(text: str) -> bool:
    try:
        from dbus_fast import BusType, DBusError, Message, MessageType
        from dbus_fast.aio import MessageBus
        from dbus_fast.errors import InvalidAddressError
    except ImportError:
        return False
    message = Message(
        destination="org.freedesktop.Notifications",
        path="/org/freedesktop/Notifications",
        interface="org.freedesktop.Notifications",
        member="Notify",
        signature="susssasa{sv}i",
        body=[_TITLE, 0, "", _TITLE, text, [], {}, -1],
    )
    try:
        bus = await asyncio.wait_for(MessageBus(bus_type=BusType.SESSION).connect(), _LIMIT)
        try:
            answer = await asyncio.wait_for(bus.call(message), _LIMIT)
        finally:
            bus.disconnect()
    except (DBusError, InvalidAddressError, OSError, EOFError, TimeoutError):
        return False
    return answer is not None and answer.message_type == MessageType.METHOD_RETURN
