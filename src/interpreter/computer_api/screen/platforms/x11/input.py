"""Pointer and keys of an X display through the XTest extension, and the stop key through XRecord."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, wraps
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from Xlib import XK, X
from Xlib.error import ConnectionClosedError, XError
from Xlib.ext import record, xtest
from Xlib.protocol import rq
from Xlib.protocol.event import ClientMessage

from interpreter.computer_api.screen.platforms import (
    InputDevice,
    NoDisplayError,
    UnknownKey,
    in_corner,
    is_terminal,
)
from interpreter.computer_api.screen.platforms.portable import keysym_name
from interpreter.computer_api.screen.platforms.x11 import X11Connection
from interpreter.errors import ComputerError

_BUTTONS = {"left": 1, "middle": 2, "right": 3}
_UP, _DOWN, _LEFT, _RIGHT = 4, 5, 6, 7
# How many characters are sent before the application is asked whether it keeps up.
_CHUNK = 400
# Longer texts are pasted where that is possible.
_LONG_TEXT = 1500
_ANSWER_TIMEOUT = 10.0
_UNKNOWN_WAIT = 0.15  # for an application that gives no sign
_POLL_INTERVAL = 0.01
_PINGS = count(int(time.monotonic() * 1000) % 2**30)
# The state bits that hold the active layout of a keyboard with several.
_GROUP_SHIFT, _GROUP_BITS = 13, 3
_MODIFIERS = {"ctrl": "Control", "alt": "Mod1", "shift": "Shift", "super": "Mod4"}


class Stroke(NamedTuple):
    """A key, and whether Shift is pressed with it."""

    code: int
    shift: bool = False


@cache
def keysym_of(key: str) -> int:
    """Return X11's number for a key or a character: Latin-1 as it is, anything else by its Unicode number."""
    if len(key) > 1 or key in "\n\r\t":
        XK.load_keysym_group("xf86")
        return int(XK.string_to_keysym(keysym_name({"\n": "enter", "\r": "enter", "\t": "tab"}.get(key, key))))
    number = ord(key)
    return number if 0x20 <= number <= 0x7E or 0xA0 <= number <= 0xFF else 0x01000000 | number


