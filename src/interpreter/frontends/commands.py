"""Flags that print something and end: `--models`, `--policy_check`, `--debug_config`, `--profiles`, ..."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.app.models import Source, models_without_key, usable_models
from interpreter.config import profiles
from interpreter.config.setting import Setting, from_environment, origins
from interpreter.config.settings import SETTINGS
from interpreter.host import processes
from interpreter.llm.local.weights import models_folder
from interpreter.llm.providers import saved_keys
from interpreter.policy import Policy, Verdict, decide, propose_rule
from interpreter.policy.analysis import Effects, analyze
from interpreter.policy.policy_file import rule_text

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.flags import Parsed

_MODELS_SHOWN = 12
_PIPE_WIDTH = 100  # columns, where the output is no terminal
_CODE_WIDTH = 70
_VALUE_WIDTH = 60
# The name and password in an address, as in https://me:secret@host/v1.
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def run_command(parsed: Parsed) -> int:
    """Do what the first of these flags says; the exit code."""
    if "models" in parsed.actions:
        return _list_models(parsed)
    if "policy_check" in parsed.actions:
        return _check_policy(parsed)
    if "local_models" in parsed.actions:
        _open_folder(models_folder())
    elif "profiles" in parsed.actions:
        _open_folder(profiles.make_default().parent)
    elif "reset_profile" in parsed.actions:
        name = parsed.actions["reset_profile"]
        print("\n".join(profiles.reset(name if isinstance(name, str) else None)))
    return 0


def _open_folder(folder: Path) -> None:
    """Make it if it is not there, open it in the desktop's file manager if there is one, and print where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    print(folder)
    if sys.platform == "win32":
        os.startfile(folder)
        return
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    has_desktop = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if has_desktop and processes.which(opener):
        processes.start([opener, str(folder)])  # not waited for: some file managers stay in the foreground


# -- models --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A model: what `--model` takes, and what is known of it."""

    model: str
    window: str = ""
    price: str = ""


@dataclass(frozen=True)
class Section:
    """Who has these models, and what the user should know about that."""

    title: str
    rows: tuple[Row, ...] = ()
    note: str = ""


def _list_models(parsed: Parsed) -> int:
    """Print what can be used now; 1 if there is nothing."""
    wanted = parsed.actions["models"]
    words = wanted.lower().split() if isinstance(wanted, str) else []
    settings = from_environment(os.environ) | parsed.settings
    environ = {**saved_keys(), **os.environ}
    found = usable_models(words, environ, offline=bool(settings.get("offline")))
    sections = [_section(source, whole=bool(words)) for source in found]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH
    for section in sections:
        print("\n".join(section_lines(section, width)) + "\n")
    if not sections:
        print("\n".join(_no_models(words, environ)))
    elif any(row.price for section in sections for row in section.rows):
        print("Prices: US dollars for a million tokens read / written. Use one with --model.")
    return 0 if sections else 1


def _section(source: Source, whole: bool) -> Section:
    """A source of models as it is listed; `whole`: with all of them, else the first ones of a provider."""
    rows = []
    for each in source.models:
        price = f"{each.price.read:.2f} / {each.price.written:.2f}" if each.price else ""
        rows.append(Row(each.model, _tokens(each.window), price if source.kind == "provider" else "free"))
    if source.kind != "provider":
        note = source.problem or (f"With --api_base {source.api_base}" if source.api_base else "")
        return Section(f"{source.name}, on this machine", tuple(rows), note)
    title = f"{source.name}, with {source.key}"
    if not rows:
        return Section(title, note=f"Its own list has the names: --model {source.name}/NAME")
    more = 0 if whole else max(0, len(rows) - _MODELS_SHOWN)
    note = f"and {more} more: interpreter --models {source.name}/" if more else ""
    return Section(title, tuple(rows[: len(rows) - more]), note)


def section_lines(section: Section, width: int) -> Iterator[str]:
    """A table that fits: where a name leaves no room beside it, what is known stands below it."""
    yield section.title
    window, price, longest = (
        max((len(getattr(row, column)) for row in section.rows), default=0) for column in ("window", "price", "model")
    )
    room = width - window - price - 8
    for row in section.rows:
        known = f"{row.window:>{window}}  {row.price:>{price}}".rstrip()
        if len(row.model) > room:
            yield f"  {row.model}"
            if known.strip():
                yield f"    {known.strip()}"
        else:
            yield f"  {row.model:<{min(longest, room)}}  {known}".rstrip()
    if section.note:
        yield f"  {section.note}"


