"""The accessibility tree of Linux desktops (AT-SPI over D-Bus), in which programs describe their own windows.

It is read in bounded time, with a limited number of requests at once.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeVar

from interpreter.computer_api.screen.platforms import Box, run_async
from interpreter.errors import ComputerError
from interpreter.host.installation import install_hint

Result = TypeVar("Result")
Key = tuple[str, str]  # the address of an element: the program's name on the bus, and the path there

_SPI = "org.a11y.atspi."
_ROOT = "/org/a11y/atspi/accessible/root"
_NULL = "/org/a11y/atspi/null"
_DBUS = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
# Seconds for one request, and for all elements of a large page in one answer: a busy program answers late or never.
_CALL_TIMEOUT, _TREE_TIMEOUT = 2.0, 8.0
_MAX_PARALLEL_CALLS = 16
_MAX_WALKED, _STEP = 1000, 50
# Seconds after which the search ends with the elements found so far.
_WALK_TIMEOUT = 3.0
_MAX_PARENTS = 50
_MAX_TEXT = 2000
# When a bus last failed to answer, and how long no request is sent to it: each would wait for it again.
_silent: dict[str, float] = {}
_SILENT_FOR = 30.0
# States worth reporting to a model.
_REPORTED = ("focused", "checked", "selected", "expanded", "pressed", "read only", "required", "invalid entry")

# In the order of AtspiRole.
ROLES = (
    "invalid, accelerator label, alert, animation, arrow, calendar, canvas, check box, check menu item, color chooser, "
    "column header, combo box, date editor, desktop icon, desktop frame, dial, dialog, directory pane, drawing area, "
    "file chooser, filler, focus traversable, font chooser, frame, glass pane, html container, icon, image, "
    "internal frame, label, layered pane, list, list item, menu, menu bar, menu item, option pane, tab, tab list, "
    "panel, password, popup menu, progress bar, button, radio button, radio menu item, root pane, row header, "
    "scroll bar, scroll pane, separator, slider, spin button, split pane, status bar, table, cell, "
    "table column header, table row header, tearoff menu item, terminal, text, toggle button, tool bar, tool tip, "
    "tree, tree table, unknown, viewport, window, extended, header, footer, paragraph, ruler, application, "
    "autocomplete, editbar, embedded, entry, chart, caption, document, heading, page, section, redundant object, form, "
    "link, input method window, table row, tree item, document spreadsheet, document presentation, document text, "
    "document web, document email, comment, list box, grouping, image map, notification, info bar, level bar, "
    "title bar, block quote, audio, video, definition, article, landmark, log, marquee, math, rating, timer, static, "
    "math fraction, math root, subscript, superscript, description list, description term, description value, "
    "footnote, content deletion, content insertion, mark, suggestion, button menu, switch"
).split(", ")

# In the order of AtspiStateType.
STATES = (
    "invalid, active, armed, busy, checked, collapsed, defunct, editable, enabled, expandable, expanded, focusable, "
    "focused, has tooltip, horizontal, iconified, modal, multi line, multiselectable, opaque, pressed, resizable, "
    "selectable, selected, sensitive, showing, single line, stale, transient, vertical, visible, manages descendants, "
    "indeterminate, required, truncated, animated, invalid entry, supports autocompletion, selectable text, "
    "is default, visited, checkable, has popup, read only"
).split(", ")

# Roles that people click on or write to.
INTERACTIVE = frozenset(
    "button, toggle button, button menu, switch, link, check box, radio button, menu item, check menu item, "
    "radio menu item, menu, combo box, tab, list item, tree item, cell, entry, password, text, spin button, slider, "
    "column header, table column header, icon, option pane, terminal".split(", ")
)
# Parts of windows that open beside the window they belong to.
POPPING = frozenset("menu, popup menu, menu item, check menu item, radio menu item, tool tip, window".split(", "))
TOPS = frozenset("frame, dialog, window, file chooser, color chooser, font chooser, alert, option pane".split(", "))
# Roles that cut off the part of their content that doesn't fit.
CLIPPING = frozenset("scroll pane, viewport, frame, dialog, document web, document, internal frame".split(", "))
# Layout boxes, which are not worth listing without a name.
STRUCTURE = frozenset(
    "filler, panel, section, split pane, scroll pane, viewport, layered pane, glass pane, root pane, grouping, "
    "unknown, redundant object, separator, extended, html container, scroll bar, tool bar, menu bar, tab list, list, "
    "table, form, list box, tree, status bar, table row, landmark".split(", ")
)
WRITABLE = frozenset("entry, password, text, spin button, terminal, combo box, document text".split(", "))

# Words that people add to a name to say what kind of element it is.
KINDS = {
    "button": frozenset({"button", "toggle button", "button menu", "radio button", "switch", "menu"}),
    "link": frozenset({"link"}),
    "checkbox": frozenset({"check box", "check menu item"}),
    "check box": frozenset({"check box", "check menu item"}),
    "radio button": frozenset({"radio button", "radio menu item"}),
    "menu item": frozenset({"menu item", "check menu item", "radio menu item", "menu"}),
    "menu": frozenset({"menu", "menu item", "button menu", "popup menu"}),
    "tab": frozenset({"tab"}),
    "field": frozenset({"entry", "password", "text", "spin button", "combo box"}),
    "text field": frozenset({"entry", "password", "text", "spin button"}),
    "box": frozenset({"entry", "text", "check box", "combo box", "password"}),
    "dropdown": frozenset({"combo box"}),
    "list": frozenset({"combo box", "list", "list box"}),
    "slider": frozenset({"slider"}),
    "arrow": frozenset({"icon", "image", "button", "toggle button", "link", "arrow"}),
    "icon": frozenset({"icon", "image", "button", "toggle button", "link", "button menu"}),
    "image": frozenset({"image", "icon"}),
}


class AccessibilityError(ComputerError):
    """The accessibility tree cannot be read."""


@dataclass
class ScreenElement:
    """One element, with what has been read of it so far."""

    key: Key
    parent: Key
    index: int
    role: str
    name: str = ""
    description: str = ""
    states: frozenset[str] = frozenset()
    interfaces: frozenset[str] = frozenset()
    children: int = 0
    pid: int | None = None
    box: Box | None = None
    value: str | None = None

    @property
    def showing(self) -> bool:
        return {"showing", "visible"} <= self.states and "defunct" not in self.states

    def as_dict(self, ref: str) -> dict[str, Any]:
        """Describe the element for a model, with the fields needed to choose it and to refer to it."""
        box = self.box or Box(0, 0, 0, 0)
        x, y = box.center
        name, description = self.name.strip(), self.description.strip()  # GTK puts space for a shortcut after them
        fields: dict[str, Any] = {"ref": ref, "role": self.role, "name": name, "x": x, "y": y, "box": list(box)}
        if self.value is not None:
            fields["value"] = self.value
        if description and description != name:
            fields["description"] = description
        states = [state for state in _REPORTED if state in self.states]
        if "enabled" not in self.states and "sensitive" not in self.states:
            states.append("disabled")
        if states:
            fields["states"] = states
        return fields


@dataclass
class AccessibilityTree:
    """The elements of the programs that have windows, by their key."""

    elements: dict[Key, ScreenElement] = field(default_factory=dict)

    def ancestors(self, element: ScreenElement) -> Iterator[ScreenElement]:
        seen = {element.key}
        parent = self.elements.get(element.parent)
        while parent is not None and parent.key not in seen:
            yield parent
            seen.add(parent.key)
            parent = self.elements.get(parent.parent)

    def top(self, element: ScreenElement) -> ScreenElement | None:
        """Return the window that the element is in."""
        tops = [each for each in (element, *self.ancestors(element)) if self.is_top(each)]
        return tops[-1] if tops else None

    def is_top(self, element: ScreenElement) -> bool:
        """Return whether an element is a window: by its role or, like plain Qt windows, as an application's child."""
        parent = self.elements.get(element.parent)
        return element.role in TOPS or (parent is not None and parent.role == "application")

    def tops(self) -> list[ScreenElement]:
        """Return the windows that are shown."""
        return [each for each in self.elements.values() if each.showing and self.is_top(each)]

    def below(self, top: ScreenElement) -> Iterator[ScreenElement]:
        """Yield an element and all in it, in the order of their programs."""
        children: dict[Key, list[ScreenElement]] = {}
        for element in self.elements.values():
            children.setdefault(element.parent, []).append(element)
        waiting, seen = [top], set()
        while waiting:
            element = waiting.pop()
            if element.key in seen:
                continue
            seen.add(element.key)
            yield element
            siblings = children.get(element.key, [])
            # In the order of their program's numbers; GTK doesn't number the items of a menu, so these go by position.
            siblings.sort(key=lambda each: (each.box.top, each.box.left) if each.box else (0, 0))
            if all(each.index >= 0 for each in siblings):
                siblings.sort(key=lambda each: each.index)
            waiting += reversed(siblings)


