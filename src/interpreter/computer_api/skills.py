"""`computer.skills`: solutions that worked before, kept as functions to run in the session or instructions to read."""

from __future__ import annotations

import ast
import keyword
import os
import re
import textwrap
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from interpreter.computer_api.at_session import called_from_sandbox, context_of, do
from interpreter.computer_api.computer import Computer
from interpreter.computer_api.files.work.docstrings import Definition, defined_in, ranked, words_of
from interpreter.computer_api.tool import ComputerTool
from interpreter.config.homes import our_folder
from interpreter.errors import ComputerError
from interpreter.host.exposure import is_exposed
from interpreter.host.files import confined
from interpreter.questions import without_questions
from interpreter.runtimes.launch import RuntimeContext

Names = list[str]
Rows = list[dict[str, Any]]
LISTED = "Python has these functions, kept from earlier; computer.skills.read(name) shows one: {}"
MAX_LISTED = 30
MAX_BYTES = 1024 * 1024
SHARED = Path(".agents", "skills")  # in the home folder, and in a project
TEST_TIMEOUT = 60.0
MAX_ERROR_LENGTH = 1_500
STEPS = '''"""{about}"""

STEPS = {steps}


def {name}(step=0):
    """{about} Prints one step; call it with the number of the next when that is done."""
    if not 0 <= step < len(STEPS):
        print("That was the last step.")
        return
    words, code = STEPS[step]
    print(f"Step {{step + 1}} of {{len(STEPS)}}: {{words}}")
    print("Code that worked before; change in it what is different now:")
    print(code)
    if step + 1 < len(STEPS):
        print(f"When it is done: {name}(step={{step + 1}})")
'''


@dataclass(frozen=True)
class Skill:
    """One skill: a Python function, or instructions to read."""

    name: str
    kind: Literal["function", "instructions"]
    description: str
    path: Path
    signature: str = ""

    @property
    def label(self) -> str:
        return f"{self.name}()" if self.kind == "function" else self.name


