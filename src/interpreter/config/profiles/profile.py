"""What a profile says, once it is read and checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interpreter.errors import ProfileError


@dataclass(frozen=True)
class Profile:
    """Settings by their dotted names, and what else a profile can hold."""

    place: Place
    settings: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    """Where each setting stands."""
    languages: tuple[str, ...] | None = None
    """The languages to keep, by name."""
    code: str = ""
    """Python: the whole profile, or the `start_script` of one in YAML or JSON."""
    code_line: int = 1
    """Where the code begins in the file."""
    notices: tuple[str, ...] = ()
    """Lines for the user, about what has no effect."""
    later: tuple[str, ...] = ()
    """What it asks for that is not there yet, in words."""
    variables: tuple[str, ...] = ()
    """The environment variables that it reads."""
    text: str = ""
    """The file as it is."""

    @property
    def is_python(self) -> bool:
        return self.place.kind == ".py"


BUILTIN = Path(__file__).parent / "builtin"
KINDS = (".yaml", ".yml", ".json", ".py")
DEFAULT = "default"

_OLD_SITE = ("i.com/", "www.i.com/", "http://i.com/", "https://i.com/", "http://www.i.com/", "https://www.i.com/")


@dataclass(frozen=True)
class Place:
    """A file or an address; `told` is the suffix that its name should have had."""

    address: str
    is_url: bool = False
    told: str = ""

    @property
    def kind(self) -> str:
        """What it is written in, as a suffix; empty if nothing tells."""
        if self.told:
            return self.told
        path = self.address.partition("?")[0].partition("#")[0] if self.is_url else self.address
        suffix = os.path.splitext(path)[1].lower()
        return suffix if suffix in KINDS else ""

    @property
    def is_builtin(self) -> bool:
        return not self.is_url and Path(self.address).parent == BUILTIN


def folder() -> Path:
    """The user's own profiles."""
    from platformdirs import user_config_dir

    return Path(user_config_dir("open-interpreter")) / "profiles"


def builtin_names() -> list[str]:
    """The profiles that come with the package."""
    return _names(BUILTIN)


def user_names() -> list[str]:
    """The user's own profiles, by the names that load them."""
    return _names(folder())


def default_file() -> Path | None:
    """The user's default profile, if there is one."""
    return _in_folder(folder(), DEFAULT)


def find(name: str) -> Place:
    """The profile that somebody means: an address, a path, one of the user's, a built-in one, a file right here.

    The user's own comes before a built-in one; a file in the current folder comes last, so that a folder
    somebody else made cannot put its own in the place of a known one.
    """
    if name.lower().startswith(_OLD_SITE):
        raise ProfileError(f"{name}: that site is not ours to ask. Give the whole address of the profile.")
    if name.lower().startswith(("http://", "https://")):
        return Place(name, is_url=True)
    path = Path(name).expanduser()
    if path.name != name:  # it has a folder in it
        if not path.is_file():
            raise ProfileError(f"There is no profile {path}.")
        return Place(_checked(path))
    for found in (_in_folder(folder(), name), _builtin(name), path if path.suffix in KINDS else None):
        if found is not None and found.is_file():
            return Place(_checked(found))
    raise _missing(name)


def _checked(path: Path) -> str:
    if path.suffix.lower() not in KINDS:
        raise ProfileError(f"{path} is no profile: its name must end with {', '.join(KINDS[:-1])} or {KINDS[-1]}.")
    return str(path.absolute())


def _in_folder(place: Path, name: str) -> Path | None:
    """The file of that name; without a suffix, the first that there is."""
    if os.path.splitext(name)[1] in KINDS:
        return place / name if (place / name).is_file() else None
    return next((file for kind in KINDS if (file := place / f"{name}{kind}").is_file()), None)


def _builtin(name: str) -> Path | None:
    """By name alone: what was `groq.py` once may be written in YAML today."""
    stem, suffix = os.path.splitext(name)
    return _in_folder(BUILTIN, stem if suffix in KINDS else name)


def _names(place: Path) -> list[str]:
    try:
        return sorted({file.stem for file in place.iterdir() if file.suffix in KINDS and file.is_file()})
    except OSError:
        return []


def _missing(name: str) -> ProfileError:
    from difflib import get_close_matches

    known = [*user_names(), *builtin_names()]
    close = get_close_matches(os.path.splitext(name)[0], known, n=1)
    advice = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(sorted(set(known)))}."
    return ProfileError(f"There is no profile {name}, neither in {folder()} nor built in. {advice}")


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
