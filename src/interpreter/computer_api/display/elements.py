"""Elements of the accessibility tree: what programs tell about their own windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from interpreter.computer_api.display.boxes import Box
from interpreter.computer_api.display.roles import TOPS

Key = tuple[str, str]
"""Where an element lives: the program's name on the bus, and the path there."""

# States worth telling a model.
_TOLD = ("focused", "checked", "selected", "expanded", "pressed", "read only", "required", "invalid entry")


@dataclass
class Element:
    """One element, with what has been asked about it so far."""

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

    def told(self, ref: str) -> dict[str, Any]:
        """It as a value: what a model needs to choose it, and to name it in a call."""
        box = self.box or Box(0, 0, 0, 0)
        x, y = box.center
        name, description = self.name.strip(), self.description.strip()  # GTK puts room for a shortcut behind them
        told: dict[str, Any] = {"ref": ref, "role": self.role, "name": name, "x": x, "y": y, "box": list(box)}
        if self.value is not None:
            told["value"] = self.value
        if description and description != name:
            told["description"] = description
        states = [state for state in _TOLD if state in self.states]
        if "enabled" not in self.states and "sensitive" not in self.states:
            states.append("disabled")
        if states:
            told["states"] = states
        return told


@dataclass
class Tree:
    """The elements of the programs that have windows, by their key."""

    elements: dict[Key, Element] = field(default_factory=dict)
    cut: bool = False
    """Whether there was more than could be asked in the time."""

    def ancestors(self, element: Element) -> Iterator[Element]:
        seen = {element.key}
        parent = self.elements.get(element.parent)
        while parent is not None and parent.key not in seen:
            yield parent
            seen.add(parent.key)
            parent = self.elements.get(parent.parent)

    def top(self, element: Element) -> Element | None:
        """The window that the element is in."""
        found = element if element.role in TOPS else None
        for ancestor in self.ancestors(element):
            if ancestor.role in TOPS:
                found = ancestor
        return found

    def below(self, top: Element) -> Iterator[Element]:
        """An element and all in it, in the order in which programs have them."""
        children: dict[Key, list[Element]] = {}
        for element in self.elements.values():
            children.setdefault(element.parent, []).append(element)
        waiting, seen = [top], set()
        while waiting:
            element = waiting.pop()
            if element.key in seen:
                continue
            seen.add(element.key)
            yield element
            waiting += reversed(_in_order(children.get(element.key, [])))

    def uncounted(self) -> list[Element]:
        """Those on the screen whose program does not say which of its siblings is the first."""
        parents = {element.parent for element in self.elements.values() if element.index < 0}
        return [element for element in self.elements.values() if element.showing and element.parent in parents]


def _in_order(siblings: list[Element]) -> list[Element]:
    """As their program counts them; GTK does not count the items of a menu, so these go by their places."""
    if all(element.index >= 0 for element in siblings):
        return sorted(siblings, key=lambda element: element.index)
    return sorted(siblings, key=lambda element: (element.box.top, element.box.left) if element.box else (0, 0))
