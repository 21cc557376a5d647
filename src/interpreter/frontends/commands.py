"""Flags that print something and exit: `--models`, `--policy_check`, `--debug_config`, `--profiles`, ..."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import get_args

from interpreter import packages
from interpreter.api import OpenInterpreter
from interpreter.app.models import ModelSource, default_by_key, models_without_key, usable_models
from interpreter.config import profiles
from interpreter.config.homes import make_folder
from interpreter.config.setting import from_environment, origins
from interpreter.config.settings import SETTINGS
from interpreter.console_text import short_count, visible
from interpreter.frontends.flags import Parsed
from interpreter.frontends.terminal import setup
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.host import processes
from interpreter.leaves import ROWS
from interpreter.llm.providers import ROWS as PROVIDERS
from interpreter.llm.providers import saved_keys, starting_model
from interpreter.policy import Policy, decide, propose_rule
from interpreter.policy.analysis import analyze
from interpreter.policy.policy_file import rule_text
from interpreter.tools import package_tools
from interpreter.version import __version__

_MODELS_SHOWN = 12
_PIPE_WIDTH = 100  # columns, where the output is no terminal
_CODE_WIDTH = 70
_VALUE_WIDTH = 60
# The name and password in an address, as in https://me:secret@host/v1.
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def run_command(parsed: Parsed) -> int:
    """Run the first of these flags and return the exit code."""
    match parsed.actions:
        case {"models": _}:
            return _list_models(parsed)
        case {"policy_check": _}:
            return _check_policy(parsed)
        case {"doctor": _}:
            return _check_installation()
        case {"profiles": _}:
            open_folder(profiles.make_default().parent)
        case {"reset_profile": name}:
            print("\n".join(profiles.reset(name if isinstance(name, str) else None)))
        case {"install": extra}:
            settings = from_environment(os.environ) | parsed.settings
            setup.install_extra(Terminal(), extra, bool(settings.get("offline")), bool(settings.get("auto_run")))
    return 0


def open_folder(folder: Path) -> None:
    """Create the folder if needed, open it in the desktop's file manager if there is one, and print its path."""
    make_folder(folder)
    print(folder)
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    has_desktop = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if has_desktop and processes.which(opener):
        processes.start([opener, str(folder)])  # not waited for: some file managers stay in the foreground


def _check_installation() -> int:
    """Print the parts that are missing, and what packages add; 1 if one of them fails."""
    print(f"Open Interpreter {__version__}, Python {platform.python_version()} ({sys.executable})")
    for leaf in (leaf for leaf in ROWS if not leaf.is_present):
        print(f"{leaf.about} is not part of this installation.")
    _ = list(package_tools())
    entry_points = [each for group in get_args(packages.Group) for each in packages.entry_points(group)]
    for each in entry_points:
        if each not in packages.broken():
            with suppress(Exception):
                packages.load(each)
        problem = packages.broken().get(each, "ok")
        print(visible(f"{each.package}: {each.group} {each.name} ({each.value}): {problem}"))
    if not entry_points:
        print("No other package adds anything.")
    return 1 if packages.broken() else 0


# -- models --------------------------------------------------------------------------------------------------------


def _list_models(parsed: Parsed) -> int:
    """Print the usable models; return 1 if there are none."""
    wanted = parsed.actions["models"]
    name_parts = wanted.lower().split() if isinstance(wanted, str) else []
    settings = from_environment(os.environ) | parsed.settings
    environ = {**saved_keys(), **os.environ}
    sources = list(usable_models(name_parts, environ, offline=bool(settings.get("offline"))))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH
    chosen = default_by_key(os.environ)
    if sources and not name_parts and chosen is not None and not settings.get("offline"):
        print(f"Default: {chosen[0]}, because {chosen[1]} is set.\n")
    for source in sources:
        print(visible("\n".join(model_lines(source, width, whole=bool(name_parts)))) + "\n")
    if not sources and not name_parts:
        print("No API key is set, and no model server is running on this machine.")
        print("Set a key such as OPENAI_API_KEY, or run `interpreter --local`.")
    elif not sources:
        print(f"No available model has {' and '.join(name_parts)!r} in its name.")
        for source in models_without_key(name_parts, environ):
            print(f"  {source.name} has {len(source.models)}. To use them, set {source.key}.")
    elif any(source.kind != "provider" or each.price for source in sources for each in source.models):
        print("Prices are in US dollars per million input / output tokens. Pick a model with --model.")
    return 0 if sources else 1


