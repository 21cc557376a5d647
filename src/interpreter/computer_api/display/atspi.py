"""The accessibility tree of Linux desktops, over D-Bus: asked in bounded time, a few things at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.bus import (
    LEFT_ALONE,
    ONE_CALL,
    AccessibilityError,
    address,
    ask,
    session_bus,
    silent,
)
from interpreter.computer_api.display.elements import Element, Key, Tree
from interpreter.computer_api.display.roles import role_name, state_names

__all__ = ["AccessibilityError", "Asking", "look"]

Result = TypeVar("Result")

_SPI = "org.a11y.atspi."
_ROOT = "/org/a11y/atspi/accessible/root"
_NULL = "/org/a11y/atspi/null"
# All elements of a large page in one answer.
_WHOLE_TREE = 8.0
_AT_ONCE = 16
_MOST_WALKED = 1000
_STEP = 50
# Seconds after which what has been found is all.
_WALK = 3.0
_MOST_PARENTS = 50
_MOST_TEXT = 2000


class Asking:
    """A connection to the accessibility bus, for the questions of one look."""

    def __init__(self, bus: Any) -> None:
        self._bus = bus
        self._few = asyncio.Semaphore(_AT_ONCE)

    async def call(self, key: Key, interface: str, member: str, signature: str = "", body: Iterable[Any] = ()) -> Any:
        """The answer's values; an error of any kind is an AccessibilityError."""
        limit = _WHOLE_TREE if member == "GetItems" else ONE_CALL
        async with self._few:
            return await ask(self._bus, key, interface, member, signature, body, limit)

    async def property(self, key: Key, interface: str, name: str) -> Any:
        found = await self.call(key, "org.freedesktop.DBus.Properties", "Get", "ss", [_SPI + interface, name])
        return found[0].value

    async def pid(self, bus_name: str) -> int:
        daemon = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
        found = await self.call(daemon, "org.freedesktop.DBus", "GetConnectionUnixProcessID", "s", [bus_name])
        return int(found[0])

    async def box(self, key: Key) -> Box | None:
        try:
            left, top, width, height = (await self.call(key, _SPI + "Component", "GetExtents", "u", [0]))[0]
        except AccessibilityError:
            return None
        return Box(left, top, width, height) if width > 0 and height > 0 else None

    async def boxes(self, elements: Iterable[Element]) -> None:
        """Ask where these are, all that are not known yet."""
        asked = [element for element in elements if element.box is None and "Component" in element.interfaces]
        for element, box in zip(asked, await asyncio.gather(*(self.box(e.key) for e in asked)), strict=True):
            element.box = box

    async def text(self, key: Key) -> str:
        # Qt gives nothing at all of a text of several lines if it is asked for more than there is.
        count = int(await self.property(key, "Text", "CharacterCount"))
        return str((await self.call(key, _SPI + "Text", "GetText", "ii", [0, min(count, _MOST_TEXT)]))[0])

    async def values(self, elements: Iterable[Element]) -> None:
        """Ask what is written or set in these."""

        async def value(element: Element) -> str | None:
            try:
                if "Text" in element.interfaces:
                    return await self.text(element.key)
                if "Value" in element.interfaces:
                    return f"{await self.property(element.key, 'Value', 'CurrentValue'):g}"
            except AccessibilityError:
                pass
            return None

        asked = [element for element in elements if element.value is None]
        for element, found in zip(asked, await asyncio.gather(*map(value, asked)), strict=True):
            element.value = found

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

    # -- the tree ------------------------------------------------------------------------------------------------

    async def tree(self, pids: frozenset[int]) -> Tree:
        """The tree of the programs with these process ids; of all, if none is given."""
        tree = Tree()
        await self._listen()
        programs = (await self.call(("org.a11y.atspi.Registry", _ROOT), _SPI + "Accessible", "GetChildren"))[0]
        await asyncio.gather(*(self._program(tree, (name, path), pids) for name, path in programs))
        return tree

    async def _listen(self) -> None:
        """Some programs, such as Chromium, have all elements ready only while somebody listens for events."""
        registry = ("org.a11y.atspi.Registry", "/org/a11y/atspi/registry")
        rare = ["window:close", [], ""]
        try:
            await self.call(registry, _SPI + "Registry", "RegisterEvent", "sass", rare)
        except AccessibilityError:
            pass  # an older registry; then they are walked

    async def _program(self, tree: Tree, key: Key, pids: frozenset[int]) -> None:
        try:
            pid = await self.pid(key[0])
            if pids and pid not in pids:
                return
            found = await self._cached(key)
            found += await self._walked(tree, await self._lacking(found) if found else [(key, ("", _NULL), 0)])
        except AccessibilityError:
            return
        for element in found:
            element.pid = pid
            tree.elements[element.key] = element

    async def _cached(self, key: Key) -> list[Element]:
        """All elements in one answer, as GTK and Chromium give it; Qt has none."""
        try:
            items = (await self.call((key[0], "/org/a11y/atspi/cache"), _SPI + "Cache", "GetItems"))[0]
        except AccessibilityError:
            return []
        found = [_from_cache(item) for item in items]
        return found if any(element.role != "application" for element in found) else []

    async def _lacking(self, found: list[Element]) -> list[tuple[Key, Key, int]]:
        """The children that the one answer does not have: Chromium's does not hear of pages that come later."""
        known = {element.key for element in found}
        counts = Counter(element.parent for element in found)
        parents = [
            element
            for element in found
            if element.showing
            and element.children > counts[element.key]
            and "manages descendants" not in element.states
        ]
        asked = parents[:_MOST_PARENTS]
        answers = await asyncio.gather(*(self._children(element.key) for element in asked))
        return [
            (key, element.key, number)
            for element, keys in zip(asked, answers, strict=True)
            for number, key in enumerate(keys)
            if key not in known
        ]

    async def _children(self, key: Key) -> list[Key]:
        try:
            found = (await self.call(key, _SPI + "Accessible", "GetChildren"))[0]
        except AccessibilityError:
            return []
        return [(bus, path) for bus, path in found if path != _NULL]

    async def _walked(self, tree: Tree, level: list[tuple[Key, Key, int]]) -> list[Element]:
        """Element by element, as far as something is shown."""
        found: list[Element] = []
        now = asyncio.get_running_loop().time
        end = now() + _WALK
        while level and len(found) < _MOST_WALKED and now() < end:
            part, level = level[:_STEP], level[_STEP:]
            looked = await asyncio.gather(*(self._look(*each) for each in part))
            found += [element for element, _ in looked if element is not None]
            level += [each for element, below in looked if element is not None for each in below]
        tree.cut = tree.cut or bool(level)
        return found

    async def _look(self, key: Key, parent: Key, index: int) -> tuple[Element | None, list[tuple[Key, Key, int]]]:
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
            kind, state = role_name(role[0]), state_names(states[0])
            shown = kind == "application" or {"showing", "visible"} <= state
            children = (await self.call(key, accessible, "GetChildren"))[0] if shown else []
        except AccessibilityError:
            return None, []
        element = Element(key, parent, index, kind, name, description, state, _interfaces(interfaces[0]), len(children))
        below = [((bus, path), key, number) for number, (bus, path) in enumerate(children) if path != _NULL]
        return element, below


