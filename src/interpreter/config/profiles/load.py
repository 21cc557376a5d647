"""Read a profile from a file or an address, and apply it to an interpreter; a profile in Python is run."""

from __future__ import annotations

import ast
import json
import os
import re
import stat
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from interpreter import leaves
from interpreter.config.profiles.profile import Profile, ProfileLocation, find
from interpreter.config.setting import Setting, apply, check_value, converted, parse_value, speaking_as, unknown_setting
from interpreter.config.settings import PROMPTS, SETTINGS
from interpreter.errors import InterpreterError, ProfileError, SettingError

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter


# Names in profiles of older versions, and on old pages.
RENAMED = MappingProxyType(
    {name: f"llm.{name}" for name in ("model", "temperature", "context_window", "max_tokens", "max_budget")}
    | {name: f"llm.{name}" for name in ("api_base", "api_key", "api_version")}
    | {name: f"llm.{name}" for name in ("supports_vision", "supports_functions", "execution_instructions")}
    | {
        "llm_supports_vision": "llm.supports_vision",
        "llm_supports_functions": "llm.supports_functions",
        "function_calling_llm": "llm.supports_functions",
        "vision": "llm.supports_vision",
        "local": "offline",
        "debug_mode": "verbose",
        "force_task_completion": "loop",
        "force_task_completion_message": "loop_message",
        "force_task_completion_breakers": "loop_breakers",
        "plain": "plain_text_display",
        "llm.max_output": "max_output",
        "llm.custom_instructions": "custom_instructions",
        "llm.system_message": "system_message",
        "computer.skills.path": "computer.skills_path",
        "computer.terminal.languages": "computer.languages",
        "languages": "computer.languages",
        "custom_languages": "computer.custom_languages",
        "computer.offer_packages": "computer.install_missing",
    }
)

# Names of earlier versions that do nothing now, and why.
GONE = MappingProxyType(
    {
        "fast": "use --fast, or --profile fast",
        "use_containers": "containers are set with --sandbox container:IMAGE",
        "disable_procedures": "nothing is fetched from anywhere",
        "download_open_procedures": "nothing is fetched from anywhere",
        "embed_function": "nothing is embedded",
        "use_trusted_hosts": "it never did anything",
        "tts": "messages are not spoken yet",
        "computer.vision": "images are not described yet",
    }
)

LANGUAGES, CUSTOM_LANGUAGES = "computer.languages", "computer.custom_languages"
MAX_VALUES = 20_000  # per profile, with YAML aliases expanded; more would be an attack, not a profile
_ROWS = {row.name: row for row in SETTINGS}
_GROUPS = ("llm", "computer", "computer.skills")
_SKIPPED = ("version", "wtf")
# A mapping under one of these is one value.
_WHOLE = frozenset({"wtf", *(row.name for row in SETTINGS if row.kind == "dict")})
_TEXTS = ("str", "path", "str or False")


def read(location: ProfileLocation, text: str, environ: Mapping[str, str] = os.environ) -> Profile:
    """Parse a profile. One error lists all mistakes."""
    if location.kind == ".py":
        return Profile(location, text, code=text)
    profile, mistakes = Profile(location, text), []
    for entry in (json_entries if location.kind == ".json" else yaml_entries)(text, location.address):
        at = location.address + (f", line {entry.line}" if entry.line is not None else "")
        try:
            profile.notices += [f"{at}: {notice}" for notice in _take(profile, entry, environ)]
        except SettingError as error:
            mistakes.append(f"{at}: {error}")
    if mistakes:
        raise ProfileError("\n".join(mistakes))
    return profile


def _take(profile: Profile, entry: Entry, environ: Mapping[str, str]) -> Iterator[str]:
    """Put one entry into the profile and yield notices about it. Raises SettingError for a wrong one."""
    key, value = RENAMED.get(entry.key, entry.key), entry.value
    if key in _ROWS:
        if key in profile.settings:
            yield f"{key} is set twice; line {profile.lines.get(key)} is ignored."
        value = _filled(profile, _ROWS[key], entry, environ)
        if value is None and not _ROWS[key].optional:
            return  # an empty value, as in `custom_instructions:`, is ignored
        if key != entry.key and isinstance(entry.value, bool):
            value = converted(_ROWS[key], entry.value)
        profile.settings[key] = check_value(_ROWS[key], value)
        if _ROWS[key].inert and profile.settings[key] != _ROWS[key].default:
            yield f"{entry.key} does nothing: {_ROWS[key].inert}."
    elif key == "start_script":
        if not isinstance(value, str):
            raise SettingError("start_script takes Python code.")
        # The code of `start_script: |` begins on the line below.
        profile.code, profile.code_line = value, (entry.line or 0) + 1
    elif key == LANGUAGES:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise SettingError(f"{LANGUAGES} takes a list of names, such as [python, shell].")
        profile.languages = tuple(value)
    elif key == CUSTOM_LANGUAGES:
        custom_language = leaves.load("interpreter.languages.custom:custom_language")
        profile.custom_languages = tuple(map(custom_language, value if isinstance(value, list) else [value]))
    elif key in GONE or key.rpartition(".")[0] in GONE:
        yield f"{entry.key} does nothing: {GONE.get(key) or GONE[key.rpartition('.')[0]]}."
    elif not (key in _SKIPPED or (key in _GROUPS and not value)):
        raise unknown_setting(key)
    if entry.line is not None:
        profile.lines[key] = entry.line