def model_lines(source: ModelSource, width: int, whole: bool) -> Iterator[str]:
    """List the models of a source in a table that fits the width; after a long name, its details move to the next line.

    `whole`: all of them, else the first ones of a provider.
    """
    models, note = source.models, f"With --api_base {source.api_base}" if source.api_base else ""
    if source.kind != "provider":
        yield f"{source.name}, on this machine"
        note = source.problem or note
    else:
        default = starting_model(PROVIDERS[source.name])
        yield f"{source.name}, with {source.key}"
        if default and not whole:
            yield f"  Default: {default} (current, calls tools, mid-priced)"
            name = f"{source.name}/{default.removeprefix(f'{source.name}/')}"  # the models most like it come first
            alike = {each.model: len(os.path.commonprefix([each.model, name])) for each in models}  # noqa: RUF071
            models = tuple(sorted(models, key=lambda each: -alike[each.model]))
        more = 0 if whole else max(0, len(models) - _MODELS_SHOWN)
        models = models[: len(models) - more]
        note = f"and {more} more: interpreter --models {source.name}/" if more else ""
        note = note if models else f"See the provider's list for names: --model {source.name}/NAME"
    rows = []
    for each in models:
        price = f"{each.price.read:.2f} / {each.price.written:.2f}" if each.price else ""
        window = short_count(each.window) if each.window else ""
        rows.append((each.model, window, price if source.kind == "provider" else "free"))
    longest, widest, dearest = (max((len(row[column]) for row in rows), default=0) for column in range(3))
    room = width - widest - dearest - 8
    for model, window, price in rows:
        known = f"{window:>{widest}}  {price:>{dearest}}".rstrip()
        if len(model) > room:
            yield f"  {model}"
            if known.strip():
                yield f"    {known.strip()}"
        else:
            yield f"  {model:<{min(longest, room)}}  {known}".rstrip()
    if note:
        yield f"  {note}"


# -- policy --------------------------------------------------------------------------------------------------------


def _check_policy(parsed: Parsed) -> int:
    """Print whether the rules allow a piece of code, and why; return 1 if they deny it."""
    code = str(parsed.actions["policy_check"])
    language = str(parsed.actions.get("language", "shell"))
    workspace = str(parsed.settings.get("workspace") or os.getcwd())
    policy = Policy.load(workspace)
    effects = analyze(language, code, workspace)
    verdict = policy.judge(language, code, effects)
    print(visible(f"{verdict.decision}: {verdict.reason}"))
    print(f"  in mode ask: {decide('ask', verdict).action}; in mode auto (-y): {decide('auto', verdict).action}")
    for part in verdict.parts:
        text = " ".join(part.text.split())
        text = text if len(text) <= _CODE_WIDTH else text[: _CODE_WIDTH - 1] + "…"
        by = f" by {part.rule.where}" if part.rule else ""
        print(visible(f"  line {part.line}: {text} -> {part.decision}{by}"))
        if part.rule and part.rule.reason:
            print(visible(f"      {part.rule.reason}"))
    print(visible("\n  ".join([f"What it does ({effects.language}):", *effects.lines()])))
    if policy.untrusted is not None:
        heading = f"{policy.untrusted.path} is ignored because you haven't trusted it. It contains:"
        print(visible("\n  ".join([heading, *policy.untrusted.lines])))
    rule = propose_rule(language, code, effects) if verdict.decision == "ask" else None
    if rule is not None:
        print(visible("\n  ".join(["This rule would always allow it:", *rule_text(rule).splitlines()])))
    return 1 if verdict.decision == "deny" else 0


# -- settings ------------------------------------------------------------------------------------------------------


def setting_lines(interpreter: OpenInterpreter, profile: profiles.Profile | None) -> Iterator[str]:
    """Write the output of `--debug_config`: the profile that was read, then each setting with its value and source."""
    yield f"profile: {profile.location.address if profile else f'none (there is no default in {profiles.folder()})'}"
    yield from (profile.notices if profile else ())
    yield ""
    rows = list(settings_in_use(interpreter))
    name, value = (max(len(row[column]) for row in rows) for column in (0, 1))
    for row in rows:
        yield f"{row[0]:<{name}}  {row[1]:<{value}}  {row[2]}"


def settings_in_use(interpreter: OpenInterpreter) -> Iterator[tuple[str, str, str]]:
    """Yield each setting's name, its value on one line, and its origin; secrets are not shown."""
    origin_of = origins(interpreter) | origins(interpreter.llm) | origins(interpreter.computer)
    for row in SETTINGS:
        if row.alias_of:
            continue
        owner = getattr(interpreter, row.group) if row.group else interpreter
        value = getattr(owner, row.leaf)
        if row.name == "llm.completions" and getattr(value, "__self__", None) is owner:
            value = None  # our own method
        text = _CREDENTIALS.sub("***", repr(value))
        text = text if len(text) <= _VALUE_WIDTH else f"{text[: _VALUE_WIDTH - 3]}..."
        if row.secret and value is not None:
            text = "(set, not shown)"
        yield row.name, text, origin_of[row.name]
