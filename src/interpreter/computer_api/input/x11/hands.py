"""Pointer and keys of an X display, through the XTest extension."""

from __future__ import annotations

import time
from threading import RLock

from interpreter.computer_api.display.failures import NoDisplayError
from interpreter.computer_api.input.errors import HandsLost, NotTyped, UnknownKey
from interpreter.computer_api.input.hands import is_terminal
from interpreter.computer_api.input.keys import keysym_name
from interpreter.computer_api.input.x11.connection import Connection
from interpreter.computer_api.input.x11.keymap import Keymap, Stroke, keysym_of
from interpreter.computer_api.input.x11.settling import answered, at_rest

_BUTTONS = {"left": 1, "middle": 2, "right": 3}
_UP, _DOWN, _LEFT, _RIGHT = 4, 5, 6, 7
# How many characters go out before the application is asked whether it keeps up.
_PORTION = 400
# Longer texts are pasted where that is possible.
_LONG = 1500
_ANSWER_LIMIT = 10.0


class X11Hands:
    """Moves and types as the user's own devices do; one thread at a time."""

    def __init__(self) -> None:
        self._x = Connection()
        self._lock = RLock()
        if self._x.display.query_extension("XTEST") is None:
            raise NoDisplayError(
                "This X server does not let programs move the pointer and type: it has no XTEST extension."
            )
        self._keymap = Keymap(self._x.display)
        self._keys: dict[str, Stroke] = {}
        self._buttons: set[str] = set()

    def size(self) -> tuple[int, int]:
        with self._lock:
            size = self._x.root.get_geometry()
            return size.width, size.height

    def position(self) -> tuple[int, int]:
        from Xlib.error import ConnectionClosedError

        with self._lock:
            try:
                where = self._x.root.query_pointer()
            except ConnectionClosedError as error:
                raise HandsLost("The connection to mouse and keyboard has ended. Try again.") from error
            return where.root_x, where.root_y

    def move(self, x: int, y: int) -> None:
        from Xlib import X

        with self._lock:
            self._fake(X.MotionNotify, 0, x, y)
            self._x.display.sync()

    def button(self, button: str, down: bool) -> None:
        with self._lock:
            self._buttons.add(button) if down else self._buttons.discard(button)
            self._press_button(_BUTTONS[button], down)

    def scroll(self, up: int, right: int) -> None:
        with self._lock:
            turns = [_UP if up > 0 else _DOWN] * abs(up) + [_RIGHT if right > 0 else _LEFT] * abs(right)
            for turn in turns:
                self._press_button(turn, True)
                self._press_button(turn, False)

    def key(self, key: str, down: bool) -> None:
        with self._lock:
            held = self._keys.pop(key, None)
            if not down:
                # What was not held is let go all the same: another program may have left it down.
                self._stroke(held or self._stroke_of(key), False)
                return
            self._keys[key] = held or self._stroke_of(key)
            self._stroke(self._keys[key], True)

    def type(self, text: str, interval: float) -> None:
        with self._lock:
            self._require_focus()
            self._keymap.read()
            capitals = self._capitals_off()
            try:
                for portion in self._portions(text):
                    self._type_portion(portion, interval)
                    self._settle()
            finally:
                if capitals:
                    self._tap(capitals)

    def pastes(self, text: str) -> bool:
        with self._lock:
            self._keymap.read()
            many = sum(self._keymap.rare(_keysym(c)) for c in set(text)) > self._keymap.room
            return many or (len(text) > _LONG and not self.in_terminal())

    def in_terminal(self) -> bool:
        with self._lock:
            found = self._x.property(self._x.window(self._active()), "WM_CLASS") if self._active() else None
            words = found.decode("latin-1") if isinstance(found, bytes) else str(found or "")
            return is_terminal(words)

    def settle(self) -> None:
        with self._lock:
            self._settle()

    def release(self) -> None:
        from Xlib.error import ConnectionClosedError

        with self._lock:
            try:
                for key in list(self._keys):
                    self.key(key, False)
                for button in list(self._buttons):
                    self.button(button, False)
                self._let_go()
                self._keymap.give_back()
            except (ConnectionClosedError, OSError):
                pass  # The display is gone, and everything held with it.

    def close(self) -> None:
        self.release()
        self._x.close()

    @property
    def is_lost(self) -> bool:
        return self._x.is_lost

    # Inside

    def _let_go(self) -> None:
        """Keys that typing held when it was interrupted, Shift above all; those that the user holds are not ours."""
        from Xlib import X

        pressed = self._x.display.query_keymap()
        for code in (8 * byte + bit for byte, bits in enumerate(pressed) for bit in range(8) if bits >> bit & 1):
            self._fake(X.KeyRelease, code)
        held = self._x.root.query_pointer().mask
        for number in _BUTTONS.values():
            if held & X.Button1Mask << number - 1:
                self._fake(X.ButtonRelease, number)
        self._x.display.sync()

    def _fake(self, event: int, detail: int, x: int = 0, y: int = 0) -> None:
        from Xlib.ext import xtest

        xtest.fake_input(self._x.display, event, detail, x=x, y=y)

    def _press_button(self, number: int, down: bool) -> None:
        from Xlib import X

        self._fake(X.ButtonPress if down else X.ButtonRelease, number)
        self._x.display.sync()

    def _stroke_of(self, key: str) -> Stroke:
        from Xlib import XK

        XK.load_keysym_group("xf86")
        keysym = keysym_of(key) if len(key) == 1 else XK.string_to_keysym(keysym_name(key))
        self._keymap.read()
        if len(key) == 1 and self._keymap.borrow([keysym]):
            self._settle()
        stroke = self._keymap.stroke(keysym)
        if stroke is None:
            raise UnknownKey(f"The keyboard of this display has no key {key!r}.")
        return stroke

    def _stroke(self, stroke: Stroke, down: bool) -> None:
        from Xlib import XK, X

        shift = self._keymap.stroke(XK.XK_Shift_L) if stroke.shift else None
        if shift and down:
            self._fake(X.KeyPress, shift.code)
        self._fake(X.KeyPress if down else X.KeyRelease, stroke.code)
        if shift and not down:
            self._fake(X.KeyRelease, shift.code)
        self._x.display.sync()

    def _tap(self, stroke: Stroke) -> None:
        self._stroke(stroke, True)
        self._stroke(stroke, False)

    def _capitals_off(self) -> Stroke | None:
        """Caps Lock let go, and the key that will bring it back."""
        from Xlib import XK, X

        if not self._x.root.query_pointer().mask & X.LockMask:
            return None
        key = self._keymap.stroke(XK.XK_Caps_Lock)
        if key:
            self._tap(key)
        return key

    def _portions(self, text: str) -> list[str]:
        """A text in parts, none with more characters to borrow keys for than there is room."""
        portions, rare, begin = [], set[str](), 0
        for index, character in enumerate(text):
            new = character not in rare and self._keymap.rare(_keysym(character))
            if index - begin >= _PORTION or (new and len(rare) == self._keymap.room):
                portions.append(text[begin:index])
                rare, begin = set(), index
            if new:
                rare.add(character)
        return [*portions, text[begin:]]

    def _type_portion(self, portion: str, interval: float) -> None:
        from Xlib import XK, X

        if self._keymap.borrow(_keysym(character) for character in portion):
            # Tk reads keys before it takes notice of a keymap that changed just before them.
            self._settle()
        shift = self._keymap.stroke(XK.XK_Shift_L)
        shifted = False
        for character in portion:
            stroke = self._keymap.stroke(_keysym(character))
            assert stroke is not None
            if shift and stroke.shift != shifted:
                shifted = stroke.shift
                self._fake(X.KeyPress if shifted else X.KeyRelease, shift.code)
            self._fake(X.KeyPress, stroke.code)
            self._fake(X.KeyRelease, stroke.code)
            if interval:
                self._x.display.sync()
                time.sleep(interval)
        if shift and shifted:
            self._fake(X.KeyRelease, shift.code)
        self._x.display.sync()

    def _active(self) -> int:
        """The window in front, 0 if there is none."""
        return next(iter(self._x.numbers(self._x.root, "_NET_ACTIVE_WINDOW")), 0)

    def _require_focus(self) -> None:
        from Xlib import X

        if self._x.display.get_input_focus().focus == X.NONE:
            raise NotTyped("No window has the keyboard: click in one, or use computer.os.focus, and type again.")

    def _settle(self) -> None:
        """Wait until the window in front has read everything that was sent before."""
        self._x.display.sync()
        number = self._active()
        if number and self._x.atom("_NET_WM_PING") in self._x.numbers(self._x.window(number), "WM_PROTOCOLS"):
            answered(self._x, number, _ANSWER_LIMIT)
        else:
            pid = next(iter(self._x.numbers(self._x.window(number), "_NET_WM_PID")), 0) if number else 0
            at_rest(pid, _ANSWER_LIMIT)


def _keysym(character: str) -> int:
    from Xlib import XK

    match character:
        case "\n" | "\r":
            return int(XK.XK_Return)
        case "\t":
            return int(XK.XK_Tab)
        case _:
            return keysym_of(character)