def _filled(profile: Profile, row: Setting, entry: Entry, environ: Mapping[str, str]) -> Any:
    """Fill the variables into an entry and return its value."""
    value = entry.value
    # Bare words that YAML reads as another type: `safe_mode: off`, `api_version: 2024-02-01`.
    if row.kind in _TEXTS and entry.word and value is not None and not isinstance(value, str):
        value = value if row.kind == "str or False" and value is False else entry.word

    def fill(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        name = match["bare"] or match["braced"]
        profile.variables[name] = None
        filled = environ.get(name) or match["otherwise"]
        # Prompts may mention `$PATH`; elsewhere a variable that is not set is a mistake.
        if filled is None and row.section != PROMPTS:
            raise SettingError(
                f"{entry.key}: the environment variable {name} is not set. Set it, or write $$ for a dollar sign."
            )
        return match[0] if filled is None else filled

    def expanded(item: Any) -> Any:
        return _VARIABLE.sub(fill, item) if isinstance(item, str) else item

    if isinstance(value, list):
        return [expanded(item) for item in value]
    if isinstance(value, dict):
        return {name: expanded(item) for name, item in value.items()}
    filled = expanded(value)
    return value if not isinstance(value, str) or filled == value else parse_value(row, filled)


# -- variables: `$NAME`, `${NAME}`, `${NAME:-otherwise}`, `$$` for a dollar sign ---------------------------------------

_VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<bare>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::-(?P<otherwise>[^}]*))?\})", re.ASCII
)


# -- YAML and JSON as flat entries -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One value under its dotted key; `word` is a bare YAML word as written, which `off` and `2024-02-01` need."""

    key: str
    value: Any
    line: int | None
    word: str | None = None


def yaml_entries(text: str, name: str) -> list[Entry]:
    """Yield every value of a YAML text, in order."""
    import yaml

    def walk(node: Any, prefix: str) -> Iterator[Entry]:
        loader.flatten_mapping(node)
        for key_node, value_node in node.value:
            key = prefix + str(key_node.value)
            if isinstance(value_node, yaml.MappingNode) and value_node.value and key not in _WHOLE:
                yield from walk(value_node, f"{key}.")
                continue
            bare = isinstance(value_node, yaml.ScalarNode) and not value_node.style
            value = loader.construct_object(value_node, deep=True)
            yield Entry(key, value, key_node.start_mark.line + 1, value_node.value if bare else None)

    # libyaml, where it is installed, is ten times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return []
        if not isinstance(node, yaml.MappingNode):
            raise ProfileError(f"{name}, line 1: a profile is a list of names with values, such as `auto_run: true`.")
        _check_size(node, name)
        return list(walk(node, ""))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}, line {mark.line + 1}" if mark else name
        raise ProfileError(f"{where}: this is not YAML: {error.problem or error.context}.") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ProfileError(f"{name}: this is not YAML: {error}.") from None
    finally:
        loader.dispose()


def _check_size(node: Any, name: str) -> None:
    left, waiting = MAX_VALUES, [node]
    while waiting:
        each = waiting.pop()
        left -= 1
        if left < 0:
            raise ProfileError(f"{name} has more than {MAX_VALUES:,} values, too many for a profile.")
        if isinstance(each.value, list):
            waiting += [part for item in each.value for part in (item if isinstance(item, tuple) else (item,))]


def json_entries(text: str, name: str) -> list[Entry]:
    """Yield every value of a JSON text, in order."""
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise ProfileError(f"{name}, line {line}: this is not JSON: {getattr(error, 'msg', error)}.") from None
    if not isinstance(data, dict):
        raise ProfileError(f'{name}, line 1: a profile is an object, such as {{"auto_run": true}}.')
    try:  # parse it as YAML to get line numbers; where that fails, errors have none
        lines = {entry.key: entry.line for entry in yaml_entries(text.replace("\t", " "), name)}
    except ProfileError:
        lines = {}

    def walk(data: dict[str, Any], prefix: str) -> Iterator[Entry]:
        for key, value in data.items():
            if isinstance(value, dict) and value and prefix + key not in _WHOLE:
                yield from walk(value, f"{prefix}{key}.")
            else:
                yield Entry(prefix + key, value, lines.get(prefix + key))

    return list(walk(data, ""))


MAX_BYTES = 1_000_000
FETCH_TIMEOUT = 20.0
_SUFFIXES = {"application/json": ".json", "text/x-python": ".py"}
_READABLE_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEY_IN_CODE = re.compile(r"""api_key\s*=\s*["']([^"'\n]+)["']""")


