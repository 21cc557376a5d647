"""Back ends for macOS, Windows and Wayland: pixels by mss (also on X11), mouse and keys by pynput, others by commands.

All but the pixels are written from documentation; they have not been tested on a machine yet.
"""

from __future__ import annotations

import ctypes
import json
import sys
import threading
import time
import weakref
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.screen.platforms import (
    PNG,
    Box,
    DesktopApplication,
    InputDevice,
    Monitor,
    NoDisplayError,
    Screen,
    SystemClipboard,
    UnknownKey,
    Window,
    needed,
    platform_name,
    run_async,
)
from interpreter.errors import ComputerError
from interpreter.host import processes

if TYPE_CHECKING:
    from PIL.Image import Image


# Names of keys that differ in pynput.
_PYNPUT_NAMES = {
    "pageup": "page_up",
    "pagedown": "page_down",
    "capslock": "caps_lock",
    "numlock": "num_lock",
    "scrolllock": "scroll_lock",
    "printscreen": "print_screen",
    "ctrlright": "ctrl_r",
    "shiftright": "shift_r",
    "altright": "alt_r",
    "altgr": "alt_gr",
    "super": "cmd",
    "superright": "cmd_r",
    "volumeup": "media_volume_up",
    "volumedown": "media_volume_down",
    "volumemute": "media_volume_mute",
    "playpause": "media_play_pause",
    "nexttrack": "media_next",
    "prevtrack": "media_previous",
}
_DIGITS = "0123456789"
_CHARACTERS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "decimal": ".",
    **{f"num{digit}": digit for digit in _DIGITS},
}
# Names of keys that are not characters, in X11 and for wtype.
_KEYSYMS = {
    "enter": "Return",
    "esc": "Escape",
    "tab": "Tab",
    "space": "space",
    "backspace": "BackSpace",
    "delete": "Delete",
    "insert": "Insert",
    "home": "Home",
    "end": "End",
    "pageup": "Prior",
    "pagedown": "Next",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "capslock": "Caps_Lock",
    "numlock": "Num_Lock",
    "scrolllock": "Scroll_Lock",
    "printscreen": "Print",
    "pause": "Pause",
    "menu": "Menu",
    "ctrl": "Control_L",
    "ctrlright": "Control_R",
    "shift": "Shift_L",
    "shiftright": "Shift_R",
    "alt": "Alt_L",
    "altright": "Alt_R",
    "altgr": "ISO_Level3_Shift",
    "super": "Super_L",
    "superright": "Super_R",
    "add": "KP_Add",
    "subtract": "KP_Subtract",
    "multiply": "KP_Multiply",
    "divide": "KP_Divide",
    "decimal": "KP_Decimal",
    "volumeup": "XF86_AudioRaiseVolume",
    "volumedown": "XF86_AudioLowerVolume",
    "volumemute": "XF86_AudioMute",
    "playpause": "XF86_AudioPlay",
    "nexttrack": "XF86_AudioNext",
    "prevtrack": "XF86_AudioPrev",
    "browserback": "XF86_Back",
    "browserforward": "XF86_Forward",
    **{f"num{digit}": f"KP_{digit}" for digit in _DIGITS},
}
# The package of a clipboard's commands, and the commands themselves.
_CLIPBOARDS: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "wayland": (
        "wl-clipboard",
        {
            "text": ("wl-paste", "--no-newline", "--type", "text/plain"),
            "put_text": ("wl-copy", "--type", "text/plain"),
            "image": ("wl-paste", "--type", PNG),
            "put_image": ("wl-copy", "--type", PNG),
            "selection": ("wl-paste", "--no-newline", "--primary"),
        },
    ),
    "macos": ("macOS", {"text": ("pbpaste",), "put_text": ("pbcopy",)}),
    "windows": (
        "PowerShell",
        {
            "text": ("powershell", "-NoProfile", "-Command", "Get-Clipboard -Raw"),
            "put_text": ("powershell", "-NoProfile", "-Command", "$input | Set-Clipboard"),
        },
    ),
}
_LONG_TEXT = 500
_COMMAND_TIMEOUT = 10


