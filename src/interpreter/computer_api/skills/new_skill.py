"""A skill in the making: a name, then its steps, then it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interpreter.computer_api.skills.source import normalised, of_steps
from interpreter.computer_api.tool import Tool

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer
    from interpreter.computer_api.skills.skills import Skills


class NewSkill(Tool):
    """Keeps what was done as steps, or a block that worked as a function."""

    def __init__(self, computer: Computer, skills: Skills) -> None:
        super().__init__(computer)
        self._skills = skills
        self._name = ""
        self._steps: list[tuple[str, str]] = []

    def create(self) -> str:
        """Begin a new skill of steps."""
        self._name, self._steps = "", []
        return (
            "Ask the user what the skill is called, then set computer.skills.new_skill.name. Do the task one step at a "
            "time; after each that worked: computer.skills.new_skill.add_step(what it does, its code). "
            "At the end: computer.skills.new_skill.save()"
        )

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        normalised(name)
        self._name = name

    def add_step(self, step: str, code: str) -> str:
        """Add a step: what it does, and code that has worked."""
        self._steps.append((str(step), str(code)))
        return f"Step {len(self._steps)} is noted. Add the next, or computer.skills.new_skill.save()"

    def save(self) -> dict[str, Any]:
        """Keep the steps as a skill."""
        if not self._name or not self._steps:
            raise ValueError("A skill of steps needs a name and at least one step: see new_skill.create().")
        source = of_steps(normalised(self._name), self._name, self._steps)
        kept = self._skills._keep(normalised(self._name), source, replace=True)
        self._name, self._steps = "", []
        return kept

    def from_block(
        self, name: str, code: str, test: str | None = None, description: str = "", replace: bool = False
    ) -> dict[str, Any]:
        """Keep a block that worked as a function; it is run once more in a fresh session first, or its test is."""
        return self._skills._save(name, code, test, description, replace, calls=True)
