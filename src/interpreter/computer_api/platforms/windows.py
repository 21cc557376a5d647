"""Windows: the screen through mss and user32. Written from the documentation; not tested on a machine yet."""

from __future__ import annotations

import ctypes
from typing import Any

from interpreter.computer_api.platforms import Box, Window
from interpreter.computer_api.platforms.portable import CapturedScreen, CommandClipboard


class _Rectangle(ctypes.Structure):
    _fields_ = [(side, ctypes.c_long) for side in ("left", "top", "right", "bottom")]


class WindowsScreen(CapturedScreen):
    """The desktop of the signed-in user."""

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


class WindowsClipboard(CommandClipboard):
    package = "PowerShell"
    text_command = ("powershell", "-NoProfile", "-Command", "Get-Clipboard -Raw")
    put_text_command = ("powershell", "-NoProfile", "-Command", "$input | Set-Clipboard")