class Keymap:
    """The display's keymap as it is now; characters that it lacks are put on its spare keys."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._first = display.display.info.min_keycode
        self._last = display.display.info.max_keycode
        self._borrowed: dict[int, int] = {}
        self.read()

    def read(self) -> None:
        """Read the keymap again: the user may have changed the layout."""
        codes = range(self._first, self._last + 1)
        rows = self._display.get_keyboard_mapping(self._first, len(codes))
        self._rows = {code: list(row) for code, row in zip(codes, rows, strict=False)}
        self._borrowed = {sym: code for sym, code in self._borrowed.items() if sym in self._rows[code]}
        for code in self._borrowed.values():
            self._rows[code] = [0] * len(self._rows[code])
        group = self._display.screen().root.query_pointer().mask >> _GROUP_SHIFT & _GROUP_BITS
        self._strokes: dict[int, Stroke] = {}
        for first in (2 * group, 0):
            for code, row in self._rows.items():
                plain, shifted = (row[column] if column < len(row) else 0 for column in (first, first + 1))
                if plain:
                    self._strokes.setdefault(plain, Stroke(code))
                    capital = chr(plain & 0xFFFFFF).upper()
                    if not shifted:  # a letter alone on its key: Shift makes it a capital
                        keysym = keysym_of(capital) if len(capital) == 1 else plain
                        self._strokes.setdefault(keysym, Stroke(code, True))
                if shifted:
                    self._strokes.setdefault(shifted, Stroke(code, True))
        # The highest first: a keyboard is more likely to have the low ones.
        free = [code for code, row in self._rows.items() if not any(row)][::-1]
        self.room = len(free)
        self._spare = [code for code in free if code not in self._borrowed.values()]

    def stroke(self, keysym: int) -> Stroke | None:
        """Return the stroke that makes a keysym; None if no key makes it."""
        return Stroke(self._borrowed[keysym]) if keysym in self._borrowed else self._strokes.get(keysym)

    def is_rare(self, keysym: int) -> bool:
        """Return whether only a spare key can make it; there are `room` of those."""
        return keysym not in self._strokes

    def borrow(self, keysyms: Iterable[int]) -> bool:
        """Map the characters without a key to spare keys, all at once. Return whether the keymap changed."""
        wanted = [keysym for keysym in dict.fromkeys(keysyms) if self.is_rare(keysym)]
        if sum(keysym not in self._borrowed for keysym in wanted) > len(self._spare):
            self.give_back()
        new = [keysym for keysym in wanted if keysym not in self._borrowed]
        for keysym in new:
            code = self._borrowed[keysym] = self._spare.pop(0)
            # The same on every level and layout, so that no modifier changes it.
            self._display.change_keyboard_mapping(code, [[keysym] * len(self._rows[code])])
        self._display.sync()
        return bool(new)

    def give_back(self) -> None:
        """Restore the spare keys."""
        for code in self._borrowed.values():
            self._display.change_keyboard_mapping(code, [self._rows[code]])
            self._spare.append(code)
        self._borrowed.clear()
        self._display.sync()


Method = TypeVar("Method", bound=Callable[..., Any])


def exclusive(method: Method) -> Method:
    """Let one thread at a time use the device; if an interrupt has cut it off, over a new connection."""

    @wraps(method)
    def call(self: X11Input, *args: Any) -> Any:
        with self._lock:
            if self._x.is_lost:
                self._connect()
                self.release()
            try:
                return method(self, *args)
            except ConnectionClosedError as error:
                raise NoDisplayError("The connection to the mouse and keyboard was lost. Try again.") from error

    return cast("Method", call)


class X11Input(InputDevice):
    """Moves and types as the user's own devices do; one thread at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._connect()

    def _connect(self) -> None:
        self._x = X11Connection()
        if self._x.display.query_extension("XTEST") is None:
            raise NoDisplayError(
                "This X server does not let programs use the mouse and keyboard: it has no XTEST extension."
            )
        self._keymap = Keymap(self._x.display)
        self._strokes: dict[str, Stroke] = {}  # of the held keys

    @exclusive
    def size(self) -> tuple[int, int]:
        size = self._x.root.get_geometry()
        return size.width, size.height

    @exclusive
    def position(self) -> tuple[int, int]:
        where = self._x.root.query_pointer()
        return where.root_x, where.root_y

    @exclusive
    def move(self, x: int, y: int) -> None:
        self._fake(X.MotionNotify, 0, x, y)
        self._x.display.sync()

    @exclusive
    def button(self, button: str, down: bool) -> None:
        self._press_button(_BUTTONS[button], down)

    @exclusive
    def scroll(self, up: int, right: int) -> None:
        turns = [_UP if up > 0 else _DOWN] * abs(up) + [_RIGHT if right > 0 else _LEFT] * abs(right)
        for turn in turns:
            self._press_button(turn, True)
            self._press_button(turn, False)

    @exclusive
    def key(self, key: str, down: bool) -> None:
        # A key that was not held is released all the same: another program may have left it down.
        stroke = self._strokes.pop(key, None)
        if stroke is None:
            keysym = keysym_of(key)
            self._keymap.read()
            if len(key) == 1 and self._keymap.borrow([keysym]):
                self.settle()
            stroke = self._keymap.stroke(keysym)
        if stroke is None:
            raise UnknownKey(f"The keyboard of this display has no key {key!r}.")
        if down:
            self._strokes[key] = stroke
        self._stroke(stroke, down)
        self._x.display.sync()

    @exclusive
    def type(self, text: str, interval: float) -> None:
        if self._x.display.get_input_focus().focus == X.NONE:
            raise ComputerError(
                "No window has the keyboard focus. Click in one, or use computer.os.focus, then type again."
            )
        self._keymap.read()
        locked = self._x.root.query_pointer().mask & X.LockMask
        caps_lock = self._keymap.stroke(XK.XK_Caps_Lock) if locked else None
        if caps_lock:
            self._tap(caps_lock)
        try:
            for portion in self._portions(text):
                self._type_portion(portion, interval)
                self.settle()
        finally:
            if caps_lock:
                self._tap(caps_lock)
                self._x.display.sync()

    @exclusive
    def pastes(self, text: str) -> bool:
        self._keymap.read()
        many = sum(self._keymap.is_rare(keysym_of(c)) for c in set(text)) > self._keymap.room
        return many or (len(text) > _LONG_TEXT and not self.in_terminal())

    @exclusive
    def in_terminal(self) -> bool:
        active = self._x.active_window()
        return bool(active) and is_terminal(self._x.text(self._x.window(active), "WM_CLASS"))

    @exclusive
    def settle(self) -> None:
        """Wait until the window in front has read everything that was sent before."""
        self._x.display.sync()
        number = self._x.active_window()
        window = self._x.window(number)
        if number and self._x.atom("_NET_WM_PING") in self._x.numbers(window, "WM_PROTOCOLS"):
            _wait_for_ping(self._x, window)
        else:
            _wait_for_sleep(next(iter(self._x.numbers(window, "_NET_WM_PID")), 0) if number else 0)

    @exclusive
    def release(self) -> None:
        # If the display is gone, everything held is gone with it.
        with suppress(ConnectionClosedError, OSError):
            self._strokes.clear()
            # Also what typing held when it was interrupted, Shift above all. Keys that the user holds are not ours.
            pressed = self._x.display.query_keymap()
            for code in range(8 * len(pressed)):
                if pressed[code // 8] >> code % 8 & 1:
                    self._fake(X.KeyRelease, code)
            held = self._x.root.query_pointer().mask
            for number in _BUTTONS.values():
                if held & X.Button1Mask << number - 1:
                    self._fake(X.ButtonRelease, number)
            self._keymap.give_back()

    def close(self) -> None:
        if not self._x.is_lost:
            self.release()
        self._x.close()

    def _fake(self, event: int, detail: int, x: int = 0, y: int = 0) -> None:
        xtest.fake_input(self._x.display, event, detail, x=x, y=y)

    def _press_button(self, number: int, down: bool) -> None:
        self._fake(X.ButtonPress if down else X.ButtonRelease, number)
        self._x.display.sync()

    def _stroke(self, stroke: Stroke, down: bool) -> None:
        shift = self._keymap.stroke(XK.XK_Shift_L) if stroke.shift else None
        if shift and down:
            self._fake(X.KeyPress, shift.code)
        self._fake(X.KeyPress if down else X.KeyRelease, stroke.code)
        if shift and not down:
            self._fake(X.KeyRelease, shift.code)

    def _tap(self, stroke: Stroke) -> None:
        self._stroke(stroke, True)
        self._stroke(stroke, False)

    def _portions(self, text: str) -> list[str]:
        """Split a text so that no part needs more borrowed keys than there are."""
        portions, rare, begin = [], set[str](), 0
        for index, character in enumerate(text):
            new = character not in rare and self._keymap.is_rare(keysym_of(character))
            if index - begin >= _CHUNK or (new and len(rare) == self._keymap.room):
                portions.append(text[begin:index])
                rare, begin = set(), index
            if new:
                rare.add(character)
        return [*portions, text[begin:]]

    def _type_portion(self, portion: str, interval: float) -> None:
        if self._keymap.borrow(keysym_of(character) for character in portion):
            # Tk reads keys before it takes notice of a keymap that changed just before them.
            self.settle()
        for character in portion:
            stroke = self._keymap.stroke(keysym_of(character))
            assert stroke is not None
            self._tap(stroke)
            if interval:
                self._x.display.sync()
                time.sleep(interval)


def _wait_for_ping(x: X11Connection, window: Any) -> None:
    """Ask a window for a sign of life: it answers when it has read everything before the question."""
    ping = next(_PINGS)
    data = (32, [x.atom("_NET_WM_PING"), ping, window.id, 0, 0])
    question = ClientMessage(window=window, client_type=x.atom("WM_PROTOCOLS"), data=data)
    # GTK answers to those who watch the root's children, Qt to those who watch the root itself.
    x.root.change_attributes(event_mask=X.SubstructureNotifyMask | X.StructureNotifyMask)
    window.change_attributes(event_mask=X.StructureNotifyMask)
    try:
        window.get_attributes()
        window.send_event(question, event_mask=X.NoEventMask)
        x.display.sync()
        for event in x.events(_ANSWER_TIMEOUT):
            if event.type == X.ClientMessage and event.data[0] == 32 and event.data[1][1] == ping:
                return
            if event.type in (X.UnmapNotify, X.DestroyNotify) and event.window.id == window.id:
                return  # the window closed on what was done
    except XError:
        pass  # it is closed already
    finally:
        x.root.change_attributes(event_mask=X.NoEventMask)
        window.change_attributes(event_mask=X.NoEventMask)
        x.display.sync()


def _wait_for_sleep(pid: int) -> None:
    """Wait until a process sleeps, as it does when it has read all its events; nothing reports it."""
    end, quiet = time.monotonic() + _ANSWER_TIMEOUT, 0
    while quiet < 3 and time.monotonic() < end:
        time.sleep(_POLL_INTERVAL)
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            time.sleep(_UNKNOWN_WAIT)
            return
        quiet = quiet + 1 if state == "S" else 0


class X11StopKey:
    """A thread that sees every key pressed on the display, also while a menu has grabbed the keyboard.

    With `in_corner`, it also reports the pointer's position when that is in a corner.
    """

    def __init__(
        self, keys: tuple[str, ...], stopped: Callable[[], None], in_corner: Callable[[int, int], None] | None
    ) -> None:
        self._stopped, self._in_corner = stopped, in_corner
        self._control, self._data = X11Connection(), X11Connection()
        if not self._data.display.has_extension("RECORD"):
            self._control.close()
            self._data.close()
            raise ComputerError("This X server does not let programs watch for a stop key: it has no RECORD extension.")
        *modifiers, key = keys
        self._code = self._control.display.keysym_to_keycode(keysym_of(key))
        self._mask = sum(getattr(X, f"{_MODIFIERS[name]}Mask") for name in modifiers)
        ranges = {
            "core_requests": (0, 0),
            "core_replies": (0, 0),
            "ext_requests": (0, 0, 0, 0),
            "ext_replies": (0, 0, 0, 0),
            "delivered_events": (0, 0),
            "device_events": (X.KeyPress, X.MotionNotify if self._in_corner else X.KeyPress),
            "errors": (0, 0),
            "client_started": False,
            "client_died": False,
        }
        self._context = int(self._data.display.record_create_context(0, [record.AllClients], [ranges]))
        self._ready = threading.Event()
        self._thread: threading.Thread | None = threading.Thread(target=self._watch, daemon=True, name="stop key")
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with suppress(ConnectionClosedError):  # the display may have gone first
            self._control.display.record_disable_context(self._context)
            self._control.display.flush()
        if thread is not threading.current_thread():
            thread.join()
        self._control.close()

    def _watch(self) -> None:
        try:
            self._data.display.record_enable_context(self._context, self._receive)
            self._data.display.record_free_context(self._context)
        except ConnectionClosedError:
            pass  # the display went, and its keys with it
        finally:
            self._ready.set()
            self._data.close()

    def _receive(self, reply: Any) -> None:
        self._ready.set()
        if reply.category != record.FromServer:
            return
        screen, rest = self._data.display.screen(), reply.data
        while len(rest):
            event, rest = rq.EventField(None).parse_binary_value(rest, self._data.display.display, None, None)
            if event.type == X.KeyPress and event.detail == self._code and event.state & self._mask == self._mask:
                self._stopped()
            elif event.type == X.MotionNotify and self._in_corner:
                x, y = event.root_x, event.root_y
                if in_corner(x, y, screen.width_in_pixels, screen.height_in_pixels):
                    self._in_corner(x, y)
