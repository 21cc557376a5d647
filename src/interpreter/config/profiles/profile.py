"""A profile as it was read, and where profiles are: the user's folder, the built-in ones, a path, an address."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interpreter.config.homes import make_folder, our_folder
from interpreter.errors import ProfileError

BUILTIN = Path(__file__).parent / "builtin"
KINDS = (".yaml", ".yml", ".json", ".py")
DEFAULT = "default"
_OLD_SITE = ("i.com/", "www.i.com/", "http://i.com/", "https://i.com/", "http://www.i.com/", "https://www.i.com/")


@dataclass(frozen=True)
class ProfileLocation:
    """A file or an address; `format` is the suffix that a name without one should have had."""

    address: str
    is_url: bool = False
    format: str = ""

    @property
    def kind(self) -> str:
        """Return the format it is written in, as a suffix; empty if unknown."""
        path = self.address.partition("?")[0].partition("#")[0] if self.is_url else self.address
        suffix = os.path.splitext(path)[1].lower()
        return self.format or (suffix if suffix in KINDS else "")

    @property
    def is_builtin(self) -> bool:
        return not self.is_url and Path(self.address).parent == BUILTIN


@dataclass
class Profile:
    """Settings by their dotted names, and what else a profile can hold."""

    location: ProfileLocation
    text: str  # the unparsed file
    settings: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)  # the line of each setting
    languages: tuple[str, ...] | None = None  # the languages to keep, by name
    custom_languages: tuple[Any, ...] = ()  # the classes of those that the profile describes
    code: str = ""  # Python: the whole profile, or the `start_script` of one in YAML or JSON
    code_line: int = 1  # where the code begins in the file
    notices: list[str] = field(default_factory=list)  # lines for the user, about what has no effect
    variables: dict[str, None] = field(default_factory=dict)  # the names of the environment variables that it reads

    @property
    def is_python(self) -> bool:
        return self.location.kind == ".py"

    def where(self, setting: str) -> str:
        """Return the file and, if known, the line of a setting."""
        line = self.lines.get(setting)
        return f"{self.location.address}, line {line}" if line else self.location.address


def folder() -> Path:
    return our_folder() / "profiles"


def builtin_names() -> list[str]:
    return _names(BUILTIN)


def user_names() -> list[str]:
    return _names(folder())


def _names(folder: Path) -> list[str]:
    try:
        return sorted({file.stem for file in folder.iterdir() if file.suffix in KINDS and file.is_file()})
    except OSError:
        return []


def default_file() -> Path | None:
    return _in_folder(folder(), DEFAULT)


def find(name: str) -> ProfileLocation:
    """Find a profile: a URL, a path, the user's own, a built-in one, or a file in this folder.

    The user's own comes before a built-in one. A file in the current folder comes last, so that a folder from
    someone else cannot replace a known profile.
    """
    if name.lower().startswith(_OLD_SITE):
        raise ProfileError(f"{name}: short addresses of that site are not supported. Give the full URL of the profile.")
    if name.lower().startswith(("http://", "https://")):
        return ProfileLocation(name, is_url=True)
    path = Path(name).expanduser()
    if path.name != name:  # it has a folder in it
        if not path.is_file():
            raise ProfileError(f"There is no profile {path}.")
        if path.suffix.lower() not in KINDS:
            kinds = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
            raise ProfileError(f"{path} is not a profile: its name must end with {kinds}.")
        return ProfileLocation(str(path.absolute()))
    stem = _in_folder(BUILTIN, path.stem if path.suffix in KINDS else name)
    # Built-in ones by the stem alone: `groq.py` of 0.4.3 is written in YAML today.
    for candidate in (_in_folder(folder(), name), stem, path if path.suffix in KINDS else None):
        if candidate is not None and candidate.is_file():
            return ProfileLocation(str(candidate.absolute()))
    advice = _advice(path.stem, sorted({*user_names(), *builtin_names()}))
    raise ProfileError(f"There is no profile {name}, neither in {folder()} nor built in. {advice}")


def _in_folder(folder: Path, name: str) -> Path | None:
    """Find the file with that name; without a suffix, the first that exists."""
    names = [name] if os.path.splitext(name)[1] in KINDS else [f"{name}{kind}" for kind in KINDS]
    return next((folder / each for each in names if (folder / each).is_file()), None)


def _advice(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"Did you mean {close[0]}?" if close else f"Available profiles: {', '.join(known)}."


def make_default() -> Path:
    """Return the file of the default profile, and write it first if there is none."""
    file = default_file()
    if file is None:
        file = folder() / f"{DEFAULT}.yaml"
        make_folder(file.parent)
        file.write_bytes((BUILTIN / f"{DEFAULT}.yaml").read_bytes())
    return file


def reset(name: str | None = None) -> list[str]:
    """Restore a built-in profile, or all of them; return lines about what was done.

    The user's own version is kept, under the name NAME_custom.
    """
    names = builtin_names()
    if name is not None:
        stem, suffix = os.path.splitext(name)
        stem = stem if suffix in KINDS else name
        if stem not in names:
            raise ProfileError(f"There is no built-in profile {name}. {_advice(stem, names)}")
        names = [stem]
    done = []
    for file in (folder() / f"{each}{kind}" for each in names for kind in KINDS):
        if file.is_file():
            number = 1
            while (kept := file.with_stem(f"{file.stem}_custom{number if number > 1 else ''}")).exists():
                number += 1
            file.rename(kept)
            done.append(f"{file} is kept as {kept.name}.")
    if DEFAULT in names:
        done.append(f"{make_default()} is back to its original content.")
    elif not done:
        done.append(f"The built-in profile {names[0]} is unchanged: no file of yours replaces it.")
    return done
