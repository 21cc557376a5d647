"""The user's default profile, made when they ask for it, and built-in profiles put back as they were."""

from __future__ import annotations

import os
from pathlib import Path

from interpreter.config.profiles.places import (
    BUILTIN,
    DEFAULT,
    KINDS,
    builtin_names,
    folder,
)
from interpreter.errors import ProfileError


def make_default() -> Path:
    """The file of the default profile; written if there is none."""
    place = folder()
    for kind in KINDS:
        if (file := place / f"{DEFAULT}{kind}").is_file():
            return file
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"{DEFAULT}.yaml"
    file.write_bytes((BUILTIN / f"{DEFAULT}.yaml").read_bytes())
    return file


def reset(name: str | None = None) -> list[str]:
    """Put a built-in profile, or all of them, back as they were; the lines that say what was done.

    A file of the user's that stands in its place is kept, under the name NAME_custom.
    """
    names = builtin_names() if name is None else [_known(name)]
    done = [line for each in names for line in _set_aside(each)]
    if DEFAULT in names:
        done.append(f"{make_default()} is as it was at first.")
    elif not done:
        done.append(f"The built-in profile {names[0]} is as it was: there is no file of yours in its place.")
    return done


def _known(name: str) -> str:
    from difflib import get_close_matches

    stem, suffix = os.path.splitext(name)
    stem = stem if suffix in KINDS else name
    if stem in builtin_names():
        return stem
    close = get_close_matches(stem, builtin_names(), n=1)
    advice = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(builtin_names())}."
    raise ProfileError(f"There is no built-in profile {name} to go back to. {advice}")


def _set_aside(name: str) -> list[str]:
    done = []
    for kind in KINDS:
        file = folder() / f"{name}{kind}"
        if file.is_file():
            kept = _free(file)
            file.rename(kept)
            done.append(f"{file} is kept as {kept.name}.")
    return done


def _free(file: Path) -> Path:
    number = 1
    while (kept := file.with_stem(f"{file.stem}_custom{number if number > 1 else ''}")).exists():
        number += 1
    return kept