def _no_models(words: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    if not words:
        yield "No key is in the environment, and no model server runs on this machine."
        yield "Set a key such as OPENAI_API_KEY, or run `interpreter --local`."
        return
    yield f"Nothing that can be used now has {' and '.join(words)!r} in its name."
    for source in models_without_key(words, environ):
        yield f"  {source.name} has {len(source.models)} such models: set {source.key}."


def _tokens(count: int | None) -> str:
    """A window as its makers write it: 128k, 1M."""
    if not count:
        return ""
    if count >= 1_000_000:
        return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"
    return f"{round(count / 1000)}k" if count >= 1000 else str(count)


# -- policy --------------------------------------------------------------------------------------------------------


def _check_policy(parsed: Parsed) -> int:
    """Print what the rules say of a piece of code, and why; 1 if it would never run."""
    code = str(parsed.actions["policy_check"])
    language = str(parsed.actions.get("language", "shell"))
    workspace = str(parsed.settings.get("workspace") or os.getcwd())
    policy = Policy.load(workspace)
    effects = analyze(language, code, workspace)
    verdict = policy.judge(language, code, effects)
    print("\n".join(_verdict_lines(policy, verdict, effects)))
    rule = propose_rule(language, code, effects) if verdict.decision == "ask" else None
    if rule is not None:
        print("A rule that would allow it from now on:")
        print("\n".join(f"  {line}" for line in rule_text(rule).splitlines()))
    return 1 if verdict.decision == "deny" else 0


def _verdict_lines(policy: Policy, verdict: Verdict, effects: Effects) -> Iterator[str]:
    """The verdict, what each part adds to it, and what was seen in the code."""
    yield f"{verdict.decision}: {verdict.reason}"
    yield f"  in mode ask: {decide('ask', verdict).action}; in mode auto (-y): {decide('auto', verdict).action}"
    for part in verdict.parts:
        text = " ".join(part.text.split())
        text = text if len(text) <= _CODE_WIDTH else text[: _CODE_WIDTH - 1] + "…"
        rule = f" by {part.rule.where}" if part.rule else ""
        yield f"  line {part.line}: {text} -> {part.decision}{rule}"
        if part.rule and part.rule.reason:
            yield f"      {part.rule.reason}"
    yield f"Seen in it, in {effects.language}:"
    yield from (f"  {line}" for line in effects.lines())
    if policy.untrusted is not None:
        yield f"{policy.untrusted.path} does not count: it is not trusted. It says:"
        yield from (f"  {line}" for line in policy.untrusted.lines)


# -- settings ------------------------------------------------------------------------------------------------------


def setting_lines(interpreter: OpenInterpreter, profile: profiles.Profile | None) -> Iterator[str]:
    """`--debug_config`: every setting, its value and its source, and above them which profile was read."""
    yield f"profile: {profile.place.address if profile else f'none (there is no default in {profiles.folder()})'}"
    yield from (profile.notices if profile else ())
    yield ""
    rows = list(_settings(interpreter))
    name, value = (max(len(row[column]) for row in rows) for column in (0, 1))
    for row in rows:
        yield f"{row[0]:<{name}}  {row[1]:<{value}}  {row[2]}"


def changed_settings(interpreter: OpenInterpreter) -> Iterator[str]:
    """The settings that do not have their default value."""
    for name, value, origin in _settings(interpreter):
        if origin not in ("default", "code"):
            yield f"{name} = {value} ({origin})"


def _settings(interpreter: OpenInterpreter) -> Iterator[tuple[str, str, str]]:
    """Name, value and origin of each setting."""
    origin_of = origins(interpreter) | origins(interpreter.llm) | origins(interpreter.computer)
    for row in SETTINGS:
        if row.alias_of:
            continue
        owner = getattr(interpreter, row.group) if row.group else interpreter
        value = getattr(owner, row.leaf)
        if row.name == "llm.completions" and getattr(value, "__self__", None) is owner:
            value = None  # our own method
        yield row.name, shown(row, value), origin_of[row.name]


def shown(row: Setting, value: Any) -> str:
    """A value on one line; secrets are not shown."""
    if row.secret and value is not None:
        return "(set, not shown)"
    text = _CREDENTIALS.sub("***", repr(value))
    return text if len(text) <= _VALUE_WIDTH else f"{text[: _VALUE_WIDTH - 3]}..."
