"""Set an interpreter up as a profile says: from a file, from an address, or by running a profile in Python."""

from __future__ import annotations

import ast
import os
import re
import stat
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.config.profiles.profile import Place, Profile, find
from interpreter.config.profiles.read import LANGUAGES, read
from interpreter.config.setting import apply, speaking_as
from interpreter.errors import InterpreterError, ProfileError

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter

MAX_BYTES = 1_000_000
FETCH_TIMEOUT = 20.0
_SUFFIXES = {"application/json": ".json", "text/x-python": ".py"}
_READABLE_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEY_IN_CODE = re.compile(r"""api_key\s*=\s*["']([^"'\n]+)["']""")
# Languages of 0.4.3 that are not there yet: a profile may name them.
_NOT_YET = ("ruby", "r", "powershell", "applescript", "java", "html", "react")


def load(interpreter: OpenInterpreter, name: str, accept: Callable[[Profile], bool] | None = None) -> Profile:
    """Set an interpreter up as a profile says; flags and the environment take precedence.

    `name` is a name, a path or an address. What comes from an address is used only if `accept` says yes to it.
    """
    place = find(name)
    if place.is_url:
        if interpreter.offline:
            raise ProfileError(f"{place.address} is not fetched while `offline` is set.")
        profile = read(*fetch(place))
        if accept is None or not accept(profile):
            raise ProfileError(f"The profile {place.address} was not loaded: nobody said yes to it.")
    else:
        try:
            text = Path(place.address).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ProfileError(f"{place.address} cannot be read: {error}.") from error
        profile = read(place, text)
        if has_exposed_key(profile):
            notice = f"has a key in it, and others on this machine can read it: chmod 600 {place.address}"
            profile = replace(profile, notices=(*profile.notices, f"{place.address} {notice}"))
    if profile.code:
        run(profile, interpreter)
    for setting, value in profile.settings.items():
        apply(interpreter, {setting: value}, "profile", profile.where(setting))
    if profile.languages is None:
        return profile
    return replace(profile, later=(*profile.later, *_keep_languages(profile, interpreter)))


def _keep_languages(profile: Profile, interpreter: OpenInterpreter) -> list[str]:
    """Remove all other languages; notes about those that are not there yet."""
    computer, wanted, later = interpreter.computer, set[Any](), []
    for name in profile.languages or ():
        language = computer.get_language(name)
        if language is not None:
            wanted.add(language)
        elif name.lower() in _NOT_YET:
            later.append(f"{name} is not there yet")
        else:
            known = ", ".join(each.name.lower() for each in computer.languages)
            raise ProfileError(f"{profile.where(LANGUAGES)}: there is no language {name}. There are: {known}.")
    computer.languages = [language for language in computer.languages if language in wanted]
    return later


def has_exposed_key(profile: Profile) -> bool:
    """Whether the file has a key in it and others on this machine can read it."""
    if profile.place.is_builtin or os.name != "posix":
        return False
    if not os.stat(profile.place.address).st_mode & _READABLE_BY_OTHERS:
        return False
    from interpreter.llm.secrets import redacted, secret_values

    values = [value for name, value in profile.settings.items() if name.endswith("api_key")]
    # A value that is not in the file came from a variable.
    keys = [value for value in values if isinstance(value, str) and value in profile.text]
    keys += _KEY_IN_CODE.findall(profile.code)
    return bool(secret_values({}, [(key, key) for key in keys])) or bool(redacted(profile.text, {})[1])


def fetch(place: Place) -> tuple[Place, str]:
    """The profile at an address: its place with the format it is written in, and its text."""
    import httpx

    address, content = place.address, b""
    try:
        with (
            httpx.Client(follow_redirects=True, max_redirects=5, timeout=FETCH_TIMEOUT) as client,
            client.stream("GET", address) as answer,
        ):
            kind = answer.headers.get("content-type", "").partition(";")[0].strip()
            if answer.status_code != 200:
                raise ProfileError(f"{address} could not be fetched: the server says {answer.status_code}.")
            if address.lower().startswith("https:") and answer.url.scheme != "https":
                raise ProfileError(f"{address} leads to {answer.url}, which is not encrypted.")
            if kind.startswith("text/html"):
                raise ProfileError(f"{address} is a web page, not a profile. Give the address of the raw file.")
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > MAX_BYTES:
                    raise ProfileError(f"{address} is larger than {MAX_BYTES:,} bytes: that is no profile.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProfileError(f"{address} could not be fetched: {error or type(error).__name__}.") from error
    return replace(place, format=place.kind or _SUFFIXES.get(kind, ".yaml")), content.decode("utf-8", "replace")


# -- profiles in Python ------------------------------------------------------------------------------------------------

_PACKAGE = "interpreter"
_TARGET = "_interpreter_being_set_up"
_MAKE = "_make_interpreter"


def run(profile: Profile, interpreter: OpenInterpreter) -> None:
    """Run the code of a profile; settings that it assigns are recorded as the profile's."""
    place = profile.place.address

    def make(**settings: Any) -> OpenInterpreter:
        apply(interpreter, settings, "profile", place)
        return interpreter

    names: dict[str, Any] = {"__name__": "interpreter_profile", "__file__": place}
    names |= {"interpreter": interpreter, _TARGET: interpreter, _MAKE: make}
    try:
        tree = ast.parse(profile.code, place)
        ast.increment_lineno(tree, profile.code_line - 1)
        _UseTarget().visit(tree)
        compiled = compile(ast.fix_missing_locations(tree), place, "exec")
        with speaking_as("profile", place):
            exec(compiled, names)
    except SyntaxError as error:
        raise ProfileError(f"{place}, line {error.lineno}: {error.msg}.") from error
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == place]
        words = f"{type(error).__name__}: {error}".rstrip(": ")
        if isinstance(error, InterpreterError):
            words = str(error)
        raise ProfileError(f"{place}, line {lines[-1] if lines else '?'}: {words}") from error


class _UseTarget(ast.NodeTransformer):
    """Makes `from interpreter import interpreter` and `OpenInterpreter()` mean the interpreter that is being set up."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.module != _PACKAGE or node.level:
            return node
        values = {"interpreter": _TARGET, "computer": f"{_TARGET}.computer"}
        rest = [alias for alias in node.names if alias.name not in values]
        made: list[ast.stmt] = [ast.ImportFrom(_PACKAGE, rest, 0)] if rest else []
        for alias in node.names:
            if alias.name in values:
                made += ast.parse(f"{alias.asname or alias.name} = {values[alias.name]}").body
        return [ast.copy_location(each, node) for each in made]

    def visit_Assign(self, node: ast.Assign) -> Any:
        match node:
            case ast.Assign(
                targets=[ast.Name(id="interpreter")], value=ast.Call(func=ast.Name(id="OpenInterpreter")) as call
            ):
                call.func = ast.copy_location(ast.Name(_MAKE, ast.Load()), call.func)
        return self.generic_visit(node)