class CapturedScreen(Screen):
    """A screen that mss captures; used by one thread at a time."""

    def __init__(self, display: str | None = None) -> None:
        self._lock = threading.RLock()
        module = needed("mss", "Seeing the screen")
        self._error = module.exception.ScreenShotError
        try:
            self._mss: Any = module.MSS(display=display) if display else module.MSS()
        except self._error as error:
            raise NoDisplayError(f"Can't capture the screen: {error}") from error
        weakref.finalize(self, self._mss.close)

    def grab(self, box: Box) -> Image:
        """Capture a box at its own size in pixels, even on a HiDPI screen."""
        image = needed("PIL.Image", "Seeing the screen")
        with self._lock:
            try:
                shot = self._mss.grab({"left": box.left, "top": box.top, "width": box.width, "height": box.height})
            except self._error as error:
                self.closed = True
                raise NoDisplayError(f"Can't capture the screen any longer: {error}") from error
        captured: Image = image.frombytes("RGB", (shot.width, shot.height), bytes(shot.bgra), "raw", "BGRX")
        return captured if captured.size == (box.width, box.height) else captured.resize((box.width, box.height))

    def monitors(self) -> list[Monitor]:
        with self._lock:
            screens = self._mss.monitors[1:]
        return [
            Monitor(f"screen {number}", Box(each["left"], each["top"], each["width"], each["height"]), number == 0)
            for number, each in enumerate(screens)
        ]


class PynputInput(InputDevice):
    """Mouse and keyboard of Windows and of macOS, which asks the user once to allow Accessibility."""

    def __init__(self) -> None:
        super().__init__()
        self._mouse = needed("pynput.mouse", "Using mouse and keyboard")
        self._keyboard = needed("pynput.keyboard", "Using mouse and keyboard")
        self._pointer, self._keys = self._mouse.Controller(), self._keyboard.Controller()

    def position(self) -> tuple[int, int]:
        x, y = self._pointer.position
        return round(x), round(y)

    def move(self, x: int, y: int) -> None:
        self._pointer.position = (x, y)

    def button(self, button: str, down: bool) -> None:
        self.held_buttons.add(button) if down else self.held_buttons.discard(button)
        which = getattr(self._mouse.Button, button)
        self._pointer.press(which) if down else self._pointer.release(which)

    def scroll(self, up: int, right: int) -> None:
        self._pointer.scroll(right, up)

    def key(self, key: str, down: bool) -> None:
        self.held_keys.add(key) if down else self.held_keys.discard(key)
        which: Any = _CHARACTERS.get(key, key)
        if len(which) > 1:
            which = getattr(self._keyboard.Key, _PYNPUT_NAMES.get(key, key), None)
        if which is None:
            raise UnknownKey(f"{sys.platform} has no key {key!r}.")
        self._keys.press(which) if down else self._keys.release(which)

    def type(self, text: str, interval: float) -> None:
        for character in text:
            self._keys.type(character)  # a line break as Enter, a tab as Tab
            time.sleep(interval)

    def pastes(self, text: str) -> bool:
        return len(text) > _LONG_TEXT


class PynputStopKey:
    """Waits for the stop key; macOS asks the user once to allow Input Monitoring. Corners are not watched."""

    def __init__(
        self, keys: tuple[str, ...], stopped: Callable[[], None], in_corner: Callable[[], None] | None
    ) -> None:
        keyboard = needed("pynput.keyboard", "The stop key")
        spelled = "+".join(key if len(key) == 1 else f"<{_PYNPUT_NAMES.get(key, key)}>" for key in keys)
        listener = keyboard.GlobalHotKeys({spelled: stopped})
        listener.start()
        self.close = listener.stop


