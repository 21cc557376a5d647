"""The computer tools that some models are trained on: how to offer them, and their actions as Python.

An action becomes a line of Python that calls `computer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from interpreter.llm.native_tools import NativeTool

TOOL = "computer"  # the type of the tool's entry among the tools, and its name at Anthropic
_WAIT = 2  # seconds, where the model does not say how long


@dataclass(frozen=True)
class ModelScreen:
    """The screen as the model sees it: the size of its pictures, and the part of the screen that they show."""

    width: int
    height: int
    scale: float = 1  # screen pixels in one pixel of the picture
    left: float = 0
    top: float = 0
    system: str = "linux"

    def on_screen(self, x: float, y: float) -> tuple[int, int]:
        """Convert a position in the picture to a position on the screen."""
        return round(self.left + x * self.scale), round(self.top + y * self.scale)

    def tool(self, wire: str, model: str) -> ComputerTool | None:
        """Return the computer tool that a model is trained on; None if it acts through code alone."""
        kind = kind_of(wire, model)
        return ComputerTool(kind, self) if kind is not None else None


@dataclass(frozen=True)
class ComputerToolSpec:
    """One provider's computer tool, and the models that know it."""

    wire: str
    models: tuple[str, ...]
    tool: str
    beta: str = ""


# The first match counts.
KINDS = (
    ComputerToolSpec("anthropic", ("claude-3-5-sonnet-20241022*",), "computer_20241022", "computer-use-2024-10-22"),
    ComputerToolSpec(
        "anthropic",
        ("claude-3-7-sonnet*", "claude-sonnet-4-[025]*", "claude-opus-4-[012]*", "claude-haiku-4-5*"),
        "computer_20250124",
        "computer-use-2025-01-24",
    ),
    ComputerToolSpec(
        "anthropic",
        ("claude-opus-4-[5-9]*", "claude-sonnet-4-[6-9]*", "claude-opus-[5-9]*", "claude-sonnet-[5-9]*"),
        "computer_20251124",
        "computer-use-2025-11-24",
    ),
    ComputerToolSpec("responses", ("computer-use-preview*",), "computer_use_preview"),
    ComputerToolSpec("responses", ("gpt-5.[4-9]*",), "computer"),
)


def kind_of(wire: str, model: str) -> ComputerToolSpec | None:
    """Return the computer tool that a model is trained on; None if it acts through code alone."""
    name = model.lower()
    fitting = (kind for kind in KINDS if kind.wire == wire and any(fnmatchcase(name, each) for each in kind.models))
    return next(fitting, None)


class ComputerTool(NativeTool):
    """The computer tool of one provider, for a screen."""

    def __init__(self, kind: ComputerToolSpec, screen: ModelScreen) -> None:
        size = {"width": screen.width, "height": screen.height}
        if kind.wire == "anthropic":
            zoom = {"enable_zoom": True} if kind.tool >= "computer_2025112" else {}
            entry = {"name": TOOL, **{f"display_{name}_px": pixels for name, pixels in size.items()}, **zoom}
        elif kind.tool == TOOL:
            entry = {}
        else:
            system = {"darwin": "mac", "windows": "windows"}.get(screen.system, "linux")
            entry = {**{f"display_{name}": pixels for name, pixels in size.items()}, "environment": system}
        super().__init__(type=kind.tool, **entry)
        self.beta, self.screen = kind.beta, screen

    def to_code(self, call: Mapping[str, Any]) -> str:
        if "input" in call:
            return actions_to_python([call["input"]], self.screen)
        actions = call.get("actions") or [call.get("action") or {}]
        warnings = [
            check.get("message") or check.get("code") or "" for check in call.get("pending_safety_checks") or ()
        ]
        return actions_to_python(actions, self.screen, warnings)


def actions_to_python(actions: Sequence[Mapping[str, Any]], screen: ModelScreen, warnings: Sequence[str] = ()) -> str:
    """Convert actions of either provider to Python, which first asks the user about the provider's warnings."""
    lines: list[str] = []
    for action in actions:
        try:
            kind = str(action.get("action") or action.get("type") or "")
            held = keys_of(action.get("text")) if "click" in kind or kind == "scroll" else []
            held = held or keys_of(action.get("keys") if kind != "keypress" else None)
            lines += _while_held(held, list(_act(kind, action, screen)))
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
            # The model sees its mistake where the action would run, so it can correct it.
            lines.append(f"raise ValueError({f'This is not an action of the computer tool: {action!r:.300}'!r})")
    questions = [f"The model's provider warns: {' '.join(warning.split())} Continue? [y/N] " for warning in warnings]
    asked = [f"if input({question!r}).strip().lower() != 'y': raise SystemExit(1)" for question in questions]
    imports = ["import time"] if any(line.startswith("time.") for line in lines) else []
    return "\n".join(imports + asked + lines)


def _while_held(keys: Sequence[str], lines: list[str]) -> list[str]:
    down = [f"computer.keyboard.down({key!r})" for key in keys]
    up = [f"computer.keyboard.up({key!r})" for key in reversed(keys)]
    return down + lines + up


