"""The folders of sessions: a new one, a copy of one, and what is said when they cannot be written."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interpreter.errors import ConversationFileError
from interpreter.session.journal.file import NAME

BLOBS = "blobs"


def new_folder(root: Path) -> Path:
    """A folder with a name that no session has."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    while True:
        folder = root / secrets.token_hex(4)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder


def copied(session: Path, root: Path) -> Path:
    """A copy of a session as it is now; large things are shared."""
    folder = new_folder(root)
    shutil.copyfile(session / NAME, folder / NAME)
    (folder / NAME).chmod(0o600)
    if (session / BLOBS).exists():
        shutil.copytree(session / BLOBS, folder / BLOBS, copy_function=_link)
    return folder


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@contextmanager
def writing(where: Path) -> Iterator[None]:
    """What the system refuses is an error of ours."""
    try:
        yield
    except OSError as error:
        raise ConversationFileError(f"{where} cannot be written: {error.strerror}.") from error