class CommandClipboard(SystemClipboard):
    """The clipboard behind the commands of a platform."""

    def __init__(self) -> None:
        package, self._commands = _CLIPBOARDS[platform_name()]
        program = self._commands["text"][0]
        if processes.which(program) is None:
            raise ComputerError(f"The clipboard needs the command {program}, from the package {package}.")

    def text(self) -> str | None:
        return self._text("text")

    def image(self) -> bytes | None:
        return self._output("image")

    def selected_text(self) -> str | None:
        return self._text("selection")

    def put_text(self, text: str) -> None:
        self._put("put_text", text.encode())

    def put_image(self, png: bytes) -> None:
        if "put_image" not in self._commands:
            raise ComputerError("Copying images is not supported on this system. Save it to a file instead.")
        self._put("put_image", png)

    def _text(self, what: str) -> str | None:
        output = self._output(what)
        return None if output is None else output.decode("utf-8", "replace")

    def _output(self, what: str) -> bytes | None:
        if what not in self._commands:
            return None
        ran = processes.run(self._commands[what], timeout=_COMMAND_TIMEOUT)
        return ran.stdout if ran.returncode == 0 else None

    def _put(self, what: str, data: bytes) -> None:
        """Give data to a command that may keep running to serve it, so don't wait for its output."""
        command = self._commands[what]
        process = processes.start(command, stdin=processes.PIPE)
        process.communicate(data, _COMMAND_TIMEOUT)
        if process.returncode:
            raise ComputerError(f"{command[0]} could not copy: it exited with {process.returncode}.")


def keysym_name(key: str) -> str:
    """Return the X11 name of a key that is not a character."""
    return _KEYSYMS.get(key) or key.upper()


_TIMEOUT = 20
_ALL = """
const found = [];
for (const p of Application("System Events").processes.whose({visible: true})()) {
  p.windows().forEach((w, i) => {
    found.push({pid: p.unixId(), application: p.name(), title: w.name() || "", box: [...w.position(), ...w.size()],
                active: p.frontmost() && i === 0});
  });
}
JSON.stringify(found)
"""
_ONE = """
const p = Application("System Events").processes.whose({{unixId: {pid}}})()[0];
const w = p.windows.whose({{name: {title}}})()[0];
{action}
"""


class MacScreen(CapturedScreen):
    """The screen of the signed-in user, counted in points as the mouse does."""

    def __init__(self) -> None:
        self._quartz: Any = needed("Quartz", "Seeing the screen of macOS")
        if not self._quartz.CGPreflightScreenCaptureAccess():
            self._quartz.CGRequestScreenCaptureAccess()
            raise NoDisplayError(
                "macOS does not let this program see the screen. Open System Settings > Privacy & Security, allow "
                "your terminal under Screen & System Audio Recording (to see) and under Accessibility (to use mouse "
                "and keyboard), and restart it."
            )
        super().__init__()

    def windows(self) -> list[Window]:
        quartz = self._quartz
        which = quartz.kCGWindowListOptionOnScreenOnly | quartz.kCGWindowListExcludeDesktopElements
        windows = []
        for each in quartz.CGWindowListCopyWindowInfo(which, quartz.kCGNullWindowID) or ():
            bounds = each.get("kCGWindowBounds", {})
            box = Box(*(int(bounds.get(name, 0)) for name in ("X", "Y", "Width", "Height")))
            owner = str(each.get("kCGWindowOwnerName", ""))
            title = str(each.get("kCGWindowName", "") or owner)
            # The layer of ordinary windows is 0; menus, the bar and the dock are above.
            popup = each.get("kCGWindowLayer", 0) != 0
            pid = each.get("kCGWindowOwnerPID")
            if box.area:
                windows.append(Window(int(each["kCGWindowNumber"]), title, owner, box, box, pid, popup))
        return windows

    def active_window(self) -> Window | None:
        return next((window for window in self.windows() if not window.popup), None)


