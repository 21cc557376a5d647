"""Finding a profile, reading it, and setting up an interpreter as it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.config.profiles.places import Place, find
from interpreter.config.profiles.profile import Profile
from interpreter.config.profiles.read import read
from interpreter.config.profiles.shared_keys import shared_keys
from interpreter.config.settings import apply
from interpreter.errors import ProfileError

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter

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
    from interpreter.config.profiles.fetch import fetch

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
        from interpreter.config.profiles import code

        code.run(profile, interpreter)
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