class Skills(ComputerTool):
    """Solutions that worked before: functions that run in the session, and instructions to read."""

    def __init__(self, computer: Computer) -> None:
        super().__init__(computer)
        self.new_skill = NewSkill(computer, self)

    @property
    def path(self) -> str:
        """Return the folder of the user's functions."""
        chosen = self.computer.skills_path or str(our_folder() / "skills")
        return os.path.normpath(os.path.join(self._workspace(), os.path.expanduser(chosen)))

    @path.setter
    def path(self, folder: str) -> None:
        if called_from_sandbox():
            raise PermissionError("Code in a sandbox can't change the skills folder.")
        self.computer.skills_path = folder

    # -- finding and running ---------------------------------------------------------------------------------------

    def list(self) -> Names:
        """Return the names of all skills: functions as `name()`, instructions as `name`."""
        return [skill.label for skill in self._all().values()]

    def search(self, query: str = "", max_results: int = 10) -> Rows:
        """Return the skills that fit the query best: name, kind, description, signature, path."""
        skills = self._all()
        matching = list(skills.values())
        if words_of(query):
            texts = [Definition(skill.name, "", skill.description, str(skill.path), 1) for skill in matching]
            matching = [skills[best.name] for best in ranked(texts, query)]
        return [{**vars(skill), "name": skill.label, "path": str(skill.path)} for skill in matching[:max_results]]

    def read(self, name: str) -> str:
        """Return the instructions of a skill, or the source of its function."""
        return self._text(self._named(name).path)

    def run(self, skill: str, *args: Any, **kwargs: Any) -> Any:
        """Run a skill in the Python session, with arguments; instructions are returned to be followed."""
        chosen = self._named(skill)
        if chosen.kind == "instructions":
            return self._text(chosen.path)
        if self.computer.python == "in-process" and not called_from_sandbox():
            from interpreter.runtimes.python.driver.computer import skill_function

            return skill_function(chosen.name, self._text(chosen.path))(*args, **kwargs)
        if self.computer.runtimes.active is not None:
            raise ComputerError("A block is running. A skill needs a separate block.")
        return self.computer.run("python", f"computer.skills.run({chosen.name!r}, *{args!r}, **{kwargs!r})")

    def code(self, skill: str) -> dict[str, str]:
        """Return a skill's name, kind and text, which a session needs to run the skill itself."""
        chosen = self._named(skill)
        return {"name": chosen.name, "kind": chosen.kind, "text": self._text(chosen.path)}

    def import_skills(self) -> Names:
        """Define all functions by their names in the session; returns the names."""
        self.computer.import_skills = True
        return names_in(Path(self.path))

    # -- keeping ---------------------------------------------------------------------------------------------------

    def save(
        self, name: str, code: str, test: str | None = None, description: str = "", replace: bool = False
    ) -> dict[str, Any]:
        """Keep code as a skill: it has to run in a fresh session first, and so has the `test`."""
        own = normalised(name)
        check_saving(self, own, replace)
        source = of_code(own, code, description)
        # A block, unlike a function, has run only if it is called.
        last = test or (f"{own}()" if function_in(code, own) is None else "")
        wrong = failure(context_of(self.computer), source, *([last] if last else []))
        if wrong is not None:
            raise ComputerError(
                f"The skill {own} was not saved: its code does not run in a fresh session. It may need imports, or "
                f"variables of this session, which should be parameters.\n{wrong}"
            )
        return {**write_skill(self, own, source), "tested": bool(last)}

    # -- where they are --------------------------------------------------------------------------------------------

    def _all(self) -> dict[str, Skill]:
        """Return all skills by name: functions override instructions, and a project's those in the home folder."""
        skills: dict[str, Skill] = {}
        folder = Path(self.path)
        for name in names_in(folder):
            file = folder / f"{name}.py"
            if (text := self._text_or_none(file)) is not None:
                module, own = name, f"{name}.{name}"
                defined = {each.name: each for each in defined_in(text, str(file), module)}
                summaries = dict.fromkeys(
                    first_paragraph(defined[each].doc) for each in (module, own) if each in defined
                )
                signature = defined[own].signature if own in defined else ""
                skills[name] = Skill(name, "function", " ".join(filter(None, summaries)), file, signature)
        for root in (Path(self._workspace()), Path.home()):
            for file in sorted((root / SHARED).glob("*/SKILL.md")):
                if (text := self._text_or_none(file)) is not None:
                    head = front_matter(text)
                    name, description = head.get("name") or file.parent.name, head.get("description") or ""
                    skill = Skill(str(name), "instructions", first_paragraph(str(description)), file)
                    skills.setdefault(skill.name, skill)
        return skills

    def _named(self, name: str) -> Skill:
        skills, wanted = self._all(), name.strip().removesuffix("()")
        if wanted in skills:
            return skills[wanted]
        close = get_close_matches(wanted, skills, 3) or [*skills][:10]
        there = f"Available: {', '.join(close)}." if close else "There are none yet."
        raise ComputerError(f"There is no skill {wanted!r}. {there} To search: computer.skills.search(words)")

    def _text(self, path: Path) -> str:
        """Return a file's text; one that code in a sandbox may have written is read from inside the sandbox."""
        if is_exposed(str(path)):
            return str(do(self.computer, "texts", "whole", path=str(path)))
        return path.read_text("utf-8", "replace")

    def _text_or_none(self, file: Path) -> str | None:
        """Return a file's text; None if it's too large or unreadable, so that it doesn't hide the other skills."""
        try:
            return self._text(file) if os.path.getsize(file) <= MAX_BYTES else None
        except (OSError, ValueError):
            return None

    def _workspace(self) -> str:
        settings = self.computer.settings
        return str(settings.workspace) if settings is not None else self.computer.context.cwd


