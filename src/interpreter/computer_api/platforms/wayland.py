"""Wayland: pixels through `grim` or the desktop's portal, keys through `wtype`, the mouse through `ydotool`.

Written from their documentation; not tested on a machine yet.
"""

from __future__ import annotations

import time
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.platforms import (
    Box,
    InputDevice,
    Monitor,
    NoDisplayError,
    Screen,
    needed,
    run_async,
)
from interpreter.computer_api.platforms.portable import keysym_name
from interpreter.errors import ComputerError
from interpreter.host import processes

if TYPE_CHECKING:
    from PIL.Image import Image

ADVICE = (
    "On Wayland, a screenshot needs `grim` (Sway, Hyprland and similar) or your consent in the desktop's dialog "
    "(GNOME, KDE). Listing windows is not possible; log in with an X11 session for that."
)
_PORTAL = "org.freedesktop.portal."
_DOWN, _UP = 0x40, 0x80
_MODIFIERS = {"ctrl": "ctrl", "shift": "shift", "alt": "alt", "super": "logo", "altgr": "altgr"}
_COMMAND_LIMIT = 30


class WaylandScreen(Screen):
    """What a Wayland session lets a program see: pixels, and nothing else."""

    def __init__(self) -> None:
        self._size: Box | None = None

    def monitors(self) -> list[Monitor]:
        if self._size is None:
            self._size = Box(0, 0, *self._whole().size)
        return [Monitor("screen", self._size, True)]

    def grab(self, box: Box) -> Image:
        return self._whole().crop((box.left, box.top, box.right, box.bottom))

    def _whole(self) -> Image:
        image = needed("PIL.Image", "Seeing the screen")
        if processes.which("grim"):
            done = processes.run(["grim", "-t", "png", "-l", "1", "-"], timeout=_COMMAND_LIMIT)
            if done.returncode:
                raise NoDisplayError(f"grim failed: {done.complaint[:200]}. {ADVICE}")
            png = done.stdout
        else:
            from urllib.parse import unquote, urlparse

            needed("dbus_fast", "Seeing the screen under Wayland")
            try:
                address = run_async(_address_of_picture, 60.0)  # the desktop may ask the user first
            except (OSError, EOFError, TimeoutError, ValueError) as error:
                raise NoDisplayError(ADVICE) from error
            file = Path(unquote(urlparse(address).path))
            png = file.read_bytes()
            file.unlink(missing_ok=True)
        found: Image = image.open(BytesIO(png)).convert("RGB")
        return found


async def _address_of_picture() -> str:
    """Ask the portal for a picture, and wait until it says where it has put it."""
    import asyncio
    import uuid

    from dbus_fast import BusType, Message, MessageType, Variant
    from dbus_fast.aio import MessageBus

    bus = await MessageBus(bus_type=BusType.SESSION).connect()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def receive(message: Any) -> None:
        if message.message_type is MessageType.SIGNAL and message.member == "Response" and not address.done():
            code, results = message.body
            if code == 0 and "uri" in results:
                address.set_result(results["uri"].value)
            else:
                address.set_exception(NoDisplayError(ADVICE))

    try:
        bus.add_message_handler(receive)
        rule = [f"type='signal',interface='{_PORTAL}Request',member='Response'"]
        daemon = "org.freedesktop.DBus"
        await bus.call(Message(daemon, "/org/freedesktop/DBus", daemon, "AddMatch", signature="s", body=rule))
        options = {"handle_token": Variant("s", f"i{uuid.uuid4().hex}"), "interactive": Variant("b", False)}
        place = (_PORTAL + "Desktop", "/org/freedesktop/portal/desktop", _PORTAL + "Screenshot", "Screenshot")
        reply = await bus.call(Message(*place, signature="sa{sv}", body=["", options]))
        if reply is None or reply.message_type is MessageType.ERROR:
            raise NoDisplayError(ADVICE)
        return await address
    finally:
        bus.disconnect()


class WaylandInput(InputDevice):
    """What Wayland lets a program do: type with wtype, move and click with ydotool."""

    def __init__(self) -> None:
        super().__init__()
        if processes.which("wtype") is None and processes.which("ydotool") is None:
            raise ComputerError(
                "On Wayland, the keyboard needs the program wtype, and the mouse needs ydotool with its daemon "
                "ydotoold. Install them, or log in with an X11 session."
            )
        self._at = (-1, -1)  # where we put it: Wayland does not say where it is

    def position(self) -> tuple[int, int]:
        return self._at

    def move(self, x: int, y: int) -> None:
        _run("ydotool", "mousemove", "--absolute", "-x", str(x), "-y", str(y))
        self._at = (x, y)

    def button(self, button: str, down: bool) -> None:
        self.held_buttons.add(button) if down else self.held_buttons.discard(button)
        _run("ydotool", "click", hex({"left": 0, "right": 1, "middle": 2}[button] | (_DOWN if down else _UP)))

    def scroll(self, up: int, right: int) -> None:
        _run("ydotool", "mousemove", "--wheel", "-x", str(right), "-y", str(up))

    def key(self, key: str, down: bool) -> None:
        self.held_keys.add(key) if down else self.held_keys.discard(key)
        if key in _MODIFIERS:
            _run("wtype", "-M" if down else "-m", _MODIFIERS[key])
        else:
            _run("wtype", "-P" if down else "-p", key if len(key) == 1 else keysym_name(key))

    def type(self, text: str, interval: float) -> None:
        _run("wtype", "-d", str(round(interval * 1000)), "--", text)

    def settle(self) -> None:
        time.sleep(0.15)  # nothing tells when the application has handled the input


def _run(program: str, *options: str) -> None:
    if processes.which(program) is None:
        raise ComputerError(f"On Wayland, this needs the program {program}. Install it, or log in with an X11 session.")
    ran = processes.run([program, *options], timeout=_COMMAND_LIMIT)
    if ran.returncode:
        raise ComputerError(f"{program} failed: {ran.complaint}")