class MacWindows:
    """The windows of all applications. Windows have no number here, so their position in the list is their id."""

    def all(self) -> list[Window]:
        windows = []
        for number, each in enumerate(json.loads(_script(_ALL)), 1):
            box = Box(*each["box"])
            windows.append(
                Window(number, each["title"], each["application"], box, box, each["pid"], active=each["active"])
            )
        return windows

    def focus(self, window: int) -> bool:
        self._tell(self._window(window), 'p.frontmost = true; w.actions["AXRaise"].perform();')
        return True

    def set_geometry(self, window: int, x: int | None, y: int | None, width: int | None, height: int | None) -> None:
        now = self._window(window)
        wanted = [
            given if given is not None else old for given, old in zip((x, y, width, height), now.box, strict=True)
        ]
        self._tell(now, f"w.position = {wanted[:2]}; w.size = {wanted[2:]};")

    def close(self, window: int) -> bool:
        before = self._window(window)
        self._tell(before, 'w.buttons.whose({subrole: "AXCloseButton"})()[0].click();')
        return not any((each.pid, each.title) == (before.pid, before.title) for each in self.all())

    def launch(self, application: DesktopApplication, args: list[str]) -> Window:
        # With -W it would wait for the end; without, it waits until the application has started.
        ran = processes.run([*application.command, *args], timeout=_TIMEOUT * 3)
        if ran.returncode:
            raise ComputerError(ran.complaint)
        window = next((each for each in self.all() if each.active), None)
        if window is None:
            raise ComputerError(f"{application.name} was started, but shows no window.")
        return window

    def _window(self, number: int) -> Window:
        return next(each for each in self.all() if each.id == number)

    def _tell(self, window: Window, action: str) -> None:
        _script(_ONE.format(pid=window.pid, title=json.dumps(window.title), action=action))


def _script(source: str) -> str:
    ran = processes.run(["osascript", "-l", "JavaScript", "-e", source], timeout=_TIMEOUT)
    if ran.returncode:
        raise ComputerError(
            f"macOS did not allow it: {ran.complaint}. Allow it in System Settings, Privacy & Security, Accessibility."
        )
    return ran.text


class _Rectangle(ctypes.Structure):
    _fields_ = [(side, ctypes.c_long) for side in ("left", "top", "right", "bottom")]


class WindowsScreen(CapturedScreen):
    def __init__(self) -> None:
        super().__init__()
        self._user: Any = vars(ctypes)["windll"].user32

    def windows(self) -> list[Window]:
        handles: list[int] = []
        kind = vars(ctypes)["WINFUNCTYPE"](ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)

        def each(handle: int, _: Any) -> bool:
            handles.append(handle)
            return True

        self._user.EnumWindows(kind(each), 0)  # topmost first
        seen = (handle for handle in handles if self._user.IsWindowVisible(handle) and not self._user.IsIconic(handle))
        return [window for handle in seen if (window := self._window(handle)).title and window.box.area]

    def active_window(self) -> Window | None:
        handle = self._user.GetForegroundWindow()
        return self._window(handle) if handle else None

    def _window(self, handle: int) -> Window:
        text = ctypes.create_unicode_buffer(512)
        self._user.GetWindowTextW(handle, text, 512)
        corners, pid = _Rectangle(), ctypes.c_ulong()
        self._user.GetWindowRect(handle, ctypes.byref(corners))
        self._user.GetWindowThreadProcessId(handle, ctypes.byref(pid))
        box = Box.between(corners.left, corners.top, corners.right, corners.bottom)
        return Window(handle, text.value, "", box, box, pid.value)


# -- Wayland: pixels through `grim` or the desktop's portal, keys through `wtype`, the mouse through `ydotool` --------

_WAYLAND_ADVICE = (
    "On Wayland, a screenshot needs `grim` (Sway, Hyprland and similar) or your consent in the desktop's dialog "
    "(GNOME, KDE). Listing windows is not possible; log in with an X11 session for that."
)
_PORTAL = "org.freedesktop.portal."
_DOWN, _UP = 0x40, 0x80  # of a button, for ydotool
_WTYPE_MODIFIERS = {"ctrl": "ctrl", "shift": "shift", "alt": "alt", "super": "logo", "altgr": "altgr"}
_WAYLAND_TIMEOUT = 30


