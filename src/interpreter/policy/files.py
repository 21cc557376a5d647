"""Where rules are stored: the user's file and a project's file. Checking whether they exist costs next to nothing."""

from __future__ import annotations

import os
from pathlib import Path

from interpreter.config.homes import our_folder

NAME = "policy.yaml"


def user_file() -> Path:
    return our_folder() / NAME


def project_file(folder: str) -> Path:
    return Path(folder, ".interpreter", NAME)


def are_there(folder: str) -> bool:
    """Return whether this folder has rules, trusted or not."""
    return any(map(os.path.lexists, (user_file(), project_file(folder))))
