"""`--models`: what can be asked now, by the keys in the environment and the servers on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.app.models import Source, models_without_key, usable_models
from interpreter.config.setting import Setting, from_environment, origins
from interpreter.config.settings import SETTINGS
from interpreter.llm.providers import saved_keys
from interpreter.llm.usage import Price
from interpreter.policy import Policy, Verdict, decide, propose_rule
from interpreter.policy.analysis import Effects, analyze

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.config.profiles import Profile
    from interpreter.frontends.flags import Parsed


_SHOWN = 12
_WIDE = 100  # where the output is no terminal


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


def list_models(parsed: Parsed) -> int:
    """Print the list; the exit code tells whether there is anything in it."""
    wanted = parsed.actions["models"]
    words = wanted.lower().split() if isinstance(wanted, str) else []
    said = from_environment(os.environ) | parsed.settings
    environ = {**saved_keys(), **os.environ}
    found = usable_models(words, environ, offline=bool(said.get("offline")))
    sections = [as_section(source, whole=bool(words)) for source in found]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE
    for section in sections:
        print("\n".join(section_lines(section, width)) + "\n")
    if not sections:
        print("\n".join(nothing(words, environ)))
    elif any(row.price for section in sections for row in section.rows):
        print("Prices: US dollars for a million tokens read / written. Use one with --model.")
    return 0 if sections else 1


def as_section(source: Source, whole: bool) -> Section:
    """A source of models as it is listed; `whole`: with all of them, else the first ones of a provider."""
    free = "free" if source.kind != "provider" else ""
    rows = tuple(Row(each.model, _tokens(each.window), free or _price(each.price)) for each in source.models)
    if source.kind != "provider":
        note = source.problem or (f"With --api_base {source.api_base}" if source.api_base else "")
        return Section(f"{source.name}, on this machine", rows, note)
    title, more = f"{source.name}, with {source.key}", 0 if whole else max(0, len(rows) - _SHOWN)
    if not rows:
        return Section(title, note=f"Its own list has the names: --model {source.name}/NAME")
    shown = rows[: len(rows) - more]
    return Section(title, shown, f"and {more} more: interpreter --models {source.name}/" if more else "")


def section_lines(section: Section, width: int) -> Iterator[str]:
    """A table that fits: where a name leaves no room beside it, what is known stands below it."""
    yield section.title
    window = max((len(row.window) for row in section.rows), default=0)
    price = max((len(row.price) for row in section.rows), default=0)
    widest = max((len(row.model) for row in section.rows), default=0)
    room = width - window - price - 8
    for row in section.rows:
        known = f"{row.window:>{window}}  {row.price:>{price}}".rstrip()
        if len(row.model) > room:
            yield f"  {row.model}"
            if known.strip():
                yield f"    {known.strip()}"
        else:
            yield f"  {row.model:<{min(widest, room)}}  {known}".rstrip()
    if section.note:
        yield f"  {section.note}"


def nothing(words: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Why there is nothing to list, and who has what was looked for."""
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


def _price(price: Price | None) -> str:
    return f"{price.read:.2f} / {price.written:.2f}" if price else ""


_LONGEST = 70


def check(parsed: Parsed) -> int:
    """Print the verdict on the code of `--policy_check`; 0 unless it would never run."""
    code = str(parsed.actions["policy_check"])
    language = str(parsed.actions.get("language", "shell"))
    workspace = str(parsed.settings.get("workspace") or os.getcwd())
    policy = Policy.load(workspace)
    effects = analyze(language, code, workspace)
    verdict = policy.judge(language, code, effects)
    print("\n".join([*verdict_lines(policy, verdict, effects), *_always(verdict, language, code, effects)]))
    return 1 if verdict.decision == "deny" else 0


def verdict_lines(policy: Policy, verdict: Verdict, effects: Effects) -> Iterator[str]:
    """The verdict, what each part adds to it, and what was seen in the code."""
    yield f"{verdict.decision}: {verdict.reason}"
    yield f"  in mode ask: {decide('ask', verdict).action}; in mode auto (-y): {decide('auto', verdict).action}"
    for part in verdict.parts:
        rule = f" by {part.rule.where}" if part.rule else ""
        yield f"  line {part.line}: {_short(part.text)} -> {part.decision}{rule}"
        if part.rule and part.rule.reason:
            yield f"      {part.rule.reason}"
    yield f"Seen in it, in {effects.language}:"
    yield from (f"  {line}" for line in effects.lines())
    if policy.untrusted is not None:
        yield f"{policy.untrusted.path} does not count: it is not trusted. It says:"
        yield from (f"  {line}" for line in policy.untrusted.lines)


def _always(verdict: Verdict, language: str, code: str, effects: Effects) -> Iterator[str]:
    from interpreter.policy.policy_file import rule_text

    rule = propose_rule(language, code, effects) if verdict.decision == "ask" else None
    if rule is not None:
        yield "A rule that would allow it from now on:"
        yield from (f"  {line}" for line in rule_text(rule).splitlines())


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + "…"


_WIDEST = 60
# The name and password in an address, as in https://me:secret@host/v1.
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def setting_lines(interpreter: OpenInterpreter, profile: Profile | None) -> Iterator[str]:
    """The table, and above it which profile was read."""
    from interpreter.config.profiles import folder

    yield f"profile: {profile.place.address if profile else f'none (there is no default in {folder()})'}"
    yield from (profile.notices if profile else ())
    yield ""
    rows = [(row.name, shown(row, _value(interpreter, row)), _origins(interpreter)[row.name]) for row in _told()]
    name, value = (max(len(row[column]) for row in rows) for column in (0, 1))
    for row in rows:
        yield f"{row[0]:<{name}}  {row[1]:<{value}}  {row[2]}"


def changed(interpreter: OpenInterpreter) -> Iterator[str]:
    """The settings that are not as they are by default."""
    given = _origins(interpreter)
    for row in _told():
        if given[row.name] not in ("default", "code"):
            yield f"{row.name} = {shown(row, _value(interpreter, row))} ({given[row.name]})"


def shown(row: Setting, value: Any) -> str:
    """A value on one line; secrets are not shown."""
    if row.secret and value is not None:
        return "(set, not shown)"
    text = _CREDENTIALS.sub("***", repr(value))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _told() -> list[Setting]:
    return [row for row in SETTINGS if not row.alias_of]


def _origins(interpreter: OpenInterpreter) -> dict[str, str]:
    return origins(interpreter) | origins(interpreter.llm) | origins(interpreter.computer)


def _value(interpreter: OpenInterpreter, row: Setting) -> Any:
    owner = getattr(interpreter, row.group) if row.group else interpreter
    value = getattr(owner, row.leaf)
    # The usual way to the model is a method, and no more to tell than None.
    return None if row.name == "llm.completions" and getattr(value, "__self__", None) is owner else value


def open_models() -> None:
    """`--local_models`: the folder of downloaded models."""
    from interpreter.llm.local.weights import models_folder

    open_folder(models_folder())


def open_folder(folder: Path) -> None:
    """Make it if it is not there, show it if something can, and say where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    print(folder)
    if sys.platform == "win32":
        os.startfile(folder)
        return
    opener = _opener()
    if opener is not None:
        # Not waited for: some file managers stay in the foreground.
        subprocess.Popen(
            [opener, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _opener() -> str | None:
    if sys.platform == "darwin":
        return shutil.which("open")
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return shutil.which("xdg-open")
    return None