class AccessibilityBus:
    """A connection to the accessibility bus; every failed request raises an AccessibilityError."""

    def __init__(self, bus: Any) -> None:
        self._bus = bus
        self._few = asyncio.Semaphore(_MAX_PARALLEL_CALLS)

    async def call(self, key: Key, interface: str, member: str, signature: str = "", body: Iterable[Any] = ()) -> Any:
        from dbus_fast import DBusError, Message, MessageType

        message = Message(key[0], key[1], interface, member, signature=signature, body=list(body))
        async with self._few:
            try:
                async with asyncio.timeout(_TREE_TIMEOUT if member == "GetItems" else _CALL_TIMEOUT):
                    reply = await self._bus.call(message)
            except (DBusError, OSError, EOFError, TimeoutError) as error:
                raise AccessibilityError(f"{key[0]} does not answer {member}: {error}") from error
        if reply is None or reply.message_type is MessageType.ERROR:
            raise AccessibilityError(f"{key[0]} refuses {member}")
        return reply.body

    async def property(self, key: Key, interface: str, name: str) -> Any:
        return (await self.call(key, "org.freedesktop.DBus.Properties", "Get", "ss", [_SPI + interface, name]))[0].value

    async def box(self, key: Key) -> Box | None:
        try:
            left, top, width, height = (await self.call(key, _SPI + "Component", "GetExtents", "u", [0]))[0]
        except AccessibilityError:
            return None
        return Box(left, top, width, height) if width > 0 and height > 0 else None

    async def boxes(self, elements: Iterable[ScreenElement]) -> None:
        """Look up the boxes of these elements, unless they are known."""
        unknown = [element for element in elements if element.box is None and "Component" in element.interfaces]
        for element, box in zip(unknown, await asyncio.gather(*(self.box(e.key) for e in unknown)), strict=True):
            element.box = box

    async def text(self, key: Key, from_end: bool = False) -> str:
        # Qt returns nothing of a text of several lines if it is asked for more than there is.
        count = int(await self.property(key, "Text", "CharacterCount"))
        begin = max(0, count - _MAX_TEXT) if from_end else 0
        return str((await self.call(key, _SPI + "Text", "GetText", "ii", [begin, min(count, begin + _MAX_TEXT)]))[0])

    async def values(self, elements: Iterable[ScreenElement]) -> None:
        """Look up the text or value of these elements."""

        async def value(element: ScreenElement) -> None:
            with suppress(AccessibilityError):
                # Not every program that has a text names the interface.
                if "Text" in element.interfaces or (element.role in WRITABLE and "Value" not in element.interfaces):
                    element.value = await self.text(element.key, element.role == "terminal")
                elif "Value" in element.interfaces:
                    element.value = f"{await self.property(element.key, 'Value', 'CurrentValue'):g}"

        await asyncio.gather(*(value(element) for element in elements if element.value is None))

    async def write(self, key: Key, text: str) -> bool:
        return bool((await self.call(key, _SPI + "EditableText", "SetTextContents", "s", [text]))[0])

    async def act(self, key: Key, action: str | None) -> bool:
        """Do an element's action: its first one, or the one named."""
        number = 0
        if action is not None:
            names = [name for name, *_ in (await self.call(key, _SPI + "Action", "GetActions"))[0]]
            wanted = [name.casefold() for name in names]
            if action.casefold() not in wanted:
                raise AccessibilityError(f"It has no action {action!r}, only {', '.join(names) or 'none'}.")
            number = wanted.index(action.casefold())
        return bool((await self.call(key, _SPI + "Action", "DoAction", "i", [number]))[0])

    # -- the tree --------------------------------------------------------------------------------------------------

    async def tree(self, pids: frozenset[int]) -> AccessibilityTree:
        """Read the tree of the programs with these process ids; of all, if none is given."""
        registry = "org.a11y.atspi.Registry"
        with suppress(AccessibilityError):  # an older registry refuses it; then the elements are walked
            # Some programs, such as Chromium, have all elements ready only while a client listens for events.
            await self.call(
                (registry, "/org/a11y/atspi/registry"),
                _SPI + "Registry",
                "RegisterEvent",
                "sass",
                ["window:close", [], ""],  # a rare one
            )
        tree = AccessibilityTree()
        programs = (await self.call((registry, _ROOT), _SPI + "Accessible", "GetChildren"))[0]
        await asyncio.gather(*(self._add_program(tree, (name, path), pids) for name, path in programs))
        return tree

    async def _add_program(self, tree: AccessibilityTree, key: Key, pids: frozenset[int]) -> None:
        try:
            pid = int((await self.call(_DBUS, _DBUS[0], "GetConnectionUnixProcessID", "s", [key[0]]))[0])
            if pids and pid not in pids:
                return
            elements = await self._cached(key)
            elements += await self._walk(await self._missing(elements) if elements else [(key, ("", _NULL), 0)])
        except AccessibilityError:
            return
        for element in elements:
            element.pid = pid
            tree.elements[element.key] = element

    async def _cached(self, key: Key) -> list[ScreenElement]:
        """Return all elements in one answer, as GTK and Chromium give it; Qt has none."""
        try:
            items = (await self.call((key[0], "/org/a11y/atspi/cache"), _SPI + "Cache", "GetItems"))[0]
        except AccessibilityError:
            return []
        elements = []
        for item in items:
            own, _, parent, *middle, interfaces, name, role, description, states = item
            # Old programs list their children where new ones count them.
            index, children = (middle[0], middle[1]) if len(middle) == 2 else (0, len(middle[0]))
            elements.append(
                element_of(tuple(own), tuple(parent), index, role, name, description, states, interfaces, children)
            )
        return elements if any(element.role != "application" for element in elements) else []

    async def _missing(self, elements: list[ScreenElement]) -> list[tuple[Key, Key, int]]:
        """Return the children that `_cached` lacks: Chromium's cache has no pages that were loaded later."""
        known = {element.key for element in elements}
        counts = Counter(element.parent for element in elements)
        parents = [
            element
            for element in elements
            if element.showing
            and element.children > counts[element.key]
            and "manages descendants" not in element.states
        ][:_MAX_PARENTS]

        answers = await asyncio.gather(*(self._children(each.key) for each in parents), return_exceptions=True)
        return [each for answer in answers if isinstance(answer, list) for each in answer if each[0] not in known]

    async def _children(self, key: Key) -> list[tuple[Key, Key, int]]:
        """Return the key, the parent and the number of each child."""
        children = (await self.call(key, _SPI + "Accessible", "GetChildren"))[0]
        return [((bus, path), key, number) for number, (bus, path) in enumerate(children) if path != _NULL]

    async def _walk(self, level: list[tuple[Key, Key, int]]) -> list[ScreenElement]:
        """Read element by element, down to what is not shown.

        What is in an element is read before what follows it: on a long page, the limit leaves out what is far down.
        Elements that are read together take turns, so that a large window leaves room for a dialog.
        """
        elements: list[ScreenElement] = []
        now = asyncio.get_running_loop().time
        end = now() + _WALK_TIMEOUT
        while level and len(elements) < _MAX_WALKED and now() < end:
            read = await asyncio.gather(*(self._read(*each) for each in level[:_STEP]))
            elements += [element for element, _ in read if element is not None]
            turns = zip_longest(*(children for _, children in read))
            level = [child for turn in turns for child in turn if child is not None] + level[_STEP:]
        return elements

    async def _read(self, key: Key, parent: Key, index: int) -> tuple[ScreenElement | None, list[tuple[Key, Key, int]]]:
        accessible = _SPI + "Accessible"
        try:
            role, states, interfaces = await asyncio.gather(
                self.call(key, accessible, "GetRole"),
                self.call(key, accessible, "GetState"),
                self.call(key, accessible, "GetInterfaces"),
            )
            name, description = await asyncio.gather(
                self.property(key, "Accessible", "Name"), self.property(key, "Accessible", "Description")
            )
            element = element_of(key, parent, index, role[0], name, description, states[0], interfaces[0])
            children = await self._children(key) if element.role == "application" or element.showing else []
        except AccessibilityError:
            return None, []
        element.children = len(children)
        return element, children


