"""Profiles with a key in them that others on this machine can read."""

from __future__ import annotations

import ast
import os
import re
import stat
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.config.profiles.profile import Place, Profile, find
from interpreter.config.profiles.read import read
from interpreter.config.setting import apply, speaking_as
from interpreter.errors import ProfileError

if TYPE_CHECKING:
    from httpx import Response

    from interpreter.api import OpenInterpreter


_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_IN_CODE = re.compile(r"""api_key\s*=\s*["']([^"'\n]+)["']""")


def shared_keys(profile: Profile) -> Iterator[str]:
    """A line for the user if the file has a key in it and is not theirs alone."""
    path = profile.place.address
    if profile.place.is_builtin or os.name != "posix" or not os.stat(path).st_mode & _OTHERS:
        return
    if _has_key(profile):
        yield f"{path} has a key in it, and others on this machine can read it: chmod 600 {path}"


def _has_key(profile: Profile) -> bool:
    from interpreter.llm.secrets import redacted, secret_values

    values = [value for name, value in profile.settings.items() if name.endswith("api_key")]
    # A value that is not in the file came from a variable.
    keys = [value for value in values if isinstance(value, str) and value in profile.text]
    keys += _IN_CODE.findall(profile.code)
    return bool(secret_values({}, [(key, key) for key in keys])) or bool(redacted(profile.text, {})[1])


LARGEST = 1_000_000
PATIENCE = 20.0
_SUFFIXES = {"application/json": ".json", "text/x-python": ".py"}


def fetch(place: Place) -> tuple[Place, str]:
    """The profile at an address: its place with what it is written in, and its text."""
    import httpx

    try:
        with (
            httpx.Client(follow_redirects=True, max_redirects=5, timeout=PATIENCE) as client,
            client.stream("GET", place.address) as answer,
        ):
            _check(place, answer)
            content = b""
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > LARGEST:
                    raise ProfileError(f"{place.address} is larger than {LARGEST:,} bytes: that is no profile.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProfileError(f"{place.address} could not be fetched: {error or type(error).__name__}.") from error
    kind = answer.headers.get("content-type", "").partition(";")[0].strip()
    told = place.kind or _SUFFIXES.get(kind, ".yaml")
    return replace(place, told=told), content.decode("utf-8", "replace")


def _check(place: Place, answer: Response) -> None:
    if answer.status_code != 200:
        raise ProfileError(f"{place.address} could not be fetched: the server says {answer.status_code}.")
    if place.address.lower().startswith("https:") and answer.url.scheme != "https":
        raise ProfileError(f"{place.address} leads to {answer.url}, which is not encrypted.")
    if answer.headers.get("content-type", "").startswith("text/html"):
        raise ProfileError(f"{place.address} is a web page, not a profile. Give the address of the raw file.")


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


Accept = Callable[[Profile], bool]

_LANGUAGES = "computer.languages"
# Languages of the original that are not there yet: a profile may name them.
_NOT_YET = ("ruby", "r", "powershell", "applescript", "java", "html", "react")


def load(interpreter: OpenInterpreter, name: str, accept: Accept | None = None) -> Profile:
    """Set an interpreter up as a profile says; what flags and the environment said stays.

    `name` is a name, a path or an address. What comes from an address is used only if `accept` says yes to it.
    """
    place = find(name)
    profile = _fetched(interpreter, place, accept) if place.is_url else _own(place)
    return _applied(profile, interpreter)


def _own(place: Place) -> Profile:
    profile = read(place, _text(place))
    return replace(profile, notices=(*profile.notices, *shared_keys(profile)))


def _fetched(interpreter: OpenInterpreter, place: Place, accept: Accept | None) -> Profile:

    if interpreter.offline:
        raise ProfileError(f"{place.address} is not fetched while `offline` is set.")
    profile = read(*fetch(place))
    if accept is None or not accept(profile):
        raise ProfileError(f"The profile {place.address} was not loaded: nobody said yes to it.")
    return profile


def _text(place: Place) -> str:
    try:
        return Path(place.address).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"{place.address} cannot be read: {error}.") from error


def _applied(profile: Profile, interpreter: OpenInterpreter) -> Profile:
    if profile.code:
        run(profile, interpreter)
    for name, value in profile.settings.items():
        apply(interpreter, {name: value}, "profile", _at(profile, name))
    if profile.languages is None:
        return profile
    return replace(profile, later=(*profile.later, *_keep_languages(profile, interpreter)))


def _keep_languages(profile: Profile, interpreter: OpenInterpreter) -> list[str]:
    """Leave out all other languages; those that are not there yet, in words."""
    computer, wanted, later = interpreter.computer, set[Any](), []
    for name in profile.languages or ():
        language = computer.get_language(name)
        if language is not None:
            wanted.add(language)
        elif name.lower() in _NOT_YET:
            later.append(f"{name} is not there yet")
        else:
            known, where = ", ".join(each.name.lower() for each in computer.languages), _at(profile, _LANGUAGES)
            raise ProfileError(f"{where}: there is no language {name}. There are: {known}.")
    computer.languages = [language for language in computer.languages if language in wanted]
    return later


def _at(profile: Profile, name: str) -> str:
    line = profile.lines.get(name)
    return f"{profile.place.address}, line {line}" if line else profile.place.address
