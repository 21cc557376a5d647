"""fish blocks, each in a process of its own."""

from __future__ import annotations

from interpreter.runtimes.program import ProgramLanguage

__all__ = ["Fish"]


class Fish(ProgramLanguage):
    """fish without its configuration; variables do not stay: fish cannot stop a block and live on."""

    name = "Fish"
    file_extension = "fish"
    explains_failures = False
    cell_magic = "%%script fish"
    programs = ("fish",)
    arguments = ("--no-config", "{file}")
    install = "apt install fish; macOS: brew install fish"
    order = 15
    is_common = False
