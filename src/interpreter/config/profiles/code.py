"""Profiles in Python: run with the interpreter that is being set up as theirs."""

from __future__ import annotations

import ast
import traceback
from typing import TYPE_CHECKING, Any

from interpreter.config.settings import apply, speaking_as
from interpreter.errors import ProfileError

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.config.profiles.profile import Profile

_PACKAGE = "interpreter"
_OURS = "_interpreter_being_set_up"
_MADE = "_interpreter_made_anew"


def run(profile: Profile, interpreter: OpenInterpreter) -> None:
    """Run the code of a profile; what it assigns counts as said by the profile."""
    place = profile.place.address

    def made_anew(**settings: Any) -> OpenInterpreter:
        apply(interpreter, settings, "profile", place)
        return interpreter

    names = {
        "__name__": "interpreter_profile",
        "__file__": place,
        "interpreter": interpreter,
        _OURS: interpreter,
        _MADE: made_anew,
    }
    try:
        compiled = compile(_with_ours(profile), place, "exec")
        with speaking_as("profile", place):
            exec(compiled, names)
    except SyntaxError as error:
        raise ProfileError(f"{place}, line {error.lineno}: {error.msg}.") from error
    except Exception as error:
        raise ProfileError(f"{place}, line {_line(error, place)}: {_words(error)}") from error


def _with_ours(profile: Profile) -> ast.Module:
    """The code, with `from interpreter import interpreter` giving the one that is being set up."""
    tree = ast.parse(profile.code, profile.place.address)
    ast.increment_lineno(tree, profile.code_line - 1)
    _Ours().visit(tree)  # in place
    return ast.fix_missing_locations(tree)


class _Ours(ast.NodeTransformer):
    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.module != _PACKAGE or node.level:
            return node
        ours = [alias for alias in node.names if alias.name in ("interpreter", "computer")]
        rest = [alias for alias in node.names if alias not in ours]
        kept: list[ast.stmt] = [ast.copy_location(ast.ImportFrom(_PACKAGE, rest, 0), node)] if rest else []
        return kept + [self._assigned(node, alias) for alias in ours]

    def _assigned(self, node: ast.ImportFrom, alias: ast.alias) -> ast.stmt:
        value = _OURS if alias.name == "interpreter" else f"{_OURS}.computer"
        [statement] = ast.parse(f"{alias.asname or alias.name} = {value}").body
        return ast.copy_location(statement, node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        match node:
            case ast.Assign(
                targets=[ast.Name(id="interpreter")], value=ast.Call(func=ast.Name(id="OpenInterpreter")) as call
            ):
                call.func = ast.copy_location(ast.Name(_MADE, ast.Load()), call.func)
        return self.generic_visit(node)


def _line(error: Exception, place: str) -> int | str:
    """The last line of the profile itself on the way to the error."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == place]
    return lines[-1] if lines and lines[-1] is not None else "?"


def _words(error: Exception) -> str:
    from interpreter.errors import InterpreterError

    return str(error) if isinstance(error, InterpreterError) else f"{type(error).__name__}: {error}".rstrip(": ")