def load(interpreter: OpenInterpreter, name: str, accept: Callable[[Profile], bool] | None = None) -> Profile:
    """Apply a profile to an interpreter; flags and the environment take precedence.

    `name` is a name, a path or a URL. A profile from a URL is used only if `accept` approves it.
    """
    location = find(name)
    if location.is_url:
        if interpreter.offline:
            raise ProfileError(f"Can't fetch {location.address} while `offline` is set.")
        profile = read(*fetch(location))
        if accept is None or not accept(profile):
            raise ProfileError(f"The profile {location.address} was not loaded because it was not approved.")
    else:
        try:
            text = Path(location.address).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ProfileError(f"Can't read {location.address}: {error}.") from error
        profile = read(location, text)
        if has_exposed_key(profile):
            profile.notices.append(
                f"{location.address} contains a key and other users of this machine can read it. To fix this: "
                f"chmod 600 {location.address}"
            )
    if profile.code:
        run(profile, interpreter)
    for setting, value in profile.settings.items():
        apply(interpreter, {setting: value}, "profile", profile.where(setting))
    interpreter.computer.languages += profile.custom_languages
    if profile.languages is not None:  # all others are removed
        computer, wanted = interpreter.computer, set[Any]()
        for name in profile.languages:
            language = computer.get_language(name)
            if language is None:
                known = ", ".join(each.name.lower() for each in computer.languages)
                raise ProfileError(f"{profile.where(LANGUAGES)}: there is no language {name}. Available: {known}.")
            wanted.add(language)
        computer.languages = [language for language in computer.languages if language in wanted]
    return profile


def has_exposed_key(profile: Profile) -> bool:
    """Check whether the file has a key in it and others on this machine can read it."""
    if profile.location.is_builtin or not os.stat(profile.location.address).st_mode & _READABLE_BY_OTHERS:
        return False
    from interpreter.llm.secrets import replace_secrets, secret_values

    values = [value for name, value in profile.settings.items() if name.endswith("api_key")]
    # A value that is not in the file came from a variable.
    keys = [value for value in values if isinstance(value, str) and value in profile.text]
    keys += _KEY_IN_CODE.findall(profile.code)
    return bool(secret_values({}, [(key, key) for key in keys])) or bool(replace_secrets(profile.text, {})[1])


def fetch(location: ProfileLocation) -> tuple[ProfileLocation, str]:
    """Download a profile: return its location, with the format it is written in, and its text."""
    import httpx

    address, content = location.address, b""
    try:
        with (
            httpx.Client(follow_redirects=True, max_redirects=5, timeout=FETCH_TIMEOUT) as client,
            client.stream("GET", address) as answer,
        ):
            kind = answer.headers.get("content-type", "").partition(";")[0].strip()
            if answer.status_code != 200:
                raise ProfileError(f"Can't fetch {address}: the server answered {answer.status_code}.")
            if address.lower().startswith("https:") and answer.url.scheme != "https":
                raise ProfileError(f"{address} redirects to {answer.url}, which is not encrypted.")
            if kind.startswith("text/html"):
                raise ProfileError(f"{address} is a web page, not a profile. Give the URL of the raw file.")
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > MAX_BYTES:
                    raise ProfileError(f"{address} is larger than {MAX_BYTES:,} bytes, too large for a profile.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProfileError(f"Can't fetch {address}: {error or type(error).__name__}.") from error
    return replace(location, format=location.kind or _SUFFIXES.get(kind, ".yaml")), content.decode("utf-8", "replace")


# -- profiles in Python ------------------------------------------------------------------------------------------------

_PACKAGE = "interpreter"
_TARGET = "_interpreter_being_set_up"
_MAKE = "_make_interpreter"


def run(profile: Profile, interpreter: OpenInterpreter) -> None:
    """Run the code of a profile; settings that it assigns are recorded as the profile's."""
    address = profile.location.address

    def make(**settings: Any) -> OpenInterpreter:
        apply(interpreter, settings, "profile", address)
        return interpreter

    names: dict[str, Any] = {"__name__": "interpreter_profile", "__file__": address}
    names |= {"interpreter": interpreter, _TARGET: interpreter, _MAKE: make}
    try:
        tree = ast.parse(profile.code, address)
        ast.increment_lineno(tree, profile.code_line - 1)
        _UseTarget().visit(tree)
        compiled = compile(ast.fix_missing_locations(tree), address, "exec")
        with speaking_as("profile", address):
            exec(compiled, names)
    except SyntaxError as error:
        raise ProfileError(f"{address}, line {error.lineno}: {error.msg}.") from error
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == address]
        is_ours = isinstance(error, InterpreterError)
        problem = str(error) if is_ours else f"{type(error).__name__}: {error}".rstrip(": ")
        raise ProfileError(f"{address}, line {lines[-1] if lines else '?'}: {problem}") from error


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