def _interfaces(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in names)


def _from_cache(item: Any) -> Element:
    """An item of the cache; old programs list their children where new ones count them."""
    key, _, parent, *middle, interfaces, name, role, description, states = item
    index, children = (middle[0], middle[1]) if len(middle) == 2 else (0, len(middle[0]))
    return Element(
        tuple(key), tuple(parent), index, role_name(role), name, description,
        state_names(states), _interfaces(interfaces), children,
    )  # fmt: skip


async def _connected(look: Callable[[Asking], Coroutine[Any, Any, Result]], limit: float) -> Result:
    from dbus_fast.aio import MessageBus

    try:
        async with asyncio.timeout(ONE_CALL):
            bus = await MessageBus(bus_address=await address()).connect()
    except TimeoutError:
        silent[session_bus()] = time.monotonic()
        raise
    try:
        async with asyncio.timeout(limit):
            return await look(Asking(bus))
    finally:
        bus.disconnect()


def look(question: Callable[[Asking], Coroutine[Any, Any, Result]], limit: float = 10.0) -> Result:
    """Ask something of the accessibility bus; an AccessibilityError if it cannot be asked or takes too long."""
    try:
        import dbus_fast  # noqa: F401
    except ImportError as error:
        raise AccessibilityError(
            "The accessibility tree needs dbus-fast: pip install 'open-interpreter[os]'"
        ) from error
    if not session_bus():
        raise AccessibilityError("There is no session bus: DBUS_SESSION_BUS_ADDRESS is not set.")
    if time.monotonic() - silent.get(session_bus(), -LEFT_ALONE) < LEFT_ALONE:
        raise AccessibilityError("The session bus did not answer a moment ago.")
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(_connected(question, limit)))
        except BaseException as error:  # noqa: BLE001 - handed to the thread that asked
            failure.append(error)

    # A thread of its own: the caller may have a running event loop.
    asking = threading.Thread(target=run, name="accessibility", daemon=True)
    asking.start()
    asking.join(limit + 2)
    if outcome:
        return outcome[0]
    if failure and not isinstance(failure[0], _EXPECTED):
        raise failure[0]
    why = failure[0] if failure else "it took too long"
    raise AccessibilityError(f"The accessibility tree cannot be read: {str(why) or type(why).__name__}") from None


_EXPECTED = (AccessibilityError, OSError, EOFError, TimeoutError, ValueError)
