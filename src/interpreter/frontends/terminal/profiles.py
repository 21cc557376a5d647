"""Profiles on the command line: which one is meant, and the question before one from the net is used."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.errors import ProfileError, UsageError

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.config.profiles import Profile
    from interpreter.frontends.terminal.flags import Parsed

_SHORTCUTS = ("fast", "codestral", "llama3", "groq", "assistant")
_VARIED = ("codestral", "llama3")  # those with a form for the screen and one for images
_LOCAL_VISION = "--vision: with --local, images are not described for a model that cannot look at them."


def load_profile(interpreter: OpenInterpreter, parsed: Parsed) -> Profile | None:
    """Load the profile that the command line names, or else the user's default one if there is one."""
    name = named_profile(parsed)
    if name is None:
        from interpreter.config.profiles.profile import default_file

        file = default_file()
        if file is None:
            return None
        name = str(file)
    from interpreter.config.profiles import load

    return load(interpreter, name, accept=_trusted if "trust_profile" in parsed.actions else _accepted)


def notices(profile: Profile | None, parsed: Parsed) -> list[str]:
    """What the user should know about the profile, in a line or two."""
    lines = [_LOCAL_VISION] if {"local", "vision"} <= parsed.actions.keys() else []
    if profile is None:
        return lines
    lines += profile.notices
    later = [words for words in profile.later if not any(words in told for told in parsed.notices)]
    # Everybody's old default profile asks for the computer API: no reason to say so at every start.
    if later and named_profile(parsed) is not None:
        lines.append(f"The profile {Path(profile.place.address).stem} asks for more: {'; '.join(later)}.")
    return lines


def named_profile(parsed: Parsed) -> str | None:
    """The profile that flags name; `--codestral --vision` together name one."""
    actions, with_os = parsed.actions, parsed.settings.get("os") is True
    given = [f"--{name}" for name in (*_SHORTCUTS, "profile") if name in actions]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} each name a profile: use one of them.")
    if not given and "local" in actions:
        return None
    if not given:
        return "vision" if "vision" in actions else "os" if with_os else None
    name = given[0][2:]
    if name == "profile":
        return str(actions["profile"])
    if name in _VARIED and with_os:
        return f"{name}-os"
    return f"{name}-vision" if name in _VARIED and "vision" in actions else name


def _trusted(profile: Profile) -> bool:
    return True


def _accepted(profile: Profile) -> bool:
    """Show the whole of a profile from the net and ask."""
    from interpreter.frontends.terminal.terminal import Terminal

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ProfileError(
            f"The profile {profile.place.address} was not loaded: nobody is here to look at it. Save it as a file and "
            "name that, or say --trust_profile."
        )
    print(described(profile))
    answer = Terminal(plain=True).ask("Load it? (y/n) ")
    return (answer or "").strip().lower() in ("y", "yes")


def described(profile: Profile) -> str:
    """Everything that a profile would do."""
    from interpreter.frontends.terminal.render.ansi import visible

    lines = [f"The profile {profile.place.address}"]
    if profile.place.address.lower().startswith("http://"):
        lines[0] += " (not encrypted on its way)"
    if profile.is_python:
        lines += ["is a program. It would run as you, with all that you may do:", "", profile.code.rstrip(), ""]
    else:
        lines += ["sets:", *(f"  {line}" for line in _said(profile))]
    if profile.code and not profile.is_python:
        lines += ["and runs this program as you, with all that you may do:", "", profile.code.rstrip(), ""]
    if profile.variables:
        lines.append(f"It reads the environment variables {', '.join(profile.variables)}.")
    return "\n".join(visible(line) for text in lines for line in text.split("\n"))


def _said(profile: Profile) -> list[str]:
    """The settings as the file has them: what a variable holds is not shown."""
    rows = profile.text.split("\n")
    lines = []
    for name, value in profile.settings.items():
        at = profile.lines.get(name)
        written = rows[at - 1].partition(":")[2].strip() if profile.variables and at else ""
        lines.append(f"{name} = {written if '$' in written else repr(value)}")
    if profile.languages is not None:
        lines.append(f"computer.languages = {list(profile.languages)}")
    return lines or ["(nothing)"]
