"""Where a path is: in the workspace, outside, or not to be told; and whether secrets are kept there."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import NamedTuple

from interpreter.config.homes import home, homes
from interpreter.policy.analysis.effects import Place

HOLE = "\0"
"""Stands in a text for what is only known when the code runs; no path and no argument can have it."""

_LONGEST = 4096
_NOWHERE = re.compile(r"/dev/(null|zero|u?random|std(in|out|err)|tty|fd/.*)|-")
_FIRST_UNKNOWN = re.compile(r"[\0*?\[{]")
# Below the home folder; a name with a slash at the end is a folder.
_SECRET_HOME = (
    ".ssh/", ".gnupg/", ".aws/", ".azure/", ".config/gcloud/", ".kube/", ".docker/config.json", ".config/gh/",
    ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".password-store/", ".mozilla/", ".vault-token",
    ".config/google-chrome/", "Library/Keychains/", ".local/share/keyrings/", ".config/open-interpreter/keys",
)  # fmt: skip
_SECRET_SYSTEM = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
_SECRET_ANYWHERE = re.compile(
    r"/(\.env(\.(?!example|sample|template)[^/]*)?|id_(rsa|dsa|ecdsa|ed25519)[^/]*|[^/]*\.(pem|p12|pfx|kdbx|keystore))$"
    r"|^/etc/(shadow|gshadow|sudoers)\b|^/proc/[^/]+/environ$"
)
_SYSTEM = re.compile(r"(?:(?:/usr)?(?:/local)?/s?bin|/opt/homebrew/bin)/[^/]+")
_NOT_SECRET = re.compile(r"(\.pub|/known_hosts|/\.ssh/config)$")


class Spot(NamedTuple):
    """A path as it is shown, and where it is."""

    shown: str
    place: Place
    full: str
    known: bool


class Places:
    """The workspace, and the folder in which the code is at the moment (None: not known)."""

    def __init__(self, workspace: str, cwd: str | None = None) -> None:
        self.workspace = _real(workspace)
        self.cwd: str | None = _real(cwd) if cwd else self.workspace

    def spot(self, text: str) -> Spot | None:
        """Where a path leads; None for what is no file, such as /dev/null."""
        if _NOWHERE.fullmatch(text):
            return None
        shown = text.replace(HOLE, "*") or "*"
        full = self.full(text)
        if full is None:
            return Spot(shown, "unknown", "", known=False)
        return Spot(shown, "workspace" if _within(full, self.workspace) else "outside", full, HOLE not in text)

    def full(self, text: str) -> str | None:
        """The absolute path; None if even its beginning is not known."""
        path = expanded(text)
        if not path.startswith("/"):
            if not path or path.startswith(HOLE) or self.cwd is None:
                return None
            path = f"{self.cwd}/{path}"
        first = _FIRST_UNKNOWN.search(path)
        if first is None:
            return _real(path)
        cut = path.rfind("/", 0, first.start()) + 1
        rest = path[cut:].replace(HOLE, "*")
        if ".." in rest.split("/"):
            return None
        return f"{_real(path[:cut]).rstrip('/')}/{rest}"

    def move(self, text: str | None) -> None:
        """`cd`: later paths count from there."""
        full = self.full(text) if text is not None else None
        self.cwd = full if full is not None and not _FIRST_UNKNOWN.search(full) else None


def expanded(path: str) -> str:
    """With the home folder in the place of a tilde."""
    if path == "~" or path.startswith("~/"):
        return home() + path[1:]
    if not re.match(r"~\w", path):
        return path
    named = os.path.expanduser(path)  # as the system has it
    return named if named != path else f"/home/{path[1:]}"


def is_of_system(program: str) -> bool:
    """Is this where the system keeps its own programs?"""
    return bool(_SYSTEM.fullmatch(os.path.normpath(program)))


def is_secret(full: str) -> bool:
    """Is this where keys and passwords are kept?"""
    if _NOT_SECRET.search(full):
        return False
    if _SECRET_ANYWHERE.search(full) or any(_stars(full, path) for path in _SECRET_SYSTEM):
        return True
    return any(_is_secret_in(os.path.relpath(full, folder)) for folder in homes() if _within(full, folder))


def _is_secret_in(inside: str) -> bool:
    return any(
        inside == name.rstrip("/") or (name.endswith("/") and inside.startswith(name)) or _stars(inside, name)
        for name in _SECRET_HOME
    )


def _stars(path: str, name: str) -> bool:
    """Could a path with stars in it be this one, or in it? A star does not stand for a dot at the beginning."""
    if "*" not in path and "?" not in path and "[" not in path:
        return False
    given, wanted = path.split("/"), name.rstrip("/").split("/")
    return len(given) >= len(wanted) and all(
        fnmatchcase(meant, part) and (not meant.startswith(".") or part.startswith("."))
        for part, meant in zip(given, wanted, strict=False)
    )


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _real(path: str) -> str:
    path = re.sub(r"^//+", "/", path)
    if len(path) > _LONGEST:
        return os.path.normpath(path)
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a name that no file system takes
        return os.path.normpath(path)