class WaylandScreen(Screen):
    """The part of a Wayland session that a program can see: pixels, and nothing else."""

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
            done = processes.run(["grim", "-t", "png", "-l", "1", "-"], timeout=_WAYLAND_TIMEOUT)
            if done.returncode:
                raise NoDisplayError(f"grim failed: {done.complaint[:200]}. {_WAYLAND_ADVICE}")
            png = done.stdout
        else:
            from urllib.parse import unquote, urlparse

            needed("dbus_fast", "Seeing the screen under Wayland")
            try:
                address = run_async(_address_of_picture, 60.0)  # the desktop may ask the user first
            except (OSError, EOFError, TimeoutError, ValueError) as error:
                raise NoDisplayError(_WAYLAND_ADVICE) from error
            file = Path(unquote(urlparse(address).path))
            png = file.read_bytes()
            file.unlink(missing_ok=True)
        whole: Image = image.open(BytesIO(png)).convert("RGB")
        return whole


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
                address.set_exception(NoDisplayError(_WAYLAND_ADVICE))

    try:
        bus.add_message_handler(receive)
        rule = [f"type='signal',interface='{_PORTAL}Request',member='Response'"]
        daemon = "org.freedesktop.DBus"
        await bus.call(Message(daemon, "/org/freedesktop/DBus", daemon, "AddMatch", signature="s", body=rule))
        options = {"handle_token": Variant("s", f"i{uuid.uuid4().hex}"), "interactive": Variant("b", False)}
        portal_method = (_PORTAL + "Desktop", "/org/freedesktop/portal/desktop", _PORTAL + "Screenshot", "Screenshot")
        reply = await bus.call(Message(*portal_method, signature="sa{sv}", body=["", options]))
        if reply is None or reply.message_type is MessageType.ERROR:
            raise NoDisplayError(_WAYLAND_ADVICE)
        return await address
    finally:
        bus.disconnect()


class WaylandInput(InputDevice):
    """Input under Wayland: wtype types, ydotool moves and clicks."""

    def __init__(self) -> None:
        super().__init__()
        if processes.which("wtype") is None and processes.which("ydotool") is None:
            raise ComputerError(
                "On Wayland, the keyboard needs the program wtype, and the mouse needs ydotool with its daemon "
                "ydotoold. Install them, or log in with an X11 session."
            )
        self._at = (-1, -1)  # the position that we gave the pointer: Wayland doesn't report it

    def position(self) -> tuple[int, int]:
        return self._at

    def move(self, x: int, y: int) -> None:
        _run_tool("ydotool", "mousemove", "--absolute", "-x", str(x), "-y", str(y))
        self._at = (x, y)

    def button(self, button: str, down: bool) -> None:
        self.held_buttons.add(button) if down else self.held_buttons.discard(button)
        _run_tool("ydotool", "click", hex({"left": 0, "right": 1, "middle": 2}[button] | (_DOWN if down else _UP)))

    def scroll(self, up: int, right: int) -> None:
        _run_tool("ydotool", "mousemove", "--wheel", "-x", str(right), "-y", str(up))

    def key(self, key: str, down: bool) -> None:
        self.held_keys.add(key) if down else self.held_keys.discard(key)
        if key in _WTYPE_MODIFIERS:
            _run_tool("wtype", "-M" if down else "-m", _WTYPE_MODIFIERS[key])
        else:
            _run_tool("wtype", "-P" if down else "-p", key if len(key) == 1 else keysym_name(key))

    def type(self, text: str, interval: float) -> None:
        _run_tool("wtype", "-d", str(round(interval * 1000)), "--", text)

    def settle(self) -> None:
        time.sleep(0.15)  # no event reports that the application has handled the input


def _run_tool(program: str, *options: str) -> None:
    if processes.which(program) is None:
        raise ComputerError(f"On Wayland, this needs the program {program}. Install it, or log in with an X11 session.")
    ran = processes.run([program, *options], timeout=_WAYLAND_TIMEOUT)
    if ran.returncode:
        raise ComputerError(f"{program} failed: {ran.complaint}")
