"""The tool for skills: functions and instructions from earlier times, found by name or words, run in the session."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.computer_api.at_session import called_from_sandbox, do
from interpreter.computer_api.files.work.definitions import Definition
from interpreter.computer_api.files.work.ranking import Ranked, words_of
from interpreter.computer_api.skills.found import SHARED, Skill, functions_in, instructions_in, names_in
from interpreter.computer_api.skills.new_skill import NewSkill
from interpreter.computer_api.skills.source import defines, needs_arguments, normalised, of_code
from interpreter.computer_api.tool import Tool
from interpreter.errors import ComputerError

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer

Names = list[str]
Rows = list[dict[str, Any]]
OFF = "Code may not save skills (setting `computer.save_skills`)."
IN_SANDBOX = "Code in a sandbox cannot keep skills: they would run outside of it later. Ask the user to keep it."


class Skills(Tool):
    """What has worked before: functions that run in the session, and instructions to read."""

    def __init__(self, computer: Computer) -> None:
        super().__init__(computer)
        self.new_skill = NewSkill(computer, self)

    @property
    def path(self) -> str:
        """The folder of the user's functions."""
        from platformdirs import user_config_dir

        chosen = self.computer.skills_path or os.path.join(user_config_dir("open-interpreter"), "skills")
        return os.path.normpath(os.path.join(self._workspace(), os.path.expanduser(chosen)))

    @path.setter
    def path(self, folder: str) -> None:
        if called_from_sandbox():
            raise PermissionError("Code in a sandbox cannot choose the folder of the skills.")
        self.computer.skills_path = folder

    # -- what there is ---------------------------------------------------------------------------------------------

    def list(self) -> Names:
        """The names of all skills: functions as `name()`, instructions as `name`."""
        return [skill.told for skill in self._all().values()]

    def search(self, query: str = "", max_results: int = 10) -> Rows:
        """The skills that are most about the query: name, kind, description, signature, path."""
        skills = [*self._all().values()]
        if words_of(query):
            told = [Definition(skill.name, "", skill.description, str(skill.path), 1) for skill in skills]
            best = [found.name for found in Ranked(told, query).best(max_results)]
            skills = [skill for name in best for skill in skills if skill.name == name]
        return [_row(skill) for skill in skills[:max_results]]

    def read(self, name: str) -> str:
        """The instructions of a skill, or the source of its function."""
        return self._text(self._named(name).path)

    def run(self, skill: str, *args: Any, **kwargs: Any) -> Any:
        """Run a skill in the Python session, with arguments; instructions are given back to be followed."""
        found = self._named(skill)
        if found.kind == "instructions":
            return self._text(found.path)
        if self.computer.python == "in-process" and not called_from_sandbox():
            from interpreter.runtimes.python.driver.skills import function

            return function(found.name, self._text(found.path))(*args, **kwargs)
        if self.computer._active is not None:
            raise ComputerError("A block is running. A skill runs in a block of its own.")
        call = f"computer.skills.run({found.name!r}, *{args!r}, **{kwargs!r})"
        return self.computer.run("python", call)

    def code(self, skill: str) -> dict[str, str]:
        """What a session needs to run a skill itself: its name, its kind and its text."""
        found = self._named(skill)
        return {"name": found.name, "kind": found.kind, "text": self._text(found.path)}

    def import_skills(self) -> Names:
        """Have all functions by their names in the session; the names."""
        return names_in(Path(self.path))

    # -- keeping ---------------------------------------------------------------------------------------------------

    def save(
        self, name: str, code: str, test: str | None = None, description: str = "", replace: bool = False
    ) -> dict[str, Any]:
        """Keep code as a skill: it has to run in a fresh session first, and so has the `test`."""
        calls = not defines(code, normalised(name))  # a block, which has run only if it is called
        return self._save(name, code, test, description, replace, calls=calls)

    def _save(
        self, name: str, code: str, test: str | None, description: str, replace: bool, *, calls: bool
    ) -> dict[str, Any]:
        from interpreter.computer_api.skills.fresh import failure

        own = normalised(name)
        self._may_keep(own, replace)
        source = of_code(own, code, description)
        last = test or (f"{own}()" if calls and not needs_arguments(source, own) else None)
        wrong = failure(self.computer, source, *([last] if last else []))
        if wrong is not None:
            raise ComputerError(
                f"The skill {own} is not kept: in a fresh session its code does not run. It may need imports, or "
                f"variables of this session, which should be its parameters.\n{wrong}"
            )
        return {**self._keep(own, source, replace=True), "tested": last is not None}

    def _keep(self, name: str, source: str, *, replace: bool) -> dict[str, Any]:
        self._may_keep(name, replace)
        folder = Path(self.path)
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, passing = tempfile.mkstemp(".passing", dir=folder)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(source)
        os.replace(passing, folder / f"{name}.py")
        return {"name": name, "path": str(folder / f"{name}.py")}

    def _may_keep(self, name: str, replace: bool) -> None:
        if not self.computer.save_skills:
            raise PermissionError(OFF)
        if called_from_sandbox():
            raise PermissionError(IN_SANDBOX)
        if not replace and Path(self.path, f"{name}.py").exists():
            raise ValueError(f"There is a skill {name} already. To keep this one in its place: replace=True.")

    # -- inside ----------------------------------------------------------------------------------------------------

    def _all(self) -> dict[str, Skill]:
        """By name; what a project brings goes before what the user has elsewhere, functions before instructions."""
        found: dict[str, Skill] = {}
        for skill in functions_in(Path(self.path), self._text):
            found[skill.name] = skill
        for place in (Path(self._workspace()), Path.home()):
            for skill in instructions_in(place / SHARED, self._text):
                found.setdefault(skill.name, skill)
        return found

    def _named(self, name: str) -> Skill:
        skills, wanted = self._all(), name.strip().removesuffix("()")
        if wanted in skills:
            return skills[wanted]
        from difflib import get_close_matches

        close = get_close_matches(wanted, skills, 3) or [*skills][:10]
        there = f"There are: {', '.join(close)}." if close else "There are none yet."
        raise ComputerError(f"There is no skill {wanted!r}. {there} computer.skills.search(words) finds them.")

    def _text(self, path: Path) -> str:
        """What a file holds; one that code in a sandbox may have put there is read from inside it."""
        workspace = self._workspace()
        real = Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(workspace))
        if real or path.is_relative_to(workspace):  # a link in the workspace may lead out of it
            return str(do(self.computer, "reading", "whole", path=str(path)))
        return path.read_text("utf-8", "replace")

    def _workspace(self) -> str:
        owner = self.computer._interpreter
        return str(owner.workspace) if owner is not None else self.computer.surroundings.cwd


def _row(skill: Skill) -> dict[str, Any]:
    return {
        "name": skill.told,
        "kind": skill.kind,
        "description": skill.description,
        "signature": skill.signature,
        "path": str(skill.path),
    }
