"""The screen under Wayland, where programs may see it only through `grim` or the desktop's portal.

Written by the documentation of both; not tested on a machine yet.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
import uuid
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.failures import NoDisplayError, needed
from interpreter.computer_api.display.screens import Monitor, Window

if TYPE_CHECKING:
    from PIL.Image import Image

ADVICE = (
    "Under Wayland a picture of the screen needs `grim` (Sway, Hyprland and others of their kind) or your consent in "
    "the desktop's own dialog (GNOME, KDE). Which windows there are cannot be told: sign in to an X11 session for that."
)
_PORTAL = "org.freedesktop.portal."
_DESKTOP = "/org/freedesktop/portal/desktop"
# The user may be asked first.
_PATIENCE = 60.0


class Wayland:
    """What a Wayland session lets a program see: pixels, and nothing else."""

    def __init__(self) -> None:
        self.closed = False
        self._size: Box | None = None

    def monitors(self) -> list[Monitor]:
        if self._size is None:
            self._size = Box(0, 0, *self._whole().size)
        return [Monitor("screen", self._size, True)]

    def windows(self) -> list[Window]:
        return []

    def active_window(self) -> Window | None:
        return None

    def watch(self) -> None:
        return None

    def grab(self, box: Box) -> Image:
        return self._whole().crop((box.left, box.top, box.right, box.bottom))

    def _whole(self) -> Image:
        image = needed("PIL.Image", "Seeing the screen")
        raw = _by_grim() if shutil.which("grim") else _by_portal()
        found: Image = image.open(BytesIO(raw)).convert("RGB")
        return found


def _by_grim() -> bytes:
    done = subprocess.run(["grim", "-t", "png", "-l", "1", "-"], capture_output=True, timeout=30, check=False)
    if done.returncode:
        raise NoDisplayError(f"grim failed: {done.stderr.decode('utf-8', 'replace').strip()[:200]}. {ADVICE}")
    return done.stdout


def _by_portal() -> bytes:
    found: list[str] = []

    def ask() -> None:
        try:
            found.append(asyncio.run(_address_of_picture()))
        except (OSError, EOFError, TimeoutError, ValueError, NoDisplayError):
            pass

    needed("dbus_fast", "Seeing the screen under Wayland")
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE + 5)
    if not found:
        raise NoDisplayError(ADVICE)
    file = Path(unquote(urlparse(found[0]).path))
    raw = file.read_bytes()
    file.unlink(missing_ok=True)
    return raw


async def _address_of_picture() -> str:
    """Ask the portal for a picture, and hear where it has put it."""
    from dbus_fast import BusType, Message, MessageType, Variant
    from dbus_fast.aio import MessageBus

    bus = await MessageBus(bus_type=BusType.SESSION).connect()
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def hear(message: Any) -> None:
        if message.message_type is MessageType.SIGNAL and message.member == "Response" and not told.done():
            code, results = message.body
            if code == 0 and "uri" in results:
                told.set_result(results["uri"].value)
            else:
                told.set_exception(NoDisplayError(ADVICE))

    try:
        bus.add_message_handler(hear)
        rule = [f"type='signal',interface='{_PORTAL}Request',member='Response'"]
        daemon = "org.freedesktop.DBus"
        await bus.call(Message(daemon, "/org/freedesktop/DBus", daemon, "AddMatch", signature="s", body=rule))
        options = {"handle_token": Variant("s", f"i{uuid.uuid4().hex}"), "interactive": Variant("b", False)}
        place = (_PORTAL + "Desktop", _DESKTOP, _PORTAL + "Screenshot", "Screenshot")
        reply = await bus.call(Message(*place, signature="sa{sv}", body=["", options]))
        if reply is None or reply.message_type is MessageType.ERROR:
            raise NoDisplayError(ADVICE)
        async with asyncio.timeout(_PATIENCE):
            return await told
    finally:
        bus.disconnect()
