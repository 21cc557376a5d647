"""What holds events or cards: on a server, in a folder, or in one file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from interpreter.computer_api.people.account import Account
from interpreter.computer_api.people.errors import AccountError
from interpreter.errors import ComputerError

CHANGED = "{} was changed meanwhile by somebody else; nothing was done. Look again, then try again."


@dataclass(frozen=True)
class Item:
    """One text in it; `tag` is what the server calls this state of it."""

    place: str
    text: str
    tag: str = ""


class Collection(Protocol):
    """A calendar or an address book."""

    name: str

    def items(self, start: datetime | None = None, end: datetime | None = None) -> list[Item]:
        """What it holds; of a calendar on a server, what happens between two times."""

    def add(self, uid: str, extended: Callable[[str | None], str]) -> None:
        """Put something new in: `extended` makes the text of what is there, or of nothing."""

    def replace(self, item: Item, text: str) -> None:
        """Have this text instead."""

    def remove(self, item: Item) -> None:
        """Have it no longer."""


class Files:
    """A folder with an event or a card in each file, or one file with all of them."""

    def __init__(self, path: Path, suffix: str) -> None:
        self.path, self.suffix = path, suffix
        self.name = path.name.removesuffix(suffix) if path.is_file() else path.name

    def items(self, start: datetime | None = None, end: datetime | None = None) -> list[Item]:
        files = [self.path] if self.path.is_file() else sorted(self.path.glob(f"*{self.suffix}"))
        return [Item(str(file), read(file)) for file in files if file.is_file()]

    def add(self, uid: str, extended: Callable[[str | None], str]) -> None:
        if self.path.is_file():
            (item,) = self.items()
            self.replace(item, extended(item.text or None))
        else:
            write(self.path / f"{uid}{self.suffix}", extended(None))

    def replace(self, item: Item, text: str) -> None:
        self._unchanged(item)
        write(Path(item.place), text)

    def remove(self, item: Item) -> None:
        self._unchanged(item)
        if self.path.is_file():  # which stays, and holds nothing
            write(self.path, "")
        else:
            Path(item.place).unlink()

    def _unchanged(self, item: Item) -> None:
        if read(Path(item.place)) != item.text:
            raise ComputerError(CHANGED.format(item.place))


def local_collections(account: Account, suffix: str) -> list[Files]:
    """The file or folder that the account names; of a folder of folders, each."""
    path = account.path("path")
    if path.is_file():
        return [Files(path, suffix)]
    if not path.is_dir():
        raise AccountError(f'"path" in {account.setting} names {path}, which is not there.')
    inner = [folder for folder in sorted(path.iterdir()) if folder.is_dir() and not folder.name.startswith(".")]
    own = [path] if not inner or any(path.glob(f"*{suffix}")) else []
    return [Files(folder, suffix) for folder in (*own, *inner)]


def read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise ComputerError(f"{file} cannot be read: {error}") from None


def write(file: Path, text: str) -> None:
    """Whole or not at all, with the rights that the file had."""
    try:
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
        fd, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(fd, "wb") as made:
                made.write(text.encode("utf-8"))
            os.chmod(name, mode)
            os.replace(name, file)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise ComputerError(f"{file} cannot be written: {error.strerror}") from None
