"""The source of a skill: from a function, a block of code, or steps, to a file that defines one function."""

from __future__ import annotations

import ast
import io
import keyword
import re
import textwrap
import tokenize

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


def normalised(name: str) -> str:
    """The name of a function for words: `Tidy my downloads` is `tidy_my_downloads`."""
    found = re.sub(r"\W+", "_", name.strip().lower()).strip("_")
    if not found:
        raise ValueError("A skill needs a name of letters or digits.")
    return found if found.isidentifier() and not keyword.iskeyword(found) else f"skill_{found}"


def of_code(name: str, code: str, description: str) -> str:
    """A file that defines the function: the code's own, else one whose body is the code."""
    code = textwrap.dedent(code).strip("\n") + "\n"
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise ValueError(f"The code cannot be kept as a skill: line {error.lineno}: {error.msg}.") from None
    if not tree.body:
        raise ValueError("There is no code to keep.")
    if not _defined_by(tree, name):
        code = _wrapped(name, code, tree, description)
        tree = ast.parse(code)
    if description and ast.get_docstring(tree) is None:
        return f"{_quoted(description)}\n\n{code}"
    return code


def of_steps(name: str, title: str, steps: list[tuple[str, str]]) -> str:
    """A file whose function prints the steps, one at a time."""
    listed = "[\n" + "".join(f"    {each!r},\n" for each in steps) + "]"
    about = title.replace("\\", " ").replace('"', "'").strip().rstrip(".") + "."
    return STEPS.format(name=name, about=about, steps=listed)


def needs_arguments(source: str, name: str) -> bool:
    """Whether the function cannot be called just so."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            plain = len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults)
            return plain > 0 or any(default is None for default in node.args.kw_defaults)
    return True


def defines(code: str, name: str) -> bool:
    """Whether the code defines the function itself."""
    try:
        return _defined_by(ast.parse(textwrap.dedent(code)), name)
    except SyntaxError:
        return False


def _defined_by(tree: ast.Module, name: str) -> bool:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(node, kinds) and node.name == name for node in tree.body)


def _wrapped(name: str, code: str, tree: ast.Module, description: str) -> str:
    """The code as the body of a function that returns its last value."""
    lines = code.splitlines()
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        at = last.lineno - 1
        lines[at] = lines[at][: last.col_offset] + "return " + lines[at][last.col_offset :]
    inside = _inside_strings(code)
    body = [line if number in inside or not line else f"    {line}" for number, line in enumerate(lines, 1)]
    doc = f"    {_quoted(description)}\n" if description else ""
    return f"def {name}():\n{doc}" + "\n".join(body) + "\n"


def _inside_strings(code: str) -> set[int]:
    """The lines that begin in the middle of a string, which would change if they were moved."""
    inside: set[int] = set()
    starts: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        kind = tokenize.tok_name[token.type]
        if kind in ("FSTRING_START", "TSTRING_START"):  # from Python 3.12 on
            starts.append(token.start[0])
        elif kind in ("FSTRING_END", "TSTRING_END"):
            inside.update(range(starts.pop() + 1, token.end[0] + 1))
        elif kind == "STRING":
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
    return inside


def _quoted(text: str) -> str:
    plain = text.strip().replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{plain}{" " if plain.endswith(chr(34)) else ""}"""'