class NewSkill(ComputerTool):
    """Saves skills: recorded steps, or a block that worked as a function."""

    def __init__(self, computer: Computer, skills: Skills) -> None:
        super().__init__(computer)
        self._skills = skills
        self.name = ""
        self._steps: list[tuple[str, str]] = []

    def create(self) -> str:
        """Begin a new skill of steps."""
        self.name, self._steps = "", []
        return (
            "Ask the user what the skill is called, then set computer.skills.new_skill.name. Do the task one step at a "
            "time; after each that worked: computer.skills.new_skill.add_step(what it does, its code). "
            "At the end: computer.skills.new_skill.save()"
        )

    def add_step(self, step: str, code: str) -> str:
        """Add a step: its description, and code that has worked."""
        self._steps.append((str(step), str(code)))
        return f"Step {len(self._steps)} added. Add the next one, or call computer.skills.new_skill.save()"

    def save(self) -> dict[str, Any]:
        """Save the recorded steps as a skill."""
        if not self.name or not self._steps:
            raise ValueError("A skill needs a name and at least one step. See new_skill.create().")
        name = normalised(self.name)
        listed = "[\n" + "".join(f"    {each!r},\n" for each in self._steps) + "]"
        about = self.name.replace("\\", " ").replace('"', "'").strip().rstrip(".") + "."
        kept = write_skill(self._skills, name, STEPS.format(name=name, about=about, steps=listed))
        self.name, self._steps = "", []
        return kept

    def from_block(
        self, name: str, code: str, test: str | None = None, description: str = "", replace: bool = False
    ) -> dict[str, Any]:
        """Save a block that worked as a function, after running it or its test once in a fresh session."""
        own = normalised(name)
        call = None if needs_arguments(code, own) else f"{own}()"
        return self._skills.save(name, code, test or call, description, replace)


# -- saving ------------------------------------------------------------------------------------------------------------


def write_skill(skills: Skills, name: str, source: str) -> dict[str, Any]:
    """Write the file of a skill; an existing one is replaced."""
    check_saving(skills, name, replace=True)
    file = Path(skills.path, f"{name}.py")
    folder, relative = confined(file)
    with folder:
        if "/" in relative:
            folder.mkdir(relative.rpartition("/")[0], parents=True, exist_ok=True)
        folder.write_bytes(relative, source.encode("utf-8"))
    return {"name": name, "path": str(file)}


def check_saving(skills: Skills, name: str, replace: bool) -> None:
    if not skills.computer.save_skills:
        raise PermissionError("Code may not save skills (setting `computer.save_skills`).")
    if called_from_sandbox():
        raise PermissionError(
            "Code in a sandbox can't save skills, because they would later run outside it. Ask the user to save it."
        )
    if not replace and Path(skills.path, f"{name}.py").exists():
        raise ValueError(f"There is already a skill {name}. To replace it, use replace=True.")


# -- what files say ----------------------------------------------------------------------------------------------------


def names_in(folder: Path) -> list[str]:
    """Return the names of the skills that are Python files, without reading them."""
    return sorted(file.stem for file in folder.glob("[!_]*.py") if file.stem.isidentifier())


def front_matter(text: str) -> dict[str, Any]:
    """Parse the front matter between the two lines of dashes; empty if it can't be read."""
    import yaml

    head = re.match(r"\ufeff?[ \t]*---[ \t\r]*$(.*?)^[ \t]*---[ \t\r]*$", text, re.DOTALL | re.MULTILINE)
    try:
        fields = yaml.safe_load(head[1]) if head else None
    except yaml.YAMLError:
        return {}
    return fields if isinstance(fields, dict) else {}


def first_paragraph(text: str) -> str:
    return " ".join(text.strip().split("\n\n")[0].split())[:300]


# -- the source of a skill ---------------------------------------------------------------------------------------------


def normalised(name: str) -> str:
    """Make the name of a function from words: `Tidy my downloads` becomes `tidy_my_downloads`."""
    identifier = re.sub(r"\W+", "_", name.strip().lower()).strip("_")
    if not identifier:
        raise ValueError("A skill needs a name of letters or digits.")
    return identifier if identifier.isidentifier() and not keyword.iskeyword(identifier) else f"skill_{identifier}"


def parsed(code: str) -> ast.Module:
    try:
        return ast.parse(textwrap.dedent(code))
    except SyntaxError as error:
        raise ValueError(f"Can't save the code as a skill: line {error.lineno}: {error.msg}.") from None