def _act(kind: str, action: Mapping[str, Any], screen: ModelScreen) -> Iterator[str]:
    coordinate = action.get("coordinate") or ([action["x"], action["y"]] if "x" in action and "y" in action else None)
    at = "x={}, y={}".format(*screen.on_screen(*coordinate)) if coordinate else ""
    match kind:
        case "left_click" | "click" | "right_click" | "middle_click" | "double_click" | "triple_click":
            yield _click(kind, action, at)
        case "mouse_move" | "move":
            yield f"computer.mouse.move({at})"
        case "left_mouse_down" | "left_mouse_up":
            yield f"computer.mouse.{kind.removeprefix('left_mouse_')}()"
        case "left_click_drag" | "drag":
            yield from _drag(action, screen)
        case "scroll":
            yield from _scroll(action, at)
        case "key" | "keypress":
            keys, times = keys_of(action.get("text") or action.get("keys")), int(action.get("repeat") or 1)
            if len(keys) == 1:
                yield f"computer.keyboard.press({keys[0]!r}{f', presses={times}' if times > 1 else ''})"
            else:
                hotkey = f"computer.keyboard.hotkey({', '.join(map(repr, keys))})"
                yield hotkey if times == 1 else f"for _ in range({times}): {hotkey}"
        case "hold_key":
            wait = f"time.sleep({float(action.get('duration') or 1):g})"
            yield from _while_held(keys_of(action.get("text")), [wait])
        case "type":
            yield f"computer.keyboard.write({str(action.get('text') or '')!r})"
        case "wait":
            yield f"time.sleep({float(action.get('duration') or _WAIT):g})"
            yield "computer.display.wait_until_still()"  # after which the screen is shown
        case "cursor_position":
            yield "computer.mouse.position()"
        case "zoom":
            x0, y0, x1, y1 = (action.get("region") or [0, 0, screen.width, screen.height])[:4]
            (left, top), (right, bottom) = screen.on_screen(x0, y0), screen.on_screen(x1, y1)
            yield f"computer.display.view(region={(left, top, right - left, bottom - top)})"
        case "screenshot":
            yield "computer.display.view(screen=-1, active_app_only=False)"
        case _:
            yield f"raise ValueError({f'There is no action {kind!r} on this computer.'!r})"


def _click(kind: str, action: Mapping[str, Any], at: str) -> str:
    button = "middle" if kind == "middle_click" else str(action.get("button", "left")).replace("wheel", "middle")
    method = {"left_click": "click", "middle_click": "click"}.get(kind, kind)
    if method == "click" and button == "right":
        method, button = "right_click", "left"
    arguments = [at, f"button={button!r}" if button != "left" else ""]
    return f"computer.mouse.{method}({', '.join(filter(None, arguments))})"


def _drag(action: Mapping[str, Any], screen: ModelScreen) -> Iterator[str]:
    path = [(at["x"], at["y"]) if isinstance(at, Mapping) else at[:2] for at in action.get("path") or ()]
    path = path or [action[name][:2] for name in ("start_coordinate", "coordinate") if action.get(name)]
    positions = [screen.on_screen(*position) for position in path]
    if len(positions) >= 2:
        yield "computer.mouse.move(x={}, y={})".format(*positions.pop(0))
    yield "computer.mouse.down()"
    yield from ("computer.mouse.move(x={}, y={})".format(*position) for position in positions)
    yield "computer.mouse.up()"


def _scroll(action: Mapping[str, Any], at: str) -> Iterator[str]:
    if at:
        yield f"computer.mouse.move({at})"
    if "scroll_direction" in action:
        amount = int(action.get("scroll_amount") or 3)
        direction = action["scroll_direction"]
        down, right = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}.get(direction, (1, 0))
        down, right = down * amount, right * amount
    else:  # in pixels; a hundred are one click, and the least is one
        pixels = (action.get(name) or 0 for name in ("scroll_y", "scroll_x"))
        down, right = (round(each / 100) or (each > 0) - (each < 0) for each in pixels)
    if down:
        yield f"computer.mouse.scroll({-down})"
    if right:
        yield f"computer.mouse.scroll(0, sideways={right})"


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


def keys_of(combination: str | Sequence[str] | None) -> list[str]:
    """Return the keys of a combination, given as `ctrl+s` or as `["CTRL", "S"]`."""
    names = combination or ()
    if isinstance(names, str):
        last = ["+"] if names == "+" or names.endswith("++") else []  # the last key may be a plus itself
        names = [name.strip() for name in names.split("+") if name.strip()] + last
    return [_named(name) for name in names]


def _named(name: str) -> str:
    if len(name) == 1:
        return name.lower() if name.isascii() and name.isalpha() else name
    lower = name.lower()
    bare = lower.removeprefix("arrow").removeprefix("kp_")
    return _NAMES.get(lower) or _NAMES.get(bare, bare)
