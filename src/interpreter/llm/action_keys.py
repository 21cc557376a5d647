"""The names of keys in the actions of computer tools, as `computer.keyboard` has them."""

from __future__ import annotations

from collections.abc import Sequence

_NAMES = {
    "return": "enter", "kp_enter": "enter", "escape": "esc", "back_space": "backspace", "del": "delete",
    "page_up": "pageup", "prior": "pageup", "page_down": "pagedown", "next": "pagedown", "spacebar": "space",
    "control": "ctrl", "control_l": "ctrl", "control_r": "ctrlright", "shift_l": "shift", "shift_r": "shiftright",
    "alt_l": "alt", "alt_r": "altright", "option": "alt", "super": "win", "super_l": "win", "super_r": "win",
    "meta": "win", "cmd": "win", "command": "win", "caps_lock": "capslock", "num_lock": "numlock",
    "print": "printscreen", "minus": "-", "plus": "+", "equal": "=", "comma": ",", "period": ".", "slash": "/",
    "backslash": "\\", "semicolon": ";", "apostrophe": "'", "grave": "`", "bracketleft": "[", "bracketright": "]",
    "underscore": "_", "colon": ":", "question": "?", "exclam": "!", "at": "@", "numbersign": "#", "dollar": "$",
    "percent": "%", "ampersand": "&", "asterisk": "*", "parenleft": "(", "parenright": ")",
}  # fmt: skip


def keys_of(said: str | Sequence[str] | None) -> list[str]:
    """The keys of a combination: `ctrl+s` in one word, or `["CTRL", "S"]`."""
    if not said:
        return []
    names = _split(said) if isinstance(said, str) else list(said)
    return [_named(name) for name in names]


def _split(combination: str) -> list[str]:
    """At each plus that joins two keys; the last may be a plus itself."""
    if combination == "+":
        return ["+"]
    if combination.endswith("++"):
        return [*combination[:-2].split("+"), "+"]
    return [name.strip() for name in combination.split("+") if name.strip()]


def _named(name: str) -> str:
    if len(name) == 1:
        return name.lower() if name.isascii() and name.isalpha() else name
    lower = name.lower()
    if lower in _NAMES:
        return _NAMES[lower]
    for prefix in ("arrow", "kp_"):
        lower = lower.removeprefix(prefix)
    return _NAMES.get(lower, lower)