def prompt_lines(agent: Any) -> str:
    """List the functions that Python has, for the system message."""
    names = agent.computer.skills.import_skills()
    listed = ", ".join(f"{name}()" for name in names[:MAX_LISTED]) + (", ..." if names[MAX_LISTED:] else "")
    return LISTED.format(listed) if names else ""


Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def function_in(code: str, name: str) -> Function | None:
    """Find the function or class that is the skill: the one of that name, else the only one of inert code."""
    body = [node for node in parsed(code).body if not (isinstance(node, ast.If) and "__name__" in ast.dump(node.test))]
    defined = [node for node in body if isinstance(node, Function)]
    same = [node for node in defined if node.name == name]
    if same or not body or body[-1] not in defined:
        return same[0] if same else None
    public = [node for node in defined if not node.name.startswith("_")] or defined
    if len(public) > 1:
        names = ", ".join(node.name for node in public)
        raise ValueError(
            f"The code defines {names}, and none of them is called {name}: rename the one that is the skill."
        )
    return public[0]


def needs_arguments(code: str, name: str) -> bool:
    """Return whether the code defines no such function, or one that cannot be called without arguments."""
    node = function_in(code, name)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    plain = len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults)
    return plain > 0 or any(default is None for default in node.args.kw_defaults)


def of_code(name: str, code: str, description: str) -> str:
    """Write a file that defines the function: the code's own under this name, or one whose body is the code."""
    code = textwrap.dedent(code).strip("\n") + "\n"
    tree = parsed(code)
    if not tree.body:
        raise ValueError("There is no code to save.")
    plain = description.strip().replace("\\", "\\\\").replace('"""', "'''")
    quoted = f'"""{plain}{" " if plain.endswith(chr(34)) else ""}"""'
    function = function_in(code, name)
    if function is None:
        code = _wrapped(name, code, tree, quoted if description else "")
        tree = ast.parse(code)
    elif function.name != name:  # it keeps its own name too, for itself and for the test
        lines = code.splitlines()
        head = lines[function.lineno - 1]
        lines[function.lineno - 1] = re.sub(rf"\b{function.name}\b", name, head, count=1)
        lines.insert(function.end_lineno or len(lines), f"\n\n{function.name} = {name}")
        code = "\n".join(lines) + "\n"
    return f"{quoted}\n\n{code}" if description and ast.get_docstring(tree) is None else code


def _wrapped(name: str, code: str, tree: ast.Module, docstring: str) -> str:
    """Write the code as the body of a function that returns its last value."""
    lines = code.splitlines()
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        at = last.lineno - 1
        lines[at] = lines[at][: last.col_offset] + "return " + lines[at][last.col_offset :]
    # Lines that begin within a string would change if they were indented.
    inside: set[int] = set()
    for node in ast.walk(tree):
        if type(node).__name__ in ("Constant", "JoinedStr", "TemplateStr"):
            inside.update(range(node.lineno + 1, (node.end_lineno or 0) + 1))  # type: ignore[attr-defined]
    body = [line if number in inside or not line else f"    {line}" for number, line in enumerate(lines, 1)]
    return "\n".join([f"def {name}():", *([f"    {docstring}"] if docstring else []), *body]) + "\n"


# -- trying it out -----------------------------------------------------------------------------------------------------


def failure(shared: RuntimeContext, *blocks: str) -> str | None:
    """Run the blocks in a fresh session, one after the other; return what went wrong, or None."""
    from interpreter.runtimes.python import Python

    python = None if shared.python == "in-process" else shared.python
    alone = replace(shared, python=python, on_input=None, keyboard=False, snapshots=0, timeout=TEST_TIMEOUT)
    session = Python(SimpleNamespace(context=alone))
    try:
        for block in blocks:
            output, ended = "", ""
            for chunk in without_questions(session.run(block)):
                if chunk.get("format") == "output":
                    output += str(chunk["content"])
                ended = str(chunk.get("ended", ended))
            if ended == "timed_out":
                return f"It took more than {TEST_TIMEOUT:.0f} seconds."
            if ended != "done":
                return output.strip()[-MAX_ERROR_LENGTH:] or f"It ended: {ended}."
        return None
    finally:
        session.terminate()