def element_of(
    key: Key,
    parent: Key,
    index: int,
    role: int,
    name: str,
    description: str,
    states: list[int],  # two 32-bit numbers
    interfaces: Iterable[str],
    children: int = 0,
) -> ScreenElement:
    """Convert a program's description of an element: its role as a number, its states as bits."""
    kind = ROLES[role] if 0 <= role < len(ROLES) else "unknown"
    bits = (states[0] if states else 0) | (states[1] << 32 if len(states) > 1 else 0)
    state = frozenset(each for number, each in enumerate(STATES) if bits >> number & 1)
    offered = frozenset(each.rpartition(".")[2] for each in interfaces)
    return ScreenElement(key, parent, index, kind, name, description, state, offered, children)


def query(question: Callable[[AccessibilityBus], Coroutine[Any, Any, Result]], limit: float = 12.0) -> Result:
    """Ask the accessibility bus something; AccessibilityError if it cannot answer or takes too long."""
    try:
        from dbus_fast import BusType
        from dbus_fast.aio import MessageBus
    except ImportError as error:
        raise AccessibilityError(f"The accessibility tree needs dbus-fast: {install_hint('os')}") from error
    known = os.environ.get("AT_SPI_BUS_ADDRESS")
    session = known or os.environ.get("DBUS_SESSION_BUS_ADDRESS") or ""
    if not session:
        raise AccessibilityError("There is no session bus: DBUS_SESSION_BUS_ADDRESS is not set.")
    if time.monotonic() - _silent.get(session, -_SILENT_FOR) < _SILENT_FOR:
        raise AccessibilityError("The session bus is not answering.")

    async def ask() -> Result:
        address = known
        try:
            async with asyncio.timeout(_CALL_TIMEOUT):
                if not address:  # the session bus knows it, and starts the accessibility bus if necessary
                    bus = await MessageBus(bus_type=BusType.SESSION).connect()
                    try:
                        bus_object = ("org.a11y.Bus", "/org/a11y/bus")
                        address = str((await AccessibilityBus(bus).call(bus_object, "org.a11y.Bus", "GetAddress"))[0])
                    finally:
                        bus.disconnect()
                bus = await MessageBus(bus_address=address).connect()
        except TimeoutError:
            _silent[session] = time.monotonic()
            raise
        try:
            return await question(AccessibilityBus(bus))
        finally:
            bus.disconnect()

    try:
        return run_async(ask, limit)
    except (AccessibilityError, OSError, EOFError, TimeoutError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise AccessibilityError(f"Can't read the accessibility tree: {why}") from None
